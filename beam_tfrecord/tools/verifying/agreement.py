"""The labels of records; and what those from elsewhere must agree in, over all files: types of features, and one name
for each id of labels.

An id without a name has the one that other records, or a file beside them, give to it. ``verify`` and ``extract``
gather the same and tell the same faults.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.annotations.label import NO_LABEL
from beam_tfrecord.datasets.record_view import RecordView, frames
from beam_tfrecord.datasets.tfds_info import LabelNames
from beam_tfrecord.tools.verifying.faults import Fault, Problem

# ---------------------------------------------------------------------------------------------------------------------
# Whether the ids of labels are those of the vocabulary, and go with their names.


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


# ---------------------------------------------------------------------------------------------------------------------
# What all records agree in


_WORDS = {"label": "images", "object_label": "objects", "panoptic_segment_label": "segments"}

LabelId = tuple[str, int]  # logical name of a list of ids, id


def can_be_column(key: str) -> bool:
    """Whether --columns can name a feature: names stand between commas there, and blanks around them are none."""
    return bool(key) and "," not in key and key == key.strip()


class Place(NamedTuple):
    """Where something was seen first: name of the file, number of the record, where that starts."""

    file: str
    record: int
    offset: int


class Told(NamedTuple):
    """What one record tells. types: (key, dtype) of features with values. names: of its ids, '' for one without. known:
    logical name of a list of ids -> the names that a file beside the records has for them, where they were looked up.
    """

    types: tuple[tuple[str, str], ...] = ()
    names: tuple[tuple[LabelId, str], ...] = ()
    known: Mapping[str, Sequence[str]] = {}


NOTHING_TOLD = Told()


def told_by(view: RecordView, keys: Mapping[str, str], names_by_key: LabelNames) -> Told:
    """What a record tells. keys: logical name -> key; without those of an image its labels are columns."""
    steps = [(key, feature) for key, features in view.steps.items() for feature in features]
    types = {(key, feature.dtype) for key, feature in [*view.features.items(), *steps] if feature.values}
    names: list[tuple[LabelId, str]] = []
    known: dict[str, Sequence[str]] = {}
    if "encoded" in keys or "raw" in keys:
        for frame in [view.features, *(frames(view) if view.steps else ())]:
            for ids_name, texts_name in LABEL_LISTS:
                _see_labels(frame, keys, ids_name, texts_name, names_by_key, names, known)
    return Told(tuple(sorted(types)), tuple(names), known)


def _see_labels(
    frame: Frame,
    keys: Mapping[str, str],
    ids_name: str,
    texts_name: str,
    names_by_key: LabelNames,
    names: list[tuple[LabelId, str]],
    known: dict[str, Sequence[str]],
) -> None:
    key = keys.get(ids_name, "")
    ids, texts = frame.get(key), frame.get(keys.get(texts_name, ""))
    if ids is None or ids.dtype != "int64":
        return
    spelled = texts.values if texts is not None and texts.dtype == "bytes" else ()
    if spelled and len(spelled) != len(ids.values):
        return
    own = list(names_of_ids(ids.values, spelled))
    if key in names_by_key and not (own and all(name for _, name in own)):
        known[ids_name] = names_by_key[key]
        own = [(number, name) for number, name in own if name]
    names += [((ids_name, number), name) for number, name in own if name or number != NO_LABEL]


def names_of_ids(ids: Sequence[int], texts: Sequence[bytes]) -> Iterator[tuple[int, str]]:
    """(id, name) of ids with the texts beside them, of which there may be none; '' for an id without a name."""
    for number, text in zip(ids, texts or [b""] * len(ids), strict=True):
        yield number, text.decode("utf-8", "surrogateescape").strip()


@dataclass
class Agreement:
    """What the records of one or more files tell: where each type of a feature and each name of an id was seen first.

    Types and names stand in the order in which they were seen. unnamed: how often an id had no name, and where first.
    known: the lists of ids whose names a file tells.
    """

    types: dict[str, dict[str, Place]] = field(default_factory=dict)
    names: dict[LabelId, dict[str, Place]] = field(default_factory=dict)
    unnamed: dict[LabelId, tuple[int, Place]] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)

    def see(self, told: Told, place: Place) -> None:
        """Take in one record."""
        for key, dtype in told.types:
            self.types.setdefault(key, {}).setdefault(dtype, place)
        for label, name in told.names:
            if name:
                self.names.setdefault(label, {}).setdefault(name, place)
            else:
                self._count_unnamed(label, 1, place)
        for ids_name in sorted(told.known.keys() - self.known):
            self.known.add(ids_name)
            for number, name in enumerate(told.known[ids_name]):
                self.names.setdefault((ids_name, number), {}).setdefault(name, place)

    def add(self, other: Agreement) -> None:
        """Take in what a later file tells."""
        for key, by_type in other.types.items():
            _add(self.types.setdefault(key, {}), by_type)
        for label, by_name in other.names.items():
            _add(self.names.setdefault(label, {}), by_name)
        for label, (count, place) in other.unnamed.items():
            self._count_unnamed(label, count, place)
        self.known |= other.known

    def _count_unnamed(self, label: LabelId, count: int, place: Place) -> None:
        known, first = self.unnamed.get(label, (0, place))
        self.unnamed[label] = (known + count, first)

    @property
    def labels(self) -> dict[LabelId, str]:
        """The one name of each id; meaningful without :meth:`label_faults` only."""
        return {label: min(by_name) for label, by_name in self._all_names().items()}

    @property
    def told_names(self) -> dict[LabelId, str]:
        """The name of each id that has exactly one."""
        return {label: min(by_name) for label, by_name in self.names.items() if len(by_name) == 1}

    def _all_names(self) -> dict[LabelId, dict[str, Place]]:
        """Names of all ids; one that has none anywhere is spelled as a number."""
        spelled = {label: {str(label[1]): place} for label, (_, place) in self.unnamed.items()}
        return {**spelled, **self.names}

    def notes(self) -> Iterator[str]:
        """How many labels have the names that were told elsewhere."""
        count = sum(count for label, (count, _) in self.unnamed.items() if len(self.names.get(label, ())) == 1)
        if count:
            yield f"{count:,} labels have no name in their records: other records name the same ids"

    def type_faults(self, besides: Iterable[str] = ()) -> Iterator[Fault]:
        """Features of several types. besides: keys that are told elsewhere."""
        passed = set(besides)
        for key, by_type in sorted(self.types.items()):
            if len(by_type) > 1 and key not in passed:
                (first, place), (second, other) = list(by_type.items())[:2]
                cause = f"{key} is {second}, but {first} in record {place.record} of {place.file}"
                yield Fault(other.file, other.record, other.offset, "wrong_features", cause)

    def name_faults(self) -> Iterator[Fault]:
        """Features that no manifest can have as a column, for their names."""
        for key, by_type in sorted(self.types.items()):
            if not can_be_column(key):
                place = next(iter(by_type.values()))
                cause = f"{key!r} cannot be extracted: no column can be called so"
                yield Fault(place.file, place.record, place.offset, "lost_feature", cause)

    def label_faults(self) -> Iterator[Fault]:
        """Lists of ids that are no vocabulary: an id with two names, a name with two ids, a negative id; the first of
        each list, and how many more."""
        troubles: dict[str, list[Fault]] = {}
        ids_of: dict[tuple[str, str], int] = {}
        for (ids_name, number), by_name in sorted(self._all_names().items()):
            where = f"among the labels of {_WORDS[ids_name]} the id {number}"
            cause, place = "", list(by_name.values())[:2][-1]
            if len(by_name) > 1:
                told = " and ".join(repr(name) for name in sorted(by_name))
                cause = f"{where} has the names {told}"
                if (ids_name, number) in self.unnamed:
                    cause += f", and {self.unnamed[ids_name, number][0]:,} times none"
            elif number < 0:
                cause = f"{where} ({min(by_name)!r}) is negative"
            elif ids_of.setdefault((ids_name, min(by_name)), number) != number:
                cause = f"{where} has the name {min(by_name)!r}, and so has {ids_of[ids_name, min(by_name)]}"
            if cause:
                troubles.setdefault(ids_name, []).append(
                    Fault(place.file, place.record, place.offset, "bad_label", cause)
                )
        for own in troubles.values():
            first = own[0]
            more = f" (and {len(own) - 1:,} more ids are like that)" if len(own) > 1 else ""
            yield Fault(first.file, first.record, first.offset, first.code, first.cause + more)


def _add(known: dict[str, Place], later: Mapping[str, Place]) -> None:
    for value, place in later.items():
        known.setdefault(value, place)


def no_message_cause(records: int) -> str:
    """Of a file from elsewhere in which no record is a message."""
    return (
        f"none of its {records:,} records is a tf.train.Example or SequenceExample: only lengths and checksums can be "
        "checked, and nothing can be extracted"
    )


def joint(agreements: Iterable[Agreement]) -> Agreement:
    """What all files tell, in their order."""
    whole = Agreement()
    for own in agreements:
        whole.add(own)
    return whole
