"""The rules that a box must satisfy before it is stored, and how it gets into the frame of the stored image.

In the frame in which it was given, a box must have four finite numbers and sides in order. It may reach over the edge
of the image by :data:`ROUNDING_PIXELS` (annotation tools count pixels from 1, or round): then it is cut at the edge,
with a warning. Further out ``--bad_boxes`` decides: by default the visible part is kept, with a warning, when the
centre lies inside and :data:`LEAST_VISIBLE` of the box does. What is only an error of floating point is cut without a
word.
After the move into the stored image, what a crop cuts away is cut away; a box that it leaves nothing of is dropped.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import NamedTuple

from beam_tfrecord.core.geometry import PixelFrame
from beam_tfrecord.errors import AnnotationError

ROUNDING_PIXELS = 1.0  # how far a box may reach over the edge before --bad_boxes decides
LEAST_VISIBLE = 1 / 3  # the part of a box that must lie inside of the image, under --bad_boxes visible
FLOAT_PIXELS = 0.01  # how far without a warning
_ROUNDING = 1e-9  # exactly a third must count as a third

Warn = Callable[[str, str], None]


class Box(NamedTuple):
    """Sides in pixels or in fractions of the image."""

    xmin: float
    ymin: float
    xmax: float
    ymax: float

    @property
    def area(self) -> float:
        return (self.xmax - self.xmin) * (self.ymax - self.ymin)

    def scaled(self, x: float, y: float) -> Box:
        return Box(self.xmin * x, self.ymin * y, self.xmax * x, self.ymax * y)

    def cut(self, width: float, height: float) -> Box:
        """The part inside of (0, 0, width, height); its sides are not in order when nothing is inside."""
        return Box(max(self.xmin, 0.0), max(self.ymin, 0.0), min(self.xmax, width), min(self.ymax, height))

    @property
    def is_in_order(self) -> bool:
        """Whether the box has a positive width and height; False when a side is not a number."""
        return self.xmin < self.xmax and self.ymin < self.ymax

    def __str__(self) -> str:
        return "({:g}, {:g}, {:g}, {:g})".format(*self)


def fault_of(box: Box) -> str | None:
    """What is wrong with a box whatever the image, or None."""
    if not all(math.isfinite(side) for side in box):
        return "has a side that is not a finite number"
    if box.xmin > box.xmax or box.ymin > box.ymax:
        return "has its sides in the wrong order"
    if not box.is_in_order:
        return "is empty"
    return None


def overhang(box: Box, width: float, height: float) -> float:
    """How many pixels a box reaches over the edge of an image."""
    return max(0.0, -box.xmin, -box.ymin, box.xmax - width, box.ymax - height)


def mend_box(box: Box, size: tuple[int, int], policy: str, what: str, warn: Warn) -> Box | None:
    """A box in pixels of the picture it was drawn in, inside of that picture; None when it is dropped.

    size: (width, height). policy: ``visible``, ``drop``, ``clip`` or ``reject``. what: names the object in messages.
    Raises AnnotationError (``bad_box``) under ``reject``.
    """
    width, height = size
    fault = fault_of(box)
    if fault is not None:
        drop_box(f"{what}: the box {box} {fault}", policy, warn)
        return None
    over = overhang(box, width, height)
    if over == 0:
        return box
    cut = box.cut(width, height)
    told = f"{what}: the box {box} reaches {over:g} pixels over the edge of the image of {width}x{height}"
    if not cut.is_in_order:
        drop_box(f"{told}: nothing of it lies inside", policy, warn)
        return None
    if over > ROUNDING_PIXELS and not _is_kept_cut(box, cut, size, policy):
        hidden = (
            "" if policy != "visible" else f": its centre lies outside, or less than {LEAST_VISIBLE:.0%} lies inside"
        )
        drop_box(told + hidden, policy, warn)
        return None
    if over > FLOAT_PIXELS:
        warn("box_clipped", f"{told}, {visible_part(box, cut):.0%} of it lies inside")
    return cut


def visible_part(box: Box, cut: Box) -> float:
    """How much of the area of a box is left in what was cut from it, from 0 to 1. Sides must be in order."""
    return (cut.xmax - cut.xmin) / (box.xmax - box.xmin) * ((cut.ymax - cut.ymin) / (box.ymax - box.ymin))


def _is_kept_cut(box: Box, cut: Box, size: tuple[int, int], policy: str) -> bool:
    """Whether the part inside of the image stands for a box that reaches over its edge."""
    if policy != "visible":
        return policy == "clip"
    across, down = (box.xmin / 2 + box.xmax / 2, box.ymin / 2 + box.ymax / 2)
    is_centre_inside = 0 <= across <= size[0] and 0 <= down <= size[1]
    return is_centre_inside and visible_part(box, cut) >= LEAST_VISIBLE - _ROUNDING


def drop_box(message: str, policy: str, warn: Warn) -> None:
    """Warn that a box is left out; raises AnnotationError (``bad_box``) under ``reject``."""
    if policy == "reject":
        raise AnnotationError("bad_box", f"{message}: correct it, or choose --bad_boxes drop")
    warn("box_dropped", message)


def place_box(box: Box, frame: PixelFrame, *, is_upright: bool) -> Box:
    """A mended box in pixels of the stored image, cut at its edges; not in order when a crop left nothing of it."""
    placed = Box(*frame.place_box(*box, is_upright=is_upright))
    return placed.cut(frame.width, frame.height)


def normalized_box(box: Box, width: int, height: int) -> Box:
    """A box in pixels of an image as fractions of its size, each exactly a float32 from 0 to 1."""
    fractions = box.scaled(1 / width, 1 / height)
    return Box(*(min(1.0, max(0.0, float32(side))) for side in fractions))


def float32(number: float) -> float:
    """The nearest number that float32 has."""
    rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return rounded
