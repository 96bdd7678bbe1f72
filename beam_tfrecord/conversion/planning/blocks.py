"""Entries packed in blocks, as they cross the shuffle.

One Beam element costs more than encoding a small image, so entries travel many to a block. An item of a block shows
what decides its place; the entry itself stays packed until its shard is written.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beam_tfrecord.annotations import KINDS
from beam_tfrecord.conversion.choosing.chooser import count_objects
from beam_tfrecord.core.elements import ChosenAway, Entry, RejectedRow

REJECTS = ""  # the split of rows that could not become entries: they are counted and told, and get no record
TALLY = "\0"  # in place of the class of an item: a count of what was chosen away; it lies among the rejects
_ANNOTATIONS = Entry._fields.index("annotations")
_LEVEL = 1  # of zlib: rows of one manifest are much alike, more effort gains little


Hashes = npt.NDArray[np.uint64]


class BlockItem(NamedTuple):
    """What places an entry, and the entry packed.

    order: place among the records of its split, 0 to 2**64 - 1. split: None until the plan decides (--stratify). unit:
    hash that decides the split. stratum: class for --stratify, or :data:`TALLY`. source: number of the input that the
    row came from. payload: the packed Entry, RejectedRow or ChosenAway.
    """

    order: int
    split: str | None
    unit: int
    stratum: str
    source: int
    payload: bytes


def pack_entry(entry: Entry | RejectedRow | ChosenAway) -> bytes:
    """An entry as bytes. Only ever read back by the same job.

    An entry that can be nothing but plain tuples and texts then is: each class that a pickle names is looked up anew
    when it is read, which takes longer than all the rest.
    """
    if isinstance(entry, RejectedRow | ChosenAway):
        return pickle.dumps(entry, protocol=5)
    packed = {name: KINDS[name].pack(value) for name, value in entry.annotations.items()}
    return pickle.dumps((*entry[:_ANNOTATIONS], packed, *entry[_ANNOTATIONS + 1 :]), protocol=5)


def unpack_entry(payload: bytes) -> Entry | RejectedRow | ChosenAway:
    """The entry in a payload made by :func:`pack_entry`."""
    found = unpack_fields(payload)
    if isinstance(found, RejectedRow | ChosenAway):
        return found
    annotations = {name: KINDS[name].unpack(packed) for name, packed in found.annotations.items()}
    return found._replace(annotations=annotations)


def unpack_fields(payload: bytes) -> Entry | RejectedRow | ChosenAway:
    """The entry in a payload made by :func:`pack_entry`, its annotations as they are packed."""
    found = pickle.loads(payload)
    return found if isinstance(found, RejectedRow | ChosenAway) else Entry._make(found)


class BlockColumns(NamedTuple):
    """The items of a block, field by field; see :class:`BlockItem`. order, unit: uint64."""

    order: Hashes
    split: Sequence[str | None]
    unit: Hashes
    stratum: Sequence[str]
    source: Sequence[int]
    payload: Sequence[bytes]

    def chosen(self, places: Sequence[int]) -> BlockColumns:
        """The items at some places, in that order."""
        order, split, unit, stratum, source, payload = self
        return BlockColumns(
            order[places],
            [split[place] for place in places],
            unit[places],
            [stratum[place] for place in places],
            [source[place] for place in places],
            [payload[place] for place in places],
        )


def columns_of(items: Sequence[BlockItem]) -> BlockColumns:
    """Items as columns."""
    order, split, unit, stratum, source, payload = zip(*items, strict=True) if items else ((),) * len(BlockItem._fields)
    return BlockColumns(np.array(order, np.uint64), split, np.array(unit, np.uint64), stratum, source, payload)


def pack_block(items: Sequence[BlockItem]) -> bytes:
    """Items as one compressed block."""
    return pack_columns(columns_of(items))


def pack_columns(columns: BlockColumns) -> bytes:
    """Items in columns as one compressed block."""
    order, split, unit, stratum, source, payload = columns
    packed = (order.tobytes(), split, unit.tobytes() if unit.any() else b"", stratum, source, payload)
    return zlib.compress(pickle.dumps(packed, protocol=5), _LEVEL)


def unpack_columns(block: bytes) -> BlockColumns:
    """The items of a block, in columns."""
    order, split, unit, stratum, source, payload = pickle.loads(zlib.decompress(block))
    orders = np.frombuffer(order, np.uint64)
    units = np.frombuffer(unit, np.uint64) if unit else np.zeros(len(orders), np.uint64)
    return BlockColumns(orders, split, units, stratum, source, payload)


def unpack_block(block: bytes) -> Iterator[BlockItem]:
    """The items of a block, in their order."""
    return items_of_columns(unpack_columns(block))


def items_of_columns(columns: BlockColumns) -> Iterator[BlockItem]:
    """The items in columns, in their order."""
    order, split, unit, stratum, source, payload = columns
    return map(BlockItem, order.tolist(), split, unit.tolist(), stratum, source, payload)


# ---------------------------------------------------------------------------------------------------------------------
# What was chosen away


def tally(away: ChosenAway, source: int, order: int = 0) -> BlockItem:
    """A count as an item, among the rejects of an input."""
    return BlockItem(order, REJECTS, 0, TALLY, source, pack_entry(away))


def counted_away(payload: bytes, reason: str) -> ChosenAway:
    """The count of one packed row that is chosen away after all."""
    found = unpack_entry(payload)
    if isinstance(found, ChosenAway):
        raise TypeError("what was chosen away cannot be chosen away again")
    objects = count_objects(found) if isinstance(found, Entry) else 0
    return ChosenAway({reason: 1}, found.source_rows, objects)


def count_away(columns: BlockColumns, reason: str) -> Iterator[BlockItem]:
    """The rows in columns as one count for each input."""
    of_source: dict[int, list[ChosenAway]] = {}
    for source, payload in zip(columns.source, columns.payload, strict=True):
        of_source.setdefault(source, []).append(counted_away(payload, reason))
    for source, parts in sorted(of_source.items()):
        lines, objects = sum(part.source_rows for part in parts), sum(part.objects for part in parts)
        yield tally(ChosenAway({reason: len(parts)}, lines, objects), source)
