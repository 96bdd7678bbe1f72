"""From the pixel frame of an image file to the frame of the image that is stored.

Pixel coordinates are continuous: x runs from 0 at the left edge of the first column to ``width`` at the right edge of
the last one, y likewise downwards. A box that covers the whole image is (0, 0, width, height).
"""

from __future__ import annotations

from typing import NamedTuple

# EXIF orientation (CIPA DC-008, tag 0x0112): how the stored raster becomes the upright picture.
# Each value is (swap axes first, then mirror x, then mirror y), in fractions of the upright size.
_TURNS: dict[int, tuple[bool, bool, bool]] = {
    1: (False, False, False),
    2: (False, True, False),
    3: (False, True, True),
    4: (False, False, True),
    5: (True, False, False),
    6: (True, True, False),
    7: (True, True, True),
    8: (True, False, True),
}
# The orientation whose turn takes back that of another one.
INVERSE = {1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 8, 7: 7, 8: 6}


class PixelFrame(NamedTuple):
    """Maps coordinates of the source image to coordinates of the stored image.

    source_width, source_height: size of the raster in the file, before any turn. orientation: EXIF orientation that was
    applied to the pixels (1: none). scale_x, scale_y, offset_x, offset_y: what resizing, cropping or padding did after
    the turn: x' = x * scale + offset. width, height: size of the stored image. ignored: EXIF orientation that the file
    states and that was not applied; what was drawn on the picture that it makes is turned back.
    """

    source_width: int
    source_height: int
    width: int
    height: int
    orientation: int = 1
    scale_x: float = 1.0
    scale_y: float = 1.0
    offset_x: float = 0.0
    offset_y: float = 0.0
    ignored: int = 1

    @property
    def upright_size(self) -> tuple[int, int]:
        """(width, height) after the turn that was applied, before resizing."""
        return _swapped(self.source_size, self.orientation)

    @property
    def stated_orientation(self) -> int:
        """The EXIF orientation of the file, whether it was applied or not."""
        return self.orientation if self.orientation != 1 else self.ignored

    @property
    def turned_size(self) -> tuple[int, int]:
        """(width, height) of the picture that the file's orientation makes, whether it was applied or not."""
        return _swapped(self.source_size, self.stated_orientation)

    @property
    def source_size(self) -> tuple[int, int]:
        """(width, height) of the raster in the file."""
        return self.source_width, self.source_height

    def turn_point(self, x: float, y: float) -> tuple[float, float]:
        """A point of the raster in the file, in pixels of the picture after the turn that was applied."""
        return _turned(x, y, self.orientation, self.upright_size)

    def place_point(self, x: float, y: float, *, is_upright: bool = False) -> tuple[float, float]:
        """A point in pixels of the stored image.

        is_upright: the point is given in the picture that the file's orientation makes, not in the raster of the file.
        """
        if not is_upright:
            x, y = self.turn_point(x, y)
        elif self.ignored != 1:
            x, y = _turned(x, y, INVERSE[self.ignored], self.source_size)
        return x * self.scale_x + self.offset_x, y * self.scale_y + self.offset_y

    def place_box(
        self, xmin: float, ymin: float, xmax: float, ymax: float, *, is_upright: bool = False
    ) -> tuple[float, float, float, float]:
        """A box (xmin, ymin, xmax, ymax) in pixels of the stored image, its sides in order again after a turn.

        The order of an inverted box is kept inverted, so that it can still be told apart.
        """
        left, top = self.place_point(xmin, ymin, is_upright=is_upright)
        right, bottom = self.place_point(xmax, ymax, is_upright=is_upright)
        _swap, mirror_x, mirror_y = _TURNS[INVERSE[self.ignored] if is_upright else self.orientation]
        if mirror_x:
            left, right = right, left
        if mirror_y:
            top, bottom = bottom, top
        return left, top, right, bottom


def _swapped(size: tuple[int, int], orientation: int) -> tuple[int, int]:
    return size if orientation < 5 else (size[1], size[0])


def _turned(x: float, y: float, orientation: int, size: tuple[int, int]) -> tuple[float, float]:
    """A point after a turn. size: (width, height) after the turn."""
    swap, mirror_x, mirror_y = _TURNS[orientation]
    if swap:
        x, y = y, x
    return (size[0] - x if mirror_x else x), (size[1] - y if mirror_y else y)
