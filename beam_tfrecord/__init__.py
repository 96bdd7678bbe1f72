"""Labelled images to TFRecords that are complete, reproducible, verified and self-describing.

The names of ``__all__`` are the public surface. Each is imported when it is first used, so that importing the package
costs nothing: neither Apache Beam nor TensorFlow is loaded for it.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from beam_tfrecord._version import __version__

if TYPE_CHECKING:
    from beam_tfrecord.annotations import register_kind
    from beam_tfrecord.annotations.base import AnnotationKind, Feature, FeatureSpec, Placement, Schema
    from beam_tfrecord.api import convert, prepare
    from beam_tfrecord.conversion.job import Job, plan_job
    from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan
    from beam_tfrecord.core.elements import Entry, Finding, Frame, RejectedRow, Row, ShardInfo
    from beam_tfrecord.errors import (
        AnnotationError,
        BeamTfrecordError,
        ConfigError,
        DatasetError,
        ElementError,
        ImageError,
        JobError,
        ManifestError,
        RowError,
        StorageError,
    )
    from beam_tfrecord.manifests import register_format
    from beam_tfrecord.manifests.base import Files, Ignored, ManifestFormat, Piece, Source
    from beam_tfrecord.options.config import ConvertConfig, ManifestConfig
    from beam_tfrecord.publishing.summary import Summary
    from beam_tfrecord.reading.loader import load
    from beam_tfrecord.reading.options import LoadOptions
    from beam_tfrecord.reading.reader import Reader, read
    from beam_tfrecord.transforms.dataset import ConvertDataset
    from beam_tfrecord.transforms.encoding import EncodeExamples
    from beam_tfrecord.transforms.reading import ReadManifest
    from beam_tfrecord.transforms.shards import WriteShards

_PLACES = {
    "AnnotationError": "errors",
    "AnnotationKind": "annotations.base",
    "BeamTfrecordError": "errors",
    "ConfigError": "errors",
    "ConvertConfig": "options.config",
    "ConvertDataset": "transforms.dataset",
    "DatasetError": "errors",
    "DatasetPlan": "conversion.planning.dataset_plan",
    "ElementError": "errors",
    "EncodeExamples": "transforms.encoding",
    "Entry": "core.elements",
    "Feature": "annotations.base",
    "FeatureSpec": "annotations.base",
    "Files": "manifests.base",
    "Finding": "core.elements",
    "Frame": "core.elements",
    "Ignored": "manifests.base",
    "ImageError": "errors",
    "Job": "conversion.job",
    "JobError": "errors",
    "LoadOptions": "reading.options",
    "ManifestConfig": "options.config",
    "ManifestError": "errors",
    "ManifestFormat": "manifests.base",
    "Piece": "manifests.base",
    "Placement": "annotations.base",
    "ReadManifest": "transforms.reading",
    "Reader": "reading.reader",
    "RejectedRow": "core.elements",
    "Row": "core.elements",
    "RowError": "errors",
    "Schema": "annotations.base",
    "ShardInfo": "core.elements",
    "Source": "manifests.base",
    "StorageError": "errors",
    "Summary": "publishing.summary",
    "WriteShards": "transforms.shards",
    "convert": "api",
    "load": "reading.loader",
    "plan_job": "conversion.job",
    "prepare": "api",
    "read": "reading.reader",
    "register_format": "manifests",
    "register_kind": "annotations",
}

__all__ = [
    "AnnotationError",
    "AnnotationKind",
    "BeamTfrecordError",
    "ConfigError",
    "ConvertConfig",
    "ConvertDataset",
    "DatasetError",
    "DatasetPlan",
    "ElementError",
    "EncodeExamples",
    "Entry",
    "Feature",
    "FeatureSpec",
    "Files",
    "Finding",
    "Frame",
    "Ignored",
    "ImageError",
    "Job",
    "JobError",
    "LoadOptions",
    "ManifestConfig",
    "ManifestError",
    "ManifestFormat",
    "Piece",
    "Placement",
    "ReadManifest",
    "Reader",
    "RejectedRow",
    "Row",
    "RowError",
    "Schema",
    "ShardInfo",
    "Source",
    "StorageError",
    "Summary",
    "WriteShards",
    "__version__",
    "convert",
    "load",
    "plan_job",
    "prepare",
    "read",
    "register_format",
    "register_kind",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        module = sys.modules[__name__]  # Python names the nearest of its public names
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=module)
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
