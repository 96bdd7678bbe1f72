"""Reads TFRecord files, checks every checksum, and names each fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import google_crc32c

from beam_tfrecord.tfrecord.compression import SUFFIXES, DamagedStreamError, InflatedInput, PlainInput
from beam_tfrecord.tfrecord.foreign import NO_BYTES, foreign_kind, starts_right
from beam_tfrecord.tfrecord.framing import (
    FOOTER_SIZE,
    FRAME_SIZE,
    HEADER_SIZE,
    Record,
    RecordFault,
    check_footer,
    parse_header,
)

# Enough of a file to tell its compression: a gzip header with a long name and the tables of a deflate block fit.
_HEAD_SIZE = 1 << 16
# Large records are read in pieces, so that a length that cannot be true does not take memory for it.
_PIECE = 1 << 24


def read_records(file: BinaryIO, name: str, compression: str = "auto") -> Iterator[Record]:
    """The records of a file that is open for reading at its beginning.

    name: for messages, and a hint at the compression. compression: ``auto``, ``none``, ``gzip`` or ``zlib``.
    Raises RecordFault at the first fault, after all records before it were given out.
    """
    for item in scan_records(file, name, compression):
        if isinstance(item, RecordFault):
            raise item
        yield item


def scan_records(
    file: BinaryIO, name: str, compression: str = "auto", *, may_be_empty: bool = True
) -> Iterator[Record | RecordFault]:
    """All that can be read of a damaged file: its whole records and its faults, in order.

    Arguments as for :func:`read_records`. may_be_empty: whether a file without bytes is one without records, and no
    fault. A file that holds something else than TFRecords is one fault. Reading goes on behind a record whose data are
    wrong, since its length is known, and behind one whose length has a wrong checksum when the data of that length have
    the right one. It ends with the fault behind which no record can be found.
    """
    head = PlainInput(file, b"").read(_HEAD_SIZE)
    fault = fault_of_start(head, name, may_be_empty=may_be_empty)
    if fault is not None:
        yield fault
        return
    if not head:
        return
    if compression == "auto":
        compression = detect_compression(head, name)
    source = PlainInput(file, head)
    stream = source if compression == "none" else InflatedInput(source, compression)
    index = offset = 0
    while True:
        try:
            item, size = _next_record(stream, name, index, offset)
        except DamagedStreamError as error:
            yield RecordFault(name, index, offset, str(error))
            return
        if item is not None:
            yield item
        if not size:
            return
        index += 1
        offset += size


def fault_of_start(head: bytes, name: str, *, may_be_empty: bool = True) -> RecordFault | None:
    """Why a file that starts with some bytes (64 KiB, or all of it) is none of TFRecords; None when it may be one.

    All that reads files of records asks this first, so that no two commands disagree.
    """
    if not head:
        return None if may_be_empty else RecordFault(name, 0, 0, NO_BYTES, "empty_file")
    cause = foreign_kind(head, name)
    return RecordFault(name, 0, 0, cause, "no_records") if cause else None


def read_record(file: BinaryIO, name: str, offset: int, size: int, index: int = -1) -> bytes:
    """The record at a place that an index file gives, of an uncompressed file that can seek.

    size: with the frame. index: the record's number, for messages. Raises RecordFault when no whole record of exactly
    that size is there.
    """
    file.seek(offset)
    item, found = _next_record(PlainInput(file, b""), name, index, offset)
    if isinstance(item, RecordFault):
        raise item
    if item is None or found != size:
        raise RecordFault(name, index, offset, f"there is no record of {size} bytes: the index is of another file")
    return item.data


def detect_compression(head: bytes, name: str = "") -> str:
    """``none``, ``gzip`` or ``zlib``: how a file of records is compressed that starts with ``head``.

    A length may look like the start of a gzip or zlib stream. So the one under which the file starts with a length and
    its right checksum is taken. When there is none the first record is damaged, and the ending of the name and then the
    first bytes decide.
    """
    for compression in SUFFIXES:
        if starts_right(compression, head):
            return compression
    for compression, suffix in SUFFIXES.items():
        if suffix and name.endswith(suffix):
            return compression
    if head.startswith(b"\x1f\x8b\x08"):  # RFC 1952: two magic bytes, then the method, which is always deflate
        return "gzip"
    # RFC 1950: method 8 with a window of at most 32 KiB, no dictionary, both bytes a multiple of 31. The upper bytes of
    # a length are zero, and a stream of more than nothing does not have so many zero bytes there.
    is_zlib = len(head) >= 2 and head[0] & 0x8F == 0x08 and head[1] & 0x20 == 0 and (head[0] << 8 | head[1]) % 31 == 0
    return "zlib" if is_zlib and (len(head) < HEADER_SIZE or head[4:8].count(0) < 3) else "none"


def _next_record(
    stream: PlainInput | InflatedInput, name: str, index: int, offset: int
) -> tuple[Record | RecordFault | None, int]:
    """The next record or the fault there, and its size with the frame; size 0 when nothing can be read behind it."""
    header = stream.read(HEADER_SIZE)
    if not header:
        return None, 0
    if len(header) < HEADER_SIZE:
        cause = f"the file ends after {len(header)} of the {HEADER_SIZE} bytes of its header"
        return RecordFault(name, index, offset, cause), 0
    length, header_fault = parse_header(header)
    if header_fault:
        is_whole = _skip_data(stream, length)
        cause = header_fault if is_whole else f"{header_fault}; no record can be found behind it"
        return RecordFault(name, index, offset, cause), length + FRAME_SIZE if is_whole else 0
    data = _read_data(stream, length)
    if len(data) < length:
        return RecordFault(name, index, offset, f"the file ends after {len(data)} of its {length} bytes of data"), 0
    footer = stream.read(FOOTER_SIZE)
    if len(footer) < FOOTER_SIZE:
        cause = f"the file ends after {len(footer)} of the {FOOTER_SIZE} bytes of its data's checksum"
        return RecordFault(name, index, offset, cause), 0
    data_fault = check_footer(footer, google_crc32c.value(data))
    if data_fault:
        return RecordFault(name, index, offset, data_fault), length + FRAME_SIZE
    return Record(index, offset, data), length + FRAME_SIZE


def _read_data(stream: PlainInput | InflatedInput, length: int) -> bytes:
    if length <= _PIECE:
        return stream.read(length)
    pieces = []
    while length > 0 and (piece := stream.read(min(length, _PIECE))):
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)


def _skip_data(stream: PlainInput | InflatedInput, length: int) -> bool:
    """Pass over data of a length that may be wrong; whether their checksum is right. Keeps nothing in memory."""
    crc = 0
    while length > 0 and (piece := stream.read(min(length, _PIECE))):
        crc = google_crc32c.extend(crc, piece)
        length -= len(piece)
    footer = stream.read(FOOTER_SIZE)
    return length == 0 and len(footer) == FOOTER_SIZE and not check_footer(footer, crc)
