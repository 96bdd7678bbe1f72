from __future__ import annotations

import pytest

from beam_tfrecord.annotations.base import annotation_is_upright
from beam_tfrecord.core.geometry import PixelFrame
from tests.annotation_tools import still, turned


@pytest.mark.parametrize("orientation", [5, 6, 7, 8])
def test_the_stated_size_decides_when_it_fits_one_picture(orientation: int) -> None:
    frame = turned(orientation, 40, 20)
    assert annotation_is_upright((20, 40), frame) == (True, False)
    assert annotation_is_upright((40, 20), frame) == (False, False)
    assert annotation_is_upright((40, 20), frame, default="upright") == (False, False)


@pytest.mark.parametrize(
    ("frame", "size"),
    [
        (turned(6, 40, 40), (40, 40)),
        (turned(3, 40, 20), (40, 20)),
        (turned(2, 40, 20), (40, 20)),
        (turned(6, 40, 20), None),
        (turned(6, 40, 20), (7, 9)),
    ],
)
def test_what_tells_nothing_is_left_to_the_format_and_else_a_guess(frame, size) -> None:
    assert annotation_is_upright(size, frame) == (False, True)
    assert annotation_is_upright(size, frame, default="upright") == (True, False)
    assert annotation_is_upright(size, frame, default="stored") == (False, False)


def test_the_option_wins() -> None:
    frame = turned(6, 40, 20)
    assert annotation_is_upright((20, 40), frame, "stored") == (False, False)
    assert annotation_is_upright(None, frame, "upright", "stored") == (True, False)


def test_where_the_turn_is_ignored_the_same_things_decide_and_nothing_is_guessed() -> None:
    frame = PixelFrame(40, 20, 40, 20, ignored=6)
    assert annotation_is_upright(None, frame, "upright") == (True, False)
    assert annotation_is_upright((20, 40), frame, "stored") == (False, False)
    assert annotation_is_upright((20, 40), frame) == (True, False)
    assert annotation_is_upright((40, 20), frame, default="upright") == (False, False)
    assert annotation_is_upright(None, frame, default="upright") == (True, False)
    assert annotation_is_upright(None, frame) == (False, False)


def test_an_image_that_is_not_turned_has_one_picture_only() -> None:
    assert annotation_is_upright(None, still(40, 20)) == (False, False)
    assert annotation_is_upright((20, 40), still(40, 20)) == (False, False)
