"""The features of objects: lists with one value per object, all in one order.

Boxes, classes and the attributes is_crowd, area, difficult and truncated are always there; the other attributes, masks
and keypoints when any object of the dataset has them. An object without one gets 0, an empty text, a confidence of 1, a
mask of zeros, or keypoints that are not labelled, so that the lists stay aligned.

Keypoints are flat lists, K values per object, where K is the largest number of points of any object in the dataset
(17 in COCO); objects with fewer are filled up with points that are not labelled.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from beam_tfrecord.annotations.base import Feature, FeatureSpec, Schema
from beam_tfrecord.annotations.mask_images import encode_png
from beam_tfrecord.annotations.objects import ATTRIBUTES, Keypoints, MaskImage, Object

ALWAYS = ("is_crowd", "area", "difficult", "truncated")
_ABSENT = {"confidence": 1.0, "pose": ""}
_UNLABELLED = (0.0, 0.0, 0)
_KEYPOINT_LISTS = ("keypoint_x", "keypoint_y", "keypoint_visibility", "keypoint_text", "keypoint_num")
_DESCRIPTIONS = {
    "is_crowd": "1 for a region of many objects",
    "area": "in square pixels of the stored image",
    "difficult": "1 for an object that is hard to recognise",
    "truncated": "1 for an object that reaches out of the image",
    "group_of": "1 for a box around several objects",
    "occluded": "1 for an object that is partly hidden",
    "depiction": "1 for a drawing or another picture of the object",
    "inside": "1 for a picture taken from the inside of the object",
    "pose": "from where the object is seen",
    "confidence": "from 0 to 1",
}


def facets_of(objects: Sequence[Object]) -> tuple[str, ...]:
    """What asks for further lists, sorted."""
    facets: set[str] = set()
    for item in objects:
        facets.update(f"boxes/{name}" for name in item.attributes if name not in ALWAYS)
        if item.mask is not None:
            facets.add("instance_masks")
        if item.keypoints is not None:
            facets.update(("keypoints", f"keypoints/{len(item.keypoints.points)}"))
    return tuple(sorted(facets))


def stored_attributes(schema: Schema) -> list[str]:
    """The attributes that have a list, in the order of the table."""
    return [name for name in ATTRIBUTES if name in ALWAYS or f"boxes/{name}" in schema.kinds]


def keypoint_count(schema: Schema) -> int:
    """K, the number of keypoints that every object has in the lists."""
    numbers = [kind.removeprefix("keypoints/") for kind in schema.kinds if kind.startswith("keypoints/")]
    return max((int(number) for number in numbers), default=0)


def object_features(objects: Sequence[Object], size: tuple[int, int], schema: Schema) -> dict[str, Feature]:
    """The lists of placed objects. size: (width, height) of the stored image, for masks of zeros."""
    keys = schema.keys
    found = _box_features(objects, schema)
    found[keys["object_label"]] = Feature("int64", [schema.vocabulary.id_of(item.name) for item in objects])
    if "object_text" in keys:
        found[keys["object_text"]] = Feature(
            "bytes", [item.name.encode("utf-8", "surrogateescape") for item in objects]
        )
    for name in stored_attributes(schema):
        found[keys[f"object_{name}"]] = _attribute_feature(objects, name)
    if "instance_masks" in schema.kinds:
        found[keys["object_mask"]] = Feature("bytes", [_mask_png(item, size) for item in objects])
    if "keypoints" in schema.kinds:
        found.update(_keypoint_features(objects, schema))
    return found


def _box_features(objects: Sequence[Object], schema: Schema) -> dict[str, Feature]:
    boxes = [item.box for item in objects if item.box is not None]
    if "bbox" in schema.keys:
        rows = [side for box in boxes for side in (box.ymin, box.xmin, box.ymax, box.xmax)]
        return {schema.keys["bbox"]: Feature("float", rows)}
    return {
        schema.keys[f"bbox_{side}"]: Feature("float", [getattr(box, side) for box in boxes])
        for side in ("xmin", "xmax", "ymin", "ymax")
    }


def _attribute_feature(objects: Sequence[Object], name: str) -> Feature:
    values: list[Any] = [item.attributes.get(name, _ABSENT.get(name, 0)) for item in objects]
    dtype = ATTRIBUTES[name]
    return Feature(
        dtype, [value.encode("utf-8", "surrogateescape") for value in values] if dtype == "bytes" else values
    )


def _mask_png(item: Object, size: tuple[int, int]) -> bytes:
    return item.mask.png if isinstance(item.mask, MaskImage) else _empty_mask(*size)


@functools.lru_cache(maxsize=64)
def _empty_mask(width: int, height: int) -> bytes:
    import numpy as np

    return encode_png(np.zeros((height, width), np.uint8))


def _keypoint_features(objects: Sequence[Object], schema: Schema) -> dict[str, Feature]:
    count = keypoint_count(schema)
    rows = [_padded(item.keypoints, count) for item in objects]
    points = [point for row, _ in rows for point in row]
    keys = schema.keys
    return {
        keys["keypoint_x"]: Feature("float", [x for x, _, _ in points]),
        keys["keypoint_y"]: Feature("float", [y for _, y, _ in points]),
        keys["keypoint_visibility"]: Feature("int64", [visibility for _, _, visibility in points]),
        keys["keypoint_text"]: Feature(
            "bytes", [name.encode("utf-8", "surrogateescape") for _, names in rows for name in names]
        ),
        keys["keypoint_num"]: Feature("int64", [sum(point[2] > 0 for point in row) for row, _ in rows]),
    }


def _padded(keypoints: Keypoints | None, count: int) -> tuple[list[tuple[float, float, int]], list[str]]:
    """(points, names) of one object, filled up to ``count``."""
    points = list(keypoints.points) if keypoints is not None else []
    names = list(keypoints.names) if keypoints is not None else []
    return points + [_UNLABELLED] * (count - len(points)), names + [""] * (count - len(names))


def object_specs(schema: Schema) -> list[FeatureSpec]:
    """The types of exactly the features that :func:`object_features` gives."""
    keys = schema.keys
    if "bbox" in keys:
        told = "ymin, xmin, ymax, xmax as fractions of the image"
        specs = [FeatureSpec(keys["bbox"], "float", (None, 4), "bbox", description=told)]
    else:
        specs = [
            FeatureSpec(keys[f"bbox_{side}"], "float", (None,), description="side of each box, a fraction of the image")
            for side in ("xmin", "xmax", "ymin", "ymax")
        ]
    specs.append(FeatureSpec(keys["object_label"], "int64", (None,), "label", description="id of each object's class"))
    if "object_text" in keys:
        specs.append(FeatureSpec(keys["object_text"], "bytes", (None,), "text", description="name of each class"))
    for name in stored_attributes(schema):
        dtype = ATTRIBUTES[name]
        role = "text" if dtype == "bytes" else "scalar"
        specs.append(FeatureSpec(keys[f"object_{name}"], dtype, (None,), role, description=_DESCRIPTIONS[name]))
    if "instance_masks" in schema.kinds:
        told = "mask of each object: 1 on it, 0 elsewhere, of the size of the image"
        specs.append(
            FeatureSpec(keys["object_mask"], "bytes", (None,), "image", channels=1, encoding="png", description=told)
        )
    if "keypoints" in schema.kinds:
        specs.extend(_keypoint_specs(schema))
    return specs


def _keypoint_specs(schema: Schema) -> list[FeatureSpec]:
    count = keypoint_count(schema)
    dtypes = ("float", "float", "int64", "bytes", "int64")
    told = (
        f"of {count} points per object, as a fraction of the width",
        f"of {count} points per object, as a fraction of the height",
        "0 not labelled, 1 hidden, 2 visible",
        "names of the points",
        "how many points of each object are labelled",
    )
    return [
        FeatureSpec(schema.keys[name], dtype, (None,), "text" if dtype == "bytes" else "scalar", description=text)
        for name, dtype, text in zip(_KEYPOINT_LISTS, dtypes, told, strict=True)
    ]
