"""Which records are asked for (``train``, ``train[:80%]``, ``train[100:200]+validation``, ``all``), and whose share.

The spelling is that of TensorFlow Datasets, and so is the rounding of percentages to the closest record, so that one
text names the same records there and here. Neighbours such as ``[:33%]`` and ``[33%:]`` share a border: no record is in
both, none is left out. Everything is worked out from the counts in conversion.json; no file is opened for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from beam_tfrecord.datasets.metadata import PublishedShard
from beam_tfrecord.errors import ConfigError, nearest

ALL = "all"

_TERM = re.compile(r"(?P<split>[^\[\]+\s]+)\s*(?:\[(?P<start>[^\[\]:]*):(?P<stop>[^\[\]:]*)\])?")
_COUNT = re.compile(r"-?\d+(?:_\d+)*")
_PERCENT = re.compile(r"(-?\d+(?:\.\d+)?)\s*%")


@dataclass(frozen=True, slots=True)
class ShardPart:
    """Records ``start`` to ``stop`` (which is not among them) of a shard, numbered from 0."""

    shard: PublishedShard
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


def select_parts(
    splits: Mapping[str, Sequence[PublishedShard]], expression: str | None, share: tuple[int, int] = (0, 1)
) -> tuple[ShardPart, ...]:
    """The parts of shards that hold the records asked for, in order.

    expression: None means ``all``. share: (index, count) of a worker; the shares of all workers have each record once,
    and differ in size by one record at most. A share is a run of neighbours, so that a worker opens few files: records
    were put in random order when they were written.

    Raises ConfigError for what cannot be understood, for a split that is not there (the nearest is named), and for
    records beyond the last one.
    """
    parts = [part for term in _terms(ALL if expression is None else expression) for part in _parts(term, splits)]
    index, count = share
    total = sum(map(len, parts))
    return tuple(cut(parts, total * index // count, total * (index + 1) // count))


def cut(parts: Iterable[ShardPart], start: int, stop: int) -> Iterator[ShardPart]:
    """What is left of some parts when only their records ``start`` to ``stop`` are wanted, counted over all of them."""
    passed = 0
    for part in parts:
        first, last = max(start - passed, 0), min(stop - passed, len(part))
        if first < last:
            yield ShardPart(part.shard, part.start + first, part.start + last)
        passed += len(part)


@dataclass(frozen=True, slots=True)
class _Term:
    text: str
    split: str
    start: str
    stop: str


def _terms(expression: str) -> list[_Term]:
    terms = []
    for text in expression.split("+"):
        match = _TERM.fullmatch(text.strip())
        if match is None:
            raise ConfigError(
                f"split {expression!r} cannot be understood: write a name, with a slice behind it or without, such as "
                "train[:80%] or train[100:200], and + between several"
            )
        start, stop = ((match[name] or "").strip() for name in ("start", "stop"))
        terms.append(_Term(text.strip(), match["split"], start, stop))
    return terms


def _parts(term: _Term, splits: Mapping[str, Sequence[PublishedShard]]) -> Iterator[ShardPart]:
    if term.split in splits:
        shards = list(splits[term.split])
    elif term.split == ALL:
        shards = [shard for name in sorted(splits) for shard in splits[name]]
    else:
        told = nearest(term.split, splits)
        raise ConfigError(f"there is no split {term.split!r}{told}; the dataset has {', '.join(sorted(splits))}")
    size = sum(shard.records for shard in shards)
    start = _border(term.start, size, term) if term.start else 0
    stop = _border(term.stop, size, term) if term.stop else size
    if start > stop:
        raise ConfigError(f"split {term.text!r} starts at record {start} and ends at {stop} of {size}")
    return cut((ShardPart(shard, 0, shard.records) for shard in shards), start, stop)


def _border(text: str, size: int, term: _Term) -> int:
    """The number of the record at which a slice starts or ends; negative ones count from the end."""
    percent = _PERCENT.fullmatch(text)
    if percent:
        share = Fraction(percent[1])
        number, is_inside = round(share * size / 100), abs(share) <= 100
    elif _COUNT.fullmatch(text):
        number = int(text)
        is_inside = abs(number) <= size
    else:
        raise ConfigError(f"split {term.text!r}: {text!r} is neither a number of records nor a percentage")
    if not is_inside:
        raise ConfigError(f"split {term.text!r} reaches beyond the {size} records that are there")
    return number + size if text.startswith("-") else number
