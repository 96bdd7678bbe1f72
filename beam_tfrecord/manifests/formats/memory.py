"""Rows that the caller holds in memory: a list of dicts, a pandas DataFrame or an Arrow table."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from beam_tfrecord.annotations.cells import plain
from beam_tfrecord.core.account import Decision
from beam_tfrecord.errors import ConfigError
from beam_tfrecord.manifests.base import Files, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.columns import told_of_table
from beam_tfrecord.manifests.tables import rows_of_cells
from beam_tfrecord.manifests.text.roles import Roles, check_has_image, find_roles
from beam_tfrecord.options.config import ManifestConfig

PIECE_ROWS = 10_000
_SAMPLE_ROWS = 1_000


def describe_rows(rows: Any, config: ManifestConfig, split: str | None = None, name: str = "rows") -> Source:
    """Rows in memory as a source.

    rows: dicts by column name, a pandas DataFrame or a pyarrow Table. Columns are found as in a file; those that are
    missing in some rows are empty there. Relative paths start from ``config.images``, else from the working directory.
    name: stands for the file's name in origins (``rows:17`` is the 17th row). Raises ConfigError for what is no table,
    and for options that do not fit it.
    """
    records = tuple(_records(rows))
    if not records:
        raise ConfigError(f"{name}: there are no rows")
    header = tuple(dict.fromkeys(column for record in records for column in record))
    roles = find_roles(header, config, name, lambda column: (plain(row.get(column)) for row in records[:_SAMPLE_ROWS]))
    check_has_image(roles, header, config, name, ", ".join(f"{key}={value!r}" for key, value in records[0].items()))
    told = Decision("format", "rows", "they were given in memory")
    details = {"roles": roles.to_details()}
    fields = told_of_table(header, roles, config, told)
    return Source(name, "rows", split, config.images or "", details=details, rows=records, **fields)


def _records(rows: Any) -> Iterator[dict[str, Any]]:
    if hasattr(rows, "to_dict") and hasattr(rows, "columns"):
        rows = rows.to_dict("records")
    elif hasattr(rows, "to_pylist"):
        rows = rows.to_pylist()
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise ConfigError(f"rows must be dicts, a DataFrame or an Arrow table, not a {type(rows).__name__}")
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            raise ConfigError(f"row {number} is a {type(row).__name__}; each row must be a dict by column name")
        yield {str(column): value for column, value in row.items()}


class MemoryFormat(ManifestFormat):
    """Rows given by the caller. Made by :func:`describe_rows`; there is no place to look at."""

    name = "rows"
    counts_files = True

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        raise ConfigError("rows in memory have no place: give them to describe_rows")

    def pieces(self, files: Files, source: Source) -> Iterator[Piece]:
        roles = Roles.from_details(source.details["roles"])
        step = len(source.rows) if roles.is_whole else PIECE_ROWS
        for start in range(0, len(source.rows), max(step, 1)):
            part = dataclasses.replace(source, rows=source.rows[start : start + step])
            yield Piece(part, first_line=start + 1)

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        source = piece.source
        roles = Roles.from_details(source.details["roles"])
        cells = (
            (f"{source.uri}:{number}", dict(cells)) for number, cells in enumerate(source.rows, start=piece.first_line)
        )
        yield from rows_of_cells(cells, roles, files, source.base)
