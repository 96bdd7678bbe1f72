"""Instance masks against pycocotools, the reference implementation."""

from __future__ import annotations

import builtins
import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycocotools import mask as coco

from beam_tfrecord.annotations.shapes import decode_runs, draw_polygons, parse_counts
from beam_tfrecord.errors import ConfigError
from tests.annotation_tools import reference_mask


def masks(max_side: int = 12) -> st.SearchStrategy[Any]:
    return st.tuples(st.integers(1, max_side), st.integers(1, max_side), st.integers(0, 2**30)).map(
        lambda drawn: np.random.default_rng(drawn[2]).integers(0, 2, drawn[:2]).astype(np.uint8)
    )


@given(masks())
def test_compressed_codes_decode_as_pycocotools_encodes(mask: Any) -> None:
    code = coco.encode(np.asfortranarray(mask))
    height, width = code["size"]
    assert np.array_equal(decode_runs(parse_counts(code["counts"].decode()), height, width), mask)


@pytest.mark.parametrize("side", [1, 700])
def test_long_runs_of_a_large_mask(side: int) -> None:
    mask = np.zeros((2000, 1500), np.uint8)
    mask[300 : 300 + side, 100:1400] = 1
    code = coco.encode(np.asfortranarray(mask))
    assert np.array_equal(decode_runs(parse_counts(code["counts"].decode()), 2000, 1500), mask)


@given(masks())
def test_plain_codes_decode_as_pycocotools_decodes_them(mask: Any) -> None:
    flat = mask.T.ravel()
    changes = [*np.flatnonzero(np.diff(np.concatenate([[0], flat]))).tolist(), flat.size]
    counts = np.diff([0, *changes]).tolist()
    height, width = mask.shape
    expected = reference_mask({"size": [height, width], "counts": counts}, height, width)
    assert np.array_equal(decode_runs(counts, height, width), expected)
    assert np.array_equal(expected, mask)


@pytest.mark.parametrize("counts", [[], [5], [3, 4], [-1, 7], [2**62, 2**62]])
def test_runs_that_do_not_fill_the_mask_are_refused(counts: list[int]) -> None:
    with pytest.raises(ValueError, match=r"pixels|negative"):
        decode_runs(counts, 2, 3)


@pytest.mark.parametrize("text", ["abc def", "\x00", "Q", "oo", "é"])
def test_a_text_that_is_no_code_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="run-length code"):
        parse_counts(text)


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30))
def test_any_text_is_decoded_or_refused_without_taking_memory(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert decode_runs(parse_counts(text), 3, 4).shape == (3, 4)


points = st.tuples(st.floats(-5, 25, width=32), st.floats(-5, 20, width=32))
outlines = st.lists(points, min_size=3, max_size=8).map(lambda drawn: [side for point in drawn for side in point])


@given(st.lists(outlines, min_size=1, max_size=3))
def test_polygons_are_drawn_as_pycocotools_draws_them(polygons: list[list[float]]) -> None:
    expected = reference_mask(polygons, 15, 20)
    assert np.array_equal(draw_polygons(polygons, 15, 20), expected)


def test_a_square_of_whole_pixels_is_drawn_where_it_is() -> None:
    drawn = draw_polygons([[2, 1, 6, 1, 6, 4, 2, 4]], 8, 10)
    expected = np.zeros((8, 10), np.uint8)
    expected[1:4, 2:6] = 1
    assert np.array_equal(drawn, expected)


@pytest.mark.parametrize(
    "polygon",
    [[1, 1, 5, 1], [1, 1, 5, 1, 5], [1, 1, 5, float("nan"), 5, 5], [1, 1, 1e9, 1, 5, 5], [1, -900, 2, 2, 5, 5]],
)
def test_what_is_no_outline_near_the_image_is_refused(polygon: list[float]) -> None:
    with pytest.raises(ValueError, match="polygon"):
        draw_polygons([polygon], 8, 10)


def test_without_pycocotools_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("pycocotools"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError, match="pip install"):
        draw_polygons([[1, 1, 5, 1, 5, 5]], 8, 10)
