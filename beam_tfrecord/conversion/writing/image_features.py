"""What a record tells of each image, and the types of those features."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from beam_tfrecord.annotations.base import Feature, FeatureSpec, Schema
from beam_tfrecord.images.stored import StoredImage

ENCODED_NAMES = ("encoded", "format", "height", "width", "channels", "filename", "sha256")
RAW_NAMES = ("raw", "format", "height", "width", "channels", "shape", "dtype", "filename", "sha256")


# What each of them is made of. What many images share is made once for all of them.
_OWN_MAKERS: dict[str, Callable[[StoredImage, str, str], bytes]] = {
    "encoded": lambda image, filename, sha256: image.data,
    "raw": lambda image, filename, sha256: image.data,
    "filename": lambda image, filename, sha256: filename.encode("utf-8", "surrogateescape"),
    "sha256": lambda image, filename, sha256: sha256.encode(),
}
_SHARED_MAKERS: dict[str, Callable[[ImageKind], Feature]] = {
    "format": lambda kind: Feature("bytes", (kind.format.encode(),)),
    "height": lambda kind: Feature("int64", (kind.height,)),
    "width": lambda kind: Feature("int64", (kind.width,)),
    "channels": lambda kind: Feature("int64", (kind.channels,)),
    "shape": lambda kind: Feature("int64", (kind.height, kind.width, kind.channels)),
    "dtype": lambda kind: Feature("bytes", (kind.dtype.encode(),)),
}
_KINDS_KEPT = 1024


class ImageKind(NamedTuple):
    """What many stored images have in common."""

    format: str
    height: int
    width: int
    channels: int
    dtype: str


def image_feature_names(schema: Schema) -> tuple[str, ...]:
    """What is told of each image, by logical name; the preset may leave some of it out."""
    return tuple(name for name in (RAW_NAMES if schema.raw else ENCODED_NAMES) if name in schema.keys)


def shared_features(schema: Schema, kind: ImageKind) -> dict[str, Feature]:
    """The features, by key, that all images of a kind share."""
    names = image_feature_names(schema)
    return {schema.keys[name]: _SHARED_MAKERS[name](kind) for name in names if name in _SHARED_MAKERS}


class ImageFeatures:
    """Makes the features of stored images under one schema; what depends on the schema alone is looked up once."""

    def __init__(self, schema: Schema) -> None:
        names = image_feature_names(schema)
        self._schema = schema
        self._own = [(schema.keys[name], _OWN_MAKERS[name]) for name in names if name in _OWN_MAKERS]
        self._of_kind: dict[ImageKind, dict[str, Feature]] = {}

    def __call__(self, image: StoredImage, filename: str, sha256: str) -> dict[str, Feature]:
        """The features by key. sha256: of the image's bytes, in hex."""
        kind = ImageKind(image.format, image.height, image.width, image.channels, image.dtype)
        shared = self._of_kind.get(kind)
        if shared is None:
            shared = shared_features(self._schema, kind)
            if len(self._of_kind) < _KINDS_KEPT:
                self._of_kind[kind] = shared
        features = shared.copy()
        for key, make in self._own:
            features[key] = Feature("bytes", (make(image, filename, sha256),))
        return features


def image_format(image: StoredImage) -> str:
    """``format/channels/dtype`` of a stored image, as it is counted."""
    return f"{image.format}/{image.channels}/{image.dtype}"


def image_specs(schema: Schema, image_formats: Iterable[str]) -> list[FeatureSpec]:
    """The types of those features. image_formats: every ``format/channels/dtype`` that was written."""
    parts = [name.split("/") for name in sorted(set(image_formats))]
    channels = _common([part[1] for part in parts])
    specs = (
        FeatureSpec(
            "encoded",
            "bytes",
            role="image",
            channels=int(channels) if channels else None,
            encoding=_common([part[0] for part in parts]),
            pixel_dtype=_common([part[2] for part in parts]) or "uint8",
            description="the encoded image",
        ),
        FeatureSpec("raw", "bytes", role="raw", description="pixels, row-major HWC, little-endian, in RGB order"),
        FeatureSpec("format", "bytes", role="text", description="jpeg, png or raw"),
        FeatureSpec("height", "int64", description="rows of pixels"),
        FeatureSpec("width", "int64", description="columns of pixels"),
        FeatureSpec("channels", "int64", description="values per pixel"),
        FeatureSpec("shape", "int64", (3,), description="height, width, channels"),
        FeatureSpec("dtype", "bytes", role="text", description="uint8 or uint16"),
        FeatureSpec("filename", "bytes", role="text", description="path as the manifest spells it"),
        FeatureSpec("sha256", "bytes", role="text", description="of the stored bytes, in hex"),
    )
    by_name = {spec.key: spec for spec in specs}
    return [replace(by_name[name], key=schema.keys[name]) for name in image_feature_names(schema)]


def _common(values: Sequence[str]) -> str | None:
    """The one value that all have, or None."""
    return values[0] if len(set(values)) == 1 else None


def digest_of(image: StoredImage) -> str:
    """sha256 of the stored bytes, in hex."""
    return hashlib.sha256(image.data).hexdigest()
