"""Where files that are neither JPEG nor PNG end by their own account, so that what follows, or is missing, is told."""

from __future__ import annotations

import struct

from beam_tfrecord.images import gif

_BOXED = frozenset({"avif", "heic", "jpeg2000"})


def end_of(data: bytes, kind: str) -> int | None:
    """The offset at which a file of ``kind`` ends, also behind its last byte when it was cut; None when it does not
    say.

    GIF: its trailer. WebP: the size of its RIFF chunk (RFC 9649). BMP without compression: its last row. AVIF, HEIC and
    JP2: the last box (ISO/IEC 14496-12, 4.2).
    """
    try:
        if kind == "gif":
            return gif.read_blocks(data).end
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
