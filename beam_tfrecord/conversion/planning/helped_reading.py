"""The rows of a manifest read by this process and its helpers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from beam_tfrecord.annotations import kinds_of_modules
from beam_tfrecord.conversion.helpers import are_waiting
from beam_tfrecord.conversion.planning.block_reading import (
    BLOCK_ITEMS,
    Block,
    ItemBatch,
    MakeBlock,
    NumberedPiece,
    items_of,
    pack_entries,
    read_entries,
)
from beam_tfrecord.conversion.planning.head_start import head_of, pass_over
from beam_tfrecord.conversion.shared_work import Crew
from beam_tfrecord.manifests.base import Files, Item
from beam_tfrecord.options.config import ConvertConfig

HELPED_ITEMS = 4_096  # a manifest of fewer rows is read before a helper is ready
# Rows that a helper gets at a time: few at the beginning, so that all have something to do, and then a block.
_FIRST_BATCH = 2_048
_FIRST_BATCHES = 16


def read_blocks(numbered: NumberedPiece, config: ConvertConfig, files: Files, helpers: int = 0) -> Iterator[Block]:
    """The entries of a piece in blocks, each with its survey.

    helpers: processes that help where there are many rows and each is an item of its own; the blocks then come in any
    order and size, which nothing depends on.
    """
    if not helpers or not can_help(config):
        yield from pack_entries(read_entries(numbered.piece, config, files), numbered.number, config)
        return
    items = items_of(numbered.piece, config, files)
    head = head_of(numbered)
    if head is not None and head.is_all:
        yield from head.blocks
        return
    if head is not None and pass_over(items, head):
        yield from head.blocks
    elif head is not None:  # two readings that differ must not be put together
        items = items_of(numbered.piece, config, files)
    make = MakeBlock(config, files)
    source = numbered.piece.source
    if not are_waiting():
        first = tuple(itertools.islice(items, HELPED_ITEMS))
        yield make(ItemBatch(numbered.number, source, first))
        if len(first) < HELPED_ITEMS:
            return
    crew: Crew[ItemBatch, Block] = Crew(make, make, helpers)
    try:
        for batch in _batches(items):
            yield from crew.take(ItemBatch(numbered.number, source, batch))
        yield from crew.finish()
    finally:
        crew.close()


def can_help(config: ConvertConfig) -> bool:
    """Whether a helper can read rows: each is an item of its own, and plugins can be imported there as well."""
    return not config.manifest.sequence_column and kinds_of_modules(config.manifest.plugins)


def _batches(items: Iterator[Item]) -> Iterator[tuple[Item, ...]]:
    for number in itertools.count():
        # One less than a block, which pack_entries would follow by an empty one.
        batch = tuple(itertools.islice(items, _FIRST_BATCH if number < _FIRST_BATCHES else BLOCK_ITEMS - 1))
        if not batch:
            return
        yield batch
