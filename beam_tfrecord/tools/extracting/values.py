"""Values of features as cells of a manifest that become exactly the same values again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.tools.verifying.faults import Problem

Features = Mapping[str, Feature]


class UnextractableError(Exception):
    """A record is not what it must be to be extracted. problem: code and cause."""

    def __init__(self, code: str, cause: str) -> None:
        super().__init__(code, cause)
        self.problem = Problem(code, cause)


def text_of_bytes(value: bytes) -> str:
    """Bytes as text from which conversion makes the same bytes, UTF-8 or not."""
    return value.decode("utf-8", "surrogateescape")


def cell_of(value: Any) -> Any:
    """A value as JSON has it: bytes as text, numbers that are not finite as words."""
    if isinstance(value, bytes):
        return text_of_bytes(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def values_of(features: Features, key: str | None, dtype: str, count: int | None = None) -> Sequence[Any] | None:
    """The values under a key; None without the key. Raises UnextractableError for another type or number of values."""
    feature = features.get(key) if key is not None else None
    if feature is None:
        return None
    if feature.dtype != dtype and feature.values:
        raise UnextractableError("wrong_features", f"{key} is {feature.dtype}, not {dtype}")
    if count is not None and len(feature.values) != count:
        raise UnextractableError("wrong_features", f"{key} has {len(feature.values)} values, not {count}")
    return feature.values


def needed(features: Features, key: str, dtype: str, count: int | None = None) -> Sequence[Any]:
    """As :func:`values_of`, of a feature that must be there."""
    values = values_of(features, key, dtype, count)
    if values is None:
        raise UnextractableError("wrong_features", f"the record has no feature {key}")
    return values


def optional_text(features: Features, key: str | None) -> str | None:
    """The one text under a key; None when there is none, or not exactly one."""
    feature = features.get(key) if key is not None else None
    if feature is None or feature.dtype != "bytes" or len(feature.values) != 1:
        return None
    return text_of_bytes(feature.values[0])
