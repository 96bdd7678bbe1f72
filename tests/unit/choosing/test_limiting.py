"""The sample of --limit, beside fractions and a shuffle in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from beam_tfrecord.conversion.choosing import limiting
from beam_tfrecord.conversion.choosing.limiting import (
    EVERYTHING,
    Cell,
    apportion,
    cell_sketch,
    merge_cells,
    sample_end,
    sample_places,
    sample_size,
)

REJECTS: Cell = ("", "")


def shares(total: int, sizes: dict[Cell, int]) -> Counter[Cell]:
    """The rows that stand first, cell by cell: the k-th of n at (k + 1/2) / n, the first at 0."""
    rows = [
        (Fraction(0) if number == 0 and cell != REJECTS else Fraction(2 * number + 1, 2 * size), -size, cell)
        for cell, size in sizes.items()
        for number in range(size)
    ]
    return Counter(cell for _, _, cell in sorted(rows)[:total])


def test_each_cell_has_the_share_that_the_places_of_its_rows_give_it() -> None:
    rng = random.Random(3)
    for _ in range(300):
        cells: list[Cell] = [("train", name) for name in "abcdefg"[: rng.randint(1, 7)]]
        sizes = {cell: rng.choice([1, 2, 3, 10, rng.randint(1, 200)]) for cell in cells}
        if rng.random() < 0.5:
            sizes[REJECTS] = rng.randint(1, 20)
        total = rng.randint(1, sum(sizes.values()))
        assert Counter({cell: n for cell, n in apportion(total, sizes, REJECTS).items() if n}) == shares(total, sizes)


def test_a_larger_sample_holds_every_smaller_one() -> None:
    sizes: dict[Cell, int] = {("train", "a"): 700, ("train", "b"): 13, ("test", "a"): 60, ("test", "b"): 1, REJECTS: 9}
    before = apportion(1, sizes, REJECTS)
    for total in range(2, sum(sizes.values()) + 1):
        now = apportion(total, sizes, REJECTS)
        assert sum(now.values()) == total
        assert all(now[cell] >= before[cell] for cell in sizes)
        before = now
    assert before == sizes


def test_places_are_those_of_splitmix64_and_each_has_its_own() -> None:
    def mixed(number: int) -> int:
        number = (number + 0x9E3779B97F4A7C15) % 2**64
        number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        number = (number ^ number >> 27) * 0x94D049BB133111EB % 2**64
        return number ^ number >> 31

    assert mixed(0) == 0xE220A8397B1DCDAF  # the first output of the generator with seed 0, as its authors publish it
    numbers = [0, 1, 2**63, 2**64 - 1, *(random.Random(5).getrandbits(64) for _ in range(1000))]
    assert sample_places(np.array(numbers, np.uint64)).tolist() == [mixed(number) for number in numbers]


@pytest.mark.parametrize("most", [None, 40])
def test_a_cell_keeps_the_rows_that_come_first_however_it_was_added_up(most: int | None) -> None:
    rng = random.Random(8)
    orders = [rng.getrandbits(64) for _ in range(300)]
    first = sorted(orders, key=lambda order: int(sample_places(np.array([order], np.uint64))[0]))
    for _ in range(5):
        rng.shuffle(orders)
        cuts = sorted(rng.sample(range(300), 6))
        parts = [orders[a:b] for a, b in zip([0, *cuts], [*cuts, 300], strict=True)]
        merged = merge_cells(
            [
                merge_cells([cell_sketch(part, most) for part in parts[:3]]),
                *(cell_sketch(part, most) for part in parts[3:]),
            ]
        )
        assert merged.count == 300
        end = sample_end(merged, 40)
        assert end.orders is not None
        assert end.orders.tolist() == first[:40]
        assert end.tie is None
        places = sample_places(np.array(orders, np.uint64)).tolist()
        assert {order for order, place in zip(orders, places, strict=True) if place < end.place} == set(first[:40])


def test_a_sample_that_ends_within_the_copies_of_an_id_says_how_many_are_in_it() -> None:
    orders = [7, 7, 7, 9, 9, 11]
    by_place = sorted(set(orders), key=lambda order: int(sample_places(np.array([order], np.uint64))[0]))
    listed = [order for order in by_place for _ in range(orders.count(order))]
    for count in range(1, 6):
        end = sample_end(cell_sketch(orders, None), count)
        last = listed[count - 1]
        is_whole = listed[:count].count(last) == orders.count(last)
        assert end.tie == (None if is_whole else (last, listed[:count].count(last)))
        assert end.count == count
    cut = sample_end(cell_sketch(orders, 2), 2)  # it has seen no more than two of them
    assert cut.tie is None or cut.tie[0] == listed[1]


def test_a_cell_of_millions_is_cut_by_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limiting, "KEPT_HASHES", 100)
    sketch = merge_cells([cell_sketch(range(60), None), cell_sketch(range(60, 200), None)])
    assert sketch.orders is None
    end = sample_end(sketch, 50)
    assert (end.place, end.count, end.orders) == (EVERYTHING // 4, 50, None)


@pytest.mark.parametrize(
    ("limit", "rows", "size"), [(10, 100, 10), (10, 7, 7), (0.1, 100, 10), (0.1, 4, 1), (1.0, 9, 9), (0.5, 5, 3)]
)
def test_a_limit_is_a_number_of_rows_or_a_share_of_them(limit: float, rows: int, size: int) -> None:
    assert sample_size(limit, rows) == size
