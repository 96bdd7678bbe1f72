"""The order of the entries of one shard, and what becomes of entries that share an id."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from beam_tfrecord.annotations import KINDS
from beam_tfrecord.conversion.planning.blocks import REJECTS, BlockItem, counted_away, tally, unpack_entry
from beam_tfrecord.conversion.planning.samples import Tie
from beam_tfrecord.conversion.planning.survey import natural_key
from beam_tfrecord.core.elements import Entry, Finding
from beam_tfrecord.core.splits import HASH_RANGE, order_hash
from beam_tfrecord.errors import ManifestError

STAGE = "plan"
_ORDER = operator.attrgetter("order")


class Placed(NamedTuple):
    """An item of a shard in its place.

    payload: the packed entry. source: number of its input. occurrence: 0, or more for the copies of an id. reject: set
    when the entry is left out. warnings: to be told beside those of the entry.
    """

    order: int
    payload: bytes
    source: int
    occurrence: int = 0
    reject: Finding | None = None
    warnings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class DuplicateRule:
    """How repeated ids are dealt with.

    policy: ``keep``, ``drop`` or ``fail``. seed: of the order. straddling: order hash of an id that occurs in several
    splits -> the split that counts as first. ties: how many copies of an id are in the sample of --limit, where it ends
    within them.
    """

    policy: str
    seed: int
    straddling: Mapping[int, str]
    ties: Mapping[Tie, int] = field(default_factory=dict)


def arrange(items: Iterable[BlockItem], split: str, rule: DuplicateRule) -> list[Placed]:
    """The items of one shard in the order of its records.

    Depends on ids and content only, not on the order of arrival. Raises ManifestError for a repeated id when the policy
    is ``fail``.
    """
    ordered = sorted(items, key=_ORDER)
    if not rule.ties:
        return _arranged(ordered, split, rule)
    ordered, away = _cut_at_ties(ordered, rule)
    return [*_arranged(ordered, split, rule), *(Placed(item.order, item.payload, item.source) for item in away)]


def _cut_at_ties(ordered: Iterable[BlockItem], rule: DuplicateRule) -> tuple[list[BlockItem], list[BlockItem]]:
    """(the items that are in the sample of --limit, counts of those copies of an id that are not)."""
    kept: list[BlockItem] = []
    of_tie: dict[Tie, list[BlockItem]] = {}
    for item in ordered:
        tie = (item.split, item.stratum, item.order)
        (of_tie.setdefault(tie, []) if tie in rule.ties else kept).append(item)
    away = []
    for tie, items in of_tie.items():
        items.sort(key=lambda item: _copy_key(item, rule))
        kept += items[: rule.ties[tie]]
        away += [
            tally(counted_away(item.payload, "limit"), item.source, item.order) for item in items[rule.ties[tie] :]
        ]
    return sorted(kept, key=_ORDER), away


def _copy_key(item: BlockItem, rule: DuplicateRule) -> tuple[object, ...]:
    found = unpack_entry(item.payload)
    if isinstance(found, Entry):
        return _position_key(found) if rule.policy == "drop" else _content_key(found)
    return (item.payload,)


def _arranged(ordered: Sequence[BlockItem], split: str, rule: DuplicateRule) -> list[Placed]:
    if split == REJECTS:
        return [Placed(item.order, item.payload, item.source) for item in ordered]
    if not ordered:
        return []
    orders = [item.order for item in ordered]
    if not rule.straddling and len(set(orders)) == len(orders):
        return [Placed(item.order, item.payload, item.source) for item in ordered]
    span = (orders[0], orders[-1])
    placed: list[Placed] = []
    for order, group in itertools.groupby(ordered, key=lambda item: item.order):
        same = list(group)
        if len(same) == 1 and order not in rule.straddling:
            placed.append(Placed(order, same[0].payload, same[0].source))
        else:
            placed.extend(_arrange_copies(same, split, span, rule))
    placed.sort(key=lambda item: item.order)
    return placed


def _arrange_copies(
    items: Sequence[BlockItem], split: str, span: tuple[int, int], rule: DuplicateRule
) -> Iterator[Placed]:
    """Items with one order hash, nearly always copies of one id."""
    unpacked = [(unpack_entry(item.payload), item) for item in items]
    by_id: dict[str, list[tuple[Entry, BlockItem]]] = {}
    for entry, item in unpacked:
        assert isinstance(entry, Entry)
        by_id.setdefault(entry.id, []).append((entry, item))
    for entry_id in sorted(by_id):
        copies = by_id[entry_id]
        key = _position_key if rule.policy == "drop" else _content_key
        copies.sort(key=lambda copy: key(copy[0]))
        first, first_item = copies[0]
        elsewhere = rule.straddling.get(first_item.order, split)
        if rule.policy == "fail" and (len(copies) > 1 or elsewhere != split) and not _has_derived_id(first):
            other = copies[1][0].origin if len(copies) > 1 else f"a row of split {elsewhere}"
            raise ManifestError(
                f"the id {entry_id!r} is used by {first.origin} and by {other}: give rows distinct ids "
                "(--id_column), or choose --duplicates keep or drop"
            )
        yield from _copies_in_place(copies, split, elsewhere, span, rule)


def _copies_in_place(
    copies: Sequence[tuple[Entry, BlockItem]], split: str, elsewhere: str, span: tuple[int, int], rule: DuplicateRule
) -> Iterator[Placed]:
    first = copies[0][0]
    for occurrence, (entry, item) in enumerate(copies):
        warnings: list[Finding] = []
        where = first.origin if occurrence else f"a row of split {elsewhere}"
        is_repeated = (occurrence > 0 or elsewhere != split) and not _has_derived_id(entry)
        if is_repeated:
            message = f"the id {entry.id!r} is used by {where} too"
            finding = Finding(entry.origin, entry.uri or "", STAGE, "duplicate_id", message)
            if rule.policy == "drop":
                yield Placed(item.order, item.payload, item.source, occurrence, finding)
                continue
            warnings.append(finding)
            if occurrence and _labels(entry) != _labels(first):
                message = f"the id {entry.id!r} has another label at {first.origin}"
                warnings.append(Finding(entry.origin, entry.uri or "", STAGE, "conflicting_label", message))
        order = item.order if occurrence == 0 else _spread(entry.id, occurrence, span, rule.seed)
        yield Placed(order, item.payload, item.source, occurrence, None, tuple(warnings))


def _spread(entry_id: str, occurrence: int, span: tuple[int, int], seed: int) -> int:
    """A place within the shard for a copy, so that copies do not lie side by side."""
    low, high = span
    return low + (high - low) * order_hash(seed, f"{entry_id}\0{occurrence}") // HASH_RANGE


def _has_derived_id(entry: Entry) -> bool:
    """Rows of a table without ids are known by their content; equal rows are no duplicates under any policy."""
    return entry.uri is None and not entry.frames and entry.id.startswith("row-")


def _labels(entry: Entry) -> object:
    return [list(KINDS[name].labels(value)) for name, value in entry.annotations.items() if KINDS[name].of_whole]


def _content_key(entry: Entry) -> tuple[object, ...]:
    return repr((entry.uri, entry.annotations, entry.frames)), natural_key(entry.origin)


def _position_key(entry: Entry) -> tuple[object, ...]:
    return (natural_key(entry.origin),)
