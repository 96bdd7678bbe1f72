"""What every manifest format has to do, whatever it reads: subclasses give sample collections, the contract checks.

A format is tested by ``class TestToy(ManifestFormatContract)``; what a subclass gives is abstract there.
"""

from __future__ import annotations

import pickle
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import REJECT_CODES, ConfigError, ManifestError
from beam_tfrecord.manifests import FORMATS, detect_format
from beam_tfrecord.manifests.base import Files, Ignored, Item, ManifestFormat, Piece, Source
from beam_tfrecord.options.config import ManifestConfig
from tests.local_files import LocalFiles

CANONICAL = {
    *("image", "member", "id", "label", "split", "group", "sequence", "order", "size", "frame", "boxes", "captions"),
    *("mask", "mask_member", "instance_mask", "instance_mask_member", "panoptic", "columns"),
    *("filename", "frames", "rank", "kinds"),
}
# Names that are literal in a file system and mean something elsewhere: to globs, uris, shells, CSV.
ODD_NAMES = (
    "plain.jpg",
    "with space.jpg",
    "50%.jpg",
    "a%20b.jpg",
    "n#1.jpg",
    "[1].jpg",
    "übung.jpg",
    "画像.jpg",
    "q?=&.jpg",
)


@dataclass(frozen=True)
class Sample:
    """A collection that was written somewhere, and what must be read from it.

    rows: (origin, fields) of each row, in order. rejects: (origin, code) of what cannot be a row. ignored: number of
    files that are no data. options: of ManifestConfig.
    """

    uri: str
    rows: Sequence[tuple[str, Mapping[str, Any]]]
    rejects: Sequence[tuple[str, str]] = ()
    ignored: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)


def describe(manifest: ManifestFormat, sample: Sample, split: str | None = None, files: Files | None = None) -> Source:
    """The source of a sample."""
    config = ManifestConfig(input=(sample.uri,), **sample.options)
    return manifest.describe(files or LocalFiles(), sample.uri, split, config)


def read(manifest: ManifestFormat, sample: Sample, in_pieces: bool = False, files: Files | None = None) -> list[Item]:
    """All items of a sample, from one piece or from all pieces one after the other."""
    files = files or LocalFiles()
    source = describe(manifest, sample, files=files)
    config = ManifestConfig(input=(sample.uri,), **sample.options)
    pieces = list(manifest.pieces(files, source)) if in_pieces else [Piece(source)]
    return [item for piece in pieces for item in manifest.rows(files, piece, config)]


def rows_of(items: Sequence[Item]) -> list[tuple[str, dict[str, Any]]]:
    """(origin, fields) of the rows."""
    return [(item.origin, dict(item.fields)) for item in items if isinstance(item, Row)]


def rejects_of(items: Sequence[Item]) -> list[tuple[str, str]]:
    """(origin, code) of the rejects."""
    return [(item.finding.origin, item.finding.code) for item in items if isinstance(item, RejectedRow)]


def ignored_in(items: Sequence[Item]) -> int:
    """Number of ignored files."""
    return sum(item.count for item in items if isinstance(item, Ignored))


class ManifestFormatContract:
    """Checks of one format. ``format`` is an instance, with pieces as small as it can cut them."""

    format: ManifestFormat

    @abstractmethod
    def sample(self, folder: Path) -> Sample:
        """A good collection of several rows."""

    @abstractmethod
    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        """A collection of images of exactly these names, with whatever labels."""

    @abstractmethod
    def damaged(self, folder: Path) -> Sample:
        """A collection with damaged rows (or members) among good ones."""

    @abstractmethod
    def empty(self, folder: Path) -> Sample:
        """A source without a single row."""

    def test_is_in_the_registry(self):
        assert type(FORMATS[self.format.name]) is type(self.format)

    def test_is_recognised(self, tmp_path: Path):
        assert detect_format(LocalFiles(), self.sample(tmp_path).uri) == self.format.name

    def test_rows_are_those_of_the_source(self, tmp_path: Path):
        sample = self.sample(tmp_path)
        items = read(self.format, sample)
        assert rows_of(items) == [(origin, dict(fields)) for origin, fields in sample.rows]
        assert rejects_of(items) == list(sample.rejects)
        assert ignored_in(items) == sample.ignored

    def test_pieces_are_exactly_the_whole(self, tmp_path: Path):
        sample = self.sample(tmp_path)
        whole, parts = read(self.format, sample), read(self.format, sample, in_pieces=True)
        assert rows_of(parts) == rows_of(whole)
        assert rejects_of(parts) == rejects_of(whole)
        assert ignored_in(parts) == ignored_in(whole)

    def test_the_order_is_the_same_every_time(self, tmp_path: Path):
        sample = self.sample(tmp_path)
        assert read(self.format, sample) == read(self.format, sample)

    def test_all_fields_are_canonical(self, tmp_path: Path):
        for _, fields in rows_of(read(self.format, self.sample(tmp_path))):
            assert set(fields) <= CANONICAL

    def test_everything_can_be_pickled(self, tmp_path: Path):
        sample, files = self.sample(tmp_path), LocalFiles()
        source = describe(self.format, sample)
        for thing in (source, *self.format.pieces(files, source), *read(self.format, sample)):
            assert pickle.loads(pickle.dumps(thing)) == thing

    def test_a_copy_of_the_source_reads_the_same(self, tmp_path: Path):
        """As it is on another machine, where nothing of describe() is left but the source."""
        sample, files = self.sample(tmp_path), LocalFiles()
        source = pickle.loads(pickle.dumps(describe(self.format, sample)))
        config = pickle.loads(pickle.dumps(ManifestConfig(input=(sample.uri,), **sample.options)))
        assert list(type(self.format)().rows(files, Piece(source), config)) == read(self.format, sample)

    def test_a_named_split_belongs_to_the_source(self, tmp_path: Path):
        assert describe(self.format, self.sample(tmp_path), split="held_out").split == "held_out"
        assert describe(self.format, self.sample(tmp_path)).split is None

    def test_names_are_literal(self, tmp_path: Path):
        items = read(self.format, self.odd_names(tmp_path, ODD_NAMES))
        found = sorted(Path(fields["image"]).name for _, fields in rows_of(items))
        assert found == sorted(ODD_NAMES)
        assert not rejects_of(items)

    def test_damaged_rows_are_told_and_none_is_lost(self, tmp_path: Path):
        sample = self.damaged(tmp_path)
        for in_pieces in (False, True):
            items = read(self.format, sample, in_pieces)
            assert rows_of(items) == [(origin, dict(fields)) for origin, fields in sample.rows]
            assert rejects_of(items) == list(sample.rejects)
            assert {code for _, code in rejects_of(items)} <= set(REJECT_CODES)
            for item in items:
                if isinstance(item, RejectedRow):
                    assert item.finding.stage
                    assert len(item.finding.message) > 10

    def test_an_empty_source_has_no_rows_or_says_that_it_is_empty(self, tmp_path: Path):
        sample = self.empty(tmp_path)
        try:
            items = read(self.format, sample)
        except ManifestError as error:
            assert sample.uri in str(error)  # noqa: PT017 - either answer is right
        else:
            assert rows_of(items) == rejects_of(items) == []

    def test_a_missing_source_is_named(self, tmp_path: Path):
        sample = Sample(str(tmp_path / "nowhere" / "missing"), [])
        with pytest.raises((ManifestError, ConfigError), match="missing"):
            describe(self.format, sample)


class ListedPicturesContract(ManifestFormatContract):
    """The same of a format whose document lists pictures, each in a place of its own."""

    @abstractmethod
    def write(self, folder: Path, names: Sequence[str]) -> str:
        """A document with a picture of each name, and those pictures; where it lies."""

    @abstractmethod
    def row(self, uri: str, name: str, place: int) -> tuple[str, dict[str, Any]]:
        """(origin, fields) of the picture in a place of that document."""

    def sample(self, folder: Path) -> Sample:
        uri = self.write(folder, ["a.jpg", "b.jpg"])
        return Sample(uri, [self.row(uri, "a.jpg", 0), self.row(uri, "b.jpg", 1)])

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return Sample(self.write(folder, names), [])
