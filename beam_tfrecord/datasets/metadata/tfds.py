"""What TensorFlow Datasets needs: dataset_info.json, features.json and label files.

``tfds.builder_from_directory`` reads two protos in their JSON form, DatasetInfo and Feature
(tensorflow_datasets/core/proto/dataset_info.proto and feature.proto), and ``<feature>.labels.txt`` for class names. It
refuses fields that it does not know. What each kind of feature becomes was tried with version 4.9.10:

- An encoded image is an Image, decoded to its channels; when they differ from record to record (or are 2, which
  TensorFlow decodes but does not accept as a wish) the number is left open, and so must the encoding be.
- A label is a ClassLabel. Its ids start at 0, so ids that no label has get a name: with an offset of 1 the first one is
  ``background`` (see :func:`.labels.dense_names`). Labels are plain numbers when their ids are far apart, or when there
  is no vocabulary.
- Boxes are BBoxFeatures ([ymin, xmin, ymax, xmax], from 0 to 1). ``objects/...`` and ``segments/...`` become a Sequence
  of dicts, as in the COCO and VOC datasets: ``example["objects"]["bbox"]``. Other keys stay as they are, with slashes.
- Of a SequenceExample it sees the context only, since it reads every record as an Example.
- Compressed files it cannot read at all. The files are written nevertheless: they still describe the dataset.
- ArrayRecord files (``--array_record``) are an alternative format, found through ``{FILEFORMAT}`` in the template; the
  only format where the shards are compressed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from beam_tfrecord.annotations.base import FeatureSpec, Schema
from beam_tfrecord.datasets.metadata.description import DatasetDescription
from beam_tfrecord.datasets.metadata.labels import dense_names
from beam_tfrecord.datasets.metadata.text import json_file, utf8
from beam_tfrecord.tfrecord import SUFFIXES

VERSION = "1.0.0"
NESTED = ("objects", "segments")

_PACKAGE = "tensorflow_datasets.core.features"
_DTYPES = {"int64": "int64", "float": "float32", "bytes": "object"}

Json = dict[str, Any]


def tfds_name(name: str) -> str:
    """A valid name of a TFDS dataset (a letter, then letters, digits and ``_``) that resembles a name."""
    words = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return words if re.match("[a-z]", words) else f"dataset_{words}".rstrip("_")


def split_names(splits: Iterable[str]) -> dict[str, str]:
    """What TFDS calls each split: letters, digits, ``_`` and ``-``, and not ``all``, which means all of them."""
    splits = sorted(splits)
    names = {split: split for split in splits if split != "all" and re.fullmatch(r"[A-Za-z0-9_-]+", split)}
    for split in splits:
        if split not in names:
            name = re.sub(r"[^A-Za-z0-9_-]", "_", split)
            while name == "all" or name in names.values():
                name += "_"
            names[split] = name
    return names


def dataset_info_file(description: DatasetDescription) -> bytes:
    """dataset_info.json. ``numBytes`` is the sum of the records' lengths, without framing, as TFDS counts."""
    names = split_names(description.splits)
    is_readable = description.compression == "none"
    ending = f"-{{SHARD_X_OF_Y}}.tfrecord{SUFFIXES[description.compression]}"
    formats: Json = {"fileFormat": "tfrecord"}
    if description.has_array_record:
        ending = "-{SHARD_X_OF_Y}.{FILEFORMAT}"
        only = {"fileFormat": "array_record"}
        formats = {**formats, "alternativeFileFormats": ["array_record"]} if is_readable else only
    info: Json = {
        "name": tfds_name(description.name),
        "version": VERSION,
        "description": "Converted by beam_tfrecord; conversion.json tells how.",
        **formats,
        "splits": [
            {
                "name": names[split],
                "filepathTemplate": ("{SPLIT}" if names[split] == split else split) + ending,
                "shardLengths": [str(shard.records) for shard in shards],
                "numBytes": str(sum(shard.payload_bytes for shard in shards)),
            }
            for split, shards in sorted(description.splits.items())
            if shards
        ],
    }
    supervised = _supervised_keys(description)
    if supervised:
        info["supervisedKeys"] = {"tuple": {"items": [{"featureKey": key} for key in supervised]}}
    return json_file(info)


def tfds_feature_files(specs: Iterable[FeatureSpec], schema: Schema) -> dict[str, bytes]:
    """features.json and the label files, by name."""
    names = dense_names(schema.vocabulary)
    visible = [spec for spec in specs if not spec.in_sequence]
    nested = _nested_keys(visible)
    tree: dict[str, Any] = {}
    files = {}
    for spec in sorted(visible, key=lambda spec: spec.key):
        path = spec.key.split("/") if spec.key in nested else [spec.key]
        place = tree
        for part in path[:-1]:
            place = place.setdefault(part, {})
        inner = _inner_feature(spec, names)
        is_row = None in spec.shape and spec.key not in nested
        place[path[-1]] = _described(_sequence(inner) if is_row else inner, spec)
        if _is_class_label(spec, names):
            # A top-level key has its slashes turned into dots, the parts of a nested one are joined with dashes.
            stem = "-".join(path) if spec.key in nested else spec.key.replace("/", ".")
            files[f"{stem}.labels.txt"] = utf8("".join(f"{name}\n" for name in names or ()))
    features = {key: _sequence(_dict(value)) if _is_tree(value) else value for key, value in tree.items()}
    return {"features.json": json_file(_dict(features)), **files}


def tfds_notes(description: DatasetDescription) -> list[str]:
    """What TensorFlow Datasets does not get to see of a dataset; empty when it loads all of it."""
    notes = []
    if description.compression != "none":
        told = ", but the ArrayRecord files with tfds.data_source" if description.has_array_record else ""
        cure = "reshard with --compression none"
        notes.append(f"TensorFlow Datasets cannot read {description.compression}{told or f': {cure}'}")
    if description.schema.is_sequence:
        notes.append("TensorFlow Datasets reads the context of the SequenceExamples, but not their feature lists")
    for spec in description.specs:
        if None in spec.shape[1:]:
            notes.append(f"{spec.key}: TensorFlow Datasets gets the values of all rows in one list")
    for split, name in sorted(split_names(description.splits).items()):
        if name != split:
            notes.append(f"TensorFlow Datasets has no splits called {split}: it is {name} there")
    if description.schema.vocabulary.names and dense_names(description.schema.vocabulary) is None:
        notes.append("the ids of the labels are far apart: TensorFlow Datasets gets numbers without names")
    return notes


def _supervised_keys(description: DatasetDescription) -> list[str]:
    """(image, label) for ``as_supervised=True``, when every record has exactly one of each."""
    single = {spec.key: spec for spec in description.specs if spec.shape == () and not spec.in_sequence}
    keys = [description.schema.keys.get(name, "") for name in ("encoded", "label")]
    return keys if all(key in single for key in keys) else []


def _nested_keys(specs: Iterable[FeatureSpec]) -> set[str]:
    """Keys that lie in one of the NESTED dicts. All of a dict's features have one value, or more, for each object."""
    nested: set[str] = set()
    for prefix in NESTED:
        group = {spec.key: spec for spec in specs if spec.key.startswith(f"{prefix}/")}
        taken = {spec.key for spec in specs}
        parents = {"/".join(key.split("/")[:depth]) for key in group for depth in range(1, key.count("/") + 1)}
        is_list = all(spec.shape[:1] == (None,) for spec in group.values())
        if is_list and not parents & taken and all(all(key.split("/")) for key in group):
            nested |= group.keys()
    return nested


def _is_tree(value: Json) -> bool:
    return "pythonClassName" not in value


def _is_class_label(spec: FeatureSpec, names: tuple[str, ...] | None) -> bool:
    return spec.role == "label" and spec.dtype == "int64" and names is not None and len(spec.shape) <= 1


def _described(feature: Json, spec: FeatureSpec) -> Json:
    return {**feature, "description": spec.description} if spec.description else feature


def _inner_feature(spec: FeatureSpec, names: tuple[str, ...] | None) -> Json:
    """The Feature proto of one row of a spec, or of all of it when it is no list."""
    shape = _row_shape(spec)
    if spec.role == "image" and shape == ():
        return _image(spec)
    if _is_class_label(spec, names) and shape == ():
        return _made("class_label_feature.ClassLabel", classLabel={"numClasses": str(len(names or ()))})
    if spec.role == "bbox" and shape == (4,):
        box = {"shape": _shape(shape), "dtype": "float32", "bboxFormat": "REL_YXYX"}
        return _made("bounding_boxes.BBoxFeature", boundingBox=box)
    if spec.role == "text" and shape == ():
        return _made("text_feature.Text", text={})
    kind = "scalar.Scalar" if shape == () else "tensor_feature.Tensor"
    return _made(kind, tensor={"shape": _shape(shape), "dtype": _DTYPES[spec.dtype], "encoding": "none"})


def _row_shape(spec: FeatureSpec) -> tuple[int | None, ...]:
    """The shape of one row of a list, of all of it when it is none. Lists in lists are one list of single values."""
    if None not in spec.shape:
        return spec.shape
    return spec.shape[1:] if spec.shape[0] is None and None not in spec.shape[1:] else ()


def _image(spec: FeatureSpec) -> Json:
    is_open = spec.channels not in (1, 3, 4)
    image: Json = {"shape": _shape((None, None, None if is_open else spec.channels)), "dtype": spec.pixel_dtype}
    if spec.encoding and not is_open:
        image["encodingFormat"] = spec.encoding
    return _made("image_feature.Image", image=image)


def _sequence(feature: Json) -> Json:
    return _made("sequence_feature.Sequence", sequence={"feature": feature, "length": "-1"})


def _dict(features: Mapping[str, Any]) -> Json:
    made = {key: _dict(value) if _is_tree(value) else value for key, value in features.items()}
    return _made("features_dict.FeaturesDict", featuresDict={"features": made})


def _made(python_class: str, **content: Any) -> Json:
    return {"pythonClassName": f"{_PACKAGE}.{python_class}", **content}


def _shape(shape: tuple[int | None, ...]) -> Json:
    return {"dimensions": [str(-1 if size is None else size) for size in shape]} if shape else {}
