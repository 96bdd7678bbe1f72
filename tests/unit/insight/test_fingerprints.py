"""Grids, fingerprints and thumbnails beside slow computations that need no library."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from beam_tfrecord.images.small import small_jpeg, small_of
from beam_tfrecord.images.stored import StoredImage
from beam_tfrecord.insight.fingerprints import BITS, count_bits, fingerprints_of, mirrored
from beam_tfrecord.insight.grids import CELLS, LEVEL, grid_of
from beam_tfrecord.insight.likeness import has_contrast, likeness, thumbnails_of
from benchmarks.near_duplicates import scene
from tests.samples import jpeg, noise, png


def mean_of_cell(grey: np.ndarray, row: int, column: int) -> Fraction:
    """The mean over a cell of 32 by 32, every pixel counted by the part of it that lies in the cell."""
    height, width = grey.shape
    total = Fraction(0)
    for y in range(row * height // CELLS, -(-(row + 1) * height // CELLS)):
        for x in range(column * width // CELLS, -(-(column + 1) * width // CELLS)):
            down = min(y + 1, Fraction((row + 1) * height, CELLS)) - max(y, Fraction(row * height, CELLS))
            across = min(x + 1, Fraction((column + 1) * width, CELLS)) - max(x, Fraction(column * width, CELLS))
            total += int(grey[y, x]) * down * across
    return total / Fraction(height * width, CELLS * CELLS)


@settings(max_examples=30, deadline=None)
@given(st.integers(32, 63), st.integers(32, 63), st.integers(0, 99), st.integers(0, 31), st.integers(0, 31))
def test_a_cell_is_the_mean_of_the_part_of_the_picture_that_it_covers(
    height: int, width: int, seed: int, row: int, column: int
) -> None:
    grey = noise(width, height, seed, 1)[:, :, 0]
    assert abs(grid_of(grey)[row, column] - LEVEL * mean_of_cell(grey, row, column)) <= 1


def test_a_picture_of_one_grey_has_a_grid_of_it_at_every_size() -> None:
    for height, width in ((1, 1), (5, 90), (31, 32), (64, 64), (700, 33)):
        assert (grid_of(np.full((height, width), 77, np.uint8)) // LEVEL == 77).all()


def test_the_edge_of_a_jpeg_counts_for_as_much_of_the_picture_as_it_is() -> None:
    """At an eighth of 257 pixels the last column stands for one pixel, and the first for eight."""
    pixels = np.zeros((256, 257), np.uint8)
    pixels[:, 128:] = 255
    small = small_jpeg(jpeg(Image.fromarray(pixels)), 256, 257)
    assert (small.width, small.span, small.step) == (33, (256, 257), 8)
    share = (grid_of(small.array, small.span, small.step) / LEVEL / 255).mean()
    assert share == pytest.approx(129 / 257, abs=0.002)


def bits_of(grid: np.ndarray) -> set[tuple[int, int]]:
    """Frequencies (down, across) of a grid with a positive sign, by the definition of the cosine transform."""
    found = set()
    for down in range(16):
        for across in range(16):
            if (down, across) != (0, 0):
                waves = [[math.cos(math.pi * (2 * n + 1) * k / 64) for n in range(32)] for k in (down, across)]
                if float(np.array(waves[0]) @ grid.astype(float) @ np.array(waves[1])) > 0:
                    found.add((down, across))
    return found


def test_the_bits_are_the_signs_of_the_lowest_frequencies() -> None:
    grid = grid_of(np.asarray(scene(5).convert("L")))
    assert int(count_bits(fingerprints_of(grid[None])).sum()) == pytest.approx(len(bits_of(grid)), abs=1)
    one, other = grid, grid_of(np.asarray(scene(6).convert("L")))
    apart = int(count_bits(fingerprints_of(one[None]) ^ fingerprints_of(other[None])).sum())
    assert apart == pytest.approx(len(bits_of(one) ^ bits_of(other)), abs=2)  # cosines are rounded


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1), min_size=1))
def test_bits_are_counted(words: list[int]) -> None:
    assert count_bits(np.array(words, np.uint64)).tolist() == [word.bit_count() for word in words]


def test_the_fingerprint_of_a_mirrored_picture_is_known_from_its_own() -> None:
    grey = np.asarray(scene(3, 256, 256).convert("L").resize((32, 32)))
    own, turned = (fingerprints_of(grid_of(pixels)[None]) for pixels in (grey, np.ascontiguousarray(grey[:, ::-1])))
    assert int(count_bits(mirrored(own) ^ turned).sum()) <= 1
    assert int(count_bits(own ^ turned).sum()) > BITS // 4


def test_brightness_and_contrast_do_not_change_a_thumbnail_that_is_compared() -> None:
    grey = np.asarray(scene(4).convert("L"))
    one, other = (thumbnails_of(grid_of(pixels)[None]) for pixels in (grey, (grey // 2 + 60).astype(np.uint8)))
    correlation, apart = likeness(one, other)
    assert correlation[0] > 0.999
    assert apart[0] < 0.1
    assert has_contrast(one).all()
    assert not has_contrast(thumbnails_of(grid_of(np.full((40, 40), 9, np.uint8))[None])).any()


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_every_stored_kind_of_a_picture_has_the_same_grid(channels: int) -> None:
    picture = scene(8, 90, 70).convert("L")
    bands = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[channels]
    pixels = np.asarray(picture.convert(bands))
    stored = {
        "png": png(picture.convert(bands)),
        "raw": pixels.tobytes(),
        "deep": (pixels.astype("<u2") * 257).tobytes(),
    }
    expected = grid_of(np.asarray(picture))
    for kind, data in stored.items():
        format, dtype = ("raw" if kind == "deep" else kind), ("uint16" if kind == "deep" else "uint8")
        small = small_of(StoredImage(data, format, 70, 90, channels, dtype, None, kind))  # type: ignore[arg-type]
        assert small is not None
        assert np.abs(grid_of(small.array, small.span, small.step) - expected).max() <= LEVEL
