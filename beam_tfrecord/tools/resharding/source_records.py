"""Reading a range of the records of a file, every checksum looked at, and counting those of one that nothing tells of.

In an uncompressed file the index leads to a record, or the lengths in the headers are walked through; a compressed one
is read from its start.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

from beam_tfrecord.datasets.indexing import find_places, indexed_places
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.storage import Storage
from beam_tfrecord.tfrecord import (
    FRAME_SIZE,
    Record,
    RecordFault,
    detect_compression,
    fault_of_start,
    scan_records,
)
from beam_tfrecord.tools.resharding.ranges import Segment, SourceFile

_HEAD = 1 << 16


def read_segment(segment: Segment, storage: Storage) -> Iterator[Record]:
    """The records of a segment, numbered as in their file.

    Raises DatasetError, with file, record, offset and what to do, for a record that is damaged, and when the file holds
    another number of records than it is said to: more are noticed where its last record is read.
    """
    with _faults_told(segment.name), storage.open(segment.uri) as file:
        compression = detect_compression(file.read(_HEAD), segment.name)
        start, offset = _start(file, segment, compression, storage)
        file.seek(offset)
        found = start
        for item in scan_records(file, segment.name, compression):
            if isinstance(item, RecordFault):
                raise RecordFault(item.file, item.record + start, item.offset + offset, item.cause)
            number = item.index + start
            found = number + 1
            if segment.start <= number < segment.stop:
                yield Record(number, item.offset + offset, item.data)
            if found == segment.stop < segment.total:
                return
        if found != segment.total:
            raise DatasetError(f"{segment.name}: the file holds {found:,} records, but {segment.total:,} are stated")


def count_records(file: SourceFile, storage: Storage) -> SourceFile:
    """The file with the number and the size of its records. Raises DatasetError where it is damaged."""
    if file.records >= 0:
        return file
    records = payload = 0
    with _faults_told(file.name), storage.open(file.uri) as stream:
        head = stream.read(_HEAD)
        fault = fault_of_start(head, file.name, may_be_empty=file.stated == 0)
        if fault is not None:
            raise fault
        compression = detect_compression(head, file.name)
        if compression == "none":
            for _, size in find_places(stream, file.name):
                records += 1
                payload += size - FRAME_SIZE
        else:
            stream.seek(0)
            for item in scan_records(stream, file.name, compression):
                if isinstance(item, RecordFault):
                    raise item
                records += 1
                payload += len(item.data)
        if file.stated not in (None, records):
            raise DatasetError(f"{file.name}: the file holds {records:,} records, but {file.stated:,} are stated")
    return replace(file, records=records, payload_bytes=payload)


def _start(file: BinaryIO, segment: Segment, compression: str, storage: Storage) -> tuple[int, int]:
    """(number, offset) of a record at or before the first one wanted, from which the file can be read."""
    if compression != "none" or segment.start == 0:
        return 0, 0
    places = indexed_places(segment.uri, file.seek(0, 2), storage)
    if places is not None and len(places) == segment.total:
        return segment.start, places[segment.start][0]
    for number, (offset, size) in enumerate(find_places(file, segment.name)):
        if number == segment.start:
            return number, offset
        if number == segment.start - 1:
            return number + 1, offset + size  # the next header is read with its record, and its faults told there
    return 0, 0  # fewer records than are stated: reading from the start tells how many


@contextlib.contextmanager
def _faults_told(name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise DatasetError(f"{name} does not exist: {_CURE}") from None
    except DatasetError as error:  # a RecordFault, too, which would not survive the way through a runner
        raise DatasetError(f"{error}; {_CURE}") from None
    except OSError as error:
        raise DatasetError(f"{name} cannot be read: {error}") from None


_CURE = "nothing was published; beam-tfrecord verify names all that is wrong with the dataset"
