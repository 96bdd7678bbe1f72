"""How many records a report reads for its pictures."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.report.pictures import Group, SamplePlace, _within_read_budget


def place(number: int, size: int) -> SamplePlace:
    return SamplePlace("train-00000", number, 0, size)


def test_groups_are_served_in_turns_until_the_bytes_are_spent() -> None:
    wanted: dict[Group, list[SamplePlace]] = {
        ("classes", "a"): [place(number, 10) for number in range(5)],
        ("classes", "b"): [place(number, 10) for number in range(10, 12)],
    }
    kept = _within_read_budget(wanted, 50)
    assert [one.record for one in kept["classes", "a"]] == [0, 1, 2]
    assert [one.record for one in kept["classes", "b"]] == [10, 11]


def test_a_large_record_leaves_room_for_smaller_ones_and_the_first_of_a_group_is_always_read() -> None:
    wanted: dict[Group, list[SamplePlace]] = {
        ("classes", "a"): [place(0, 10), place(1, 1000), place(2, 10)],
        ("classes", "b"): [place(3, 10)],
    }
    assert [one.record for one in _within_read_budget(wanted, 30)["classes", "a"]] == [0, 2]
    assert [one.record for one in _within_read_budget(wanted, 0)["classes", "b"]] == [3]


def test_a_record_of_two_groups_is_paid_for_once() -> None:
    wanted: dict[Group, list[SamplePlace]] = {
        ("classes", "a"): [place(0, 10), place(1, 10)],
        ("warnings", "trailing_data"): [place(1, 10), place(0, 10)],
    }
    assert _within_read_budget(wanted, 20) == wanted


@given(st.lists(st.lists(st.integers(1, 50), max_size=6), max_size=5), st.integers(0, 300))
def test_no_more_is_read_than_the_budget_and_the_first_of_each_group(sizes: list[list[int]], budget: int) -> None:
    wanted: dict[Group, list[SamplePlace]] = {
        ("classes", str(group)): [place(100 * group + number, size) for number, size in enumerate(own)]
        for group, own in enumerate(sizes)
    }
    kept = _within_read_budget(wanted, budget)
    assert list(kept) == list(wanted)
    first = sum(own[0] for own in sizes if own)
    assert sum(one.size for places in kept.values() for one in places) <= max(budget, first)
    for group, places in kept.items():
        assert places[:1] == wanted[group][:1]
        assert set(places) <= set(wanted[group])
