"""The bytes of a JPEG or PNG to pixels, for images that cannot be stored as they are.

Pixels come in the raster of the file (never turned), and in sRGB where a colour profile says how.
"""

from __future__ import annotations

import io
import struct

import numpy as np
import simplejpeg
from PIL import Image, JpegImagePlugin, PngImagePlugin

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import jpeg, jpeg_scans, png
from beam_tfrecord.images.colour import in_srgb
from beam_tfrecord.images.pixels import Picture, Pixels, as_image, from_image
from beam_tfrecord.images.safety import DECODE_ERRORS, damaged, reason
from beam_tfrecord.images.stored import Notes


def decode_jpeg(
    data: bytes, header: jpeg.JpegHeader, notes: Notes, least: tuple[int, int] | None = None
) -> tuple[Picture, str | None]:
    """The pixels of a JPEG (1 or 3 channels of uint8, in sRGB), and what the decoder complained of. Raises ImageError.

    least: (width, height) that is enough, of the raster; the decoder may then leave out the highest frequencies and
    give a smaller image, which stands for the whole raster.
    """
    pixels: Pixels | None = None
    if header.frame in jpeg.ARITHMETIC:
        complaint = None
        pixels = _decode_arithmetic(data, header)
    elif header.is_common and header.components in (1, 3):
        pixels, complaint = _decode_fast(data, header, least)
    else:
        complaint = jpeg.complaint(data, "CMYK" if header.components == 4 else "GRAY")
    if complaint is not None:
        refuse_cut(data, header, complaint)
    profile = jpeg.icc_profile(data, header.scan)
    if pixels is None or profile is not None:
        image = load_jpeg(data, header) if pixels is None else as_image(pixels)
        pixels = from_image(in_srgb(image, profile, notes), notes)
    return Picture(pixels), complaint


def _decode_fast(
    data: bytes, header: jpeg.JpegHeader, least: tuple[int, int] | None
) -> tuple[Pixels | None, str | None]:
    """The pixels by libjpeg-turbo, which releases the GIL; or its complaint, as :func:`.jpeg.complaint` has it."""
    width, height = least or (0, 0)
    if width >= header.width or height >= header.height:
        width = height = 0  # the decoder would enlarge
    colorspace = "GRAY" if header.components == 1 else "RGB"
    try:
        return simplejpeg.decode_jpeg(data, colorspace, min_height=height, min_width=width), None
    except ValueError as error:
        return None, "" if jpeg.is_limit(str(error)) else str(error)


def load_jpeg(data: bytes, header: jpeg.JpegHeader) -> Image.Image:
    """A JPEG decoded by Pillow, which takes files that libjpeg-turbo complains of. Raises ImageError."""
    try:
        image: Image.Image = JpegImagePlugin.JpegImageFile(io.BytesIO(data))
        image.load()
    except DECODE_ERRORS as error:
        if header.is_common:
            raise damaged(error) from error
        raise ImageError(
            "unsupported_format",
            f"a JPEG of a rare kind that cannot be decoded here ({reason(error)}); convert the file",
        ) from error
    return image


def refuse_cut(data: bytes, header: jpeg.JpegHeader, complaint: str) -> None:
    """Raises ImageError for a JPEG that libjpeg-turbo complains of (an empty complaint: that it cannot look at) unless
    Pillow and TensorFlow decode it, and every pixel that they make of it is made of data.

    The decoder tells only the first thing it has to remark, and fills up with grey where the data end too early.
    """
    if _RAN_OUT in complaint:
        raise _cut(complaint)
    load_jpeg(data, header)
    found = jpeg_scans.read_scans(data, header)
    if found.end is None:
        # Pillow stops at the last pixel; TensorFlow reads on to the end marker, and fails.
        raise ImageError("truncated_image", f"a damaged JPEG: {complaint or 'it has no end marker'}")
    missing = jpeg_scans.missing_restarts(data, found, header)
    if missing or _depends_on_more(data, found, header):
        raise _cut(missing or complaint or "its last pixels are not there")


_RAN_OUT = "premature end"  # of libjpeg's JWRN_HIT_MARKER
_MORE = (b"\x55\x33" * 1000, b"\xaa\xcc" * 1000)


def _depends_on_more(data: bytes, found: jpeg_scans.Scans, header: jpeg.JpegHeader) -> bool:
    """Whether bytes that are laid behind the coded data change pixels: the decoder needs more than there is.

    The two kinds differ in their first bit, so that one bit that is missing shows.
    """
    try:
        one, other = (load_jpeg(jpeg_scans.with_more_data(data, found, more), header).tobytes() for more in _MORE)
    except ImageError:
        return True
    return one != other


_LAST_ROWS = 33  # two rows of units of 16, and one that upsampling of colour reaches into


def _decode_arithmetic(data: bytes, header: jpeg.JpegHeader) -> Pixels | None:
    """The pixels of arithmetic coding; None where libjpeg-turbo does not decode it. Raises ImageError for a last scan
    that was cut, as far as can be told.

    An encoder may leave zero bytes at the end out (T.81 D.1.8): a decoder takes zeros for what is not there without a
    remark, and the last units, or a plain area at the end, may rest on no byte at all. What rests on none, lies further
    up and is no plain area was drawn by nobody. A scan that refines others may rest on none for longer.
    """
    colorspace = {1: "GRAY", 3: "RGB"}.get(header.components)
    scans = jpeg_scans.read_scans(data, header).scans
    if colorspace is None or not scans:
        return None
    stop = scans[-1].stop
    changes = (b"",) if header.frame in jpeg.PROGRESSIVE else (b"", *_MORE)
    try:
        decoded: list[Pixels] = [
            simplejpeg.decode_jpeg(data[:stop] + more + data[stop:], colorspace, strict=False) for more in changes
        ]
    except ValueError:
        return None
    pixels, *others = decoded
    rows = [int(row) for other in others for row in (pixels != other).any(axis=(1, 2)).nonzero()[0][:1]]
    if rows:
        invented = pixels[min(rows) + _LAST_ROWS :]
        if (invented != invented[:1, :1]).any():
            raise _cut(f"nothing below row {min(rows)} rests on data")
    return pixels


def _cut(what: str) -> ImageError:
    return ImageError("truncated_image", f"a JPEG whose data end before its last pixel ({what}); fetch it again")


def decode_png(file: png.PngFile, notes: Notes) -> Picture:
    """The pixels of a PNG as libpng has them: a palette becomes RGB or RGBA, 1 to 8 bits uint8, 16 bits uint16.

    A transparent colour of a grey or RGB image (tRNS) has no effect here; see :func:`with_colour_key`.
    """
    profile = png.inflate_profile(file.profile) if file.profile else None
    if file.profile and profile is None:
        notes.warn("icc_damaged", "the colour profile does not inflate; the pixels are taken as sRGB")
    try:
        if file.depth == 16 and file.colour_type != png.GRAY:
            return Picture(_decode_deep(file), profile)
        image = _open_png(png.pixels_only(file))
        image.load()
    except DECODE_ERRORS as error:
        raise damaged(error) from error
    if file.depth == 16:
        return Picture(from_image(image, notes), profile)
    if file.colour_type in (png.GRAY, png.RGB):
        image.info.pop("transparency", None)
    return Picture(from_image(in_srgb(image, profile, notes), notes))


def with_colour_key(pixels: Pixels, file: png.PngFile) -> Pixels:
    """Pixels of a grey or RGB image with an alpha channel that is 0 where the colour is the transparent one (tRNS)."""
    if file.transparency is None or file.colour_type not in (png.GRAY, png.RGB):
        return pixels
    key = np.array(struct.unpack(f">{len(file.transparency) // 2}H", file.transparency), np.uint32)
    key &= (1 << file.depth) - 1
    if file.depth < 8:
        key = key * 255 // ((1 << file.depth) - 1)
    alpha = np.full((*pixels.shape[:2], 1), np.iinfo(pixels.dtype).max, pixels.dtype)
    alpha[(pixels == key.astype(pixels.dtype)).all(axis=2)] = 0
    return np.concatenate([pixels, alpha], axis=2)


def _decode_deep(file: png.PngFile) -> Pixels:
    """16-bit colour, of which Pillow gives 8 bits at a time.

    Grey with alpha has four bytes a pixel: it is read as 8-bit RGBA and put together again. RGB and RGBA are read
    twice; Pillow's unpackers for big- and little-endian samples take the high byte of theirs, which are the high and
    the low byte of a sample in a PNG.
    """
    if file.colour_type == png.GRAY_ALPHA:
        disguised = file._replace(depth=8, colour_type=png.RGB_ALPHA)
        pixels = np.asarray(_open_png(png.pixels_only(disguised)))
        return pixels.view(">u2").astype(np.uint16)
    plain = png.pixels_only(file)
    high = _open_png(plain)
    low = _open_png(plain)
    low.tile = [tile._replace(args=str(tile.args).replace(";16B", ";16L")) for tile in low.tile]
    pixels = np.asarray(high).astype(np.uint16)
    pixels <<= 8
    pixels |= np.asarray(low)
    return pixels


def _open_png(data: bytes) -> PngImagePlugin.PngImageFile:
    return PngImagePlugin.PngImageFile(io.BytesIO(data))
