"""Which pictures stand out, from their looks: a score for each, the worst first. All thresholds are here.

A rule gives the numbers of pictures and their scores, which are larger the worse it is. Outliers are told from the
collection itself by Tukey's outer fences; small collections have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beam_tfrecord.insight.grids import LEVEL
from beam_tfrecord.insight.looks import Looks

FLAT = 2 * LEVEL  # sixteenths of a level between the darkest and the lightest cell of a blank picture
FLAT_BYTES = (
    16  # pixels to a byte of a blank picture, beside its header: fine patterns that a grid cannot show take more
)
HEADER_BYTES = 1_500
WHOLE = 985  # thousandths of the cells that make a picture dark or overexposed
# What is blurred: its sharpest edge (measures.edge_of) is less than this share of its range. Sharp photos have 0.25 and
# more, those that are blurred as far as a sixteenth of their longer side nearly all less than 0.055.
BLURRED = 0.055
DULL = 8 * LEVEL  # range of a picture in which there is nearly nothing to see
LEAST_PICTURES = 20  # of a collection that is asked for outliers
# What holds for more than this share of a collection is how the collection is, such as digits on black, and no finding
# about each of its pictures.
COMMON = 0.25
COLLECTIVE = ("dark_image", "overexposed_image", "low_detail", "letterboxed")
FENCES = 3.0  # interquartile ranges
LEAST_SIZE, LEAST_ASPECT = 3.0, 2.5  # times the median, that an odd size (of a side) and an odd ratio differ at least
LEAST_BOXES = 10  # that a picture has more than the median to be an outlier

Numbers = npt.NDArray[np.int64]


class Odd(NamedTuple):
    """What a rule found. numbers: of the pictures. scores: of each; messages are made from ``text`` and ``values``."""

    code: str
    numbers: Numbers
    scores: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]
    text: str


def odd_pictures(looks: Looks) -> Iterator[Odd]:
    """What can be said of each picture by itself."""
    seen = looks["seen"] == 1
    pixels = looks["width"].astype(np.int64) * looks["height"]
    is_blank = seen & (looks["range"] <= FLAT) & (looks["bytes"] <= HEADER_BYTES + pixels // FLAT_BYTES)
    levels = looks["range"] / LEVEL
    yield _odd("blank_image", is_blank, 1 - levels / 256, levels, "one colour all over ({:.1f} levels of grey at most)")
    left = seen & ~is_blank
    is_dark = left & (looks["dark"] >= WHOLE)
    grey = looks["brightness"].astype(np.float64)
    yield _odd(
        "dark_image", is_dark, 1 - grey / 255, grey, "hardly anything is lighter than black (mean {:.0f} of 255)"
    )
    is_bright = left & (looks["bright"] >= WHOLE)
    yield _odd("overexposed_image", is_bright, grey / 255, grey, "nearly all of it is white (mean {:.0f} of 255)")
    share = looks["edge"] / np.maximum(looks["range"], 1)
    is_low = left & ~is_dark & ~is_bright & ((share < BLURRED) | (looks["range"] <= DULL))
    edge = looks["edge"] / LEVEL
    yield _odd(
        "low_detail", is_low, 1 / (1 + edge), edge, "blurred or flat: no edge in it is above {:.1f} levels of grey"
    )
    bars = looks["bars"] / 1000
    yield _odd("letterboxed", left & (looks["bars"] > 0), bars, bars * 100, "bars of one colour take {:.0f} % of it")
    for code, name, text in (
        ("box_covers_all", "covering", "{:.0f} of its boxes cover the whole picture"),
        ("tiny_box", "tiny", "{:.0f} of its boxes are less than 3 pixels wide or high"),
        ("stacked_boxes", "stacked", "{:.0f} of its boxes lie on another one of the same class"),
    ):
        count = looks[name].astype(np.float64)
        yield _odd(code, count > 0, count, count, text)


def _odd(
    code: str, which: npt.NDArray[np.bool_], scores: npt.NDArray[np.float64], values: npt.NDArray[np.float64], text: str
) -> Odd:
    numbers = np.flatnonzero(which)
    return Odd(code, numbers, np.round(scores[numbers], 4), values[numbers], text)


def is_common(code: str, count: int, pictures: int) -> bool:
    """Whether a finding about so many of the pictures that were looked at tells of the collection as a whole."""
    return code in COLLECTIVE and pictures >= LEAST_PICTURES and count > COMMON * pictures


class Outlines(NamedTuple):
    """What outliers are told from: width, height and boxes of each picture; width 0 where there is none."""

    width: npt.NDArray[np.uint32]
    height: npt.NDArray[np.uint32]
    boxes: npt.NDArray[np.uint32]


class Fences(NamedTuple):
    """Which values are usual, by Tukey's outer fences. middle: their median."""

    low: float
    high: float
    middle: float


class Usual(NamedTuple):
    """What is usual in a collection: sides and ratios in powers of two."""

    side: Fences
    aspect: Fences
    boxes: Fences


def usual_in(outlines: Outlines) -> Usual | None:
    """What is usual among some pictures; None of too few."""
    there = outlines.width > 0
    if np.count_nonzero(there) < LEAST_PICTURES:
        return None
    width, height = outlines.width[there].astype(np.float64), outlines.height[there].astype(np.float64)
    boxes = outlines.boxes[there].astype(np.float64)
    return Usual(_fences(np.log2(width * height) / 2), _fences(np.log2(width / height)), _fences(boxes))


def outliers(outlines: Outlines, usual: Usual) -> Iterator[Odd]:
    """What can be said of a picture beside what is usual in its collection."""
    there = np.flatnonzero(outlines.width > 0)
    width, height = outlines.width[there].astype(np.float64), outlines.height[there].astype(np.float64)
    side = np.log2(width * height) / 2
    apart = _outside(side, usual.side)
    is_odd = apart >= np.log2(LEAST_SIZE)
    times = np.exp2(side - usual.side.middle)
    text = "{:.2g} times the usual side of this collection"
    yield Odd("odd_size", there[is_odd], np.round(apart[is_odd], 4), times[is_odd], text)
    aspect = np.log2(width / height)
    apart = _outside(aspect, usual.aspect)
    is_odd = apart >= np.log2(LEAST_ASPECT)
    text = "width to height is {:.2f}, unlike the rest of this collection"
    yield Odd("odd_aspect", there[is_odd], np.round(apart[is_odd], 4), (width / height)[is_odd], text)
    boxes = outlines.boxes[there].astype(np.float64)
    apart = _outside(boxes, usual.boxes)
    is_odd = (apart >= LEAST_BOXES) & (boxes >= 2 * usual.boxes.middle)
    text = "{:.0f} objects, far more than the others have"
    yield Odd("object_counts_outlier", there[is_odd], apart[is_odd], boxes[is_odd], text)


def _fences(values: npt.NDArray[np.float64]) -> Fences:
    ordered = np.sort(values)  # np.quantile and np.median load numpy.ma, which takes 60 ms
    low, middle, high = (float(ordered[round(share * (len(values) - 1))]) for share in (0.25, 0.5, 0.75))
    reach = FENCES * (high - low)
    return Fences(low - reach, high + reach, middle)


def _outside(values: npt.NDArray[np.float64], fences: Fences) -> npt.NDArray[np.float64]:
    """How far from the middle those are that lie outside of the fences; 0 for all others."""
    is_outside = (values < fences.low) | (values > fences.high)
    return np.where(is_outside, np.abs(values - fences.middle), 0.0)
