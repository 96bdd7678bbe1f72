"""Files wherever they are. :class:`Storage` is what the rest of the project uses."""

from __future__ import annotations

from beam_tfrecord.storage.facade import Storage
from beam_tfrecord.storage.faults import MissingFileError, UnreadableFileError
from beam_tfrecord.storage.retry import RetryPolicy, StorageCounters
from beam_tfrecord.storage.stores import StorageOptions
from beam_tfrecord.storage.uris import (
    Glob,
    escape_glob,
    has_glob,
    is_absolute,
    join,
    name_of,
    parent,
    public_uri,
    scheme_of,
)

__all__ = [
    "Glob",
    "MissingFileError",
    "RetryPolicy",
    "Storage",
    "StorageCounters",
    "StorageOptions",
    "UnreadableFileError",
    "escape_glob",
    "has_glob",
    "is_absolute",
    "join",
    "name_of",
    "parent",
    "public_uri",
    "scheme_of",
]
