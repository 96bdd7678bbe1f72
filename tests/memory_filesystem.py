"""A Beam file system in memory, ``memory://``, with folders that must be made, and faults on request."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from typing import Any

from apache_beam.io.filesystem import BeamIOError, CompressedFile, CompressionTypes, FileMetadata, FileSystem


class MemoryFileSystem(FileSystem):
    """What an installed plugin would be. files, folders: shared by all instances; faults: raised, one by one."""

    files: dict[str, bytes] = {}  # noqa: RUF012 - the file system itself, of the process
    folders: set[str] = set()  # noqa: RUF012
    faults: list[Exception] = []  # noqa: RUF012
    lock = threading.Lock()

    @classmethod
    def scheme(cls) -> str:
        return "memory"

    @classmethod
    def clear(cls) -> None:
        for collection in (cls.files, cls.folders, cls.faults):
            collection.clear()

    def has_dirs(self) -> bool:
        return False

    def mkdirs(self, path: str) -> None:
        self._fail()
        if path in self.folders:
            raise OSError(f"{path} exists")
        self.folders.add(path)

    def create(self, path: str, mime_type: str = "", compression_type: str = CompressionTypes.AUTO) -> Any:
        self._fail()
        stream = _Closing(lambda data: self.files.__setitem__(path, data))
        kind = self._get_compression_type(path, compression_type)
        return stream if kind == CompressionTypes.UNCOMPRESSED else CompressedFile(stream, kind)

    def open(self, path: str, mime_type: str = "", compression_type: str = CompressionTypes.AUTO) -> Any:
        self._fail()
        stream = io.BytesIO(self._data(path))
        kind = self._get_compression_type(path, compression_type)
        return stream if kind == CompressionTypes.UNCOMPRESSED else CompressedFile(stream, kind)

    def exists(self, path: str) -> bool:
        self._fail()
        return path in self.files

    def metadata(self, path: str) -> FileMetadata:
        self._fail()
        return FileMetadata(path, len(self._data(path)), self.last_updated(path))

    def size(self, path: str) -> int:
        return int(self.metadata(path).size_in_bytes)

    def last_updated(self, path: str) -> float:
        return 0.0

    def rename(self, sources: list[str], targets: list[str]) -> None:
        self._fail()
        for source, target in zip(sources, targets, strict=True):
            if target in self.files:
                raise BeamIOError("Rename operation failed", {(source, target): OSError("target exists")})
            with self.lock:
                self.files[target] = self.files.pop(source)

    def copy(self, sources: list[str], targets: list[str]) -> None:
        for source, target in zip(sources, targets, strict=True):
            self.files[target] = self.files[source]

    def delete(self, paths: list[str]) -> None:
        self._fail()
        for path in paths:
            with self.lock:
                if path not in self.files:
                    raise BeamIOError("Delete operation failed", {path: FileNotFoundError(path)})
                del self.files[path]

    def join(self, base: str, *paths: str) -> str:
        return "/".join([base.rstrip("/"), *paths])

    def split(self, path: str) -> tuple[str, str]:
        head, _, tail = path.rpartition("/")
        return head, tail

    def _list(self, prefix: str) -> Iterator[FileMetadata]:
        self._fail()
        for path, data in list(self.files.items()):
            if path.startswith(prefix):
                yield FileMetadata(path, len(data))

    def _data(self, path: str) -> bytes:
        try:
            return self.files[path]
        except KeyError:
            raise BeamIOError("Open operation failed", {path: FileNotFoundError(path)}) from None

    def _fail(self) -> None:
        with self.lock:
            fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault


class FolderFileSystem(MemoryFileSystem):
    """The same as ``folders://``, with real folders, as HDFS has them: a listing is of one folder, and shows folders as
    if they were empty files; what is no folder cannot be listed."""

    files: dict[str, bytes] = {}  # noqa: RUF012
    folders: set[str] = set()  # noqa: RUF012
    faults: list[Exception] = []  # noqa: RUF012

    @classmethod
    def scheme(cls) -> str:
        return "folders"

    def has_dirs(self) -> bool:
        return True

    def mkdirs(self, path: str) -> None:
        super().mkdirs(path)
        while "/" in (path := path.rpartition("/")[0]).partition("://")[2]:
            self.folders.add(path)

    def create(self, path: str, mime_type: str = "", compression_type: str = CompressionTypes.AUTO) -> Any:
        if path.rpartition("/")[0] not in self.folders:
            raise BeamIOError("Create operation failed", {path: FileNotFoundError(path)})
        return super().create(path, mime_type, compression_type)

    def exists(self, path: str) -> bool:
        return super().exists(path) or path.rstrip("/") in self.folders

    def metadata(self, path: str) -> FileMetadata:
        return FileMetadata(path, 0) if path in self.folders else super().metadata(path)

    def delete(self, paths: list[str]) -> None:
        for path in paths:
            if path in self.files:
                del self.files[path]
            for name in [name for name in self.files if name.startswith(path + "/")]:
                del self.files[name]
            self.folders -= {name for name in self.folders if (name + "/").startswith(path + "/")}

    def _list(self, prefix: str) -> Iterator[FileMetadata]:
        folder = prefix.rstrip("/")
        if folder not in self.folders:
            raise BeamIOError("List operation failed", {prefix: OSError(f"{prefix} is not a directory")})
        names = {
            name[len(folder) + 1 :].partition("/")[0]
            for name in (*self.files, *self.folders)
            if name.startswith(folder + "/")
        }
        for name in names:
            yield FileMetadata(f"{folder}/{name}", len(self.files.get(f"{folder}/{name}", b"")))


class _Closing(io.BytesIO):
    """Hands its bytes over when it is closed."""

    def __init__(self, finish: Callable[[bytes], None]) -> None:
        super().__init__()
        self._finish = finish

    def close(self) -> None:
        if not self.closed:
            self._finish(self.getvalue())
        super().close()
