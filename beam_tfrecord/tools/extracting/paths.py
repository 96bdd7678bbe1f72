"""Where an extracted image goes: under the path that its record tells, wherever that is safe and its own.

Records are written by many workers that know nothing of one another. So all names are looked at first, as hashes; a
path that different images ask for (or that is a folder on the way to another) is given to none of them, and each goes
to a file that is called like its content.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

IMAGES = "images"
MASKS = "masks"
BY_CONTENT = f"{IMAGES}/by_content"
MAX_NAME_BYTES = 200  # of one part of a path: file systems take 255, and a temporary name is longer
MAX_PATH_BYTES = 700  # object stores take 1,024 with all that stands before
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_FOLDER = 1  # what stands for the content of a folder

Pairs = npt.NDArray[np.uint64]


def safe_path(filename: str) -> str | None:
    """The path below the output for an image's path, or None when no file may be called so.

    Absolute paths and uris, ``.`` and ``..``, control characters, backslashes, white space at an end, text that is no
    UTF-8, long names, and the folder of the files called by their content.
    """
    if not filename or _SCHEME.match(filename) or "\\" in filename or filename != filename.strip():
        return None
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in filename):
        return None
    parts = filename.split("/")
    if any(part in ("", ".", "..") or len(part.encode()) > MAX_NAME_BYTES for part in parts):
        return None
    path = f"{IMAGES}/{filename}"
    if len(path.encode()) > MAX_PATH_BYTES or folded(path).startswith(f"{BY_CONTENT}/") or folded(path) == BY_CONTENT:
        return None
    return path


def folded(path: str) -> str:
    """A path as file systems compare names that know neither case nor forms of one letter."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def path_by_content(data: bytes, suffix: str) -> str:
    """The path of an image that cannot have its own."""
    return f"{BY_CONTENT}/{hashlib.sha256(data).hexdigest()}{suffix}"


def mask_path(kind: str, data: bytes) -> str:
    """The path of a mask: ``masks/semantic/<sha256>.png``."""
    return f"{MASKS}/{kind}/{hashlib.sha256(data).hexdigest()}.png"


@dataclass
class WantedPaths:
    """The paths that the images of one file of records ask for, as pairs (hash of path, hash of content)."""

    _pairs: dict[int, int] = field(default_factory=dict)
    _further: list[tuple[int, int]] = field(default_factory=list)

    def add(self, path: str, data: bytes) -> None:
        """An image asks for a path."""
        self._put(_hash(path), int.from_bytes(hashlib.sha256(data).digest()[:8], "big") | 2)
        folder = path.rpartition("/")[0]
        while folder:
            hashed = _hash(folder)
            if self._pairs.get(hashed) == _FOLDER:
                break
            self._put(hashed, _FOLDER)
            folder = folder.rpartition("/")[0]

    def _put(self, path: int, content: int) -> None:
        if self._pairs.setdefault(path, content) != content:
            self._further.append((path, content))

    def to_bytes(self) -> bytes:
        """All pairs, as uint64."""
        return np.array([*self._pairs.items(), *self._further], np.uint64).tobytes()


def _hash(path: str) -> int:
    return int.from_bytes(hashlib.sha256(folded(path).encode()).digest()[:8], "big")


def clashing_paths(wanted: Iterable[bytes]) -> bytes:
    """The hashes of paths that different contents ask for, sorted, as uint64. Memory: some 50 bytes for each image."""
    pairs: Pairs = np.frombuffer(b"".join(wanted), np.uint64).reshape(-1, 2)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    same_path = pairs[1:, 0] == pairs[:-1, 0]
    return np.unique(pairs[1:, 0][same_path & (pairs[1:, 1] != pairs[:-1, 1])]).tobytes()


class ImagePaths:
    """Gives each image its path."""

    def __init__(self, clashes: bytes = b"") -> None:
        """clashes: what :func:`clashing_paths` found."""
        self._clashes: npt.NDArray[np.uint64] = np.frombuffer(clashes, np.uint64)

    def path_of(self, filename: str, data: bytes, suffix: str) -> str:
        """The path of an image below the output. suffix: of a name that is made up."""
        path = safe_path(filename)
        if path is None or self._is_clash(path):
            return path_by_content(data, suffix)
        return path

    def _is_clash(self, path: str) -> bool:
        if not len(self._clashes):
            return False
        wanted = np.uint64(_hash(path))
        place = int(np.searchsorted(self._clashes, wanted))
        return place < len(self._clashes) and bool(self._clashes[place] == wanted)
