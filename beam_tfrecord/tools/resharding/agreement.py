"""Whether the records of several datasets are of one kind, so that they can be one dataset."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import TypeVar

from beam_tfrecord.annotations.base import FeatureSpec
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.errors import DatasetError

Value = TypeVar("Value")

# What may differ: it tells what the images of one dataset have in common. Of masks the depth must be one: their values
# mean something, and a reader decodes all of them alike.
_COMMON = ("channels", "encoding", "description")
_TOGETHER = "or convert the inputs of both in one run"


def check_agreement(datasets: Sequence[tuple[str, DatasetFacts]]) -> None:
    """Raise DatasetError, naming the first difference and how to mend it, unless the datasets can be one.

    datasets: (name, facts); each is compared with the first.
    """
    (first, known), *others = datasets
    for name, facts in others:
        difference = find_difference(known, facts, first, name)
        if difference:
            raise DatasetError(f"{first} and {name} cannot be one dataset: {difference}")


def find_difference(one: DatasetFacts, two: DatasetFacts, first: str, second: str) -> str:
    """The first difference between two datasets, called ``first`` and ``second``, and its cure; '' for none."""
    if one.message != two.message:
        return (
            f"the records of {first} are tf.train.{one.message}, those of {second} tf.train.{two.message}; convert "
            "both with --sequence_column, or none"
        )
    return _label_difference(one, two, first, second) or _feature_difference(one, two, first, second)


def _label_difference(one: DatasetFacts, two: DatasetFacts, first: str, second: str) -> str:
    cure = f"convert both with the same --labels labels.txt, {_TOGETHER}"
    names = itertools.zip_longest(one.vocabulary.names, two.vocabulary.names)
    for number, (own, other) in enumerate(names):
        if own != other:
            told = [
                f"{name!r} in {place}" if name is not None else f"missing in {place}"
                for name, place in ((own, first), (other, second))
            ]
            return f"label {number} (counted from 0) is {told[0]} and {told[1]}; {cure}"
    for label, own_id, other_id in zip(one.vocabulary.names, one.vocabulary.ids, two.vocabulary.ids, strict=True):
        if own_id != other_id:
            return (
                f"the label {label!r} has the id {own_id} in {first} and {other_id} in {second}; convert both with the "
                "same --label_offset (and --keep_category_ids for both or none)"
            )
    return ""


def _feature_difference(one: DatasetFacts, two: DatasetFacts, first: str, second: str) -> str:
    names = {key: name for facts in (one, two) for name, key in facts.keys.items()}
    for key in sorted(one.specs.keys() | two.specs.keys()):
        own, other = one.specs.get(key), two.specs.get(key)
        if own is None or other is None:
            there, missing = (first, second) if other is None else (second, first)
            return f"records have {key!r} in {there} but not in {missing}; {_cure(names.get(key, ''))}"
        for field in dataclasses.fields(FeatureSpec):
            values = getattr(own, field.name), getattr(other, field.name)
            may_differ = field.name in _COMMON or (field.name == "pixel_dtype" and names.get(key) == "encoded")
            if values[0] != values[1] and not may_differ:
                told = f"{field.name} {_spelled(values[0])} in {first} and {_spelled(values[1])} in {second}"
                return f"{key!r} has the {told}; {_cure(names.get(key, ''))}"
    for name in sorted(one.keys.keys() & two.keys.keys()):
        if one.keys[name] != two.keys[name]:
            return (
                f"{name} is called {one.keys[name]!r} in {first} and {two.keys[name]!r} in {second}; convert both with "
                "the same --keys and --rename"
            )
    return ""


def _cure(name: str) -> str:
    if name.startswith("column/"):
        return "convert both with the same --columns"
    if "mask" in name:
        return f"convert both with the same --mask_bits, --keys and --rename, {_TOGETHER}"
    if name in ("raw", "encoded", "dtype", "shape"):
        return "convert both with the same --image_format, --keys and --rename"
    return f"convert both with the same --keys and --rename, {_TOGETHER}: then all records have the same features"


def _spelled(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join("any" if size is None else str(size) for size in value) + "]"
    return str(value)


def merge_specs(datasets: Sequence[Mapping[str, FeatureSpec]]) -> tuple[FeatureSpec, ...]:
    """The types of the features of datasets that agree, sorted by key: what differs between images is left open."""
    merged = []
    for key in sorted(datasets[0]):
        own = [specs[key] for specs in datasets]
        merged.append(
            dataclasses.replace(
                own[0],
                channels=_common([spec.channels for spec in own]),
                encoding=_common([spec.encoding for spec in own]),
                pixel_dtype=_common([spec.pixel_dtype for spec in own]) or "uint8",
            )
        )
    return tuple(merged)


def _common(values: Sequence[Value]) -> Value | None:
    """The one value that all have, or None."""
    return values[0] if len(set(values)) == 1 else None
