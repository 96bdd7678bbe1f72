from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.annotations.cells import float32_number, is_blank, real_number, text_of, whole_number


@pytest.mark.parametrize("cell", [None, "", " \t", float("nan"), np.float32("nan"), pd.NA, pd.NaT])
def test_nothing_is_blank(cell: Any) -> None:
    assert is_blank(cell)


@pytest.mark.parametrize("cell", ["0", 0, False, [], np.int64(0), "nan"])
def test_zero_and_the_like_are_not_blank(cell: Any) -> None:
    assert not is_blank(cell)


@given(st.integers(-(2**63), 2**63 - 1))
def test_whole_numbers_of_64_bits_are_read_from_text_and_as_they_are(number: int) -> None:
    assert whole_number(str(number)) == whole_number(number) == whole_number(f" {number} ") == number


@pytest.mark.parametrize(
    "cell", ["1.0", "1e3", "abc", "", "1_000", "٣", "0x10", 1.5, float("nan"), float("inf"), None, [1]]
)
def test_what_is_no_whole_number_is_refused(cell: Any) -> None:
    with pytest.raises(ValueError, match="is no whole number"):
        whole_number(cell)


@pytest.mark.parametrize("cell", [2**63, -(2**63) - 1, str(2**63), "9" * 5000])
def test_whole_numbers_beyond_64_bits_are_refused(cell: Any) -> None:
    with pytest.raises(ValueError, match="64 bits"):
        whole_number(cell)


@pytest.mark.parametrize(("cell", "number"), [(3.0, 3), (True, 1), ("+7", 7), ("007", 7), (np.uint8(9), 9)])
def test_typed_cells_that_are_whole_are_read(cell: Any, number: int) -> None:
    assert whole_number(cell) == number


@given(st.floats(allow_nan=False))
def test_numbers_are_read_as_python_spells_them(number: float) -> None:
    assert real_number(repr(number)) == number


@pytest.mark.parametrize("cell", ["", "abc", "1,5", "1_0", "0x1p3", "- 1", "٣", None, [1.0], "nan0"])
def test_what_is_no_number_is_refused(cell: Any) -> None:
    with pytest.raises(ValueError, match="is no number"):
        real_number(cell)


def test_numbers_that_say_so_may_be_nan_or_infinite() -> None:
    assert math.isnan(real_number("NaN"))
    assert float32_number("-inf") == -math.inf


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_refused_exactly_when_numpy_makes_it_infinite_as_float32(number: float) -> None:
    with np.errstate(over="ignore"):
        overflows = bool(np.isinf(np.float32(number)))
    if overflows:
        with pytest.raises(ValueError, match="too large"):
            float32_number(number)
    else:
        assert float32_number(number) == number


@pytest.mark.parametrize("number", [3.4028234663852886e38, 3.4028235677973362e38, 3.4028235677973366e38])
def test_the_edge_of_float32_is_where_numpy_has_it(number: float) -> None:
    with np.errstate(over="ignore"):
        overflows = bool(np.isinf(np.float32(number)))
    try:
        float32_number(number)
    except ValueError:
        assert overflows
    else:
        assert not overflows


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("007", "007"),
        (7, "7"),
        (2.0, "2"),
        (0.1, "0.1"),
        (True, "true"),
        (b"caf\xc3\xa9", "café"),
        (np.int32(5), "5"),
        (np.str_("x"), "x"),
        (decimal.Decimal("1.50"), "1.50"),
        ([1], None),
        ({}, None),
    ],
)
def test_cells_are_spelled_as_text(cell: Any, text: str | None) -> None:
    assert text_of(cell) == text
