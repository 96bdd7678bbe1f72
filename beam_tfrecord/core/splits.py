"""From an id or a group to a split, and from an id to its place among the records.

Everything here is a function of the seed and the text of the id (or group): it does not depend on what else the dataset
holds, on the order of the rows or on the machine. Adding rows never moves a row from one split to another.
"""

from __future__ import annotations

import bisect
import hashlib
from collections.abc import Sequence

HASH_RANGE = 2**64
# Usual names of splits, as those of folders and files.
SPLIT_FOLDERS = frozenset({"train", "training", "val", "valid", "validation", "test", "testing", "dev", "eval"})


def _hash64(seed: int, purpose: str, text: str) -> int:
    """64 uniform bits of sha256; the purpose keeps the split of an id independent of its place."""
    digest = hashlib.sha256(f"{seed}\0{purpose}\0{text}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big")


def order_hash(seed: int, entry_id: str) -> int:
    """Where an entry stands among the records of its split, 0 to 2**64 - 1."""
    return _hash64(seed, "order", entry_id)


def split_hash(seed: int, unit: str) -> int:
    """What decides the split of a unit (a group, or an id without one), 0 to 2**64 - 1."""
    return _hash64(seed, "split", unit)


def split_thresholds(ratios: Sequence[tuple[str, float]]) -> tuple[int, ...]:
    """Upper ends (exclusive) of the hash ranges of the splits, in the order of the ratios; the last is 2**64."""
    ends, total = [], 0.0
    for _, ratio in ratios:
        total += ratio
        ends.append(min(HASH_RANGE, round(total * HASH_RANGE)))
    return (*ends[:-1], HASH_RANGE)


def split_by_ratio(ratios: Sequence[tuple[str, float]], thresholds: Sequence[int], unit_hash: int) -> str:
    """The split whose hash range holds the unit."""
    return ratios[bisect.bisect_right(thresholds, unit_hash)][0]


def stratified_counts(ratios: Sequence[tuple[str, float]], count: int) -> tuple[int, ...]:
    """How many items of a class of ``count`` go to each split.

    Largest remainders, and at least one for every split where the class has at least as many items as there are splits.
    Ties go to the split named first, so the result depends on nothing but the arguments.
    """
    exact = [ratio * count for _, ratio in ratios]
    counts = [int(share) for share in exact]
    by_remainder = sorted(range(len(ratios)), key=lambda i: (counts[i] - exact[i], i))
    for i in by_remainder[: count - sum(counts)]:
        counts[i] += 1
    if count >= len(ratios):
        for i, own in enumerate(counts):
            if own == 0:
                richest = max(range(len(ratios)), key=lambda j: (counts[j], -j))
                counts[richest] -= 1
                counts[i] += 1
    return tuple(counts)
