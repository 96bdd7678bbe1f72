"""Images with the same bytes under different ids, found from the hashes that the writers left."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from beam_tfrecord.conversion.writing.staging import read_lines, staged_of
from beam_tfrecord.core.elements import Finding, WrittenShard
from beam_tfrecord.publishing.final_names import side_by_side
from beam_tfrecord.storage import Storage

# ---------------------------------------------------------------------------------------------------------------------
# Hashes that occur more than once, in memory that does not grow with their number.


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


# ---------------------------------------------------------------------------------------------------------------------
# Copies of an image


STAGE = "publish"
HEX_DIGITS = 16


def find_copies(
    written: Sequence[WrittenShard], output: str, storage: Storage, in_memory: int = IN_MEMORY
) -> list[Finding]:
    """A warning for every record whose image occurred before: ``split_leak`` across splits, else ``duplicate_content``.

    Records of one id are copies on purpose (they are told as ``duplicate_id``) and give no warning here. Memory grows
    with the number of warnings, not of records: more than ``in_memory`` hashes wait in temporary files.
    """
    shards = [shard for shard in written if shard.num_records]
    hashes = side_by_side(
        lambda shard: np.fromiter(_hashes(shard, output, storage), np.uint64), shards, output, storage
    )
    if sum(shard.num_records for shard in shards) > in_memory:
        repeated = repeated_hashes(hashes, in_memory)
    else:
        known = list(hashes)
        repeated = repeated_hashes(known, in_memory)
        wanted = np.array(sorted(repeated), np.uint64)
        shards = [shard for shard, own in zip(shards, known, strict=True) if np.isin(own, wanted).any()]
    if not repeated:
        return []

    def copies_in(shard: WrittenShard) -> list[tuple[int, str, str]]:
        return [item for item in _items(shard, output, storage) if item[0] in repeated]

    first: dict[int, tuple[str, str, str]] = {}
    findings = []
    for shard, copies in zip(shards, side_by_side(copies_in, shards, output, storage), strict=True):
        for content, origin, uri in copies:
            split, other, other_uri = first.setdefault(content, (shard.split, origin, uri))
            if (origin, uri) == (other, other_uri) or (uri == other_uri and split == shard.split):
                continue
            code = "duplicate_content" if split == shard.split else "split_leak"
            where = f"{other_uri} ({other})" if split == shard.split else f"{other_uri} ({other}) in split {split}"
            message = f"in split {shard.split}: the same image as {where}"
            findings.append(Finding(origin, uri, STAGE, code, message, other=other_uri))
    return findings


def _hashes(shard: WrittenShard, output: str, storage: Storage) -> Iterator[int]:
    for line in read_lines(storage, staged_of(output, shard).items):
        if not line.startswith(b"\t"):
            yield int(line[:HEX_DIGITS], 16)


def _items(shard: WrittenShard, output: str, storage: Storage) -> Iterator[tuple[int, str, str]]:
    for line in read_lines(storage, staged_of(output, shard).items):
        content, origin, uri, *_ = line.decode("utf-8", "surrogateescape").split("\t")
        if content:
            yield int(content, 16), origin, uri
