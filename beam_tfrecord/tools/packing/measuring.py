"""What a dataset would take under each compression, measured on a sample of its records.

The sample is the same on every run: whole records from the start of shards that lie evenly over the dataset, as far as
a number of bytes goes. Records of a conversion lie in random order, so that the start of a shard stands for all of it.
"""

from __future__ import annotations

import lzma
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.datasets.metadata import PublishedShard
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.storage import Storage, public_uri
from beam_tfrecord.tfrecord import FRAME_SIZE, RecordFault, read_records
from beam_tfrecord.tfrecord.compression import make_compressor
from beam_tfrecord.tfrecord.framing import make_footer, make_header
from beam_tfrecord.tools.packing.members import XZ_PRESET

SAMPLE_BYTES = 16 * 2**20  # xz takes some seconds for that
MOST_SHARDS = 16
CODECS = ("none", "gzip", "zlib", "xz")


@dataclass(frozen=True)
class Sample:
    """Framed records, as they lie in an uncompressed file. total_bytes: of all records of the dataset, framed."""

    data: bytes
    records: int
    total_records: int
    total_bytes: int

    @property
    def is_all(self) -> bool:
        return self.records == self.total_records


@dataclass(frozen=True, slots=True)
class CodecSize:
    """What one codec makes of a sample.

    packed_bytes: of the sample. ratio: of that to the sample's size. estimate: bytes of the whole dataset. pack_speed,
    unpack_speed: uncompressed bytes a second, on this machine with one core.
    """

    codec: str
    packed_bytes: int
    ratio: float
    estimate: int
    pack_speed: float
    unpack_speed: float


def chosen_shards(shards: Sequence[PublishedShard], most: int = MOST_SHARDS) -> list[PublishedShard]:
    """Up to ``most`` of the shards, evenly from the first to the last."""
    count = min(most, len(shards))
    return [shards[len(shards) * number // count] for number in range(count)]


def take_sample(folder: str, facts: DatasetFacts, storage: Storage, limit: int = SAMPLE_BYTES) -> Sample:
    """Read the sample of a dataset, some records over ``limit`` bytes at most. Raises DatasetError for damage."""
    shards = [shard for shard in facts.shards if shard.records]
    total = sum(shard.payload_bytes + FRAME_SIZE * shard.records for shard in shards)
    chosen = shards if total <= limit else chosen_shards(shards)
    pieces: list[bytes] = []
    size = 0
    for number, shard in enumerate(chosen):
        share = limit if total <= limit else (limit - size) // (len(chosen) - number)
        before = size
        for piece in _framed(f"{folder}/{shard.file}", facts.compression, storage):
            if size > before and size + len(piece) - before > share:
                break
            pieces.append(piece)
            size += len(piece)
    return Sample(b"".join(pieces), len(pieces), sum(shard.records for shard in shards), total)


def _framed(uri: str, compression: str, storage: Storage) -> Iterator[bytes]:
    try:
        with storage.open(uri) as file:
            for record in read_records(file, public_uri(uri), compression):
                yield make_header(len(record.data)) + record.data + make_footer(record.data)
    except RecordFault as error:
        raise DatasetError(f"{error}; beam-tfrecord verify names all that is wrong with the dataset") from None
    except OSError as error:
        raise DatasetError(f"{public_uri(uri)} cannot be read: {error}") from None


def measure(sample: Sample, clock: Callable[[], float] = time.perf_counter) -> list[CodecSize]:
    """Pack and unpack the sample with each codec. The levels are those with which shards and archives are written."""
    return [_measure(codec, sample, clock) for codec in CODECS]


def _measure(codec: str, sample: Sample, clock: Callable[[], float]) -> CodecSize:
    size = max(1, len(sample.data))
    started = clock()
    packed = _packed(codec, sample.data)
    between = clock()
    _unpacked(codec, packed)
    ended = clock()
    ratio = len(packed) / size
    return CodecSize(
        codec=codec,
        packed_bytes=len(packed),
        ratio=ratio,
        estimate=round(ratio * sample.total_bytes),
        pack_speed=size / max(between - started, 1e-9),
        unpack_speed=size / max(ended - between, 1e-9),
    )


def _packed(codec: str, data: bytes) -> bytes:
    if codec == "none":
        return bytes(bytearray(data))
    if codec == "xz":
        return lzma.compress(data, preset=XZ_PRESET)
    compressor = make_compressor(codec)
    return bytes(compressor.compress(data) + compressor.flush())


def _unpacked(codec: str, packed: bytes) -> bytes:
    if codec == "none":
        return bytes(bytearray(packed))
    if codec == "xz":
        return lzma.decompress(packed)
    return zlib.decompress(packed, zlib.MAX_WBITS | 32)  # told apart by the header
