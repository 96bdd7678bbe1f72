"""How a record lies in a TFRecord file.

Source: tensorflow/core/lib/io/record_writer.h and record_reader.cc. A file is records one after another, each::

    uint64 length       little-endian
    uint32 masked crc32c of the eight bytes of length
    byte   data[length]
    uint32 masked crc32c of data

crc32c is the CRC of Castagnoli's polynomial (RFC 3720, B.4); masked means rotated right by 15 bits plus 0xa282ead8.
A file without bytes has no records.
"""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass

import google_crc32c

from beam_tfrecord.errors import DatasetError

HEADER_SIZE = 12
FOOTER_SIZE = 4
FRAME_SIZE = HEADER_SIZE + FOOTER_SIZE

_LENGTH = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")
_HEADER = struct.Struct("<QI")
_MASK_DELTA = 0xA282EAD8


@dataclass(frozen=True, slots=True)
class Record:
    """A record whose checksums are right.

    index: its number in the file, from 0. offset: of the first byte of its length, in the file's decompressed bytes.
    """

    index: int
    offset: int
    data: bytes


class RecordFault(DatasetError):  # noqa: N818 - also a value that scan_records yields
    """A place where a file is not what a TFRecord file must be.

    file: name as the reader was given it. record: number of the record, from 0. offset: where that record starts, in
    bytes from the start of the file (of its decompressed bytes when it is compressed). cause: what is wrong with it.
    code: ``damaged_record``; or ``no_records`` and ``empty_file``, which concern the file as a whole.
    """

    def __init__(self, file: str, record: int, offset: int, cause: str, code: str = "damaged_record") -> None:
        super().__init__(file, record, offset, cause, code)
        self.file = file
        self.record = record
        self.offset = offset
        self.cause = cause
        self.code = code

    @property
    def is_of_record(self) -> bool:
        """Whether a record is damaged, rather than the whole file another thing."""
        return self.code == "damaged_record"

    def __str__(self) -> str:
        place = f" record {self.record} at byte {self.offset}:" if self.is_of_record else ""
        return f"{self.file}:{place} {self.cause}"


def mask(crc: int) -> int:
    """The form in which a crc32c is stored."""
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def masked_crc32c(data: bytes) -> int:
    """The masked crc32c of some bytes."""
    return mask(google_crc32c.value(data))


@functools.lru_cache(maxsize=1 << 14)  # records of one collection have some thousand sizes
def make_header(length: int) -> bytes:
    """The twelve bytes before a record of ``length`` bytes."""
    return _HEADER.pack(length, masked_crc32c(_LENGTH.pack(length)))


def make_footer(data: bytes) -> bytes:
    """The four bytes behind a record."""
    return _CHECKSUM.pack(mask(google_crc32c.value(data)))


def parse_header(header: bytes) -> tuple[int, str]:
    """The length that a header of twelve bytes states, and what is wrong with its checksum ('' for nothing)."""
    length, stored = _HEADER.unpack(header)
    return length, _mismatch("length", stored, masked_crc32c(header[:8]))


def check_footer(footer: bytes, crc: int) -> str:
    """What is wrong with a footer of four bytes behind data of this (unmasked) crc32c; '' for nothing."""
    return _mismatch("data", _CHECKSUM.unpack(footer)[0], mask(crc))


def _mismatch(what: str, stored: int, computed: int) -> str:
    if stored == computed:
        return ""
    return f"the checksum of its {what} is {stored:08x}, but the {what} gives {computed:08x}"
