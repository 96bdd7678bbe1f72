"""Whether a record has exactly the features that the dataset states, each of its type and length."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set

from beam_tfrecord.annotations.base import Feature, FeatureSpec
from beam_tfrecord.datasets.record_view import RecordView
from beam_tfrecord.tfrecord.example import NO_KIND
from beam_tfrecord.tools.verifying.faults import Problem

_SHOWN_KEYS = 5


def check_message(view: RecordView, message: str) -> Iterator[Problem]:
    """Whether the record is of the message type that the dataset states."""
    if view.message != message:
        yield Problem("wrong_features", f"it is a tf.train.{view.message}, but the dataset has {message}s")


def check_features(
    view: RecordView, specs: Mapping[str, FeatureSpec], listed: Mapping[str, FeatureSpec]
) -> Iterator[Problem]:
    """What is wrong with the keys, types and lengths of a record. specs: by key; listed: those of feature lists."""
    yield from _check_keys(view.features.keys(), specs.keys(), "")
    for key, spec in specs.items():
        feature = view.features.get(key)
        if feature is not None:
            yield from _check_feature(key, feature, spec)
    if not listed and not view.steps:
        return
    yield from _check_keys(view.steps.keys(), listed.keys(), "feature list ")
    for key, spec in listed.items():
        for number, feature in enumerate(view.steps.get(key, ())):
            yield from _check_feature(f"{key}[{number}]", feature, spec)
    yield from check_steps(view.steps)


def _check_keys(found: Set[str], stated: Set[str], what: str) -> Iterator[Problem]:
    if found == stated:
        return
    missing, further = stated - found, found - stated
    if missing:
        yield Problem("wrong_features", f"it lacks the {what or 'feature '}{_listed(missing)}")
    if further:
        yield Problem("wrong_features", f"it has the {what or 'feature '}{_listed(further)}, which is not stated")


def _listed(keys: Set[str]) -> str:
    ordered = sorted(keys)
    more = f" and {len(ordered) - _SHOWN_KEYS} more" if len(ordered) > _SHOWN_KEYS else ""
    return ", ".join(ordered[:_SHOWN_KEYS]) + more


def _check_feature(key: str, feature: Feature, spec: FeatureSpec) -> Iterator[Problem]:
    if feature.dtype == NO_KIND:
        yield Problem("wrong_features", f"{key} has no values of any type, but {spec.dtype} is stated")
        return
    if feature.dtype != spec.dtype:
        yield Problem("wrong_features", f"{key} holds {feature.dtype}, but {spec.dtype} is stated")
        return
    count = len(feature.values)
    if count == 1 and not spec.shape:
        return
    known = math.prod(size for size in spec.shape if size is not None)
    if None not in spec.shape:
        if count != known:
            yield Problem("wrong_features", f"{key} has {_values(count)}, but exactly {known} must be there")
    elif known > 1 and count % known:
        yield Problem("wrong_features", f"{key} has {_values(count)}, which are no rows of {known}")


def check_steps(steps: Mapping[str, Sequence[Feature]], *, partial: bool = False) -> Iterator[Problem]:
    """Whether all feature lists of a sequence have one step for each picture.

    partial: lists may be left empty, as writers do that have nothing to tell.
    """
    lengths = {key: len(values) for key, values in steps.items() if values or not partial}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{key} {length}" for key, length in sorted(lengths.items())[:_SHOWN_KEYS])
        yield Problem("uneven_lists", f"its feature lists have different numbers of steps: {told}")


def _values(count: int) -> str:
    return "1 value" if count == 1 else f"{count} values"
