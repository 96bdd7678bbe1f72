"""From the rows of a manifest to packed blocks of entries, each with its survey."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from beam_tfrecord.annotations import kinds_of_modules
from beam_tfrecord.config import ConvertConfig
from beam_tfrecord.elements import Entry, RejectedRow
from beam_tfrecord.entries import EntryParser
from beam_tfrecord.helpers import Crew, Tell, are_waiting
from beam_tfrecord.manifests import FORMATS
from beam_tfrecord.manifests.base import Files, Ignored, Item, Piece, Source
from beam_tfrecord.planning.blocks import pack_block
from beam_tfrecord.planning.survey import BlockBuilder, Survey

BLOCK_ITEMS = 16_384  # some megabytes; the more, the fewer elements each of them becomes when it is cut by shard
HELPED_ITEMS = 4_096  # a manifest of fewer rows is read before a helper is ready
# Rows that a helper gets at a time: few at the beginning, so that all have something to do, and then a block.
_FIRST_BATCH = 2_048
_FIRST_BATCHES = 16


@dataclass(frozen=True)
class NumberedPiece:
    """A piece and the number of its source among the inputs."""

    number: int
    piece: Piece


@dataclass(frozen=True)
class Block:
    """Packed entries, and what a survey needs of them."""

    packed: bytes
    survey: Survey


@dataclass(frozen=True)
class ItemBatch:
    """Some rows of a source. number: of the source among the inputs."""

    number: int
    source: Source
    items: tuple[Item, ...]


@dataclass(frozen=True)
class MakeBlock:
    """Makes a block of some rows, in whatever process it finds itself."""

    config: ConvertConfig
    files: Files

    def __call__(self, batch: ItemBatch, tell: Tell = lambda *told: None) -> Block:
        entries = EntryParser(batch.source, self.config, self.files.join).parse(batch.items)
        return next(pack_entries(entries, batch.number, self.config))


def read_entries(piece: Piece, config: ConvertConfig, files: Files) -> Iterator[Entry | RejectedRow | Ignored]:
    """The entries of a piece, and the rejects for rows that cannot become one."""
    return EntryParser(piece.source, config, files.join).parse(_items_of(piece, config, files))


def read_blocks(numbered: NumberedPiece, config: ConvertConfig, files: Files, helpers: int = 0) -> Iterator[Block]:
    """The entries of a piece in blocks, each with its survey.

    helpers: processes that help where there are many rows and each is an item of its own; the blocks then come in any
    order and size, which nothing depends on.
    """
    if not helpers or config.manifest.sequence_column or not kinds_of_modules(config.manifest.plugins):
        yield from pack_entries(read_entries(numbered.piece, config, files), numbered.number, config)
        return
    items = _items_of(numbered.piece, config, files)
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


def pack_entries(
    entries: Iterable[Entry | RejectedRow | Ignored], number: int, config: ConvertConfig
) -> Iterator[Block]:
    """Entries of one source in blocks; one block at least. number: of the source among the inputs."""
    builder = BlockBuilder(config.splits, number)
    for entry in entries:
        if isinstance(entry, Ignored):
            builder.ignore(entry.count)
            continue
        builder.add(entry)
        if len(builder.items) >= BLOCK_ITEMS:
            yield Block(pack_block(builder.items), builder.survey())
            builder.reset()
    yield Block(pack_block(builder.items), builder.survey())


def _items_of(piece: Piece, config: ConvertConfig, files: Files) -> Iterator[Item]:
    return FORMATS[piece.source.format].rows(files, piece, config.manifest)


def _batches(items: Iterator[Item]) -> Iterator[tuple[Item, ...]]:
    for number in itertools.count():
        # One less than a block, which pack_entries would follow by an empty one.
        batch = tuple(itertools.islice(items, _FIRST_BATCH if number < _FIRST_BATCHES else BLOCK_ITEMS - 1))
        if not batch:
            return
        yield batch
