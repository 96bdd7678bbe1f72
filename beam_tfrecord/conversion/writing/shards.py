"""Writing one shard: entries in order to records in a staged file, and to the ShardInfo that tells of it."""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

from beam_tfrecord.conversion.helpers import Tell
from beam_tfrecord.conversion.planning.arranging import DuplicateRule, Placed, arrange
from beam_tfrecord.conversion.planning.blocks import BlockItem, unpack_entry
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan
from beam_tfrecord.conversion.shared_work import HelperPool
from beam_tfrecord.conversion.writing.array_record_files import write_twin
from beam_tfrecord.conversion.writing.read_ahead import ordered_map, ordered_shared_map
from beam_tfrecord.conversion.writing.records import STAGE, EncodedRecord, RecordEncoder
from beam_tfrecord.conversion.writing.staged_file import Outcome, StagedShardFile
from beam_tfrecord.conversion.writing.staging import StagedShard, info_from_json, info_to_json, staged_shard
from beam_tfrecord.conversion.writing.statistics import ShardStatistics
from beam_tfrecord.conversion.writing.timing import WorkTimes
from beam_tfrecord.core.elements import Finding, RejectedRow, ShardInfo
from beam_tfrecord.datasets.metadata import library_versions
from beam_tfrecord.errors import ElementError
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage, scheme_of

SMALL_TASK = 256 * 1024  # bytes of images in one task of a thread: a task costs as much as encoding a small image
MAX_TASK_ITEMS = 32
MAX_HELPED_ITEMS = 128
HELPED_TASK = 1024 * 1024  # of a helper, which gets its task and gives records back over a pipe
WAITING_TASKS = 32  # that are done, behind one that takes longer
SLOW_READ = 100_000  # nanoseconds: from memory a small file comes in a tenth of it
TASKS_AHEAD = 64  # between two looks at how long a read takes


Done = tuple[list[Outcome], WorkTimes]
PackedDone = tuple[list[tuple[Any, ...]], WorkTimes]
Run = Callable[[list[Placed]], Done]


class ProgressSink(Protocol):
    """What hears of finished items while a shard is written."""

    def add(self, records: int, rejects: int, bytes_read: int) -> None: ...


@dataclass
class EncodeItems:
    """Reads and encodes some items of one dataset, in whatever process it finds itself."""

    config: ConvertConfig
    plan: DatasetPlan
    storage: Storage

    @functools.cached_property
    def _encoder(self) -> RecordEncoder:
        return RecordEncoder(self.plan.schema, self.config, self.storage.read)

    def here(self, items: list[Placed]) -> Done:
        """What became of the items, and the time that it took."""
        times, encoder = WorkTimes(), self._encoder
        return [encode_placed(item, encoder, times) for item in items], times

    def __call__(self, packed: list[tuple[Any, ...]], tell: Tell) -> PackedDone:
        """:meth:`here` as a helper does it."""
        outcomes, times = self.here([Placed._make(item) for item in packed])
        return [(*one[1:4], one.record and tuple(one.record), one.reject) for one in outcomes], times


def encoding_pool(encode: EncodeItems, count: int) -> HelperPool[list[Placed], Done]:
    """Helpers that encode items. Plain tuples go to and fro: to pickle named ones takes several times as long."""

    def unpacked(items: list[Placed], returned: PackedDone) -> Done:
        told, times = returned
        outcomes = [
            Outcome(item, origin, uri, rows, None if record is None else EncodedRecord._make(record), reject)
            for item, (origin, uri, rows, record, reject) in zip(items, told, strict=True)
        ]
        return outcomes, times

    return HelperPool(encode, count, lambda items: [tuple(item) for item in items], unpacked)


@dataclass(frozen=True)
class ShardWriter:
    """Writes shards of one dataset; several threads may call :meth:`write` for different shards.

    pool: threads that read and encode ahead; there are ``threads`` of them. progress: told in the thread that calls.
    times: what the threads spent is added there. shares_cores: other processes keep the other cores busy, so that
    threads are of use only where reads wait. helpers: processes that encode records of these shards.
    """

    config: ConvertConfig
    plan: DatasetPlan
    storage: Storage
    pool: ThreadPoolExecutor
    threads: int
    progress: ProgressSink
    times: WorkTimes = field(default_factory=WorkTimes)
    shares_cores: bool = False
    helpers: HelperPool[list[Placed], Done] | None = None

    def write(self, split: str, index: int, items: Iterable[BlockItem]) -> ShardInfo:
        """Write the shard of these items, or take over the finished one of an interrupted run (``--resume``)."""
        placed = self._arranged(split, items)
        staged = staged_shard(self.config.output.output, split, index)
        fingerprint = shard_fingerprint(placed, self.plan, self.config)
        if self.config.output.resume:
            finished = self._finished(staged, fingerprint)
            if finished is not None:
                self._add_array_record(staged, finished)
                self.progress.add(finished.num_records, finished.num_rows - finished.num_records, 0)
                return finished
        with StagedShardFile(staged, self.storage, self.config, statistics_for(self.plan)) as file:
            for outcomes in self._outcomes(placed):
                with self.times.writing():
                    for outcome in outcomes:
                        file.add(outcome)
            info = file.finish(split, index, fingerprint)
        self._add_array_record(staged, info)
        self.storage.write_bytes(staged.info, info_to_json(info))
        return info

    def records(self, split: str, index: int, items: Iterable[BlockItem]) -> Iterator[bytes | ShardInfo]:
        """The records of a shard for another sink to write, and then the info of all but the file."""
        placed = self._arranged(split, items)
        staged = staged_shard(self.config.output.output, split, index)
        statistics = statistics_for(self.plan)
        with StagedShardFile(staged, self.storage, self.config, statistics, keeps_records=False) as file:
            for outcome in itertools.chain.from_iterable(self._outcomes(placed)):
                file.add(outcome)
                if outcome.record is not None:
                    yield outcome.record.data
            yield file.finish(split, index, "")

    def _arranged(self, split: str, items: Iterable[BlockItem]) -> list[Placed]:
        rule = DuplicateRule(self.config.output.duplicates, self.config.splits.seed, self.plan.straddling)
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
        if info.num_records and not (
            self.storage.is_file(staged.records) and self.storage.size(staged.records) == info.num_bytes
        ):
            return None
        return info

    def _add_array_record(self, staged: StagedShard, info: ShardInfo) -> None:
        """The same records as an ArrayRecord file, unless an interrupted run made it."""
        if self.config.output.array_record and info.path and not self.storage.is_file(staged.array_record):
            write_twin(info.path, staged.array_record, self.storage, self.config.shards.compression)

    def _outcomes(self, placed: list[Placed]) -> Iterator[list[Outcome]]:
        """What became of the items, in their order, some at a time."""
        encode = EncodeItems(self.config, self.plan, self.storage)
        size = self._task_items()
        tasks = (placed[start : start + size] for start in range(0, len(placed), size))
        for outcomes, times in self._done(encode, tasks):
            self.times.add(times)
            rejects = sum(outcome.record is None for outcome in outcomes)
            bytes_read = sum(outcome.record.bytes_read for outcome in outcomes if outcome.record)
            self.progress.add(len(outcomes) - rejects, rejects, bytes_read)
            yield outcomes

    def _done(self, encode: EncodeItems, tasks: Iterator[list[Placed]]) -> Iterator[Done]:
        """Tasks done, in their order."""
        if self.helpers:
            under_way = 3 * len(self.helpers)
            return ordered_shared_map(
                self.helpers.submit,
                encode.here,
                tasks,
                max_tasks=under_way,
                max_waiting=WAITING_TASKS + under_way,
                max_bytes=self.config.run.read_ahead,
                size_of=_size_of,
            )
        return self._here_or_ahead(encode.here, tasks) if self.shares_cores else self._ahead(encode.here, tasks)

    def _here_or_ahead(self, run: Run, tasks: Iterator[list[Placed]]) -> Iterator[Done]:
        """Tasks done in this thread as long as reads do not wait; those behind a slow one are done ahead."""
        for task in tasks:
            done = run(task)
            yield done
            if done[1].read > SLOW_READ * len(task):
                yield from self._ahead(run, itertools.islice(tasks, TASKS_AHEAD))

    def _ahead(self, run: Run, tasks: Iterable[list[Placed]]) -> Iterator[Done]:
        """Tasks done by the threads of the pool."""
        return ordered_map(
            self.pool,
            run,
            tasks,
            max_tasks=2 * self.threads,
            max_bytes=self.config.run.read_ahead,
            size_of=_size_of,
        )

    def _task_items(self) -> int:
        """Few items per task where each read waits for a store, many where a read costs less than a task."""
        if self.plan.schema.has_images and has_latency(self.plan):
            return 1
        task, most = (HELPED_TASK, MAX_HELPED_ITEMS) if self.helpers else (SMALL_TASK, MAX_TASK_ITEMS)
        return max(1, min(most, int(task / max(1.0, self.plan.record_bytes))))


def _size_of(done: Done) -> int:
    """Bytes of the records."""
    return sum(len(outcome.record.data) for outcome in done[0] if outcome.record)


def statistics_for(plan: DatasetPlan) -> ShardStatistics:
    """Statistics of a shard of a planned dataset, of no record yet."""
    schema = plan.schema
    return ShardStatistics(plan.survey.labels, has_boxes="boxes" in schema.kinds, is_sequence=schema.is_sequence)


def has_latency(plan: DatasetPlan) -> bool:
    """Whether each read waits for an object store or a server, rather than for a disk."""
    return any(scheme_of(sample.uri) not in ("", "file") for sample in plan.survey.sample)


def encode_placed(placed: Placed, encoder: RecordEncoder, times: WorkTimes) -> Outcome:
    """The record of an item, or the reject that says why there is none. The time that it took is added to ``times``."""
    entry = unpack_entry(placed.payload)
    if isinstance(entry, RejectedRow):
        return Outcome(placed, entry.finding.origin, entry.finding.uri, entry.source_rows, None, entry.finding)
    uri = entry.uri or (entry.frames[0].uri if entry.frames else "")
    record = None
    reject = placed.reject
    if reject is None:
        try:
            record = encoder.encode(entry, placed.occurrence, times)
        except ElementError as error:
            reject = Finding(entry.origin, uri, STAGE, error.code, error.message)
    return Outcome(placed, entry.origin, uri, entry.source_rows, record, reject)


def shard_fingerprint(placed: Iterable[Placed], plan: DatasetPlan, config: ConvertConfig) -> str:
    """Hash of all that decides the bytes of a shard, but for the bytes of the images."""
    digest = hashlib.sha256()
    digest.update(f"{library_versions()}\n{config.fingerprint()}\n{config.output.index}\n{plan.schema!r}\n".encode())
    for item in placed:
        digest.update(b"%d %d %d " % (item.order, item.occurrence, item.reject is not None))
        digest.update(hashlib.sha256(item.payload).digest())
    return digest.hexdigest()
