"""Writing one shard: entries in order to records in a staged file, and to the ShardInfo that tells of it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from beam_tfrecord._version import __version__
from beam_tfrecord.arranging import DuplicateRule, Placed, arrange
from beam_tfrecord.array_record_files import write_twin
from beam_tfrecord.blocks import BlockItem, unpack_entry
from beam_tfrecord.config import ConvertConfig
from beam_tfrecord.elements import Finding, RejectedRow, ShardInfo
from beam_tfrecord.errors import ElementError
from beam_tfrecord.metadata import finding_line
from beam_tfrecord.planning import DatasetPlan
from beam_tfrecord.progress import Progress
from beam_tfrecord.read_ahead import ordered_map
from beam_tfrecord.records import STAGE, EncodedRecord, RecordEncoder
from beam_tfrecord.staging import StagedShard, info_from_json, info_to_json, staged_shard
from beam_tfrecord.statistics import ShardStatistics
from beam_tfrecord.storage import Storage, public_uri, scheme_of
from beam_tfrecord.tfrecord import RecordWriter

SMALL_TASK = 256 * 1024  # bytes of images in one task of a thread: a task costs as much as encoding a small image
MAX_TASK_ITEMS = 32
WRITE_BUFFER = 1 << 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one item: a record or a reject."""

    placed: Placed
    origin: str
    uri: str
    source_rows: int
    record: EncodedRecord | None
    reject: Finding | None


@dataclass(frozen=True)
class ShardWriter:
    """Writes shards of one dataset; several threads may call :meth:`write` for different shards.

    pool: threads that read and encode ahead. task_items: entries per task.
    """

    config: ConvertConfig
    plan: DatasetPlan
    storage: Storage
    pool: ThreadPoolExecutor
    threads: int
    progress: Progress

    def write(self, split: str, index: int, items: Iterable[BlockItem]) -> ShardInfo:
        """Write the shard of these items, or take over the finished one of an interrupted run (``--resume``)."""
        rule = DuplicateRule(self.config.output.duplicates, self.config.splits.seed, self.plan.straddling)
        placed = arrange(items, split, rule)
        staged = staged_shard(self.config.output.output, split, index)
        fingerprint = shard_fingerprint(placed, self.plan, self.config)
        if self.config.output.resume:
            finished = self._finished(staged, fingerprint)
            if finished is not None:
                self._add_array_record(staged, finished)
                self.progress.add(finished.num_records, finished.num_rows - finished.num_records, 0)
                return finished
        with StagedShardFile(staged, self.storage, self.config, statistics_for(self.plan)) as file:
            for outcome in self._outcomes(placed):
                file.add(outcome)
            info = file.finish(split, index, fingerprint)
        self._add_array_record(staged, info)
        self.storage.write_bytes(staged.info, info_to_json(info))
        return info

    def records(self, split: str, index: int, items: Iterable[BlockItem]) -> Iterator[bytes | ShardInfo]:
        """The records of a shard for another sink to write, and then the info of all but the file."""
        rule = DuplicateRule(self.config.output.duplicates, self.config.splits.seed, self.plan.straddling)
        placed = arrange(items, split, rule)
        staged = staged_shard(self.config.output.output, split, index)
        statistics = statistics_for(self.plan)
        with StagedShardFile(staged, self.storage, self.config, statistics, keeps_records=False) as file:
            for outcome in self._outcomes(placed):
                file.add(outcome)
                if outcome.record is not None:
                    yield outcome.record.data
            yield file.finish(split, index, "")

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

    def _outcomes(self, placed: list[Placed]) -> Iterator[Outcome]:
        encoder = RecordEncoder(self.plan.schema, self.config, self.storage.read)
        size = self._task_items()
        tasks = (placed[start : start + size] for start in range(0, len(placed), size))

        def run(task: list[Placed]) -> list[Outcome]:
            return [encode_placed(item, encoder) for item in task]

        for outcomes in ordered_map(
            self.pool,
            run,
            tasks,
            max_tasks=2 * self.threads,
            max_bytes=self.config.run.read_ahead,
            size_of=lambda done: sum(len(outcome.record.data) for outcome in done if outcome.record),
        ):
            rejects = sum(outcome.record is None for outcome in outcomes)
            bytes_read = sum(outcome.record.bytes_read for outcome in outcomes if outcome.record)
            self.progress.add(len(outcomes) - rejects, rejects, bytes_read)
            yield from outcomes

    def _task_items(self) -> int:
        """Few items per task where each read waits for a store, many where a read costs less than a task."""
        if self.plan.schema.has_images and has_latency(self.plan):
            return 1
        return max(1, min(MAX_TASK_ITEMS, int(SMALL_TASK / max(1.0, self.plan.record_bytes))))


def statistics_for(plan: DatasetPlan) -> ShardStatistics:
    """Statistics of a shard of a planned dataset, of no record yet."""
    schema = plan.schema
    return ShardStatistics(plan.survey.labels, has_boxes="boxes" in schema.kinds, is_sequence=schema.is_sequence)


def has_latency(plan: DatasetPlan) -> bool:
    """Whether each read waits for an object store or a server, rather than for a disk."""
    return any(scheme_of(sample.uri) not in ("", "file") for sample in plan.survey.sample)


def encode_placed(placed: Placed, encoder: RecordEncoder) -> Outcome:
    """The record of an item, or the reject that says why there is none."""
    entry = unpack_entry(placed.payload)
    if isinstance(entry, RejectedRow):
        return Outcome(placed, entry.finding.origin, entry.finding.uri, entry.source_rows, None, entry.finding)
    uri = entry.uri or (entry.frames[0].uri if entry.frames else "")
    record = None
    reject = placed.reject
    if reject is None:
        try:
            record = encoder.encode(entry, placed.occurrence)
        except ElementError as error:
            reject = Finding(entry.origin, uri, STAGE, error.code, error.message)
    return Outcome(placed, entry.origin, uri, entry.source_rows, record, reject)


def shard_fingerprint(placed: Iterable[Placed], plan: DatasetPlan, config: ConvertConfig) -> str:
    """Hash of all that decides the bytes of a shard, but for the bytes of the images."""
    digest = hashlib.sha256()
    digest.update(f"{__version__}\n{config.fingerprint()}\n{config.output.index}\n{plan.schema!r}\n".encode())
    for item in placed:
        digest.update(b"%d %d %d " % (item.order, item.occurrence, item.reject is not None))
        digest.update(hashlib.sha256(item.payload).digest())
    return digest.hexdigest()


@dataclass
class StagedShardFile:
    """The files of a shard while they are written, under names of their own; :meth:`finish` gives them their staged
    names.

    Two workers may write the same shard at the same time (a retried bundle): each has its own files, and the last to
    finish wins with the same bytes. Without ``keeps_records`` another sink writes the records, and only what there is
    to tell of them is kept here.
    """

    staged: StagedShard
    storage: Storage
    config: ConvertConfig
    statistics: ShardStatistics
    keeps_records: bool = True
    _attempt: str = field(default_factory=lambda: f"{os.getpid()}-{uuid.uuid4().hex[:8]}")
    _open: dict[str, BinaryIO] = field(default_factory=dict)
    _writer: RecordWriter | None = None
    _counts: dict[str, Counter[str]] = field(
        default_factory=lambda: {name: Counter() for name in ("rejected", "warnings", "changed", "classes", "formats")}
    )
    _by_input: Counter[int] = field(default_factory=Counter)
    _rows: int = 0
    _records: int = 0
    _source_rows: int = 0
    _bytes_read: int = 0

    def __enter__(self) -> StagedShardFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is not None:
            self._abandon()

    def add(self, outcome: Outcome) -> None:
        """Append the record or the reject of an item."""
        self._rows += 1
        self._source_rows += outcome.source_rows
        self._by_input[outcome.placed.source] += 1
        if outcome.record is None:
            assert outcome.reject is not None
            self._counts["rejected"][outcome.reject.code] += 1
            self._tell(self.staged.rejects, outcome.reject)
            return
        record = outcome.record
        self._records += 1
        offset, size = self._append(record.data) if self.keeps_records else (0, 0)
        self.statistics.add(record.facts, record.labels, offset, size)
        self._line(self.staged.items, item_line(record.content, outcome.origin, public_uri(outcome.uri)))
        for warning in (*outcome.placed.warnings, *record.warnings):
            self._counts["warnings"][warning.code] += 1
            self.statistics.note("warnings", warning.code)
            self._tell(self.staged.warnings, warning)
        for reason in record.changed:
            self._counts["changed"][reason] += 1
            self.statistics.note("changed", reason)
        self._counts["classes"].update(record.labels)
        self._counts["formats"].update(record.image_formats)
        self._bytes_read += record.bytes_read

    def _append(self, data: bytes) -> tuple[int, int]:
        if self._writer is None:
            self._writer = RecordWriter(self._file(self.staged.records), self.config.shards.compression)
        offset, size = self._writer.append(data)
        if self.config.output.index:
            self._line(self.staged.index_file, f"{offset} {size}\n")
        return offset, size

    def finish(self, split: str, index: int, fingerprint: str) -> ShardInfo:
        """Close the files, give them their staged names and tell what they hold."""
        if self._writer is not None:
            self._writer.finish()
        stale = {
            self.staged.rejects,
            self.staged.warnings,
            self.staged.items,
            self.staged.index_file,
            self.staged.array_record,
            self.staged.records,
        }
        for name, file in self._open.items():
            file.close()
            self.storage.rename(self._temporary(name), name)
        self.storage.delete(sorted(stale - set(self._open)))
        writer = self._writer
        return ShardInfo(
            split=split,
            index=index,
            path=self.staged.records if writer else "",
            num_records=self._records,
            num_bytes=writer.num_bytes if writer else 0,
            payload_bytes=writer.payload_bytes if writer else 0,
            crc32c=writer.crc32c if writer else "",
            fingerprint=fingerprint,
            num_rows=self._rows,
            source_rows=self._source_rows,
            bytes_read=self._bytes_read,
            rows_by_input=dict(sorted(self._by_input.items())),
            statistics=self.statistics.to_json(),
            **{name: dict(sorted(counts.items())) for name, counts in self._counts.items()},
        )

    def _temporary(self, name: str) -> str:
        return f"{name}.{self._attempt}.tmp"

    def _file(self, name: str) -> BinaryIO:
        if name not in self._open:
            self._open[name] = self.storage.open_write(self._temporary(name))
        return self._open[name]

    def _line(self, name: str, text: str) -> None:
        self._file(name).write(text.encode("utf-8", "surrogateescape"))

    def _tell(self, name: str, finding: Finding) -> None:
        self._line(name, finding_line(replace(finding, uri=public_uri(finding.uri))))

    def _abandon(self) -> None:
        """Leave nothing behind when writing failed; the failure itself goes on to the caller."""
        for name, file in self._open.items():
            with contextlib.suppress(OSError):
                file.close()
            with contextlib.suppress(OSError):
                self.storage.delete([self._temporary(name)])


def item_line(content: bytes, origin: str, uri: str) -> str:
    """A line of the items sidecar: content hash (sixteen hex digits, or none), origin and uri, separated by tabs."""
    clean: Callable[[str], str] = lambda text: text.replace("\t", " ").replace("\n", " ")  # noqa: E731
    return f"{content.hex()}\t{clean(origin)}\t{clean(uri)}\n"
