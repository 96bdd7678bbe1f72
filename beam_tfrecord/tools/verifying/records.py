"""Everything that one record can be checked for."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from beam_tfrecord.annotations.base import Feature, FeatureSpec
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.datasets.record_keys import guess_keys
from beam_tfrecord.datasets.record_view import EXAMPLE, RecordView, frames, view_record
from beam_tfrecord.datasets.tfds_info import LabelNames
from beam_tfrecord.images.sniff import sniff
from beam_tfrecord.tfrecord.example import NO_KIND
from beam_tfrecord.tools.verifying.agreement import (
    NOTHING_TOLD,
    Told,
    check_labels,
    check_named_ids,
    label_ids,
    told_by,
)
from beam_tfrecord.tools.verifying.faults import Problem
from beam_tfrecord.tools.verifying.objects import check_objects
from beam_tfrecord.tools.verifying.pictures import DECODABLE, Decode, check_further_pictures, check_picture, single

ID_BYTES = 8
NO_ID = bytes(ID_BYTES)  # of a record without an id; no id has this hash
NOT_A_MESSAGE = ""


@dataclass(frozen=True, slots=True)
class CheckedRecord:
    """What was found in a record.

    message: ``Example``, ``SequenceExample``, or '' when it is neither. id_hash: of its source id, NO_ID without one.
    labels: ids of every label used. images: pictures that were looked at. told: by a record from elsewhere, to be
    compared with the others.
    """

    problems: tuple[Problem, ...]
    message: str = NOT_A_MESSAGE
    id_hash: bytes = NO_ID
    labels: tuple[int, ...] = ()
    images: int = 0
    told: Told = NOTHING_TOLD


@dataclass(frozen=True)
class RecordRules:
    """What records must satisfy.

    facts: of the dataset; None for records from elsewhere, whose keys are guessed. decode: (height, width, channels) of
    an encoded image; raises ImageError. Called from several threads. label_names: of records from elsewhere, where
    files beside them tell names (see :mod:`beam_tfrecord.datasets.tfds_info`).
    """

    facts: DatasetFacts | None
    decode: Decode
    label_names: LabelNames = field(default_factory=dict)

    def check(self, data: bytes) -> CheckedRecord:
        """Everything about the bytes of one record."""
        try:
            view = view_record(data)
        except ValueError as error:
            return CheckedRecord((Problem("no_example", str(error)),))
        pictures = frames(view)
        keys = guess_or(self.facts.keys if self.facts is not None else None, view)
        problems = list(self._problems(view, pictures, keys))
        labels = [number for frame in _labelled(view, pictures) for number in label_ids(frame, keys)]
        told = told_by(view, keys, self.label_names) if self.facts is None else NOTHING_TOLD
        return CheckedRecord(
            tuple(problems), view.message, id_hash(view, keys), tuple(labels), _count_images(pictures, keys), told
        )

    def _problems(
        self, view: RecordView, pictures: list[Mapping[str, Feature]], keys: Mapping[str, str]
    ) -> Iterator[Problem]:
        facts = self.facts
        if facts is not None:
            yield from check_message(view, facts.message)
            yield from check_features(view, facts.record_specs, facts.step_specs)
            for frame in _labelled(view, pictures):
                yield from check_labels(frame, keys, facts.label_names)
        else:
            yield from check_steps(view.steps, partial=True)
            pictures_of = view.steps.get(keys.get("encoded") or keys.get("raw", ""), ())
            empty = [number for number, step in enumerate(pictures_of) if not step.values]
            if empty:
                yield Problem("wrong_features", f"step {empty[0]} has no image")
            for frame in _labelled(view, pictures):
                yield from check_named_ids(frame, keys, self.label_names)
        for number, frame in enumerate(pictures):
            for problem in self._frame_problems(frame, keys):
                yield problem if view.message == EXAMPLE else Problem(problem.code, f"step {number}: {problem.cause}")

    def _frame_problems(self, frame: Mapping[str, Feature], keys: Mapping[str, str]) -> Iterator[Problem]:
        if self.facts is not None:
            yield from check_picture(frame, keys, self.decode)
            yield from check_objects(frame, keys)
            return
        sure = {name: key for name, key in keys.items() if not (name == "encoded" and _is_doubtful(frame, key))}
        yield from check_picture(frame, sure, self.decode)
        yield from check_further_pictures(frame, set(sure.values()), self.decode)
        yield from check_objects(frame, keys, partial=True)


def _is_doubtful(frame: Mapping[str, Feature], key: str) -> bool:
    """Whether a key that was guessed may hold something else than an encoded image."""
    data = single(frame, key)
    return key != "image/encoded" and not (isinstance(data, bytes) and sniff(data) in DECODABLE)


def guess_or(keys: Mapping[str, str] | None, view: RecordView) -> Mapping[str, str]:
    """The keys that are known, or else those that the record itself suggests."""
    return guess_keys({*view.features, *view.steps}) if keys is None else keys


def _labelled(view: RecordView, pictures: list[Mapping[str, Feature]]) -> list[Mapping[str, Feature]]:
    """Where labels may be: in the features, and in each step of a sequence."""
    return pictures if view.message == EXAMPLE else [view.features, *pictures]


def _count_images(pictures: list[Mapping[str, Feature]], keys: Mapping[str, str]) -> int:
    wanted = [keys[name] for name in ("encoded", "raw") if name in keys]
    return sum(key in frame for frame in pictures for key in wanted)


def source_id(view: RecordView, keys: Mapping[str, str]) -> str | None:
    """The source id of a record in words, or None."""
    value = single(view.features, keys.get("source_id"))
    if value is None:
        return None
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def id_hash(view: RecordView, keys: Mapping[str, str]) -> bytes:
    """Eight bytes that tell source ids apart (nearly always); NO_ID for a record without one."""
    value = single(view.features, keys.get("source_id"))
    if value is None:
        return NO_ID
    text = value if isinstance(value, bytes) else str(value).encode()
    digest = hashlib.blake2b(text, digest_size=ID_BYTES).digest()
    return digest if digest != NO_ID else b"\1" + digest[1:]


# ---------------------------------------------------------------------------------------------------------------------
# Whether a record has exactly the features that the dataset states, each of its type and length.


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
