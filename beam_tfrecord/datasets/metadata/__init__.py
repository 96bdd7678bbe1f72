"""The files that tell what a finished dataset holds, made from its description."""

from __future__ import annotations

from beam_tfrecord.datasets.metadata.conversion import conversion_file, library_versions, parse_spec, specs_from_json
from beam_tfrecord.datasets.metadata.description import DatasetDescription, PublishedShard
from beam_tfrecord.datasets.metadata.findings import finding_line, read_finding_lines
from beam_tfrecord.datasets.metadata.labels import dense_names, label_map_file, labels_file
from beam_tfrecord.datasets.metadata.text import json_line
from beam_tfrecord.datasets.metadata.tfds import dataset_info_file, tfds_feature_files, tfds_name, tfds_notes

CONVERSION = "conversion.json"
DATASET_INFO = "dataset_info.json"
STATISTICS = "statistics.json"


def dataset_files(description: DatasetDescription) -> dict[str, bytes]:
    """All metadata files by name, but for the lines about rejects and warnings.

    The label files are there when there are labels, the statistics when they were taken.
    """
    files = {
        DATASET_INFO: dataset_info_file(description),
        **tfds_feature_files(description.specs, description.schema),
    }
    vocabulary = description.schema.vocabulary
    if vocabulary.names:
        files["labels.txt"] = labels_file(vocabulary)
        files["label_map.pbtxt"] = label_map_file(vocabulary)
    if description.statistics:
        files[STATISTICS] = json_line(description.statistics).encode()
    return {CONVERSION: conversion_file(description, [CONVERSION, *files]), **files}


__all__ = [
    "CONVERSION",
    "DATASET_INFO",
    "STATISTICS",
    "DatasetDescription",
    "PublishedShard",
    "conversion_file",
    "dataset_files",
    "dataset_info_file",
    "dense_names",
    "finding_line",
    "label_map_file",
    "labels_file",
    "library_versions",
    "parse_spec",
    "read_finding_lines",
    "specs_from_json",
    "tfds_feature_files",
    "tfds_name",
    "tfds_notes",
]
