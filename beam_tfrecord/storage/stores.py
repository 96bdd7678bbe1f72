"""What every kind of storage offers to :class:`~beam_tfrecord.storage.Storage`."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, TypeVar

from beam_tfrecord.manifests.base import FileInfo
from beam_tfrecord.storage.retry import RetryPolicy, StorageCounters
from beam_tfrecord.storage.uris import public_uri

Result = TypeVar("Result")


@dataclass(frozen=True)
class StorageOptions:
    """How storage is used; nothing here changes what is read or written.

    connections: how many requests may run at a time in a process (width of the connection pools). gcs_user_project:
    project that pays for requests to buckets whose owner does not. retry: see :class:`RetryPolicy`.
    """

    connections: int = 64
    gcs_user_project: str | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)


class Store(ABC):
    """One kind of storage. All names are full uris, taken literally; what each method is for stands in
    :class:`~beam_tfrecord.storage.Storage`.

    Raises only FileNotFoundError, :class:`~beam_tfrecord.storage.faults.UnreadableFileError` (an OSError; of files that
    are larger than ``max_bytes`` too) and :class:`~beam_tfrecord.errors.StorageError`. TransientError faults have been
    retried before they show.
    """

    def __init__(self, options: StorageOptions, counters: StorageCounters) -> None:
        self.options = options
        self.counters = counters

    def reading(self, uri: str, attempt: Callable[[], Result]) -> Result:
        """Run a read, again after transient faults."""
        return self.options.retry.call(attempt, public_uri(uri), lambda: self.counters.add("read_retries"))

    def writing(self, uri: str, attempt: Callable[[], Result]) -> Result:
        """Run a write or delete that may be repeated, again after transient faults."""
        return self.options.retry.call(attempt, public_uri(uri), lambda: self.counters.add("write_retries"))

    @abstractmethod
    def read(self, uri: str, max_bytes: int | None) -> bytes: ...

    @abstractmethod
    def read_range(self, uri: str, start: int, length: int) -> bytes: ...

    @abstractmethod
    def open(self, uri: str) -> BinaryIO: ...

    @abstractmethod
    def size(self, uri: str) -> int: ...

    @abstractmethod
    def is_file(self, uri: str) -> bool: ...

    @abstractmethod
    def is_folder(self, uri: str) -> bool: ...

    @abstractmethod
    def walk(self, uri: str) -> Iterator[FileInfo]: ...

    @abstractmethod
    def match(self, pattern: str) -> Iterator[FileInfo]: ...

    @abstractmethod
    def list_folder(self, uri: str) -> list[str]: ...

    @abstractmethod
    def open_write(self, uri: str) -> BinaryIO: ...

    @abstractmethod
    def write_bytes(self, uri: str, data: bytes) -> None: ...

    def read_versioned(self, uri: str) -> tuple[bytes, str]:
        """A small file, and what tells this version of it from others."""
        data = self.read(uri, None)
        return data, hashlib.sha256(data).hexdigest()

    def write_if(self, uri: str, data: bytes, version: str | None) -> bool:
        """Write a small file only while it has this version, or is not there (None); whether it was written.

        One step in stores that can do it; here something may come between. ``data`` must never have been there before.
        """
        try:
            found: str | None = self.read_versioned(uri)[1]
        except FileNotFoundError:
            found = None
        if found == version:
            self.write_bytes(uri, data)
        return found == version

    def keeps_conditions(self, uri: str, data: bytes) -> bool:
        """Whether :meth:`write_if` is one step for a file that is there. data: may be written, where it is not."""
        return False

    def delete_if(self, uri: str, version: str) -> None:
        """Delete a small file while it has this version."""
        try:
            found = self.read_versioned(uri)[1]
        except FileNotFoundError:
            return
        if found == version:
            self.delete([uri])

    def remove_empty_folder(self, uri: str) -> None:
        """Remove a folder that nothing lies in, where the storage knows folders."""
        return

    @abstractmethod
    def rename(self, old: str, new: str) -> None: ...

    @abstractmethod
    def delete(self, uris: Sequence[str]) -> None: ...

    @abstractmethod
    def delete_tree(self, uri: str) -> None: ...

    @abstractmethod
    def make_folder(self, uri: str) -> None: ...


def too_large(shown: str, size: int | None, limit: int) -> str:
    """Message for a file that is larger than it may be. size: in bytes, None when it is not known."""
    has = "has more bytes" if size is None else f"has {size:,} bytes, more"
    return f"{shown} {has} than the {limit:,} that are read at most"
