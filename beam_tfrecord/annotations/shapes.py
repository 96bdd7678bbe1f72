"""Run-length codes and polygons to masks: polygons pixel for pixel as the COCO API draws them, by pycocotools itself.

A mask of height h and width w is read down its columns, left to right, as alternating runs of zeros and ones, zeros
first. Plain codes are lists of run lengths. The compressed text holds each length as 5-bit groups, lowest first, in the
characters from ``0`` on: 0x20 marks that more groups follow, 0x10 in the last group the sign; from the fourth length on
it is the difference to the length two before. (Source: ``maskApi.c`` of the COCO API.) They are decoded here and not by
pycocotools because its C code trusts the lengths; the results are the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from beam_tfrecord.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def parse_counts(text: str) -> list[int]:
    """The run lengths of a compressed code. Raises ValueError when the text is none."""
    counts: list[int] = []
    place = 0
    while place < len(text):
        number = shift = 0
        more = True
        while more:
            if place == len(text):
                raise ValueError("the run-length code ends inside a number")
            group = ord(text[place]) - 48
            if not 0 <= group < 64:
                raise ValueError(f"the run-length code holds {text[place]!r}, which cannot be part of it")
            number |= (group & 0x1F) << shift
            shift += 5
            place += 1
            more = bool(group & 0x20)
            if not more and group & 0x10:
                number -= 1 << shift
        counts.append(number + counts[-2] if len(counts) > 2 else number)
    return counts


def decode_runs(counts: Sequence[int], height: int, width: int) -> npt.NDArray[np.uint8]:
    """The mask of some runs: shape (height, width), 0 and 1. Raises ValueError when they do not fill it exactly."""
    import numpy as np

    if any(count < 0 for count in counts):
        raise ValueError("the run-length code has a negative length")
    if sum(counts) != height * width:
        raise ValueError(f"the runs make {sum(counts)} pixels, the mask has {height}x{width}")
    values = np.arange(len(counts), dtype=np.int64) % 2
    flat = np.repeat(values.astype(np.uint8), np.asarray(counts, dtype=np.int64))
    mask: npt.NDArray[np.uint8] = flat.reshape(width, height).T
    return mask


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
