"""What a fault is, and every kind of fault there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from beam_tfrecord.tfrecord import RecordFault

FAULT_CODES: Mapping[str, str] = MappingProxyType(
    {
        "missing_file": "A file that the metadata names is not there.",
        "leftover_file": "A file looks like a shard of the dataset, but the metadata does not name it.",
        "mixed_datasets": "Files of several datasets, versions or sets of shards lie in one folder or below it.",
        "unreadable_file": "A file is there and cannot be read.",
        "unfinished": "A publication was interrupted: files of two datasets may be mixed.",
        "wrong_compression": "A file is compressed in another way than the metadata states.",
        "wrong_size": "A file has another size than the metadata states.",
        "wrong_checksum": "The bytes of a file have another crc32c than the metadata states.",
        "wrong_count": "A file, split or class has another number of records than the metadata states.",
        "wrong_index": "An index file does not lead to the records of its shard.",
        "wrong_twin": "An ArrayRecord file does not hold the records of its shard.",
        "empty_file": "A file has no bytes, and nothing states that it is to hold no records.",
        "no_records": "A file that should hold TFRecords holds something else: a page, an archive, a Git LFS pointer.",
        "damaged_record": "A record's length or data has a wrong checksum, or the file ends inside of it.",
        "no_example": "The bytes of a record are neither a tf.train.Example nor a tf.train.SequenceExample.",
        "wrong_features": "A record lacks a feature, has one too many, or one of another type or length than stated.",
        "bad_image": "An image does not decode.",
        "wrong_image_facts": "An image is not what its record says: size, channels, format or hash.",
        "bad_raw": "Raw pixels have another number of bytes than their shape and type need.",
        "bad_mask": "A mask does not decode, or has another size than the image.",
        "bad_box": "A box is inverted, empty, not a number or outside of the image.",
        "bad_keypoints": "Keypoints are incomplete, not numbers or outside of the image.",
        "uneven_lists": "Lists that have one value for each object have different lengths.",
        "bad_label": "The id of a label is not in the vocabulary, or its name is another one.",
        "lost_feature": "Values of a feature cannot be extracted: the types differ, or no column can be called so.",
        "duplicate_id": "The id of a record is used by another one.",
        "wrong_metadata": "Metadata files are damaged, or contradict one another.",
    }
)


class Problem(NamedTuple):
    """Something wrong within a record: a code of :data:`FAULT_CODES`, and the cause for a person."""

    code: str
    cause: str


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with a dataset, and where.

    file: name of the file. record: number of the record in it, from 0; None for the file as a whole. offset: where that
    record starts, in bytes from the start of the (decompressed) file; None as above, and in ArrayRecord files. code:
    one of :data:`FAULT_CODES`. cause: for a person.
    """

    file: str
    record: int | None
    offset: int | None
    code: str
    cause: str

    def __post_init__(self) -> None:
        if self.code not in FAULT_CODES:
            raise ValueError(f"{self.code!r} is not listed in FAULT_CODES")

    def __str__(self) -> str:
        place = "" if self.record is None else f" record {self.record}"
        place += "" if self.offset is None else f" at byte {self.offset}"
        return f"{self.file}:{place and place + ':'} {self.cause}"


class FaultCounts:
    """What holds faults: those that are named, and by code how many more there are."""

    faults: tuple[Fault, ...]
    unlisted: Mapping[str, int]

    @property
    def num_faults(self) -> int:
        """All faults, named or only counted."""
        return len(self.faults) + sum(self.unlisted.values())

    @property
    def by_code(self) -> dict[str, int]:
        """All faults by code."""
        return dict(sorted((Counter(fault.code for fault in self.faults) + Counter(self.unlisted)).items()))


@dataclass
class FaultLog:
    """The faults of one file, in order, with a limit to those that are kept of each code.

    limit: 0 for none. What is beyond it is counted, so that memory stays flat when every record is wrong.
    """

    file: str
    limit: int = 0
    faults: list[Fault] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, problem: Problem, record: int | None = None, offset: int | None = None) -> None:
        """Keep or count a fault."""
        self.counts[problem.code] += 1
        if self.limit == 0 or self.counts[problem.code] <= self.limit:
            self.faults.append(Fault(self.file, record, offset, problem.code, problem.cause))

    def add_record_fault(self, fault: RecordFault) -> None:
        """Keep or count what a reader of records found."""
        place = (fault.record, fault.offset) if fault.is_of_record else (None, None)
        self.add(Problem(fault.code, fault.cause), *place)

    def join(self, code: str, cause: str) -> None:
        """One fault of the whole file instead of all of a code."""
        self.faults[:] = [fault for fault in self.faults if fault.code != code]
        del self.counts[code]
        self.add(Problem(code, cause))

    def unlisted(self) -> dict[str, int]:
        """How many faults of each code were counted only."""
        kept = Counter(fault.code for fault in self.faults)
        return {code: count - kept[code] for code, count in sorted(self.counts.items()) if count > kept[code]}

    def __iter__(self) -> Iterator[Fault]:
        return iter(self.faults)
