"""The orientation of a picture, from the EXIF or XMP data beside its pixels, and turning pixels upright by it.

EXIF is a TIFF structure (TIFF 6.0 section 2; CIPA DC-008): tag 0x0112 in its first directory tells how the stored
raster becomes the upright picture. Pillow takes ``tiff:Orientation`` of XMP where EXIF says nothing, and so does this.
"""

from __future__ import annotations

import re
import struct
from typing import Any

from numpy.typing import NDArray

ORIENTATION_TAG = 0x0112

_BYTE_ORDERS = {b"II*\0": "<", b"MM\0*": ">"}
# Bytes of one value by TIFF field type: BYTE, SHORT and LONG, the types in which a whole number is written.
_WHOLE_NUMBERS = {1: "B", 3: "H", 4: "I"}
_XMP_ORIENTATION = re.compile(rb"tiff:Orientation(?:=\"|>)([0-9])")


class ExifDamagedError(ValueError):
    """The EXIF data cannot be read."""


def exif_orientation(block: bytes) -> int | None:
    """The orientation (1 to 8) in a TIFF-structured EXIF block; None when it states none, or one that has no meaning.

    block: starts at the byte order mark, after ``Exif\\0\\0``. Raises ExifDamagedError when the first directory does
    not lie inside the block, so that nobody can tell what it says.
    """
    order = _BYTE_ORDERS.get(block[:4])
    if order is None:
        raise ExifDamagedError("it does not start with a TIFF header")
    try:
        (start,) = struct.unpack_from(order + "I", block, 4)
        (count,) = struct.unpack_from(order + "H", block, start)
        key = struct.pack(order + "H", ORIENTATION_TAG)
        for position in range(start + 2, start + 2 + 12 * count, 12):
            if block[position : position + 2] == key:
                kind, values = struct.unpack_from(order + "HI", block, position + 2)
                if kind not in _WHOLE_NUMBERS or values != 1:
                    return None
                (value,) = struct.unpack_from(order + _WHOLE_NUMBERS[kind], block, position + 8)
                return value if 1 <= value <= 8 else None
            if position + 12 > len(block):
                raise ExifDamagedError("its directory reaches past its end")
    except struct.error as error:
        raise ExifDamagedError("its directory reaches past its end") from error
    return None


def xmp_orientation(packet: bytes) -> int | None:
    """The orientation (1 to 8) that an XMP packet states, or None."""
    match = _XMP_ORIENTATION.search(packet)
    value = int(match[1]) if match else 0
    return value if 1 <= value <= 8 else None


def mirrors(orientation: int) -> tuple[bool, bool]:
    """Whether the turn reverses (columns, rows), after it swapped them for orientations 5 to 8."""
    return orientation in (2, 3, 6, 7), orientation in (3, 4, 7, 8)


def turn(pixels: NDArray[Any], orientation: int) -> NDArray[Any]:
    """A view of (height, width, ...) ``pixels`` turned so that orientation 1 results. No pixel is copied."""
    if orientation >= 5:
        pixels = pixels.swapaxes(0, 1)
    columns, rows = mirrors(orientation)
    if rows:
        pixels = pixels[::-1]
    return pixels[:, ::-1] if columns else pixels
