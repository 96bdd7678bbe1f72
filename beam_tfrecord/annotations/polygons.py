"""Polygons to masks, pixel for pixel as the COCO API draws them: by pycocotools itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from beam_tfrecord.annotations.rle import decode_runs, parse_counts
from beam_tfrecord.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MIN_NUMBERS = 6  # three points; pycocotools takes four numbers for a box


def check_pycocotools() -> None:
    """Raises ConfigError that says what to install when polygons cannot be drawn here."""
    try:
        import pycocotools.mask  # noqa: F401
    except ImportError:
        raise ConfigError(
            "polygons become masks with pycocotools, which is not installed: pip install 'beam-tfrecord[coco]'"
        ) from None


def draw_polygons(polygons: Sequence[Sequence[float]], height: int, width: int) -> npt.NDArray[np.uint8]:
    """The union of polygons as a mask of shape (height, width), 0 and 1.

    polygons: x, y, x, y ... in pixels. Raises ValueError when one is not made of at least three points, all finite and
    not further away than twice the size of the image, as a box of which a
    third is visible may be (drawing takes time and memory by the length of the sides).
    """
    check_pycocotools()
    from pycocotools import mask as coco_mask

    for polygon in polygons:
        _check(polygon, height, width)
    if not polygons:
        raise ValueError("there is no polygon")
    runs = coco_mask.merge(coco_mask.frPyObjects([list(polygon) for polygon in polygons], height, width))
    return decode_runs(parse_counts(runs["counts"].decode("ascii")), height, width)


def _check(polygon: Sequence[float], height: int, width: int) -> None:
    if len(polygon) < MIN_NUMBERS or len(polygon) % 2:
        raise ValueError(f"a polygon has {len(polygon)} numbers; it takes x and y of at least three points")
    for place, (number, side) in enumerate(zip(polygon, (width, height) * (len(polygon) // 2), strict=True)):
        if not math.isfinite(number) or not -2 * side <= number <= 3 * side:
            raise ValueError(f"point {place // 2} of a polygon lies far outside of the image of {width}x{height}")


def extent(polygons: Sequence[Sequence[float]]) -> tuple[float, float, float, float]:
    """(xmin, ymin, xmax, ymax) around polygons."""
    xs = [x for polygon in polygons for x in polygon[0::2]]
    ys = [y for polygon in polygons for y in polygon[1::2]]
    return min(xs), min(ys), max(xs), max(ys)
