"""The records of the shards of a dataset: one after another, or any of them at once."""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from beam_tfrecord.datasets.indexing import find_places
from beam_tfrecord.datasets.metadata import PublishedShard
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.reading.finished import FinishedDataset
from beam_tfrecord.reading.selection import ShardPart
from beam_tfrecord.tfrecord import INDEX_SUFFIX, RecordFault, read_index, read_record, read_records


@dataclass
class ShardRecords:
    """Reads records of one dataset. It may be pickled, forked and used from several threads.

    Of each shard in which a record was asked for by number, the places of all records stay in memory: 8 bytes each.
    They come from the index file beside the shard; without one the headers of the frames are walked through once.

    In a compressed shard nothing can be reached but by decompressing what is before it: there the whole shard is
    decompressed, and kept until a record of another one is asked for.
    """

    dataset: FinishedDataset
    _offsets: dict[str, array[int]] = field(default_factory=dict)
    _decompressed: tuple[str, list[bytes]] = ("", [])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_decompressed": ("", [])}

    def read(self, shard: PublishedShard, number: int) -> bytes:
        """A record by its number in a shard. Raises DatasetError when the shard is damaged."""
        if self.dataset.facts.compression != "none":
            return self._all(shard)[number]
        offsets = self._offsets_of(shard)
        offset, size = offsets[number], offsets[number + 1] - offsets[number]
        data = self.dataset.storage.read_range(self.dataset.uri(shard), offset, size)
        try:
            return read_record(io.BytesIO(data), shard.file, 0, size, number)
        except RecordFault as fault:
            raise RecordFault(shard.file, number, offset, fault.cause) from None

    def stream(self, part: ShardPart) -> Iterator[bytes]:
        """The records of a part of a shard, in order. Raises DatasetError when there are fewer than are stated."""
        shard = part.shard
        with self.dataset.storage.open(self.dataset.uri(shard)) as file:
            if part.start and self.dataset.facts.compression == "none":
                offsets = self._offsets_of(shard)
                for number in range(part.start, part.stop):
                    size = offsets[number + 1] - offsets[number]
                    yield read_record(file, shard.file, offsets[number], size, number)
                return
            found = 0
            for record in read_records(file, shard.file, self.dataset.facts.compression):
                if record.index >= part.stop:
                    return
                found = record.index + 1
                if record.index >= part.start:
                    yield record.data
        if found < part.stop:
            raise DatasetError(f"{shard.file} holds {found:,} of the {shard.records:,} records that are stated")

    def _offsets_of(self, shard: PublishedShard) -> array[int]:
        """Where each record starts, and where the last one ends."""
        if shard.file not in self._offsets:
            self._offsets[shard.file] = self._indexed(shard) or self._walked(shard)
        return self._offsets[shard.file]

    def _indexed(self, shard: PublishedShard) -> array[int] | None:
        """From the index file; None without one, and when it is not of this shard."""
        uri = self.dataset.uri(shard) + INDEX_SUFFIX
        if not self.dataset.storage.is_file(uri):
            return None
        with self.dataset.storage.open(uri) as file:
            try:
                places = read_index(file.read(), uri)
            except DatasetError:
                return None
        offsets = array("Q", (offset for offset, _ in places))
        offsets.append(sum(places[-1]) if places else 0)
        return offsets if len(places) == shard.records and offsets[-1] == shard.bytes else None

    def _walked(self, shard: PublishedShard) -> array[int]:
        offsets = array("Q", [0])
        with self.dataset.storage.open(self.dataset.uri(shard)) as file:
            for offset, size in find_places(file, shard.file):
                offsets.append(offset + size)
        if len(offsets) != shard.records + 1:
            raise DatasetError(
                f"{shard.file} holds {len(offsets) - 1:,} records, not {shard.records:,} as conversion.json states"
            )
        return offsets

    def _all(self, shard: PublishedShard) -> list[bytes]:
        name, records = self._decompressed
        if name != shard.file:
            records = list(self.stream(ShardPart(shard, 0, shard.records)))
            self._decompressed = shard.file, records
        return records
