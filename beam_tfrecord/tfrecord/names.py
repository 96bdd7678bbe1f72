"""Names of shard files: ``train-00000-of-00008.tfrecord``, with ``.gz`` or ``.zz`` behind it when compressed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from beam_tfrecord.tfrecord.compression import SUFFIXES

ARRAY_RECORD_SUFFIX = ".array_record"

_NAME = re.compile(r"(?P<split>.+)-(?P<index>\d{5,})-of-(?P<count>\d{5,})\.tfrecord(?P<suffix>|\.gz|\.zz)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ShardName:
    """What the name of a shard says. index: from 0. count: shards of the split."""

    split: str
    index: int
    count: int
    compression: str


def shard_name(split: str, index: int, count: int, compression: str = "none") -> str:
    """The file name of shard ``index`` (from 0) of the ``count`` shards of a split."""
    return f"{split}-{index:05d}-of-{count:05d}.tfrecord{SUFFIXES[compression]}"


def array_record_name(shard: str) -> str:
    """The name of the ArrayRecord file with the records of a shard: ``train-00000-of-00008.array_record``."""
    for suffix in SUFFIXES.values():
        if shard.endswith(f".tfrecord{suffix}"):
            return shard.removesuffix(f".tfrecord{suffix}") + ARRAY_RECORD_SUFFIX
    raise ValueError(f"{shard!r} is not the name of a shard")


def parse_shard_name(name: str) -> ShardName | None:
    """What a file name says, or None when it is not the name of a shard."""
    match = _NAME.fullmatch(name)
    if not match:
        return None
    split, index, count = match["split"], int(match["index"]), int(match["count"])
    compression = next(kind for kind, suffix in SUFFIXES.items() if suffix == match["suffix"])
    if index >= count or shard_name(split, index, count, compression) != name:
        return None
    return ShardName(split, index, count, compression)
