"""A stream whose bytes become an object when it is closed."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from types import TracebackType
from typing import BinaryIO, cast

from beam_tfrecord.errors import StorageError

MEMORY_LIMIT = 16 * 1024 * 1024


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
