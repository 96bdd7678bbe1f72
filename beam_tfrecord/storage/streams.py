"""Objects as streams: one that is read in ranges and can be sought in, and one that becomes an object when closed."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from types import TracebackType
from typing import BinaryIO, cast

from beam_tfrecord.errors import StorageError
from beam_tfrecord.storage.faults import UnreadableFileError

MEMORY_LIMIT = 16 * 1024 * 1024
FIRST_WINDOW = 128 * 1024
LARGEST_WINDOW = 8 * 1024 * 1024
_LINE_BUFFER = 64 * 1024


class RangeReader(io.RawIOBase):
    """Reads a file of known size through ``fetch(start, length)``.

    Each request fetches a window. The window starts at 128 KiB and doubles up to 8 MiB as long as the reading goes on
    where the last window ended, so that a header costs little and a long file few requests.
    """

    def __init__(self, size: int, fetch: Callable[[int, int], bytes]) -> None:
        super().__init__()
        self._size = size
        self._fetch = fetch
        self._position = 0
        self._window = b""
        self._window_start = 0
        self._window_length = FIRST_WINDOW

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError("a position before the start of the file")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        wanted = min(len(view), self._size - self._position)
        if wanted <= 0:
            return 0
        offset = self._position - self._window_start
        if not 0 <= offset < len(self._window):
            self._load(wanted)
            offset = 0
        part = self._window[offset : offset + wanted]
        view[: len(part)] = part
        self._position += len(part)
        return len(part)

    def readall(self) -> bytes:
        rest = self._size - self._position
        if rest <= 0:
            return b""
        self._window = b""
        data = self._fetched(rest)
        self._position += rest
        return data

    def _load(self, wanted: int) -> None:
        goes_on = self._position == self._window_start + len(self._window)
        self._window_length = min(self._window_length * 2, LARGEST_WINDOW) if goes_on and self._window else FIRST_WINDOW
        length = min(max(self._window_length, wanted), self._size - self._position)
        self._window = self._fetched(length)
        self._window_start = self._position

    def _fetched(self, length: int) -> bytes:
        """Bytes from where it stands, within the size. Fewer would look like the end of the file."""
        data = self._fetch(self._position, length)
        if len(data) != length:
            raise UnreadableFileError(
                f"{len(data):,} bytes came of {length:,} from byte {self._position:,} on, of a file of {self._size:,}; "
                "was it changed while it was being read?"
            )
        return data


def buffered_ranges(size: int, fetch: Callable[[int, int], bytes]) -> BinaryIO:
    """A RangeReader behind a buffer that makes reading lines cheap."""
    return cast(BinaryIO, io.BufferedReader(RangeReader(size, fetch), buffer_size=_LINE_BUFFER))


class Upload(io.RawIOBase):
    """Collects what is written, in memory up to 16 MiB and then in a temporary file, and hands it over on close.

    finish(stream, size): uploads; the stream stands at its start and can be read again after a failure. Nothing is
    uploaded when a ``with`` block is left by an exception, or when the stream is dropped without being closed.
    """

    def __init__(self, finish: Callable[[BinaryIO, int], None]) -> None:
        super().__init__()
        self._finish = finish
        self._spool = tempfile.SpooledTemporaryFile(max_size=MEMORY_LIMIT)  # noqa: SIM115 - closed with the stream
        self._size = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, data: object) -> int:
        if self.closed:
            raise ValueError("write to a closed stream")
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        try:
            self._spool.write(view)
        except OSError as error:
            raise StorageError(
                f"{tempfile.gettempdir()}: cannot hold what is to be uploaded: {error.strerror or error}; "
                "set TMPDIR to a folder with more room"
            ) from None
        self._size += len(view)
        return len(view)

    def close(self) -> None:
        if self.closed:
            return
        try:
            self._spool.seek(0)
            self._finish(cast(BinaryIO, self._spool), self._size)
        finally:
            self.discard()

    def discard(self) -> None:
        """Close without uploading anything."""
        spool = getattr(self, "_spool", None)
        if spool is not None:
            spool.close()
        super().close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        self.discard()


def upload_stream(finish: Callable[[BinaryIO, int], None]) -> BinaryIO:
    """An Upload as the binary stream that it is."""
    return cast(BinaryIO, Upload(finish))
