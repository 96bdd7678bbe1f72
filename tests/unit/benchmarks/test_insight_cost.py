"""The numbers of row I1."""

from __future__ import annotations

import pytest

from benchmarks.insight_cost import summed_up


def test_the_ratio_is_that_of_runs_that_followed_one_another() -> None:
    """A machine that gets twice as slow in the middle changes the medians, not the ratio."""
    told = summed_up([2.0, 2.0, 4.0], [2.2, 2.2, 4.4])
    assert told == pytest.approx({"off": 2.0, "on": 2.2, "ratio": 1.1})
