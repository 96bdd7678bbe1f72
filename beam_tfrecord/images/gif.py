"""GIF files seen as blocks (GIF89a specification, section 15 and following).

Pillow gives the frames that are there and says nothing of one that is cut, and it makes room for a frame that is larger
than the screen before anyone can ask how large it is.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

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


def read_blocks(data: bytes) -> GifBlocks:
    """Walks over the blocks of a GIF up to its end, or to where they stop making sense. Decodes nothing."""
    size = len(data)
    width, height = struct.unpack_from("<HH", data.ljust(10, b"\0"), 6)
    position = 13 + _table_size(data, 10)
    while position < size and data[position] != _TRAILER:
        if data[position] == _IMAGE:
            if position + 10 > size:
                return GifBlocks(width, height, True)
            left, top, columns, rows = struct.unpack_from("<HHHH", data, position + 1)
            width, height = max(width, left + columns), max(height, top + rows)
            position += 11 + _table_size(data, position + 9)  # descriptor, colour table, code size
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


def _table_size(data: bytes, position: int) -> int:
    """Bytes of the colour table that the packed field at ``position`` promises."""
    flags = data[position] if position < len(data) else 0
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0
