"""Plain columns of the manifest that become features (``--columns name:type``).

Canonical field ``columns``: mapping of column name to cell, as the manifest gives it. Types:

``int64``   digits with an optional sign, of 64 bits; a typed whole float and True or False are fine as well
``float``   a number; stored as float32, so it must not be too large for that; ``nan`` and ``inf`` when spelled so
``string``  the text as it stands, UTF-8; a typed number as JSON spells it
``bytes``   bytes as they are, text as UTF-8

An empty or absent cell is the default of its column (``year:int64=-1``). Without one it is an empty text (``string``,
``bytes``), an empty list (any list), and an error for one number: it stands for no value. The cell of a list is a list
of a typed format, or text: a JSON array, or values between ``--label_separator`` (without it: ``|``, and for numbers
also commas, semicolons and white space).

In a SequenceExample each frame has its own values (feature lists); nothing else differs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.annotations.base import AnnotationKind, Feature, FeatureSpec, Schema
from beam_tfrecord.annotations.cells import float32_number, is_blank, plain, shown, text_of, utf8_text, whole_number
from beam_tfrecord.annotations.keys import column_name
from beam_tfrecord.core.elements import packed_quickly
from beam_tfrecord.errors import RowError
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.options.values import Column

_BETWEEN_NUMBERS = re.compile(r"[\s,;|]+")


@packed_quickly
@dataclass(frozen=True, slots=True)
class Columns:
    """The values of each declared column, in the order of the declaration."""

    values: tuple[tuple[Any, ...], ...]


class ColumnsKind(AnnotationKind[Columns]):
    """Declared columns to features of their own name."""

    name = "columns"

    def parse(
        self, fields: Mapping[str, Any], config: ConvertConfig, warn: Callable[[str, str], None]
    ) -> Columns | None:
        """Raises RowError (``bad_row``) that names column, cell and type."""
        declared = config.manifest.columns
        if not declared:
            return None
        cells = fields.get("columns") or {}
        separator = config.manifest.label_separator
        return Columns(tuple(_values(column, cells.get(column.name), separator) for column in declared))

    def pack(self, value: Columns) -> Any:
        return value.values

    def unpack(self, packed: Any) -> Columns:
        return Columns(packed)

    def features(self, value: Columns | None, schema: Schema) -> dict[str, Feature]:
        values = value.values if value is not None else tuple(_absent(column) for column in schema.columns)
        return {
            schema.keys[column_name(column)]: Feature(_dtype(column), own)
            for column, own in zip(schema.columns, values, strict=True)
        }

    def spec(self, schema: Schema) -> list[FeatureSpec]:
        return [
            FeatureSpec(
                schema.keys[column_name(column)],
                _dtype(column),
                (None,) if column.is_list else (),
                "text" if column.type == "string" else "scalar",
                description=f"column {column.name} of the manifest",
            )
            for column in schema.columns
        ]


def _dtype(column: Column) -> str:
    return "bytes" if column.type in ("string", "bytes") else column.type


def _absent(column: Column) -> tuple[Any, ...]:
    """What stands for a column in an entry that has none of the columns."""
    if column.is_list:
        return ()
    if column.default is not None:
        return (_value(column, column.default),)
    return {"int64": (0,), "float": (float("nan"),)}.get(column.type, (b"",))


def _values(column: Column, cell: Any, separator: str | None) -> tuple[Any, ...]:
    cell = plain(cell)
    if column.is_list:
        return tuple(_value(column, item) for item in _items(column, cell, separator))
    return (_value(column, cell),)


def _items(column: Column, cell: Any, separator: str | None) -> Sequence[Any]:
    """The parts of the cell of a list."""
    if isinstance(cell, list | tuple):
        return cell
    if is_blank(cell):
        return ()
    if not isinstance(cell, str):
        return (cell,)
    if cell.strip().startswith("["):
        try:
            parts = json.loads(cell)
        except (ValueError, RecursionError):
            parts = None
        if isinstance(parts, list):
            return parts
    if separator is None and column.type in ("int64", "float"):
        return [part for part in _BETWEEN_NUMBERS.split(cell) if part]
    return [part for part in cell.split(separator or "|") if part]


def _value(column: Column, cell: Any) -> Any:
    if column.default is not None and is_blank(cell):
        cell = column.default
    try:
        if column.type in ("string", "bytes"):
            return _bytes(cell)
        if is_blank(cell) and not (isinstance(cell, float) and column.type == "float"):
            raise ValueError(
                f"is empty: fill it, give what it stands for (--columns {column}=-1), or declare a list "
                f"({column}[]), where nothing is an empty list"
            )
        return whole_number(cell) if column.type == "int64" else float32_number(cell)
    except ValueError as error:
        raise RowError("bad_row", f"column {column.name!r}, declared as {column.type}: {shown(cell)} {error}") from None


def _bytes(cell: Any) -> bytes:
    if isinstance(cell, bytes):
        return cell
    if cell is None:
        return b""
    if text_of(cell) is None:
        if is_blank(cell):
            return b""
        raise ValueError("is not one text (a list is declared as name:string[])")
    return utf8_text(cell).encode("utf-8", "surrogateescape")
