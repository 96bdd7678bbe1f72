"""The names of labels that lie beside records of TensorFlow Datasets.

Source: tensorflow_datasets/core/features/{class_label_feature,features_dict,top_level_feature}.py, version 4.9.10.
``features.json`` tells which features are class labels; the names of each lie in ``<path>.labels.txt``, one per line,
blank lines passed over, the parts of a nested path joined with dashes and a slash within a part turned into a dot.
Before version 4 there was no ``features.json``: then the names of the files are all that tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from beam_tfrecord.datasets.tfds_info import read_json
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.storage import Storage

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
