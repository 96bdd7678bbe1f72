"""The sample of ``--limit`` in a plan: which rows of a survey are in it, and which items of a block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from beam_tfrecord.conversion.choosing.limiting import (
    EVERYTHING,
    Cell,
    SampleEnd,
    apportion,
    sample_end,
    sample_places,
    sample_size,
)
from beam_tfrecord.conversion.planning.blocks import REJECTS, TALLY, BlockColumns
from beam_tfrecord.conversion.planning.survey import HashSketch, Strata, Survey, merge_sketches

Tie = tuple[str | None, str, int]  # cell and order hash of an id
_OF_REJECTS: Cell = (REJECTS, "")


@dataclass(frozen=True)
class Sample:
    """Where the sample ends in each cell; nowhere without a limit.

    ends: the first place in the order of the sample that is not in it. ties: how many copies of an id are in it, where
    it ends within them. rows_away: how many rows are not in it, rejects_away those of them that cannot become entries.
    """

    ends: Mapping[Cell, int] = field(default_factory=dict)
    ties: Mapping[Tie, int] = field(default_factory=dict)
    rows_away: int = 0
    rejects_away: int = 0

    def divide(self, columns: BlockColumns) -> tuple[BlockColumns, BlockColumns]:
        """(the items that are in the sample, or may be, copies of an id; those that are not)."""
        places = sample_places(columns.order).tolist()
        cells = zip(columns.split, columns.stratum, strict=True)
        is_in = [
            cell[1] == TALLY or place < self.ends.get(cell, EVERYTHING)
            for place, cell in zip(places, cells, strict=True)
        ]
        away = [number for number, is_kept in enumerate(is_in) if not is_kept]
        return columns.chosen([number for number, is_kept in enumerate(is_in) if is_kept]), columns.chosen(away)


NO_SAMPLE = Sample()


def take_sample(survey: Survey, limit: int | float | None) -> tuple[Survey, Sample]:
    """(the survey with the places of the rows in the sample alone, the sample)."""
    sizes = {cell: sketch.count for cell, sketch in survey.cells.items()}
    total = sum(sizes.values())
    if limit is None or sample_size(limit, total) == total:
        return survey, NO_SAMPLE
    counts = apportion(sample_size(limit, total), sizes, _OF_REJECTS)
    ends = {cell: sample_end(sketch, counts[cell]) for cell, sketch in survey.cells.items()}
    orders: dict[str | None, list[HashSketch]] = {REJECTS: [HashSketch(0, b"")]}  # where the counts go
    for (split, _), end in ends.items():
        if split is not None and end.count:
            orders.setdefault(split, []).append(_sketch_of(end))
    strata = {name: _within(pairs, ends[None, name]) for name, pairs in survey.strata.items()}
    left = replace(
        survey,
        orders={split: merge_sketches(sketches) for split, sketches in orders.items()},
        strata={name: pair for name, pair in strata.items() if pair is not None},
    )
    ties = {(*cell, end.tie[0]): end.tie[1] for cell, end in ends.items() if end.tie is not None}
    rejects_away = sizes.get(_OF_REJECTS, 0) - counts.get(_OF_REJECTS, 0)
    places = {cell: end.place for cell, end in ends.items()}
    return left, Sample(places, ties, total - sum(counts.values()), rejects_away)


def _sketch_of(end: SampleEnd) -> HashSketch:
    return HashSketch(end.count, None if end.orders is None else end.orders.tobytes())


def _within(pairs: Strata, end: SampleEnd) -> Strata | None:
    """What is left of the rows of a class whose split is not decided yet."""
    units, orders = pairs
    if not end.count:
        return None
    if units.hashes is None or orders.hashes is None:
        return HashSketch(end.count, None), HashSketch(end.count, None)
    places = np.frombuffer(orders.hashes, np.uint64)
    kept = sample_places(places) <= np.uint64(end.place - 1)
    own = places[kept]
    return (
        HashSketch(len(own), np.frombuffer(units.hashes, np.uint64)[kept].tobytes()),
        HashSketch(len(own), own.tobytes()),
    )
