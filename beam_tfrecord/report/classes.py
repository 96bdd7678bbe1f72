"""The class balance of a dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from beam_tfrecord.report.charts import Part, stacked_bar
from beam_tfrecord.report.text import clean, percent, plural, shorten

MAX_CLASSES = 500  # shown one by one
MAX_NAME = 80  # characters
STYLES = 6  # colours of splits in the style sheet


@dataclass(frozen=True, slots=True)
class ClassRow:
    """One label: its uses in all, per split as (count, share of the split), and the bar."""

    name: str
    title: str
    total: int
    share: str
    per_split: tuple[tuple[int, str], ...]
    bar: Markup


@dataclass(frozen=True)
class ClassBalance:
    """The table of classes. used: labels that occur. rest: the rows that are not shown, added up."""

    splits: tuple[str, ...]
    rows: tuple[ClassRow, ...]
    used: int
    rest: ClassRow | None
    summary: str
    missing: Mapping[str, tuple[str, ...]]
    unused: tuple[str, ...]
    imbalance: float

    def __bool__(self) -> bool:
        return bool(self.rows)


def split_style(place: int) -> str:
    """Class of the style sheet for the colour of a split."""
    return f"s{place % STYLES}"


def class_balance(conversion: Mapping[str, Any]) -> ClassBalance:
    """From ``classes``, ``labels`` and ``splits`` of a conversion.json."""
    splits = tuple(conversion.get("splits", {}))
    counts: dict[str, Mapping[str, int]] = {split: conversion.get("classes", {}).get(split, {}) for split in splits}
    totals: Counter[str] = Counter()
    for of_split in counts.values():
        totals.update(of_split)
    totals = +totals
    ordered = sorted(totals, key=lambda label: (-totals[label], label))
    sums = {split: sum(of_split.values()) for split, of_split in counts.items()}
    widest = max(totals.values(), default=0)
    shown = [
        _row(label, {split: of_split.get(label, 0) for split, of_split in counts.items()}, sums, widest)
        for label in ordered[:MAX_CLASSES]
    ]
    hidden = ordered[MAX_CLASSES:]
    added = {split: sum(of_split.get(label, 0) for label in hidden) for split, of_split in counts.items()}
    rest = _row(f"{plural(len(hidden), 'class', 'classes')} more", added, sums, 0) if hidden else None
    with_labels = [split for split in splits if counts[split]]
    return ClassBalance(
        splits=splits,
        rows=tuple(shown),
        used=len(ordered),
        rest=rest,
        summary=_summary(ordered, totals),
        missing={split: tuple(label for label in ordered if not counts[split].get(label)) for split in with_labels},
        unused=tuple(label for label in conversion.get("labels", ()) if label not in totals),
        imbalance=totals[ordered[0]] / totals[ordered[-1]] if ordered else 1.0,
    )


def _row(label: str, counts: Mapping[str, int], sums: Mapping[str, int], widest: int) -> ClassRow:
    """counts: uses of the label by split. sums: of all labels. widest: what a whole bar means."""
    name = clean(label)
    total = sum(counts.values())
    per_split = tuple((count, percent(count / sums[split]) if sums[split] else "") for split, count in counts.items())
    bar = stacked_bar([Part(count, split_style(place)) for place, count in enumerate(counts.values())], widest)
    return ClassRow(shorten(name, MAX_NAME), name, total, percent(total / sum(sums.values())), per_split, bar)


def _summary(ordered: Sequence[str], totals: Counter[str]) -> str:
    if not ordered:
        return ""
    if len(ordered) == 1:
        return f"One class, {clean(ordered[0])}."
    first, last = ordered[0], ordered[-1]
    if totals[first] == totals[last]:
        return f"{len(ordered):,} classes, each used {totals[first]:,} times."
    return (
        f"{len(ordered):,} classes. The most frequent, {shorten(clean(first), 60)}, is used {totals[first]:,} times "
        f"({percent(totals[first] / totals.total())}), the least frequent, {shorten(clean(last), 60)}, "
        f"{totals[last]:,} times."
    )
