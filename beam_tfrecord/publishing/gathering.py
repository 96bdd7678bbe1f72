"""What all shards of a dataset tell together: added up in any order, and some at a time, with the same result.

Of each shard a line stays (:class:`~beam_tfrecord.core.elements.WrittenShard`), since the metadata name each of them.
All else is a sum, whose size does not depend on the number of shards.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from beam_tfrecord.conversion.writing.statistics import add_statistics, placed_statistics
from beam_tfrecord.core.elements import ShardInfo, WrittenShard

GATHERED_AT_ONCE = 64  # that wait until they are added up
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Gathered:
    """What some shards tell.

    shards: in no order. classes: uses of labels by split. statistics: as
    :func:`beam_tfrecord.conversion.writing.statistics.add_statistics` gives them, with (split, index) as key.
    unbalanced: shards whose rows are not their records, rejects and rows chosen away, for people. The other fields are
    sums of those of the same name of :class:`~beam_tfrecord.core.elements.ShardInfo`.
    """

    shards: tuple[WrittenShard, ...] = ()
    num_rows: int = 0
    source_rows: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    excluded: Mapping[str, int] = field(default_factory=dict)
    changed: Mapping[str, int] = field(default_factory=dict)
    formats: Mapping[str, int] = field(default_factory=dict)
    exceptions: Mapping[str, int] = field(default_factory=dict)
    objects: Mapping[str, int] = field(default_factory=dict)
    rows_by_input: Mapping[int, int] = field(default_factory=dict)
    classes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    spellings: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    statistics: Mapping[str, Any] = field(default_factory=dict)
    unbalanced: tuple[str, ...] = ()

    @property
    def num_records(self) -> int:
        return sum(shard.num_records for shard in self.shards)


def in_order(gathered: Gathered) -> Gathered:
    """The same with its shards sorted by split and index."""
    return replace(gathered, shards=tuple(sorted(gathered.shards, key=lambda shard: shard.key)))


def gathered_of(info: ShardInfo) -> Gathered:
    """What one shard tells."""
    shard = WrittenShard(
        info.split,
        info.index,
        info.owner,
        bool(info.path),
        bool(info.rejected),
        bool(info.warnings),
        info.num_records,
        info.num_bytes,
        info.payload_bytes,
        info.crc32c,
    )
    told = info.num_records + sum(info.rejected.values()) + sum(info.excluded.values())
    problem = f"shard {info.split}-{info.index}: {info.num_rows} rows, {told} told of"
    return Gathered(
        shards=(shard,),
        num_rows=info.num_rows,
        source_rows=info.source_rows,
        **{name: getattr(info, name) for name in _COUNTS},
        classes={info.split: info.classes},
        spellings=info.spellings,
        statistics=placed_statistics((info.split, info.index) if info.path else "", info.statistics),
        unbalanced=(problem,) if told != info.num_rows else (),
    )


_COUNTS = ("rejected", "excluded", "changed", "formats", "exceptions", "objects", "rows_by_input")


def add_gathered(parts: Sequence[Gathered]) -> Gathered:
    """What several of them tell together."""
    return Gathered(
        shards=tuple(itertools.chain.from_iterable(part.shards for part in parts)),
        num_rows=sum(part.num_rows for part in parts),
        source_rows=sum(part.source_rows for part in parts),
        **{name: added(getattr(part, name) for part in parts) for name in _COUNTS},
        classes=_added_by_key(part.classes for part in parts),
        spellings=_added_by_key(part.spellings for part in parts),
        statistics=add_statistics(part.statistics for part in parts),
        unbalanced=tuple(itertools.chain.from_iterable(part.unbalanced for part in parts))[:1],
    )


def added(counts: Iterable[Mapping[Any, int]]) -> dict[Any, int]:
    """Sums by name, sorted by it."""
    total: Counter[Any] = Counter()
    for own in counts:
        total.update(own)
    return dict(sorted(total.items()))


def _added_by_key(counts: Iterable[Mapping[Key, Mapping[str, int]]]) -> dict[Key, dict[str, int]]:
    parts: dict[Key, list[Mapping[str, int]]] = {}
    for by_key in counts:
        for key, own in by_key.items():
            parts.setdefault(key, []).append(own)
    return {key: added(own) for key, own in parts.items()}


def add_up(parts: Iterable[Gathered]) -> Gathered:
    """The same of parts as they arrive, never more than some of them held."""
    waiting: list[Gathered] = []
    for part in parts:
        waiting.append(part)
        if len(waiting) >= GATHERED_AT_ONCE:
            waiting = [add_gathered(waiting)]
    return add_gathered(waiting)
