"""dataset_info.json, as TensorFlow Datasets reads it: what it states of the files and their records.

Source: tensorflow_datasets/core/proto/dataset_info.proto and core/utils/shard_utils.py, version 4.9.10. Numbers are
written as text (the JSON form of int64). Without a template, files are called
``{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.datasets.metadata import DATASET_INFO
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.storage import Storage

_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"


@dataclass(frozen=True, slots=True)
class TfdsSplit:
    """What is stated of one split. files: names of the shards. lengths: their records. num_bytes: of all records."""

    files: tuple[str, ...]
    lengths: tuple[int, ...]
    num_bytes: int


@dataclass(frozen=True)
class TfdsInfo:
    """What is stated. file_format: ``tfrecord``, or another that is not looked at here."""

    splits: Mapping[str, TfdsSplit]
    file_format: str = "tfrecord"


def read_json(uri: str, storage: Storage) -> Any:
    """The value in a JSON file. Raises DatasetError when it is none; FileNotFoundError when there is no file."""
    with storage.open(uri) as file:
        try:
            return json.load(file)
        except ValueError as error:
            raise DatasetError(f"it is no JSON: {error}") from None


def read_tfds_info(folder: str, storage: Storage) -> TfdsInfo | None:
    """What the dataset_info.json of a folder states; None without one. Raises DatasetError when it is damaged."""
    uri = f"{folder}/{DATASET_INFO}"
    return parse_tfds_info(read_json(uri, storage)) if storage.is_file(uri) else None


def parse_tfds_info(info: Any) -> TfdsInfo:
    """What a parsed dataset_info.json states. Raises DatasetError when it lacks what TensorFlow Datasets needs."""
    try:
        name, _ = str(info["name"]), str(info["version"])
        file_format = str(info.get("fileFormat") or "tfrecord").lower()
        splits = {}
        for fields in info.get("splits") or ():
            split = str(fields["name"])
            lengths = tuple(int(length) for length in fields["shardLengths"])
            template = str(fields.get("filepathTemplate") or _TEMPLATE)
            files = tuple(
                _file_name(template, name, split, file_format, number, len(lengths)) for number in range(len(lengths))
            )
            splits[split] = TfdsSplit(files, lengths, int(fields.get("numBytes") or 0))
    except KeyError as error:
        raise DatasetError(f"it lacks {error}, without which TensorFlow Datasets does not load it") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise DatasetError(f"it is not as TensorFlow Datasets needs it: {error}") from None
    return TfdsInfo(splits, file_format)


def _file_name(template: str, name: str, split: str, file_format: str, number: int, count: int) -> str:
    words = {
        "DATASET": name,
        "SPLIT": split,
        "FILEFORMAT": file_format,
        "SHARD_INDEX": f"{number:05d}",
        "NUM_SHARDS": f"{count:05d}",
        "SHARD_X_OF_Y": f"{number:05d}-of-{count:05d}",
    }
    for word, text in words.items():
        template = template.replace("{" + word + "}", text)
    return template
