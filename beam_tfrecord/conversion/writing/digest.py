"""Histograms of whole numbers: small whatever they count, and the same whatever the order in which they are added up.

The bins are fixed: every number below 100 has its own, above that 48 lie between a power of ten and the next, each
about 5 % wide, which on a logarithmic axis is the same width for all. Histograms with fewer bars are exact sums of such
bins.
"""

from __future__ import annotations

import bisect
import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

# First three digits of the lower edges of bins: 100 * 10 ** (n / 48), rounded.
_STEPS = (
    *(100, 105, 110, 115, 121, 127, 133, 140, 147, 154, 162, 169, 178, 187, 196, 205),
    *(215, 226, 237, 249, 261, 274, 287, 301, 316, 332, 348, 365, 383, 402, 422, 442),
    *(464, 487, 511, 536, 562, 590, 619, 649, 681, 715, 750, 787, 825, 866, 909, 953),
)
_EXACT = 100  # numbers below it have bins of their own
_LOWER: tuple[int, ...] = (
    *range(_EXACT),
    *(_STEPS[bisect.bisect_right(_STEPS, number) - 1] for number in range(_EXACT, 1000)),
)
# Every how manieth edge is left in coarser and coarser histograms.
_STRIDES = (1, 2, 4, 8, 16, 48)


def bin_of(value: int) -> int:
    """Lower edge of the bin that a number of 0 or more falls into."""
    scale = 1
    while value >= 1000:
        value //= 10
        scale *= 10
    return _LOWER[value] * scale


def next_edge(edge: int) -> int:
    """The lower edge of the bin behind the one that starts at ``edge``."""
    if edge < _EXACT:
        return edge + 1
    scale = 1
    while edge >= 1000:
        edge //= 10
        scale *= 10
    place = _STEPS.index(edge) + 1
    return (_STEPS[place] if place < len(_STEPS) else 1000) * scale


@dataclass(frozen=True, slots=True)
class Digest:
    """What is known of many whole numbers of 0 or more.

    count, total, least and greatest are exact (least and greatest are 0 when there is no number). bins: how many
    numbers there are by the lower edge of their bin, in order.
    """

    count: int = 0
    total: int = 0
    least: int = 0
    greatest: int = 0
    bins: Mapping[int, int] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        """0 when there is no number."""
        return self.total / self.count if self.count else 0.0

    def quantile(self, share: float) -> int:
        """About the number that ``share`` of all do not exceed: the middle of its bin, within least and greatest."""
        seen = 0
        for edge, number in self.bins.items():
            seen += number
            if seen >= share * self.count:
                return min(max((edge + next_edge(edge) - 1) // 2, self.least), self.greatest)
        return self.greatest

    def count_between(self, low: int, high: int) -> int:
        """How many numbers lie in the bins that start from ``low`` up to, without it, ``high``."""
        return sum(number for edge, number in self.bins.items() if low <= edge < high)

    def to_json(self) -> dict[str, Any]:
        """Plain values; bins as pairs."""
        return {
            "count": self.count,
            "total": self.total,
            "least": self.least,
            "greatest": self.greatest,
            "bins": [[edge, number] for edge, number in self.bins.items()],
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Digest:
        """The digest of such values. Raises KeyError, TypeError or ValueError when they are something else."""
        count, total, least, greatest = (int(values[name]) for name in ("count", "total", "least", "greatest"))
        return cls(count, total, least, greatest, {int(edge): int(number) for edge, number in values["bins"]})


def digest_of(counts: Mapping[int, int]) -> Digest:
    """The digest of numbers by how often each occurs."""
    if not counts:
        return Digest()
    bins: Counter[int] = Counter()
    for value, times in counts.items():
        bins[bin_of(value)] += times
    total = sum(value * times for value, times in counts.items())
    return Digest(sum(counts.values()), total, min(counts), max(counts), dict(sorted(bins.items())))


def merge_digests(digests: Iterable[Digest]) -> Digest:
    """The digest of all numbers of several digests."""
    parts = [digest for digest in digests if digest.count]
    if not parts:
        return Digest()
    bins: Counter[int] = Counter()
    for part in parts:
        bins.update(part.bins)
    return Digest(
        sum(part.count for part in parts),
        sum(part.total for part in parts),
        min(part.least for part in parts),
        max(part.greatest for part in parts),
        dict(sorted(bins.items())),
    )


def digest_of_array(values: npt.NDArray[np.int64]) -> Digest:
    """The digest of an array of numbers from 0 to 10 ** 18."""
    if not values.size:
        return Digest()
    edges = _edge_array()
    counts = np.bincount(np.searchsorted(edges, values, side="right") - 1)  # np.unique loads numpy.ma, 60 ms
    places = np.flatnonzero(counts)
    bins = dict(zip(edges[places].tolist(), counts[places].tolist(), strict=True))
    return Digest(int(values.size), int(values.sum()), int(values.min()), int(values.max()), bins)


@functools.cache
def _edge_array() -> npt.NDArray[np.int64]:
    """The lower edges of all bins up to 10 ** 18."""
    large = [step * 10**power for power in range(16) for step in _STEPS]
    return np.array([*range(_EXACT), *large], np.int64)


# ---------------------------------------------------------------------------------------------------------------------
# Drawing with fewer bars


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a histogram: how many numbers lie from ``low`` up to, without it, ``high``."""

    low: int
    high: int
    count: int


def bars(digest: Digest, most: int) -> list[Bar]:
    """The histogram from the first to the last number, empty bars in between included.

    Small numbers get bars of one width, others bars of one width on a logarithmic axis, and as many of them as fit into
    ``most`` bars (of the widest, a power of ten, there may be more).
    """
    if not digest.count:
        return []
    for edges in _series(digest.least, digest.greatest):
        if len(edges) - 1 <= most:
            break
    counts: Counter[int] = Counter()
    for edge, number in digest.bins.items():
        counts[bisect.bisect_right(edges, edge) - 1] += number
    return [Bar(low, high, counts[place]) for place, (low, high) in enumerate(pairwise(edges))]


def _series(least: int, greatest: int) -> Iterator[list[int]]:
    """Edges from ``least`` or below it to above ``greatest``, with larger and larger steps."""
    if greatest < _EXACT:
        for step in (1, 2, 5, 10, 20, 50, 100):
            yield list(range(least // step * step, greatest + step + 1, step))
    else:
        for stride in _STRIDES:
            yield _logarithmic(least, greatest, stride)


def _logarithmic(least: int, greatest: int, stride: int) -> list[int]:
    edges = [0]
    for edge in _edges(_STEPS[::stride]):
        edges.append(edge)
        if edge > greatest:
            break
    return edges[bisect.bisect_right(edges, least) - 1 :]


def _edges(steps: Sequence[int]) -> Iterator[int]:
    """1 and so on without end: the whole numbers at or above each step."""
    last = 0
    for power in count(-2):
        for step in steps:
            edge = step * 10**power if power >= 0 else -(-step // 10**-power)
            if edge > last:
                yield edge
                last = edge
