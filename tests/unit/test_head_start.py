"""The first rows of a manifest, read by a helper in advance: the same rows as without it, each once, or none at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.conversion import helpers
from beam_tfrecord.conversion.job import prepare_job
from beam_tfrecord.conversion.planning import head_start as module
from beam_tfrecord.conversion.planning.block_reading import NumberedPiece
from beam_tfrecord.conversion.planning.blocks import BlockItem, unpack_block
from beam_tfrecord.conversion.planning.head_start import ReadHead, head_of, head_start
from beam_tfrecord.conversion.planning.helped_reading import read_blocks
from beam_tfrecord.conversion.planning.survey import merge_surveys
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.base import Piece, Source
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage
from tests.samples import class_folders, write_files

ROWS = 300
STORAGE = Storage()


@pytest.fixture(autouse=True)
def no_helper_is_left() -> Iterator[None]:
    yield
    helpers.close_all()


@pytest.fixture
def config(tmp_path: Path) -> ConvertConfig:
    lines = [f"{number}.jpg,{'abc'[number % 3]}" for number in range(ROWS)]
    lines[7] = ",a"  # a reject
    (tmp_path / "rows.csv").write_text("\n".join(["image,label", *lines]) + "\n")
    return ConvertConfig.from_options({"input": str(tmp_path / "rows.csv"), "output": str(tmp_path / "out")})


def source_of(config: ConvertConfig) -> Source:
    (source,) = prepare_job(config, STORAGE).sources
    return source


def read(numbered: NumberedPiece, config: ConvertConfig, count: int) -> tuple[list[BlockItem], int]:
    """All items that are read with so many helpers, and the rows that the surveys tell of."""
    blocks = list(read_blocks(numbered, config, STORAGE, count))
    items = [item for block in blocks for item in unpack_block(block.packed)]
    return sorted(items, key=lambda item: item.payload), merge_surveys(block.survey for block in blocks).rows


@pytest.mark.parametrize("limit", [1, 7, ROWS - 1, ROWS, ROWS + 1])
def test_rows_of_the_head_and_behind_it_are_all_rows(
    config: ConvertConfig, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HEAD_ITEMS", limit)
    numbered = NumberedPiece(3, Piece(source_of(config)))
    head = ReadHead(config, STORAGE)(3, numbered.piece.source)
    assert head.passed.count == min(limit, ROWS)
    assert head.is_all == (limit > ROWS)
    monkeypatch.setattr("beam_tfrecord.conversion.planning.helped_reading.head_of", lambda asked: head)
    assert read(numbered, config, 1) == read(numbered, config, 0)


@pytest.mark.parametrize("kind", ["folder", "csv"])
def test_a_helper_reads_them(config: ConvertConfig, kind: str, tmp_path: Path) -> None:
    if kind == "folder":
        write_files(tmp_path / "photos", class_folders())
        config = ConvertConfig.from_options({"input": str(tmp_path / "photos"), "output": str(tmp_path / "out")})
    numbered = NumberedPiece(0, Piece(source_of(config)))
    alone = read(numbered, config, 0)
    with head_start(0, numbered.piece.source, config, STORAGE):
        [helper] = helpers._RUNNING
        assert helper not in helpers._WAITING
        assert read(numbered, config, 1) == alone
        assert [helper] == helpers._WAITING  # for the shards
        assert head_of(numbered) is None


@pytest.mark.parametrize("change", ["one row less", "one row more", "another row", "shorter than the head"])
def test_a_source_that_was_changed_in_between_is_read_as_it_is_now(
    config: ConvertConfig, tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HEAD_ITEMS", 200)
    numbered = NumberedPiece(0, Piece(source_of(config)))
    head = ReadHead(config, STORAGE)(0, numbered.piece.source)
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    if change == "one row less":
        del lines[50]
    elif change == "one row more":
        lines.insert(50, "new.jpg,a")
    elif change == "another row":
        lines[50] = "new.jpg,a"
    else:
        del lines[100:]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr("beam_tfrecord.conversion.planning.helped_reading.head_of", lambda asked: head)
    items, rows = read(numbered, config, 1)
    assert (items, rows) == read(numbered, config, 0)
    assert rows == len(lines) - 1


def test_one_that_nobody_asks_for_leaves_nothing(config: ConvertConfig) -> None:
    numbered = NumberedPiece(0, Piece(source_of(config)))
    with head_start(0, numbered.piece.source, config, STORAGE):
        assert head_of(NumberedPiece(1, numbered.piece)) is None  # another input
    assert not helpers._RUNNING
    assert head_of(numbered) is None


def test_rows_of_another_piece_are_not_taken(config: ConvertConfig) -> None:
    source = source_of(config)
    with head_start(0, source, config, STORAGE):
        assert head_of(NumberedPiece(0, Piece(source, start=100))) is None


def test_what_cannot_be_read_is_told_where_the_pipeline_reads(config: ConvertConfig, tmp_path: Path) -> None:
    source = source_of(config)
    (tmp_path / "rows.csv").unlink()
    numbered = NumberedPiece(0, Piece(source))
    with head_start(0, source, config, STORAGE), pytest.raises((ManifestError, OSError), match=r"rows\.csv"):
        read(numbered, config, 1)


def test_a_helper_that_dies_meanwhile_is_done_without(config: ConvertConfig) -> None:
    numbered = NumberedPiece(0, Piece(source_of(config)))
    alone = read(numbered, config, 0)
    with head_start(0, numbered.piece.source, config, STORAGE):
        helpers._RUNNING[0]._process.kill()
        helpers._RUNNING[0]._process.wait()
        assert read(numbered, config, 1) == alone


def test_archives_are_not_read_twice(tmp_path: Path, config: ConvertConfig) -> None:
    source = Source(str(tmp_path / "photos.zip"), "archive", None, str(tmp_path))
    with head_start(0, source, config, STORAGE):
        assert not helpers._RUNNING


def test_without_another_process_nothing_is_read_in_advance(
    config: ConvertConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*args: Any, **options: Any) -> Any:
        raise BlockingIOError(os.strerror(11))

    monkeypatch.setattr("subprocess.Popen", refused)
    with head_start(0, source_of(config), config, STORAGE):
        assert head_of(NumberedPiece(0, Piece(source_of(config)))) is None
