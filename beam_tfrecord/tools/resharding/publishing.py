"""From staged shards to the dataset under its final names, in the way of a conversion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from beam_tfrecord.conversion.writing.staging import staged_of
from beam_tfrecord.core.elements import Finding, ShardInfo
from beam_tfrecord.datasets.metadata import PublishedShard, finding_line
from beam_tfrecord.datasets.published import REJECTS_FILE, WARNINGS_FILE
from beam_tfrecord.publishing.final_names import (
    NamedShard,
    is_published,
    moves,
    name_shards,
    one_publication,
    publish_moves,
    staged_files,
    token_of,
)
from beam_tfrecord.publishing.publish import ConservationError
from beam_tfrecord.storage import Storage
from beam_tfrecord.tools.resharding.job import ReshardJob
from beam_tfrecord.tools.resharding.metadata import result_files
from beam_tfrecord.tools.resharding.repeats import find_repeats
from beam_tfrecord.tools.resharding.sources import Source


def publish_result(infos: Iterable[ShardInfo], job: ReshardJob, storage: Storage) -> list[NamedShard]:
    """Check that all records are there, and publish. May run twice with the same result.

    job: with the lengths of all files. Raises ConservationError when records are missing or doubled.
    """
    infos = sorted(infos, key=lambda info: (info.split, info.index))
    output = job.options.folder
    _check_conservation(infos, job)
    staged = staged_files(infos, output)
    shards = name_shards(staged, job.compression)
    with one_publication(output, storage):
        if not is_published(shards, output, storage):  # else this step ran before, to its end
            _publish(infos, shards, job, storage)
    return shards


def _publish(infos: Sequence[ShardInfo], shards: Sequence[NamedShard], job: ReshardJob, storage: Storage) -> None:
    """Move the shards, write what tells of them, and end the job's lease."""
    output = job.options.folder
    files: dict[str, bytes] = {}
    if job.has_metadata:
        repeats = _repeats(infos, job, storage)
        file_of = {shard.staged.path: shard.file for shard in shards}
        files = result_files(
            job.sources,
            job.options,
            job.compression,
            _by_split(shards),
            [(file_of[info.path], info.statistics) for info in infos],
            Counter(finding.code for finding in repeats),
        )
        files[REJECTS_FILE] = _carried(REJECTS_FILE, job.sources, storage)
        lines = "".join(map(finding_line, repeats)).encode("utf-8", "surrogateescape")
        files[WARNINGS_FILE] = _carried(WARNINGS_FILE, job.sources, storage) + lines
    moved = [move for shard in shards for move in moves(shard, job.options.publication)]
    publish_moves(moved, files, token_of(shards), output, storage, confirm=lambda: job.confirm(storage))
    if job.lease is not None:
        job.lease.end_of_job(storage)


def _check_conservation(infos: Sequence[ShardInfo], job: ReshardJob) -> None:
    """Every record of the inputs lies in a shard of its split, and there are no others."""
    expected: Counter[str] = Counter()
    for file in job.files:
        expected[file.split] += file.records
    written: Counter[str] = Counter()
    for info in infos:
        written[info.split] += info.num_records
    if +expected != +written:
        raise ConservationError(f"{dict(expected)} records by split were to be copied, {dict(written)} were written")


def _repeats(infos: Sequence[ShardInfo], job: ReshardJob, storage: Storage) -> list[Finding]:
    if not job.identities:
        return []
    shards = [(info.split, staged_of(job.options.folder, info).items) for info in infos]
    return find_repeats(shards, [source.name for source in job.sources], storage)


def _by_split(shards: Sequence[NamedShard]) -> dict[str, list[PublishedShard]]:
    splits: dict[str, list[PublishedShard]] = {}
    for shard in shards:
        own = shard.staged
        splits.setdefault(own.split, []).append(
            PublishedShard(shard.file, own.num_records, own.num_bytes, own.payload_bytes, own.crc32c)
        )
    return splits


def _carried(name: str, sources: Sequence[Source], storage: Storage) -> bytes:
    """The lines of all inputs, as they are."""
    parts = []
    for source in sources:
        uri = f"{source.place}/{name}"
        if storage.is_file(uri):
            with storage.open(uri) as file:
                data = file.read()
            parts.append(data if data.endswith(b"\n") or not data else data + b"\n")
    return b"".join(parts)
