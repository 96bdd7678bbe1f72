from __future__ import annotations

import bisect
import itertools
import json
import random
import statistics
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.conversion.writing.digest import (
    Digest,
    bars,
    bin_of,
    digest_of,
    digest_of_array,
    merge_digests,
    next_edge,
)

NUMBERS = st.lists(st.integers(0, 10**12), max_size=60)
SMALL_NUMBERS = st.lists(st.integers(0, 3000), min_size=1, max_size=60)


@given(st.integers(0, 10**15))
def test_a_number_lies_in_its_bin_which_is_narrow(value: int) -> None:
    low, high = bin_of(value), next_edge(bin_of(value))
    assert low <= value < high
    assert high - low == 1 or (high - low) / low < 0.065


def test_bins_follow_one_another_without_a_gap() -> None:
    edge, found = 0, []
    while edge < 10**7:
        found.append(edge)
        assert bin_of(edge) == edge
        edge = next_edge(edge)
    assert found[:102] == [*range(101), 105]
    for value in random.Random(1).sample(range(10**7), 2000):
        assert bin_of(value) == found[bisect.bisect_right(found, value) - 1]


@given(NUMBERS)
def test_count_total_and_extremes_are_exact(values: list[int]) -> None:
    digest = digest_of(Counter(values))
    assert (digest.count, digest.total) == (len(values), sum(values))
    assert (digest.least, digest.greatest) == (min(values, default=0), max(values, default=0))
    assert sum(digest.bins.values()) == len(values)


@given(NUMBERS)
def test_an_array_gives_the_same_digest(values: list[int]) -> None:
    assert digest_of_array(np.array(values, np.int64)) == digest_of(Counter(values))


@given(NUMBERS, st.integers(0, 60), st.randoms(use_true_random=False))
def test_parts_added_up_in_any_order_give_the_whole(values: list[int], cut: int, shuffler: random.Random) -> None:
    parts = [values[:cut], values[cut : cut + 5], [], values[cut + 5 :]]
    shuffler.shuffle(parts)
    assert merge_digests(digest_of(Counter(part)) for part in parts) == digest_of(Counter(values))


@given(NUMBERS)
def test_json_keeps_everything(values: list[int]) -> None:
    digest = digest_of(Counter(values))
    assert Digest.from_json(json.loads(json.dumps(digest.to_json()))) == digest


@given(SMALL_NUMBERS)
def test_the_median_is_about_right(values: list[int]) -> None:
    low = statistics.median_low(values)
    found = digest_of(Counter(values)).quantile(0.5)
    assert abs(found - low) <= max(1, 0.07 * low)


def test_a_digest_is_bounded_whatever_it_counts() -> None:
    spread = digest_of_array(np.arange(1, 2_000_001) ** 2)
    assert spread.count == 2_000_000
    assert len(spread.bins) < 700


@given(NUMBERS, st.integers(6, 40))
def test_bars_hold_all_numbers_side_by_side(values: list[int], most: int) -> None:
    drawn = bars(digest_of(Counter(values)), most)
    assert sum(bar.count for bar in drawn) == len(values)
    assert all(left.high == right.low for left, right in itertools.pairwise(drawn))
    if values:
        assert drawn[0].low <= min(values) < drawn[0].high
        assert drawn[-1].low <= max(values) < drawn[-1].high
        assert len(drawn) <= max(most, 16)


@given(SMALL_NUMBERS, st.integers(4, 40))
def test_each_bar_counts_exactly_the_numbers_in_it(values: list[int], most: int) -> None:
    for bar in bars(digest_of(Counter(values)), most):
        assert bar.count == sum(bar.low <= value < bar.high for value in values)


def test_few_small_numbers_get_a_bar_each() -> None:
    drawn = bars(digest_of({0: 3, 2: 1, 5: 7}), 24)
    assert [(bar.low, bar.count) for bar in drawn] == [(0, 3), (1, 0), (2, 1), (3, 0), (4, 0), (5, 7)]


def test_no_numbers_give_no_bars() -> None:
    assert bars(Digest(), 24) == []
    assert Digest().mean == 0
