"""A second, small reader of TFRecord files and of tf.train.Example, written from the format descriptions alone.

The tests compare what the library wrote with what this reads. It shares no code with the library, uses no protobuf and
no TensorFlow, and is slow: for small files only.
"""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from pathlib import Path
from typing import Any


def crc32c(data: bytes) -> int:
    """CRC-32 with Castagnoli's polynomial, reflected, a byte at a time."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()


def masked(crc: int) -> int:
    """crc as it is stored in TFRecord files."""
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) % 2**32


def frame(record: bytes) -> bytes:
    """A record with its header and footer."""
    length = struct.pack("<Q", len(record))
    return length + struct.pack("<I", masked(crc32c(length))) + record + struct.pack("<I", masked(crc32c(record)))


def read_shard(path: str | os.PathLike[str]) -> list[bytes]:
    """The records of a file; its name tells the compression. AssertionError when anything is wrong with it."""
    data = Path(path).read_bytes()
    if str(path).endswith(".gz"):
        data = gzip.decompress(data)
    elif str(path).endswith(".zz"):
        data = zlib.decompress(data)
    records: list[bytes] = []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        record = data[12 : 12 + length]
        assert data[: 16 + length] == frame(record), f"record {len(records)} of {path}"
        records.append(record)
        data = data[16 + length :]
    return records


def decode(record: bytes) -> dict[str, list[Any]]:
    """Values by key of a serialized Example."""
    return {key: values for key, (_, values) in decode_typed(record).items()}


def decode_typed(record: bytes) -> dict[str, tuple[str, list[Any]]]:
    """(``bytes``, ``float``, ``int64`` or ``unset``, values) by key of a serialized Example."""
    ((number, features),) = fields(record) or [(1, b"")]
    assert number == 1
    return _features(features)


def decode_sequence(record: bytes) -> tuple[dict[str, list[Any]], dict[str, list[list[Any]]]]:
    """Context and feature lists of a serialized SequenceExample."""
    parts = dict(fields(record))
    assert parts.keys() <= {1, 2}
    steps = {}
    for number, entry in fields(parts.get(2, b"")):
        assert number == 1
        key, value = (part for _, part in fields(entry))
        steps[key.decode()] = [_feature(step)[1] for _, step in fields(value)]
    return {key: values for key, (_, values) in _features(parts.get(1, b"")).items()}, steps


def fields(message: bytes) -> list[tuple[int, bytes]]:
    """(number, content) of the length-delimited fields of a message; there are no others in these protos."""
    found = []
    while message:
        tag, message = _varint(message)
        assert tag & 7 == 2, f"wire type {tag & 7}"
        size, message = _varint(message)
        assert size <= len(message)
        found.append((tag >> 3, message[:size]))
        message = message[size:]
    return found


def _features(message: bytes) -> dict[str, tuple[str, list[Any]]]:
    found = {}
    for number, entry in fields(message):
        assert number == 1
        (_, key), (_, value) = fields(entry)
        found[key.decode()] = _feature(value)
    return found


def _feature(message: bytes) -> tuple[str, list[Any]]:
    kinds = fields(message)
    if not kinds:
        return "unset", []
    ((number, content),) = kinds
    values = [value for _, value in fields(content)]
    if number == 1:
        return "bytes", values
    packed = b"".join(values)
    if number == 2:
        return "float", list(struct.unpack(f"<{len(packed) // 4}f", packed))
    assert number == 3
    integers = []
    while packed:
        value, packed = _varint(packed)
        integers.append(value - 2**64 if value >= 2**63 else value)
    return "int64", integers


def _varint(data: bytes) -> tuple[int, bytes]:
    value = 0
    for position, byte in enumerate(data):
        value |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return value, data[position + 1 :]
    raise AssertionError("a number without an end")
