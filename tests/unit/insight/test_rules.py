"""What stands out, and what does not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image, ImageFilter

from beam_tfrecord.insight.boxes import BoxCounts, count_boxes
from beam_tfrecord.insight.grids import grid_of
from beam_tfrecord.insight.looks import Look, looks_of
from beam_tfrecord.insight.rules import Outlines, is_common, odd_pictures, outliers, usual_in
from benchmarks.near_duplicates import scene

PICTURES = {"blank_image", "dark_image", "overexposed_image", "low_detail", "letterboxed"}


def framed(picture: Image.Image, bars: tuple[int, int], colour: int = 0) -> Image.Image:
    across, down = bars
    ground = Image.new("L", (picture.width, picture.height), colour)
    ground.paste(picture.resize((picture.width - 2 * across, picture.height - 2 * down)), (across, down))
    return ground


CASES: dict[str, tuple[Callable[[Image.Image], Image.Image], set[str]]] = {
    "as it is": (lambda picture: picture, set()),
    "one grey": (lambda picture: Image.new("L", picture.size, 90), {"blank_image"}),
    "one white": (lambda picture: Image.new("L", picture.size, 255), {"blank_image"}),
    "dark": (lambda picture: picture.point(lambda value: value // 8), {"dark_image"}),
    "half as light": (lambda picture: picture.point(lambda value: value // 2), set()),
    "bright": (lambda picture: picture.point(lambda value: 220 + value // 8), {"overexposed_image"}),
    "blurred": (lambda picture: picture.filter(ImageFilter.GaussianBlur(24)), {"low_detail"}),
    "a shape on plain ground": (lambda picture: shape_on(picture, 90), set()),
    "a small shape, hardly lighter": (lambda picture: shape_on(picture, 12), set()),
    "hardly anything on plain ground": (lambda picture: shape_on(picture, 6), {"low_detail"}),
    "a little soft": (lambda picture: picture.filter(ImageFilter.GaussianBlur(1)), set()),
    "bars above and below": (lambda picture: framed(picture, (0, 30)), {"letterboxed"}),
    "bars at both sides": (lambda picture: framed(picture, (40, 0), 250), {"letterboxed"}),
    "a thing before white": (lambda picture: thing_before(picture, 255), set()),
    "a thing before black": (lambda picture: thing_before(picture, 0), set()),
}


def shape_on(picture: Image.Image, lighter: int) -> Image.Image:
    """A square on a ground that is lighter on one side than on the other, by less."""
    ramp = np.linspace(100, 100 + lighter / 2, picture.width).round().astype(np.uint8)
    ground = Image.fromarray(np.tile(ramp, (picture.height, 1)))
    ground.paste(100 + lighter, (50, 60, 90, 100))
    return ground


def thing_before(picture: Image.Image, colour: int) -> Image.Image:
    ground = Image.new("L", picture.size, colour)
    ground.paste(picture.resize((140, 140)), (90, 50))
    return ground


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(6))
def test_a_picture_is_told_for_what_is_wrong_with_it_and_nothing_else(case: str, seed: int) -> None:
    change, expected = CASES[case]
    pixels = np.asarray(change(scene(seed).convert("L")))
    look = Look("ab", 320, 240, 3_000, (), None, grid_of(pixels).tobytes())
    found = {odd.code for odd in odd_pictures(looks_of([look])) if len(odd.numbers)}
    assert found == expected


def test_fine_patterns_that_a_grid_cannot_show_are_not_blank() -> None:
    grey = grid_of(np.full((40, 30), 128, np.uint8)).tobytes()
    looks = looks_of([Look("ab", 320, 240, size, (), None, grey) for size in (3_000, 60_000)])
    blank = next(odd for odd in odd_pictures(looks) if odd.code == "blank_image")
    assert blank.numbers.tolist() == [0]


def test_pictures_that_were_not_looked_at_or_are_tiny_are_not_judged() -> None:
    grey = grid_of(np.zeros((15, 15), np.uint8)).tobytes()
    looks = looks_of([Look("ab", 300, 200, 99, (), None, None), Look("cd", 15, 300, 99, (), None, grey)])
    assert not any(len(odd.numbers) for odd in odd_pictures(looks))
    assert not looks["alike"].any()


def outlined(sizes: list[tuple[int, int]], boxes: list[int] | None = None) -> dict[str, list[int]]:
    width, height = np.array(sizes, np.uint32).T
    outlines = Outlines(width, height, np.array(boxes or [0] * len(sizes), np.uint32))
    usual = usual_in(outlines)
    found = outliers(outlines, usual) if usual else ()
    return {odd.code: odd.numbers.tolist() for odd in found if len(odd.numbers)}


def test_sizes_and_ratios_unlike_the_rest_are_told() -> None:
    usual = [(640 + number, 480) for number in range(40)]
    assert outlined(usual) == {}
    assert outlined([*usual, (480, 640)]) == {}  # the camera was turned
    assert outlined([*usual, (64, 48), (6400, 4800)]) == {"odd_size": [40, 41]}
    assert outlined([*usual, (1600, 200)]) == {"odd_aspect": [40]}
    assert outlined([*usual[:10], (64, 48)]) == {}  # too few to know what is usual
    assert outlined([(0, 0), *usual, (64, 48)]) == {"odd_size": [41]}  # numbers are those of the records


def test_a_picture_with_far_more_boxes_than_the_others_is_told() -> None:
    sizes = [(640, 480)] * 31
    assert outlined(sizes, [3, 4, 5] * 10 + [40]) == {"object_counts_outlier": [30]}
    assert outlined(sizes, [3, 4, 5] * 10 + [9]) == {}


BOX = (0.1, 0.1, 0.5, 0.5)


@pytest.mark.parametrize(
    ("boxes", "names", "expected"),
    [
        ([], [], BoxCounts()),
        ([BOX], ["cat"], BoxCounts(1)),
        ([BOX, BOX], ["cat", "cat"], BoxCounts(2, stacked=1)),
        ([BOX, BOX], ["cat", "dog"], BoxCounts(2)),
        ([BOX, (0.1, 0.1, 0.5, 0.51)], ["cat", "cat"], BoxCounts(2, stacked=1)),
        ([BOX, (0.1, 0.1, 0.5, 0.53)], ["cat", "cat"], BoxCounts(2)),
        ([(0.101, 0.1, 0.5, 0.5), BOX, BOX], ["cat"] * 3, BoxCounts(3, stacked=2)),
        ([(0, 0, 1, 1)], ["cat"], BoxCounts(1, covering=1)),
        ([(0, 0, 1, 0.9)], ["cat"], BoxCounts(1)),
        ([(0.5, 0.5, 0.5 + 2.9 / 100, 0.9)], ["cat"], BoxCounts(1, tiny=1)),
        ([(0.5, 0.5, 0.5 + 3.1 / 100, 0.9)], ["cat"], BoxCounts(1)),
    ],
)
def test_boxes_are_counted(
    boxes: list[tuple[float, float, float, float]], names: list[str], expected: BoxCounts
) -> None:
    assert count_boxes(boxes, names, (100, 100)) == expected


def test_many_boxes_are_compared_as_few_are() -> None:
    random = np.random.default_rng(0)
    corners = random.uniform(0, 0.5, (300, 2))
    boxes = np.concatenate((corners, corners + random.uniform(0.05, 0.4, (300, 2))), axis=1)
    boxes[200:] = boxes[:100] + random.uniform(0, 0.001, (100, 4))
    names = [("cat", "dog")[number % 2] for number in range(300)]

    def overlap(one: np.ndarray, other: np.ndarray) -> float:
        sides = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])
        shared = max(sides[0], 0) * max(sides[1], 0)
        areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
        return float(shared / (sum(areas) - shared))

    expected = sum(
        any(names[one] == names[other] and overlap(boxes[one], boxes[other]) > 0.95 for one in range(other))
        for other in range(300)
    )
    assert expected > 50
    assert count_boxes([tuple(box) for box in boxes.tolist()], names, (10_000, 10_000)).stacked == expected


def test_what_holds_for_a_large_part_of_a_collection_is_no_finding_about_each_picture() -> None:
    assert is_common("dark_image", 26, 100)
    assert not is_common("dark_image", 25, 100)
    assert not is_common("dark_image", 19, 19)  # too few to say how a collection is
    assert not is_common("blank_image", 100, 100)  # always wrong
