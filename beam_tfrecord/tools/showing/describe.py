"""A record in words: keys, types, shapes and short values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from beam_tfrecord.annotations.base import Feature, FeatureSpec
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.datasets.record_view import EXAMPLE
from beam_tfrecord.tools.showing.printable import printable
from beam_tfrecord.tools.showing.selection import PickedRecord
from beam_tfrecord.tools.showing.values import json_features, short_values

SHOWN_STEPS = 3
_MAX_KEY = 44
_TYPE = 5


def describe_record(picked: PickedRecord, facts: DatasetFacts | None) -> list[str]:
    """The lines for a person. Everything in them is printable."""
    view = picked.view
    specs = facts.specs if facts is not None else {}
    rows = list(_feature_rows(view.features, specs, facts))
    steps = list(_step_rows(view.steps, facts))
    width = min(max((len(key) for key, *_ in [*rows, *steps]), default=0), _MAX_KEY)
    size = max((len(shape) for _, _, shape, _ in [*rows, *steps]), default=0)
    lines = [
        f"{printable(picked.file.name)}: record {picked.record} at byte {picked.offset:,} "
        f"(number {picked.number:,}), a tf.train.{view.message} of {picked.num_bytes:,} bytes"
    ]
    lines += [_line(row, width, size) for row in rows]
    if view.message != EXAMPLE:
        lines.append(f"  feature lists of {view.num_steps:,} steps:")
        lines += [_line(row, width, size) for row in steps]
    return lines


Row = tuple[str, str, str, str]


def _line(row: Row, width: int, size: int) -> str:
    key, dtype, shape, text = row
    return f"  {printable(key):{width}}  {dtype:{_TYPE}}  {shape:{size}}  {text}".rstrip()


def _feature_rows(
    features: Mapping[str, Feature], specs: Mapping[str, FeatureSpec], facts: DatasetFacts | None
) -> Iterator[Row]:
    for key, feature in features.items():
        text = short_values(feature.values) if feature.values else "empty"
        yield key, feature.dtype, shape_of(feature, specs.get(key)), text + _names(key, feature, facts)


def _step_rows(steps: Mapping[str, Sequence[Feature]], facts: DatasetFacts | None) -> Iterator[Row]:
    for key, features in steps.items():
        dtypes = sorted({feature.dtype for feature in features})
        lengths = sorted({len(feature.values) for feature in features})
        inner = "" if lengths == [1] else f", {lengths[0]}" if len(lengths) == 1 else ", ?"
        shown = [short_values(feature.values) or "empty" for feature in features[:SHOWN_STEPS]]
        more = " | …" if len(features) > SHOWN_STEPS else ""
        first = _names(key, features[0], facts) if features else ""
        yield key, "/".join(dtypes), f"[{len(features)}{inner}]", " | ".join(shown) + more + first


def shape_of(feature: Feature, spec: FeatureSpec | None) -> str:
    """``scalar``, ``[3]`` or ``[3, 4]``, as the spec of the feature says; without one a list is a list."""
    count = len(feature.values)
    if spec is None:
        return f"[{count}]"
    if spec.shape == () and count == 1:
        return "scalar"
    rows = spec.shape[1:]
    if rows and None not in rows and count % max(1, _product(rows)) == 0:
        return f"[{count // _product(rows)}, {', '.join(map(str, rows))}]"
    return f"[{count}]"


def _product(sizes: Sequence[int | None]) -> int:
    product = 1
    for size in sizes:
        product *= size or 1
    return product


def _names(key: str, feature: Feature, facts: DatasetFacts | None) -> str:
    """Names of label ids, in brackets."""
    if facts is None or feature.dtype != "int64" or key not in facts.specs or facts.specs[key].role != "label":
        return ""
    names = [printable(facts.label_names.get(number, "?")) for number in feature.values[:6]]
    return f" ({', '.join(names)})" if any(name != "?" for name in names) else ""


def record_values(picked: PickedRecord) -> dict[str, Any]:
    """The record for a program."""
    view = picked.view
    values: dict[str, Any] = {
        "file": picked.file.name,
        "split": picked.file.split or None,
        "record": picked.record,
        "number": picked.number,
        "offset": picked.offset,
        "bytes": picked.num_bytes,
        "message": view.message,
    }
    dtypes = {key: feature.dtype for key, feature in view.features.items()}
    if view.message == EXAMPLE:
        return {**values, "features": json_features(view.features), "dtypes": dtypes}
    dtypes |= {key: features[0].dtype for key, features in view.steps.items() if features}
    steps = {key: [json_features({key: feature})[key] for feature in features] for key, features in view.steps.items()}
    return {**values, "context": json_features(view.features), "feature_lists": steps, "dtypes": dtypes}
