from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.manifests import gathering
from beam_tfrecord.manifests.gathering import Groups


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers())), st.sampled_from([1, 100, 2**20]))
def test_items_come_back_by_key_in_order_whether_they_spilled_or_not(items: list[tuple[str, int]], limit: int) -> None:
    expected: dict[str, list[int]] = {}
    whole, gathering.IN_MEMORY = gathering.IN_MEMORY, limit
    try:
        with Groups() as groups:
            for key, item in items:
                groups.add(key, item)
                expected.setdefault(key, []).append(item)
            assert groups.left() == list(expected)
            assert {key: groups.take(key) for key in groups.left()} == expected
            assert groups.left() == []
    finally:
        gathering.IN_MEMORY = whole


def test_items_can_be_added_after_some_were_taken() -> None:
    with Groups() as groups:
        groups.add("a", 1)
        assert "a" in groups
        assert groups.take("a") == [1]
        assert "a" not in groups
        assert groups.take("a") == []
        groups.add("b", {"x": 2})
        groups.add("b", None)
        assert groups.take("b") == [{"x": 2}, None]


def test_the_temporary_file_is_gone_afterwards() -> None:
    with Groups() as groups:
        groups.add("a", 1)
    with pytest.raises(ValueError, match="closed"):
        groups.add("a", 2)
