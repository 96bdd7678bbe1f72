"""The end of a report: features, columns, options and versions."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.options.config import option_fields
from beam_tfrecord.report.findings import Cut, cut
from beam_tfrecord.report.scan import ColumnSummary
from beam_tfrecord.report.text import clean, number, percent

_DEFAULTS = {field.name: field.default for _, field in option_fields()}


@dataclass(frozen=True, slots=True)
class FeatureRow:
    """One feature of the records."""

    key: str
    dtype: str
    shape: str
    description: str


@dataclass(frozen=True, slots=True)
class OptionRow:
    """One option. is_given: it differs from the default."""

    name: str
    value: Cut
    is_given: bool


@dataclass(frozen=True, slots=True)
class ColumnRow:
    """What one feature of a table holds."""

    key: str
    dtype: str
    values: str
    common: tuple[tuple[Cut, str], ...]


def feature_rows(conversion: Mapping[str, Any]) -> list[FeatureRow]:
    """The features that the records have."""
    rows = []
    for key, feature in conversion.get("features", {}).items():
        shape = "×".join("any" if size is None else str(size) for size in feature.get("shape", ())) or "one value"
        per_frame = "per frame, " if feature.get("in_sequence") else ""
        rows.append(
            FeatureRow(
                clean(key), clean(feature.get("dtype", "")), per_frame + shape, clean(feature.get("description", ""))
            )
        )
    return rows


def option_rows(conversion: Mapping[str, Any]) -> list[OptionRow]:
    """The options of the conversion, those that differ from the default first."""
    rows = [
        OptionRow(clean(name), cut(_spelled(value), 200), value != _plain_default(name))
        for name, value in conversion.get("options", {}).items()
        if value is not None
    ]
    return sorted(rows, key=lambda row: not row.is_given)


def _plain_default(name: str) -> Any:
    default = _DEFAULTS.get(name)
    return list(default) if isinstance(default, tuple) else default


def _spelled(value: Any) -> str:
    """A JSON value for a person: places of inputs by name, lists with commas."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_spelled, value))
    if isinstance(value, Mapping) and "uri" in value:
        return f"{value['split']}={value['uri']}" if value.get("split") else str(value["uri"])
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def column_rows(columns: Mapping[str, ColumnSummary]) -> list[ColumnRow]:
    """What the features of a table hold."""
    return [_column_row(key, columns[key]) for key in sorted(columns)]


def _column_row(key: str, column: ColumnSummary) -> ColumnRow:
    told = []
    if math.isfinite(column.least):
        told.append(
            f"from {number(column.least)} to {number(column.greatest)}, mean {number(column.total / column.count)}"
        )
    if column.distinct is None:
        told.append("more than 1,000 different values")
    elif column.distinct:
        told.append("one value" if column.distinct == 1 else f"{column.distinct:,} different values")
    if column.records and column.count != column.records:
        told.append(f"{number(column.count / column.records)} per record")
    common = tuple((cut(_spelled(value), 40), percent(count / column.count)) for value, count in column.common)
    return ColumnRow(clean(key), clean(column.dtype), "; ".join(told), common)
