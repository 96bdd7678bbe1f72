"""PNG files seen as chunks (W3C PNG, third edition): what they say, whether their pixel data is whole, and new files
made of their parts.

What libpng does with chunks that are not right is followed here, because TensorFlow decodes with libpng: damaged
critical chunks are errors, damaged ancillary ones are left out.

The pixel data is checked without making pixels. It is whole exactly when the IDAT chunks inflate to as many bytes as
the header promises, with a known filter type before each row (W3C PNG 9.2) and the right Adler-32 at the end. Inflating
runs in C and releases the GIL. libpng refuses what fails here, while Pillow lets some of it pass (missing rows of
interlaced images, missing checksums).
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from beam_tfrecord.images.safety import DamagedFileError, check_pixels

SIGNATURE = b"\x89PNG\r\n\x1a\n"
END = b"\0\0\0\0IEND\xaeB`\x82"

GRAY, RGB, PALETTE, GRAY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6
SAMPLES = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGB_ALPHA: 4}
_DEPTHS = {GRAY: (1, 2, 4, 8, 16), RGB: (8, 16), PALETTE: (1, 2, 4, 8), GRAY_ALPHA: (8, 16), RGB_ALPHA: (8, 16)}
# A chunk whose text or profile inflates to more than this is not looked into.
_MAX_INFLATED = 16 * 2**20
_MAX_CHUNK = 2**31 - 1

_XMP_KEYWORD = b"XML:com.adobe.xmp"
_EXIF_KEYWORD = b"Raw profile type exif"

_chunk_head = struct.Struct(">I4s").unpack_from
_ihdr = struct.Struct(">IIBBBBB").unpack_from


class PngError(DamagedFileError):
    """The file is damaged."""


class PngFile(NamedTuple):
    """The parts of a PNG that matter.

    colour_type and depth: as in IHDR. palette: content of PLTE for a palette image, else empty. transparency: content
    of a valid tRNS, else None. data: contents of the IDAT chunks that belong together. exif, xmp, profile: content of
    eXIf, of the XMP text and of iCCP (still compressed), or None. is_animated: acTL promises several frames. end:
    offset behind IEND, None when the file lacks just that. oddities: what is not right but does not touch the pixels.
    """

    width: int
    height: int
    depth: int
    colour_type: int
    interlaced: bool
    palette: bytes
    transparency: bytes | None
    data: list[bytes]
    exif: bytes | None
    xmp: bytes | None
    profile: bytes | None
    is_animated: bool
    end: int | None
    oddities: list[str]

    @property
    def channels(self) -> int:
        """Channels that libpng (and TensorFlow) decodes to: a palette becomes RGB, or RGBA with transparency."""
        if self.colour_type == PALETTE:
            return 3 if self.transparency is None else 4
        return SAMPLES[self.colour_type]

    @property
    def dtype(self) -> str:
        """``uint16`` for samples of 16 bits, else ``uint8``."""
        return "uint16" if self.depth == 16 else "uint8"


def read_chunks(data: bytes) -> PngFile:
    """The chunks of a PNG, their checksums compared. Raises PngError when a critical chunk is damaged or missing.

    An ancillary chunk that is damaged is left out and told in ``oddities``, as libpng does.
    """
    oddities: list[str] = []
    palette = b""
    exif = raw_exif = xmp = profile = transparency = None
    body: list[bytes] = []
    is_animated = after_body = False
    palettes = 0
    size = len(data)
    width, height, depth, colour_type, interlace = _read_ihdr(data)
    position = 33
    end = None
    while True:
        if position + 12 > size:
            if not body:
                raise PngError("it ends before its pixels", cut=True)
            break
        length, kind = _chunk_head(data, position)
        stop = position + 8 + length
        if length > _MAX_CHUNK:
            raise PngError("a chunk has an impossible length")
        if stop + 4 > size:
            if not body or kind == b"IDAT":
                raise PngError(f"it ends inside of a chunk ({_name(kind)})", cut=True)
            break
        content = data[position + 8 : stop]
        intact = zlib.crc32(content, zlib.crc32(kind)) == int.from_bytes(data[stop : stop + 4], "big")
        position = stop + 4
        if kind[0] & 0x20:
            after_body = bool(body)
            if not kind.isalpha():
                raise PngError("a chunk has an impossible name")
            if not intact:
                oddities.append(f"the checksum of chunk {_name(kind)} is wrong")
            elif kind == b"tRNS":
                if not after_body and transparency is None and _is_transparency(colour_type, content, palette):
                    transparency = content
                else:
                    oddities.append("its transparency (tRNS) is not valid and has no effect")
            elif kind == b"iCCP":
                profile = profile or content
            elif kind == b"eXIf":
                exif = exif or content
            elif kind == b"acTL":
                is_animated = is_animated or int.from_bytes(content[:4], "big") > 1
            elif kind in (b"iTXt", b"tEXt", b"zTXt"):
                try:
                    if raw_exif is None and content.startswith(_EXIF_KEYWORD):
                        raw_exif = _raw_profile(kind, content)
                    elif xmp is None and content.startswith(_XMP_KEYWORD):
                        xmp = _text(kind, content)
                except ValueError as error:
                    oddities.append(f"its text {_keyword(content)!r} cannot be read ({error})")
            continue
        if not intact:
            raise PngError(f"the checksum of chunk {_name(kind)} is wrong")
        if kind == b"IDAT":
            if after_body:
                oddities.append("pixel data follows where no more may come")
            else:
                body.append(content)
        elif kind == b"IEND":
            if not body:
                raise PngError("it has no pixels")
            end = position
            break
        elif kind == b"PLTE":
            palettes += 1
            if body or palettes > 1:
                if colour_type == PALETTE or palettes > 1:
                    raise PngError("its palette is in the wrong place")
                after_body = True
                oddities.append("its palette is in the wrong place")
            elif colour_type == PALETTE:
                if length % 3 or not 3 <= length <= 768:
                    raise PngError(f"its palette has {length} bytes")
                palette = content[: 3 << depth]
            elif length % 3 or not 3 <= length <= 768 or colour_type in (GRAY, GRAY_ALPHA):
                oddities.append("its suggested palette is not valid")
        else:
            raise PngError(f"the critical chunk {_name(kind)} is unknown")
    if colour_type == PALETTE and not palette:
        raise PngError("its palette is missing")
    return PngFile(
        width,
        height,
        depth,
        colour_type,
        interlace == 1,
        palette,
        transparency,
        body,
        exif or raw_exif,
        xmp,
        profile,
        is_animated,
        end,
        oddities,
    )


def read_whole(data: bytes, max_pixels: int, what: str) -> PngFile:
    """The parts of a PNG whose pixel data is whole. what: it is called when it is damaged. Raises ImageError."""
    try:
        check_pixels(*read_size(data), max_pixels)
        file = read_chunks(data)
        check_pixel_data(file)
    except PngError as error:
        raise error.told(what) from None
    return file


def read_size(data: bytes) -> tuple[int, int]:
    """(width, height) of a PNG from its first chunk. Raises PngError."""
    return _read_ihdr(data)[:2]


def chunk(kind: bytes, content: bytes) -> bytes:
    """A chunk with its length and checksum."""
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(content, zlib.crc32(kind)))


def pixels_only(png: PngFile) -> bytes:
    """A PNG of the same pixels, palette and transparency, and of nothing else."""
    head = (png.width, png.height, png.depth, png.colour_type, 0, 0, int(png.interlaced))
    parts = [SIGNATURE, chunk(b"IHDR", struct.pack(">IIBBBBB", *head))]
    if png.palette:
        parts.append(chunk(b"PLTE", png.palette))
    if png.transparency is not None:
        parts.append(chunk(b"tRNS", png.transparency))
    return b"".join((*parts, chunk(b"IDAT", b"".join(png.data)), END))


def frames_only(data: bytes) -> bytes:
    """An animated PNG without the chunks that are neither pixels nor frames (texts, profile, EXIF)."""
    parts = [SIGNATURE]
    position = len(SIGNATURE)
    while position + 12 <= len(data):
        length, kind = _chunk_head(data, position)
        if not kind[0] & 0x20 or kind in (b"tRNS", b"acTL", b"fcTL", b"fdAT"):
            parts.append(data[position : position + 12 + length])
        position += 12 + length
    return b"".join(parts)


def with_end(data: bytes) -> bytes:
    """The PNG with its end chunk, for a file that was cut within or before it."""
    position = len(SIGNATURE)
    while position + 8 <= len(data):
        length, kind = _chunk_head(data, position)
        if kind == b"IEND" or position + 12 + length > len(data):
            break
        position += 12 + length
    return data[:position] + END


def with_wide_window(data: bytes) -> bytes:
    """The PNG with the largest window in the header of its compressed data (RFC 1950: CINFO), which must be there."""
    out = bytearray(data)
    position = len(SIGNATURE)
    header = b""
    while len(header) < 2:
        length, kind = _chunk_head(data, position)
        start, stop = position + 8, position + 8 + length
        if kind == b"IDAT":
            for place in range(start, min(stop, start + 2 - len(header))):
                if not header:
                    out[place] = 0x78
                else:  # the level stays, and FCHECK makes both a multiple of 31
                    level = out[place] & 0xE0
                    out[place] = level + -(0x7800 | level) % 31
                header += out[place : place + 1]
            out[stop : stop + 4] = struct.pack(">I", zlib.crc32(out[start:stop], zlib.crc32(kind)))
        position = stop + 4
    return bytes(out)


def inflate_profile(content: bytes) -> bytes | None:
    """The ICC profile in the content of an iCCP chunk; None when it does not inflate, or to something enormous."""
    _, _, rest = content.partition(b"\0")
    try:
        return _inflate(rest[1:])
    except ValueError:
        return None


def _read_ihdr(data: bytes) -> tuple[int, int, int, int, int]:
    if len(data) < 33:
        raise PngError("it ends inside of its header", cut=True)
    if data[8:16] != b"\0\0\0\x0dIHDR":
        raise PngError("its first chunk is not a header (IHDR)")
    if zlib.crc32(data[12:29]) != int.from_bytes(data[29:33], "big"):
        raise PngError("the checksum of its header is wrong")
    width, height, depth, colour_type, compression, filtering, interlace = _ihdr(data, 16)
    if depth not in _DEPTHS.get(colour_type, ()) or compression or filtering or interlace > 1:
        raise PngError("its header is not one of a PNG")
    if not (0 < width < 2**31 and 0 < height < 2**31):
        raise PngError(f"its header says {width}x{height} pixels")
    return width, height, depth, colour_type, interlace


def _is_transparency(colour_type: int, content: bytes, palette: bytes) -> bool:
    if colour_type == PALETTE:
        return 0 < len(content) <= len(palette) // 3
    return len(content) == {GRAY: 2, RGB: 6}.get(colour_type, -1)


def _name(kind: bytes) -> str:
    return kind.decode("latin-1") if kind.isalpha() else kind.hex()


def _keyword(content: bytes) -> str:
    return content.partition(b"\0")[0].decode("latin-1")


def _inflate(data: bytes) -> bytes | None:
    """None when there is more of it than is looked into. Raises ValueError when it does not inflate."""
    inflater = zlib.decompressobj()
    try:
        content = inflater.decompress(data, _MAX_INFLATED)
    except zlib.error as error:
        raise ValueError("it does not inflate") from error
    if not inflater.eof and len(content) < _MAX_INFLATED:
        raise ValueError("it ends too early")
    return content if inflater.eof else None


def _text(kind: bytes, content: bytes) -> bytes:
    """The text of a tEXt, zTXt or iTXt chunk, still encoded; nothing when it is enormous. Raises ValueError when it
    does not inflate."""
    _, _, rest = content.partition(b"\0")
    if kind == b"tEXt":
        return rest
    if kind == b"zTXt":
        is_compressed, text = True, rest[1:]
    else:
        is_compressed, text = rest[:1] == b"\1", rest[2:].partition(b"\0")[2].partition(b"\0")[2]
    return (_inflate(text) or b"") if is_compressed else text


def _raw_profile(kind: bytes, content: bytes) -> bytes:
    """EXIF as ImageMagick writes it into a text: a name, a length, and hexadecimal digits over several lines. Raises
    ValueError when they are none."""
    digits = b"".join(_text(kind, content).split(b"\n")[3:])
    return bytes.fromhex(digits.decode("ascii")).removeprefix(b"Exif\0\0")


# Adam7: first column and row of each pass, and the steps between columns and rows.
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_INFLATE_STEP = 4 * 2**20
_INPUT_STEP = 8192  # of libpng
_LARGEST_WINDOW = 2**15
# Pixel data may go on behind the last row, as some encoders have it; more than this is made to keep decoders busy.
_MAX_EXTRA = 2**20


def check_pixel_data(png: PngFile) -> list[str]:
    """Inflates the pixel data and throws it away. Gives what is odd but harmless: nothing when every byte is right.

    Raises PngError when pixels are missing or damaged. Holds 4 MiB at a time, whatever the size of the image.
    """
    filters = _FilterCheck(png)
    inflater = zlib.decompressobj()
    try:
        for part in png.data:
            while not inflater.eof and filters.extra <= _MAX_EXTRA:
                inflated = inflater.decompress(part, _INFLATE_STEP)
                filters.feed(inflated)
                part = inflater.unconsumed_tail
                if not part and len(inflated) < _INFLATE_STEP:
                    break
    except zlib.error as error:
        raise PngError(f"its pixel data does not inflate: {error}") from None
    if filters.extra > _MAX_EXTRA:
        raise PngError("far more pixel data than pixels")
    if not inflater.eof:
        raise PngError("its pixel data ends too early", cut=filters.missing > 0)
    if filters.missing:
        raise PngError(f"{filters.missing} bytes of its pixels are missing", cut=True)
    return ["more pixel data than pixels"] if filters.extra or inflater.unused_data else []


def has_wide_window(png: PngFile) -> bool:
    """Whether the window that the compressed data promises (CINFO of RFC 1950) is as large as this image can need.

    libpng takes no larger one, and fails where the data reach further back than was promised. Other decoders always
    take the largest. Data that do not begin as compressed data must promise nothing: they are judged elsewhere.
    """
    if not _has_header(png):
        return True
    return 1 << _window_bits(png) >= min(_LARGEST_WINDOW, _FilterCheck(png).missing)


def fits_window(png: PngFile) -> bool:
    """Whether whole pixel data inflate with the window that they promise, row by row as libpng does it. Slow."""
    inflater = zlib.decompressobj(_window_bits(png))
    row = _row_bytes(png.width, png.depth, png.colour_type) + 1
    data = b"".join(png.data)
    try:
        for start in range(0, len(data), _INPUT_STEP):
            piece = data[start : start + _INPUT_STEP]
            while piece:
                inflater.decompress(piece, row)
                piece = inflater.unconsumed_tail
    except zlib.error:
        return False
    return True


def _has_header(png: PngFile) -> bool:
    """Whether the data begin with the two bytes of RFC 1950, 2.2: a method that exists, and a multiple of 31."""
    header = b"".join(part[:2] for part in png.data)[:2]
    return len(header) == 2 and header[0] & 15 == 8 and int.from_bytes(header, "big") % 31 == 0


def _window_bits(png: PngFile) -> int:
    return 8 + (next((part[0] for part in png.data if part), 0) >> 4)


def _row_bytes(width: int, depth: int, colour_type: int) -> int:
    """Bytes of a row of ``width`` pixels, without its filter type."""
    return (width * SAMPLES[colour_type] * depth + 7) // 8


class _FilterCheck:
    """Counts the inflated bytes and looks at the filter type before each row."""

    def __init__(self, png: PngFile) -> None:
        self.extra = 0
        passes = _PASSES if png.interlaced else ((0, 0, 1, 1),)
        self._blocks: list[list[int]] = []  # [bytes of a row with its filter type, bytes that are to come]
        for column, row, step_x, step_y in passes:
            columns = (png.width - column + step_x - 1) // step_x
            rows = (png.height - row + step_y - 1) // step_y
            if columns > 0 and rows > 0:
                stride = _row_bytes(columns, png.depth, png.colour_type) + 1
                self._blocks.append([stride, stride * rows])
        self._blocks.reverse()

    @property
    def missing(self) -> int:
        return sum(left for _, left in self._blocks)

    def feed(self, data: bytes) -> None:
        while data:
            if not self._blocks:
                self.extra += len(data)
                return
            block = self._blocks[-1]
            stride, left = block
            taken = data[:left] if len(data) > left else data
            # The filter types lie every `stride` bytes, the first where the row that is under way ends.
            filters = taken[left % stride :: stride]
            if filters.translate(None, b"\0\1\2\3\4"):
                raise PngError("a row has an unknown filter type")
            block[1] = left - len(taken)
            if not block[1]:
                self._blocks.pop()
            data = data[len(taken) :]
