"""Image files of every kind, drawn here: known pixels in, bytes of a file out. None of it uses the code under test."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms

Array = NDArray[Any]
ORIENTATION = 0x0112


def gradient(width: int, height: int, channels: int = 3, dtype: str = "uint8", seed: int = 0) -> Array:
    """Smooth, asymmetric pixels (height, width, channels): every turn and mirroring of them is different."""
    top = np.iinfo(dtype).max
    y, x = np.mgrid[0:height, 0:width]
    planes = [
        (np.sin((x * (1 + c) + seed) / width * 3) * 0.3 + (y + c) / (height + channels) * 0.5 + 0.2 * (x < width / 3))
        for c in range(channels)
    ]
    return np.clip(np.stack(planes, axis=2) * top, 0, top).astype(dtype)


def blocks(width: int, height: int) -> Array:
    """Red, green, blue and dark quarters: colours that survive JPEG, and that tell which corner is which."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[: height // 2, : width // 2] = (220, 30, 30)
    pixels[: height // 2, width // 2 :] = (30, 200, 40)
    pixels[height // 2 :, : width // 2] = (40, 50, 210)
    pixels[height // 2 :, width // 2 :] = (30, 30, 30)
    return pixels


def as_image(pixels: Array) -> Image.Image:
    """A Pillow image of pixels (height, width, channels)."""
    return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)


def save(image: Image.Image | Array, format: str, **options: Any) -> bytes:
    """The bytes of a file that Pillow writes."""
    out = io.BytesIO()
    (image if isinstance(image, Image.Image) else as_image(image)).save(out, format, **options)
    return out.getvalue()


def exif(orientation: int) -> Image.Exif:
    """EXIF data with an orientation, and something before and behind it."""
    data = Image.Exif()
    data[0x010F] = "maker"
    data[ORIENTATION] = orientation
    data[0x0131] = "software"
    return data


def raster_of(upright: Array, orientation: int) -> Array:
    """How upright pixels lie in a file whose EXIF orientation is ``orientation`` (written out from CIPA DC-008)."""
    turned = {
        1: upright,
        2: np.fliplr(upright),
        3: np.rot90(upright, 2),
        4: np.flipud(upright),
        5: np.swapaxes(upright, 0, 1),
        6: np.rot90(upright, 1),
        7: np.swapaxes(np.rot90(upright, 2), 0, 1),
        8: np.rot90(upright, -1),
    }
    return np.ascontiguousarray(turned[orientation])


def swapped_profile() -> bytes:
    """A valid RGB profile that is clearly not sRGB: the red and the blue primary of sRGB swapped."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    profile[24:36] = bytes(12)  # the time at which it was made
    count = int.from_bytes(profile[128:132], "big")
    for position in range(132, 132 + 12 * count, 12):
        name = bytes(profile[position : position + 4])
        if name in (b"rXYZ", b"bXYZ"):
            profile[position : position + 4] = b"bXYZ" if name == b"rXYZ" else b"rXYZ"
    text = bytes(profile)
    for name in ("sRGB built-in", "sRGB"):
        text = text.replace(name.encode("utf-16-be"), ("x" * len(name)).encode("utf-16-be"))
        text = text.replace(name.encode(), b"x" * len(name))
    return text


# ---------------------------------------------------------------------------------------------------------------------
# JPEG


def jpeg_segment(marker: int, content: bytes) -> bytes:
    """A marker segment."""
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content


def with_segment(data: bytes, marker: int, content: bytes) -> bytes:
    """A JPEG with a further segment right behind its first marker."""
    return data[:2] + jpeg_segment(marker, content) + data[2:]


def mpo(pictures: Sequence[Array], **options: Any) -> bytes:
    """A multi-picture file: JPEGs one behind the other, and an index in the first."""
    first, *rest = [as_image(pixels) for pixels in pictures]
    return save(first, "MPO", save_all=True, append_images=rest, **options)


def ycck(samples: tuple[int, int, int, int], width: int = 24, height: int = 16) -> bytes:
    """A JPEG that Adobe programs call YCCK, of one colour: YCbCr samples and K as they lie in the file."""
    image = Image.new("CMYK", (width, height), tuple(255 - sample for sample in samples))  # Pillow inverts on save
    data = bytearray(save(image, "JPEG", quality=100))
    data[data.index(b"Adobe") + 11] = 2
    return bytes(data)


# ---------------------------------------------------------------------------------------------------------------------
# PNG

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PNG_END = b"\0\0\0\0IEND\xaeB`\x82"
SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def png_chunk(kind: bytes, content: bytes) -> bytes:
    """A chunk with the right checksum."""
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png_header(width: int, height: int, depth: int, colour_type: int, interlace: int = 0) -> bytes:
    """Signature and IHDR."""
    head = struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, interlace)
    return PNG_SIGNATURE + png_chunk(b"IHDR", head)


def packed_rows(samples: Array, depth: int) -> list[bytes]:
    """Rows of samples (height, width, samples) in ``depth`` bits each, without filter types."""
    flat = samples.reshape(samples.shape[0], -1)
    if depth == 16:
        return [row.astype(">u2").tobytes() for row in flat]
    if depth == 8:
        return [row.astype(np.uint8).tobytes() for row in flat]
    bits = (flat[:, :, None] >> np.arange(depth - 1, -1, -1)) & 1
    return [np.packbits(row.reshape(-1).astype(np.uint8)).tobytes() for row in bits]


def filtered(rows: Sequence[bytes], step: int) -> bytes:
    """Rows with all five filter types of PNG in turn. step: bytes of a pixel, at least 1."""
    out = []
    above = np.zeros(len(rows[0]), int)
    for number, row in enumerate(rows):
        values = np.frombuffer(row, np.uint8).astype(int)
        left = np.concatenate([np.zeros(step, int), values])[: len(values)]
        corner = np.concatenate([np.zeros(step, int), above])[: len(values)]
        guess = left + above - corner
        to_left, to_above, to_corner = abs(guess - left), abs(guess - above), abs(guess - corner)
        paeth = np.where(
            (to_left <= to_above) & (to_left <= to_corner), left, np.where(to_above <= to_corner, above, corner)
        )
        taken = (np.zeros_like(values), left, above, (left + above) // 2, paeth)[number % 5]
        out.append(bytes([number % 5]) + ((values - taken) % 256).astype(np.uint8).tobytes())
        above = values
    return b"".join(out)


def png(
    samples: Array,
    depth: int,
    colour_type: int,
    *,
    palette: bytes = b"",
    transparency: bytes | None = None,
    interlaced: bool = False,
    before: bytes = b"",
    after: bytes = b"",
) -> bytes:
    """A PNG of raw samples (height, width, samples), with all filter types. before, after: chunks around the IDAT."""
    height, width = samples.shape[:2]
    step = max(1, SAMPLES[colour_type] * depth // 8)
    passes = ADAM7 if interlaced else ((0, 0, 1, 1),)
    parts = [samples[y::step_y, x::step_x] for x, y, step_x, step_y in passes]
    body = b"".join(filtered(packed_rows(part, depth), step) for part in parts if part.size)
    data = png_header(width, height, depth, colour_type, int(interlaced))
    if palette:
        data += png_chunk(b"PLTE", palette)
    if transparency is not None:
        data += png_chunk(b"tRNS", transparency)
    return data + before + png_chunk(b"IDAT", zlib.compress(body)) + after + PNG_END


def compressed(data: bytes) -> bytes:
    """A zlib stream."""
    return zlib.compress(data)


def zeros_compressed(count: int) -> bytes:
    """A zlib stream of ``count`` zero bytes."""
    packer = zlib.compressobj()
    parts = [packer.compress(bytes(min(2**20, count - start))) for start in range(0, count, 2**20)]
    return b"".join((*parts, packer.flush()))


def apng(frames: Sequence[Array]) -> bytes:
    """An animated PNG; its first frame is the default image."""
    first, *rest = [as_image(pixels) for pixels in frames]
    return save(first, "PNG", save_all=True, append_images=rest, duration=100)


# ---------------------------------------------------------------------------------------------------------------------
# TIFF, written by hand because Pillow does not write 16-bit colour, tiles, or white-is-zero.

_TIFF_TYPES = {"B": 1, "H": 3, "I": 4}


def tiff(
    samples: Array,
    *,
    order: str = "<",
    compression: int = 1,
    photometric: int | None = None,
    tile: tuple[int, int] | None = None,
    planar: bool = False,
    extra: Sequence[int] = (),
    tags: Mapping[int, tuple[str, Sequence[int]]] | None = None,
    pages: int = 1,
) -> bytes:
    """A TIFF of samples (height, width, samples) in one strip or in tiles.

    order: ``<`` or ``>``. compression: 1 none, 8 deflate. photometric: 0 white is zero, 1 black is zero, 2 RGB, ...; by
    the number of samples when None. extra: ExtraSamples. tags: further ones, as number: (type B, H or I, values).
    """
    height, width, count = samples.shape
    if photometric is None:
        photometric = 2 if count - len(extra) >= 3 else 1
    bits = samples.dtype.itemsize * 8
    stored = samples.astype(samples.dtype.newbyteorder(order))  # type: ignore[arg-type]
    planes = [stored[:, :, [c]] for c in range(count)] if planar else [stored]
    pieces = [piece for plane in planes for piece in _tiff_pieces(plane, tile)]
    if compression == 8:
        pieces = [zlib.compress(piece) for piece in pieces]
    body = b"II*\0" if order == "<" else b"MM\0*"
    out = bytearray(body + struct.pack(order + "I", 0))
    next_pointer = 4
    for _ in range(pages):
        offsets = []
        for piece in pieces:
            offsets.append(len(out))
            out += piece + b"\0" * (len(piece) % 2)
        sample_format = {"u": 1, "i": 2, "f": 3}[samples.dtype.kind]
        fields: dict[int, tuple[str, Sequence[int]]] = {
            256: ("I", [width]),
            257: ("I", [height]),
            258: ("H", [bits] * count),
            259: ("H", [compression]),
            262: ("H", [photometric]),
            277: ("H", [count]),
            284: ("H", [2 if planar else 1]),
            339: ("H", [sample_format] * count),
        }
        if extra:
            fields[338] = ("H", list(extra))
        if tile:
            fields |= {322: ("I", [tile[0]]), 323: ("I", [tile[1]]), 324: ("I", offsets)}
            fields[325] = ("I", [len(piece) for piece in pieces])
        else:
            fields |= {273: ("I", offsets), 278: ("I", [height]), 279: ("I", [len(piece) for piece in pieces])}
        fields |= dict(tags or {})
        directory = bytearray(struct.pack(order + "H", len(fields)))
        start = len(out)
        tail = bytearray()
        tail_start = start + 2 + 12 * len(fields) + 4
        for number in sorted(fields):
            kind, values = fields[number]
            content = struct.pack(f"{order}{len(values)}{kind}", *values)
            directory += struct.pack(order + "HHI", number, _TIFF_TYPES[kind], len(values))
            if len(content) <= 4:
                directory += content.ljust(4, b"\0")
            else:
                directory += struct.pack(order + "I", tail_start + len(tail))
                tail += content + b"\0" * (len(content) % 2)
        out[next_pointer : next_pointer + 4] = struct.pack(order + "I", start)
        next_pointer = start + len(directory)
        out += directory + bytes(4) + tail
    return bytes(out)


def _tiff_pieces(plane: Array, tile: tuple[int, int] | None) -> list[bytes]:
    if tile is None:
        return [plane.tobytes()]
    height, width, count = plane.shape
    pieces = []
    for y in range(0, height, tile[1]):
        for x in range(0, width, tile[0]):
            whole = np.zeros((tile[1], tile[0], count), plane.dtype)
            part = plane[y : y + tile[1], x : x + tile[0]]
            whole[: part.shape[0], : part.shape[1]] = part
            pieces.append(whole.tobytes())
    return pieces


def ico(entries: Sequence[tuple[int, int, bytes]]) -> bytes:
    """An icon file. entries: (width, height, content), each a PNG or a bitmap without file header."""
    out = struct.pack("<HHH", 0, 1, len(entries))
    offset = len(out) + 16 * len(entries)
    for width, height, content in entries:
        out += struct.pack("<BBBBHHII", width % 256, height % 256, 0, 0, 1, 32, len(content), offset)
        offset += len(content)
    return out + b"".join(content for _, _, content in entries)
