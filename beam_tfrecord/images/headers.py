"""What files that are neither JPEG nor PNG say of themselves, read from their bytes before any decoder sees them.

GIF (GIF89a, section 15 and following): Pillow gives the frames that are there, says nothing of one that is cut, and
makes room for a frame that is larger than the screen before anyone can ask how large it is. WebP (RFC 9649): libwebp
takes memory for the whole canvas at once. Icons and cursors (.ico, .cur): a table of pictures that may say anything of
sizes and depths; each picture is a PNG, or a bitmap without file header whose height counts its mask as well, and what
it says of itself counts. Netpbm: colours of more than 8 bits (``P6`` with a maximum above 255), which Pillow cuts to 8.
JPEG 2000, AVIF, HEIC, PSD and SGI: whether detail was lost, and whether samples are deeper than 8 bits. Of all: where
they end by their own account, so that what follows, or is missing, is told.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images.pixels import Pixels
from beam_tfrecord.images.png import SIGNATURE

_EXTENSION, _IMAGE, _TRAILER = 0x21, 0x2C, 0x3B


class GifBlocks(NamedTuple):
    """Size that holds the screen and every frame, whether the file ends inside of a block, and the offset behind its
    trailer, or None.

    A file that lacks only its trailer is not cut: all frames are there.
    """

    width: int
    height: int
    is_cut: bool
    end: int | None = None


def gif_blocks(data: bytes) -> GifBlocks:
    """Walks over the blocks of a GIF up to its end, or to where they stop making sense. Decodes nothing."""
    size = len(data)
    width, height = struct.unpack_from("<HH", data.ljust(10, b"\0"), 6)
    position = 13 + _colour_table_size(data, 10)
    while position < size and data[position] != _TRAILER:
        if data[position] == _IMAGE:
            if position + 10 > size:
                return GifBlocks(width, height, True)
            left, top, columns, rows = struct.unpack_from("<HHHH", data, position + 1)
            width, height = max(width, left + columns), max(height, top + rows)
            position += 11 + _colour_table_size(data, position + 9)  # descriptor, colour table, code size
        elif data[position] == _EXTENSION:
            position += 2
        else:
            break  # garbage between the blocks: what Pillow makes of it counts
        while position < size and data[position]:
            position += 1 + data[position]
        if position >= size:
            return GifBlocks(width, height, True)
        position += 1
    is_trailer = position < size and data[position] == _TRAILER
    return GifBlocks(width, height, False, position + 1 if is_trailer else None)


def _colour_table_size(data: bytes, position: int) -> int:
    """Bytes of the colour table that the packed field at ``position`` promises."""
    flags = data[position] if position < len(data) else 0
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


class WebpHeader(NamedTuple):
    """Size of the canvas in pixels, and whether the first picture was compressed without loss."""

    width: int
    height: int
    is_lossless: bool


def webp_header(data: bytes) -> WebpHeader | None:
    """The header of a WebP file; None when it is damaged."""
    size: tuple[int, int] | None = None
    for kind, start, stop in _riff_chunks(data, 12, len(data)):
        if kind == b"VP8X" and stop - start >= 10:
            size = _uint24(data, start + 4) + 1, _uint24(data, start + 7) + 1
        elif kind == b"ANMF" and size:
            kinds = [inner for inner, _, _ in _riff_chunks(data, start + 16, stop)]
            return WebpHeader(*size, b"VP8L" in kinds)
        elif kind == b"VP8L" and stop - start >= 5:
            bits = int.from_bytes(data[start + 1 : start + 5], "little")
            return WebpHeader(*(size or ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)), True)
        elif kind == b"VP8 " and stop - start >= 10:
            width, height = (int.from_bytes(data[start + at : start + at + 2], "little") & 0x3FFF for at in (6, 8))
            return WebpHeader(*(size or (width, height)), False)
    return None


def is_animated_webp(data: bytes) -> bool:
    """Whether the file says of itself that it is an animation (flag A of the VP8X chunk, which is the first then)."""
    return data[:4] == b"RIFF" and data[8:16] == b"WEBPVP8X" and bool(data[20:21]) and bool(data[20] & 2)


def _riff_chunks(data: bytes, position: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """(name, start, stop) of the RIFF chunks between two offsets; a chunk that is cut ends where the data ends."""
    while position + 8 <= end:
        length = int.from_bytes(data[position + 4 : position + 8], "little")
        yield data[position : position + 4], position + 8, min(position + 8 + length, end)
        position += 8 + length + (length & 1)


def _uint24(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 3], "little")


_ICON_ENTRY = struct.Struct("<BBBBHHII")
_BITMAP_HEADER = 40


def largest_of_icon(data: bytes) -> bytes:
    """A PNG file, or an icon file with one bitmap: the largest picture of an icon. Raises ImageError."""
    (count,) = struct.unpack_from("<H", data, 4)
    best: tuple[int, int] | None = None  # area and depth
    chosen = 0, 0
    lost = 0  # area of the largest that lies behind the end
    for position in range(6, min(6 + 16 * count, len(data) - 15), 16):
        width, height, _, _, _, _, size, offset = _ICON_ENTRY.unpack_from(data, position)
        area = (width or 256) * (height or 256)
        if size < _BITMAP_HEADER:
            continue
        if offset + _BITMAP_HEADER > len(data):
            lost = max(lost, area)
            continue
        # What the table says of depth is the hot spot in a cursor.
        depth = 32 if data.startswith(SIGNATURE, offset) else struct.unpack_from("<H", data, offset + 14)[0]
        rank = area, depth
        if best is None or rank > best:
            best, chosen = rank, (position, offset)
    if best is None or lost > best[0]:
        raise ImageError("truncated_image", "an icon file whose picture lies behind its end; fetch the file again")
    position, offset = chosen
    width, height, colours, _, _, _, size, _ = _ICON_ENTRY.unpack_from(data, position)
    content = data[offset : offset + size]
    if content.startswith(SIGNATURE):
        return content
    return (
        struct.pack("<HHH", 0, 1, 1)
        + _ICON_ENTRY.pack(width, height, colours, 0, 1, best[1], len(content), 22)
        + content
    )


def icon_size(icon: bytes) -> tuple[int, int]:
    """(width, height) that the bitmap of an icon file with one picture says of itself."""
    width, height = struct.unpack_from("<ii", icon, 22 + 4)
    return abs(width), abs(height) // 2


# Fields are separated by white space, and comments run from # to the end of a line (netpbm's ppm(5)).
_PPM_GAP = rb"(?:\s|#[^\r\n]*[\r\n])+"
_DEEP_PPM = re.compile(rb"P6" + _PPM_GAP + rb"(\d{1,9})" + _PPM_GAP + rb"(\d{1,9})" + _PPM_GAP + rb"(\d{1,5})\s")


def deep_ppm_size(data: bytes) -> tuple[int, int] | None:
    """(width, height) of a binary colour image with 16-bit samples; None for any other."""
    match = _DEEP_PPM.match(data)
    if match is None or not 255 < int(match[3]) < 65536:
        return None
    return int(match[1]), int(match[2])


def deep_ppm_pixels(data: bytes) -> Pixels:
    """The uint16 pixels of such an image, scaled so that its maximum becomes 65535. Raises ImageError."""
    match = _DEEP_PPM.match(data)
    assert match is not None  # deep_size() was asked first
    width, height, maximum = (int(number) for number in match.groups())
    count = width * height * 3
    if len(data) < match.end() + 2 * count:
        raise ImageError("truncated_image", "a PPM that ends before its last pixel; fetch or export the file again")
    samples = np.frombuffer(data, ">u2", count, match.end())
    if maximum == 65535:
        scaled = samples.astype(np.uint16)
    else:
        scaled = np.minimum(samples.astype(np.uint32) * 65535 // maximum, 65535).astype(np.uint16)
    return scaled.reshape(height, width, 3)


_HEAD = 1 << 16


def is_lossy(data: bytes, kind: str) -> bool:
    """Whether the compression is one that loses detail. AVIF and HEIC count as lossy always, although they need not be.

    JPEG 2000 is lossy with the 9-7 wavelet (ISO/IEC 15444-1 Table A.20: transformation 0).
    """
    if kind == "jpeg2000":
        style = data.find(b"\xff\x52\x00", 0, _HEAD)
        return style >= 0 and data[style + 13 : style + 14] == b"\x00"
    return kind in ("avif", "heic")


def is_deep(data: bytes, kind: str) -> bool:
    """Whether samples have more than 8 bits, from the codestream header or the codec configuration box."""
    if kind == "jpeg2000":
        size = data.find(b"\xff\x51", 0, _HEAD)  # SIZ; Ssiz of the first component holds depth - 1 in its low 7 bits
        return size >= 0 and len(data) > size + 40 and (data[size + 40] & 0x7F) > 7
    if kind == "avif":
        box = data.find(b"av1C", 0, _HEAD)  # AV1-ISOBMFF 2.3.3: high_bitdepth is bit 6 of the third byte
        return box >= 0 and len(data) > box + 6 and bool(data[box + 6] & 0x40)
    if kind == "heic":
        box = data.find(b"hvcC", 0, _HEAD)  # ISO/IEC 14496-15 8.3.3.1: bitDepthLumaMinus8, low 3 bits of the 18th byte
        return box >= 0 and len(data) > box + 21 and bool(data[box + 21] & 7)
    if kind == "psd":
        return data[22:24] not in (b"\0\1", b"\0\x08")
    return kind == "sgi" and data[3:4] == b"\2"  # BPC: bytes of a sample


_BOXED = frozenset({"avif", "heic", "jpeg2000"})


def end_of(data: bytes, kind: str) -> int | None:
    """The offset at which a file of ``kind`` ends, also behind its last byte when it was cut; None when it does not
    say.

    GIF: its trailer. WebP: the size of its RIFF chunk (RFC 9649). BMP without compression: its last row. AVIF, HEIC and
    JP2: the last box (ISO/IEC 14496-12, 4.2).
    """
    try:
        if kind == "gif":
            return gif_blocks(data).end
        if kind == "webp":
            size = int(struct.unpack_from("<I", data, 4)[0])
            return 8 + size + (size & 1)
        if kind == "bmp":
            return _end_of_bitmap(data)
        return _end_of_boxes(data) if kind in _BOXED and data[:2] != b"\xff\x4f" else None
    except struct.error:
        return None


def _end_of_bitmap(data: bytes) -> int | None:
    offset, header = struct.unpack_from("<II", data, 10)
    if header < 40:
        return None
    width, height, _, bits, compression = struct.unpack_from("<iiHHI", data, 18)
    return offset + (width * bits + 31) // 32 * 4 * abs(height) if compression in (0, 3) and width > 0 else None


def _end_of_boxes(data: bytes) -> int | None:
    position = 0
    while position + 8 <= len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        name = data[position + 4 : position + 8]
        if size == 0:
            return len(data)
        if size == 1:
            size = int(struct.unpack_from(">Q", data, position + 8)[0])
        is_first = name in (b"ftyp", b"jP  ") and position > (12 if name == b"ftyp" else 0)
        if size < 8 or is_first or not name.replace(b" ", b"x").isalnum():
            break
        position += size
    return position
