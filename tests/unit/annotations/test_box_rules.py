from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.annotations.box_rules import Box, float32, mend_box, normalized_box
from beam_tfrecord.errors import AnnotationError

SIZE = (100, 80)
INSIDE = Box(10, 8, 60, 48)


def mend(box: Box, policy: str = "visible") -> tuple[Box | None, list[str]]:
    codes: list[str] = []
    return mend_box(box, SIZE, policy, "object 1 (car)", lambda code, message: codes.append(code)), codes


@pytest.mark.parametrize("policy", ["visible", "drop", "clip", "reject"])
@pytest.mark.parametrize("box", [INSIDE, Box(0, 0, 100, 80), Box(99, 79, 100, 80), Box(5.25, 5.5, 5.5, 6)])
def test_a_box_inside_of_the_image_stays_as_it_is(box: Box, policy: str) -> None:
    assert mend(box, policy) == (box, [])


@pytest.mark.parametrize("policy", ["visible", "drop", "clip", "reject"])
@pytest.mark.parametrize(
    ("box", "mended"),
    [
        (Box(50, 40, 101, 81), Box(50, 40, 100, 80)),
        (Box(-1, -0.5, 60, 48), Box(0, 0, 60, 48)),
        (Box(0, 0, 100.5, 80), Box(0, 0, 100, 80)),
    ],
)
def test_a_rounding_pixel_over_the_edge_is_cut_and_told(box: Box, mended: Box, policy: str) -> None:
    assert mend(box, policy) == (mended, ["box_clipped"])


def test_what_floating_point_makes_is_cut_without_a_word() -> None:
    assert mend(Box(-1e-5, 0, 100.00001, 80)) == (Box(0, 0, 100, 80), [])


# On an image of 100x80.
VISIBLE = {
    "half of it at the left": Box(-20, 10, 20, 50),
    "the centre on the edge": Box(90, 10, 110, 50),
    "a third of it, in the middle": Box(-100, 10, 200, 50),
    "two thirds of two thirds": Box(-10, -10, 20, 20),
    "the whole image and more": Box(-10, -8, 110, 88),
}
HIDDEN = {
    "a quarter of it, a corner": Box(-20, -20, 20, 20),
    "less than a third of it, in the middle": Box(-101, 10, 201, 50),
    "two fifths of it, its centre outside": Box(88, 10, 118, 50),
}


@pytest.mark.parametrize("name", VISIBLE)
def test_by_default_the_visible_part_is_kept_where_centre_and_a_third_lie_inside(name: str) -> None:
    box = VISIBLE[name]
    assert mend(box) == (
        Box(max(box.xmin, 0), max(box.ymin, 0), min(box.xmax, 100), min(box.ymax, 80)),
        ["box_clipped"],
    )


@pytest.mark.parametrize("name", HIDDEN)
def test_by_default_a_box_that_lies_mostly_outside_is_dropped_and_clip_keeps_it(name: str) -> None:
    assert mend(HIDDEN[name]) == (None, ["box_dropped"])
    assert mend(HIDDEN[name], "clip")[1] == ["box_clipped"]


@given(st.integers(-150, 150), st.integers(-150, 150), st.integers(1, 300), st.integers(1, 300))
def test_what_is_kept_is_what_counting_pixels_says(left: int, top: int, width: int, height: int) -> None:
    """Boxes of whole pixels; the visible ones are counted on a raster, the centre is looked up in half pixels."""
    box = Box(left, top, left + width, top + height)
    raster = np.zeros((80, 100), bool)
    raster[max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)] = True
    is_over = left < 0 or top < 0 or left + width > 100 or top + height > 80
    is_far = left < -1 or top < -1 or left + width > 101 or top + height > 81
    is_centre_inside = 0 <= 2 * left + width <= 200 and 0 <= 2 * top + height <= 160
    is_kept = raster.any() and (not is_far or (is_centre_inside and 3 * int(raster.sum()) >= width * height))
    mended, codes = mend(box)
    assert (mended is not None) == is_kept
    assert codes == ([] if not is_over else ["box_clipped"] if is_kept else ["box_dropped"])
    if mended is not None:
        assert mended.area == raster.sum()


FAR = [Box(50, 40, 300, 70), Box(-20, 8, 60, 48), Box(10, 8, 60, 81.5)]


@pytest.mark.parametrize("box", FAR)
def test_further_over_the_edge_the_option_decides(box: Box) -> None:
    assert mend(box, "drop") == (None, ["box_dropped"])
    clipped, codes = mend(box, "clip")
    assert clipped == Box(max(box.xmin, 0), max(box.ymin, 0), min(box.xmax, 100), min(box.ymax, 80))
    assert codes == ["box_clipped"]
    with pytest.raises(AnnotationError) as caught:
        mend(box, "reject")
    assert caught.value.code == "bad_box"
    assert "object 1 (car)" in caught.value.message
    assert "100x80" in caught.value.message


BROKEN = [
    Box(60, 8, 10, 48),
    Box(10, 48, 60, 8),
    Box(30, 8, 30, 48),
    Box(30, 8, 40, 8),
    Box(math.nan, 8, 60, 48),
    Box(10, 8, math.inf, 48),
    Box(-math.inf, 8, 60, 48),
    Box(200, 200, 300, 300),
    Box(100.5, 8, 101, 48),
]


@pytest.mark.parametrize("box", BROKEN)
@pytest.mark.parametrize("policy", ["visible", "drop", "clip"])
def test_a_box_with_nothing_inside_is_never_kept(box: Box, policy: str) -> None:
    assert mend(box, policy) == (None, ["box_dropped"])


@pytest.mark.parametrize("box", BROKEN)
def test_a_box_with_nothing_inside_rejects_when_asked(box: Box) -> None:
    with pytest.raises(AnnotationError) as caught:
        mend(box, "reject")
    assert caught.value.code == "bad_box"


sides = st.floats(-500, 500) | st.just(math.nan) | st.just(math.inf)


@given(st.builds(Box, sides, sides, sides, sides), st.sampled_from(["visible", "drop", "clip"]))
def test_whatever_is_kept_lies_inside_with_its_sides_in_order(box: Box, policy: str) -> None:
    mended, _ = mend(box, policy)
    if mended is not None:
        assert 0 <= mended.xmin < mended.xmax <= 100
        assert 0 <= mended.ymin < mended.ymax <= 80


@given(st.floats(0, 1e6), st.integers(1, 10**6))
def test_fractions_are_exactly_float32_and_never_above_one(side: float, width: int) -> None:
    box = normalized_box(Box(0, 0, min(side, width), 1), width, 1)
    assert 0 <= box.xmax <= 1
    assert box.xmax == float(np.float32(min(side, width) / width)) or box.xmax == 1
    assert float32(box.xmax) == box.xmax
