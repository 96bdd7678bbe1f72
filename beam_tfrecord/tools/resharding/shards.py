"""Writing one shard of the result: its records, copied one by one."""

from __future__ import annotations

from collections.abc import Iterator

from beam_tfrecord.conversion.writing.array_record_files import write_twin
from beam_tfrecord.conversion.writing.attempt_files import AttemptFiles
from beam_tfrecord.conversion.writing.progress import Progress
from beam_tfrecord.conversion.writing.staging import staged_shard
from beam_tfrecord.conversion.writing.statistics import Place
from beam_tfrecord.core.elements import ShardInfo
from beam_tfrecord.storage import Storage, name_of
from beam_tfrecord.storage.lease import owner_of
from beam_tfrecord.tfrecord import Record, RecordWriter
from beam_tfrecord.tools.resharding.job import ReshardJob
from beam_tfrecord.tools.resharding.ranges import Mark, Segment, Target
from beam_tfrecord.tools.resharding.repeats import identity_of
from beam_tfrecord.tools.resharding.samples import shard_samples
from beam_tfrecord.tools.resharding.source_records import read_segment


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
