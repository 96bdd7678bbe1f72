"""What shards tell, added up in trees of any form."""

from __future__ import annotations

import pickle
import random
import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_tfrecord.conversion.writing.statistics import ImageFacts, ShardStatistics, told_statistics
from beam_tfrecord.core.elements import ShardInfo
from beam_tfrecord.publishing.gathering import Gathered, add_gathered, add_up, gathered_of

LABELS = ("cat", "dog", "ibis")
COUNTS = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(1, 50), max_size=3)


@st.composite
def shards(draw: st.DrawFn) -> list[ShardInfo]:
    """Shards of two splits with all that an info can tell; some have no file, or nothing in it."""
    infos = []
    for split in ("test", "train"):
        for index in range(draw(st.integers(0, 9))):
            labels = draw(st.lists(st.sampled_from(LABELS), max_size=5))
            statistics = ShardStatistics(dict.fromkeys(LABELS, 1))
            for number, label in enumerate(labels):
                statistics.add([ImageFacts(draw(st.integers(1, 99)), 7, 100)], [label], number * 100, 100)
                statistics.note("changed", "rotated")
            rejected, excluded = draw(COUNTS), draw(COUNTS)
            rows = len(labels) + sum(rejected.values()) + sum(excluded.values())
            infos.append(
                ShardInfo(
                    split=split,
                    index=index,
                    path=f"out/{split}-{index}" if labels and draw(st.booleans()) else "",
                    num_records=len(labels),
                    num_bytes=draw(st.integers(0, 2**40)),
                    payload_bytes=draw(st.integers(0, 2**40)),
                    crc32c=f"{index:08x}",
                    fingerprint="0" * 64,
                    num_rows=rows,
                    source_rows=draw(st.integers(0, 2**40)),
                    rejected=rejected,
                    excluded=excluded,
                    warnings=draw(COUNTS),
                    changed=draw(COUNTS),
                    classes=dict(Counter(labels)),
                    formats=draw(COUNTS),
                    rows_by_input={0: rows, draw(st.integers(1, 3)): 1},
                    statistics=statistics.to_json(),
                    exceptions=draw(COUNTS),
                    objects=draw(COUNTS),
                    spellings={draw(st.integers(0, 2)): draw(COUNTS)},
                    owner=draw(st.sampled_from(["", "one", "two"])),
                )
            )
    return infos


def in_a_tree(parts: list[Gathered], shuffler: random.Random) -> Gathered:
    """Added up as an engine may do it: in any order, in branches, pickled between its machines."""
    shuffler.shuffle(parts)
    branches = []
    while parts:
        branches.append(add_up(iter([parts.pop() for _ in range(shuffler.randint(1, len(parts)))])))
    branches = pickle.loads(pickle.dumps(branches))
    while len(branches) > 1:
        branches.append(add_up(branches.pop() for _ in range(shuffler.randint(2, len(branches)))))
    return branches[0] if branches else add_up([])


def told(gathered: Gathered) -> dict[str, Any]:
    values = {name: getattr(gathered, name) for name in Gathered.__slots__}
    values["shards"] = sorted(gathered.shards, key=lambda shard: shard.key)
    values["statistics"] = told_statistics(gathered.statistics, lambda key: f"{key[0]}-{key[1]:05d}")
    return values


@settings(max_examples=80, deadline=None)
@given(shards(), st.randoms(use_true_random=False))
def test_the_form_of_the_tree_does_not_show(infos: list[ShardInfo], shuffler: random.Random) -> None:
    expected = told(add_gathered([gathered_of(info) for info in infos]))
    found = told(in_a_tree([gathered_of(info) for info in infos], shuffler))
    assert found == expected
    assert [repr(found[name]) for name in ("rejected", "formats", "rows_by_input")] == [
        repr(expected[name]) for name in ("rejected", "formats", "rows_by_input")
    ]  # their order too


@settings(max_examples=40, deadline=None)
@given(shards())
def test_sums_are_those_of_the_shards(infos: list[ShardInfo]) -> None:
    found = add_gathered([gathered_of(info) for info in infos])
    assert found.unbalanced == ()
    assert found.num_records == sum(sum(info.classes.values()) for info in infos)
    assert found.num_rows == sum(info.rows_by_input[0] for info in infos)
    for split, counts in found.classes.items():
        assert sum(counts.values()) == sum(info.num_records for info in infos if info.split == split)
    images = found.statistics.get("images", {"bytes": {"count": 0}})
    assert images["bytes"]["count"] == found.num_records
    assert {(shard.split, shard.index, shard.crc32c, shard.has_file) for shard in found.shards} == {
        (info.split, info.index, info.crc32c, info.path != "") for info in infos
    }
    with_warnings = {shard.key for shard in found.shards if shard.has_warnings}
    assert with_warnings == {(info.split, info.index) for info in infos if info.warnings}


def test_places_in_shards_without_a_file_are_not_sampled() -> None:
    statistics = ShardStatistics({"cat": 1})
    statistics.add([ImageFacts(8, 8, 1)], ["cat"], 0, 100)
    infos = [
        ShardInfo("train", index, path, 1, 1, 1, "", "", num_rows=1, statistics=statistics.to_json())
        for index, path in enumerate(("", "out/train-1"))
    ]
    samples = add_gathered([gathered_of(info) for info in infos]).statistics["samples"]
    assert samples["classes"] == {"cat": [(0, ("train", 1), 0, 100)]}


def test_what_is_kept_of_many_shards_grows_by_a_line_for_each() -> None:
    """Not by what they hold: a thousand labels, and digests of pictures of all sizes."""
    labels = {f"label {number}": 1 for number in range(1000)}

    def size(count: int) -> int:
        statistics = ShardStatistics(labels)
        for number, label in enumerate(labels):
            statistics.add([ImageFacts(number + 1, 2 * number + 1, number**2)], [label], number, 100)
        one = ShardInfo("train", 0, "x", 1000, 1, 1, "0" * 8, "", classes=labels, statistics=statistics.to_json())
        parts = [
            gathered_of(replace(one, index=index, crc32c=f"{index:08x}", num_bytes=2**27 + index))
            for index in range(count)
        ]
        return len(pickle.dumps(add_gathered(parts), protocol=5))

    few, many = size(10), size(110)
    assert many - few < 100 * 60
    assert few < 60_000


def test_a_shard_that_lost_a_row_is_named() -> None:
    lossy = ShardInfo("train", 7, "x", 3, 1, 1, "", "", num_rows=5, rejected={"empty_file": 1})
    whole = ShardInfo("train", 8, "x", 5, 1, 1, "", "", num_rows=5)
    parts = [gathered_of(info) for info in (whole, lossy, whole)]
    assert add_gathered(parts).unbalanced == ("shard train-7: 5 rows, 4 told of",)


class Counts(dict[str, int]):
    """Lives as long as the part that holds it."""


@pytest.mark.parametrize("count", [1, 63, 64, 65, 300])
def test_never_more_than_some_are_held(count: int) -> None:
    made: list[weakref.ref[Counts]] = []

    def parts() -> Iterator[Gathered]:
        for index in range(count):
            part = gathered_of(ShardInfo("train", index, "x", 1, 1, 1, "", "", excluded=Counts(), num_rows=1))
            made.append(weakref.ref(part.excluded))
            yield part
            del part
            assert sum(one() is not None for one in made) <= 64

    assert add_up(parts()).num_rows == count
