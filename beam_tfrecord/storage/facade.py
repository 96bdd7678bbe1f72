"""The one door to all storage: which store a uri belongs to, and what its faults mean for an item."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import TYPE_CHECKING, Any, BinaryIO

from beam_tfrecord.core.elements import Member
from beam_tfrecord.errors import ImageError
from beam_tfrecord.manifests.base import FileInfo
from beam_tfrecord.manifests.text.spelling import Spelled, find_other
from beam_tfrecord.options.run_config import RunConfig
from beam_tfrecord.storage.faults import MissingFileError, UnreadableFileError
from beam_tfrecord.storage.local import LocalStore
from beam_tfrecord.storage.retry import StorageCounters
from beam_tfrecord.storage.stores import StorageOptions, Store
from beam_tfrecord.storage.uris import join, scheme_of

if TYPE_CHECKING:
    from beam_tfrecord.manifests.archives.members import UnpackedArchives


class Storage:
    """Reads and writes files wherever they are: local paths, ``gs://``, ``s3://``, ``az://``, ``https://`` (reading
    only), and every other scheme that an installed Beam file system knows.

    Made without any I/O, safe to use from many threads, and pickled as its options only; network clients are made when
    they are first needed and shared by all instances of a process. ``counters`` counts what was tried again. It is the
    :class:`~beam_tfrecord.manifests.base.Files` of the manifests.

    All names are literal (see :mod:`beam_tfrecord.storage.uris`). Besides what a method states, it raises
    StorageError when the place cannot be used at all (no credentials, no permission, a full disk), FileNotFoundError
    when there is no such file, and UnreadableFileError (an OSError) when there is one that cannot be read.
    """

    def __init__(self, options: StorageOptions | None = None) -> None:
        self.options = options or StorageOptions()
        self.counters = StorageCounters()
        self._lock = threading.Lock()
        self._local = LocalStore(self.options, self.counters)
        self._stores: dict[str, Store] = {"": self._local}
        self._archives: UnpackedArchives | None = None  # those of the process, held from the first use on

    @classmethod
    def for_run(cls, run: RunConfig) -> Storage:
        """The storage that the run options ask for."""
        width = max(run.read_threads or 0, StorageOptions.connections)
        return cls(StorageOptions(connections=width, gcs_user_project=run.gcs_user_project))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.options,)

    # Reading.

    def read(self, uri: str, member: Member | None = None, max_bytes: int | None = None) -> bytes:
        """All bytes of the file ``uri``, or of an archive member: one call, and one request where a network is between.

        max_bytes: a larger file is not read. Raises ImageError with ``missing_file`` (not there, or a folder) or
        ``read_failed``, or what the reading of an archive member raises; StorageError when the place cannot be used.
        """
        try:
            if member is not None:
                return self._read_member(member, max_bytes)
            if "://" not in uri:
                return self._local.read(uri, max_bytes)
            return self._store(uri).read(uri, max_bytes)
        except MissingFileError as error:
            raise ImageError("missing_file", str(error)) from None
        except UnreadableFileError as error:
            raise ImageError("read_failed", str(error)) from None

    def read_range(self, uri: str, start: int, length: int) -> bytes:
        """``length`` bytes from ``start`` in one request; fewer where the file ends before."""
        return self._store(uri).read_range(uri, start, length)

    def open(self, uri: str) -> BinaryIO:
        """The file opened for reading bytes; seekable. Remote files are read in ranges of some MiB."""
        return self._store(uri).open(uri)

    def size(self, uri: str) -> int:
        """Size of a file in bytes."""
        return self._store(uri).size(uri)

    def sizes(self, uris: Iterable[str]) -> dict[str, int]:
        """Sizes in bytes by uri, asked for many at a time. Files that are missing or cannot be read are left out."""
        return self._sizes(uris, self.size)

    def sizes_as_named(self, uris: Iterable[str]) -> dict[str, int]:
        """The same of files that may be there under another spelling (:meth:`find_other`); by the uris asked for."""

        def size(uri: str) -> int:
            try:
                return self.size(uri)
            except FileNotFoundError:
                found = self.find_other(uri)
                if found is None:
                    raise
                return self.size(found.uri)

        return self._sizes(uris, size)

    def _sizes(self, uris: Iterable[str], size: Callable[[str], int]) -> dict[str, int]:
        wanted = list(dict.fromkeys(uris))

        def one(uri: str) -> int | None:
            try:
                return size(uri)
            except (OSError, ImageError):
                return None

        if all(not scheme_of(uri) for uri in wanted):
            found = [one(uri) for uri in wanted]
        else:
            with ThreadPoolExecutor(self.options.connections) as pool:
                found = list(pool.map(one, wanted))
        return {uri: size for uri, size in zip(wanted, found, strict=True) if size is not None}

    def is_file(self, uri: str) -> bool:
        """Whether a file of exactly this name exists."""
        return self._store(uri).is_file(uri)

    def find_other(self, uri: str) -> Spelled | None:
        """A file that is not there under this name, under another spelling of it; None where there is none.

        Raises ImageError with ``missing_file`` where several could be meant.
        """

        def is_there(uri: str) -> bool:
            try:
                return self.is_file(uri)
            except OSError:
                return False

        return find_other(uri, is_there, is_image=True)

    def is_folder(self, uri: str) -> bool:
        """Whether a folder of exactly this name exists (for object stores: anything below ``uri/``)."""
        return self._store(uri).is_folder(uri)

    def walk(self, uri: str) -> Iterator[FileInfo]:
        """All files below a folder, sorted by code point of the uri; hidden and junk files included."""
        return self._store(uri).walk(uri)

    def match(self, pattern: str) -> list[FileInfo]:
        """The files that a :class:`~beam_tfrecord.storage.uris.Glob` matches, sorted by code point of the uri.

        A file whose name has a special character in it is not looked for first: ask :meth:`is_file` before.
        """
        return list(self._store(pattern).match(pattern))

    def list_folder(self, uri: str) -> list[str]:
        """Names (not uris) of what lies directly in a folder, sorted by code point; names of folders end in ``/``.

        Empty when there is no such folder.
        """
        return self._store(uri).list_folder(uri)

    def join(self, base: str, path: str) -> str:
        """``path`` below the folder ``base``; an absolute path or a uri with a scheme stays as it is."""
        return join(base, path)

    # Writing.

    def open_write(self, uri: str) -> BinaryIO:
        """A stream for a new file, the folders above it made; complete once it is closed.

        In an object store nothing shows before that, and nothing at all when a ``with`` block is left by an exception.
        """
        return self._store(uri).open_write(uri)

    def write_bytes(self, uri: str, data: bytes) -> None:
        """Write a whole file, the folders above it made. At any moment the name holds the old bytes or all the new."""
        self._store(uri).write_bytes(uri, data)

    def rename(self, old: str, new: str) -> None:
        """Move a file within one kind of storage, replacing what is at ``new``.

        Can be repeated: when ``old`` is gone and ``new`` is there, it was done before. Object stores copy, then delete.
        """
        if old != new:
            self._store(old).rename(old, new)

    def delete(self, uris: Iterable[str]) -> None:
        """Delete files. Those that are not there are no error."""
        for scheme, group in groupby(sorted(uris, key=scheme_of), key=scheme_of):
            members = list(group)
            self._store_of(scheme, members[0]).delete(members)

    def delete_tree(self, uri: str) -> None:
        """Delete a folder with everything in it. No error when it is not there."""
        self._store(uri).delete_tree(uri)

    def make_folder(self, uri: str) -> None:
        """Make a folder and those above it. Does nothing in an object store."""
        self._store(uri).make_folder(uri)

    # Small files that one writer at a time may have.

    def read_versioned(self, uri: str) -> tuple[bytes, str]:
        """A small file, and what tells this version of it from others."""
        return self._store(uri).read_versioned(uri)

    def write_if(self, uri: str, data: bytes, version: str | None) -> bool:
        """Write a small file only while it has this version, or is not there (None); whether it was written.

        ``data`` must never have been there before. Where it is one step see :meth:`keeps_conditions`.
        """
        return self._store(uri).write_if(uri, data, version)

    def keeps_conditions(self, uri: str, data: bytes) -> bool:
        """Whether :meth:`write_if` is one step where a file lies that is there. data: may be written, where it is
        not."""
        return self._store(uri).keeps_conditions(uri, data)

    def delete_if(self, uri: str, version: str) -> None:
        """Delete a small file while it has this version."""
        self._store(uri).delete_if(uri, version)

    def remove_empty_folder(self, uri: str) -> None:
        """Remove a folder that nothing lies in; does nothing in an object store."""
        self._store(uri).remove_empty_folder(uri)

    # Which store it is.

    def _store(self, uri: str) -> Store:
        return self._store_of(scheme_of(uri), uri)

    def _store_of(self, scheme: str, uri: str) -> Store:
        store = self._stores.get(scheme)
        if store is None:
            with self._lock:
                store = self._stores.get(scheme)
                if store is None:
                    store = self._stores[scheme] = _store_class(scheme)(self.options, self.counters)
        return store

    def _read_member(self, member: Member, max_bytes: int | None) -> bytes:
        from beam_tfrecord.manifests.archives.members import read_member, shared_archives

        if self._archives is None:
            self._archives = shared_archives()
        return read_member(self, member, max_bytes, self._archives)


def _store_class(scheme: str) -> Callable[..., Store]:
    """The store for a scheme; its module, and whatever client library that needs, is imported only now."""
    if scheme == "gs":
        from beam_tfrecord.storage.gcs import GcsStore

        return GcsStore
    if scheme == "s3":
        from beam_tfrecord.storage.s3 import S3Store

        return S3Store
    if scheme in ("az", "azfs"):
        from beam_tfrecord.storage.azure import AzureStore, BeamAzureStore

        return AzureStore if scheme == "az" else BeamAzureStore
    if scheme in ("http", "https"):
        from beam_tfrecord.storage.web import WebStore

        return WebStore
    from beam_tfrecord.storage.beam_fs import BeamStore

    return BeamStore
