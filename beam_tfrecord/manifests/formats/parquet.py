"""Apache Parquet: named, typed columns in row groups (https://parquet.apache.org/docs/file-format/).

A column may hold the pictures themselves, as bytes or as Hugging Face's struct of bytes and path; what travels of them
is where they are (:mod:`beam_tfrecord.manifests.picture_cells`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, BinaryIO

from beam_tfrecord.core.account import Decision
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.base import Files, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.picture_cells import PATH, leaf, parquet_places, picture_cell
from beam_tfrecord.manifests.split_names import SPLIT_OF_NAME, split_of_shard
from beam_tfrecord.manifests.tables import rows_of_cells
from beam_tfrecord.manifests.text.compression import readable
from beam_tfrecord.manifests.text.uri_text import folder_of, name_of
from beam_tfrecord.manifests.typed_tables import FirstCells, TypedTable, table_of, with_class_names
from beam_tfrecord.options.config import ManifestConfig

PIECE_ROWS = 100_000
_BATCH_ROWS = 2_048
FIRST_ROWS = 1_000  # that tell whether columns of numbers are classes

Cells = Iterator[tuple[str, dict[str, Any]]]


class ParquetFormat(ManifestFormat):
    """A Parquet file. Only the columns that play a part are read; origins count rows from 1.

    piece_rows: row groups are put together to pieces of at least so many rows.
    """

    name = "parquet"
    suffixes = (".parquet", ".pq")

    def __init__(self, piece_rows: int = PIECE_ROWS) -> None:
        self._piece_rows = piece_rows

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        """Whether the file begins with Parquet's magic number."""
        return head.startswith(b"PAR1")

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        with opened_parquet(files, uri) as (_, table):
            typed = table_of(table.schema_arrow, first_cells(table), config, uri)
        base = config.images if config.images is not None else folder_of(uri)
        details, told = typed.to_details(), typed.told(config)
        named = split_of_shard(name_of(uri)) if typed.picture_columns() and typed.roles.split is None else ""
        if named:
            details["split"] = named
        if named and split is None:
            told["decisions"] = (*told["decisions"], Decision("split", named, "the name of the shard"))
        return Source(uri, self.name, split, base, details=details, **told)

    def pieces(self, files: Files, source: Source) -> Iterator[Piece]:
        """Each piece is a range of row groups: ``start`` is the first, ``end`` the one behind the last."""
        roles = TypedTable.from_details(source.details).roles
        with opened_parquet(files, source.uri) as (_, table):
            sizes = [table.metadata.row_group(number).num_rows for number in range(table.metadata.num_row_groups)]
        if not sizes or roles.is_whole:
            yield Piece(source)
            return
        start = rows = 0
        first = 1
        for number, size in enumerate(sizes, start=1):
            rows += size
            if rows >= self._piece_rows or number == len(sizes):
                yield Piece(source, start, number, first)
                start, first, rows = number, first + rows, 0

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        typed = TypedTable.from_details(piece.source.details)
        cells = parquet_cells(files, piece.source.uri, typed, piece.start, piece.end, piece.first_line)
        named = piece.source.details.get("split")
        if named:
            typed = replace(typed, roles=replace(typed.roles, split=SPLIT_OF_NAME))
            cells = ((origin, {**own, SPLIT_OF_NAME: named}) for origin, own in cells)
        yield from items_of_cells(cells, typed, files, piece.source)


def items_of_cells(cells: Cells, typed: TypedTable, files: Files, source: Source) -> Iterator[Item]:
    """The rows of the cells of a typed table."""
    named = with_class_names(cells, typed.features, typed.roles.image)
    return rows_of_cells(named, typed.roles, files, source.base)


def parquet_cells(
    files: Files, uri: str, typed: TypedTable, start: int = 0, end: int = -1, first: int = 1, name: str = ""
) -> Cells:
    """(origin, cells by column) of the rows of some row groups.

    start, end: the first row group, and the one behind the last (-1: to the end). first: number of the first row. name:
    of the file, for the names of its pictures.
    """
    number = first
    with opened_parquet(files, uri) as (stream, table):
        for group in range(start, table.metadata.num_row_groups if end < 0 else end):
            places = {
                column: parquet_places(table, stream, uri, group, leaf(column, typed.pictures[column]))
                for column in typed.picture_columns()
            }
            for cells in _plain_cells(table, group, typed.read_columns()):
                for column, found in places.items():
                    path = cells.get(column)
                    path = path.get(PATH) if isinstance(path, dict) else None
                    cells[column] = picture_cell(uri, name, number, column, next(found), path)
                yield f"{uri}:{number}", cells
                number += 1


def first_cells(table: Any) -> FirstCells:
    """Gives cells of the first rows of a file."""

    def cells(names: Sequence[str]) -> Mapping[str, Sequence[Any]]:
        batches = table.iter_batches(batch_size=FIRST_ROWS, columns=list(names))
        batch = next(batches, None) if names else None
        found: dict[str, Sequence[Any]] = batch.to_pydict() if batch is not None else dict.fromkeys(names, ())
        return found

    return cells


def _plain_cells(table: Any, group: int, columns: list[str]) -> Iterator[dict[str, Any]]:
    if not columns:
        yield from ({} for _ in range(table.metadata.row_group(group).num_rows))
        return
    for batch in table.iter_batches(batch_size=_BATCH_ROWS, row_groups=[group], columns=columns):
        yield from batch.to_pylist()


@contextmanager
def opened_parquet(files: Files, uri: str) -> Iterator[tuple[BinaryIO, Any]]:
    """The file, and it as a pyarrow.parquet.ParquetFile.

    Raises ManifestError, also from the body of the with statement.
    """
    import pyarrow
    from pyarrow.parquet import ParquetFile

    with readable(uri), files.open(uri) as stream:
        try:
            with ParquetFile(stream) as table:
                yield stream, table
        except (pyarrow.ArrowException, ValueError) as error:  # ValueError: names of columns that are no UTF-8
            raise ManifestError(f"{uri} cannot be read as Parquet: {error}") from None
