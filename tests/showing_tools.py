"""Records picked in a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from beam_tfrecord.datasets.shard_files import FoundFiles, find_files
from beam_tfrecord.storage import Storage
from beam_tfrecord.tfrecord.example import encode_example
from beam_tfrecord.tools.showing.selection import PickedRecord, Selection, parse_condition, select_records
from tests.handmade import write_shard


def found_at(*places: Path | str) -> FoundFiles:
    return find_files([str(place) for place in places], Storage())


def picked_from(place: Path | str, *where: str, told: list[str] | None = None, **options: Any) -> list[PickedRecord]:
    """The records of a place that are selected."""
    found = found_at(place)
    selection = Selection(conditions=tuple(map(parse_condition, where)), **{"limit": 0, **options})
    tell = told.append if told is not None else print
    return list(select_records(found.files, found.facts, selection, Storage(), tell))


def picked_record(folder: Path, record: Any) -> PickedRecord:
    """One record from elsewhere; serialized bytes, or the features of an Example."""
    path = folder / "one.tfrecord"
    write_shard(path, [record if isinstance(record, bytes) else encode_example(record)])
    return picked_from(path)[0]
