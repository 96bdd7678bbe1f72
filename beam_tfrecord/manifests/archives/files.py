"""The inside of an archive as a file system, so that every other format can read what lies there."""

from __future__ import annotations

import bisect
import fnmatch
import io
import posixpath
import re
from collections.abc import Iterator
from functools import cached_property
from typing import BinaryIO

from beam_tfrecord.errors import ImageError
from beam_tfrecord.manifests.archives.index import ArchiveIndex, Listed
from beam_tfrecord.manifests.archives.members import UnpackedArchives, read_member
from beam_tfrecord.manifests.base import FileInfo, Files
from beam_tfrecord.manifests.text.uri_text import scheme_of, with_slash, without_slash


class RangedFiles:
    """Ranges of files, for a file system that can only open them."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def open(self, uri: str) -> BinaryIO:
        """The file opened for reading."""
        return self._files.open(uri)

    def read_range(self, uri: str, start: int, length: int) -> bytes:
        """``length`` bytes from ``start``; fewer where the file ends before."""
        with self._files.open(uri) as stream:
            stream.seek(start)
            return stream.read(length)


class ArchiveFiles:
    """Files of an archive below ``archive.zip!/``; all other uris are those of the file system around it."""

    def __init__(self, files: Files, index: ArchiveIndex, unpacked: UnpackedArchives) -> None:
        self.root = f"{index.uri}!"
        self._files = files
        self._index = index
        self._unpacked = unpacked

    @cached_property
    def _paths(self) -> list[str]:
        return sorted(self._index.members)

    def path_of(self, uri: str) -> str | None:
        """The path inside of the archive, dots resolved; None for a uri outside of it."""
        if uri == self.root:
            return ""
        if not uri.startswith(self.root + "/"):
            return None
        path = posixpath.normpath(uri[len(self.root) + 1 :])
        return "" if path == "." else path

    def find(self, uri: str) -> Listed | None:
        """The member of a uri."""
        path = self.path_of(uri)
        return self._index.members.get(path) if path is not None else None

    def open(self, uri: str) -> BinaryIO:
        """The file, whole in memory."""
        if self.path_of(uri) is None:
            return self._files.open(uri)
        found = self.find(uri)
        if found is None or found.member is None:
            raise FileNotFoundError(f"{uri} does not exist")
        try:
            return io.BytesIO(read_member(RangedFiles(self._files), found.member, unpacked=self._unpacked))
        except ImageError as error:
            raise OSError(error.message) from None

    def size(self, uri: str) -> int:
        """Size in bytes."""
        if self.path_of(uri) is None:
            return self._files.size(uri)
        found = self.find(uri)
        if found is None:
            raise FileNotFoundError(f"{uri} does not exist")
        return found.size

    def is_file(self, uri: str) -> bool:
        """Whether there is a file of this name."""
        return self.find(uri) is not None if self.path_of(uri) is not None else self._files.is_file(uri)

    def is_folder(self, uri: str) -> bool:
        """Whether there are files below this name."""
        path = self.path_of(uri)
        if path is None:
            return self._files.is_folder(uri)
        return not path or next(self._below(path), None) is not None

    def walk(self, uri: str) -> Iterator[FileInfo]:
        """All files below a folder, sorted by code point; of several with one name, each."""
        path = self.path_of(uri)
        if path is None:
            yield from self._files.walk(uri)
            return
        for name in self._below(path):
            for listed in (*self._index.replaced.get(name, ()), self._index.members[name]):
                yield FileInfo(f"{self.root}/{name}", listed.size)

    def _below(self, folder: str) -> Iterator[str]:
        prefix = f"{folder}/" if folder else ""
        for place in range(bisect.bisect_left(self._paths, prefix), len(self._paths)):
            if not self._paths[place].startswith(prefix):
                return
            yield self._paths[place]

    def match(self, pattern: str) -> list[FileInfo]:
        """The files that a glob matches; ``**`` crosses folders, ``*`` does not."""
        if not pattern.startswith(self.root + "/"):
            return self._files.match(pattern)
        parts = [part if part == "**" else fnmatch.translate(part) for part in pattern[len(self.root) + 1 :].split("/")]
        return [info for info in self.walk(self.root) if _fits(info.uri[len(self.root) + 1 :].split("/"), parts)]

    def list_folder(self, uri: str) -> list[str]:
        """Names of what lies directly in a folder; those of folders end in ``/``."""
        path = self.path_of(uri)
        if path is None:
            return self._files.list_folder(uri)
        start = len(path) + 1 if path else 0
        names = (name[start:].partition("/") for name in self._below(path))
        return sorted({first + slash for first, slash, _ in names})

    def join(self, base: str, path: str) -> str:
        """``path`` below the folder ``base``; an absolute path or a uri with a scheme stays as it is."""
        if self.path_of(base) is None or path.startswith("/") or scheme_of(path):
            return self._files.join(base, path)
        return with_slash(without_slash(base)) + path


def _fits(parts: list[str], pattern: list[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_fits(parts[skip:], pattern[1:]) for skip in range(len(parts) + 1))
    return bool(parts) and re.match(pattern[0], parts[0]) is not None and _fits(parts[1:], pattern[1:])
