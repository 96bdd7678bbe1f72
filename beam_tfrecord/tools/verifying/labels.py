"""Whether the ids of labels are those of the vocabulary, and go with their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.annotations.label import NO_LABEL
from beam_tfrecord.tools.verifying.faults import Problem

Frame = Mapping[str, Feature]

# Ids and names of the same labels, by logical name.
LABEL_LISTS = (
    ("label", "label_text"),
    ("object_label", "object_text"),
    ("panoptic_segment_label", "panoptic_segment_text"),
)


def label_ids(frame: Frame, keys: Mapping[str, str]) -> list[int]:
    """Every use of a label in a frame, in order; an image without a label has none."""
    ids: list[int] = []
    for name, _ in LABEL_LISTS:
        feature = frame.get(keys.get(name, ""))
        if feature is not None and feature.dtype == "int64":
            ids += [number for number in feature.values if name != "label" or number != NO_LABEL]
    return ids


def check_labels(frame: Frame, keys: Mapping[str, str], names: Mapping[int, str]) -> Iterator[Problem]:
    """The labels of one frame. keys: logical name -> key. names: label name by id."""
    for id_name, text_name in LABEL_LISTS:
        ids, texts = frame.get(keys.get(id_name, "")), frame.get(keys.get(text_name, ""))
        if ids is None or ids.dtype != "int64":
            continue
        key = keys[id_name]
        allowed = {NO_LABEL} if id_name == "label" else set()
        for number in ids.values:
            if number not in names and number not in allowed:
                yield Problem("bad_label", f"{key} has the id {number}, which no label has")
        if texts is None or texts.dtype != "bytes":
            continue
        if len(texts.values) != len(ids.values):
            yield Problem("bad_label", f"{key} has {len(ids.values)} ids, but there are {len(texts.values)} names")
            continue
        for number, text in zip(ids.values, texts.values, strict=True):
            expected = names.get(number, "" if number in allowed else None)
            if expected is not None and text != expected.encode("utf-8", "surrogateescape"):
                told = text.decode("utf-8", "backslashreplace")
                yield Problem("bad_label", f"{key} has the id {number} ({expected!r}), but the name {told!r}")
    yield from _check_one_hot(frame, keys, names)


def check_named_ids(
    frame: Frame, keys: Mapping[str, str], names_by_key: Mapping[str, Sequence[str]]
) -> Iterator[Problem]:
    """Whether the ids of a frame from elsewhere have a name in the lists of names beside its file."""
    for id_name, _ in LABEL_LISTS:
        key = keys.get(id_name, "")
        ids, names = frame.get(key), names_by_key.get(key)
        if ids is None or names is None or ids.dtype != "int64":
            continue
        for number in ids.values:
            if number != NO_LABEL and not 0 <= number < len(names):
                yield Problem("bad_label", f"{key} has the id {number}, but there are {len(names)} names of labels")


def _check_one_hot(frame: Frame, keys: Mapping[str, str], names: Mapping[int, str]) -> Iterator[Problem]:
    marks, ids = frame.get(keys.get("label_one_hot", "")), frame.get(keys.get("label", ""))
    if marks is None or ids is None:
        return
    expected = [int(number in ids.values) for number in names]
    if list(marks.values) != expected:
        key = keys["label_one_hot"]
        yield Problem("bad_label", f"{key} does not mark the labels {list(ids.values)} among {len(names)} names")
