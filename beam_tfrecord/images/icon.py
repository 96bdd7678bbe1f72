"""Icons and cursors (.ico, .cur): a table of pictures, of which the largest is taken.

Each picture is a PNG or a bitmap without file header whose height counts its mask as well. The table may say anything
about sizes and depths; what counts is what the pictures themselves say.
"""

from __future__ import annotations

import struct

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images.png import SIGNATURE

_ENTRY = struct.Struct("<BBBBHHII")
_BITMAP_HEADER = 40


def largest_picture(data: bytes) -> bytes:
    """A PNG file, or an icon file with one bitmap: the largest picture of an icon. Raises ImageError."""
    (count,) = struct.unpack_from("<H", data, 4)
    best: tuple[int, int] | None = None  # area and depth
    chosen = 0, 0
    for position in range(6, min(6 + 16 * count, len(data) - 15), 16):
        width, height, _, _, _, _, size, offset = _ENTRY.unpack_from(data, position)
        if size < _BITMAP_HEADER or offset + _BITMAP_HEADER > len(data):
            continue
        # What the table says of depth is the hot spot in a cursor.
        depth = 32 if data.startswith(SIGNATURE, offset) else struct.unpack_from("<H", data, offset + 14)[0]
        rank = (width or 256) * (height or 256), depth
        if best is None or rank > best:
            best, chosen = rank, (position, offset)
    if best is None:
        raise ImageError("truncated_image", "an icon file whose pictures lie behind its end; fetch the file again")
    position, offset = chosen
    width, height, colours, _, _, _, size, _ = _ENTRY.unpack_from(data, position)
    content = data[offset : offset + size]
    if content.startswith(SIGNATURE):
        return content
    return struct.pack("<HHH", 0, 1, 1) + _ENTRY.pack(width, height, colours, 0, 1, best[1], len(content), 22) + content


def bitmap_size(icon: bytes) -> tuple[int, int]:
    """(width, height) that the bitmap of an icon file with one picture says of itself."""
    width, height = struct.unpack_from("<ii", icon, 22 + 4)
    return abs(width), abs(height) // 2
