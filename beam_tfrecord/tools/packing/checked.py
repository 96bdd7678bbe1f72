"""Bytes counted and summed up while they pass, and compared with what conversion.json states of a shard."""

from __future__ import annotations

import io
import json
from typing import BinaryIO

import google_crc32c

from beam_tfrecord.datasets.metadata import PublishedShard
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.tfrecord import FRAME_SIZE, read_index
from beam_tfrecord.tools.packing.contents import Content


class Measured(io.RawIOBase):
    """A stream that is read through here. num_bytes, crc: of what was read."""

    def __init__(self, source: BinaryIO) -> None:
        super().__init__()
        self._source = source
        self.num_bytes = 0
        self.crc = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        """As of any stream."""
        data = self._source.read(size)
        self.crc = google_crc32c.extend(self.crc, data)
        self.num_bytes += len(data)
        return data

    def check(self, name: str, stated: PublishedShard | None) -> None:
        """Raise DatasetError when all of a shard was read and it is not what is stated. name: for the message."""
        if stated is None:
            return
        if self.num_bytes != stated.bytes:
            raise DatasetError(f"{name} has {self.num_bytes:,} bytes, but conversion.json states {stated.bytes:,}")
        if f"{self.crc:08x}" != stated.crc32c:
            raise DatasetError(f"the crc32c of {name} is {self.crc:08x}, but conversion.json states {stated.crc32c}")


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
