"""Writing one shard: entries in order to records in a staged file, and to the ShardInfo that tells of it."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Protocol

from beam_tfrecord.conversion.planning.arranging import DuplicateRule, Placed, arrange
from beam_tfrecord.conversion.planning.blocks import BlockItem
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan
from beam_tfrecord.conversion.writing.array_record_files import write_twin
from beam_tfrecord.conversion.writing.batches import BatchEncoder, EncodedBatch, ReadBatch
from beam_tfrecord.conversion.writing.looking import looking_for
from beam_tfrecord.conversion.writing.read_ahead import ordered_map, ordered_shared_map
from beam_tfrecord.conversion.writing.staged_file import StagedShardFile
from beam_tfrecord.conversion.writing.staging import StagedShard, info_from_json, info_to_json, staged_of, staged_shard
from beam_tfrecord.conversion.writing.statistics import ShardStatistics
from beam_tfrecord.conversion.writing.timing import WorkTimes, waits_of_thread
from beam_tfrecord.core.cores import available_cores
from beam_tfrecord.core.elements import ShardInfo
from beam_tfrecord.datasets.metadata import library_versions
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage, scheme_of

REMOTE_THREADS = 48  # reads that wait for an object store at a time: more than 32 are under way on average
SMALL_TASK = 256 * 1024  # bytes of images in one task of a thread: a task costs as much as encoding a small image
MAX_TASK_ITEMS = 32
SMALL_RECORD = 64 * 1024  # bytes: above it the hash takes longer than all Python
WAITING_TASKS = 32  # that are done, behind one that takes longer
SLOW_READ = 250_000  # nanoseconds: from memory a small file comes in a twentieth of it
WAITING_SHARE = 0.25  # of slow reads that must have waited: on a busy machine others take the time of reads from memory
TASKS_AHEAD = 64  # between two looks at how long a read takes

Prepared = ReadBatch | EncodedBatch
Prepare = Callable[[list[Placed]], Prepared]


class ProgressSink(Protocol):
    """What hears of finished items while a shard is written."""

    def add(self, records: int, rejects: int, bytes_read: int) -> None: ...


@dataclass(frozen=True)
class ShardWriter:
    """Writes shards of one dataset; several threads may call :meth:`write` for different shards.

    pool: threads that read and encode ahead; there are ``threads`` of them. progress: told in the thread that calls.
    times: what the threads spent is added there. owner: as in :class:`.staging.StagedShard`. only_looks: keep what was
    seen of the records, and as what they are known, but not the records.
    """

    config: ConvertConfig
    plan: DatasetPlan
    storage: Storage
    pool: ThreadPoolExecutor
    threads: int
    progress: ProgressSink
    times: WorkTimes = field(default_factory=WorkTimes)
    owner: str = ""
    only_looks: bool = False

    def write(self, split: str, index: int, items: Iterable[BlockItem]) -> ShardInfo:
        """Write the shard of these items, or take over the finished one of an interrupted run (``--resume``)."""
        placed = self._arranged(split, items)
        staged = staged_shard(self.config.output.output, split, index, self.owner)
        fingerprint = shard_fingerprint(placed, self.plan, self.config)
        if self.config.output.resume:
            finished = self._finished(staged, fingerprint)
            if finished is not None:
                self._add_array_record(staged_of(self.config.output.output, finished), finished)
                self.progress.add(finished.num_records, sum(finished.rejected.values()), 0)
                return finished
        statistics = statistics_for(self.plan)
        with StagedShardFile(staged, self.storage, self.config, statistics, keeps_records=not self.only_looks) as file:
            for batch in self._batches(placed):
                started = time.perf_counter_ns()
                file.add(batch)
                self.times.write += time.perf_counter_ns() - started
            info = file.finish(split, index, fingerprint)
        self._add_array_record(staged, info)
        self.storage.write_bytes(staged.info, info_to_json(info))
        return info

    def records(self, split: str, index: int, items: Iterable[BlockItem]) -> Iterator[bytes | ShardInfo]:
        """The records of a shard for another sink to write, and then the info of all but the file."""
        placed = self._arranged(split, items)
        staged = staged_shard(self.config.output.output, split, index, self.owner)
        statistics = statistics_for(self.plan)
        with StagedShardFile(staged, self.storage, self.config, statistics, keeps_records=False) as file:
            for batch in self._batches(placed):
                file.add(batch)
                yield from batch.records
            yield file.finish(split, index, "")

    def _arranged(self, split: str, items: Iterable[BlockItem]) -> list[Placed]:
        plan = self.plan
        rule = DuplicateRule(self.config.output.duplicates, self.config.splits.seed, plan.straddling, plan.sample.ties)
        return arrange(items, split, rule)

    def _finished(self, staged: StagedShard, fingerprint: str) -> ShardInfo | None:
        """The info of the staged shard when it is complete and holds exactly what would be written now."""
        if not self.storage.is_file(staged.info):
            return None
        with self.storage.open(staged.info) as file:
            try:
                info = info_from_json(file.read())
            except ValueError:
                return None
        if info.fingerprint != fingerprint:
            return None
        records = staged_of(self.config.output.output, info).records
        if (
            info.num_records
            and not self.only_looks
            and not (self.storage.is_file(records) and self.storage.size(records) == info.num_bytes)
        ):
            return None
        return info

    def _add_array_record(self, staged: StagedShard, info: ShardInfo) -> None:
        """The same records as an ArrayRecord file, unless an interrupted run made it."""
        if self.config.output.array_record and info.path and not self.storage.is_file(staged.array_record):
            write_twin(info.path, staged.array_record, self.storage, self.config.shards.compression)

    def _batches(self, placed: list[Placed]) -> Iterator[EncodedBatch]:
        """What became of the items, in their order, some at a time."""
        looking = looking_for(self.config, self.plan.survey.rows, self.plan.record_bytes)
        if self.only_looks:
            looking = replace(looking, share=0, takes_names=True)
        encoder = BatchEncoder(
            self.plan.schema, self.config, self.storage.read, self.storage.find_other, looking=looking
        )
        size = self._task_items()
        tasks = (placed[start : start + size] for start in range(0, len(placed), size))
        for prepared in self._prepared(encoder, tasks):
            batch = encoder.finish(prepared)
            self.times.add(batch.times)
            self.progress.add(len(batch.records), len(batch.rejects), batch.bytes_read)
            yield batch

    def _prepared(self, encoder: BatchEncoder, tasks: Iterator[list[Placed]]) -> Iterator[Prepared]:
        """Tasks prepared, in their order: here or by threads, as it is quicker."""
        if has_latency(self.plan):
            return self._ahead(encoder.prepare, tasks)
        is_quick = encoder.is_quick and self.plan.record_bytes <= SMALL_RECORD
        if self.threads == 1 or is_quick:
            return self._here_or_ahead(encoder.prepare, tasks)
        return ordered_shared_map(
            lambda task: self.pool.submit(encoder.prepare, task),
            encoder.prepare,
            tasks,
            max_tasks=self.threads,
            max_waiting=WAITING_TASKS + self.threads,
            max_bytes=self.config.run.read_ahead,
            size_of=_size_of,
        )

    def _here_or_ahead(self, prepare: Prepare, tasks: Iterator[list[Placed]]) -> Iterator[Prepared]:
        """Tasks prepared in this thread as long as reads do not wait; those behind a slow one are prepared ahead."""
        for task in tasks:
            waits = waits_of_thread()
            prepared = prepare(task)
            waits = waits_of_thread() - waits
            yield prepared
            if prepared.times.read > SLOW_READ * len(task) and waits >= WAITING_SHARE * len(task):
                yield from self._ahead(prepare, itertools.islice(tasks, TASKS_AHEAD))

    def _ahead(self, prepare: Prepare, tasks: Iterable[list[Placed]]) -> Iterator[Prepared]:
        """Tasks prepared by the threads of the pool."""
        return ordered_map(
            self.pool,
            prepare,
            tasks,
            max_tasks=2 * self.threads,
            max_bytes=self.config.run.read_ahead,
            size_of=_size_of,
        )

    def _task_items(self) -> int:
        """Few items per task where each read waits for a store, many where a read costs less than a task."""
        if self.plan.schema.has_images and has_latency(self.plan):
            return 1
        return max(1, min(MAX_TASK_ITEMS, int(SMALL_TASK / max(1.0, self.plan.record_bytes))))


def _size_of(prepared: Prepared) -> int:
    return prepared.num_bytes


def statistics_for(plan: DatasetPlan) -> ShardStatistics:
    """Statistics of a shard of a planned dataset, of no record yet."""
    schema = plan.schema
    return ShardStatistics(plan.survey.labels, has_boxes="boxes" in schema.kinds, is_sequence=schema.is_sequence)


def threads_for(config: ConvertConfig, plan: DatasetPlan) -> int:
    """Threads that read ahead: as many as cores where disks answer at once, many where each read waits."""
    if config.run.read_threads is not None:
        return config.run.read_threads
    return REMOTE_THREADS if has_latency(plan) else max(2, available_cores())


def has_latency(plan: DatasetPlan) -> bool:
    """Whether each read waits for an object store or a server, rather than for a disk."""
    return any(scheme_of(sample.uri) not in ("", "file") for sample in plan.survey.sample)


def shard_fingerprint(placed: Iterable[Placed], plan: DatasetPlan, config: ConvertConfig) -> str:
    """Hash of all that decides the bytes of a shard, but for the bytes of the images."""
    digest = hashlib.sha256()
    digest.update(
        f"{library_versions()}\n{config.fingerprint()}\n{config.output.index}\n{config.insight.insight}\n{plan.schema!r}\n".encode()
    )
    for item in placed:
        head = b"%d %d %d %d " % (item.order, item.occurrence, item.reject is not None, len(item.payload))
        digest.update(head + item.payload)
    return digest.hexdigest()
