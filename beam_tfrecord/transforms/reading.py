"""From manifests to blocks of entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam

from beam_tfrecord.config import ConvertConfig
from beam_tfrecord.elements import Entry, RejectedRow
from beam_tfrecord.entries import EntryParser
from beam_tfrecord.manifests import FORMATS
from beam_tfrecord.manifests.base import Files, Ignored, Piece, Source
from beam_tfrecord.planning.blocks import pack_block
from beam_tfrecord.planning.survey import BlockBuilder, Survey
from beam_tfrecord.storage import Storage
from beam_tfrecord.transforms.counters import RetryCounts

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


def split_source(number: int, source: Source, files: Files) -> Iterator[NumberedPiece]:
    """The parts of a source that can be read independently."""
    for piece in FORMATS[source.format].pieces(files, source):
        yield NumberedPiece(number, piece)


def read_entries(piece: Piece, config: ConvertConfig, files: Files) -> Iterator[Entry | RejectedRow | Ignored]:
    """The entries of a piece, and the rejects for rows that cannot become one."""
    items = FORMATS[piece.source.format].rows(files, piece, config.manifest)
    return EntryParser(piece.source, config, files.join).parse(items)


def read_blocks(numbered: NumberedPiece, config: ConvertConfig, files: Files) -> Iterator[Block]:
    """The entries of a piece in blocks, each with its survey."""
    builder = BlockBuilder(config.splits, numbered.number)
    for entry in read_entries(numbered.piece, config, files):
        if isinstance(entry, Ignored):
            builder.ignore(entry.count)
            continue
        builder.add(entry)
        if len(builder.items) >= BLOCK_ITEMS:
            yield Block(pack_block(builder.items), builder.survey())
            builder.reset()
    yield Block(pack_block(builder.items), builder.survey())


class _SplitSource(beam.DoFn):
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._retries = RetryCounts(storage)

    def process(self, element: tuple[int, Source]) -> Iterable[NumberedPiece]:
        number, source = element
        yield from split_source(number, source, self._storage)
        self._retries.tell()


class _ReadEntries(beam.DoFn):
    def __init__(self, config: ConvertConfig, storage: Storage) -> None:
        self._config = config
        self._storage = storage
        self._retries = RetryCounts(storage)

    def process(self, element: NumberedPiece) -> Iterable[Entry | RejectedRow]:
        for entry in read_entries(element.piece, self._config, self._storage):
            if not isinstance(entry, Ignored):
                yield entry
        self._retries.tell()


class _ReadBlocks(beam.DoFn):
    def __init__(self, config: ConvertConfig, storage: Storage) -> None:
        self._config = config
        self._storage = storage
        self._retries = RetryCounts(storage)

    def process(self, element: NumberedPiece) -> Iterable[Block]:
        yield from read_blocks(element, self._config, self._storage)
        self._retries.tell()


@beam.typehints.with_output_types(NumberedPiece)
class SplitManifests(beam.PTransform):
    """The sources of a job as pieces, spread over the workers."""

    def __init__(self, sources: Sequence[Source], storage: Storage) -> None:
        super().__init__()
        self._sources = tuple(sources)
        self._storage = storage

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection[NumberedPiece]:
        return (
            root
            | "Sources" >> beam.Create(list(enumerate(self._sources)), reshuffle=False)
            | "SplitSources" >> beam.ParDo(_SplitSource(self._storage)).with_output_types(NumberedPiece)
            | "SpreadPieces" >> beam.Reshuffle()
        )


class ReadManifest(beam.PTransform):
    """Entries of all inputs: PBegin -> PCollection[Entry | RejectedRow].

    A row that cannot become an entry comes out as a :class:`~beam_tfrecord.elements.RejectedRow`: nothing is dropped.
    Raises ConfigError or ManifestError when it is made, for inputs that cannot be read at all.
    """

    def __init__(self, config: ConvertConfig, sources: Sequence[Source], storage: Storage | None = None) -> None:
        super().__init__()
        self._config = config
        self._sources = tuple(sources)
        self._storage = storage or Storage()

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection[Entry | RejectedRow]:
        return (
            root
            | "SplitManifests" >> SplitManifests(self._sources, self._storage)
            | "ReadEntries" >> beam.ParDo(_ReadEntries(self._config, self._storage))
        )


class ReadBlocks(beam.PTransform):
    """Entries of all inputs in packed blocks, each with its survey: PBegin -> PCollection[Block]."""

    def __init__(self, config: ConvertConfig, sources: Sequence[Source], storage: Storage) -> None:
        super().__init__()
        self._config = config
        self._sources = tuple(sources)
        self._storage = storage

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection[Block]:
        return (
            root
            | "SplitManifests" >> SplitManifests(self._sources, self._storage)
            | "ReadBlocks" >> beam.ParDo(_ReadBlocks(self._config, self._storage)).with_output_types(Block)
        )
