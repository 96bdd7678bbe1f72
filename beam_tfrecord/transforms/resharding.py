"""Resharding as a pipeline: one element for each shard of the result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import apache_beam as beam
from apache_beam.metrics import Metrics

from beam_tfrecord.conversion.writing.progress import PROGRESS
from beam_tfrecord.core.elements import ShardInfo
from beam_tfrecord.images.memory import keep_large_buffers
from beam_tfrecord.publishing.gathering import Gathered
from beam_tfrecord.storage import Storage
from beam_tfrecord.tools.resharding.job import ReshardJob, counted, plan_targets
from beam_tfrecord.tools.resharding.publishing import publish_result
from beam_tfrecord.tools.resharding.ranges import SourceFile, Target
from beam_tfrecord.tools.resharding.shards import count_records, write_target
from beam_tfrecord.transforms.counters import count_shard
from beam_tfrecord.transforms.gathering import GatherShards
from beam_tfrecord.transforms.spreading import Spread, SpreadList

NAMESPACE = "beam_tfrecord"
PUBLISHED = "published_"  # starts the name of the counter of a split


@dataclass(frozen=True)
class Resharded:
    """What was published. shards: how many files. records: by split."""

    records: dict[str, int]
    shards: int


class _CountRecords(beam.DoFn):
    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def process(self, file: SourceFile) -> Iterable[SourceFile]:
        yield count_records(file, self._storage)


class _PlanTargets(beam.DoFn):
    def __init__(self, job: ReshardJob) -> None:
        self._job = job

    def process(self, start: bytes, files: list[SourceFile]) -> Iterable[tuple[int, Target]]:
        job = counted(self._job, files)
        return enumerate(plan_targets(job, job.files))


class _WriteTarget(beam.DoFn):
    def __init__(self, job: ReshardJob, storage: Storage) -> None:
        self._job = job
        self._storage = storage

    def setup(self) -> None:
        keep_large_buffers()

    def process(self, target: Target) -> Iterable[ShardInfo]:
        info = write_target(target, self._job, self._storage, PROGRESS)
        count_shard(info)
        yield info


class _Publish(beam.DoFn):
    def __init__(self, job: ReshardJob, storage: Storage) -> None:
        self._job = job
        self._storage = storage

    def process(self, gathered: Gathered, files: list[SourceFile]) -> Iterable[Resharded]:
        job = counted(self._job, files)
        shards = publish_result(gathered, job, self._storage)
        records: dict[str, int] = {}
        for shard in shards:
            records[shard.staged.split] = records.get(shard.staged.split, 0) + shard.staged.num_records
        for split, number in records.items():
            Metrics.counter(NAMESPACE, f"{PUBLISHED}{split}").inc(number)
        yield Resharded(records, len(shards))


class ReshardDataset(beam.PTransform):
    """Writes datasets anew: PBegin -> PCollection of one :class:`Resharded`.

    job: what :func:`beam_tfrecord.tools.resharding.job.prepare_job` made, the output folder cleared. Raises
    DatasetError
    for a damaged input.
    """

    def __init__(self, job: ReshardJob, storage: Storage | None = None) -> None:
        super().__init__()
        self._job = job
        self._storage = storage or Storage()

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection[Resharded]:
        job, storage = self._job, self._storage
        files = root | "SpreadFiles" >> SpreadList(job.files, SourceFile)
        if not job.is_counted:
            files = files | "CountRecords" >> beam.ParDo(_CountRecords(storage)).with_output_types(SourceFile)
        gathered = beam.pvalue.AsList(files)
        small = replace(job, sources=())  # all that a worker needs is in its target
        return (
            root
            | "Start" >> beam.Impulse()
            | "PlanShards" >> beam.ParDo(_PlanTargets(job), gathered).with_output_types(tuple[int, Target])
            | "SpreadShards" >> Spread(Target)
            | "WriteShard" >> beam.ParDo(_WriteTarget(small, storage)).with_output_types(ShardInfo)
            | "GatherShards" >> GatherShards()
            | "Publish" >> beam.ParDo(_Publish(job, storage), files=gathered).with_output_types(Resharded)
        )
