"""What all files together tell (their ids, what lies in the folder, the metadata), and the verdict."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beam_tfrecord.conversion.writing.staging import PUBLISHING, STAGING_NAME, staging_folder
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.datasets.metadata import CONVERSION, DATASET_INFO
from beam_tfrecord.datasets.published import REJECTS_FILE, REPORT, WARNINGS_FILE
from beam_tfrecord.datasets.record_view import view_record
from beam_tfrecord.datasets.shard_files import FoundFiles, ShardFile
from beam_tfrecord.datasets.tfds_info import TfdsInfo, read_tfds_info
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.storage import Storage
from beam_tfrecord.tfrecord import INDEX_SUFFIX, Record, array_record_name, parse_shard_name, scan_records
from beam_tfrecord.tools.verifying import metadata
from beam_tfrecord.tools.verifying.agreement import joint
from beam_tfrecord.tools.verifying.faults import Fault, FaultCounts
from beam_tfrecord.tools.verifying.records import NOT_A_MESSAGE, guess_or, source_id
from beam_tfrecord.tools.verifying.shards import ShardReport
from beam_tfrecord.tools.verifying.twins import COMPARED, SKIPPED

TABLE_ID = "row-"  # starts the id of a table's row that has none of its own; equal rows share it


@dataclass(frozen=True)
class Verdict(FaultCounts):
    """What was found in all files.

    records, shards, images: what was looked at. faults: those that are named, in the order of the files. unlisted:
    further ones, by code. notes: what is odd and no fault, and what could not be checked. checked: what was.
    """

    records: int = 0
    shards: int = 0
    images: int = 0
    faults: tuple[Fault, ...] = ()
    unlisted: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()
    decoder: str = ""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return dataclasses.asdict(self)


def verdict_from_json(data: bytes) -> Verdict:
    """The verdict in the JSON of :meth:`Verdict.to_json`."""
    values = json.loads(data)
    lists = {name: tuple(values[name]) for name in ("notes", "checked")}
    return Verdict(**{**values, **lists, "faults": tuple(Fault(**fault) for fault in values["faults"])})


def join_verdicts(verdicts: Sequence[tuple[str, Verdict]]) -> Verdict:
    """One verdict on several places, each with the folder that the names in it start from ('' for none)."""
    if len(verdicts) == 1:
        return verdicts[0][1]
    own = [verdict for _, verdict in verdicts]
    unlisted: Counter[str] = Counter()
    for verdict in own:
        unlisted.update(verdict.unlisted)
    return Verdict(
        records=sum(verdict.records for verdict in own),
        shards=sum(verdict.shards for verdict in own),
        images=sum(verdict.images for verdict in own),
        faults=tuple(
            dataclasses.replace(fault, file=f"{folder}/{fault.file}" if folder else fault.file)
            for folder, verdict in verdicts
            for fault in verdict.faults
        ),
        unlisted=dict(sorted(unlisted.items())),
        notes=tuple(f"{folder}: {note}" if folder else note for folder, verdict in verdicts for note in verdict.notes),
        checked=tuple(dict.fromkeys(what for verdict in own for what in verdict.checked)),
        decoder="; ".join(dict.fromkeys(verdict.decoder for verdict in own if verdict.decoder)),
    )


def judge_dataset(reports: Iterable[ShardReport], found: FoundFiles, limit: int, storage: Storage) -> Verdict:
    """The verdict on some files, of which each has its report.

    limit: faults of each code that are named beside those of the reports; 0 for all.
    """
    by_name = {report.name: report for report in reports}
    ordered = [by_name[file.name] for file in found.files]
    notes: list[str] = []
    further = list(_further_faults(ordered, found, notes, storage))
    named, unlisted = _limited(further, limit)
    counted: Counter[str] = Counter(unlisted)
    for report in ordered:
        counted.update(report.unlisted)
    decoders = sorted({report.decoder for report in ordered if report.decoder})
    return Verdict(
        records=sum(report.records for report in ordered),
        shards=len(ordered),
        images=sum(report.images for report in ordered),
        faults=(*(fault for report in ordered for fault in report.faults), *named),
        unlisted=dict(sorted(counted.items())),
        notes=(*notes, *_notes_about(ordered, found)),
        checked=tuple(_checked(ordered, found)),
        decoder="; ".join(decoders),
    )


def _limited(faults: Sequence[Fault], limit: int) -> tuple[list[Fault], dict[str, int]]:
    kept: list[Fault] = []
    counts: Counter[str] = Counter()
    for fault in faults:
        counts[fault.code] += 1
        if limit == 0 or counts[fault.code] <= limit:
            kept.append(fault)
    return kept, dict(counts - Counter(fault.code for fault in kept))


def _further_faults(
    reports: Sequence[ShardReport], found: FoundFiles, notes: list[str], storage: Storage
) -> Iterator[Fault]:
    facts = found.facts
    if found.trouble:
        cause = found.trouble.removeprefix(f"{found.folder}/").removeprefix(f"{CONVERSION} is damaged: ")
        yield Fault(CONVERSION, None, None, "wrong_metadata", f"it is damaged: {cause}")
    if facts is None:
        yield from (Fault(fault.file, None, None, fault.code, fault.cause) for fault in found.faults)
        agreement = joint(report.agreement for report in reports)
        yield from agreement.name_faults()
        yield from agreement.type_faults()
        yield from agreement.label_faults()
        notes += agreement.notes()
        if found.folder:
            yield from _tfds_faults(found.folder, reports, notes, storage)
        return
    yield from _id_faults(reports, found, facts, notes, storage)
    if found.folder:
        yield from _folder_faults(found.folder, facts, notes, storage)
        yield from metadata.check_conversion(facts, reports, found.folder, storage)
        yield from metadata.check_tfds(facts, found.folder, storage)
        yield from metadata.check_label_files(facts, found.folder, storage)


def _folder_faults(folder: str, facts: DatasetFacts, notes: list[str], storage: Storage) -> Iterator[Fault]:
    names = storage.list_folder(folder)
    yield from check_files(names, facts)
    faults, further = check_staging(names, storage.list_folder(staging_folder(folder)))
    yield from faults
    notes += [*further, *strangers(names, facts)]


def _id_faults(
    reports: Sequence[ShardReport], found: FoundFiles, facts: DatasetFacts, notes: list[str], storage: Storage
) -> Iterator[Fault]:
    """Records with one id. Across splits the conversion may have kept them on purpose, and says so; a merged dataset
    may hold them within a split."""
    is_table = "encoded" not in facts.keys and "raw" not in facts.keys
    warnings = facts.conversion.get("warnings")
    was_told = isinstance(warnings, Mapping) and bool(warnings.get("duplicate_id"))
    is_merged = bool(facts.conversion.get("resharded"))
    known = 0
    for shared in shared_ids(reports, found.files, facts.keys, storage):
        if is_table and shared.id.startswith(TABLE_ID):
            continue
        if was_told and (shared.crosses_splits or is_merged):
            known += 1
        else:
            yield shared.fault()
    if known:
        notes.append(f"{known:,} records share their id with another one, as warnings.jsonl tells")


def _tfds_faults(folder: str, reports: Sequence[ShardReport], notes: list[str], storage: Storage) -> Iterator[Fault]:
    try:
        info: TfdsInfo | None = read_tfds_info(folder, storage)
    except DatasetError:
        return  # told by whoever looked for the files
    if info is None:
        return
    if info.file_format != "tfrecord":
        notes.append(f"{DATASET_INFO} describes {info.file_format} files, which are not looked at")
        return
    notes.append(f"{DATASET_INFO} is there: files and counts were compared with it")
    yield from metadata.check_tfds_counts(info, reports)


# ---------------------------------------------------------------------------------------------------------------------
# What was and what could not be checked


def _notes_about(reports: Sequence[ShardReport], found: FoundFiles) -> Iterator[str]:
    if found.facts is None:
        why = f"{CONVERSION} cannot be used" if found.trouble else f"no {CONVERSION} tells of these files"
        yield f"{why}: features, labels and checksums of files were not compared"
    packed = Counter(report.compression for report in reports if report.compression != "none")
    if found.facts is None:
        for compression, count in sorted(packed.items()):
            yield f"{count:,} of {len(reports):,} files are compressed with {compression}"
    skipped = sum(report.twin == SKIPPED for report in reports)
    if skipped:
        yield (
            f"{skipped:,} ArrayRecord file{'s' * (skipped != 1)} beside the shards were not looked into: that needs "
            "the package array_record (pip install 'beam-tfrecord[array_record]')"
        )
    if found.facts is not None and not found.folder:
        yield "only the files named were checked, not the dataset that they belong to"


def _checked(reports: Sequence[ShardReport], found: FoundFiles) -> Iterator[str]:
    yield "lengths and checksums of records"
    if any(set(report.messages) - {NOT_A_MESSAGE} for report in reports):
        yield "parsing"
    if found.facts is not None:
        yield "features"
        yield "sizes and checksums of files"
        if found.facts.vocabulary.names:
            yield "labels"
        yield "ids"
    decoders = sorted({report.decoder for report in reports if report.images})
    if decoders:
        yield f"images ({'; '.join(decoders)})"
        yield "boxes and keypoints"
    if any(report.has_index for report in reports):
        yield "index files"
    if any(report.twin == COMPARED for report in reports):
        yield "ArrayRecord files"
    if found.facts is not None and found.folder:
        yield "metadata"
        yield "files in the folder"


# ---------------------------------------------------------------------------------------------------------------------
# Records that share an id: found by the hashes that the shards' reports bring along, then looked at again.


Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class SharedId:
    """A record whose id an earlier one has as well. The earlier one: first_file, first_record."""

    file: str
    split: str
    record: int
    offset: int
    id: str
    first_file: str
    first_split: str
    first_record: int

    @property
    def crosses_splits(self) -> bool:
        return self.split != self.first_split

    def fault(self) -> Fault:
        """The fault that it is where ids must be distinct."""
        where = f"record {self.first_record}" + (f" of {self.first_file}" if self.first_file != self.file else "")
        leak = f": it is in the splits {self.first_split} and {self.split}" if self.crosses_splits else ""
        return Fault(
            self.file, self.record, self.offset, "duplicate_id", f"its id {self.id!r} is also that of {where}{leak}"
        )


def repeated_hashes(reports: Sequence[ShardReport]) -> Hashes:
    """The hashes of ids that occur more than once, sorted. Memory: some 24 bytes for each record."""
    everything = np.concatenate([_hashes(report) for report in reports] or [np.zeros(0, np.uint64)])
    everything.sort()
    repeats = everything[1:][everything[1:] == everything[:-1]]
    return np.unique(repeats[repeats != 0])


def shared_ids(
    reports: Sequence[ShardReport], files: Sequence[ShardFile], keys: Mapping[str, str] | None, storage: Storage
) -> Iterator[SharedId]:
    """Every record whose id an earlier record has, in the order of the files.

    keys: logical name -> key; None for records from elsewhere. Files in which a repeated hash occurs are read once
    more, so that an id is named only when it is the same in full.
    """
    repeated = repeated_hashes(reports)
    if not repeated.size:
        return
    first: dict[str, tuple[str, str, int]] = {}
    for report, file in zip(reports, files, strict=True):
        wanted = _numbers(report, repeated)
        if not wanted:
            continue
        for record, text in _ids(file, report, wanted, keys, storage):
            place = (report.name, report.split, record.index)
            other = first.setdefault(text, place)
            if other != place:
                yield SharedId(report.name, report.split, record.index, record.offset, text, *other)


def _hashes(report: ShardReport) -> Hashes:
    return np.frombuffer(report.ids, "<u8").astype(np.uint64, copy=False)


def _numbers(report: ShardReport, repeated: Hashes) -> set[int]:
    """Numbers of the records whose hash is a repeated one."""
    hashes = _hashes(report)
    places = np.flatnonzero(np.isin(hashes, repeated))
    if not places.size:
        return set()
    if not report.gaps:
        return set(places.tolist())
    gaps = set(report.gaps)
    numbers = np.array([number for number in range(len(hashes) + len(gaps)) if number not in gaps])
    return {int(number) for number in numbers[places]}


def _ids(
    file: ShardFile, report: ShardReport, wanted: set[int], keys: Mapping[str, str] | None, storage: Storage
) -> Iterator[tuple[Record, str]]:
    with storage.open(file.uri) as stream:
        for item in scan_records(stream, file.name, report.compression):
            if isinstance(item, Record) and item.index in wanted:
                try:
                    view = view_record(item.data)
                except ValueError:
                    continue
                text = source_id(view, guess_or(keys, view))
                if text is not None:
                    yield item, text


# ---------------------------------------------------------------------------------------------------------------------
# Which files lie in the folder of a dataset: those that are missing, left over, or no part of it.


_SHOWN_STRANGERS = 5


def own_names(facts: DatasetFacts) -> set[str]:
    """Names of all files that belong to a dataset."""
    shards = [shard.file for shard in facts.shards]
    return {
        *shards,
        *(name + INDEX_SUFFIX for name in shards),
        *(array_record_name(name) for name in shards if parse_shard_name(name) is not None),
        *stated_metadata(facts),
        CONVERSION,
        DATASET_INFO,
        REJECTS_FILE,
        WARNINGS_FILE,
        REPORT,
    }


def stated_metadata(facts: DatasetFacts) -> list[str]:
    """Names of the metadata files that a dataset was made with; none where a damaged conversion.json tells of none."""
    files = facts.conversion.get("files")
    return [str(name) for name in files] if isinstance(files, list) else []


def stated_twins(facts: DatasetFacts) -> set[str]:
    """Names of the ArrayRecord files that a dataset was made with."""
    options = facts.conversion.get("options")
    if not isinstance(options, Mapping) or options.get("array_record") is not True:
        return set()
    return {array_record_name(shard.file) for shard in facts.shards if parse_shard_name(shard.file) is not None}


def check_files(names: Iterable[str], facts: DatasetFacts) -> Iterator[Fault]:
    """Files that are missing or left over. names: of everything in the folder; those of folders end in ``/``.

    Missing shards are not told here: whoever opens them does.
    """
    present = set(names)
    stated = {*stated_metadata(facts), DATASET_INFO, *stated_twins(facts)}
    for name in sorted(stated - present):
        last = ", which comes last: the publication did not end" if name == DATASET_INFO else ""
        yield Fault(name, None, None, "missing_file", f"the file is not there{last}")
    own = own_names(facts)
    for name in sorted(present - own):
        if parse_shard_name(name.removesuffix(INDEX_SUFFIX)) is not None:
            cause = f"the file looks like a shard, but {CONVERSION} does not name it: readers that match names take it"
            yield Fault(name, None, None, "leftover_file", cause)


def check_staging(names: Iterable[str], staged: Sequence[str]) -> tuple[list[Fault], list[str]]:
    """(faults, notes) about what an interrupted conversion left. staged: names in the staging place."""
    if f"{STAGING_NAME}/" not in set(names):
        return [], []
    if PUBLISHING in staged:
        cause = "a publication was interrupted: run the command that made the dataset once more, and it ends that"
        return [Fault(f"{STAGING_NAME}/{PUBLISHING}", None, None, "unfinished", cause)], []
    return [], [f"an unfinished conversion lies in {STAGING_NAME}; a reader does not see it"]


def strangers(names: Iterable[str], facts: DatasetFacts) -> list[str]:
    """A note about files that are no part of the dataset; hidden ones are passed over."""
    own = own_names(facts)
    found = sorted(
        name
        for name in names
        if name not in own and not name.startswith(".") and parse_shard_name(name.removesuffix(INDEX_SUFFIX)) is None
    )
    if not found:
        return []
    more = f" and {len(found) - _SHOWN_STRANGERS:,} more" if len(found) > _SHOWN_STRANGERS else ""
    verb = "is" if len(found) == 1 else "are"
    return [f"{', '.join(found[:_SHOWN_STRANGERS])}{more} {verb} no part of the dataset"]
