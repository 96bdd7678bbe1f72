"""Records of different inputs with one id, or with the same image: found while they are copied, and warned of.

What one input has twice it has told of itself, in the warnings that are carried over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.conversion.writing.staging import read_lines
from beam_tfrecord.core.elements import Finding
from beam_tfrecord.datasets.record_view import RecordView, view_record
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.storage import Storage

STAGE = "merge"
_DIGITS = 16
NONE = "-" * _DIGITS  # of a record without an id, or without an image


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells a record apart.

    source: number of its input. id_hash, content: sixteen hex digits, or NONE. place: file and record it comes from.
    """

    source: int
    id_hash: str
    content: str
    place: str
    id: str

    def line(self) -> str:
        """A line of the items sidecar."""
        id = self.id.replace("\t", " ").replace("\n", " ")
        return f"{self.id_hash}\t{self.content}\t{self.source}\t{self.place}\t{id}\n"


def identity_of(data: bytes, keys: Mapping[str, str], source: int, place: str) -> Identity:
    """The identity of a serialized record. keys: logical name -> key of source_id and sha256, as far as there are."""
    try:
        view = view_record(data)
    except ValueError as error:
        raise DatasetError(f"{place} is no tf.train.Example: {error}") from None
    id = _single(view.features.get(keys.get("source_id", "")))
    hashes = _contents(view, keys.get("sha256", ""))
    return Identity(
        source,
        _hash(id) if id is not None else NONE,
        _hash(b"".join(hashes)) if hashes else NONE,
        place,
        id.decode("utf-8", "backslashreplace") if id is not None else "",
    )


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGITS]


def _single(feature: Feature | None) -> bytes | None:
    return feature.values[0] if feature is not None and len(feature.values) == 1 and feature.dtype == "bytes" else None


def _contents(view: RecordView, key: str) -> list[bytes]:
    features = [view.features.get(key), *view.steps.get(key, ())]
    return [value for feature in features if feature is not None for value in feature.values]


# ---------------------------------------------------------------------------------------------------------------------
# All shards together


def find_repeats(shards: Sequence[tuple[str, str]], names: Sequence[str], storage: Storage) -> list[Finding]:
    """Warnings about records of which another input has one with the same id or image, in the order of the shards.

    ``duplicate_id`` for the id; ``split_leak`` for an image that is in another split, ``duplicate_content`` for one
    that is in the same split under another id. shards: (split, uri of the items sidecar). names: of the sources.
    Memory: some 16 bytes for each record.
    """
    ids = _repeated(0, shards, storage)
    contents = _repeated(1, shards, storage)
    if not ids and not contents:
        return []
    first_ids: dict[str, tuple[str, Identity]] = {}
    first_contents: dict[str, tuple[str, Identity]] = {}
    findings = []
    for split, uri in shards:
        for own in _identities(uri, storage):
            if own.id_hash in ids:
                there, other = first_ids.setdefault(own.id_hash, (split, own))
                if other.source != own.source:
                    findings.append(_finding(own, "duplicate_id", split, there, other, "id", names))
            if own.content in contents:
                there, other = first_contents.setdefault(own.content, (split, own))
                if other.source != own.source and (split != there or own.id != other.id):
                    code = "duplicate_content" if split == there else "split_leak"
                    findings.append(_finding(own, code, split, there, other, "image", names))
    return findings


def _finding(
    own: Identity, code: str, split: str, there: str, other: Identity, what: str, names: Sequence[str]
) -> Finding:
    where = f"{other.place} of {names[other.source]}" + (f" in split {there}" if there != split else "")
    return Finding(
        f"{names[own.source]}: {own.place}", own.id, STAGE, code, f"in split {split}: the same {what} as {where}"
    )


def _repeated(column: int, shards: Iterable[tuple[str, str]], storage: Storage) -> set[str]:
    """The hashes of a column that occur more than once."""
    parts = [np.fromiter(_hashes(column, uri, storage), np.uint64) for _, uri in shards]
    values: npt.NDArray[np.uint64] = np.sort(np.concatenate(parts)) if parts else np.zeros(0, np.uint64)
    return {f"{value:0{_DIGITS}x}" for value in np.unique(values[1:][values[1:] == values[:-1]]).tolist()}


def _hashes(column: int, uri: str, storage: Storage) -> Iterator[int]:
    none = NONE.encode()
    for line in read_lines(storage, uri):
        text = line[column * (_DIGITS + 1) : column * (_DIGITS + 1) + _DIGITS]
        if text != none:
            yield int(text, 16)


def _identities(uri: str, storage: Storage) -> Iterator[Identity]:
    for line in read_lines(storage, uri):
        id_hash, content, source, place, id = line.decode("utf-8", "surrogateescape").split("\t")
        yield Identity(int(source), id_hash, content, place, id)
