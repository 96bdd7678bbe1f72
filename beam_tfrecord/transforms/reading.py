"""From manifests to blocks of entries."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import apache_beam as beam

from beam_tfrecord.conversion.choosing.choice import NO_CHOICE, Choice, load_choice
from beam_tfrecord.conversion.choosing.near_rows import NO_NEAR_ROWS, NearRows
from beam_tfrecord.conversion.planning.block_reading import Block, NumberedPiece, read_blocks, read_entries
from beam_tfrecord.core.elements import Entry, RejectedRow
from beam_tfrecord.manifests import FORMATS
from beam_tfrecord.manifests.base import Files, Piece, Source
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage
from beam_tfrecord.transforms.counters import RetryCounts
from beam_tfrecord.transforms.spreading import Spread


def split_sources(sources: Iterable[Source], files: Files) -> Iterator[NumberedPiece]:
    """The parts of sources that can be read independently: one of each at least, so that each is surveyed."""
    for number, source in enumerate(sources):
        pieces = iter(FORMATS[source.format].pieces(files, source))
        for piece in itertools.chain([next(pieces, Piece(source))], pieces):
            yield NumberedPiece(number, piece)


class _SplitSources(beam.DoFn):
    def __init__(self, config: ConvertConfig, sources: tuple[Source, ...], storage: Storage) -> None:
        self._config = config  # brings the plugins along
        self._sources = sources
        self._storage = storage
        self._retries = RetryCounts(storage)

    def process(self, start: bytes) -> Iterable[tuple[int, NumberedPiece]]:
        yield from enumerate(split_sources(self._sources, self._storage))
        self._retries.tell()


class _ReadEntries(beam.DoFn):
    def __init__(self, config: ConvertConfig, storage: Storage, choice: Choice) -> None:
        self._config = config
        self._choice = choice
        self._storage = storage
        self._retries = RetryCounts(storage)

    def process(self, element: NumberedPiece) -> Iterable[Entry | RejectedRow]:
        for entry in read_entries(element.piece, self._config, self._storage, self._choice):
            if isinstance(entry, (Entry, RejectedRow)):
                yield entry
        self._retries.tell()


class _ReadBlocks(beam.DoFn):
    def __init__(self, config: ConvertConfig, storage: Storage, choice: Choice) -> None:
        self._config = config
        self._choice = choice
        self._storage = storage
        self._retries = RetryCounts(storage)

    def process(self, element: NumberedPiece, near: NearRows = NO_NEAR_ROWS) -> Iterable[Block]:
        yield from read_blocks(element, self._config, self._storage, replace(self._choice, near=near))
        self._retries.tell()


@beam.typehints.with_output_types(NumberedPiece)
class SplitManifests(beam.PTransform):
    """The sources of a job as pieces, spread over the workers."""

    def __init__(self, config: ConvertConfig, sources: Sequence[Source], storage: Storage) -> None:
        super().__init__()
        self._config = config
        self._sources = tuple(sources)
        self._storage = storage

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection[NumberedPiece]:
        split = _SplitSources(self._config, self._sources, self._storage)
        return (
            root
            | "Start" >> beam.Impulse()
            | "SplitSources" >> beam.ParDo(split).with_output_types(tuple[int, NumberedPiece])
            | "SpreadPieces" >> Spread(NumberedPiece)
        )


class ReadManifest(beam.PTransform):
    """Entries of all inputs: PBegin -> PCollection[Entry | RejectedRow].

    A row that cannot become an entry comes out as a :class:`~beam_tfrecord.core.elements.RejectedRow`: nothing is
    dropped but what the options of choosing leave out; ``limit`` is no matter of this step.
    Raises ConfigError or ManifestError when it is made, for inputs that cannot be read at all.
    """

    def __init__(self, config: ConvertConfig, sources: Sequence[Source], storage: Storage | None = None) -> None:
        super().__init__()
        self._config = config
        self._sources = tuple(sources)
        self._storage = storage or Storage()
        self._choice = load_choice(config, self._storage)

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection[Entry | RejectedRow]:
        return (
            root
            | "SplitManifests" >> SplitManifests(self._config, self._sources, self._storage)
            | "ReadEntries" >> beam.ParDo(_ReadEntries(self._config, self._storage, self._choice))
        )


class ReadBlocks(beam.PTransform):
    """Entries of all inputs in packed blocks, each with its survey: PBegin -> PCollection[Block].

    near: of one element, what is done with near-duplicates; None where ``choice`` tells it.
    """

    def __init__(
        self,
        config: ConvertConfig,
        sources: Sequence[Source],
        storage: Storage,
        choice: Choice = NO_CHOICE,
        near: beam.PCollection[NearRows] | None = None,
    ) -> None:
        super().__init__()
        self._near = near
        self._config = config
        self._sources = tuple(sources)
        self._storage = storage
        self._choice = choice

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection[Block]:
        read = _ReadBlocks(self._config, self._storage, self._choice)
        near = self._choice.near if self._near is None else beam.pvalue.AsSingleton(self._near)
        return (
            root
            | "SplitManifests" >> SplitManifests(self._config, self._sources, self._storage)
            | "ReadBlocks" >> beam.ParDo(read, near=near).with_output_types(Block)
        )
