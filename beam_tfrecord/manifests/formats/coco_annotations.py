"""The annotations of one image in a COCO file as canonical fields."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.errors import ManifestError

_COPIED = ("area", "difficult", "truncated", "occluded")  # of CVAT's "attributes", too


class CocoError(Exception):
    """Why an image cannot become a row; ``code`` is one of errors.REJECT_CODES."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Category:
    """An element of ``categories``."""

    id: int
    name: str
    keypoints: tuple[str, ...] = ()


def whole(value: Any) -> int | None:
    """A whole number of a JSON file, also as 5.0 or "5"; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.strip().lstrip("-").isdecimal():
        return int(value)
    return None


def parse_categories(values: Iterable[Any], name: str) -> dict[int, Category]:
    """Categories by id. Raises ManifestError when an id or a name is missing or used twice."""
    by_id: dict[int, Category] = {}
    id_of: dict[str, int] = {}
    for place, value in enumerate(values):
        number = whole(value.get("id")) if isinstance(value, Mapping) else None
        label = str(value.get("name") or "").strip() if isinstance(value, Mapping) else ""
        if number is None or not label:
            raise ManifestError(f"{name}: categories[{place}] needs a name and a whole number as its id")
        if number in by_id:
            raise ManifestError(f"{name}: {by_id[number].name!r} and {label!r} are both category {number}")
        if label in id_of:
            raise ManifestError(
                f"{name}: the categories {id_of[label]} and {number} are both called {label!r}: rename one of them"
            )
        points = value.get("keypoints") or ()
        by_id[number] = Category(number, label, tuple(str(point) for point in points))
        id_of[label] = number
    return by_id


def annotation_kind(annotation: Mapping[str, Any]) -> str:
    """What an annotation is: ``panoptic``, ``captions``, ``objects``, or ``labels`` (nothing but a category)."""
    if "segments_info" in annotation:
        return "panoptic"
    if "caption" in annotation:
        return "captions"
    if annotation.get("bbox") or annotation.get("segmentation") or annotation.get("keypoints"):
        return "objects"
    return "labels" if "bbox" not in annotation and "category_id" in annotation else "objects"


def fields_of(
    annotations: Sequence[tuple[int, Any]], kinds: Iterable[str], categories: Mapping[int, Category], mask_folder: str
) -> dict[str, Any]:
    """Canonical fields of an image from its annotations, each with its place in the file.

    kinds: those that the file has; an image without any of one has an empty list. Raises CocoError.
    """
    found: dict[str, list[Any]] = {kind: [] for kind in kinds}
    for place, annotation in annotations:
        if not isinstance(annotation, Mapping):
            raise CocoError("bad_annotation", f"annotations[{place}] is no object")
        found.setdefault(annotation_kind(annotation), []).append((place, annotation))
    fields: dict[str, Any] = {}
    if "objects" in found:
        fields["boxes"] = [_box(place, annotation, categories) for place, annotation in found["objects"]]
    if "captions" in found:
        fields["captions"] = [annotation["caption"] for _, annotation in found["captions"]]
    if found.get("labels"):
        names = [_category(place, annotation, categories).name for place, annotation in found["labels"]]
        fields["label"] = names[0] if len(names) == 1 else names
    if "panoptic" in found:
        fields["panoptic"] = {"mask": "", "segments": []}
    if found.get("panoptic"):
        fields["panoptic"] = _panoptic(found["panoptic"], categories, mask_folder)
    return fields


def _category(place: int, value: Mapping[str, Any], categories: Mapping[int, Category]) -> Category:
    number = whole(value.get("category_id"))
    if number is None:
        raise CocoError("unknown_category", f"annotations[{place}] has the category_id {value.get('category_id')!r}")
    if number not in categories:
        known = ", ".join(f"{category.id} {category.name}" for category in list(categories.values())[:3])
        message = f"annotations[{place}] has category {number}, which the file does not declare (it has {known} ...)"
        raise CocoError("unknown_category", message)
    return categories[number]


def _box(place: int, annotation: Mapping[str, Any], categories: Mapping[int, Category]) -> dict[str, Any]:
    """One object; its numbers are looked at when the row is parsed."""
    box: dict[str, Any] = {"origin": f"annotations[{place}]"}
    category = _category(place, annotation, categories) if categories else None
    if category is not None:
        box["class"] = category.name
    if annotation.get("bbox"):
        box["bbox_xywh"] = annotation["bbox"]
    segmentation = annotation.get("segmentation")
    if isinstance(segmentation, Mapping):
        box["rle"] = segmentation
    elif segmentation:
        # A single polygon that lost its outer brackets is met in files that people wrote themselves.
        is_flat = isinstance(segmentation, Sequence) and not isinstance(segmentation[0], Sequence)
        box["polygons"] = [segmentation] if is_flat else segmentation
    if annotation.get("keypoints") is not None:
        box["keypoints"] = annotation["keypoints"]
        if category is not None:
            box["keypoint_names"] = category.keypoints
    if annotation.get("iscrowd") is not None:
        box["is_crowd"] = annotation["iscrowd"]
    further = annotation.get("attributes")
    for source in (further if isinstance(further, Mapping) else {}, annotation):
        box.update({key: source[key] for key in _COPIED if source.get(key) is not None})
    return box


def _panoptic(
    annotations: Sequence[tuple[int, Mapping[str, Any]]], categories: Mapping[int, Category], mask_folder: str
) -> dict[str, Any]:
    place, annotation = annotations[0]
    if len(annotations) > 1:
        message = f"annotations[{annotations[1][0]}] is a second panoptic annotation of the image"
        raise CocoError("bad_annotation", message)
    segments = annotation["segments_info"]
    if not isinstance(segments, Sequence) or not all(isinstance(segment, Mapping) for segment in segments):
        raise CocoError("bad_annotation", f"annotations[{place}]: its segments_info is no list of objects")
    if not annotation.get("file_name"):
        raise CocoError("bad_annotation", f"annotations[{place}] names no mask file")
    return {
        "mask": posixpath.join(mask_folder, str(annotation["file_name"])),
        "segments": [
            {
                "id": segment.get("id"),
                "class": _category(place, segment, categories).name,
                "is_crowd": segment.get("iscrowd", 0),
            }
            for segment in segments
        ],
    }
