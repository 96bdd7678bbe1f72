"""From the rows of a manifest to packed blocks of entries, each with its survey."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from beam_tfrecord.conversion.choosing.choice import NO_CHOICE, Choice
from beam_tfrecord.conversion.choosing.chooser import Chooser, Parsed
from beam_tfrecord.conversion.choosing.near_rows import NO_NEAR_ROWS, Unit
from beam_tfrecord.conversion.choosing.picture_sizes import PictureSizes
from beam_tfrecord.conversion.entries import EntryParser
from beam_tfrecord.conversion.planning.blocks import pack_block
from beam_tfrecord.conversion.planning.survey import BlockBuilder, Survey
from beam_tfrecord.core.elements import Entry, RejectedRow
from beam_tfrecord.manifests import FORMATS
from beam_tfrecord.manifests.base import Item, Piece
from beam_tfrecord.manifests.own_outputs import files_beside
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage

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


def read_entries(piece: Piece, config: ConvertConfig, storage: Storage, choice: Choice = NO_CHOICE) -> Iterator[Parsed]:
    """The entries of a piece, the rejects for rows that cannot become one, and what was chosen away."""
    chooser = None if choice.is_everything else Chooser(choice, PictureSizes(config, storage).of_all)
    return EntryParser(piece.source, config, storage.join, chooser).parse(items_of(piece, config, storage))


def read_blocks(
    numbered: NumberedPiece, config: ConvertConfig, storage: Storage, choice: Choice = NO_CHOICE
) -> Iterator[Block]:
    """The entries of a piece in blocks, each with its survey."""
    entries = read_entries(numbered.piece, config, storage, choice)
    has_census = bool(numbered.piece.source.census)
    return pack_entries(entries, numbered.number, config, has_census=has_census, units=choice.near.units)


def pack_entries(
    entries: Iterable[Parsed],
    number: int,
    config: ConvertConfig,
    size: int = BLOCK_ITEMS,
    *,
    has_census: bool = False,
    keeps_items: bool = True,
    units: Mapping[str, Unit] = NO_NEAR_ROWS.units,
) -> Iterator[Block]:
    """Entries of one source in blocks of so many; one block at least. number: of the source among the inputs.

    has_census: the survey tells of the files that the entries name. keeps_items: False where only surveys are wanted.
    units: as in :class:`.near_rows.NearRows`.
    """
    builder = BlockBuilder(config.splits, number, has_census=has_census, limit=config.choosing.limit, units=units)
    for entry in entries:
        if not isinstance(entry, (Entry, RejectedRow)):
            builder.tell(entry)
            continue
        builder.add(entry)
        if len(builder.items) >= size:
            yield _block(builder, keeps_items)
            builder.reset()
    yield _block(builder, keeps_items)


def _block(builder: BlockBuilder, keeps_items: bool) -> Block:
    builder.close()
    return Block(pack_block(builder.items) if keeps_items else b"", builder.survey())


def items_of(piece: Piece, config: ConvertConfig, storage: Storage) -> Iterator[Item]:
    """The rows of a piece as its format reads them."""
    return FORMATS[piece.source.format].rows(files_beside(storage, piece.source), piece, config.manifest)
