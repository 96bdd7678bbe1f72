"""The formulas of the cost model beside what they stand for, thrown or counted."""

from __future__ import annotations

import random

import pytest

from benchmarks.scale_cost import (
    Constants,
    Machines,
    Prices,
    bill,
    elements_per_block,
    longest_over_mean,
    num_shards,
    predict,
    simulate_longest,
)


@pytest.mark.parametrize(("items", "shards"), [(1, 1), (100, 1), (50, 7), (50, 50), (50, 5000)])
def test_elements_per_block_are_the_shards_that_a_block_touches(items: int, shards: int) -> None:
    dice = random.Random(items * shards)
    throws = 3000
    touched = sum(len({dice.randrange(shards) for _ in range(items)}) for _ in range(throws)) / throws
    assert elements_per_block(items, shards) == pytest.approx(touched, rel=0.02)


@pytest.mark.parametrize(("rows", "shards"), [(300, 50), (1300, 700), (5000, 200)])
def test_the_longest_shard_is_as_long_as_in_simulations(rows: int, shards: int) -> None:
    found = [simulate_longest(rows * shards, shards, seed) for seed in range(8)]
    assert sum(found) / len(found) - 1 == pytest.approx(longest_over_mean(rows, shards) - 1, rel=0.15)


def test_the_simulation_is_that_of_throwing_dice() -> None:
    dice = random.Random(1)
    longest = []
    for _ in range(40):
        lengths = [0] * 40
        for _ in range(40 * 100):
            lengths[dice.randrange(40)] += 1
        longest.append(max(lengths) / 100)
    simulated = [simulate_longest(40 * 100, 40, seed) for seed in range(40)]
    assert sum(simulated) / 40 == pytest.approx(sum(longest) / 40, rel=0.03)


def test_one_shard_has_everything() -> None:
    assert (longest_over_mean(1000, 1), elements_per_block(16_384, 1)) == (1, 1)
    assert simulate_longest(1000, 1) == 1


def test_the_number_of_shards_is_the_planners() -> None:
    """Literal: 1,000,000 images of 99,600 bytes and 400 bytes of keys are 10**11 bytes."""
    assert num_shards(1_000_000, 99_600, 10**9) == 100
    assert num_shards(1_000_000, 99_600, 10**9 + 1) == 100
    assert num_shards(1_000_001, 99_600, 10**9) == 101
    assert num_shards(3, 100, 10**9) == 1


CONSTANTS = Constants(
    block_items=10, block=30, shuffle=20, entry_memory=400, row_cpu=1e-4, image_cpu=0.9e-3, image_get=1,
    shard_writes=10, shard_moves=5, boundary=10, info=3000, info_memory=30_000, info_cpu=1e-3, copy_cpu=1e-6,
)  # fmt: skip


@pytest.mark.parametrize(
    ("machines", "bound_by", "seconds"),
    [
        (Machines(10, 4, 0.05, 0.001, 1e12, 32), "CPU", 1_000_000 * 2e-3 / 40),
        (Machines(10, 4, 0.05, 0, 1e6, 32), "network", 1_000_000 * 100_000 / 1e7),
        (Machines(10, 4, 5.0, 0, 1e12, 1), "latency", 1_000_000 * 5.0 / 40),
    ],
)
def test_the_slowest_resource_decides(machines: Machines, bound_by: str, seconds: float) -> None:
    found = predict(1_000_000, 100_000, 100, CONSTANTS, machines)
    assert found.bound_by == bound_by
    assert found.hours * 3600 == pytest.approx(seconds)
    assert found.requests_per_second == pytest.approx(1_000_000 / seconds)


def test_sums_over_images_and_shards() -> None:
    found = predict(1_000_000, 100_000, 100, CONSTANTS, Machines(connections=64, latency=0.1))
    assert found.requests == 1_000_000 + 100 * 15
    assert (found.materialized, found.shuffled) == (30e6, 20e6)
    assert (found.gathered, found.publish_memory, found.side_input) == (300_000, 3_000_000, 1_000)
    assert found.images_until_full == pytest.approx(2**31 / 3000 * 10_000)
    assert found.publish_seconds_one_by_one == pytest.approx(1 + 0.1 + 50)
    assert found.publish_seconds == pytest.approx(1 + 0.1 + 50 / 64)


def test_a_bill_is_the_sum_of_what_is_paid_for() -> None:
    prices = Prices(core_hour=0.07, gets=4e-7, writes=5e-6, shuffled=1e-11, busy=0.5)
    found = bill(1_000_000, 1000, image_cpu=3.6e-3, shuffle=100, prices=prices)
    assert (found.cpu_hours, found.core_hours) == pytest.approx((1, 2))
    assert found.cores == pytest.approx(0.14)
    assert found.requests == pytest.approx(0.4 + 1000 * (6 * 5e-6 + 3 * 4e-7))
    assert found.shuffle == pytest.approx(0.001)
    assert found.total == pytest.approx(0.14 + 0.4312 + 0.001)
