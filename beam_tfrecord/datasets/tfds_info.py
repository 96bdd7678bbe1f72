"""What TensorFlow Datasets writes beside records: dataset_info.json, and below it the names of labels.

Source: tensorflow_datasets/core/proto/dataset_info.proto and core/utils/shard_utils.py, version 4.9.10. Numbers are
written as text (the JSON form of int64). Without a template, files are called
``{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
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


# ---------------------------------------------------------------------------------------------------------------------
# The names of labels that lie beside records of TensorFlow Datasets.
#
# Source: tensorflow_datasets/core/features/{class_label_feature,features_dict,top_level_feature}.py, version 4.9.10.
# ``features.json`` tells which features are class labels; the names of each lie in ``<path>.labels.txt``, one per line,
# blank lines passed over, the parts of a nested path joined with dashes and a slash within a part turned into a dot.
# Before version 4 there was no ``features.json``: then the names of the files are all that tells.


FEATURES = "features.json"
SUFFIX = ".labels.txt"

# Key of a feature -> the names of its ids, from 0.
LabelNames = Mapping[str, tuple[str, ...]]


def read_label_names(folder: str, storage: Storage) -> tuple[dict[str, tuple[str, ...]], list[tuple[str, str]]]:
    """(names by key, troubles) of a folder; troubles are (file, what is wrong with it)."""
    files = [name for name in storage.list_folder(folder) if name.endswith(SUFFIX)]
    uri = f"{folder}/{FEATURES}"
    stems: list[tuple[str, str, int | None]] = []
    troubles = []
    if storage.is_file(uri):
        try:
            stems = [("/".join(path), tfds_stem(path), count) for path, count in class_labels(read_json(uri, storage))]
        except (DatasetError, TypeError, ValueError, AttributeError, KeyError) as error:
            troubles.append((FEATURES, f"it is damaged: {error}"))
    told = {stem for _, stem, _ in stems}
    for name in files:
        stem = name.removesuffix(SUFFIX)
        if stem not in told and name != "labels.txt":
            stems += [(key, stem, None) for key in sorted({stem, stem.replace("-", "/").replace(".", "/")})]
    names = {}
    for key, stem, count in stems:
        file = f"{stem}{SUFFIX}"
        if file not in files:
            continue  # numbers without names
        try:
            with storage.open(f"{folder}/{file}") as stream:
                text = stream.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            troubles.append((file, f"it is no UTF-8 text (byte {error.start})"))
            continue
        names[key] = tuple(line.strip() for line in text.split("\n") if line.strip())
        if count is not None and len(names[key]) != count:
            troubles.append((file, f"it has {len(names[key])} names, but {FEATURES} states {count} classes"))
    return names, troubles


def class_labels(feature: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int]]:
    """(path, number of classes) of every class label in a parsed features.json that has a number of classes."""
    if "classLabel" in feature:
        number = int(feature["classLabel"].get("numClasses") or 0)
        if number:
            yield path, number
    for name, inner in (feature.get("featuresDict") or {}).get("features", {}).items():
        yield from class_labels(inner, (*path, name))
    if "sequence" in feature:
        yield from class_labels(feature["sequence"]["feature"], path)


def tfds_stem(path: tuple[str, ...]) -> str:
    """What the file of names of a feature is called, without its ending."""
    return "-".join(part.replace("/", ".") for part in path)
