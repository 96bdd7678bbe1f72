"""One file of records, gone through from its first byte to its last."""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import BinaryIO, cast

from beam_tfrecord.conversion.writing.progress import Progress
from beam_tfrecord.conversion.writing.read_ahead import ordered_map
from beam_tfrecord.datasets.shard_files import ShardFile
from beam_tfrecord.storage import Storage, name_of
from beam_tfrecord.tfrecord import (
    FRAME_SIZE,
    INDEX_SUFFIX,
    Record,
    RecordFault,
    batches,
    detect_compression,
    scan_records,
)
from beam_tfrecord.tools.verifying.agreement import Agreement, Place, no_message_cause
from beam_tfrecord.tools.verifying.faults import Fault, FaultCounts, FaultLog, Problem
from beam_tfrecord.tools.verifying.measured import MeasuredFile
from beam_tfrecord.tools.verifying.records import NOT_A_MESSAGE, CheckedRecord, RecordRules
from beam_tfrecord.tools.verifying.twins import COMPARED, SKIPPED, can_compare, open_twin, twin_of

# ---------------------------------------------------------------------------------------------------------------------
# Whether the index file beside a shard leads to its records.


class IndexComparison:
    """The index file of a shard, compared line by line with the records as they are found."""

    def __init__(self, lines: Iterator[bytes], name: str) -> None:
        self._lines = lines
        self._name = name
        self._trouble = ""

    @classmethod
    def open(cls, uri: str, storage: Storage) -> IndexComparison | None:
        """The comparison for a shard; None when it has no index file."""
        if not storage.is_file(uri + INDEX_SUFFIX):
            return None
        return cls(_lines_of(uri + INDEX_SUFFIX, storage), uri)

    def compare(self, record: Record, size: int) -> None:
        """Compare the next line with a record of ``size`` bytes."""
        expected = f"{record.offset} {size + FRAME_SIZE}"
        found = next(self._lines, b"nothing").decode("ascii", "backslashreplace").rstrip("\r\n")
        if found != expected and not self._trouble:
            self._trouble = f"line {record.index + 1} of its index file is {found!r}, but must be {expected!r}"

    def finish(self, log: FaultLog) -> None:
        """Tell what was wrong, after the last record."""
        if not self._trouble and next(self._lines, None) is not None:
            self._trouble = "its index file has more lines than there are records"
        if self._trouble:
            log.add(Problem("wrong_index", f"{self._trouble}; write it anew with beam-tfrecord index"))


def _lines_of(uri: str, storage: Storage) -> Iterator[bytes]:
    with storage.open(uri) as file:
        yield from file


# ---------------------------------------------------------------------------------------------------------------------
# One file


TASK_RECORDS = 64  # records in one task of a thread, or fewer large ones
READ_BUFFER = 1 << 20
_HEAD = 1 << 16
# Faults with which some records of a file were not seen.
DAMAGE = frozenset({"missing_file", "unreadable_file", "empty_file", "no_records", "damaged_record", "no_example"})


@dataclass(frozen=True)
class ShardReport(FaultCounts):
    """What was found in one file.

    records: whole ones. num_bytes, crc32c: of the file. payload_bytes: of its records, without framing. messages:
    records by message type, '' for neither. labels: uses of each label id. images: pictures that were decoded. ids: the
    hashes of the whole records' ids, eight bytes each, in order. gaps: numbers of damaged records, which have no id.
    unlisted: faults that were counted only, by code. agreement: what records from elsewhere tell.
    decoder: what looked at the images. has_index: whether an index
    file was compared. twin: whether the ArrayRecord file was ``compared`` or ``skipped``, '' when there is none.
    """

    name: str
    split: str
    records: int = 0
    num_bytes: int = 0
    payload_bytes: int = 0
    crc32c: str = ""
    compression: str = "none"
    messages: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[int, int] = field(default_factory=dict)
    images: int = 0
    ids: bytes = b""
    gaps: tuple[int, ...] = ()
    faults: tuple[Fault, ...] = ()
    unlisted: Mapping[str, int] = field(default_factory=dict)
    agreement: Agreement = field(default_factory=Agreement)
    decoder: str = ""
    has_index: bool = False
    twin: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether the file could be read from its start to its end, without damage."""
        return not any(fault.code in DAMAGE for fault in self.faults)


@dataclass
class _Totals:
    """What adds up while a file is gone through."""

    records: int = 0
    payload_bytes: int = 0
    images: int = 0
    messages: Counter[str] = field(default_factory=Counter)
    labels: Counter[int] = field(default_factory=Counter)
    ids: bytearray = field(default_factory=bytearray)
    gaps: list[int] = field(default_factory=list)
    agreement: Agreement = field(default_factory=Agreement)

    def add(self, record: Record, size: int, checked: CheckedRecord, file: str) -> None:
        self.records += 1
        self.payload_bytes += size
        self.images += checked.images
        self.messages[checked.message] += 1
        self.labels.update(checked.labels)
        self.ids += checked.id_hash
        self.agreement.see(checked.told, Place(file, record.index, record.offset))


@dataclass(frozen=True)
class ShardChecker:
    """Checks whole files against rules.

    pool: threads that decode. threads: how many. limit: faults of each code that are kept for a file; 0 for all.
    decoder: name of what decodes images, for the report.
    """

    rules: RecordRules
    storage: Storage
    pool: Executor
    threads: int
    limit: int
    decoder: str
    progress: Progress

    def check(self, shard: ShardFile) -> ShardReport:
        """Everything about one file. Raises StorageError when its place cannot be used at all."""
        log = FaultLog(shard.name, self.limit)
        try:
            with self.storage.open(shard.uri) as file:
                return self._check_open(shard, file, log)
        except FileNotFoundError:
            log.add(Problem("missing_file", "the file is not there"))
        except OSError as error:
            log.add(Problem("unreadable_file", f"the file cannot be read: {error}"))
        return ShardReport(shard.name, shard.split, faults=tuple(log), decoder=self.decoder)

    def _check_open(self, shard: ShardFile, file: BinaryIO, log: FaultLog) -> ShardReport:
        measured = MeasuredFile(file)
        stream = cast(BinaryIO, io.BufferedReader(measured, READ_BUFFER))
        compression = self._compression(shard, stream.peek(_HEAD)[:_HEAD], log)  # type: ignore[attr-defined]
        totals = _Totals()
        twin = _Twin(shard.uri, self.storage)
        index = IndexComparison.open(shard.uri, self.storage) if compression == "none" else None
        items = scan_records(stream, shard.name, compression, may_be_empty=shard.may_be_empty)
        for record, size, checked in self._checked(twin.compared(items)):
            if isinstance(record, RecordFault):
                totals.gaps.append(record.record)
                log.add_record_fault(record)
                continue
            totals.add(record, size, checked, shard.name)
            self.progress.add(not checked.problems, bool(checked.problems), size)
            if index is not None:
                index.compare(record, size)
            for problem in checked.problems:
                log.add(problem, record.index, record.offset)
        while stream.read(READ_BUFFER):  # behind damage, for size and checksum of the whole file
            pass
        if index is not None and not totals.gaps:
            index.finish(log)
        self._settle_messages(totals, log)
        self._compare(shard, measured, totals, log)
        return ShardReport(
            name=shard.name,
            split=shard.split,
            records=totals.records,
            num_bytes=measured.num_bytes,
            payload_bytes=totals.payload_bytes,
            crc32c=f"{measured.crc:08x}",
            compression=compression,
            messages=dict(sorted(totals.messages.items())),
            labels=dict(sorted(totals.labels.items())),
            images=totals.images,
            ids=bytes(totals.ids),
            gaps=tuple(totals.gaps),
            faults=(*log, *twin.faults),
            unlisted=log.unlisted(),
            agreement=totals.agreement,
            decoder=self.decoder,
            has_index=index is not None,
            twin=twin.state,
        )

    def _compression(self, shard: ShardFile, head: bytes, log: FaultLog) -> str:
        """How the file is compressed; a fault when that is not what the dataset states."""
        found = detect_compression(head, shard.name)
        stated = self.rules.facts.compression if self.rules.facts is not None else None
        if head and stated is not None and found != stated:
            told = {"none": "not compressed"}
            log.add(
                Problem(
                    "wrong_compression",
                    f"the file is {told.get(found, f'compressed with {found}')}, but conversion.json says it is "
                    f"{told.get(stated, f'compressed with {stated}')}: readers that trust it fail",
                )
            )
        return found

    def _checked(
        self, records: Iterator[Record | RecordFault]
    ) -> Iterator[tuple[Record | RecordFault, int, CheckedRecord]]:
        """Records in order with their sizes and what was found in them; the bytes are let go."""

        def run(task: list[Record | RecordFault]) -> list[tuple[Record | RecordFault, int, CheckedRecord]]:
            return [self._outcome(item) for item in task]

        for outcomes in ordered_map(
            self.pool,
            run,
            batches(records, TASK_RECORDS),
            max_tasks=2 * self.threads,
            max_bytes=1,
            size_of=lambda done: 0,
        ):
            yield from outcomes

    def _outcome(self, item: Record | RecordFault) -> tuple[Record | RecordFault, int, CheckedRecord]:
        if isinstance(item, RecordFault):
            return item, 0, CheckedRecord(())
        return Record(item.index, item.offset, b""), len(item.data), self.rules.check(item.data)

    def _settle_messages(self, totals: _Totals, log: FaultLog) -> None:
        """A file from elsewhere in which no record is a message holds something else: that is one fault."""
        if self.rules.facts is None and set(totals.messages) == {NOT_A_MESSAGE}:
            log.join("no_example", no_message_cause(totals.records))

    def _compare(self, shard: ShardFile, file: MeasuredFile, totals: _Totals, log: FaultLog) -> None:
        """The file as a whole against what conversion.json states. What damaged records explain is not told again."""
        stated = shard.stated
        if stated is None:
            return
        if totals.records != stated.records:
            log.add(
                Problem(
                    "wrong_count", f"the file has {totals.records:,} whole records, but {stated.records:,} are stated"
                )
            )
        if totals.gaps:
            return
        if file.num_bytes != stated.bytes:
            log.add(Problem("wrong_size", f"the file has {file.num_bytes:,} bytes, but {stated.bytes:,} are stated"))
        elif f"{file.crc:08x}" != stated.crc32c:
            log.add(Problem("wrong_checksum", f"the file's crc32c is {file.crc:08x}, but {stated.crc32c} is stated"))
        elif totals.payload_bytes != stated.payload_bytes and totals.records == stated.records:
            log.add(
                Problem(
                    "wrong_size",
                    f"the records have {totals.payload_bytes:,} bytes, but {stated.payload_bytes:,} are stated",
                )
            )


@dataclass
class _Twin:
    """The comparison of a shard with its ArrayRecord file, where it has one."""

    uri: str
    storage: Storage
    state: str = ""
    faults: tuple[Fault, ...] = ()

    def compared(self, items: Iterator[Record | RecordFault]) -> Iterator[Record | RecordFault]:
        """The same items, each record compared on its way."""
        twin = twin_of(self.uri, self.storage)
        if not twin or not can_compare():
            self.state = SKIPPED if twin else ""
            yield from items
            return
        self.state = COMPARED
        with contextlib.ExitStack() as stack:
            try:
                comparison = stack.enter_context(open_twin(twin, self.storage))
            except OSError as error:
                self._tell(Fault(name_of(twin), None, None, "wrong_twin", f"the file cannot be read: {error}"))
                yield from items
                return
            records: int | None = 0
            for item in items:
                if isinstance(item, Record):
                    comparison.compare(item)
                    records = None if records is None else records + 1
                else:
                    records = None  # some cannot be counted
                yield item
            self._tell(comparison.finish(records))

    def _tell(self, fault: Fault | None) -> None:
        self.faults = (fault,) if fault is not None else ()
