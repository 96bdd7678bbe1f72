"""Configs, schemas and placements for tests of annotations, and TensorFlow's view of what they give."""

from __future__ import annotations

import io
import json
import pickle
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from beam_tfrecord.annotations import feature_keys, kinds_of
from beam_tfrecord.annotations.base import AnnotationKind, FeatureSpec, Placement, Schema, Vocabulary
from beam_tfrecord.core.account import Account, Decision, faults, merge_accounts
from beam_tfrecord.core.elements import Member, RejectedRow, Row
from beam_tfrecord.core.geometry import PixelFrame
from beam_tfrecord.manifests import FORMATS
from beam_tfrecord.manifests.base import ManifestFormat, Source
from beam_tfrecord.options.config import ConvertConfig, ManifestConfig
from beam_tfrecord.options.values import Column, InputSpec, parse_columns
from beam_tfrecord.tfrecord.example import encode_example
from tests.local_files import LocalFiles

Warnings = list[tuple[str, str]]
# What turns the raster of a file upright, by EXIF orientation (CIPA DC-008).
UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def make_config(**options: Any) -> ConvertConfig:
    return ConvertConfig.from_options({"input": "in", "output": "out", **options})


def make_schema(
    kinds: Sequence[str],
    labels: Sequence[str] = (),
    preset: str = "od",
    columns: str = "",
    offset: int | None = None,
    **options: Any,
) -> Schema:
    declared: tuple[Column, ...] = parse_columns(columns)
    return Schema(
        tuple(sorted(kinds)),
        Vocabulary(tuple(labels), int(preset == "od") if offset is None else offset),
        preset,
        feature_keys(preset, columns=declared),
        declared,
        **options,
    )


def still(width: int, height: int) -> PixelFrame:
    """The frame of an image that is stored as it is."""
    return PixelFrame(width, height, width, height)


def turned(orientation: int, width: int, height: int) -> PixelFrame:
    """The frame of a raster of (width, height) that is turned upright."""
    size = (height, width) if orientation >= 5 else (width, height)
    return PixelFrame(width, height, *size, orientation=orientation)


def nearest(array: Any, frame: PixelFrame) -> Any:
    """place_mask by Pillow, for frames that turn and scale without cropping."""
    image = Image.fromarray(array)
    if frame.orientation != 1:
        image = image.transpose(UPRIGHT[frame.orientation])
    return np.asarray(image.resize((frame.width, frame.height), Image.Resampling.NEAREST))


def make_placement(
    frame: PixelFrame,
    warnings: Warnings | None = None,
    files: Mapping[str, bytes] | None = None,
    size: tuple[int, int] | None = None,
    is_upright: bool = False,
    is_ambiguous: bool = False,
    **options: Any,
) -> Placement:
    noted: Warnings = [] if warnings is None else warnings

    def read(uri: str, member: Member | None) -> bytes:
        return (files or {})[uri]

    return Placement(
        frame,
        make_config(**options),
        read,
        lambda code, message: noted.append((code, message)),
        size,
        is_upright,
        is_ambiguous,
        nearest,
    )


def parse(
    kind: AnnotationKind[Any], fields: Mapping[str, Any], warnings: Warnings | None = None, **options: Any
) -> Any:
    noted: Warnings = [] if warnings is None else warnings
    return kind.parse(fields, make_config(**options), lambda code, message: noted.append((code, message)))


def reference_mask(code: Any, height: int, width: int) -> Any:
    """The mask of polygons, or of a run-length code, by the COCO API."""
    from pycocotools import mask as coco

    runs = coco.frPyObjects(code, height, width)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of numpy about pycocotools
        return coco.decode(coco.merge(runs) if isinstance(runs, list) else runs)


def png(array: Any, mode: str | None = None) -> bytes:
    image = Image.fromarray(np.asarray(array), mode) if mode else Image.fromarray(np.asarray(array))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def pixels(data: bytes) -> Any:
    """What TensorFlow decodes from a PNG, the channel axis of grey images taken off."""
    import tensorflow as tf

    array = tf.io.decode_png(data).numpy()
    return array[..., 0] if array.shape[2] == 1 else array


def tf_features(specs: Sequence[FeatureSpec]) -> dict[str, Any]:
    """A parse spec for tf.io from the types that are stated."""
    import tensorflow as tf

    dtypes = {"int64": tf.int64, "float": tf.float32, "bytes": tf.string}
    found: dict[str, Any] = {}
    for spec in specs:
        dtype = dtypes[spec.dtype]
        found[spec.key] = tf.io.RaggedFeature(dtype) if None in spec.shape else tf.io.FixedLenFeature(spec.shape, dtype)
    return found


def through_tensorflow(annotations: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """The values that TensorFlow parses from the record of some annotations with the spec that is stated for it."""
    import tensorflow as tf

    features: dict[str, Any] = {}
    specs: list[FeatureSpec] = []
    for kind in kinds_of(schema):
        features.update(kind.features(annotations.get(kind.name), schema))
        specs.extend(kind.spec(schema))
    assert sorted(features) == sorted(spec.key for spec in specs)
    assert {key: feature.dtype for key, feature in features.items()} == {spec.key: spec.dtype for spec in specs}
    parsed = tf.io.parse_single_example(encode_example(features), tf_features(specs))
    return {key: np.asarray(value.numpy()).tolist() for key, value in parsed.items()}


def read_items(
    manifest: ManifestFormat, uri: str | Path, split: str | None = None, **options: Any
) -> tuple[Source, list[Any]]:
    """What a format finds out about a source, and all its items, piece by piece."""
    files = LocalFiles()
    config = ManifestConfig(input=(InputSpec(str(uri)),), **options)
    source = manifest.describe(files, str(uri), split, config)
    source = pickle.loads(pickle.dumps(source))
    manifest = FORMATS[source.format]  # a folder may turn out to be of another format
    items = [item for piece in manifest.pieces(files, source) for item in manifest.rows(files, piece, config)]
    accounts = [item for item in items if isinstance(item, Account)]
    assert faults(merge_accounts([source.account, *accounts])) == []
    return source, [item for item in items if not isinstance(item, (Account, Decision))]


def account_of(manifest: ManifestFormat, uri: str | Path, **options: Any) -> Account:
    """What a format tells of all that lies in a source."""
    files = LocalFiles()
    config = ManifestConfig(input=(InputSpec(str(uri)),), **options)
    source = manifest.describe(files, str(uri), None, config)
    manifest = FORMATS[source.format]
    items = [item for piece in manifest.pieces(files, source) for item in manifest.rows(files, piece, config)]
    return merge_accounts([source.account, *(item for item in items if isinstance(item, Account))])


def fields_by_image(items: list[Any]) -> dict[str, Mapping[str, Any]]:
    return {item.fields["image"]: item.fields for item in items if isinstance(item, Row)}


def rejects(items: list[Any]) -> list[tuple[str, str]]:
    """(code, message) of the rejects."""
    return [(item.finding.code, item.finding.message) for item in items if isinstance(item, RejectedRow)]


def write(path: Path, data: str | bytes | dict[str, Any]) -> Path:
    """A file with text, bytes or JSON, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(data) if isinstance(data, dict) else data
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def zipped(folder: Path) -> Path:
    """The files of a folder as an archive beside it, each called as it is from there."""
    place = folder.with_suffix(".zip")
    with zipfile.ZipFile(place, "w") as archive:
        for path in sorted(folder.rglob("*.*")):
            archive.write(path, path.relative_to(folder))
    return place
