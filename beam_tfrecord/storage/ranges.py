"""A remote file as a seekable stream that is read in ranges."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import BinaryIO, cast

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

    def tell(self) -> int:
        return self._position

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
        data = self._fetch(self._position, rest)
        self._position += len(data)
        return data

    def _load(self, wanted: int) -> None:
        goes_on = self._position == self._window_start + len(self._window)
        self._window_length = min(self._window_length * 2, LARGEST_WINDOW) if goes_on and self._window else FIRST_WINDOW
        length = min(max(self._window_length, wanted), self._size - self._position)
        self._window = self._fetch(self._position, length)
        self._window_start = self._position


def buffered_ranges(size: int, fetch: Callable[[int, int], bytes]) -> BinaryIO:
    """A RangeReader behind a buffer that makes reading lines cheap."""
    return cast(BinaryIO, io.BufferedReader(RangeReader(size, fetch), buffer_size=_LINE_BUFFER))
