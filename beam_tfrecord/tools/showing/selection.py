"""Which records are shown: by number, by their values, or the first ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.datasets.indexing import indexed_places
from beam_tfrecord.datasets.record_keys import guess_keys
from beam_tfrecord.datasets.record_view import RecordView, view_record
from beam_tfrecord.datasets.shard_files import ShardFile
from beam_tfrecord.errors import ConfigError, nearest
from beam_tfrecord.storage import Storage
from beam_tfrecord.tfrecord import INDEX_SUFFIX, Record, RecordFault, read_record, scan_records

# What ``label=`` is compared with: names and ids of everything that is a label.
_LABELS = (
    "label",
    "label_text",
    "object_label",
    "object_text",
    "panoptic_segment_label",
    "panoptic_segment_text",
)

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Condition:
    """``name=value``: name is a key of the record, or what it holds (``label``, ``filename``, ``height`` ...)."""

    name: str
    value: str


@dataclass(frozen=True)
class Selection:
    """What is asked for. numbers: of records, counted over all files; empty for all. limit: 0 for no limit."""

    numbers: tuple[int, ...] = ()
    conditions: tuple[Condition, ...] = ()
    limit: int = 5


@dataclass(frozen=True, slots=True)
class PickedRecord:
    """A record to be shown.

    number: over all files, from 0. record: its number in the file. offset: where it starts, in decompressed bytes.
    """

    file: ShardFile
    number: int
    record: int
    offset: int
    num_bytes: int
    view: RecordView
    keys: Mapping[str, str]


def parse_condition(text: str) -> Condition:
    """The condition in ``key=value``. Raises ConfigError."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"--where {text}: must be of the form key=value, as in --where label=cat")
    return Condition(name.strip(), value)


def select_records(
    files: Sequence[ShardFile], facts: DatasetFacts | None, selection: Selection, storage: Storage, tell: Tell
) -> Iterator[PickedRecord]:
    """The records that are asked for, in the order of the files.

    tell: is told of each fault of a file (see :class:`~beam_tfrecord.tfrecord.RecordFault`); what can be read is read.
    Raises ConfigError for a number beyond the last record, and for a condition on a feature that no record has.
    """
    names = facts.label_names if facts is not None else {}
    if facts is not None:
        for condition in selection.conditions:
            _check_name(condition, [*facts.specs, *facts.keys])
            _check_label(condition, names)
    known: dict[Condition, bool] = dict.fromkeys(selection.conditions, False)
    seen = 0

    def is_wanted(picked: PickedRecord) -> bool:
        nonlocal seen
        seen += 1
        results = [_outcome(condition, picked, names) for condition in selection.conditions]
        known.update({c: True for c, result in zip(selection.conditions, results, strict=True) if result is not None})
        return all(results)

    everything = (
        _numbered(files, selection.numbers, facts, storage, tell)
        if selection.numbers
        else _all_records(files, facts, storage, tell)
    )
    wanted = (picked for picked in everything if is_wanted(picked))
    yield from islice(wanted, selection.limit or None)
    for condition, was_known in known.items():
        if not was_known and seen:
            raise ConfigError(f"--where {condition.name}={condition.value}: no record has {condition.name!r}")


def _check_name(condition: Condition, names: Sequence[str]) -> None:
    if condition.name not in names and condition.name != "label":
        told = nearest(condition.name, names) or f"; records have {', '.join(names[:5])} ..."
        raise ConfigError(f"--where {condition.name}={condition.value}: no feature is called so{told}")


def _check_label(condition: Condition, names: Mapping[int, str]) -> None:
    """Raises ConfigError for a label that is none."""
    labels = {*names.values(), *map(str, names)}
    if condition.name == "label" and condition.value not in labels:
        told = nearest(condition.value, names.values()) or f"; there are {', '.join(list(names.values())[:5])} ..."
        raise ConfigError(f"--where label={condition.value}: no label is called so{told}")


def _outcome(condition: Condition, picked: PickedRecord, names: Mapping[int, str]) -> bool | None:
    """Whether any value fits; None when the record has nothing of that name."""
    keys = _keys_for(condition.name, picked)
    if not keys:
        return None
    is_label = condition.name == "label" or picked.keys.get("label") == condition.name
    for feature in _features(picked.view, keys):
        for value in feature.values:
            if _fits(value, condition.value) or (is_label and names.get(value) == condition.value):
                return True
    return False


def _keys_for(name: str, picked: PickedRecord) -> list[str]:
    present = {*picked.view.features, *picked.view.steps}
    if name in present:
        return [name]
    logical = _LABELS if name == "label" else (name,)
    return [picked.keys[own] for own in logical if picked.keys.get(own) in present]


def _features(view: RecordView, keys: Sequence[str]) -> Iterator[Feature]:
    for key in keys:
        if key in view.features:
            yield view.features[key]
        yield from view.steps.get(key, ())


def _fits(value: Any, text: str) -> bool:
    if isinstance(value, bytes):
        return value == text.encode("utf-8", "surrogateescape")
    try:
        return float(text) == value or (isinstance(value, float) and f"{float(text):.6g}" == f"{value:.6g}")
    except ValueError:
        return False


# ---------------------------------------------------------------------------------------------------------------------
# Reading


def _picked(
    file: ShardFile, number: int, record: Record, facts: DatasetFacts | None, tell: Tell
) -> PickedRecord | None:
    try:
        view = view_record(record.data)
    except ValueError as error:
        tell(str(RecordFault(file.name, record.index, record.offset, str(error))))
        return None
    keys = facts.keys if facts is not None else guess_keys({*view.features, *view.steps})
    return PickedRecord(file, number, record.index, record.offset, len(record.data), view, keys)


def _all_records(
    files: Sequence[ShardFile], facts: DatasetFacts | None, storage: Storage, tell: Tell
) -> Iterator[PickedRecord]:
    start = 0
    for file in files:
        count = 0
        for item in _scanned(file, storage):
            count += 1
            if isinstance(item, RecordFault):
                tell(str(item))
                continue
            picked = _picked(file, start + item.index, item, facts, tell)
            if picked is not None:
                yield picked
        start += count


def _scanned(file: ShardFile, storage: Storage) -> Iterator[Record | RecordFault]:
    with storage.open(file.uri) as stream:
        yield from scan_records(stream, file.name, may_be_empty=file.may_be_empty)


def _numbered(
    files: Sequence[ShardFile], numbers: Sequence[int], facts: DatasetFacts | None, storage: Storage, tell: Tell
) -> Iterator[PickedRecord]:
    """Records by number. A file that holds none of them is passed over where its count is known."""
    missing = sorted(set(numbers))
    start = 0
    for file in files:
        if not missing:
            return
        places = None
        if storage.is_file(file.uri + INDEX_SUFFIX):
            places = indexed_places(file.uri, storage.size(file.uri), storage)
            if places is None:
                tell(f"{file.name}{INDEX_SUFFIX} is not the index of {file.name}, and is not used: write it anew")
        count = len(places) if places is not None else file.stated.records if file.stated is not None else None
        if count is not None and missing[0] >= start + count:
            start += count
            continue
        found = 0
        wanted = [number - start for number in missing]
        records = _indexed(file, places, wanted, storage) if places is not None else _scanned(file, storage)
        for item in records:
            index = item.record if isinstance(item, RecordFault) else item.index
            found = index + 1
            if not missing or start + index > missing[-1]:
                break
            if start + index != missing[0]:
                continue
            missing.pop(0)
            if isinstance(item, RecordFault):
                tell(str(item))
                continue
            picked = _picked(file, start + index, item, facts, tell)
            if picked is not None:
                yield picked
        start += count if count is not None else found
    if missing:
        raise ConfigError(f"--index {missing[0]}: there are {start:,} records, numbered from 0")


def _indexed(
    file: ShardFile, places: Sequence[tuple[int, int]], wanted: Sequence[int], storage: Storage
) -> Iterator[Record | RecordFault]:
    with storage.open(file.uri) as stream:
        for index in wanted:
            if index >= len(places):
                return
            offset, size = places[index]
            try:
                yield Record(index, offset, read_record(stream, file.name, offset, size, index))
            except RecordFault as fault:
                yield fault
