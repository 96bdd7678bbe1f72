"""Pictures that lie in the cells of a Parquet or Arrow file: what travels of each is where its bytes are.

A cell is bytes, or a struct of ``bytes`` and ``path`` as Hugging Face's datasets writes it. Where the bytes stand in
the file as they are, the picture is a range of it: always in Arrow's stream, and in Parquet where the column is not
compressed, as datasets 5.2 has it. Other row groups have to be unpacked, and are so once per process, as compressed
archives are; their pictures are ranges of the column's values, one behind the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from beam_tfrecord.core.elements import Member
from beam_tfrecord.manifests.archives.members import PARQUET_COLUMN, column_of_group
from beam_tfrecord.manifests.text.inline_images import InlineImage
from beam_tfrecord.manifests.text.uri_text import name_of

BYTES, PATH = "bytes", "path"


class Place(NamedTuple):
    """Where the bytes of a cell lie. container: what has to be unpacked first."""

    offset: int
    length: int
    container: Member | None = None


def holds_pictures(kind: Any) -> str:
    """How a column of an Arrow type holds pictures: ``struct``, ``binary``, or '' for not at all."""
    from pyarrow import types

    def is_bytes(one: Any) -> bool:
        return one is not None and bool(types.is_binary(one) or types.is_large_binary(one))

    if is_bytes(kind):
        return "binary"
    if types.is_struct(kind):
        fields = {kind.field(number).name: kind.field(number).type for number in range(kind.num_fields)}
        if is_bytes(fields.get(BYTES)) and set(fields) <= {BYTES, PATH}:
            return "struct"
    return ""


def picture_cell(uri: str, name: str, number: int, column: str, place: Place | None, path: Any) -> Any:
    """The cell of a picture: an InlineImage, the path where the cell has nothing else, or None.

    name: of the file, from the folder of the source on. number: of the row, from 1.
    """
    if place is None:
        return path
    member = Member(uri, (f"row {number}", column), place.offset, place.length, "stored", place.container)
    return InlineImage(
        f"{name or name_of(uri)}:{number}", member, path if isinstance(path, str) and path.strip() else ""
    )


def parquet_places(table: Any, stream: BinaryIO, uri: str, group: int, column: str) -> Iterator[Place | None]:
    """Where the pictures of a row group lie; None for a cell without bytes.

    table: a pyarrow.parquet.ParquetFile of the stream.
    """
    values = column_of_group(table, group, column)
    raw, start = _raw_column(table, stream, group, column)
    offsets = _offsets_in(raw, values) if raw else None
    container = Member(uri, (f"row group {group}", column), group, -1, PARQUET_COLUMN)
    end = 0
    for number, value in enumerate(values):
        if value is None:
            yield None
        elif offsets is not None:
            yield Place(start + offsets[number], len(value))
        else:
            yield Place(end, len(value), container)
            end += len(value)


def _raw_column(table: Any, stream: BinaryIO, group: int, column: str) -> tuple[bytes, int]:
    """(the column of a row group as it stands in the file, its place); no bytes where it is compressed."""
    metadata = table.metadata.row_group(group)
    for number in range(metadata.num_columns):
        chunk = metadata.column(number)
        if chunk.path_in_schema == column and chunk.compression == "UNCOMPRESSED":
            start = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)))
            stream.seek(start)
            return stream.read(chunk.total_compressed_size), start
    return b"", 0


def _offsets_in(raw: bytes, values: Sequence[bytes | None]) -> list[int] | None:
    """Where the values stand: anywhere that the same bytes are. None where one of them does not."""
    found = []
    place = 0
    for value in values:
        if not value:
            found.append(0)
            continue
        behind = place + 4  # the length stands between two values of a page
        if raw[behind : behind + len(value)] != value:
            behind = _find(raw, value, place)
            behind = behind if behind >= 0 else _find(raw, value, 0)  # dictionaries have each value once
        if behind < 0:
            return None
        found.append(behind)
        place = behind + len(value)
    return found


def _find(raw: bytes, value: bytes, start: int) -> int:
    """The place of a value. A long needle would be prepared for long."""
    place = raw.find(value[:64], start)
    while place >= 0 and raw[place : place + len(value)] != value:
        place = raw.find(value[:64], place + 1)
    return place


def arrow_places(array: Any, body: Any, start: int) -> Iterator[Place | None]:
    """Where the pictures of a column of a record batch lie; None for a cell without bytes.

    array: of bytes, its buffers within ``body``, which lies at ``start`` in the file. Raises ValueError where they lie
    elsewhere, as those of a compressed batch do.
    """
    import numpy as np
    from pyarrow import types

    if not len(array):
        return
    _, bounds, data = array.buffers()
    dtype = "<i8" if types.is_large_binary(array.type) else "<i4"
    places = np.frombuffer(bounds, dtype)[array.offset : array.offset + len(array) + 1].tolist()
    first = data.address - body.address if data is not None else 0
    is_within = data is not None and 0 <= first <= body.size - data.size
    for number, is_valid in enumerate(array.is_valid().to_pylist()):
        left, right = places[number : number + 2]
        if is_valid and left < right and not is_within:
            raise ValueError("its batches are compressed, so that no picture stands in it as it is")
        yield Place(start + first + left, right - left) if is_valid else None


def leaf(column: str, how: str) -> str:
    """The path of the bytes of a column, as Parquet spells it."""
    return f"{column}.{BYTES}" if how == "struct" else column
