"""Ids that occur in more than one split, where a split has too many rows for the survey to hold all hashes.

Then the order hashes of all entries are brought together by their highest byte, 8 bytes of each: a billion rows make
heaps of some 30 MB.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from beam_tfrecord.conversion.planning.blocks import REJECTS, unpack_columns
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan
from beam_tfrecord.options.config import ConvertConfig

HashesOfSplit = tuple[str, bytes]  # the hashes as uint64


@dataclass(frozen=True)
class Straddling:
    """Ids that occur in several splits. first: by order hash the split that comes first by name."""

    first: Mapping[int, str]


def hashes_by_heap(block: bytes, plan: DatasetPlan, config: ConvertConfig) -> Iterator[tuple[int, HashesOfSplit]]:
    """(highest byte, (split, hashes)) of the items of a block; nothing where the plan has compared all ids."""
    if plan.compares_ids:
        return
    columns = unpack_columns(block)
    if plan.sample.ends:
        columns, _ = plan.sample.divide(columns)
    splits = np.array(plan.splits_of(columns, config))
    for split in sorted(set(splits.tolist()) - {REJECTS}):
        hashes = np.sort(columns.order[splits == split])
        heaps = hashes >> np.uint64(56)
        numbers, starts = np.unique(heaps, return_index=True)
        for number, own in zip(numbers.tolist(), np.split(hashes, starts[1:]), strict=True):
            yield number, (split, own.tobytes())


def straddling_in(heap: Iterable[HashesOfSplit]) -> Straddling:
    """The hashes of a heap that occur in several splits."""
    parts: dict[str, list[bytes]] = {}
    for split, hashes in heap:
        parts.setdefault(split, []).append(hashes)
    known = {split: np.unique(np.frombuffer(b"".join(own), np.uint64)) for split, own in sorted(parts.items())}
    values, counts = np.unique(np.concatenate([np.zeros(0, np.uint64), *known.values()]), return_counts=True)
    repeated = values[counts > 1]
    found: dict[int, str] = {}
    for split, own in known.items():
        for value in repeated[np.isin(repeated, own)].tolist():
            found.setdefault(value, split)
    return Straddling(found)


def join_straddling(parts: Iterable[Straddling]) -> Straddling:
    """All of several heaps; each hash is found in one of them."""
    return Straddling({value: split for part in parts for value, split in part.first.items()})
