"""Every other file system that Beam knows (``hdfs://`` ...)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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

    def read(self, uri: str, max_bytes: int | None) -> bytes:
        def attempt() -> bytes:
            with plugin_faults(uri, must_exist=True), open_reading(uri) as stream:
                data = stream.read() if max_bytes is None else stream.read(max_bytes + 1)
            if max_bytes is not None and len(data) > max_bytes:
                raise UnreadableFileError(too_large(public_uri(uri), None, max_bytes))
            return data

        return self.reading(uri, attempt)

    def read_range(self, uri: str, start: int, length: int) -> bytes:
        def attempt() -> bytes:
            with plugin_faults(uri, must_exist=True), open_reading(uri) as stream:
                stream.seek(start)
                data: bytes = stream.read(length)
                return data

        return self.reading(uri, attempt)

    def open(self, uri: str) -> BinaryIO:
        def attempt() -> BinaryIO:
            with plugin_faults(uri, must_exist=True):
                return open_reading(uri)

        return self.reading(uri, attempt)

    def size(self, uri: str) -> int:
        def attempt() -> int:
            with plugin_faults(uri, must_exist=True):
                return int(filesystem_of(uri).metadata(uri).size_in_bytes)

        return self.reading(uri, attempt)

    def is_file(self, uri: str) -> bool:
        def attempt() -> bool:
            with plugin_faults(uri):
                filesystem = filesystem_of(uri)
                return bool(filesystem.exists(uri)) and not is_folder(filesystem, uri)

        try:
            return not uri.endswith("/") and self.reading(uri, attempt)
        except MissingFileError:
            return False

    def is_folder(self, uri: str) -> bool:
        def attempt() -> bool:
            with plugin_faults(uri):
                filesystem = filesystem_of(uri)
                return is_folder(filesystem, uri) if filesystem.has_dirs() else bool(files_below(filesystem, uri))

        try:
            return self.reading(uri, attempt)
        except MissingFileError:
            return False

    def walk(self, uri: str) -> Iterator[FileInfo]:
        def attempt() -> list[FileInfo]:
            with plugin_faults(uri):
                return files_below(filesystem_of(uri), uri)

        try:
            yield from self.reading(uri, attempt)
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
        def attempt() -> BinaryIO:
            with plugin_faults(uri):
                make_parent(uri)
                return open_writing(uri)

        return self._writing(uri, attempt)

    def write_bytes(self, uri: str, data: bytes) -> None:
        def attempt() -> None:
            with plugin_faults(uri):
                make_parent(uri)
                with open_writing(uri) as stream:
                    stream.write(data)

        self._writing(uri, attempt)

    def rename(self, old: str, new: str) -> None:
        def attempt() -> None:
            with plugin_faults(old):
                filesystem = filesystem_of(old)
                if not filesystem.exists(old):
                    if filesystem.exists(new):
                        return
                    raise MissingFileError(f"{public_uri(old)} does not exist")
                make_parent(new)
                if filesystem.exists(new):
                    filesystem.delete([new])
                filesystem.rename([old], [new])

        self._writing(new, attempt)

    def delete(self, uris: Sequence[str]) -> None:
        for uri in uris:
            self._delete(uri)

    def delete_tree(self, uri: str) -> None:
        for info in list(self.walk(uri)):
            self._delete(info.uri)
        if self._exists(uri):
            self._delete(uri)

    def make_folder(self, uri: str) -> None:
        def attempt() -> None:
            with plugin_faults(uri):
                make_folder(uri)

        self._writing(uri, attempt)

    def _exists(self, uri: str) -> bool:
        def attempt() -> bool:
            with plugin_faults(uri):
                return bool(filesystem_of(uri).exists(uri))

        return self.reading(uri, attempt)

    def _delete(self, uri: str) -> None:
        def attempt() -> None:
            with plugin_faults(uri):
                filesystem = filesystem_of(uri)
                if filesystem.exists(uri):
                    filesystem.delete([uri])

        self._writing(uri, attempt)

    def _writing(self, uri: str, attempt: Callable[[], Result]) -> Result:
        try:
            return self.writing(uri, attempt)
        except UnreadableFileError as error:
            raise StorageError(f"cannot write {error}") from None
