"""Outlines of the shapes that annotation tools draw."""

from __future__ import annotations

import math

import numpy as np
import pytest

from beam_tfrecord.annotations.shapes import decode_runs
from beam_tfrecord.manifests.outlines import ellipse, hull, rectangle, rle_of_patch, runs_of, turned


@pytest.mark.parametrize("radius", [0.0, 0.01, 1.0, 300.0, 1e5, 1e18, 1e308, math.inf])
def test_an_ellipse_of_any_size_has_a_few_hundred_sides_at_most(radius: float) -> None:
    assert 16 <= len(ellipse(5, 6, radius, radius / 2)) <= 1440


def test_an_ellipse_reaches_as_far_as_its_axes_and_has_its_area() -> None:
    outline = ellipse(50, 40, 30, 10)
    assert hull([outline]) == pytest.approx([20, 30, 80, 50])
    x, y = np.array(outline[0::2]), np.array(outline[1::2])
    area = abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2
    assert area == pytest.approx(math.pi * 300, rel=0.005)


def test_turning_is_clockwise_on_the_screen() -> None:
    assert turned(rectangle(0, 0, 2, 1), 90, 0, 0) == pytest.approx([0, 0, 0, 2, -1, 2, -1, 0])


@pytest.mark.parametrize("seed", range(6))
def test_runs_are_those_of_the_mask(seed: int) -> None:
    mask = np.random.default_rng(seed).random((7, 5)) > (0.5 if seed < 4 else seed - 4.5)
    assert np.array_equal(decode_runs(runs_of(mask), 7, 5), mask)


@pytest.mark.parametrize("place", [(0, 0), (-2, 3), (6, -1), (9, 9), (-9, 0), (3, 4)])
def test_a_patch_is_cut_at_the_edges(place: tuple[int, int]) -> None:
    patch = np.ones((3, 4), bool)
    patch[1, 2] = False
    whole = np.zeros((40, 40), bool)
    left, top = place
    whole[15 + top : 18 + top, 15 + left : 19 + left] = patch
    code = rle_of_patch(patch, left, top, 8, 6)
    assert np.array_equal(decode_runs(code["counts"], *code["size"]), whole[15:21, 15:23])


def test_a_patch_takes_no_memory_for_the_size_that_a_document_states() -> None:
    patch = np.array([[True, True], [False, True]])
    side = 10**30
    code = rle_of_patch(patch, 5, 7, side, side)
    assert code["counts"] == [5 * side + 7, 1, side - 1, 2, side * side - 6 * side - 9]
    assert sum(code["counts"]) == side * side
