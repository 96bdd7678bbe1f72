"""Shapes that annotation tools draw, as outlines and run-length codes.

An outline is x, y, x, y ... in the unit that it was given in; a run-length code is that of COCO
(:mod:`beam_tfrecord.annotations.shapes`), uncompressed.
"""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from beam_tfrecord.annotations.cells import real_number, shown
from beam_tfrecord.annotations.shapes import extent
from beam_tfrecord.errors import RowError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_SAGITTA = 0.05  # how far the sides of an outline may lie inside of the ellipse that it stands for
_MOST_SIDES = 720
_LARGEST = 1e5  # from there on an outline has the most sides
_FARTHEST = 1e9


def numbers_of(cells: Iterable[Any], where: str) -> list[float]:
    """Numbers that can be places in a picture. where: they stand. Raises RowError."""
    numbers = []
    for cell in cells:
        try:
            number = real_number(None if isinstance(cell, bool) else cell)
            if not abs(number) < _FARTHEST:
                raise ValueError("is no place in a picture")
        except ValueError as error:
            raise RowError("bad_annotation", f"{where}: {shown(cell)} {error}") from None
        numbers.append(number)
    return numbers


def mask_of_png(data: bytes) -> npt.NDArray[np.bool_]:
    """Where the pixels of a PNG are not 0, of shape (height, width). Raises ValueError or OSError for what is none."""
    import numpy as np
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            return np.asarray(image if image.mode in ("1", "L", "I;16", "P") else image.convert("L")).astype(bool)
    except Image.DecompressionBombError as error:
        raise ValueError(str(error)) from None


def rectangle(xmin: float, ymin: float, xmax: float, ymax: float) -> list[float]:
    """The four corners, clockwise from the upper left."""
    return [xmin, ymin, xmax, ymin, xmax, ymax, xmin, ymax]


def turned(outline: Sequence[float], degrees: float, x: float, y: float) -> list[float]:
    """An outline in pixels, turned clockwise (as one sees it on the screen) about a point."""
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    found = []
    for right, down in zip(outline[0::2], outline[1::2], strict=True):
        found += [x + (right - x) * cosine - (down - y) * sine, y + (right - x) * sine + (down - y) * cosine]
    return found


def turned_box(sides: Sequence[float], degrees: float) -> list[float]:
    """The four corners of a box (xmin, ymin, xmax, ymax in pixels), turned clockwise about its centre."""
    xmin, ymin, xmax, ymax = sides
    return turned(rectangle(xmin, ymin, xmax, ymax), degrees, (xmin + xmax) / 2, (ymin + ymax) / 2)


def corners_of_turned(box: Any, rotation: Any, *, has_size: bool) -> list[float] | None:
    """The four corners of an object that CVAT turned; None where it is not turned, or has no box.

    Exports of CVAT in other formats (COCO, VOC, Datumaro) have the box as it was before it was turned, and an attribute
    ``rotation`` in degrees (github.com/cvat-ai/cvat/issues/4745). box: xmin and ymin, then xmax and ymax or, where it
    has_size, width and height; what is no box is told when the row is parsed. A rotation that is no number is an
    attribute of the user that is called so.
    """
    try:
        degrees, numbers = real_number(rotation), [real_number(side) for side in box]
    except (ValueError, TypeError):
        return None
    if len(numbers) != 4 or not all(map(math.isfinite, (*numbers, degrees))) or degrees % 360 == 0:
        return None
    left, top, right, bottom = numbers
    return turned_box([left, top, left + right, top + bottom] if has_size else numbers, degrees)


def ellipse(x: float, y: float, across: float, down: float) -> list[float]:
    """A polygon for an ellipse in pixels, the four ends of its axes among the corners. across, down: its radii."""
    radius = max(abs(across), abs(down))
    sides = _MOST_SIDES
    if radius <= _SAGITTA:
        sides = 8
    elif radius < _LARGEST:
        sides = max(8, min(4 * math.ceil(math.pi / math.acos(1 - _SAGITTA / radius) / 4), _MOST_SIDES))
    angles = [2 * math.pi * number / sides for number in range(sides)]
    return [number for angle in angles for number in (x + across * math.cos(angle), y + down * math.sin(angle))]


def hull(outlines: Iterable[Sequence[float]]) -> list[float]:
    """xmin, ymin, xmax, ymax around outlines."""
    return [*extent(list(outlines))]


def runs_of(mask: npt.NDArray[np.bool_]) -> list[int]:
    """The run lengths of a mask of shape (height, width)."""
    import numpy as np

    flat = mask.T.reshape(-1).astype(bool)
    changes = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    lengths: list[int] = np.diff(np.concatenate(([0], changes, [flat.size]))).tolist()
    return [0, *lengths] if flat.size and flat[0] else lengths


def rle_of_patch(patch: npt.NDArray[np.bool_], left: int, top: int, width: int, height: int) -> dict[str, Any]:
    """The code of a picture of (width, height) whose mask is a patch at a place; what reaches out of it is cut off.

    Takes the memory of the patch, whatever size the document states for the picture.
    """
    import numpy as np

    first, above = max(-left, 0), max(-top, 0)
    part = patch[above : max(height - top, 0), first : max(width - left, 0)].astype(bool)
    if not part.any():
        return {"size": [height, width], "counts": [height * width]}
    if part.shape[0] < height:  # what lies below it ends the run of a column
        part = np.pad(part, ((0, 1), (0, 0)))
    flat = np.pad(part.T.reshape(-1), 1)
    ends = np.flatnonzero(flat[1:] != flat[:-1]).tolist()
    start = (left + first) * height + top + above
    places = [start + end // part.shape[0] * height + end % part.shape[0] for end in ends]
    lengths = [end - begin for begin, end in itertools.pairwise([0, *places, height * width])]
    return {"size": [height, width], "counts": lengths[: -1 if lengths[-1] == 0 else None]}


def ring(given: Any, where: str) -> list[float]:
    """x, y, x, y ... of a list of points, each [x, y] or {"x": ..., "y": ...}. Raises RowError."""
    if not isinstance(given, list):
        raise RowError("bad_annotation", f"{where} is {shown(given)}, not a list of points")
    numbers = []
    for place, point in enumerate(given):
        pair = [point.get("x"), point.get("y")] if isinstance(point, Mapping) else point
        if not isinstance(pair, list) or len(pair) != 2:
            raise RowError("bad_annotation", f"{where}[{place}] is {shown(point)}, not [x, y]")
        numbers += numbers_of(pair, f"{where}[{place}]")
    return numbers


def outline(given: Any, where: str) -> list[float]:
    """The same of something that has an area: of three points or more. Raises RowError."""
    numbers = ring(given, where)
    if len(numbers) < 6:
        raise RowError("bad_annotation", f"{where} has {len(numbers) // 2} points: an outline has at least three")
    return numbers
