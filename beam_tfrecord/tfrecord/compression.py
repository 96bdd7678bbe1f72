"""The compressions that TensorFlow reads TFRecords in: none, gzip and zlib, with reproducible bytes.

``tf.data.TFRecordDataset(compression_type=...)`` calls them ``""``, ``GZIP`` (RFC 1952) and ``ZLIB`` (RFC 1950).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, BinaryIO

SUFFIXES: Mapping[str, str] = MappingProxyType({"none": "", "gzip": ".gz", "zlib": ".zz"})

# zlib's window size with its flag for the container: 15 is a zlib stream, 16 more a gzip member.
_WINDOW_BITS: Mapping[str, int] = MappingProxyType({"gzip": 31, "zlib": 15})
# A fixed level: zlib's own default, and TensorFlow's.
_LEVEL = 6
_PIECE = 1 << 16


class DamagedStreamError(Exception):
    """The bytes cannot be decompressed any further; the message says why."""


def make_compressor(compression: str) -> Any:
    """A zlib compressor (``compress``, ``flush``) for ``gzip`` or ``zlib``.

    zlib writes a gzip header with time 0 and without a file name, so that equal records give equal bytes.
    """
    return zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW_BITS[compression])


def inflated_start(compression: str, head: bytes, size: int) -> bytes:
    """Up to ``size`` bytes of what the start of a compressed file holds; nothing when it is not of that kind."""
    try:
        return zlib.decompressobj(_WINDOW_BITS[compression]).decompress(head, size)
    except zlib.error:
        return b""


class PlainInput:
    """The bytes of a file, of which the first were read already."""

    def __init__(self, file: BinaryIO, head: bytes) -> None:
        self._file = file
        self._head = head

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer only at the end."""
        pieces = []
        if self._head:
            pieces.append(self._head[:size])
            self._head = self._head[size:]
            size -= len(pieces[0])
        while size > 0 and (piece := self._file.read(size)):
            pieces.append(piece)
            size -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class InflatedInput:
    """The decompressed bytes of a file.

    Streams that follow one another, as ``cat a.gz b.gz`` makes them, are read as one.

    Memory: what is asked for, and some pieces of 64 KiB.
    """

    def __init__(self, source: PlainInput, compression: str) -> None:
        self._source = source
        self._compression = compression
        self._inflater = zlib.decompressobj(_WINDOW_BITS[compression])
        self._waiting = b""
        self._ready = bytearray()
        self._trouble = ""
        self._is_done = False

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer only at the end.

        Raises DamagedStreamError, but only after all bytes before the damage were given out.
        """
        while len(self._ready) < size and not self._is_done:
            self._fill(max(size - len(self._ready), _PIECE))
        if self._trouble and len(self._ready) < size:
            raise DamagedStreamError(self._trouble)
        with memoryview(self._ready) as view:
            data = bytes(view[:size])
        del self._ready[:size]
        return data

    def _fill(self, size: int) -> None:
        if self._inflater.eof:
            self._next_member()
            return
        # The trailer of a stream is read after all of its output was given: without input the stream was cut.
        piece = self._waiting or self._source.read(_PIECE)
        if not piece:
            self._end(f"the file ends before its {self._compression} stream does")
            return
        before = self._inflater.copy()
        try:
            self._ready += self._inflater.decompress(piece, size)
        except zlib.error as error:
            self._ready += _bytes_before_damage(before, piece)
            self._end(f"the {self._compression} stream is damaged ({error})")
            return
        self._waiting = self._inflater.unconsumed_tail

    def _next_member(self) -> None:
        following = self._inflater.unused_data or self._waiting or self._source.read(_PIECE)
        if following:
            self._inflater = zlib.decompressobj(_WINDOW_BITS[self._compression])
            self._waiting = following
        else:
            self._end("")

    def _end(self, trouble: str) -> None:
        self._trouble = trouble
        self._is_done = True


def _bytes_before_damage(inflater: Any, piece: bytes) -> bytes:
    """All that a piece gives before zlib refuses it: zlib drops the output of the call that fails."""
    data = bytearray()
    try:
        for start in range(len(piece)):
            data += inflater.decompress(piece[start : start + 1])
    except zlib.error:
        pass
    return bytes(data)
