from __future__ import annotations

import hashlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.core.splits import order_hash, split_by_ratio, split_hash, split_thresholds, stratified_counts
from beam_tfrecord.options.values import parse_ratios

RATIOS = parse_ratios("train=0.7,validation=0.2,test=0.1")


def split_of(unit: str, seed: int = 0) -> str:
    return split_by_ratio(RATIOS, split_thresholds(RATIOS), split_hash(seed, unit))


def test_the_hash_of_an_id_is_the_documented_one() -> None:
    digest = hashlib.sha256(b"7\0order\0a/b.jpg").digest()
    assert order_hash(7, "a/b.jpg") == int.from_bytes(digest[:8], "big")


def test_split_and_place_of_an_id_are_independent() -> None:
    """The order of the records of a split covers the whole range, not the part that its split came from."""
    orders = [order_hash(0, str(n)) for n in range(2000) if split_of(str(n)) == "test"]
    quarters = Counter(order * 4 // 2**64 for order in orders)
    assert min(quarters.values()) > 0.6 * len(orders) / 4


def test_shares_are_met() -> None:
    counts = Counter(split_of(str(n)) for n in range(20_000))
    assert counts["train"] == pytest.approx(14_000, rel=0.03)
    assert counts["validation"] == pytest.approx(4_000, rel=0.05)
    assert counts["test"] == pytest.approx(2_000, rel=0.08)


def test_another_seed_gives_another_split() -> None:
    assert [split_of(str(n)) for n in range(100)] != [split_of(str(n), seed=1) for n in range(100)]


def test_a_share_of_zero_gets_nothing() -> None:
    ratios = parse_ratios("train=1,validation=0")
    assert {split_by_ratio(ratios, split_thresholds(ratios), split_hash(0, str(n))) for n in range(500)} == {"train"}


@pytest.mark.parametrize("unit_hash", [0, 2**64 - 1])
def test_the_ends_of_the_range_belong_to_a_split(unit_hash: int) -> None:
    assert split_by_ratio(RATIOS, split_thresholds(RATIOS), unit_hash) in {"train", "validation", "test"}


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=5),
    st.integers(0, 500),
)
def test_stratified_counts_lose_nothing_and_stay_near_the_share(weights: list[int], count: int) -> None:
    ratios = [(str(i), weight / sum(weights)) for i, weight in enumerate(weights)]
    counts = stratified_counts(ratios, count)
    assert sum(counts) == count
    assert min(counts) >= 0
    if count >= len(weights):
        assert min(counts) >= 1
    for own, (_, ratio) in zip(counts, ratios, strict=True):
        assert own >= int(ratio * count) - len(weights)


def test_stratified_counts_by_hand() -> None:
    ratios = parse_ratios("train=0.8,validation=0.1,test=0.1")
    assert stratified_counts(ratios, 10) == (8, 1, 1)
    assert stratified_counts(ratios, 3) == (1, 1, 1)
    assert stratified_counts(ratios, 2) == (2, 0, 0)
    assert stratified_counts(ratios, 15) == (12, 2, 1)
