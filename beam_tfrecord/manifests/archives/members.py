"""Reading members of archives by their place, in any order, without ever unpacking an archive to files.

A member of a zip or of a plain tar is one read of a range. What lies in a compressed tar, or in an archive that is
itself packed inside of another, can only be reached by unpacking everything before it, and records are written in an
order that has nothing to do with that of the archive. Such an archive is therefore unpacked once per process, when the
first of its members is asked for, into a temporary file without a name (so that nothing is left of it when a process is
killed), and members are ranges of that. All readers of a process share it; it goes with the last of them. It needs as
much room in the temporary folder (TMPDIR) as the archive unpacked, in each worker process: where that is too much, a
zip, a plain tar or a folder serves better.

Members are also the values of a column of Parquet, one behind the other, and pixels that stand in a record as they are.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, BinaryIO, NamedTuple, Protocol, cast

from beam_tfrecord.core.elements import Member
from beam_tfrecord.errors import ImageError, StorageError
from beam_tfrecord.manifests.archives.streams import (
    BUFFER,
    LARGEST_MEMBER,
    LOCAL_HEADER_BYTES,
    BrokenStreamError,
    Seekable,
    Unpacker,
    buffered,
    crc_behind,
    inflate_entry,
    parse_local_header,
)
from beam_tfrecord.manifests.text.inline_images import JSON_PICTURE, picture_in_line

PARQUET_COLUMN = "parquet"  # the method of a Member that is a column; offset: number of the row group


def column_of_group(table: Any, group: int, column: str) -> list[bytes | None]:
    """The values of a column of bytes. column: its path, such as ``image.bytes``. Raises ArrowException."""
    import pyarrow.compute as pc

    name, _, inner = (column, "", "") if column in table.schema_arrow.names else column.rpartition(".")
    chunks = table.read_row_group(group, columns=[column]).column(name)
    values: list[bytes | None] = (pc.struct_field(chunks, inner) if inner else chunks).to_pylist()
    return values


def unpacked_column(stream: BinaryIO, group: int, column: str) -> io.BytesIO:
    """All bytes of the column. Raises BrokenStreamError."""
    import pyarrow
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(stream) as table:
            return io.BytesIO(b"".join(value for value in column_of_group(table, group, column) if value is not None))
    except (pyarrow.ArrowException, ValueError, IndexError) as error:
        raise BrokenStreamError(f"row group {group} cannot be read as Parquet: {error}") from None


RAW_PIXELS = "raw_pixels"  # the method of a Member that is pixels; the last name of its path says how they lie
_PIXEL_LAYOUT = re.compile(r".*\b(hwc|chw) (\d+)x(\d+)x(\d+)", re.DOTALL)


def layout_name(order: str, shape: tuple[int, int, int]) -> str:
    """The name of a layout. order: ``hwc`` or ``chw``, that of the three numbers and of the samples."""
    return f"{order} {'x'.join(map(str, shape))}"


def png_of_pixels(data: bytes, layout: str) -> bytes:
    """The pixels as PNG. layout: ends as :func:`layout_name` says. Raises ValueError where the data are none."""
    import numpy as np
    from PIL import Image

    found = _PIXEL_LAYOUT.fullmatch(layout)
    if found is None:
        raise ValueError(f"{layout!r} says not how the pixels lie")
    shape = (int(found[2]), int(found[3]), int(found[4]))
    samples = np.frombuffer(data, np.uint8)
    if samples.size != shape[0] * shape[1] * shape[2]:
        raise ValueError(f"{len(data)} bytes are no pixels of {found[1]} {shape}")
    pixels: Any = samples.reshape(shape) if found[1] == "hwc" else samples.reshape(shape).transpose(1, 2, 0)
    if pixels.shape[2] == 1:
        pixels = pixels.reshape(pixels.shape[:2])
    out = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(out, "PNG")
    return out.getvalue()


# Room for what follows the name in a local header, and for a checksum behind the data: nearly always one read will do.
_SLACK = 256
_DESCRIPTOR_BYTES = 24
_ENTRY_COMPRESSIONS = {0: "", 8: "deflate", 12: "bzip2"}
Fetch = Callable[[int, int], bytes]


class ArchiveReader(Protocol):
    """What reading members needs of a storage."""

    def open(self, uri: str, /) -> BinaryIO:
        """The file opened for reading; seekable."""

    def read_range(self, uri: str, start: int, length: int, /) -> bytes:
        """``length`` bytes from ``start``; fewer where the file ends before."""


def member_uri(member: Member) -> str:
    """A member's name for people: ``outer.tar!/inner.tar!/a.jpg``."""
    return "!/".join((member.archive, *member.path))


def read_member(
    reader: ArchiveReader,
    member: Member,
    max_bytes: int | None = None,
    unpacked: UnpackedArchives | None = None,
) -> bytes:
    """The bytes of a member: one read of a range, unless its archive has to be unpacked first.

    max_bytes: a larger member is not read; a zip entry is not unpacked any further than that. unpacked: where
    compressed archives are unpacked to; without it they are read from their start for each member, which is right but
    slow.

    Raises ImageError: ``damaged_archive`` for data that end early or whose checksum does not fit, ``read_failed`` for a
    member that is too large, ``encrypted_archive``. OSErrors of the reader pass through.
    """
    limit = LARGEST_MEMBER if max_bytes is None else min(max_bytes, LARGEST_MEMBER)
    # What cannot be packed any smaller becomes a little larger; base64 takes four characters for three bytes.
    more = {"zip": limit // 100 + 1_000, JSON_PICTURE: limit // 2 + 2**20}.get(member.method, 0)
    if member.length > limit + more:
        raise ImageError("read_failed", f"{member_uri(member)} {_too_large(limit)}")
    with _fetcher(reader, member, unpacked) as fetch:
        if member.method == "zip":
            return _read_entry(fetch, member, limit)
        data = fetch(member.offset, member.length)
        if len(data) < member.length:
            raise _damaged(member, "the archive ends before the member does")
        if member.method == RAW_PIXELS:
            return _of_pixels(data, member)
        return _picture(data, member) if member.method == JSON_PICTURE else data


def _picture(line: bytes, member: Member) -> bytes:
    """The picture in a line of JSON. Raises ImageError."""
    try:
        data = picture_in_line(line, member.path[-1])
    except ValueError as error:
        raise ImageError("corrupt_image", f"the picture in {member_uri(member)} cannot be read: {error}") from None
    if not data:
        raise ImageError("empty_file", f"the picture in {member_uri(member)} has no bytes")
    return data


def _of_pixels(data: bytes, member: Member) -> bytes:
    """The pixels of a record as PNG. Raises ImageError."""
    try:
        return png_of_pixels(data, member.path[-1])
    except ValueError as error:
        raise ImageError("corrupt_image", f"the pixels in {member_uri(member)} cannot be read: {error}") from None


def _read_entry(fetch: Fetch, member: Member, limit: int) -> bytes:
    """The data of a zip entry, its header and its data read at once."""
    expected = LOCAL_HEADER_BYTES + len(os.fsencode(member.path[-1])) + _SLACK
    data = fetch(member.offset, expected + member.length + _DESCRIPTOR_BYTES)
    try:
        header = parse_local_header(data)
        if header.is_encrypted:
            raise ImageError("encrypted_archive", f"{member_uri(member)} is encrypted")
        end = header.size + member.length
        if len(data) < end + _DESCRIPTOR_BYTES and header.size > expected:
            data = fetch(member.offset, end + _DESCRIPTOR_BYTES)
        if len(data) < end:
            raise ValueError("the archive ends before the member does")
        if header.flags & 8:
            header = header._replace(crc=crc_behind(data[end:]))
        return inflate_entry(data[header.size : end], header, limit)
    except OverflowError:
        raise ImageError("read_failed", f"{member_uri(member)} {_too_large(limit)}") from None
    except ValueError as error:
        raise _damaged(member, str(error)) from None


@contextmanager
def _fetcher(reader: ArchiveReader, member: Member, unpacked: UnpackedArchives | None) -> Iterator[Fetch]:
    """Reads ranges of what the member's offset counts in."""
    container = member.container
    if container is None:
        yield lambda start, length: reader.read_range(member.archive, start, length)
    elif unpacked is not None:
        yield lambda start, length: unpacked.read(reader, member, start, length)
    else:
        try:
            with open_container(reader, container) as stream:
                yield lambda start, length: _read_at(stream, start, length)
        except BrokenStreamError as error:
            raise _damaged(member, str(error)) from None


def _read_at(stream: Seekable, start: int, length: int) -> bytes:
    return stream.read(length) if stream.seek(start) == start else b""


@contextmanager
def open_container(reader: ArchiveReader, container: Member) -> Iterator[Seekable]:
    """The unpacked bytes of a container, to be read forward. Reading raises BrokenStreamError."""
    if container.container is None:
        with reader.open(container.archive) as packed:
            yield unpacked_part(packed, container)
    else:
        with open_container(reader, container.container) as outer:
            yield unpacked_part(outer, container)


def unpacked_part(stream: Seekable, container: Member) -> Seekable:
    """The unpacked bytes of a container, given the stream that its offset counts in."""
    if container.method == "zip":
        header_bytes = _read_at(stream, container.offset, LOCAL_HEADER_BYTES)
        try:
            header = parse_local_header(header_bytes)
        except ValueError as error:
            raise BrokenStreamError(str(error)) from None
        if header.method not in _ENTRY_COMPRESSIONS:
            raise BrokenStreamError(f"it is packed with method {header.method}, which is unknown here")
        part = buffered(stream, container.offset + header.size, container.length)
        return Unpacker(part, _ENTRY_COMPRESSIONS[header.method])
    if container.method == PARQUET_COLUMN:
        if isinstance(stream, Unpacker):  # which knows no way back from its end
            stream = io.BytesIO(stream.read())
        return unpacked_column(cast(BinaryIO, stream), container.offset, container.path[-1])
    part = buffered(stream, container.offset, container.length)
    return Unpacker(part, "" if container.method == "stored" else container.method)


def _damaged(member: Member, cause: str) -> ImageError:
    return ImageError(
        "damaged_archive", f"{member_uri(member)} cannot be read: {cause}; fetch or make the archive again"
    )


def _too_large(limit: int) -> str:
    return f"has more than the {limit:,} bytes that are read at most"


# ---------------------------------------------------------------------------------------------------------------------
# Unpacked once


class _Place(NamedTuple):
    """Where an unpacked archive lies in the temporary file, and why it ends early, if it does."""

    start: int
    length: int
    fault: str


class UnpackedArchives:
    """Compressed archives, each unpacked once, one behind the other in a temporary file without a name.

    Made without any I/O; safe to use from many threads; the file goes with :meth:`close`, with the object, or with the
    process. The content of an archive must not change meanwhile.
    """

    def __init__(self, folder: str | None = None) -> None:
        """folder: for the temporary file; that of :mod:`tempfile` when it is None."""
        self._folder = folder
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None
        self._places: dict[Member, _Place] = {}
        self._end = 0

    def read(self, reader: ArchiveReader, member: Member, start: int, length: int) -> bytes:
        """Bytes of the unpacked container of a member, fewer where it ends.

        Raises ImageError (``damaged_archive``) when it cannot be unpacked as far as that, and StorageError when there
        is no room for it.
        """
        container = member.container
        assert container is not None, "a member without container lies in a file"
        place = self._places.get(container)
        if place is None:
            with self._lock:
                place = self._unpack(reader, container)
        if place.fault and start + length > place.length:
            raise _damaged(member, place.fault)
        return self._pread(place.start + start, min(length, place.length - start))

    def close(self) -> None:
        """Give the room back. Whatever is read afterwards is unpacked anew."""
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._file, self._places, self._end = None, {}, 0

    def _pread(self, start: int, length: int) -> bytes:
        assert self._file is not None, "something was unpacked"
        parts = []
        while length > 0 and (part := os.pread(self._file.fileno(), length, start)):
            parts.append(part)
            start += len(part)
            length -= len(part)
        return b"".join(parts)

    def _unpack(self, reader: ArchiveReader, container: Member) -> _Place:
        """The place of a container, which is unpacked unless another thread did it. The lock is held."""
        place = self._places.get(container)
        if place is not None:
            return place
        if container.container is None:
            with reader.open(container.archive) as packed:
                place = self._copy(packed, container)
        else:
            outer = self._unpack(reader, container.container)
            place = self._copy(buffered(_Unpacked(self, outer), 0, outer.length), container)
        self._places[container] = place
        return place

    def _copy(self, packed: Any, container: Member) -> _Place:
        """Unpack to the end of the temporary file."""
        if self._file is None:
            self._file = self._new_file(container)
        start, fault = self._end, ""
        try:
            stream = unpacked_part(packed, container)
            while block := stream.read(BUFFER):
                self._write(block, container)
        except BrokenStreamError as error:
            fault = str(error)
        return _Place(start, self._end - start, fault)

    def _new_file(self, container: Member) -> IO[bytes]:
        try:
            file = tempfile.TemporaryFile(buffering=0, prefix="beam_tfrecord-", dir=self._folder)  # noqa: SIM115
        except OSError as error:
            raise self._no_room(container, error) from None
        weakref.finalize(self, file.close)
        return file

    def _write(self, block: bytes, container: Member) -> None:
        assert self._file is not None, "made before anything is written"
        view = memoryview(block)
        try:
            while view:
                written = os.pwrite(self._file.fileno(), view, self._end)
                self._end += written
                view = view[written:]
        except OSError as error:
            raise self._no_room(container, error) from None

    def _no_room(self, container: Member, error: OSError) -> StorageError:
        folder = self._folder or tempfile.gettempdir()
        return StorageError(
            f"{container.archive} is compressed and has to be unpacked to be read in any order, for which the "
            f"temporary folder {folder} has no room ({error.strerror}): let TMPDIR name a larger one, or give the "
            f"images as a folder, a zip or a plain tar"
        )


class _Unpacked:
    """An unpacked archive as a stream."""

    def __init__(self, archives: UnpackedArchives, place: _Place) -> None:
        self._archives, self._place, self._position = archives, place, 0

    def read(self, size: int, /) -> bytes:
        left = self._place.length - self._position
        data = self._archives._pread(self._place.start + self._position, min(size, left))
        self._position += len(data)
        return data

    def seek(self, offset: int, /) -> int:
        self._position = min(offset, self._place.length)
        return self._position


_SHARED: weakref.WeakValueDictionary[str, UnpackedArchives] = weakref.WeakValueDictionary()
_SHARED_LOCK = threading.Lock()


def shared_archives() -> UnpackedArchives:
    """The unpacked archives of this process. They are kept as long as anyone holds what this returns."""
    with _SHARED_LOCK:
        archives = _SHARED.get("")
        if archives is None:
            archives = _SHARED[""] = UnpackedArchives()
        return archives
