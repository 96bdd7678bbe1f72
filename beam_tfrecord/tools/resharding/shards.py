"""Reading ranges of records, and writing one shard of the result from them, record by record."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

from beam_tfrecord.conversion.writing.array_record_files import write_twin
from beam_tfrecord.conversion.writing.attempt_files import AttemptFiles
from beam_tfrecord.conversion.writing.progress import Progress
from beam_tfrecord.conversion.writing.staging import staged_shard
from beam_tfrecord.conversion.writing.statistics import Place
from beam_tfrecord.core.elements import ShardInfo
from beam_tfrecord.datasets.indexing import find_places, indexed_places
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.storage import Storage, name_of
from beam_tfrecord.storage.lease import owner_of
from beam_tfrecord.tfrecord import (
    FRAME_SIZE,
    Record,
    RecordFault,
    RecordWriter,
    detect_compression,
    fault_of_start,
    scan_records,
)
from beam_tfrecord.tools.resharding.job import ReshardJob
from beam_tfrecord.tools.resharding.ranges import Mark, Segment, SourceFile, Target, shard_samples
from beam_tfrecord.tools.resharding.repeats import identity_of


def write_target(target: Target, job: ReshardJob, storage: Storage, progress: Progress) -> ShardInfo:
    """Write the staged file of a shard, with its index and its twin where they are asked for.

    Raises DatasetError for a damaged record, or where a file holds another number of records than is stated; then
    nothing is left of the attempt. Memory: one record, and the last MiB of the file.
    """
    staged = staged_shard(job.options.folder, target.split, target.index, owner_of(job.lease))
    files = AttemptFiles(storage)
    marks = _by_record(target)
    places: list[tuple[Mark, Place]] = []
    try:
        writer = RecordWriter(files.file(staged.records), job.compression)
        for number, (segment, record) in enumerate(_records(target, storage)):
            offset, size = writer.append(record.data)
            places += [(mark, Place(number, offset, size)) for mark in marks.get(number, ())]
            if job.options.index:
                files.file(staged.index_file).write(b"%d %d\n" % (offset, size))
            if job.identities:
                place = f"{name_of(segment.uri)} record {record.index}"
                line = identity_of(record.data, job.identities, segment.source, place).line()
                files.file(staged.items).write(line.encode("utf-8", "surrogateescape"))
            progress.add(1, 0, len(record.data))
        writer.finish()
    except BaseException as error:
        files.abandon(type(error), error, error.__traceback__)
        raise
    files.finish(staged.all)
    if job.options.array_record:
        write_twin(staged.records, staged.array_record, storage, job.compression)
    return ShardInfo(
        split=target.split,
        index=target.index,
        path=staged.records,
        num_records=writer.num_records,
        num_bytes=writer.num_bytes,
        payload_bytes=writer.payload_bytes,
        crc32c=writer.crc32c,
        fingerprint="",
        owner=staged.owner,
        bytes_read=writer.payload_bytes,
        statistics=shard_samples(places),
    )


def _records(target: Target, storage: Storage) -> Iterator[tuple[Segment, Record]]:
    for segment in target.segments:
        for record in read_segment(segment, storage):
            yield segment, record


def _by_record(target: Target) -> dict[int, list[Mark]]:
    marks: dict[int, list[Mark]] = {}
    for mark in target.marks:
        marks.setdefault(mark.record, []).append(mark)
    return marks


# ---------------------------------------------------------------------------------------------------------------------
# Reading a range of the records of a file, every checksum looked at, and counting those of one that nothing tells of.
#
# In an uncompressed file the index leads to a record, or the lengths in the headers are walked through; a compressed
# one is read from its start.


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
