"""conversion.json: what a conversion read, wrote and rejected, how, and how to parse it.

Besides the counts it has ``message`` (``Example`` or ``SequenceExample``), ``features`` (what each feature is, as in
:class:`~beam_tfrecord.annotations.base.FeatureSpec`) and ``parse_spec``, from which the arguments of
``tf.io.parse_single_example`` or ``tf.io.parse_single_sequence_example`` are made:

=============  ==============================================================================================
``kind``       in an Example, or in the context of a SequenceExample
=============  ==============================================================================================
``fixed``      ``tf.io.FixedLenFeature(shape, dtype)``
``varlen``     ``tf.io.VarLenFeature(dtype)``
``sequence``   ``tf.io.FixedLenSequenceFeature(shape, dtype, allow_missing=True)``: rows of ``shape``
=============  ==============================================================================================

An entry with ``"feature_list": true`` belongs to the feature lists of a SequenceExample, where ``sequence`` is a value
of ``shape`` for each step (``tf.io.FixedLenSequenceFeature(shape, dtype)``) and ``varlen`` any number of them. dtype is
``int64``, ``float32`` or ``string``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.metadata
import platform
from collections.abc import Iterable, Mapping
from typing import Any

from beam_tfrecord._version import __version__
from beam_tfrecord.annotations.base import FeatureSpec
from beam_tfrecord.datasets.metadata.description import DatasetDescription
from beam_tfrecord.datasets.metadata.text import json_file
from beam_tfrecord.datasets.metadata.tfds import tfds_notes

FORMAT_VERSION = 1
# The packages that decide bytes or could be to blame.
PACKAGES = ("apache-beam", "google-crc32c", "numpy", "pillow", "protobuf", "simplejpeg")

_DTYPES = {"int64": "int64", "float": "float32", "bytes": "string"}
_TEXTS = dict.fromkeys(("dtype", "role", "description", "pixel_dtype"), str)
_SPEC_KINDS: Mapping[str, Any] = {
    **_TEXTS,
    "shape": list,
    "in_sequence": bool,
    "channels": int | None,
    "encoding": str | None,
}


def conversion_file(description: DatasetDescription, files: Iterable[str] = ()) -> bytes:
    """conversion.json. files: names of the other metadata files beside it."""
    vocabulary = description.schema.vocabulary
    order = {name: place for place, name in enumerate(vocabulary.names)}
    has_own_ids = vocabulary.ids != tuple(range(vocabulary.offset, vocabulary.offset + len(vocabulary)))
    conversion: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "name": description.name,
        "status": description.status,
        "rows": description.rows,
        "source_rows": description.source_rows,
        "rows_by_input": dict(description.rows_by_input),
        "inputs": [dict(told) for told in description.inputs],
        "written": description.written,
        "ignored": description.ignored,
        "rejected": {"total": sum(description.rejected.values()), "by_code": _sorted(description.rejected)},
        "excluded": {
            "total": sum(description.excluded.values()),
            "by_option": _sorted(description.excluded),
            "unmatched": list(description.unmatched),
        },
        **({"objects": _sorted(description.objects)} if description.objects else {}),
        "changed": _sorted(description.changed),
        "warnings": _sorted(description.warnings),
        "image_formats": _sorted(description.formats),
        "compression": description.compression,
        "splits": {
            split: {
                "records": sum(shard.records for shard in shards),
                "bytes": sum(shard.bytes for shard in shards),
                "shards": [dataclasses.asdict(shard) for shard in shards],
            }
            for split, shards in sorted(description.splits.items())
        },
        **({"staged": dict(description.staged)} if description.staged else {}),
        "labels": list(vocabulary.names),
        "label_offset": vocabulary.offset,
        **({"label_ids": list(vocabulary.ids)} if has_own_ids else {}),
        **_category_ids(description),
        "classes": {
            split: dict(sorted(counts.items(), key=lambda item: order.get(item[0], -1)))
            for split, counts in sorted(description.classes.items())
        },
        "keys": description.schema.preset,
        "message": "SequenceExample" if description.schema.is_sequence else "Example",
        "features": {spec.key: _spec_to_json(spec) for spec in description.specs},
        "parse_spec": parse_spec(description.specs),
        "tfds_notes": tfds_notes(description),
        "files": sorted(files),
        "options": dict(description.options),
        "versions": library_versions(),
    }
    return json_file(conversion)


def _category_ids(description: DatasetDescription) -> dict[str, dict[str, int]]:
    """The ids that the inputs themselves give to the labels, by name, where any does (COCO, YOLO)."""
    given = {name: number for told in description.inputs for name, number in told.get("category_ids", {}).items()}
    return (
        {"category_ids": {name: given[name] for name in description.schema.vocabulary.names if name in given}}
        if given
        else {}
    )


def parse_spec(specs: Iterable[FeatureSpec]) -> dict[str, dict[str, Any]]:
    """Key -> ``{"kind", "dtype", "shape"}`` for every feature; see the module's docstring."""
    return {spec.key: _parse_entry(spec) for spec in specs}


def _parse_entry(spec: FeatureSpec) -> dict[str, Any]:
    dtype = _DTYPES[spec.dtype]
    known = [size for size in spec.shape if size is not None]
    if spec.in_sequence:
        kind, shape = ("varlen", []) if None in spec.shape else ("sequence", known)
        return {"kind": kind, "dtype": dtype, "shape": shape, "feature_list": True}
    if None not in spec.shape:
        return {"kind": "fixed", "dtype": dtype, "shape": known}
    if spec.shape[0] is None and len(known) == len(spec.shape) - 1 and known:
        return {"kind": "sequence", "dtype": dtype, "shape": known}
    return {"kind": "varlen", "dtype": dtype, "shape": []}


def specs_from_json(features: Mapping[str, Mapping[str, Any]]) -> tuple[FeatureSpec, ...]:
    """The specs that ``features`` of a conversion.json tells of; fields that are not known here are passed over.

    Raises AttributeError, KeyError, TypeError or ValueError for what :func:`conversion_file` cannot have written.
    """
    specs = []
    for key, fields in features.items():
        values = {name: value for name, value in fields.items() if name in _SPEC_KINDS}
        for name, value in values.items():
            if not isinstance(value, _SPEC_KINDS[name]):
                raise ValueError(f"{name} of the feature {key} is {value!r}")
        if fields["dtype"] not in _DTYPES or not all(size is None or isinstance(size, int) for size in fields["shape"]):
            raise ValueError(f"the feature {key} is of the type {fields['dtype']!r} and the shape {fields['shape']!r}")
        specs.append(FeatureSpec(**{**values, "key": key, "shape": tuple(fields["shape"])}))
    return tuple(specs)


def _spec_to_json(spec: FeatureSpec) -> dict[str, Any]:
    """dtype and shape always, the rest where it says more than the default."""
    told = {}
    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        if field.name in ("dtype", "shape", "role") or (field.name != "key" and value != field.default):
            told[field.name] = list(value) if field.name == "shape" else value
    return told


def library_versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide bytes, as far as they are installed."""
    return dict(_library_versions())


@functools.cache  # the metadata of a package is a text of a hundred kilobytes, parsed at each question
def _library_versions() -> tuple[tuple[str, str], ...]:
    versions = [("beam_tfrecord", __version__), ("python", platform.python_version())]
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions.append((package, importlib.metadata.version(package)))
    return tuple(versions)


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))
