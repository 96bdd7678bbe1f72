"""Hashes that occur more than once, in memory that does not grow with their number."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
IN_MEMORY = 4_000_000  # hashes of 8 bytes that are looked at together
_BUCKETS = 256  # by the highest byte, so a billion hashes make buckets of about that size


def repeated_hashes(arrays: Iterable[Hashes], in_memory: int = IN_MEMORY) -> set[int]:
    """The hashes that occur more than once in all arrays together.

    The hashes must be even: more than ``in_memory`` of them lie in temporary files (8 bytes each) by their highest byte
    until all are known, and one file at a time is looked at.
    """
    with contextlib.ExitStack() as stack:
        folder: Path | None = None
        pending: Hashes = np.empty(0, np.uint64)
        for pending in _gathered(arrays, in_memory):
            if len(pending) >= in_memory:
                folder = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hashes-")))
                _add_to_buckets(pending, folder)
                pending = np.empty(0, np.uint64)
        if folder is None:
            return _repeated(pending)
        _add_to_buckets(pending, folder)
        repeated: set[int] = set()
        for bucket in sorted(folder.iterdir()):
            repeated |= _repeated(np.fromfile(bucket, np.uint64))
        return repeated


def _gathered(arrays: Iterable[Hashes], size: int) -> Iterator[Hashes]:
    """The same hashes in arrays of at least ``size``, but for the last."""
    parts: list[Hashes] = []
    count = 0
    for array in arrays:
        parts.append(array)
        count += len(array)
        if count >= size:
            yield np.concatenate(parts)
            parts, count = [], 0
    if parts:
        yield np.concatenate(parts)


def _add_to_buckets(hashes: Hashes, folder: Path) -> None:
    hashes.sort()
    inner = np.arange(1, _BUCKETS, dtype=np.uint64) << np.uint64(56)
    for number, part in enumerate(np.split(hashes, np.searchsorted(hashes, inner))):
        if len(part):
            with (folder / f"{number:03d}").open("ab") as file:
                file.write(part.tobytes())


def _repeated(hashes: Hashes) -> set[int]:
    hashes.sort()
    return set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
