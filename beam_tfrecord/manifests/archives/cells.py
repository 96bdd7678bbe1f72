"""The bytes in a column of a row group of Parquet, one value behind the other."""

from __future__ import annotations

import io
from typing import Any, BinaryIO

from beam_tfrecord.manifests.archives.streams import BrokenStreamError

PARQUET_COLUMN = "parquet"  # the method of a Member that is a column; offset: number of the row group


def column_of_group(table: Any, group: int, column: str) -> list[bytes | None]:
    """The values of a column of bytes. column: its path, such as ``image.bytes``. Raises ArrowException."""
    import pyarrow.compute as pc

    name, _, inner = (column, "", "") if column in table.schema_arrow.names else column.rpartition(".")
    chunks = table.read_row_group(group, columns=[column]).column(name)
    values: list[bytes | None] = (pc.struct_field(chunks, inner) if inner else chunks).to_pylist()
    return values


def unpacked_column(stream: BinaryIO, group: int, column: str) -> io.BytesIO:
    """All bytes of the column. Raises BrokenStreamError."""
    import pyarrow
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(stream) as table:
            return io.BytesIO(b"".join(value for value in column_of_group(table, group, column) if value is not None))
    except (pyarrow.ArrowException, ValueError, IndexError) as error:
        raise BrokenStreamError(f"row group {group} cannot be read as Parquet: {error}") from None
