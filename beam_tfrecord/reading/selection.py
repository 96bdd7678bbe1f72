"""Which records are asked for (``train``, ``train[:80%]``, ``train[100:200]+validation``, ``all``), and whose share.

The spelling is that of TensorFlow Datasets, and so is the arithmetic (tensorflow_datasets/core/splits.py, version
4.9.10), so that one text names the same records there and here: a percentage is rounded to the closest record in
floating point, a unit that is written at one side of the colon is that of both, and ``[:2shard]``, ``[1shard]`` count
files. Neighbours such as ``[:33%]`` and ``[33%:]`` share a border: no record is in both, none is left out. Everything
is worked out from the counts in conversion.json; no file is opened for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from beam_tfrecord.datasets.metadata import PublishedShard
from beam_tfrecord.errors import ConfigError, nearest

ALL = "all"

_TERM = re.compile(
    r"(?P<split>[^\[\]+\s]+)\s*(?:\[(?:(?P<start>[^\[\]:]*):(?P<stop>[^\[\]:]*)|\s*(?P<one>-?\d+)\s*shard\s*)\])?"
)
_BORDER = re.compile(r"(?P<number>-?[\d_.]+)\s*(?P<unit>%|shard)?")


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
    """start, stop: as they are written, '' where nothing is; one: the number of the only file, or ''."""

    text: str
    split: str
    start: str
    stop: str
    one: str


def _terms(expression: str) -> list[_Term]:
    terms = []
    for text in expression.split("+"):
        match = _TERM.fullmatch(text.strip())
        if match is None:
            raise ConfigError(
                f"split {expression!r} cannot be understood: write a name, with a slice behind it or without, such as "
                "train[:80%], train[100:200] or train[:2shard], and + between several"
            )
        start, stop, one = ((match[name] or "").strip() for name in ("start", "stop", "one"))
        terms.append(_Term(text.strip(), match["split"], start, stop, one))
    return terms


def _parts(term: _Term, splits: Mapping[str, Sequence[PublishedShard]]) -> Iterator[ShardPart]:
    if term.split in splits:
        shards = list(splits[term.split])
    elif term.split == ALL:
        shards = [shard for name in sorted(splits) for shard in splits[name]]
    else:
        told = nearest(term.split, splits)
        raise ConfigError(f"there is no split {term.split!r}{told}; the dataset has {', '.join(sorted(splits))}")
    start, stop = _range(term, [shard.records for shard in shards])
    return cut((ShardPart(shard, 0, shard.records) for shard in shards), start, stop)


def _range(term: _Term, lengths: Sequence[int]) -> tuple[int, int]:
    """The numbers of the first record of a slice and of the one behind its last, of files of some lengths."""
    size = sum(lengths)
    if term.one:
        start, stop = _borders(int(term.one), int(term.one) + 1, "shard", lengths, term)
    else:
        found = [_border(text, term) if text else None for text in (term.start, term.stop)]
        unit = next((border.unit for border in found if border is not None and border.unit), "")
        numbers = [_number(border.number, unit, term) if border is not None else None for border in found]
        start, stop = _borders(numbers[0], numbers[1], unit, lengths, term)
    if max(abs(start), abs(stop)) > size:
        raise ConfigError(f"split {term.text!r} reaches beyond the {size} records that are there")
    start, stop = (border + size if border < 0 else border for border in (start, stop))
    if start > stop:
        raise ConfigError(f"split {term.text!r} starts at record {start} and ends at {stop} of {size}")
    return start, stop


class _Border(NamedTuple):
    number: str
    unit: str


def _border(text: str, term: _Term) -> _Border:
    match = _BORDER.fullmatch(text)
    if match is None:
        raise _no_number(text, term)
    return _Border(match["number"], match["unit"] or "")


def _number(text: str, unit: str, term: _Term) -> float:
    try:
        return float(text) if unit == "%" else int(text)
    except ValueError:
        raise _no_number(text, term) from None


def _no_number(text: str, term: _Term) -> ConfigError:
    return ConfigError(
        f"split {term.text!r}: {text!r} is neither a number of records nor a percentage, nor a number of files (2shard)"
    )


def _borders(
    start: float | None, stop: float | None, unit: str, lengths: Sequence[int], term: _Term
) -> tuple[int, int]:
    """The borders in records; negative ones count from the end."""
    size = sum(lengths)
    if unit == "%":
        if max(abs(start or 0), abs(stop or 0)) > 100:
            raise ConfigError(f"split {term.text!r} reaches beyond the {size} records that are there: over 100%")
        # In floating point, as TensorFlow Datasets has it: 2.3 % of 500 records is not always 11.5.
        shares = [None if share is None else round(share * size / 100.0) for share in (start, stop)]
        return shares[0] or 0, size if shares[1] is None else shares[1]
    if unit == "shard":
        last = None if stop is None else int(stop)
        if last is not None and last <= 0:
            last += len(lengths)
        return 0 if start is None else sum(lengths[: int(start)]), sum(lengths[:last])
    return int(start or 0), size if stop is None else int(stop)
