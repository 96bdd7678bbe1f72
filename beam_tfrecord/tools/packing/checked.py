"""Bytes counted and summed up while they pass, and compared with what conversion.json states of a shard."""

from __future__ import annotations

import json

from beam_tfrecord.datasets.metadata import PublishedShard
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.tfrecord import FRAME_SIZE, read_index
from beam_tfrecord.tools.packing.contents import Content
from beam_tfrecord.tools.verifying.measured import MeasuredFile


def check_measured(name: str, file: MeasuredFile, stated: PublishedShard | None) -> None:
    """Raise DatasetError when all of a shard was read and it is not what is stated. name: for the message."""
    if stated is None:
        return
    if file.num_bytes != stated.bytes:
        raise DatasetError(f"{name} has {file.num_bytes:,} bytes, but conversion.json states {stated.bytes:,}")
    if f"{file.crc:08x}" != stated.crc32c:
        raise DatasetError(f"the crc32c of {name} is {file.crc:08x}, but conversion.json states {stated.crc32c}")


def check_content(name: str, data: bytes, content: Content) -> None:
    """Raise DatasetError when a file beside the shards is damaged, as far as it can be told: JSON is parsed, and an
    index has to fit its shard. name: for the message."""
    shard = content.index_of
    if shard is not None:
        places = read_index(data, name)
        if len(places) != shard.records or (
            places and sum(places[-1]) != shard.payload_bytes + FRAME_SIZE * shard.records
        ):
            raise DatasetError(f"{name} is not the index of {shard.file}: write it anew with beam-tfrecord index")
        return
    try:
        json.loads(data)
    except ValueError as error:
        raise DatasetError(f"{name} is damaged: {error}") from None
