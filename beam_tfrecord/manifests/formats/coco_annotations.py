"""The annotations of one image in a COCO file as canonical fields."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.annotations.cells import shown
from beam_tfrecord.core.public_text import is_utf8
from beam_tfrecord.errors import ManifestError, RowError
from beam_tfrecord.manifests.outlines import corners_of_turned
from beam_tfrecord.manifests.text.json_text import Members

COPIED = ("area", "difficult", "truncated", "occluded")  # of CVAT's "attributes", too
_GEOMETRY = ("bbox", "segmentation", "keypoints")


@dataclass(frozen=True, slots=True)
class Category:
    """An element of ``categories``."""

    id: int
    name: str
    keypoints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Annotation:
    """An element of ``annotations``. place: its number there. repeated: a key that it has twice."""

    place: int
    value: Any
    repeated: str = ""

    def members(self) -> Members:
        """Raises RowError when it is no object, or has a key twice."""
        members = Members(self.value, f"annotations[{self.place}]")
        if self.repeated:
            message = f"annotations[{self.place}] has the key {self.repeated!r} twice: take one of them out"
            raise RowError("bad_annotation", message)
        return members


def is_ignored(annotation: Annotation) -> bool:
    """Whether it is marked with ``ignore``: mmdetection passes over it, COCO's evaluation counts it for nothing."""
    return isinstance(annotation.value, Mapping) and annotation.value.get("ignore") in (1, True)


def id_text(value: Any) -> str:
    """The id of an image as it is compared: 7, 7.0 and "7" are one, because tools mix them. '' for what is no id."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        return ""
    text = str(value)
    return text if is_utf8(text) else ""


def parse_categories(values: Iterable[tuple[Any, str]], name: str) -> dict[int, Category]:
    """Categories by id.

    values: each with a key that it has twice, or ''. Raises ManifestError when an id or a name is missing, of another
    type, or used twice.
    """
    by_id: dict[int, Category] = {}
    id_of: dict[str, int] = {}
    for place, (value, repeated) in enumerate(values):
        where = f"categories[{place}]"
        try:
            members = Members(value, where)
            number, label = members.whole("id"), members.name("name")
            points = _point_names(members)
        except RowError as error:
            raise ManifestError(f"{name}: {error.message}; {where} needs a name and a whole number as its id") from None
        if number is None or not label:
            raise ManifestError(f"{name}: {where} needs a name and a whole number as its id")
        if repeated:
            raise ManifestError(f"{name}: {where} ({label!r}) has the key {repeated!r} twice: take one of them out")
        if number in by_id:
            raise ManifestError(f"{name}: {by_id[number].name!r} and {label!r} are both category {number}")
        if label in id_of:
            raise ManifestError(
                f"{name}: the categories {id_of[label]} and {number} are both called {label!r}: rename one of them"
            )
        by_id[number] = Category(number, label, points)
        id_of[label] = number
    return by_id


def _point_names(members: Members) -> tuple[str, ...]:
    points = members.raw("keypoints")
    if points is None:
        return ()
    if not isinstance(points, list) or not all(isinstance(point, str) and is_utf8(point) for point in points):
        message = f"{members.path('keypoints')} is {shown(points)}, not a list of the names of the points"
        raise RowError("bad_annotation", message)
    return tuple(points)


def kinds_of_annotation(annotation: Mapping[str, Any]) -> set[str]:
    """What an annotation holds: ``objects``, ``captions``, ``panoptic``; ``labels`` for nothing but a category.

    Captions have no category in COCO's own files; Datumaro writes a category_id of 0 into them, which means nothing.
    A value that cannot be right counts as well: it is looked at, and told, with the others of its kind. An empty list
    of numbers says nothing.
    """
    kinds = set()
    if any(annotation.get(name) not in (None, []) for name in _GEOMETRY):
        kinds.add("objects")
    elif annotation.get("category_id") is not None and annotation.get("caption") is None:
        kinds.add("objects" if "bbox" in annotation else "labels")
    if "caption" in annotation and (annotation["caption"] is not None or not kinds):
        kinds.add("captions")
    if annotation.get("segments_info") is not None:
        kinds.add("panoptic")
    return kinds


def kinds_of_file(kinds: Iterable[str]) -> tuple[str, ...]:
    """The kinds that the rows of a file have, sorted, from those that its annotations hold.

    Where any annotation has a box, one with nothing but a category is no label of its picture: it lacks its box.
    """
    found = set(kinds)
    return tuple(sorted(found - {"labels"} if "objects" in found else found))


def fields_of(
    annotations: Sequence[Annotation], kinds: Sequence[str], categories: Mapping[int, Category], mask_folder: str
) -> dict[str, Any]:
    """Canonical fields of an image from its annotations.

    kinds: those that the file has; an image without any of one has an empty list. Raises RowError.
    """
    boxes: list[dict[str, Any]] = []
    captions: list[Any] = []
    labels: list[str] = []
    panoptic: list[Members] = []
    notes: list[tuple[str, str]] = []
    for annotation in annotations:
        members = annotation.members()
        own = kinds_of_annotation(annotation.value)
        if not own:
            told = (
                f"annotations[{annotation.place}] says nothing of its image: it has no bbox, no category_id, no caption"
            )
            raise RowError("bad_annotation", f"{told}: complete it, or take it out")
        if is_ignored(annotation):
            notes.append(("annotation_ignored", f"annotations[{annotation.place}]: it is marked with ignore"))
        elif "objects" in own or ("labels" in own and "labels" not in kinds):
            boxes.append(_box(annotation.place, members, categories))
        elif "labels" in own:
            labels.append(_category(members, categories).name)
        if "captions" in own:
            captions.append(members.raw("caption"))
            number = id_text(annotation.value.get("category_id"))
            if own == {"captions"} and number != "0" and number in map(str, categories):  # Datumaro writes a 0
                name = categories[int(number)].name
                told = (
                    f"annotations[{annotation.place}]: its category ({name}) is not stored: it has a caption and no box"
                )
                notes.append(("annotation_ignored", told))
        if "panoptic" in own:
            panoptic.append(members)
    fields: dict[str, Any] = {"notes": notes} if notes else {}
    if boxes or "objects" in kinds:
        fields["boxes"] = boxes
    if captions or "captions" in kinds:
        fields["captions"] = captions
    if labels:
        fields["label"] = labels[0] if len(labels) == 1 else labels
    if panoptic or "panoptic" in kinds:
        fields["panoptic"] = _panoptic(panoptic, categories, mask_folder)
    return fields


def _category(members: Members, categories: Mapping[int, Category]) -> Category:
    try:
        number = members.whole("category_id")
    except RowError as error:
        raise RowError("unknown_category", error.message) from None
    if number is None:
        raise RowError("unknown_category", f"{members.path('category_id')} is missing: the annotation has no category")
    if number not in categories:
        known = ", ".join(f"{category.id} {category.name}" for category in list(categories.values())[:3])
        message = f"{members.where} has category {number}, which the file does not declare (it has {known} ...)"
        raise RowError("unknown_category", message)
    return categories[number]


def _box(place: int, members: Members, categories: Mapping[int, Category]) -> dict[str, Any]:
    """One object; its numbers are looked at when the row is parsed."""
    box: dict[str, Any] = {"origin": f"annotations[{place}]"}
    category = _category(members, categories) if categories else None
    if category is not None:
        box["class"] = category.name
    further = members.raw("attributes")  # a list of ids in some files, such as those of Fashionpedia
    attributes = further if isinstance(further, Mapping) else {}
    segmentation = members.raw("segmentation")
    rotation = attributes.get("rotation") if segmentation in (None, []) else None
    corners = corners_of_turned(members.raw("bbox"), rotation, has_size=True)
    if corners is not None:
        box["polygons"] = [corners]
    elif members.raw("bbox") not in (None, []):
        box["bbox_xywh"] = members.raw("bbox")
    if isinstance(segmentation, Mapping):
        box["rle"] = segmentation
    elif segmentation is not None and segmentation != []:
        # A single polygon that lost its outer brackets is met in files that people wrote themselves.
        is_flat = isinstance(segmentation, list) and not isinstance(segmentation[0], list)
        box["polygons"] = [segmentation] if is_flat else segmentation
    if members.raw("keypoints") not in (None, []):
        box["keypoints"] = members.raw("keypoints")
        if category is not None:
            box["keypoint_names"] = category.keypoints
    if members.raw("iscrowd") is not None:
        box["is_crowd"] = members.raw("iscrowd")
    for source in (attributes, members.value):
        box.update({key: source[key] for key in COPIED if source.get(key) is not None})
    return box


def _panoptic(annotations: Sequence[Members], categories: Mapping[int, Category], mask_folder: str) -> dict[str, Any]:
    if not annotations:
        return {"mask": "", "segments": []}
    if len(annotations) > 1:
        message = f"{annotations[1].where} is a second panoptic annotation of the image"
        raise RowError("bad_annotation", message)
    members = annotations[0]
    segments = members.objects("segments_info") or []
    file_name = members.text("file_name")
    if not file_name:
        raise RowError("bad_annotation", f"{members.where} names no mask file")
    return {
        "mask": posixpath.join(mask_folder, file_name),
        "segments": [
            {
                "id": segment.whole("id"),
                "class": _category(segment, categories).name,
                "is_crowd": segment.whole("iscrowd") or 0,
            }
            for segment in segments
        ],
    }
