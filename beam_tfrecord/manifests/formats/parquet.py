"""Apache Parquet: named, typed columns in row groups (https://parquet.apache.org/docs/file-format/)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from beam_tfrecord.errors import ConfigError, ManifestError
from beam_tfrecord.manifests.base import Files, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.columns import told_of_table
from beam_tfrecord.manifests.text.compression import readable
from beam_tfrecord.manifests.text.roles import Roles, check_has_image, find_roles
from beam_tfrecord.manifests.text.row_fields import rows_of_cells, with_mask_places
from beam_tfrecord.manifests.text.uri_text import folder_of
from beam_tfrecord.options.config import ManifestConfig

PIECE_ROWS = 100_000
_BATCH_ROWS = 2_048


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
        with _opened(files, uri) as table:
            schema = table.schema_arrow
        header = tuple(schema.names)
        roles = find_roles(header, config, uri, lambda name: [[]] * (schema.field(name).type.num_fields > 0))
        check_has_image(roles, header, config, uri, ", ".join(f"{field.name}: {field.type}" for field in schema))
        if roles.image is not None and schema.field(roles.image).type.num_fields > 0:
            raise ConfigError(
                f"{uri}: column {roles.image!r} is a {schema.field(roles.image).type}, not the path of an image: save "
                f"the images as files and their paths in a column, or name another one with --image_column"
            )
        base = config.images if config.images is not None else folder_of(uri)
        details = {"roles": roles.to_details()}
        return Source(uri, self.name, split, base, details=details, **told_of_table(header, roles, config))

    def pieces(self, files: Files, source: Source) -> Iterator[Piece]:
        """Each piece is a range of row groups: ``start`` is the first, ``end`` the one behind the last."""
        roles = Roles.from_details(source.details["roles"])
        with _opened(files, source.uri) as table:
            sizes = [table.metadata.row_group(number).num_rows for number in range(table.metadata.num_row_groups)]
        if not sizes or roles.has_boxes or roles.sequence is not None:
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
        roles = Roles.from_details(piece.source.details["roles"])
        cells = _cells(files, piece, None if roles.has_boxes else list(roles.needed()))
        items = rows_of_cells(cells, roles)
        yield from with_mask_places(items, files, piece.source.base) if roles.mask is not None else items


def _cells(files: Files, piece: Piece, columns: list[str] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    uri = piece.source.uri
    number = piece.first_line
    with _opened(files, uri) as table:
        end = table.metadata.num_row_groups if piece.end < 0 else piece.end
        groups = list(range(piece.start, end))
        for batch in table.iter_batches(batch_size=_BATCH_ROWS, row_groups=groups, columns=columns):
            for cells in batch.to_pylist():
                yield f"{uri}:{number}", cells
                number += 1


@contextmanager
def _opened(files: Files, uri: str) -> Iterator[Any]:
    """The file as a pyarrow.parquet.ParquetFile. Raises ManifestError, also from the body of the with statement."""
    import pyarrow
    from pyarrow.parquet import ParquetFile

    with readable(uri), files.open(uri) as stream:
        try:
            with ParquetFile(stream) as table:
                yield table
        except (pyarrow.ArrowException, ValueError) as error:  # ValueError: names of columns that are no UTF-8
            raise ManifestError(f"{uri} cannot be read as Parquet: {error}") from None
