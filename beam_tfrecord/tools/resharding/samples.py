"""Records that the report shows: found again in the new shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from beam_tfrecord.conversion.writing.statistics import SAMPLE_GROUPS, Place
from beam_tfrecord.storage import name_of
from beam_tfrecord.tools.resharding.ranges import Layout, Mark, SourceFile, Target

UNLABELLED = "unlabelled"


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
        for group, name, sample in _samples(own):
            split, start, records = first.get((source, str(sample["file"])), ("", 0, 0))
            if 0 <= int(sample["record"]) < records:
                shard, record = layout.place(split, start + int(sample["record"]))
                marks.setdefault((split, shard), []).append(Mark(record, group, name))
    key = lambda mark: (mark.record, mark.group, mark.name)  # noqa: E731
    return tuple(
        replace(target, marks=tuple(sorted(marks.get((target.split, target.index), ()), key=key)))
        for target in layout.targets
    )


def _samples(statistics: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    samples = statistics.get("samples", {})
    for group in SAMPLE_GROUPS:
        for name, places in samples.get(group, {}).items():
            for sample in places:
                yield group, name, sample
    for sample in samples.get(UNLABELLED, ()):
        yield UNLABELLED, "", sample


def shard_samples(places: Iterable[tuple[Mark, Place]]) -> dict[str, Any]:
    """The statistics of a shard of which only the places of marked records are known."""
    samples: dict[str, Any] = {**{group: {} for group in SAMPLE_GROUPS}, UNLABELLED: []}
    for mark, place in places:
        own = samples[UNLABELLED] if mark.group == UNLABELLED else samples[mark.group].setdefault(mark.name, [])
        own.append(list(place))
    return {"samples": samples}
