"""Cutting the records of source files into shards: each record once, in order, shards of equal size."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.errors import ConfigError
from beam_tfrecord.tools.resharding.ranges import Layout, SourceFile, lay_out

LENGTHS = st.lists(st.integers(0, 40), min_size=1, max_size=12).filter(any)


def files_of(lengths: list[int], split: str = "train", source: int = 0) -> list[SourceFile]:
    return [
        SourceFile(source, split, split, f"{split}-{source}-{number}", "", length, 100 * length)
        for number, length in enumerate(lengths)
    ]


def records_of(layout: Layout, split: str = "train") -> list[list[tuple[str, int]]]:
    """(file, record) of each record of each shard."""
    targets = [target for target in layout.targets if target.split == split]
    assert [target.index for target in targets] == list(range(len(targets)))
    return [
        [(segment.uri, number) for segment in target.segments for number in range(segment.start, segment.stop)]
        for target in targets
    ]


def everything(files: list[SourceFile]) -> list[tuple[str, int]]:
    return [(file.uri, number) for file in files for number in range(file.records)]


@given(LENGTHS, st.integers(1, 60))
def test_every_record_lies_in_one_shard_in_its_order(lengths: list[int], count: int) -> None:
    files = files_of(lengths)
    layout = lay_out(files, (("train", count),))
    shards = records_of(layout)
    assert list(itertools.chain(*shards)) == everything(files)
    assert all(shards)
    assert len(shards) == min(count, sum(lengths))
    stated = {file.uri: file.records for file in files}
    assert all(segment.total == stated[segment.uri] for target in layout.targets for segment in target.segments)


@given(LENGTHS, st.integers(1, 60))
def test_shards_differ_by_one_record_at_most(lengths: list[int], count: int) -> None:
    sizes = [len(shard) for shard in records_of(lay_out(files_of(lengths), (("train", count),)))]
    if len(sizes) != len([length for length in lengths if length]):
        assert max(sizes) - min(sizes) <= 1


@given(LENGTHS, st.booleans())
def test_the_same_number_of_shards_keeps_each(lengths: list[int], is_asked: bool) -> None:
    files = [file for file in files_of(lengths) if file.records]
    shards = records_of(lay_out(files, (("train", len(files)),) if is_asked else None))
    assert shards == [everything([file]) for file in files]


@given(LENGTHS, LENGTHS, st.integers(1, 30))
def test_records_of_the_first_input_come_first(first: list[int], second: list[int], count: int) -> None:
    files = [*files_of(first), *files_of(second, source=1)]
    shards = records_of(lay_out(files, (("train", count),)))
    assert list(itertools.chain(*shards)) == everything(files)
    sizes = [len(shard) for shard in shards]
    assert max(sizes) - min(sizes) <= 1  # also for as many shards as there are files


@given(LENGTHS, st.integers(1, 60), st.data())
def test_a_record_is_found_in_its_new_place(lengths: list[int], count: int, data: st.DataObject) -> None:
    files = files_of(lengths)
    layout = lay_out(files, (("train", count),))
    wanted = data.draw(st.integers(0, sum(lengths) - 1))
    shard, record = layout.place("train", wanted)
    assert records_of(layout)[shard][record] == everything(files)[wanted]


def test_a_number_for_all_is_shared_out_by_the_numbers_of_records() -> None:
    files = [*files_of([300, 300]), *files_of([200], "validation")]
    layout = lay_out(files, 8)
    assert [len(shard) for shard in records_of(layout)] == [100] * 6
    assert [len(shard) for shard in records_of(layout, "validation")] == [100] * 2


def test_a_split_that_is_not_named_stays() -> None:
    files = [*files_of([3, 5]), *files_of([2, 7], "validation")]
    layout = lay_out(files, (("train", 4),))
    assert [len(shard) for shard in records_of(layout)] == [2, 2, 2, 2]
    assert [len(shard) for shard in records_of(layout, "validation")] == [2, 7]


def test_the_size_of_a_shard_counts_the_frames() -> None:
    files = files_of([10, 10])  # records of 100 bytes take 116
    assert len(records_of(lay_out(files, None, 580))) == 4
    assert len(records_of(lay_out(files, None, 579))) == 5
    assert len(records_of(lay_out(files, None, 1))) == 20


def test_the_number_of_shards_wins_over_their_size() -> None:
    files = [*files_of([10]), *files_of([10], "validation")]
    layout = lay_out(files, (("train", 2),), 232)
    assert len(records_of(layout)) == 2
    assert len(records_of(layout, "validation")) == 5


def test_a_split_that_is_not_there_is_told() -> None:
    with pytest.raises(ConfigError, match=r"'tran'.*did you mean 'train'"):
        lay_out(files_of([1]), (("tran", 2),))
