"""The files of a finished dataset: their names, and the reading of conversion.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, BinaryIO, Protocol

from beam_tfrecord.datasets.metadata import CONVERSION, DATASET_INFO
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.storage.uris import public_uri

REJECTS_FILE = "rejects.jsonl"
WARNINGS_FILE = "warnings.jsonl"
REPORT = "report.html"
PUBLISHED, WITHHELD, EMPTY = "published", "withheld", "empty"  # how a conversion ended


class FilesToRead(Protocol):
    """What reading metadata needs of :class:`beam_tfrecord.storage.Storage`."""

    def open(self, uri: str) -> BinaryIO: ...
    def is_file(self, uri: str) -> bool: ...


def read_conversion(folder: str, storage: FilesToRead) -> dict[str, Any]:
    """The conversion.json of a folder. Raises DatasetError when there is none or it is damaged."""
    uri = f"{folder}/{CONVERSION}"
    if not storage.is_file(uri):
        raise DatasetError(f"{folder} holds no {CONVERSION}: it is no finished dataset of this tool")
    return read_object(uri, storage)


def check_complete(folder: str, conversion: Mapping[str, Any], storage: FilesToRead) -> None:
    """Raise DatasetError unless the publication of the dataset in a folder came to its end."""
    if conversion.get("status", PUBLISHED) != PUBLISHED or not storage.is_file(f"{folder}/{DATASET_INFO}"):
        raise DatasetError(
            f"{public_uri(folder)} is not complete: it has a {CONVERSION} but no {DATASET_INFO}, which comes last; run "
            "what made it again"
        )


def read_object(uri: str, storage: FilesToRead) -> dict[str, Any]:
    """The JSON object in a file. Raises DatasetError when it holds something else."""
    with storage.open(uri) as file:
        try:
            values = json.load(file)
        except ValueError as error:
            raise DatasetError(f"{uri} is damaged: {error}") from None
    if not isinstance(values, dict):
        raise DatasetError(f"{uri} is damaged: it holds no JSON object")
    return values
