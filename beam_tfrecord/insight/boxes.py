"""Boxes that can hardly be right, counted for one picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

COVERS = 0.98  # of each side of the picture: a box that reaches over so much is the picture
TINY = 3.0  # pixels of the stored image: a side below it
ROUNDED = 0.01  # pixels that a side of a box may lose where it is stored
STACKED = 0.95  # overlap (intersection over union) of two boxes of one class
MOST_BOXES = 2_000  # of one picture that are compared with one another


class BoxCounts(NamedTuple):
    """How many boxes a picture has, and how many of them are of each kind."""

    boxes: int = 0
    covering: int = 0
    tiny: int = 0
    stacked: int = 0


NO_BOXES = BoxCounts()


def count_boxes(
    boxes: Sequence[tuple[float, float, float, float]], names: Sequence[str], size: tuple[int, int]
) -> BoxCounts:
    """The counts for boxes (xmin, ymin, xmax, ymax, as fractions of the picture) of these classes.

    size: width and height of the picture in pixels. stacked: boxes that lie on an earlier one of their class.
    """
    if not boxes:
        return NO_BOXES
    corners = np.array(boxes, np.float32).astype(np.float64)  # as records have them, whose boxes are the same then
    sides = corners[:, 2:] - corners[:, :2]
    covering = int((sides >= np.float32(COVERS)).all(axis=1).sum())
    tiny = int((sides * size < TINY - ROUNDED).any(axis=1).sum())
    return BoxCounts(len(boxes), covering, tiny, _stacked(corners, names) if len(boxes) > 1 else 0)


def _stacked(corners: np.ndarray, names: Sequence[str]) -> int:
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    kind = np.array([numbers[name] for name in names])[:MOST_BOXES]
    corners = corners[:MOST_BOXES]
    # Boxes that overlap so much begin near one another: along the left sides only neighbours are compared.
    order = np.argsort(corners[:, 0], kind="stable")
    left = corners[order, 0]
    width = corners[:, 2] - corners[:, 0]
    until = np.searchsorted(left, left + width[order] * (1 - STACKED) + 1e-12, side="right")
    is_stacked = np.zeros(len(corners), np.bool_)
    for place, end in enumerate(until.tolist()):
        one = order[place]
        others = order[place + 1 : end]
        others = others[kind[others] == kind[one]]
        if len(others):
            overlap = _overlap(corners[one], corners[others])
            on_it = others[overlap > STACKED]
            is_stacked[np.maximum(on_it, one)] = True
    return int(is_stacked.sum())


def _overlap(one: np.ndarray, others: np.ndarray) -> np.ndarray:
    low, high = np.maximum(one[:2], others[:, :2]), np.minimum(one[2:], others[:, 2:])
    shared = np.clip(high - low, 0, None).prod(axis=1)
    area = (one[2:] - one[:2]).prod() + (others[:, 2:] - others[:, :2]).prod(axis=1) - shared
    found: np.ndarray = np.divide(shared, area, out=np.zeros(len(others)), where=area > 0)
    return found
