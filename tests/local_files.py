"""The file system as manifests see it, in the plainest way: for tests of manifests without the real storage."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from beam_tfrecord.manifests.base import FileInfo


class LocalFiles:
    """Files of this machine. Counts what is opened, so that tests can tell how often a source is read."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    def open(self, uri: str) -> BinaryIO:
        self.opened.append(uri)
        if not os.path.isfile(uri):
            raise FileNotFoundError(f"{uri} does not exist")
        return cast(BinaryIO, open(uri, "rb"))

    def size(self, uri: str) -> int:
        if not os.path.isfile(uri):
            raise FileNotFoundError(f"{uri} does not exist")
        return os.path.getsize(uri)

    def is_file(self, uri: str) -> bool:
        return os.path.isfile(uri)

    def is_folder(self, uri: str) -> bool:
        return os.path.isdir(uri or ".")

    def walk(self, uri: str) -> Iterator[FileInfo]:
        base = uri if uri.endswith("/") else uri + "/"
        found = [os.path.join(folder, name) for folder, _, names in os.walk(base) for name in names]
        yield from (FileInfo(path, os.path.getsize(path)) for path in sorted(found))

    def match(self, pattern: str) -> list[FileInfo]:
        head = pattern[: min((pattern.index(mark) for mark in "*?[" if mark in pattern), default=len(pattern))]
        base = head.rpartition("/")[0]
        infos = list(self.walk(base or "."))
        if not base:
            infos = [FileInfo(info.uri.removeprefix("./"), info.size) for info in infos]
        return [info for info in infos if _fits(info.uri.split("/"), pattern.split("/"))]

    def list_folder(self, uri: str) -> list[str]:
        folder = Path(uri or ".")
        if not folder.is_dir():
            return []
        return sorted(path.name + "/" * path.is_dir() for path in folder.iterdir())

    def join(self, base: str, path: str) -> str:
        return path if path.startswith("/") or "://" in path or not base else f"{base.rstrip('/')}/{path}"


def _fits(parts: list[str], pattern: list[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_fits(parts[skip:], pattern[1:]) for skip in range(len(parts) + 1))
    return bool(parts) and fnmatch.fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])
