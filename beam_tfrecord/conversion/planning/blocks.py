"""Entries packed in blocks, as they cross the shuffle.

One Beam element costs more than encoding a small image, so entries travel many to a block. An item of a block shows
what decides its place; the entry itself stays packed until its shard is written.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from beam_tfrecord.annotations import KINDS
from beam_tfrecord.core.elements import Entry, RejectedRow

REJECTS = ""  # the split of rows that could not become entries: they are counted and told, and get no record
_ANNOTATIONS = Entry._fields.index("annotations")
_LEVEL = 1  # of zlib: rows of one manifest are much alike, more effort gains little


class BlockItem(NamedTuple):
    """What places an entry, and the entry packed.

    order: place among the records of its split, 0 to 2**64 - 1. split: None until the plan decides (--stratify). unit:
    hash that decides the split. stratum: class for --stratify. source: number of the input that the row came from.
    payload: the packed Entry or RejectedRow.
    """

    order: int
    split: str | None
    unit: int
    stratum: str
    source: int
    payload: bytes


def pack_entry(entry: Entry | RejectedRow) -> bytes:
    """An entry as bytes. Only ever read back by the same job.

    An entry that can be nothing but plain tuples and texts then is: each class that a pickle names is looked up anew
    when it is read, which takes longer than all the rest.
    """
    if isinstance(entry, RejectedRow):
        return pickle.dumps(entry, protocol=5)
    packed = {name: KINDS[name].pack(value) for name, value in entry.annotations.items()}
    return pickle.dumps((*entry[:_ANNOTATIONS], packed, *entry[_ANNOTATIONS + 1 :]), protocol=5)


def unpack_entry(payload: bytes) -> Entry | RejectedRow:
    """The entry in a payload made by :func:`pack_entry`."""
    found = unpack_fields(payload)
    if isinstance(found, RejectedRow):
        return found
    annotations = {name: KINDS[name].unpack(packed) for name, packed in found.annotations.items()}
    return found._replace(annotations=annotations)


def unpack_fields(payload: bytes) -> Entry | RejectedRow:
    """The entry in a payload made by :func:`pack_entry`, its annotations as they are packed."""
    found = pickle.loads(payload)
    return found if isinstance(found, RejectedRow) else Entry._make(found)


def pack_block(items: Iterable[BlockItem]) -> bytes:
    """Items as one compressed block."""
    return zlib.compress(pickle.dumps([tuple(item) for item in items], protocol=5), _LEVEL)


def unpack_block(block: bytes) -> Iterator[BlockItem]:
    """The items of a block, in their order."""
    return map(BlockItem._make, pickle.loads(zlib.decompress(block)))
