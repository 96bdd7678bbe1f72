"""From staged shards to the dataset under its final names, in the way of a conversion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from beam_tfrecord.conversion.writing.staging import staged_of
from beam_tfrecord.core.elements import Finding, WrittenShard
from beam_tfrecord.datasets.metadata import PublishedShard, finding_line
from beam_tfrecord.datasets.published import REJECTS_FILE, WARNINGS_FILE
from beam_tfrecord.publishing.final_names import (
    NamedShard,
    final_names,
    is_published,
    moves,
    name_shards,
    one_publication,
    publish_moves,
    staged_files,
    token_of,
)
from beam_tfrecord.publishing.gathering import Gathered
from beam_tfrecord.publishing.publish import ConservationError
from beam_tfrecord.storage import Storage
from beam_tfrecord.tools.resharding.job import ReshardJob
from beam_tfrecord.tools.resharding.metadata import result_files
from beam_tfrecord.tools.resharding.repeats import find_repeats
from beam_tfrecord.tools.resharding.sources import Source


def publish_result(gathered: Gathered, job: ReshardJob, storage: Storage) -> list[NamedShard]:
    """Check that all records are there, and publish. May run twice with the same result.

    job: with the lengths of all files. Raises ConservationError when records are missing or doubled.
    """
    gathered = replace(gathered, shards=tuple(sorted(gathered.shards, key=lambda shard: shard.key)))
    output = job.options.folder
    _check_conservation(gathered.shards, job)
    staged = staged_files(gathered.shards, output)
    shards = name_shards(staged, job.compression)
    with one_publication(output, storage):
        if not is_published(shards, output, storage):  # else this step ran before, to its end
            _publish(gathered, shards, job, storage)
    if job.lease is not None:  # last of all, and by a step that is run again too: where it is gone, all is done
        job.lease.end_of_job(storage)
    return shards


def _publish(gathered: Gathered, shards: Sequence[NamedShard], job: ReshardJob, storage: Storage) -> None:
    """Move the shards, and write what tells of them."""
    output = job.options.folder
    files: dict[str, bytes] = {}
    if job.has_metadata:
        repeats = _repeats(gathered.shards, job, storage)
        files = result_files(
            job.sources,
            job.options,
            job.compression,
            _by_split(shards),
            gathered.statistics,
            final_names(gathered.shards, shards, output),
            Counter(finding.code for finding in repeats),
        )
        files[REJECTS_FILE] = _carried(REJECTS_FILE, job.sources, storage)
        lines = "".join(map(finding_line, repeats)).encode("utf-8", "surrogateescape")
        files[WARNINGS_FILE] = _carried(WARNINGS_FILE, job.sources, storage) + lines
    moved = [move for shard in shards for move in moves(shard, job.options.publication)]
    publish_moves(moved, files, token_of(shards), output, storage, confirm=lambda: job.confirm(storage))


def _check_conservation(shards: Sequence[WrittenShard], job: ReshardJob) -> None:
    """Every record of the inputs lies in a shard of its split, and there are no others."""
    expected: Counter[str] = Counter()
    for file in job.files:
        expected[file.split] += file.records
    written: Counter[str] = Counter()
    for shard in shards:
        written[shard.split] += shard.num_records
    if +expected != +written:
        raise ConservationError(f"{dict(expected)} records by split were to be copied, {dict(written)} were written")


def _repeats(written: Sequence[WrittenShard], job: ReshardJob, storage: Storage) -> list[Finding]:
    if not job.identities:
        return []
    shards = [(shard.split, staged_of(job.options.folder, shard).items) for shard in written]
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
