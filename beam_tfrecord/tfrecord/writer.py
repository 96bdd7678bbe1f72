"""Writes a TFRecord file and takes its measures on the way."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import BinaryIO

import google_crc32c

from beam_tfrecord.tfrecord.compression import make_compressor
from beam_tfrecord.tfrecord.framing import FOOTER_SIZE, FRAME_SIZE, make_footer, make_header

# Small pieces are gathered up to this size before they are written.
_BUFFER_SIZE = 1 << 20
# Records from this size on are handed to the file as they are: joining them to their neighbours would copy them.
_LARGE = 1 << 16


class RecordWriter:
    """Appends records to a binary file that is open for writing.

    compression: ``none``, ``gzip`` or ``zlib``. The file must be empty, and take all that one ``write`` gives it, as
    buffered files do. It is not closed. Use the writer as a context manager, or call :meth:`finish`; before that the
    file is not complete, and ``num_bytes`` and ``crc32c`` tell of a part of it.

    Same records, same bytes: nothing else goes into the file, no time and no name. A compressed file without records
    is a stream of nothing, an uncompressed one is empty.
    """

    def __init__(self, file: BinaryIO, compression: str = "none") -> None:
        self._file = file
        self._compressor = None if compression == "none" else make_compressor(compression)
        self._pieces: list[bytes] = []
        self._pieces_size = 0
        self._crc = 0
        self._is_finished = False
        self.num_records = 0
        self.payload_bytes = 0
        self.num_bytes = 0

    @property
    def crc32c(self) -> str:
        """crc32c of the bytes in the file, compressed or not, as eight hex digits."""
        return f"{self._crc:08x}"

    def append(self, record: bytes) -> tuple[int, int]:
        """Add a record.

        Returns where its frame starts and the size of frame and data: a line of an index file. In a compressed file
        both count decompressed bytes.
        """
        return self.append_all((record,))[0]

    def append_all(self, records: Sequence[bytes]) -> list[tuple[int, int]]:
        """Add records; what :meth:`append` returns of each."""
        if self._is_finished:
            raise ValueError("the writer is finished: no record can follow")
        start = offset = self.payload_bytes + self.num_records * FRAME_SIZE
        pieces = self._pieces
        places = []
        for record in records:
            size = len(record)
            if size >= _LARGE:
                pieces.append(make_header(size))
                self._flush()
                self._emit(record)
                pieces.append(make_footer(record))
                self._pieces_size = FOOTER_SIZE
            else:
                pieces += (make_header(size), record, make_footer(record))
                self._pieces_size += size + FRAME_SIZE
                if self._pieces_size >= _BUFFER_SIZE:
                    self._flush()
            places.append((offset, size + FRAME_SIZE))
            offset += size + FRAME_SIZE
        self.num_records += len(places)
        self.payload_bytes += offset - start - len(places) * FRAME_SIZE
        return places

    def finish(self) -> None:
        """Write what is gathered and the end of the compressed stream. Calling it again does nothing."""
        if self._is_finished:
            return
        self._flush()
        if self._compressor is not None:
            self._write(self._compressor.flush())
        self._is_finished = True

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()

    def _flush(self) -> None:
        self._emit(b"".join(self._pieces))
        self._pieces.clear()
        self._pieces_size = 0

    def _emit(self, data: bytes) -> None:
        self._write(data if self._compressor is None else self._compressor.compress(data))

    def _write(self, data: bytes) -> None:
        if data:
            self._file.write(data)
            self._crc = google_crc32c.extend(self._crc, data)
            self.num_bytes += len(data)
