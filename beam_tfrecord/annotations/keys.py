"""Feature keys: from what a feature holds (its logical name) to its name in the record, by preset.

``imagenet`` and ``od`` use the names of the ImageNet records of TensorFlow's Inception and of the Object Detection API
and Model Garden (``TfExampleDecoder``), which agree where both have one. ``tfds`` follows the COCO, VOC and Open Images
builders of TensorFlow Datasets. ``simple`` has the shortest names. Where a convention has no name for something, it
gets one in the same manner, so that nothing is left out for want of a key. ``tfds`` and ``simple`` store labels as ids
only; their names are in the label files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from beam_tfrecord.errors import ConfigError, nearest
from beam_tfrecord.options.values import Column

PRESETS = ("imagenet", "od", "tfds", "simple")


class Names(NamedTuple):
    """The key of one logical name under each preset (``imagenet`` and ``od`` share one); None: not stored there."""

    od: str | None
    tfds: str | None
    simple: str | None


def _same(key: str) -> Names:
    return Names(key, key, key)


def _object(od: str, others: str) -> Names:
    return Names(f"image/object/{od}", f"objects/{others}", f"objects/{others}")


KEYS: Mapping[str, Names] = MappingProxyType(
    {
        # The image itself.
        "encoded": Names("image/encoded", "image", "image"),
        "raw": Names("image/raw", "image/raw", "data"),
        "format": Names("image/format", "image/format", None),
        "height": Names("image/height", "image/height", "height"),
        "width": Names("image/width", "image/width", "width"),
        "channels": Names("image/channels", "image/channels", "channels"),
        "dtype": Names("image/dtype", "image/dtype", "dtype"),
        "shape": Names(None, None, "shape"),
        "filename": Names("image/filename", "image/filename", "name"),
        "source_id": _same("image/source_id"),
        "sha256": Names("image/key/sha256", "image/key/sha256", None),
        # Labels of the whole image.
        "label": Names("image/class/label", "label", "label"),
        "label_text": Names("image/class/text", None, None),
        "label_one_hot": Names("image/class/one_hot", "label_one_hot", "label_one_hot"),
        "captions": Names("image/caption", "captions", "captions"),
        # Masks of the whole image.
        "semantic_mask": Names("image/segmentation/class/encoded", "segmentation_mask", "mask"),
        "semantic_mask_format": Names("image/segmentation/class/format", "segmentation_mask/format", "mask_format"),
        "instance_map": Names("image/segmentation/object/encoded", "instance_map", "instance_map"),
        "instance_map_format": Names("image/segmentation/object/format", "instance_map/format", "instance_map_format"),
        "panoptic_category_mask": Names(
            "image/panoptic/category_mask", "panoptic/category_mask", "panoptic/category_mask"
        ),
        "panoptic_instance_mask": Names(
            "image/panoptic/instance_mask", "panoptic/instance_mask", "panoptic/instance_mask"
        ),
        "panoptic_segment_label": Names("image/panoptic/segment/class/label", "segments/label", "segments/label"),
        "panoptic_segment_text": Names("image/panoptic/segment/class/text", None, None),
        "panoptic_segment_is_crowd": Names("image/panoptic/segment/is_crowd", "segments/is_crowd", "segments/is_crowd"),
        "panoptic_segment_area": Names("image/panoptic/segment/area", "segments/area", "segments/area"),
        # Objects: lists with one value (or one run of values) for each object.
        # Boxes are four lists, or rows of [ymin, xmin, ymax, xmax].
        "bbox": Names(None, "objects/bbox", "objects/bbox"),
        "bbox_xmin": Names("image/object/bbox/xmin", None, None),
        "bbox_xmax": Names("image/object/bbox/xmax", None, None),
        "bbox_ymin": Names("image/object/bbox/ymin", None, None),
        "bbox_ymax": Names("image/object/bbox/ymax", None, None),
        "object_label": _object("class/label", "label"),
        "object_text": Names("image/object/class/text", None, None),
        "object_area": _object("area", "area"),
        "object_is_crowd": _object("is_crowd", "is_crowd"),
        "object_difficult": _object("difficult", "is_difficult"),
        "object_truncated": _object("truncated", "is_truncated"),
        "object_group_of": _object("group_of", "is_group_of"),
        "object_occluded": _object("occluded", "is_occluded"),
        "object_depiction": _object("depiction", "is_depiction"),
        "object_inside": _object("inside", "is_inside"),
        "object_pose": _object("view", "pose"),
        "object_confidence": _object("confidence", "confidence"),
        "object_mask": _object("mask", "mask"),
        "keypoint_x": _object("keypoint/x", "keypoints/x"),
        "keypoint_y": _object("keypoint/y", "keypoints/y"),
        "keypoint_visibility": _object("keypoint/visibility", "keypoints/visibility"),
        "keypoint_text": _object("keypoint/text", "keypoints/text"),
        "keypoint_num": _object("keypoint/num", "keypoints/num"),
    }
)

# Raw pixels come with what is needed to read them. ``simple`` is for loaders that want the image and nothing to look
# past: beside an encoded image it leaves out what decoding tells.
_ONLY_RAW = frozenset({"raw", "dtype"})
_ONLY_RAW_IN_SIMPLE = frozenset({"shape", "height", "width", "channels"})


def _is_stored(name: str, preset: str, raw: bool) -> bool:
    if raw:
        return name != "encoded"
    return name not in _ONLY_RAW and not (preset == "simple" and name in _ONLY_RAW_IN_SIMPLE)


def column_name(column: Column) -> str:
    """The logical name of a declared column."""
    return f"column/{column.name}"


def feature_keys(
    preset: str,
    rename: Iterable[tuple[str, str]] = (),
    *,
    raw: bool = False,
    columns: Iterable[Column] = (),
    own_keys: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Logical name -> key of everything that records may hold under a preset, renames applied.

    rename: pairs (key of the preset, new key). raw: whether images are stored as pixels. columns: declared ones; a
    column is called as in the manifest. own_keys: of annotation kinds from outside of the package.
    Raises ConfigError for a key that the preset does not have (the nearest one is named) and when two features would
    get one key.
    """
    keys: dict[str, str] = {}
    for name, names in KEYS.items():
        key: str | None = getattr(names, "od" if preset == "imagenet" else preset)
        if key is not None and _is_stored(name, preset, raw):
            keys[name] = key
    keys.update(own_keys)
    keys.update({column_name(column): column.name for column in columns})
    name_of = {key: name for name, key in keys.items()}
    for old, new in rename:
        if old not in name_of:
            hint = nearest(old, name_of) or f"; its keys begin with {', '.join(list(name_of)[:3])} ..."
            raise ConfigError(f"--rename {old}={new}: with --keys {preset} no feature is called {old!r}{hint}")
        keys[name_of[old]] = new
    _check_distinct(keys)
    return keys


def _check_distinct(keys: Mapping[str, str]) -> None:
    seen: dict[str, str] = {}
    for name, key in keys.items():
        if key in seen:
            raise ConfigError(
                f"two features would be called {key!r} ({_for_people(seen[key])} and {_for_people(name)}): "
                "give one of them another name with --rename, or rename the column"
            )
        seen[key] = name


def _for_people(name: str) -> str:
    kind, _, rest = name.partition("/")
    return f"the column {rest}" if kind == "column" else name.replace("_", " ")
