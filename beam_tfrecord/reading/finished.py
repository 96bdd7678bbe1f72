"""A finished dataset that was found: its folder, and what its conversion.json states."""

from __future__ import annotations

import os
from dataclasses import dataclass

from beam_tfrecord.conversion import read_conversion
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.facts import DatasetFacts, facts_from
from beam_tfrecord.metadata import PublishedShard
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


def open_dataset(directory: str | os.PathLike[str], storage: Storage | None = None) -> FinishedDataset:
    """The dataset in a folder. Raises DatasetError when there is none or its conversion.json is damaged."""
    storage = storage or Storage()
    folder = os.fspath(directory)
    if not scheme_of(folder):
        folder = os.path.expanduser(folder)
    folder = folder.rstrip("/") or "/"
    if not scheme_of(folder) and not storage.is_folder(folder):
        raise DatasetError(f"there is no folder {folder}")
    return FinishedDataset(folder, facts_from(read_conversion(folder, storage)), storage)
