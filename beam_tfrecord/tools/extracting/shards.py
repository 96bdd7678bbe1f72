"""One file of records: first the paths that its images ask for, then the images and its part of the manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, field
from typing import NamedTuple

from beam_tfrecord.conversion.writing.progress import Progress
from beam_tfrecord.conversion.writing.read_ahead import ordered_map
from beam_tfrecord.core.account import NO_ACCOUNT, Account, AccountBuilder
from beam_tfrecord.datasets.metadata.text import json_line
from beam_tfrecord.datasets.record_view import RecordView, view_record
from beam_tfrecord.datasets.shard_files import ShardFile
from beam_tfrecord.datasets.tfds_info import LabelNames
from beam_tfrecord.storage import Storage
from beam_tfrecord.tfrecord import Record, RecordFault, batches, scan_records
from beam_tfrecord.tfrecord.example import NO_KIND
from beam_tfrecord.tools.extracting.layout import Layout
from beam_tfrecord.tools.extracting.paths import WantedPaths, clashing_paths, safe_path
from beam_tfrecord.tools.extracting.records import (
    RECORDS,
    ExtractedRecord,
    Place,
    RecordExtractor,
    labels_told_by,
    picture_names,
)
from beam_tfrecord.tools.extracting.values import UnextractableError
from beam_tfrecord.tools.verifying.agreement import Agreement, LabelId, joint, no_message_cause
from beam_tfrecord.tools.verifying.agreement import Place as FirstPlace
from beam_tfrecord.tools.verifying.faults import Fault, FaultLog, Problem

TASK_RECORDS = 16  # records in one task of a thread, or fewer large ones
STAGING = ".extract"
MAX_NAMED = 1000  # faults of one kind that are named for a file; the rest is counted


@dataclass(frozen=True)
class ShardToExtract:
    """A file of records, and its place among those of its split."""

    file: ShardFile
    number: int
    index: int
    shards: int

    @property
    def part(self) -> str:
        """Name of its part of the manifest, below the output."""
        return f"{STAGING}/{self.number:06d}.jsonl"

    def place(self, record: int) -> Place:
        """Where a record of the file is."""
        name = self.file.name.rpartition("/")[2]
        return Place(self.index, self.shards, record, self.file.split, safe_stem(name))


def safe_stem(name: str) -> str:
    """The name of a file of records as the folder of images that have no names: without what is not safe in one."""
    stem = "".join(character if character.isalnum() or character in "-_." else "_" for character in name)
    return stem.strip(".") or "records"


class Seen(NamedTuple):
    """Where something was seen first: number of the file, of the record in it, and where that starts."""

    file: int
    record: int
    offset: int


@dataclass
class ColumnUse:
    """What a column that nobody declared holds.

    dtypes: of its values, and where each was seen first. empty: of features of the column without values. is_single:
    whether there is always exactly one value. count: how often the feature is there; valued: with values.
    """

    dtypes: dict[str, Seen] = field(default_factory=dict)
    empty: set[str] = field(default_factory=set)
    is_single: bool = True
    count: int = 0
    valued: int = 0

    def see(self, dtype: str, values: int, place: Seen) -> None:
        """Count one feature."""
        if values:
            self.dtypes.setdefault(dtype, place)
            self.valued += 1
        elif dtype != NO_KIND:
            self.empty.add(dtype)
        self.is_single &= values == 1
        self.count += 1

    def add(self, other: ColumnUse) -> None:
        """Take in what was seen elsewhere."""
        for dtype, place in other.dtypes.items():
            self.dtypes[dtype] = min(self.dtypes.get(dtype, place), place)
        self.empty |= other.empty
        self.is_single &= other.is_single
        self.count += other.count
        self.valued += other.valued


@dataclass
class LeftOut:
    """A feature whose values were left out: why, in how many records, and where first."""

    why: str
    place: Seen
    count: int = 1

    def add(self, other: LeftOut) -> None:
        """Take in what was seen elsewhere."""
        self.why, self.place = min((self.why, self.place), (other.why, other.place), key=lambda told: told[1])
        self.count += other.count


@dataclass
class ShardExtract:
    """What became of one file.

    records: lines that were written. has_images: whether any record has an image; first_table: where one without was
    seen first. agreement: what records from elsewhere tell.
    columns: undeclared ones by name. rows: pictures or table rows that could have them. left_out: by key what
    could not be extracted. keys: of records that nothing tells of. faults, unlisted: those that are named, and counts
    of others by code.
    """

    number: int
    split: str
    records: int = 0
    has_images: bool = False
    agreement: Agreement = field(default_factory=Agreement)
    columns: dict[str, ColumnUse] = field(default_factory=dict)
    rows: int = 0
    left_out: dict[str, LeftOut] = field(default_factory=dict)
    first_table: Seen | None = None
    account: Account = NO_ACCOUNT
    keys: set[str] = field(default_factory=set)
    faults: tuple[Fault, ...] = ()
    unlisted: Mapping[str, int] = field(default_factory=dict)

    def add(self, found: ExtractedRecord, record: Record, file: str) -> None:
        """Count one record."""
        place = Seen(self.number, record.index, record.offset)
        self.records += 1
        self.has_images |= found.has_image
        if not found.has_image and self.first_table is None:
            self.first_table = place
        self.agreement.see(found.told, FirstPlace(file, record.index, record.offset))
        self.rows += len(found.line.get("frames", (1,)))
        for name, dtype, count in found.columns:
            self.columns.setdefault(name, ColumnUse()).see(dtype, count, place)
        for key, why in found.left_out.items():
            if key in self.left_out:
                self.left_out[key].count += 1
            else:
                self.left_out[key] = LeftOut(why, place)
        self.keys.update(found.keys)


@dataclass(frozen=True)
class FirstLook:
    """What the records of one file tell all others before any is extracted.

    paths: that the images ask for; see :class:`~beam_tfrecord.tools.extracting.paths.WantedPaths`. agreement: of
    records that nothing else tells of.
    """

    paths: bytes
    agreement: Agreement


@dataclass(frozen=True)
class SeenFirst:
    """What the first looks at all files tell together. clashes: see
    :func:`~beam_tfrecord.tools.extracting.paths.clashing_paths`. names: of ids of labels that have exactly one."""

    clashes: bytes
    names: Mapping[LabelId, str]


def first_look(shard: ShardToExtract, layout: Layout | None, label_names: LabelNames, storage: Storage) -> FirstLook:
    """Look at the records of a file. What is damaged is passed over here, and told when the file is extracted."""
    wanted = WantedPaths()
    agreement = Agreement()
    try:
        with storage.open(shard.file.uri) as file:
            for item in scan_records(file, shard.file.name):
                if not isinstance(item, Record):
                    continue
                try:
                    view = view_record(item.data)
                except ValueError:
                    continue
                for filename, data in _names(view, layout, shard.place(item.index)):
                    path = safe_path(filename)
                    if path is not None:
                        wanted.add(path, data)
                if layout is None:
                    place = FirstPlace(shard.file.name, item.index, item.offset)
                    agreement.see(labels_told_by(view, label_names), place)
    except OSError:
        pass
    return FirstLook(wanted.to_bytes(), agreement)


def together(looks: Iterable[FirstLook]) -> SeenFirst:
    """What all files tell, in any order."""
    every = list(looks)
    return SeenFirst(clashing_paths(look.paths for look in every), joint(look.agreement for look in every).told_names)


def _names(view: RecordView, layout: Layout | None, place: Place) -> list[tuple[str, bytes]]:
    try:
        return picture_names(view, layout, place)
    except (ValueError, UnextractableError):
        return []


Outcome = tuple[Record | RecordFault, ExtractedRecord | Problem]


@dataclass(frozen=True)
class ShardExtractor:
    """Extracts whole files.

    output: folder that everything goes below. pool: threads that write the images; threads: how many.
    """

    extractor: RecordExtractor
    storage: Storage
    output: str
    pool: Executor
    threads: int
    progress: Progress

    def extract(self, shard: ShardToExtract) -> ShardExtract:
        """Write the images and the part of the manifest. Raises StorageError when a place cannot be used at all."""
        log = FaultLog(shard.file.name, MAX_NAMED)
        found = ShardExtract(shard.number, shard.file.split)
        account = AccountBuilder()
        with self.storage.open_write(f"{self.output}/{shard.part}") as part:
            try:
                with self.storage.open(shard.file.uri) as file:
                    items = scan_records(file, shard.file.name, may_be_empty=shard.file.may_be_empty)
                    for item, outcome in self._outcomes(items, shard):
                        if isinstance(item, Record) or item.is_of_record:
                            account.find(RECORDS)
                        size = len(item.data) if isinstance(item, Record) else 0
                        is_good = isinstance(outcome, ExtractedRecord)
                        self.progress.add(int(is_good), int(not is_good), size)
                        if isinstance(outcome, ExtractedRecord):
                            if self.extractor.kinds and not found.records:
                                outcome.line["kinds"] = list(self.extractor.kinds)
                            assert isinstance(item, Record)
                            found.add(outcome, item, shard.file.name)
                            account.use(RECORDS, "extracted")
                            account.add(outcome.account)
                            part.write(json_line(outcome.line).encode())
                        elif isinstance(item, RecordFault):
                            log.add_record_fault(item)
                            account.name(RECORDS, item.code, str(item), int(item.is_of_record))
                        else:
                            log.add(outcome, item.index, item.offset)
                            account.name(RECORDS, outcome.code, f"{shard.file.name}: record {item.index}")
            except FileNotFoundError:
                log.add(Problem("missing_file", "the file is not there"))
            except OSError as error:
                log.add(Problem("unreadable_file", f"the file cannot be read: {error}"))
        told = account.account()
        num_records = told.found.get(RECORDS, 0)
        if self.extractor.is_guessing and num_records and log.counts["no_example"] == num_records:
            log.join("no_example", no_message_cause(num_records))
        stated = shard.file.records
        if stated is not None and not log.counts and found.records != stated:
            log.add(Problem("wrong_count", f"the file has {found.records:,} records, but {stated:,} are stated"))
        found.account = told
        found.faults, found.unlisted = tuple(log), log.unlisted()
        return found

    def _outcomes(self, items: Iterable[Record | RecordFault], shard: ShardToExtract) -> Iterator[Outcome]:
        """What becomes of each record, in order; its files are written, and their bytes let go."""

        def run(task: list[Record | RecordFault]) -> list[Outcome]:
            return [(item, self._outcome(item, shard)) for item in task]

        results = ordered_map(
            self.pool,
            run,
            batches(items, TASK_RECORDS),
            max_tasks=2 * self.threads,
            max_bytes=64 * 2**20,
            size_of=lambda done: sum(len(item.data) for item, _ in done if isinstance(item, Record)),
        )
        with closing(results):  # type: ignore[type-var]
            for outcomes in results:
                yield from outcomes

    def _outcome(self, item: Record | RecordFault, shard: ShardToExtract) -> ExtractedRecord | Problem:
        if isinstance(item, RecordFault):
            return Problem(item.code, item.cause)
        try:
            found = self.extractor.extract(view_record(item.data), shard.place(item.index))
        except UnextractableError as error:
            return error.problem
        except ValueError as error:
            return Problem("no_example", str(error))
        for path, data in found.files.items():
            self.storage.write_bytes(f"{self.output}/{path}", data)
        found.files.clear()
        return found
