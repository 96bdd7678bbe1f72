"""Index files for TFRecord files that are there already."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import BinaryIO

from beam_tfrecord.errors import DatasetError
from beam_tfrecord.storage import Storage
from beam_tfrecord.tfrecord import (
    FRAME_SIZE,
    INDEX_SUFFIX,
    RecordFault,
    detect_compression,
    fault_of_start,
    read_index,
    write_index,
)
from beam_tfrecord.tfrecord.framing import HEADER_SIZE, parse_header

_HEAD = 1 << 16


def write_index_file(
    uri: str, name: str, storage: Storage, confirm: Callable[[], None] = lambda: None, *, may_be_empty: bool = True
) -> int:
    """Write ``<uri>.idx`` and return the number of records.

    name: of the file, for messages. confirm: raises when the folder is another run's by now. may_be_empty: whether a
    file without bytes is one without records. Raises DatasetError when the file is compressed, not there or no TFRecord
    file, and RecordFault, which is one, where it is damaged; then no index is written.
    """
    try:
        with storage.open(uri) as file:
            head = file.read(_HEAD)
            fault = fault_of_start(head, name, may_be_empty=may_be_empty)
            if fault is not None:
                raise fault
            compression = detect_compression(head, name)
            if compression != "none":
                raise DatasetError(
                    f"{name} is compressed with {compression}: records cannot be reached at random in it, so it has no "
                    "index; reshard with --compression none"
                )
            places = list(find_places(file, name))
    except OSError as error:
        raise DatasetError(f"{name} cannot be read: {error}") from None
    confirm()
    storage.write_bytes(uri + INDEX_SUFFIX, write_index(places))
    return len(places)


def indexed_places(uri: str, size: int, storage: Storage) -> list[tuple[int, int]] | None:
    """(offset, size with the frame) of each record of a file, as its index says. size: of the file.

    None where there is no index, and where it is damaged or of another file.
    """
    if not storage.is_file(uri + INDEX_SUFFIX):
        return None
    try:
        with storage.open(uri + INDEX_SUFFIX) as index:
            places = read_index(index.read(), uri)
    except DatasetError:
        return None
    return places if sum(places[-1] if places else ()) == size else None


def find_places(file: BinaryIO, name: str) -> Iterator[tuple[int, int]]:
    """(offset, size with the frame) of each record of an uncompressed file that can seek.

    Only the headers are read, and the checksums of the lengths in them are checked; data are jumped over.
    Raises RecordFault for a length that is wrong, for a file that ends within a record, and for one that holds
    something else.
    """
    file.seek(0)
    fault = fault_of_start(file.read(_HEAD), name)
    if fault is not None:
        raise fault
    end = file.seek(0, os.SEEK_END)
    offset = index = 0
    while offset < end:
        file.seek(offset)
        header = file.read(HEADER_SIZE)
        if len(header) < HEADER_SIZE:
            cause = f"the file ends after {len(header)} of the {HEADER_SIZE} bytes of its header"
            raise RecordFault(name, index, offset, cause)
        length, trouble = parse_header(header)
        if trouble:
            raise RecordFault(name, index, offset, trouble)
        size = length + FRAME_SIZE
        if offset + size > end:
            raise RecordFault(name, index, offset, f"the file ends after {end - offset} of its {size} bytes")
        yield offset, size
        offset += size
        index += 1
