"""Every other file system that Beam knows (``hdfs://`` ...)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import BinaryIO

from beam_tfrecord.errors import StorageError
from beam_tfrecord.manifests.base import FileInfo
from beam_tfrecord.storage.beam_plugins import (
    files_below,
    filesystem_of,
    is_folder,
    make_folder,
    make_parent,
    open_reading,
    open_writing,
    plugin_faults,
)
from beam_tfrecord.storage.faults import MissingFileError, UnreadableFileError
from beam_tfrecord.storage.stores import Result, Store, too_large
from beam_tfrecord.storage.uris import Glob, public_uri


class BeamStore(Store):
    """Files through Beam's FileSystems, never decompressed on the way.

    Names are literal also where Beam would take them for patterns. A listing is sorted in memory.
    """

    def _asked(self, uri: str, ask: Callable[[], Result], *, must_exist: bool = False) -> Result:
        def attempt() -> Result:
            with plugin_faults(uri, must_exist=must_exist):
                return ask()

        return self.reading(uri, attempt)

    def _told(self, uri: str, tell: Callable[[], Result]) -> Result:
        def attempt() -> Result:
            with plugin_faults(uri):
                return tell()

        try:
            return self.writing(uri, attempt)
        except UnreadableFileError as error:
            raise StorageError(f"cannot write {error}") from None

    def read(self, uri: str, max_bytes: int | None) -> bytes:
        def whole() -> bytes:
            with open_reading(uri) as stream:
                data = stream.read() if max_bytes is None else stream.read(max_bytes + 1)
            if max_bytes is not None and len(data) > max_bytes:
                raise UnreadableFileError(too_large(public_uri(uri), None, max_bytes))
            return data

        return self._asked(uri, whole, must_exist=True)

    def read_range(self, uri: str, start: int, length: int) -> bytes:
        def part() -> bytes:
            with open_reading(uri) as stream:
                stream.seek(start)
                return stream.read(length)

        return self._asked(uri, part, must_exist=True)

    def open(self, uri: str) -> BinaryIO:
        return self._asked(uri, lambda: open_reading(uri), must_exist=True)

    def size(self, uri: str) -> int:
        return self._asked(uri, lambda: int(filesystem_of(uri).metadata(uri).size_in_bytes), must_exist=True)

    def is_file(self, uri: str) -> bool:
        def look() -> bool:
            filesystem = filesystem_of(uri)
            return bool(filesystem.exists(uri)) and not is_folder(filesystem, uri)

        try:
            return not uri.endswith("/") and self._asked(uri, look)
        except MissingFileError:
            return False

    def is_folder(self, uri: str) -> bool:
        def look() -> bool:
            filesystem = filesystem_of(uri)
            return is_folder(filesystem, uri) if filesystem.has_dirs() else bool(files_below(filesystem, uri))

        try:
            return self._asked(uri, look)
        except MissingFileError:
            return False

    def walk(self, uri: str) -> Iterator[FileInfo]:
        try:
            yield from self._asked(uri, lambda: files_below(filesystem_of(uri), uri))
        except MissingFileError:
            return

    def match(self, pattern: str) -> Iterator[FileInfo]:
        glob = Glob(pattern)
        folder = glob.literal_prefix.rpartition("/")[0]
        yield from (info for info in self.walk(folder) if glob.matches(info.uri))

    def list_folder(self, uri: str) -> list[str]:
        start = len(uri.rstrip("/")) + 1
        below = [info.uri[start:].partition("/") for info in self.walk(uri)]
        return sorted({name + slash for name, slash, _ in below})

    def open_write(self, uri: str) -> BinaryIO:
        def begin() -> BinaryIO:
            make_parent(uri)
            return open_writing(uri)

        return self._told(uri, begin)

    def write_bytes(self, uri: str, data: bytes) -> None:
        def write() -> None:
            make_parent(uri)
            with open_writing(uri) as stream:
                stream.write(data)

        self._told(uri, write)

    def rename(self, old: str, new: str) -> None:
        def move() -> None:
            filesystem = filesystem_of(old)
            if not filesystem.exists(old):
                if filesystem.exists(new):
                    return
                raise MissingFileError(f"{public_uri(old)} does not exist")
            make_parent(new)
            if filesystem.exists(new):
                filesystem.delete([new])
            filesystem.rename([old], [new])

        self._told(new, move)

    def delete(self, uris: Sequence[str]) -> None:
        def take(uri: str) -> None:
            filesystem = filesystem_of(uri)
            if filesystem.exists(uri):
                filesystem.delete([uri])

        for uri in uris:
            self._told(uri, partial(take, uri))

    def delete_tree(self, uri: str) -> None:
        self.delete([*(info.uri for info in self.walk(uri)), uri])

    def make_folder(self, uri: str) -> None:
        self._told(uri, lambda: make_folder(uri))
