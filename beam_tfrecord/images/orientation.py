"""Turning pixels upright as the EXIF orientation says (CIPA DC-008, tag 0x0112)."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray


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
