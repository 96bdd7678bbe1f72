"""What all object stores have in common: names without folders, listings by prefix, files that appear at once."""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import BinaryIO, NamedTuple, NoReturn

from beam_tfrecord.errors import StorageError
from beam_tfrecord.manifests.base import FileInfo
from beam_tfrecord.storage.answers import Place, Refusal, Words, raise_for
from beam_tfrecord.storage.faults import ChangedFileError, MissingFileError, NoBucketError, UnreadableFileError
from beam_tfrecord.storage.fetch import Answer, Limit
from beam_tfrecord.storage.stores import Store
from beam_tfrecord.storage.streams import buffered_ranges, upload_stream
from beam_tfrecord.storage.uris import Glob, bucket_and_name, split_root

_PARALLEL_DELETES = 32
_VERSION_TRIES = 5  # a small file that others write all the time is read at one moment at last


class ObjectInfo(NamedTuple):
    """Size in bytes, and what tells this version of an object from others (a generation, an ETag)."""

    size: int
    version: str


class Page(NamedTuple):
    """Part of a listing: objects and common prefixes (full uris, ``/`` at their end), and how to go on, if at all."""

    files: list[FileInfo]
    prefixes: list[str]
    next_token: str | None


class ObjectStore(Store):
    """Everything above single requests. Subclasses make one request in each of the methods that begin with ``_``.

    These raise TransientError for what may be tried again, and MissingFileError, UnreadableFileError or StorageError.
    """

    @abstractmethod
    def _get(self, bucket: str, name: str, max_bytes: int | None) -> bytes:
        """All bytes. Raises UnreadableFileError once there are more than ``max_bytes``."""

    @abstractmethod
    def _get_range(self, bucket: str, name: str, start: int, length: int, version: str | None) -> bytes:
        """Exactly the bytes that exist of a range; empty behind the end. version: fails when it is another by now."""

    @abstractmethod
    def _stat(self, bucket: str, name: str) -> ObjectInfo:
        """Size and version."""

    @abstractmethod
    def _list(self, bucket: str, prefix: str, delimiter: str, token: str | None, limit: int | None) -> Page:
        """One page of the objects whose names begin with ``prefix``, sorted by code point."""

    @abstractmethod
    def _put(self, bucket: str, name: str, stream: BinaryIO, size: int) -> None:
        """Write an object from a stream that stands at its start."""

    @abstractmethod
    def _put_if(self, bucket: str, name: str, data: bytes, version: str | None) -> None:
        """Write an object that has this version, or is not there (None). Raises ChangedFileError otherwise."""

    @abstractmethod
    def _copy(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        """Copy an object, whatever its size, replacing what is there."""

    @abstractmethod
    def _delete(self, bucket: str, names: Sequence[str]) -> None:
        """Delete objects; those that are not there are no error."""

    def read(self, uri: str, max_bytes: int | None) -> bytes:
        bucket, name = self._object(uri)
        return self.reading(uri, lambda: self._get(bucket, name, max_bytes))

    def read_range(self, uri: str, start: int, length: int) -> bytes:
        bucket, name = self._object(uri)
        if length <= 0:
            return b""
        return self.reading(uri, lambda: self._get_range(bucket, name, start, length, None))

    def open(self, uri: str) -> BinaryIO:
        bucket, name = self._object(uri)
        info = self.reading(uri, lambda: self._stat(bucket, name))

        def fetch(start: int, length: int) -> bytes:
            return self.reading(uri, lambda: self._get_range(bucket, name, start, length, info.version))

        return buffered_ranges(info.size, fetch)

    def size(self, uri: str) -> int:
        bucket, name = self._object(uri)
        return self.reading(uri, lambda: self._stat(bucket, name)).size

    def is_file(self, uri: str) -> bool:
        try:
            return self.size(uri) >= 0
        except MissingFileError:
            return False

    def is_folder(self, uri: str) -> bool:
        return any(page.files for page in self._pages(uri, *_folder(uri), "", limit=1))

    def walk(self, uri: str) -> Iterator[FileInfo]:
        for page in self._pages(uri, *_folder(uri), ""):
            yield from _real_files(page)

    def match(self, pattern: str) -> Iterator[FileInfo]:
        root, rest = split_root(pattern)
        if not Glob(root).is_literal:
            raise StorageError(f"{pattern}: the name of a bucket cannot have *, ? or [ in it")
        glob = Glob(rest)
        prefix = glob.literal_prefix
        # Where the pattern ends within one folder, the folders in it need not be listed.
        is_flat = "/" not in rest[len(prefix.rpartition("/")[0]) + 1 :] and "**" not in rest
        bucket = bucket_and_name(pattern)[0]
        for page in self._pages(pattern, bucket, prefix, "/" if is_flat else ""):
            for info in _real_files(page):
                if glob.matches(info.uri[len(root) :]):
                    yield info

    def list_folder(self, uri: str) -> list[str]:
        bucket, prefix = _folder(uri)
        names = []
        start = len(f"{split_root(uri)[0]}{prefix}")
        for page in self._pages(uri, bucket, prefix, "/"):
            names += [info.uri[start:] for info in _real_files(page)]
            names += [folder[start:] for folder in page.prefixes]
        return sorted(names)

    def open_write(self, uri: str) -> BinaryIO:
        bucket, name = self._target(uri)
        return upload_stream(lambda stream, size: self._upload(uri, bucket, name, stream, size))

    def write_bytes(self, uri: str, data: bytes) -> None:
        bucket, name = self._target(uri)
        self._upload(uri, bucket, name, io.BytesIO(data), len(data))

    def read_versioned(self, uri: str) -> tuple[bytes, str]:
        bucket, name = self._object(uri)
        for _ in range(_VERSION_TRIES - 1):
            with suppress(ChangedFileError):
                return self.reading(uri, lambda: self._read_version(bucket, name))
        return self.reading(uri, lambda: self._read_version(bucket, name))

    def write_if(self, uri: str, data: bytes, version: str | None) -> bool:
        bucket, name = self._target(uri)
        try:
            self._write(uri, lambda: self._put_if(bucket, name, data, version))
        except (ChangedFileError, MissingFileError):
            # An answer that was lost on the way, and the second try was refused because of the first.
            with suppress(FileNotFoundError):
                return self.read_versioned(uri)[0] == data
            return False
        return True

    def keeps_conditions(self, uri: str, data: bytes) -> bool:
        bucket, name = self._target(uri)
        try:
            self._write(uri, lambda: self._put_if(bucket, name, data, None))
        except ChangedFileError:
            return True
        except MissingFileError:  # of a server that mixes up requests which come at the same time
            return False
        return False

    def _read_version(self, bucket: str, name: str) -> tuple[bytes, str]:
        info = self._stat(bucket, name)
        return self._get_range(bucket, name, 0, max(info.size, 1), info.version), info.version

    def rename(self, old: str, new: str) -> None:
        source, target = self._object(old), self._object(new)
        try:
            self._write(new, lambda: self._copy(source, target))
        except MissingFileError:
            if not self.is_file(new):
                raise
            return
        self.delete([old])

    def delete(self, uris: Sequence[str]) -> None:
        by_bucket: dict[str, list[str]] = {}
        for uri in uris:
            bucket, name = self._object(uri)
            by_bucket.setdefault(bucket, []).append(name)
        for bucket, names in by_bucket.items():
            self._delete_all(uris[0], bucket, names)

    def delete_tree(self, uri: str) -> None:
        bucket, prefix = _folder(uri)
        start = len(split_root(uri)[0])
        for page in self._pages(uri, bucket, prefix, ""):
            self._delete_all(uri, bucket, [info.uri[start:] for info in page.files])

    def make_folder(self, uri: str) -> None:
        return

    def _delete_all(self, uri: str, bucket: str, names: Sequence[str]) -> None:
        if names:
            self._write(uri, lambda: self._delete(bucket, names))

    def _upload(self, uri: str, bucket: str, name: str, stream: BinaryIO, size: int) -> None:
        def attempt() -> None:
            stream.seek(0)
            self._put(bucket, name, stream, size)

        try:
            self._write(uri, attempt)
        except MissingFileError as error:
            raise StorageError(str(error)) from None

    def _write(self, uri: str, attempt: Callable[[], None]) -> None:
        """A write that fails for good ends the job: there is no item that it could be blamed on."""
        try:
            self.writing(uri, attempt)
        except ChangedFileError:
            raise
        except NoBucketError as error:
            raise StorageError(str(error)) from None
        except UnreadableFileError as error:
            raise StorageError(f"cannot write {error}") from None

    def _pages(self, uri: str, bucket: str, prefix: str, delimiter: str, limit: int | None = None) -> Iterator[Page]:
        token: str | None = None
        while True:
            page = self.reading(uri, partial(self._list, bucket, prefix, delimiter, token, limit))
            yield page
            token = page.next_token
            if token is None:
                return

    def _object(self, uri: str) -> tuple[str, str]:
        bucket, name = _bucket_and_name(uri)
        if not name:
            raise MissingFileError(f"{uri} is a bucket, not a file")
        return bucket, name

    def _target(self, uri: str) -> tuple[str, str]:
        try:
            return self._object(uri)
        except MissingFileError as error:
            raise StorageError(str(error)) from None


class HttpStore(ObjectStore):
    """An object store whose objects are asked for by HTTP, each with a request of its own; the name is everything
    behind the bucket's ``/``, character by character."""

    scheme: str
    words: Words

    @abstractmethod
    def _media(
        self, place: Place, headers: dict[str, str], version: str | None, limit: Limit | None, good: tuple[int, ...]
    ) -> Answer:
        """The answer with the bytes of an object that has this version."""

    @abstractmethod
    def _checked(self, answer: Answer, place: Place, max_bytes: int | None) -> bytes:
        """The bytes of a whole object, as they were stored. Raises TransientError where they fit no checksum."""

    @abstractmethod
    def _needs(self, refusal: Refusal, place: Place) -> str:
        """What is missing where access was refused, in words."""

    @abstractmethod
    def _delete_one(self, place: Place) -> None:
        """Delete an object. Raises MissingFileError where there is none."""

    def _get(self, bucket: str, name: str, max_bytes: int | None) -> bytes:
        place = self._place(bucket, name)
        limit = None if max_bytes is None else Limit(max_bytes, str(place))
        return self._checked(self._media(place, {}, None, limit, (200,)), place, max_bytes)

    def _get_range(self, bucket: str, name: str, start: int, length: int, version: str | None) -> bytes:
        wanted = {"Range": f"bytes={start}-{start + length - 1}"}
        answer = self._media(self._place(bucket, name), wanted, version, None, (200, 206, 416))
        if answer.status == 416:  # nothing lies there
            return b""
        return answer.body if answer.status == 206 else answer.body[start : start + length]

    def _delete(self, bucket: str, names: Sequence[str]) -> None:
        if len(names) == 1:
            self._delete_if_there(self._place(bucket, names[0]))
            return

        def again(name: str) -> None:
            place = self._place(bucket, name)
            self.writing(str(place), lambda: self._delete_if_there(place))

        with ThreadPoolExecutor(min(_PARALLEL_DELETES, len(names))) as pool:
            list(pool.map(again, names))

    def _delete_if_there(self, place: Place) -> None:
        with suppress(MissingFileError):
            self._delete_one(place)

    def _place(self, bucket: str, name: str | None = None) -> Place:
        return Place(self.scheme, bucket, name)

    def _refuse(self, refusal: Refusal, place: Place) -> NoReturn:
        raise_for(refusal, place, self.words, self._needs(refusal, place))


def _bucket_and_name(uri: str) -> tuple[str, str]:
    try:
        return bucket_and_name(uri)
    except ValueError as error:
        raise MissingFileError(str(error)) from None


def _folder(uri: str) -> tuple[str, str]:
    """(bucket, prefix): the prefix ends in ``/``, or is empty for the whole bucket."""
    bucket, name = _bucket_and_name(uri)
    return bucket, (name if name.endswith("/") or not name else name + "/")


def _real_files(page: Page) -> Iterator[FileInfo]:
    """Without the empty objects that consoles make to show a folder."""
    return (info for info in page.files if not info.uri.endswith("/"))
