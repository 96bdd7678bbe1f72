"""Records that share an id: found by the hashes that the shards' reports bring along, then looked at again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from beam_tfrecord.datasets.record_view import view_record
from beam_tfrecord.datasets.shard_files import ShardFile
from beam_tfrecord.storage import Storage
from beam_tfrecord.tfrecord import Record, scan_records
from beam_tfrecord.tools.verifying.faults import Fault
from beam_tfrecord.tools.verifying.records import guess_or, source_id
from beam_tfrecord.tools.verifying.shards import ShardReport

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
