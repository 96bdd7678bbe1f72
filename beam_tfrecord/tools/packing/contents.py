"""Which files of a dataset go into an archive, in which order, how large each may be, and whether each is right."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.datasets.metadata import CONVERSION, DATASET_INFO, PublishedShard
from beam_tfrecord.datasets.metadata.shape import check_shape
from beam_tfrecord.datasets.published import REJECTS_FILE, REPORT, WARNINGS_FILE
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.tfrecord import FRAME_SIZE, INDEX_SUFFIX, array_record_name, parse_shard_name, read_index
from beam_tfrecord.tools.verifying.measured import MeasuredFile

# Bounds for what conversion.json states no size of: far above what such files have.
LARGEST_CONVERSION = 2**28
_LARGEST_METADATA = 2**28
_LARGEST_LINE = 2**16
_INDEX_LINE = 42  # two numbers of 64 bits, a space and a newline
_TWIN_OVERHEAD = 4096  # of an ArrayRecord file, for each record


@dataclass(frozen=True, slots=True)
class Content:
    """A file of a dataset.

    stated: what conversion.json says of a shard, None for other files. most: bytes that it can have. is_needed: whether
    the dataset is incomplete without it. index_of: the shard that an index file is of.
    """

    name: str
    most: int
    is_needed: bool
    stated: PublishedShard | None = None
    index_of: PublishedShard | None = None

    @property
    def is_checked_whole(self) -> bool:
        """Whether the whole file is looked at, in memory: JSON and index files."""
        return self.name.endswith(".json") or self.index_of is not None


def dataset_contents(facts: DatasetFacts) -> list[Content]:
    """All files that a dataset may have, in the order of an archive: conversion.json, the other metadata, the shards
    with what belongs to each, and ``dataset_info.json``, without which no reader takes a folder for a dataset.

    Raises DatasetError when conversion.json is damaged or names a file that cannot lie in the folder.
    """
    conversion = facts.conversion
    check_shape(conversion, CONVERSION)
    files = conversion.get("files", [])
    for name in files:
        check_name(name)
    findings = {
        REJECTS_FILE: sum(conversion["rejected"]["by_code"].values()),
        WARNINGS_FILE: sum(conversion["warnings"].values()),
    }
    metadata = {
        **{name: Content(name, _LARGEST_METADATA, True) for name in files},
        **{name: Content(name, 2**20 + _LARGEST_LINE * lines, bool(lines)) for name, lines in findings.items()},
        REPORT: Content(REPORT, _LARGEST_METADATA, False),
    }
    first = Content(CONVERSION, LARGEST_CONVERSION, True)
    last = Content(DATASET_INFO, _LARGEST_METADATA, True)
    middle = [metadata[name] for name in sorted(metadata) if name not in (CONVERSION, DATASET_INFO)]
    shards = sorted(facts.shards, key=lambda shard: shard.file)
    contents = [first, *middle, *(content for shard in shards for content in _of_shard(shard)), last]
    if len({content.name for content in contents}) < len(contents):
        raise DatasetError(f"{CONVERSION} is damaged: it names a file twice")
    return contents


def _of_shard(shard: PublishedShard) -> Iterable[Content]:
    check_name(shard.file)
    yield Content(shard.file, shard.bytes, True, shard)
    yield Content(shard.file + INDEX_SUFFIX, _INDEX_LINE * shard.records, False, index_of=shard)
    if parse_shard_name(shard.file) is not None:
        twin = 2**20 + 2 * shard.payload_bytes + _TWIN_OVERHEAD * shard.records
        yield Content(array_record_name(shard.file), twin, False)


def check_name(name: str) -> None:
    """Raise DatasetError for what is no plain name of a file in the folder of a dataset."""
    if name in ("", ".", "..") or name.startswith(".") or any(character in name for character in "/\\\0"):
        raise DatasetError(f"{name!r} is no name of a file of a dataset: names have no folders and no dot in front")


# ---------------------------------------------------------------------------------------------------------------------
# Whether the bytes of a file are what conversion.json states


def check_measured(name: str, file: MeasuredFile, stated: PublishedShard | None) -> None:
    """Raise DatasetError when all of a shard was read and it is not what is stated. name: for the message."""
    if stated is None:
        return
    if file.num_bytes != stated.bytes:
        raise DatasetError(f"{name} has {file.num_bytes:,} bytes, but conversion.json states {stated.bytes:,}")
    if f"{file.crc:08x}" != stated.crc32c:
        raise DatasetError(f"the crc32c of {name} is {file.crc:08x}, but conversion.json states {stated.crc32c}")


def check_content(name: str, data: bytes, content: Content) -> None:
    """Raise DatasetError when a file beside the shards is damaged, as far as it can be told: JSON is parsed, and an
    index has to fit its shard. name: for the message."""
    shard = content.index_of
    if shard is not None:
        places = read_index(data, name)
        if len(places) != shard.records or (
            places and sum(places[-1]) != shard.payload_bytes + FRAME_SIZE * shard.records
        ):
            raise DatasetError(f"{name} is not the index of {shard.file}: write it anew with beam-tfrecord index")
        return
    try:
        json.loads(data)
    except ValueError as error:
        raise DatasetError(f"{name} is damaged: {error}") from None
