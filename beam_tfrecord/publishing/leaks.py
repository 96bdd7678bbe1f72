"""Images with the same bytes under different ids, found from the hashes that the writers left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from beam_tfrecord.conversion.writing.staging import read_lines, staged_of
from beam_tfrecord.core.elements import Finding, WrittenShard
from beam_tfrecord.publishing.repeated_hashes import IN_MEMORY, repeated_hashes
from beam_tfrecord.publishing.side_by_side import side_by_side
from beam_tfrecord.storage import Storage

STAGE = "publish"
HEX_DIGITS = 16


def find_copies(
    written: Sequence[WrittenShard], output: str, storage: Storage, in_memory: int = IN_MEMORY
) -> list[Finding]:
    """A warning for every record whose image occurred before: ``split_leak`` across splits, else ``duplicate_content``.

    Records of one id are copies on purpose (they are told as ``duplicate_id``) and give no warning here. Memory grows
    with the number of warnings, not of records: more than ``in_memory`` hashes wait in temporary files.
    """
    shards = [shard for shard in written if shard.num_records]
    hashes = side_by_side(
        lambda shard: np.fromiter(_hashes(shard, output, storage), np.uint64), shards, output, storage
    )
    if sum(shard.num_records for shard in shards) > in_memory:
        repeated = repeated_hashes(hashes, in_memory)
    else:
        known = list(hashes)
        repeated = repeated_hashes(known, in_memory)
        wanted = np.array(sorted(repeated), np.uint64)
        shards = [shard for shard, own in zip(shards, known, strict=True) if np.isin(own, wanted).any()]
    if not repeated:
        return []

    def copies_in(shard: WrittenShard) -> list[tuple[int, str, str]]:
        return [item for item in _items(shard, output, storage) if item[0] in repeated]

    first: dict[int, tuple[str, str, str]] = {}
    findings = []
    for shard, copies in zip(shards, side_by_side(copies_in, shards, output, storage), strict=True):
        for content, origin, uri in copies:
            split, other, other_uri = first.setdefault(content, (shard.split, origin, uri))
            if (origin, uri) == (other, other_uri) or (uri == other_uri and split == shard.split):
                continue
            code = "duplicate_content" if split == shard.split else "split_leak"
            where = f"{other_uri} ({other})" if split == shard.split else f"{other_uri} ({other}) in split {split}"
            message = f"in split {shard.split}: the same image as {where}"
            findings.append(Finding(origin, uri, STAGE, code, message, other=other_uri))
    return findings


def _hashes(shard: WrittenShard, output: str, storage: Storage) -> Iterator[int]:
    for line in read_lines(storage, staged_of(output, shard).items):
        if not line.startswith(b"\t"):
            yield int(line[:HEX_DIGITS], 16)


def _items(shard: WrittenShard, output: str, storage: Storage) -> Iterator[tuple[int, str, str]]:
    for line in read_lines(storage, staged_of(output, shard).items):
        content, origin, uri, *_ = line.decode("utf-8", "surrogateescape").split("\t")
        if content:
            yield int(content, 16), origin, uri
