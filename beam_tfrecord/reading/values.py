"""A record as plain Python values, as its spec says: no numpy, no TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from beam_tfrecord.annotations.base import Feature, FeatureSpec
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.reading.names import BOXES, SHORT, STORED, box_sides, names_by_key
from beam_tfrecord.tfrecord.example import decode_example, decode_sequence_example


@dataclass(frozen=True)
class RecordValues:
    """Takes serialized records of one dataset apart. style: see :mod:`beam_tfrecord.reading.names`."""

    facts: DatasetFacts
    style: str = STORED

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return names_by_key(self.facts, self.style)

    @cached_property
    def _sides(self) -> tuple[str, ...]:
        return box_sides(self.facts) if self.style == SHORT else ()

    def of(self, data: bytes) -> dict[str, Any]:
        """The values of a serialized record by name.

        A feature of one value is that value, a list is a list, and rows are lists of lists. Feature lists of a
        SequenceExample are a list with an item for each step. Whole numbers are int, the others float, text is str
        (what is not UTF-8 in it stays as surrogates, so that ``os.fsencode`` gives the bytes back), all else is bytes.

        Raises DatasetError when the record is not what the spec says.
        """
        try:
            if self.facts.is_sequence:
                context, steps = decode_sequence_example(data)
            else:
                context, steps = decode_example(data), {}
        except ValueError as error:
            raise DatasetError(str(error)) from None
        values: dict[str, Any] = {}
        for key, spec in self.facts.specs.items():
            if spec.in_sequence:
                values[key] = [_plain(feature, spec) for feature in _found(steps, key)]
            else:
                values[key] = _plain(_found(context, key), spec)
        named = {name: values[key] for key, name in self._names.items() if key not in self._sides}
        if self._sides:
            lists = [values[key] for key in self._sides]
            in_steps = self.facts.specs[self._sides[0]].in_sequence
            named[BOXES] = [_boxes(step) for step in zip(*lists, strict=True)] if in_steps else _boxes(lists)
        return named


def _found(features: Mapping[str, Any], key: str) -> Any:
    if key not in features:
        raise DatasetError(f"it has no feature {key!r}, which every record of the dataset must have")
    return features[key]


def _plain(feature: Feature, spec: FeatureSpec) -> Any:
    values: Sequence[Any] = feature.values
    if values and feature.dtype != spec.dtype:
        raise DatasetError(f"its feature {spec.key!r} holds {feature.dtype}, not {spec.dtype}")
    if spec.role == "text":
        values = [value.decode("utf-8", "surrogateescape") for value in values]
    shape = spec.shape
    if shape == ():
        if len(values) != 1:
            raise DatasetError(f"its feature {spec.key!r} holds {len(values)} values, not one")
        return values[0]
    expected = 1
    for size in shape:
        expected *= 0 if size is None else size
    if None not in shape and len(values) != expected:
        raise DatasetError(f"its feature {spec.key!r} holds {len(values)} values, not {expected}")
    if len(shape) == 2 and shape[1] is not None:
        return _rows(values, shape[1], spec.key)
    return list(values)


def _rows(values: Sequence[Any], width: int, key: str) -> list[list[Any]]:
    if len(values) % width:
        raise DatasetError(f"its feature {key!r} holds {len(values)} values, which are no rows of {width}")
    return [list(values[start : start + width]) for start in range(0, len(values), width)]


def _boxes(sides: Sequence[Sequence[float]]) -> list[list[float]]:
    """Rows of [ymin, xmin, ymax, xmax] from four lists."""
    try:
        return [list(box) for box in zip(*sides, strict=True)]
    except ValueError:
        raise DatasetError(f"its boxes have {', '.join(str(len(side)) for side in sides)} sides") from None
