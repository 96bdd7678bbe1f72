"""Files of this machine (and of whatever is mounted on it)."""

from __future__ import annotations

import errno
import fcntl
import io
import itertools
import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import BinaryIO, cast

from beam_tfrecord.errors import StorageError
from beam_tfrecord.manifests.base import FileInfo
from beam_tfrecord.storage.faults import MissingFileError, UnreadableFileError, local_fault
from beam_tfrecord.storage.stores import Result, Store, too_large
from beam_tfrecord.storage.uris import Glob

_READ_BUFFER = 256 * 1024
_WRITE_BUFFER = 1024 * 1024
# O_NONBLOCK changes nothing for a regular file, and keeps the opening of a named pipe from waiting for a writer.
_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
_LINK_TRIES = 5
_UNSIZED_LIMIT = 2**20
_temporary_number = itertools.count()


def path_of(uri: str) -> str:
    """The path of a local uri: the uri itself, without ``file://`` or ``file://localhost``; never unquoted."""
    if "://" not in uri or uri[:7].lower() != "file://":
        return uri
    path = uri[7:]
    return path[9:] if path.startswith("localhost/") else path


class LocalStore(Store):
    """Local files. Reading one image is a single open, fstat and read, without the GIL while the kernel works."""

    def read(self, uri: str, max_bytes: int | None) -> bytes:
        path = path_of(uri)
        try:
            return _read_once(path, max_bytes)  # what nearly always happens, without a context manager's microseconds
        except (MissingFileError, UnreadableFileError):
            raise
        except (OSError, ValueError):
            return self._asked(uri, lambda path: _read_once(path, max_bytes))

    def _asked(self, uri: str, ask: Callable[[str], Result]) -> Result:
        path = path_of(uri)

        def attempt() -> Result:
            with _faults(path):
                return ask(path)

        return self.reading(uri, attempt)

    def read_range(self, uri: str, start: int, length: int) -> bytes:
        def part(path: str) -> bytes:
            with os.fdopen(_open_regular(path), "rb", buffering=0) as file:
                os.lseek(file.fileno(), start, os.SEEK_SET)
                return _read_fully(file.fileno(), length)

        return self._asked(uri, part)

    def open(self, uri: str) -> BinaryIO:
        return self._asked(uri, lambda path: os.fdopen(_open_regular(path), "rb", buffering=_READ_BUFFER))

    def size(self, uri: str) -> int:
        return self._asked(uri, lambda path: _regular(path, os.stat(path)).st_size)

    def is_file(self, uri: str) -> bool:
        return os.path.isfile(path_of(uri))

    def is_folder(self, uri: str) -> bool:
        return os.path.isdir(path_of(uri) or ".")

    def walk(self, uri: str) -> Iterator[FileInfo]:
        return _walk(uri if uri.endswith("/") else uri + "/", frozenset())

    def match(self, pattern: str) -> Iterator[FileInfo]:
        if Glob(pattern).is_literal:
            return iter([FileInfo(pattern)] if self.is_file(pattern) else [])
        head, slash, tail = _literal_folder(pattern)
        found = _match(head + slash, tail.split("/"))
        return iter(sorted(set(found), key=lambda info: info.uri))

    def list_folder(self, uri: str) -> list[str]:
        try:
            return _entries(uri if uri.endswith("/") else uri + "/")
        except MissingFileError:
            return []

    def open_write(self, uri: str) -> BinaryIO:
        path = path_of(uri)
        _make_parents(path)
        with _faults_of_place(path):
            return cast(BinaryIO, io.BufferedWriter(_Writer(path, "wb"), buffer_size=_WRITE_BUFFER))

    def write_bytes(self, uri: str, data: bytes) -> None:
        path = path_of(uri)
        _make_parents(path)
        with _faults_of_place(path), _written_beside(path, data) as temporary:
            os.replace(temporary, path)

    def read_versioned(self, uri: str) -> tuple[bytes, str]:
        path = path_of(uri)
        with _faults(path), open(path, "rb") as stream:
            return stream.read(), _version(os.fstat(stream.fileno()))

    def write_if(self, uri: str, data: bytes, version: str | None) -> bool:
        path = path_of(uri)
        for _ in range(_LINK_TRIES - 1):
            with suppress(FileNotFoundError):  # whoever had the folder last may be removing it just now
                return self._write_if(path, data, version)
        with _faults_of_place(path):
            return self._write_if(path, data, version)

    def _write_if(self, path: str, data: bytes, version: str | None) -> bool:
        _make_parents(path)
        with _faults_of_place(path, missing_is_told=False), _written_beside(path, data) as temporary:
            if version is None:
                return _linked(temporary, path)
            with _locked(path) as found:
                if found == version:
                    os.replace(temporary, path)
                return found == version

    def keeps_conditions(self, uri: str, data: bytes) -> bool:
        return True

    def delete_if(self, uri: str, version: str) -> None:
        path = path_of(uri)
        with _faults_of_place(path), _locked(path) as found:
            if found == version:
                os.unlink(path)

    def remove_empty_folder(self, uri: str) -> None:
        with suppress(OSError):  # something was put there
            os.rmdir(path_of(uri))

    def rename(self, old: str, new: str) -> None:
        source, target = path_of(old), path_of(new)
        _make_parents(target)
        with _faults_of_place(target):
            try:
                os.replace(source, target)
            except FileNotFoundError:
                if not os.path.isfile(target):
                    raise MissingFileError(f"{source} does not exist") from None
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                # The two lie on different disks: copy beside the target first, so that it still appears at once.
                with _beside(target) as temporary:
                    shutil.copyfile(source, temporary)
                    os.replace(temporary, target)
                os.unlink(source)

    def delete(self, uris: Sequence[str]) -> None:
        for uri in uris:
            path = path_of(uri)
            with _faults_of_place(path), suppress(FileNotFoundError):
                os.unlink(path)

    def delete_tree(self, uri: str) -> None:
        path = path_of(uri).rstrip("/") or "/"
        with _faults_of_place(path), suppress(FileNotFoundError):
            if os.path.islink(path):
                os.unlink(path)
            else:
                shutil.rmtree(path)

    def make_folder(self, uri: str) -> None:
        path = path_of(uri)
        with _faults_of_place(path):
            os.makedirs(path, exist_ok=True)


class _Writer(io.FileIO):
    """A file whose faults say what to do about them."""

    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError as error:
            raise _place_fault(error, str(self.name)) from None


@contextmanager
def _beside(path: str) -> Iterator[str]:
    """A name beside a file, unique to this process and thread: the same file may be written twice at a time when an
    engine repeats a step. Nothing is left of it."""
    folder, name = os.path.split(path)
    mark = f"{os.getpid()}-{threading.get_ident()}-{next(_temporary_number)}"
    temporary = os.path.join(folder, f".{name[:80]}.{mark}.tmp")
    try:
        yield temporary
    finally:
        with suppress(OSError):  # it was moved, or was never there; else what was wrong with it is told
            os.unlink(temporary)


@contextmanager
def _written_beside(path: str, data: bytes) -> Iterator[str]:
    """The same of a file that is complete."""
    with _beside(path) as temporary:
        with open(temporary, "xb") as stream:
            stream.write(data)
        yield temporary


def _version(status: os.stat_result) -> str:
    return f"{status.st_ino}-{status.st_mtime_ns}-{status.st_size}"


def _linked(temporary: str, path: str) -> bool:
    """Give a complete file a name that must not be there; whether it was not."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return _created(temporary, path)
    return True


def _created(temporary: str, path: str) -> bool:
    """The same where the file system knows no links: the file is there empty for an instant."""
    try:
        with open(temporary, "rb") as source, open(path, "xb") as target:
            target.write(source.read())
    except FileExistsError:
        return False
    return True


@contextmanager
def _locked(path: str) -> Iterator[str]:
    """The version of a file, '' when there is none, kept from others that ask in this way for as long as the block
    runs. File systems without locks have none."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield ""
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        try:
            is_same = os.path.samestat(os.stat(path), os.fstat(descriptor))
        except FileNotFoundError:
            is_same = False
        yield _version(os.fstat(descriptor)) if is_same else ""
    finally:
        os.close(descriptor)


def _read_once(path: str, max_bytes: int | None) -> bytes:
    fd = os.open(path, _OPEN_FLAGS)
    try:
        size = _regular(path, os.fstat(fd)).st_size
        if max_bytes is not None and size > max_bytes:
            raise UnreadableFileError(too_large(path, size, max_bytes))
        data = os.read(fd, size)
        if len(data) == size > 0:
            return data
        # More than the kernel gives at once (2 GiB), a file that is being cut, or one that has no size, as in /proc.
        return data + _read_fully(fd, size - len(data) or max_bytes or _UNSIZED_LIMIT)
    finally:
        os.close(fd)


def _open_regular(path: str) -> int:
    fd = os.open(path, _OPEN_FLAGS)
    try:
        _regular(path, os.fstat(fd))
    except BaseException:
        os.close(fd)
        raise
    return fd


def _read_fully(fd: int, length: int) -> bytes:
    """``length`` bytes from where the file stands (the kernel may give fewer at a time); fewer only where it ends."""
    parts = []
    while length > 0 and (part := os.read(fd, min(length, _READ_BUFFER))):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _regular(path: str, status: os.stat_result) -> os.stat_result:
    """The status of a regular file. Raises MissingFileError for anything else."""
    if stat.S_ISREG(status.st_mode):
        return status
    kind = "is a folder, not a file" if stat.S_ISDIR(status.st_mode) else "is not a regular file"
    raise MissingFileError(f"{path} {kind}")


@contextmanager
def _faults(path: str) -> Iterator[None]:
    """OSErrors told apart as the stores' contract says; for reading one file."""
    try:
        yield
    except (MissingFileError, UnreadableFileError):
        raise
    except OSError as error:
        raise local_fault(error, path) from None
    except ValueError as error:
        raise MissingFileError(f"{path!r} cannot be the name of a file: {error}") from None


@contextmanager
def _faults_of_place(path: str, *, missing_is_told: bool = True) -> Iterator[None]:
    """OSErrors as StorageErrors: when writing fails, going on makes no sense.

    missing_is_told: also that a folder is not there.
    """
    try:
        yield
    except MissingFileError:
        raise
    except FileNotFoundError as error:
        if not missing_is_told:
            raise
        raise _place_fault(error, path) from None
    except OSError as error:
        raise _place_fault(error, path) from None
    except ValueError as error:
        raise StorageError(f"{path!r} cannot be the name of a file: {error}") from None


def _place_fault(error: OSError, path: str) -> StorageError:
    fault = local_fault(error, path)
    if isinstance(fault, StorageError):
        return fault
    return StorageError(f"{path}: cannot be written: {error.strerror or error}")


def _make_parents(path: str) -> None:
    folder = os.path.dirname(path)
    if folder:
        with _faults_of_place(folder):
            os.makedirs(folder, exist_ok=True)


def _entries(base: str) -> list[str]:
    """The names in a folder, those of folders with ``/`` behind them; sorted as the full paths are."""
    with _faults(base), os.scandir(path_of(base)) as scan:
        found = list(scan)
    try:
        return sorted([entry.name + "/" if entry.is_dir() else entry.name for entry in found])
    except OSError:
        return sorted([entry.name + "/" if _is_folder(entry) else entry.name for entry in found])


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder, or a link to one. What leads nowhere (a link to itself) is told when it is read."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _walk(base: str, above: frozenset[tuple[int, int]]) -> Iterator[FileInfo]:
    """Files below ``base``, through symbolic links, but never into a folder that is being walked already."""
    with _faults(base):
        status = os.stat(path_of(base))
    identity = (status.st_dev, status.st_ino)
    if identity in above:
        return
    for name in _entries(base):
        if name.endswith("/"):
            yield from _walk(base + name, above | {identity})
        else:
            yield FileInfo(base + name)


def _literal_folder(pattern: str) -> tuple[str, str, str]:
    """(folder, slash, rest): the deepest folder that the pattern names literally, and the pattern below it."""
    prefix = Glob(pattern).literal_prefix
    folder, slash, _ = prefix.rpartition("/")
    return folder, slash, pattern[len(folder) + len(slash) :]


def _match(base: str, segments: Sequence[str]) -> Iterator[FileInfo]:
    """Files below ``base`` that fit the remaining segments; only folders that can lead to one are looked into."""
    try:
        if "**" in segments[0]:
            pattern = Glob("/".join(segments))
            for info in _walk(base or "./", frozenset()):
                relative = info.uri[len(base or "./") :]
                if pattern.matches(relative):
                    yield FileInfo(base + relative)
            return
        pattern = Glob(segments[0])
        for name in _entries(base or "./"):
            if not pattern.matches(name.rstrip("/")):
                continue
            if len(segments) == 1:
                if not name.endswith("/"):
                    yield FileInfo(base + name)
            elif name.endswith("/"):
                yield from _match(base + name, segments[1:])
    except MissingFileError:
        return
