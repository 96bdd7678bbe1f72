"""A file whose size and checksum are taken while it is read."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, BinaryIO

import google_crc32c

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class MeasuredFile(io.RawIOBase):
    """A file that is read once from its start; counts its bytes and takes their crc32c on the way."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self.num_bytes = 0
        self.crc = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        data = self._file.read(len(view))
        self.crc = google_crc32c.extend(self.crc, data)
        self.num_bytes += len(data)
        view[: len(data)] = data
        return len(data)
