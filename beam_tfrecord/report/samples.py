"""Single records read where they lie, for pictures of them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from beam_tfrecord.errors import BeamTfrecordError
from beam_tfrecord.storage import Storage
from beam_tfrecord.tfrecord import RecordFault, read_record, scan_records

THREADS = 8
MAX_RECORD = 32 << 20  # bytes; larger records are not drawn
MAX_STREAM = 128 << 20  # decompressed bytes of a compressed file that are read to reach a record

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True, order=True)
class SamplePlace:
    """Where a record lies: in which file of the dataset, its number there, offset and size of its frame and data."""

    file: str
    record: int
    offset: int
    size: int

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> SamplePlace:
        """Raises KeyError, TypeError or ValueError for what is no place."""
        return cls(str(values["file"]), *(int(values[name]) for name in ("record", "offset", "size")))


def make_from_records(
    uri_of: Callable[[str], str],
    places: Iterable[SamplePlace],
    storage: Storage,
    is_compressed: Callable[[str], bool],
    make: Callable[[bytes], Made | None],
) -> dict[SamplePlace, Made]:
    """What ``make`` makes of each record, in several threads, a few records in memory at a time.

    uri_of: where a file lies.
    Left out is a record that cannot be read (any more), is too large, or lies too far inside of a compressed file, and
    one of which ``make`` makes None.
    """
    wanted = sorted({place for place in places if place.size <= MAX_RECORD})
    plain = [place for place in wanted if not is_compressed(place.file)]
    packed: dict[str, list[SamplePlace]] = {}
    for place in wanted:
        if is_compressed(place.file) and place.offset + place.size <= MAX_STREAM:
            packed.setdefault(place.file, []).append(place)

    def from_plain(place: SamplePlace) -> list[tuple[SamplePlace, Made | None]]:
        data = _record_at(uri_of(place.file), place, storage)
        return [(place, make(data) if data is not None else None)]

    def from_packed(file: str) -> list[tuple[SamplePlace, Made | None]]:
        return [(place, make(data)) for place, data in _records_of(uri_of(file), packed[file], storage)]

    with ThreadPoolExecutor(THREADS, thread_name_prefix="report") as pool:
        results = [*pool.map(from_plain, plain), *pool.map(from_packed, packed)]
    return {place: made for result in results for place, made in result if made is not None}


def _record_at(uri: str, place: SamplePlace, storage: Storage) -> bytes | None:
    try:
        frame = storage.read_range(uri, place.offset, place.size)
        return read_record(io.BytesIO(frame), uri, 0, place.size, place.record)
    except (OSError, BeamTfrecordError):
        return None


def _records_of(uri: str, places: list[SamplePlace], storage: Storage) -> Iterator[tuple[SamplePlace, bytes]]:
    """The records at places of one compressed file, which is read from its start."""
    by_number = {place.record: place for place in places}
    last = max(by_number)
    try:
        with storage.open(uri) as file:
            for item in scan_records(file, uri):
                if isinstance(item, RecordFault):
                    return
                if item.index in by_number:
                    yield by_number[item.index], item.data
                if item.index >= last:
                    return
    except (OSError, BeamTfrecordError):
        return
