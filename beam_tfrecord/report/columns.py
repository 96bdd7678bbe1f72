"""What the features of some records hold, for datasets without images."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from beam_tfrecord.report.views import Features

MAX_DISTINCT = 1000  # values of a column that are told apart
SHOWN_VALUES = 5
_MAX_TEXT = 200  # bytes of a text that tell it apart


@dataclass
class ColumnSummary:
    """One feature. values: how often each occurs, None when there are too many. least, greatest, total: of numbers."""

    dtype: str
    records: int = 0
    count: int = 0
    values: Counter[Any] | None = field(default_factory=Counter)
    least: float = math.inf
    greatest: float = -math.inf
    total: float = 0.0

    def add(self, values: list[Any]) -> None:
        """Take in the values of one record."""
        self.records += 1
        self.count += len(values)
        for value in values:
            if isinstance(value, bytes):
                value = value[:_MAX_TEXT].decode("utf-8", "replace")
            elif math.isfinite(value):
                self.least = min(self.least, value)
                self.greatest = max(self.greatest, value)
                self.total += value
            if self.values is not None:
                self.values[value] += 1
        if self.values is not None and len(self.values) > MAX_DISTINCT:
            self.values = None

    @property
    def common(self) -> list[tuple[Any, int]]:
        """The most frequent values, when any occurs more than once."""
        if self.values is None:
            return []
        ordered = sorted(self.values.items(), key=lambda item: (-item[1], str(item[0])))
        return ordered[:SHOWN_VALUES] if ordered and ordered[0][1] > 1 else []

    @property
    def distinct(self) -> int | None:
        """How many different values there are; None when they are too many."""
        return None if self.values is None else len(self.values)


class ColumnSummaries:
    """Summaries by key."""

    def __init__(self) -> None:
        self.by_key: dict[str, ColumnSummary] = {}

    def add(self, features: Features) -> None:
        """Take in a record."""
        for key, (dtype, values) in features.items():
            if key not in self.by_key:
                self.by_key[key] = ColumnSummary(dtype)
            self.by_key[key].add(list(values))
