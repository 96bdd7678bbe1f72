"""Parts and unpacked forms of archive files as streams, with bounds on what a small file may grow to."""

from __future__ import annotations

import bz2
import io
import struct
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple, Protocol

from beam_tfrecord.manifests.text.compression import BROKEN_STREAM, compression_of, unpacking

BUFFER = 2**20
# No collection of images unpacks to more than this, in total and as a multiple of the packed size: it would be a bomb.
HARMLESS_BYTES = 2**30
LARGEST_RATIO = 500
LARGEST_MEMBER = 2**31 - 1  # bytes; a record (a protobuf message) cannot hold more
LOCAL_HEADER_BYTES = 30
READABLE_METHODS = (0, 8, 12)


class BrokenStreamError(OSError):
    """A compressed stream that ends early, is damaged, or unpacks to more than can be right."""


class Seekable(Protocol):
    """What :class:`Window` needs of a stream. Seeking forward is enough."""

    def read(self, size: int, /) -> bytes: ...

    def seek(self, offset: int, /) -> int: ...


class Unpacker:
    """The unpacked bytes of a compressed stream, read forward.

    compression: ``gzip``, ``bzip2``, ``xz``, ``deflate`` (as in zip archives), or empty. ``read`` gives what is asked
    for, less only at the end, and raises BrokenStreamError.
    """

    def __init__(self, packed: BinaryIO, compression: str) -> None:
        self._packed = packed
        plain = _Inflating(packed) if compression == "deflate" else unpacking(packed, compression)
        # read1 gives what is there before it stumbles over damage; read would lose that.
        self._read: Callable[[int], bytes] = plain.read1  # type: ignore[union-attr]
        self._position = 0
        self._fault: BrokenStreamError | None = None

    def read(self, size: int = -1, /) -> bytes:
        """Up to ``size`` bytes; all that are left with -1."""
        parts: list[bytes] = []
        left = size if size >= 0 else LARGEST_MEMBER
        while left > 0 and (part := self._part(min(left, BUFFER), is_first=not parts)):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _part(self, size: int, is_first: bool) -> bytes:
        """Some bytes. Damage is raised only by the first part of a read, so that what is before it is not lost."""
        if self._fault is None:
            try:
                data = self._read(size)
                self._position += len(data)
                check_growth(self._packed.tell(), self._position)
                return data
            except BrokenStreamError as error:
                self._fault = error
            except BROKEN_STREAM as error:
                cause = "it ends early" if isinstance(error, EOFError) else str(error)
                self._fault = BrokenStreamError(
                    f"its compressed data can be read up to byte {self._position} only: {cause}"
                )
        if is_first:
            raise self._fault
        return b""

    def seek(self, offset: int, /) -> int:
        """Go forward to ``offset``, or to the end when it is nearer; the place that was reached."""
        if offset < self._position:
            raise ValueError("a compressed stream can be read forward only")
        while self._position < offset and self.read(min(offset - self._position, BUFFER)):
            pass
        return self._position

    def tell(self) -> int:
        """Place in the unpacked bytes."""
        return self._position


class _Inflating:
    """Raw deflate data (RFC 1951) as a stream."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._inflater = zlib.decompressobj(-zlib.MAX_WBITS)

    def read1(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; none at the end."""
        while not self._inflater.eof:
            packed = self._inflater.unconsumed_tail or self._packed.read(65_536)
            if not packed:
                raise EOFError
            data = self._inflater.decompress(packed, size)
            if data:
                return data
        return b""


def check_growth(packed: int, unpacked: int) -> None:
    """Raises BrokenStreamError when ``packed`` bytes have become more than can be right."""
    if unpacked > HARMLESS_BYTES and unpacked > LARGEST_RATIO * packed:
        raise BrokenStreamError(
            f"{packed:,} bytes unpack to more than {LARGEST_RATIO} times as much: this is no collection of images"
        )


class Window(io.RawIOBase):
    """A part of a stream as a seekable stream of its own. length: -1 for all that follows."""

    def __init__(self, stream: Seekable, start: int = 0, length: int = -1) -> None:
        self._stream = stream
        self._start = start
        self._length = length
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = len(buffer) if self._length < 0 else min(len(buffer), max(self._length - self._position, 0))
        if size == 0:
            return 0
        # Elsewhere means that the stream ends before: nothing is there.
        if self._stream.seek(self._start + self._position) != self._start + self._position:
            return 0
        data = self._stream.read(size)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_CUR:
            offset += self._position
        elif whence == io.SEEK_END:
            if self._length < 0:
                raise io.UnsupportedOperation("the end of the stream is not known")
            offset += self._length
        self._position = max(offset, 0)
        return self._position


def buffered(stream: Seekable, start: int = 0, length: int = -1) -> io.BufferedReader:
    """A buffered :class:`Window`."""
    return io.BufferedReader(Window(stream, start, length), 65_536)


def archive_kind(head: bytes) -> str:
    """``zip``, ``tar``, ``gzip``, ``bzip2``, ``xz``, or empty, from the first 512 bytes.

    Signatures: APPNOTE.TXT 4.3.7 and 4.3.16 (an empty zip), POSIX ustar (magic at 257); a tar from before POSIX is told
    by the checksum of its first header.
    """
    if head.startswith((b"PK\3\4", b"PK\5\6", b"PK\7\x08")):
        return "zip"
    if head[257:262] == b"ustar" or _has_tar_checksum(head):
        return "tar"
    return compression_of(head)


def _has_tar_checksum(head: bytes) -> bool:
    if len(head) < 512 or not head[0]:
        return False
    stated = head[148:156].strip(b" \0")
    if not stated or stated.strip(b"01234567"):
        return False
    return int(stated, 8) == sum(head[:148]) + 8 * 32 + sum(head[156:512])


# ---------------------------------------------------------------------------------------------------------------------
# Entries of zip archives


class LocalHeader(NamedTuple):
    """What stands in front of the data of a zip entry (APPNOTE.TXT 4.3.7).

    crc: of the unpacked data; 0 when it stands behind the data. size: of the header, up to the first byte of the data.
    """

    flags: int
    method: int
    crc: int
    size: int

    @property
    def is_encrypted(self) -> bool:
        """General purpose bit 0."""
        return bool(self.flags & 1)


def parse_local_header(data: bytes) -> LocalHeader:
    """The header that begins ``data``. Raises ValueError when there is none."""
    if len(data) < LOCAL_HEADER_BYTES or not data.startswith(b"PK\3\4"):
        raise ValueError("there is no zip entry where the directory of the archive says")
    _, _, flags, method, _, _, crc, _, _, name, extra = struct.unpack_from("<4s5H3I2H", data)
    return LocalHeader(flags, method, 0 if flags & 8 else crc, LOCAL_HEADER_BYTES + name + extra)


def crc_behind(data: bytes) -> int:
    """The checksum of a data descriptor, whose signature may be missing (APPNOTE.TXT 4.3.9)."""
    place = 4 if data.startswith(b"PK\7\x08") else 0
    return int.from_bytes(data[place : place + 4], "little")


def inflate_entry(packed: bytes, header: LocalHeader, limit: int) -> bytes:
    """The unpacked data of a zip entry. limit: bytes that it may have.

    Raises ValueError for damaged data (the checksum is compared) and for a method that is unknown here, OverflowError
    for more bytes than the limit.
    """
    data = packed if header.method == 0 else _decompressed(packed, header.method, limit)
    if len(data) > limit:
        raise OverflowError(f"unpacks to more than {limit:,} bytes")
    if header.crc and zlib.crc32(data) != header.crc:
        raise ValueError("the checksum does not fit the data")
    return data


def _decompressed(packed: bytes, method: int, limit: int) -> bytes:
    """Methods of APPNOTE.TXT 4.4.5: 8 is deflate, 12 bzip2."""
    if method not in READABLE_METHODS:
        raise ValueError(
            f"it is packed with method {method}, which is unknown here: make the archive again with deflate"
        )
    other = zlib.decompressobj(-zlib.MAX_WBITS) if method == 8 else bz2.BZ2Decompressor()
    try:
        data: bytes = other.decompress(packed, limit + 1)
    except BROKEN_STREAM as error:
        raise ValueError(f"the data are damaged ({error})") from None
    if len(data) <= limit and not other.eof:
        raise ValueError("the data end early")
    return data
