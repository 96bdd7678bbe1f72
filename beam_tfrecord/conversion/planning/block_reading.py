"""From the rows of a manifest to packed blocks of entries, each with its survey."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from beam_tfrecord.conversion.entries import EntryParser
from beam_tfrecord.conversion.planning.blocks import pack_block
from beam_tfrecord.conversion.planning.survey import BlockBuilder, Survey
from beam_tfrecord.core.elements import Entry, RejectedRow
from beam_tfrecord.manifests import FORMATS
from beam_tfrecord.manifests.base import Files, Item, Piece, Told
from beam_tfrecord.manifests.own_outputs import files_beside
from beam_tfrecord.options.config import ConvertConfig

Parsed = Entry | RejectedRow | Told
BLOCK_ITEMS = 16_384  # some megabytes; the more, the fewer elements each of them becomes when it is cut by shard


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


def read_entries(piece: Piece, config: ConvertConfig, files: Files) -> Iterator[Parsed]:
    """The entries of a piece, and the rejects for rows that cannot become one."""
    return EntryParser(piece.source, config, files.join).parse(items_of(piece, config, files))


def read_blocks(numbered: NumberedPiece, config: ConvertConfig, files: Files) -> Iterator[Block]:
    """The entries of a piece in blocks, each with its survey."""
    entries = read_entries(numbered.piece, config, files)
    return pack_entries(entries, numbered.number, config, has_census=bool(numbered.piece.source.census))


def pack_entries(
    entries: Iterable[Parsed], number: int, config: ConvertConfig, size: int = BLOCK_ITEMS, *, has_census: bool = False
) -> Iterator[Block]:
    """Entries of one source in blocks of so many; one block at least. number: of the source among the inputs.

    has_census: the survey tells of the files that the entries name.
    """
    builder = BlockBuilder(config.splits, number, has_census=has_census)
    for entry in entries:
        if not isinstance(entry, (Entry, RejectedRow)):
            builder.tell(entry)
            continue
        builder.add(entry)
        if len(builder.items) >= size:
            yield Block(pack_block(builder.items), builder.survey())
            builder.reset()
    yield Block(pack_block(builder.items), builder.survey())


def items_of(piece: Piece, config: ConvertConfig, files: Files) -> Iterator[Item]:
    """The rows of a piece as its format reads them."""
    return FORMATS[piece.source.format].rows(files_beside(files, piece.source), piece, config.manifest)
