"""Which ranges of which source files make up each shard of the result: whole numbers only, no file is touched.

The records of a split are those of its source files, one file after the other. Cutting them anew never changes their
order.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from beam_tfrecord.conversion.planning.dataset_plan import plan_shard_counts
from beam_tfrecord.conversion.writing.statistics import SAMPLE_GROUPS, UNLABELLED, Place, samples_of
from beam_tfrecord.options.config import ShardConfig
from beam_tfrecord.storage import name_of
from beam_tfrecord.tfrecord import FRAME_SIZE


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of records to read.

    source: number of the input it belongs to. split: the one that its records get into; origin_split: the one that they
    come from. name: for messages. records: how many it holds, payload_bytes: the sum of their lengths; both -1 as long
    as they are not known. stated: how many records the metadata of TensorFlow Datasets state; None where they do not.
    """

    source: int
    split: str
    origin_split: str
    uri: str
    name: str
    records: int = -1
    payload_bytes: int = -1
    stated: int | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """The records ``start`` up to, without it, ``stop`` of a file that holds ``total``."""

    source: int
    uri: str
    name: str
    start: int
    stop: int
    total: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A record of a shard whose place is wanted: it is a sample of a class, a change or a warning (``group``,
    ``name``)."""

    record: int
    group: str
    name: str


@dataclass(frozen=True, slots=True)
class Target:
    """One shard of the result: what is read for it, in order."""

    split: str
    index: int
    segments: tuple[Segment, ...]
    marks: tuple[Mark, ...] = ()

    @property
    def num_records(self) -> int:
        return sum(segment.stop - segment.start for segment in self.segments)


@dataclass(frozen=True)
class Layout:
    """All shards of a result. starts: by split, the number of the first record of each shard within the split."""

    targets: tuple[Target, ...]
    starts: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def place(self, split: str, record: int) -> tuple[int, int]:
        """(shard, number in it) of a record of a split by its number there."""
        shard = bisect.bisect_right(self.starts[split], record) - 1
        return shard, record - self.starts[split][shard]


def even_starts(records: int, shards: int) -> list[int]:
    """The first record of each shard when the shards differ by one record at most, as a conversion cuts them."""
    return [records * shard // shards for shard in range(shards)]


def kept_starts(files: Iterable[SourceFile]) -> list[int]:
    """The first record of each shard when every file that has records becomes a shard."""
    sizes = [file.records for file in files if file.records]
    return list(itertools.accumulate(sizes, initial=0))[:-1]


def lay_out(files: Sequence[SourceFile], num_shards: object = None, shard_size: int | None = None) -> Layout:
    """The shards that files of known lengths are written to.

    num_shards, shard_size: the options. Where neither says anything about a split, each of its files becomes a shard,
    and so does it where a split that comes from one other is to have as many shards as it has. Raises ConfigError when
    ``num_shards`` names a split that is not there.
    """
    by_split: dict[str, list[SourceFile]] = {}
    for file in files:
        if file.records:
            by_split.setdefault(file.split, []).append(file)
    asked = _asked_counts(by_split, num_shards, shard_size)
    starts = {}
    for split, own in sorted(by_split.items()):
        count = asked.get(split)
        is_one = len({(file.source, file.origin_split) for file in own}) == 1
        if count is None or (is_one and count == len(own)):
            starts[split] = kept_starts(own)
        else:
            starts[split] = even_starts(sum(file.records for file in own), count)
    targets = [
        Target(split, index, segments)
        for split, own in sorted(by_split.items())
        for index, segments in enumerate(cut(own, starts[split]))
    ]
    return Layout(tuple(targets), starts)


def _asked_counts(
    by_split: Mapping[str, Sequence[SourceFile]], num_shards: object, shard_size: int | None
) -> dict[str, int]:
    """Number of shards of those splits for which the options say one."""
    records = {split: sum(file.records for file in own) for split, own in by_split.items()}
    counts: dict[str, int] = {}
    if shard_size is not None:
        for split, own in by_split.items():
            size = sum(file.payload_bytes + FRAME_SIZE * file.records for file in own)
            counts[split] = max(1, min(-(-size // shard_size), records[split]))
    if num_shards is not None:
        planned = plan_shard_counts(records, 0.0, ShardConfig(num_shards=num_shards))  # type: ignore[arg-type]
        named = dict(num_shards) if isinstance(num_shards, tuple) else planned
        counts.update({split: planned[split] for split in named})
    return counts


def cut(files: Sequence[SourceFile], starts: Sequence[int]) -> list[tuple[Segment, ...]]:
    """The segments of each shard. starts: number of the first record of each, from 0, rising."""
    ends = [*starts[1:], sum(file.records for file in files)]
    shards = []
    number = before = 0  # the file that is looked at, and the records of the files before it
    for start, end in zip(starts, ends, strict=True):
        segments = []
        while start < end:
            file = files[number]
            if start >= before + file.records:
                before += file.records
                number += 1
                continue
            stop = min(end, before + file.records)
            segments.append(Segment(file.source, file.uri, file.name, start - before, stop - before, file.records))
            start = stop
        shards.append(tuple(segments))
    return shards


# ---------------------------------------------------------------------------------------------------------------------
# Records that the report shows: found again in the new shards.


def mark_samples(
    layout: Layout, files: Sequence[SourceFile], statistics: Sequence[Mapping[str, Any]]
) -> tuple[Target, ...]:
    """The targets of a layout with the places of sampled records marked.

    files: those that the layout was made from. statistics: of each source, by its number; may be empty.
    """
    first: dict[tuple[int, str], tuple[str, int, int]] = {}
    numbers: dict[str, int] = {}
    for file in files:
        start = numbers.setdefault(file.split, 0)
        first[file.source, name_of(file.uri)] = (file.split, start, file.records)
        numbers[file.split] = start + file.records
    marks: dict[tuple[str, int], list[Mark]] = {}
    for source, own in enumerate(statistics):
        for group, name, sample in samples_of(own):
            split, start, records = first.get((source, str(sample["file"])), ("", 0, 0))
            if 0 <= int(sample["record"]) < records:
                shard, record = layout.place(split, start + int(sample["record"]))
                marks.setdefault((split, shard), []).append(Mark(record, group, name))
    key = lambda mark: (mark.record, mark.group, mark.name)  # noqa: E731
    return tuple(
        replace(target, marks=tuple(sorted(marks.get((target.split, target.index), ()), key=key)))
        for target in layout.targets
    )


def shard_samples(places: Iterable[tuple[Mark, Place]]) -> dict[str, Any]:
    """The statistics of a shard of which only the places of marked records are known."""
    samples: dict[str, Any] = {**{group: {} for group in SAMPLE_GROUPS}, UNLABELLED: []}
    for mark, place in places:
        own = samples[UNLABELLED] if mark.group == UNLABELLED else samples[mark.group].setdefault(mark.name, [])
        own.append(list(place))
    return {"samples": samples}
