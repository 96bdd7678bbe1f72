"""The sample of a dataset and what is told of it."""

from __future__ import annotations

import gzip
import itertools
import lzma
import zlib
from pathlib import Path

import pytest

from beam_tfrecord.datasets.facts import DatasetFacts, facts_from
from beam_tfrecord.datasets.metadata import PublishedShard
from beam_tfrecord.datasets.published import read_conversion
from beam_tfrecord.storage import Storage
from beam_tfrecord.tools.packing.measuring import chosen_shards, measure, take_sample
from tests.handmade import small_dataset
from tests.tiny_reader import frame, read_shard


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, DatasetFacts, list[Path]]:
    made = small_dataset(tmp_path_factory.mktemp("dataset") / "out")
    facts = facts_from(read_conversion(str(made.folder), Storage()))
    files = [made.folder / shard.file for split in sorted(facts.splits) for shard in facts.splits[split]]
    return made.folder, facts, files


def test_a_small_dataset_is_measured_as_a_whole(dataset: tuple[Path, DatasetFacts, list[Path]]) -> None:
    folder, facts, files = dataset
    sample = take_sample(str(folder), facts, Storage())
    assert sample.data == b"".join(path.read_bytes() for path in files)
    assert sample.is_all
    assert sample.total_bytes == len(sample.data)
    sizes = {size.codec: size for size in measure(sample)}
    assert list(sizes) == ["none", "gzip", "zlib", "xz"]
    assert sizes["zlib"].packed_bytes == len(zlib.compress(sample.data, 6))
    assert sizes["gzip"].packed_bytes == len(gzip.compress(sample.data, 6, mtime=0))
    assert sizes["xz"].packed_bytes == len(lzma.compress(sample.data, preset=6))
    assert sizes["none"].ratio == 1
    assert all(size.estimate == size.packed_bytes for size in sizes.values())


def test_a_sample_is_bounded_and_reaches_all_shards(dataset: tuple[Path, DatasetFacts, list[Path]]) -> None:
    folder, facts, files = dataset
    largest = max(len(record) + 16 for path in files for record in read_shard(path))
    limit = len(files) * largest
    sample = take_sample(str(folder), facts, Storage(), limit)
    assert len(sample.data) <= limit
    assert not sample.is_all
    assert all(frame(read_shard(path)[0]) in sample.data for path in files)
    assert sample.total_records == sum(len(read_shard(path)) for path in files)
    assert take_sample(str(folder), facts, Storage(), limit) == sample


def test_sizes_are_extrapolated_and_speeds_come_from_the_clock(dataset: tuple[Path, DatasetFacts, list[Path]]) -> None:
    folder, facts, files = dataset
    sample = take_sample(str(folder), facts, Storage(), 1)
    assert sample.records == len(files)  # one of each at least
    ticks = itertools.count(0, 2)
    sizes = measure(sample, clock=lambda: float(next(ticks)))
    whole = sum(path.stat().st_size for path in files)
    for size in sizes:
        assert size.estimate == pytest.approx(size.packed_bytes / len(sample.data) * whole, abs=1)
        assert size.pack_speed == size.unpack_speed == len(sample.data) / 2


def test_shards_are_taken_evenly() -> None:
    shards = [PublishedShard(str(number), 1, 1, 1, "") for number in range(100)]
    assert [int(shard.file) for shard in chosen_shards(shards, 5)] == [0, 20, 40, 60, 80]
    assert chosen_shards(shards[:3], 5) == shards[:3]
