"""A record in words (keys, types, shapes and short values) and as JSON values."""

from __future__ import annotations

import hashlib
import io
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.annotations.base import Feature, FeatureSpec
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.datasets.record_view import EXAMPLE
from beam_tfrecord.images.safety import DECODE_ERRORS
from beam_tfrecord.images.sniff import describe, sniff
from beam_tfrecord.tools.showing.printable import printable, shortened, shown_bytes, text_or_none
from beam_tfrecord.tools.showing.selection import PickedRecord

# ---------------------------------------------------------------------------------------------------------------------
# Values of features: short for a person, and as JSON for a program.


SHOWN_VALUES = 6
MAX_TEXT = 1000  # bytes; longer ones are told by their size and hash
# Formats with a signature that no text begins with by chance.
_IMAGES = frozenset({"jpeg", "png", "gif", "webp", "bmp", "tiff"})
_WHITE_SPACE = frozenset("\t\n\r")


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What the header of an encoded image says. Sizes are None when it cannot be read."""

    format: str
    num_bytes: int
    width: int | None = None
    height: int | None = None
    channels: int | None = None

    def __str__(self) -> str:
        size = "header unreadable" if self.width is None else f"{self.width} × {self.height}, {self.channels} channels"
        if self.channels == 1:
            size = size.removesuffix("s")
        return f"{describe(self.format)} image, {size}, {self.num_bytes:,} bytes"


def image_facts(data: bytes) -> ImageFacts | None:
    """The facts of an encoded image; None for bytes that are none. Only the header is read."""
    from PIL import Image

    kind = sniff(data)
    if kind not in _IMAGES:
        return None
    try:
        with Image.open(io.BytesIO(data)) as image:
            bands = len(image.getbands()) if image.mode != "P" else 3
            return ImageFacts(kind, len(data), image.width, image.height, bands)
    except DECODE_ERRORS:
        return ImageFacts(kind, len(data))


def shortest_float(number: float) -> float:
    """The float that has the fewest digits of those that are this float32: 0.1, not 0.10000000149011612."""
    if not math.isfinite(number):
        return number
    for digits in range(1, 10):
        candidate = float(f"{number:.{digits}g}")
        if _float32(candidate) == _float32(number):
            return candidate
    return number


def _float32(number: float) -> bytes:
    """The bytes of the nearest float32; nothing when it is out of range."""
    try:
        return struct.pack("<f", number)
    except OverflowError:
        return b""


def short_value(value: Any) -> str:
    """One value for a person, in one printable line."""
    if isinstance(value, bytes):
        facts = image_facts(value)
        if facts is not None:
            return str(facts)
        return shown_bytes(value) if _is_text(value) or len(value) <= 32 else f"{len(value):,} bytes"
    return f"{shortest_float(value):.7g}" if isinstance(value, float) else str(value)


def short_values(values: Sequence[Any]) -> str:
    """A few of the values for a person."""
    shown = [short_value(value) for value in values[:SHOWN_VALUES]]
    if len(values) == 1:
        return shown[0]
    if len(values) > SHOWN_VALUES:
        shown.append(f"… {len(values) - SHOWN_VALUES:,} more")
    return shortened(", ".join(shown), 160)


def _is_text(value: bytes) -> bool:
    text = text_or_none(value) if len(value) <= MAX_TEXT else None
    return text is not None and all(character.isprintable() or character in _WHITE_SPACE for character in text)


def json_value(value: Any) -> Any:
    """One value for a program: numbers and short texts as they are, images as facts, other bytes as size and sha256."""
    if isinstance(value, float):
        return shortest_float(value) if math.isfinite(value) else str(value)
    if not isinstance(value, bytes):
        return value
    facts = image_facts(value)
    if facts is None and _is_text(value):
        return value.decode()
    told: dict[str, Any] = {"bytes": len(value), "sha256": hashlib.sha256(value).hexdigest()}
    if facts is None:
        return told
    size = {"width": facts.width, "height": facts.height, "channels": facts.channels}
    return {"image": facts.format, **{name: number for name, number in size.items() if number is not None}, **told}


def json_feature(feature: Feature) -> list[Any]:
    """The values of a feature for a program."""
    return [json_value(value) for value in feature.values]


def json_features(features: Mapping[str, Feature]) -> dict[str, list[Any]]:
    """Features for a program, by key."""
    return {key: json_feature(feature) for key, feature in features.items()}


# ---------------------------------------------------------------------------------------------------------------------
# A record


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
