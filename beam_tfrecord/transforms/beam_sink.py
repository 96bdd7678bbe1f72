"""``--writer beam``: the same records through Beam's own file sink.

The sink decides which record lies in which shard, and the records themselves cross a shuffle, so memory grows with the
data. The planned writer is the default; this one is for runners whose own sink is wanted.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import apache_beam as beam

from beam_tfrecord.conversion.job import Job, plan_job
from beam_tfrecord.conversion.planning.blocks import REJECTS, unpack_block
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan
from beam_tfrecord.conversion.writing.shards import ShardWriter, threads_for
from beam_tfrecord.conversion.writing.staging import staging_folder
from beam_tfrecord.core.elements import ShardInfo
from beam_tfrecord.errors import ConfigError
from beam_tfrecord.publishing.final_names import StagedFile
from beam_tfrecord.publishing.gathering import Gathered
from beam_tfrecord.publishing.near_rows import with_near_rows
from beam_tfrecord.publishing.publish import publish_dataset
from beam_tfrecord.publishing.summary import Summary
from beam_tfrecord.storage import Storage
from beam_tfrecord.storage.lease import owner_of
from beam_tfrecord.tfrecord import read_records
from beam_tfrecord.transforms.counters import EngineProgress, RetryCounts, count_shard
from beam_tfrecord.transforms.gathering import GatherShards
from beam_tfrecord.transforms.planning import PlaceEntries, ShardKey
from beam_tfrecord.transforms.reading import ReadBlocks

CRC_CHUNK = 1 << 20
_COMPRESSION = {
    "none": beam.io.filesystem.CompressionTypes.UNCOMPRESSED,
    "gzip": beam.io.filesystem.CompressionTypes.GZIP,
    "zlib": beam.io.filesystem.CompressionTypes.DEFLATE,
}


@dataclass(frozen=True, slots=True)
class SplitRecord:
    """A serialized record and the split that it belongs to."""

    split: str
    data: bytes


class _EncodeShard(beam.DoFn):
    """The records of a shard's entries one by one, and at last the ShardInfo of all but the file."""

    def __init__(self, job: Job, plan: DatasetPlan, storage: Storage) -> None:
        self._job = job
        self._plan = plan
        self._storage = storage
        self._threads = threads_for(job.config, plan)
        self._retries = RetryCounts(storage)
        self._pool: ThreadPoolExecutor | None = None

    def setup(self) -> None:
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="read-ahead")

    def teardown(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def process(self, element: tuple[ShardKey, Iterable[bytes]]) -> Iterator[SplitRecord | ShardInfo]:
        (split, index), blocks = element
        assert self._pool is not None
        progress = EngineProgress()
        owner = owner_of(self._job.lease)
        writer = ShardWriter(
            self._job.config, self._plan, self._storage, self._pool, self._threads, progress, owner=owner
        )
        for made in writer.records(split, index, itertools.chain.from_iterable(map(unpack_block, blocks))):
            if isinstance(made, ShardInfo):
                count_shard(made, writer.times)
                yield made
            else:
                yield SplitRecord(split, made)
        self._retries.tell()


class _Publish(beam.DoFn):
    def __init__(self, job: Job, plan: DatasetPlan, storage: Storage) -> None:
        self._job = job
        self._plan = plan
        self._storage = storage
        self._retries = RetryCounts(storage)

    def process(self, gathered: Gathered, files: list[StagedFile]) -> Iterator[Summary]:
        ordered = sorted(files, key=lambda file: (file.split, file.path))
        yield publish_dataset(gathered, self._plan, self._job, self._storage, ordered)
        self._retries.tell()


def inspect_file(split: str, path: str, compression: str, storage: Storage) -> StagedFile:
    """What a file holds, found by reading it: Beam's sink does not tell."""
    from google_crc32c import Checksum

    checksum, size = Checksum(), 0
    with storage.open(path) as file:
        for chunk in iter(lambda: file.read(CRC_CHUNK), b""):
            checksum.update(chunk)
            size += len(chunk)
    lengths = []
    if size:
        with storage.open(path) as file:
            lengths = [len(record.data) for record in read_records(file, path, compression)]
    return StagedFile(split, path, len(lengths), size, sum(lengths), checksum.hexdigest().decode())


class ConvertWithBeamSink(beam.PTransform):
    """A prepared job whose records are written by ``beam.io.WriteToTFRecord``: PBegin -> PCollection of one Summary.

    The splits must be known when the graph is built, so all rows are surveyed first, in the launching process.
    """

    def __init__(self, job: Job, storage: Storage) -> None:
        super().__init__()
        output = job.config.output
        if output.resume or output.index or output.array_record:
            raise ConfigError(
                "--writer beam goes with none of --resume, --index and --array_record: use --writer planned"
            )
        self._job = job
        self._storage = storage

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection[Summary]:
        storage, config = self._storage, self._job.config
        job = with_near_rows(self._job, storage)
        plan = plan_job(job, storage)
        made = (
            root
            | "ReadManifests" >> ReadBlocks(config, job.sources, storage, job.choice)
            | "PlaceEntries" >> PlaceEntries(config, root | "Plan" >> beam.Create([plan], reshuffle=False))
            | "GroupByShard" >> beam.GroupByKey()
            | "EncodeShard" >> beam.ParDo(_EncodeShard(job, plan, storage))
        )
        files = []
        for split in sorted(set(plan.splits) - {REJECTS}):
            files.append(
                made | f"WriteSplit[{split}]" >> _WriteSplit(split, plan.splits[split].num_shards, job, storage)
            )
        all_files = (
            files | "AllFiles" >> beam.Flatten()
            if files
            else root | "NoFiles" >> beam.Create([], reshuffle=False).with_output_types(StagedFile)
        )
        return (
            made
            | "KeepShardInfos" >> beam.Filter(lambda item: isinstance(item, ShardInfo)).with_output_types(ShardInfo)
            | "GatherShards" >> GatherShards()
            | "Publish" >> beam.ParDo(_Publish(job, plan, storage), files=beam.pvalue.AsList(all_files))
        )


class _WriteSplit(beam.PTransform):
    def __init__(self, split: str, num_shards: int, job: Job, storage: Storage) -> None:
        super().__init__()
        self._split = split
        self._num_shards = num_shards
        self._compression = job.config.shards.compression
        self._prefix = f"{staging_folder(job.config.output.output)}/shards/{split}"
        self._storage = storage

    def expand(self, made: beam.PCollection[SplitRecord | ShardInfo]) -> beam.PCollection[StagedFile]:
        split, compression, storage = self._split, self._compression, self._storage
        return (
            made
            | "KeepSplit"
            >> beam.Filter(lambda item: isinstance(item, SplitRecord) and item.split == split).with_output_types(
                SplitRecord
            )
            | "TakeBytes" >> beam.Map(lambda record: record.data).with_output_types(bytes)
            | "WriteToTFRecord"
            >> beam.io.WriteToTFRecord(
                self._prefix, num_shards=self._num_shards, compression_type=_COMPRESSION[compression]
            )
            | "InspectFiles"
            >> beam.Map(lambda path: inspect_file(split, path, compression, storage)).with_output_types(StagedFile)
        )
