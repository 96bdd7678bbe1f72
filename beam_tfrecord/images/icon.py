"""Icons and cursors (.ico, .cur): a table of pictures, of which the largest is taken.

Each picture is a PNG or a bitmap without file header whose height counts its mask as well. The table may say anything
about sizes; what counts is what the pictures themselves say.
"""

from __future__ import annotations

import struct

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images.png import SIGNATURE

_ENTRY = struct.Struct("<BBBBHHII")


def largest_picture(data: bytes) -> bytes:
    """A PNG file, or an icon file with one bitmap: the largest picture of an icon. Raises ImageError."""
    (count,) = struct.unpack_from("<H", data, 4)
    best: tuple[int, int, bytes] | None = None
    for index in range(count):
        if 6 + 16 * index + 16 > len(data):
            break
        width, height, colours, _, _, _, size, offset = _ENTRY.unpack_from(data, 6 + 16 * index)
        content = data[offset : offset + size]
        if len(content) < 40:
            continue
        area = (width or 256) * (height or 256)
        if content.startswith(SIGNATURE):
            depth, found = 32, content
        else:
            # What the table says of depth is not to be trusted either, and is the hot spot in a cursor.
            (depth,) = struct.unpack_from("<H", content, 14)
            entry = _ENTRY.pack(width, height, colours, 0, 1, depth, len(content), 6 + 16)
            found = struct.pack("<HHH", 0, 1, 1) + entry + content
        if not best or (area, depth) > best[:2]:
            best = area, depth, found
    if best is None:
        raise ImageError("truncated_image", "an icon file whose pictures lie behind its end; fetch the file again")
    return best[2]


def bitmap_size(icon: bytes) -> tuple[int, int]:
    """(width, height) that the bitmap of an icon file with one picture says of itself."""
    width, height = struct.unpack_from("<ii", icon, 22 + 4)
    return abs(width), abs(height) // 2
