"""A finished dataset that was found: its folder, and what its conversion.json states."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.datasets.facts import DatasetFacts, facts_from
from beam_tfrecord.datasets.metadata import CONVERSION, STATISTICS, PublishedShard
from beam_tfrecord.datasets.published import read_conversion, read_object
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.options.places import parse_place
from beam_tfrecord.storage import Storage, scheme_of


@dataclass(frozen=True)
class FinishedDataset:
    """folder: path or uri, without a slash at its end."""

    folder: str
    facts: DatasetFacts
    storage: Storage

    def uri(self, shard: PublishedShard) -> str:
        """Where a shard lies."""
        return f"{self.folder}/{shard.file}"

    def channels(self) -> dict[str, Any]:
        """What statistics.json tells of the channels of stored images; empty when it tells nothing."""
        return self._statistics("channels")

    def image_size(self) -> tuple[int | None, int | None]:
        """(height, width) that all stored images have in common, as statistics.json tells; None for what differs."""
        images = self._statistics("images")
        height, width = (_common(images.get(side)) for side in ("height", "width"))
        return height, width

    def _statistics(self, name: str) -> dict[str, Any]:
        """A part of statistics.json; empty where there is none. Raises DatasetError for one that is damaged."""
        uri = f"{self.folder}/{STATISTICS}"
        told = read_object(uri, self.storage).get(name) if self.storage.is_file(uri) else None
        if not isinstance(told, dict | None):
            raise DatasetError(f"{STATISTICS} is damaged: {name} is no object")
        return told or {}


def _common(digest: Any) -> int | None:
    """The value that all of a digest have."""
    values = [digest.get(end) for end in ("least", "greatest")] if isinstance(digest, dict) else [None]
    return values[0] if isinstance(values[0], int) and len(set(values)) == 1 else None


def open_dataset(directory: str | os.PathLike[str], storage: Storage | None = None) -> FinishedDataset:
    """The dataset in a folder. Raises DatasetError when there is none or its conversion.json is damaged."""
    storage = storage or Storage()
    try:
        folder = parse_place(directory)
    except ValueError as error:
        raise DatasetError(f"{os.fspath(directory)}: {error}") from None
    folder = folder.rstrip("/") or "/"
    if not scheme_of(folder) and not storage.is_folder(folder):
        from beam_tfrecord.manifests import missing  # seldom needed, and reading shall start fast

        what = "is a file: name the folder of a dataset" if storage.is_file(folder) else missing(storage, folder)
        raise DatasetError(f"{folder}: {what}")
    if not storage.is_file(f"{folder}/{CONVERSION}"):
        below = [name.rstrip("/") for name in storage.list_folder(folder) if name.endswith("/")]
        found = [f"{folder}/{name}" for name in below if storage.is_file(f"{folder}/{name}/{CONVERSION}")]
        if found:
            several = f"{len(found)} datasets lie" if len(found) > 1 else "a dataset lies"
            raise DatasetError(f"{folder} is no finished dataset of this tool, but {several} below it: name {found[0]}")
    return FinishedDataset(folder, facts_from(read_conversion(folder, storage)), storage)
