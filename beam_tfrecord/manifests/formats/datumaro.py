"""Datumaro's own JSON (source: ``plugins/data_formats/datumaro`` of Datumaro 1.13).

``annotations/SUBSET.json`` with ``categories`` (names of classes, whose places are the ids), and ``items`` with
``image`` (``path`` below ``images/SUBSET`` or ``images``, ``size`` as height and width) and ``annotations`` by
``type``. Those of one ``group`` and class are one object: its box, its polygons or mask, and its points as keypoints.
Labels and captions are those of the picture. Polylines and cuboids have neither box nor mask. The name of the file is
the split where it is that of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from beam_tfrecord.annotations.cells import shown
from beam_tfrecord.core.account import Decision
from beam_tfrecord.errors import ManifestError, RowError
from beam_tfrecord.manifests.base import Files, Source
from beam_tfrecord.manifests.box_cells import attributes_of
from beam_tfrecord.manifests.documents import DocumentFormat, pictures_of_elements
from beam_tfrecord.manifests.outlines import corners_of_turned, ellipse, numbers_of, rectangle, turned
from beam_tfrecord.manifests.picture_labels import Picture, PictureLabels, bad, length_of
from beam_tfrecord.manifests.siblings import parent, without_suffix
from beam_tfrecord.manifests.split_names import is_split_folder
from beam_tfrecord.manifests.text.compression import open_unpacked
from beam_tfrecord.manifests.text.json_text import OBJECT, Members, holds, iterate_members, start_of_json
from beam_tfrecord.manifests.text.uri_text import name_of
from beam_tfrecord.options.config import ManifestConfig

_OWN = re.compile(rb'"(?:dm_format_version|media_type)"\s*:')
_INSIDE = re.compile(rb'"(?:categories|items|infos)"\s*:')
_WITHOUT_AREA = ("polyline", "cuboid_2d", "cuboid_3d", "hash_key", "feature_vector")
_NO_GROUP = 0


class DatumaroFormat(DocumentFormat):
    """A file of the folder ``annotations``."""

    name = "datumaro"
    leads = True

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        return start_of_json(head) == OBJECT and holds(head, _OWN, _INSIDE)

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        source = super().describe(files, uri, split, config)
        subset = without_suffix(name_of(uri))
        images = files.join(parent(parent(uri)), f"images/{subset}")
        if config.images is None and files.is_folder(images):
            source = replace(source, base=images)
        names = source.details["names"]
        return replace(source, labels=tuple(names), category_ids=tuple(range(len(names))))

    def look(self, files: Files, uri: str, config: ManifestConfig) -> tuple[dict[str, Any], tuple[Decision, ...]]:
        """Reads the categories."""
        found: Any = None
        with open_unpacked(files, uri) as stream:
            for item in iterate_members(stream, uri):
                if item.key == "categories":
                    found = item.value
                    break
        try:
            categories = Members(found if found is not None else {}, "categories")
            names, points = _names(categories), _point_names(categories)
        except RowError as error:
            raise ManifestError(f"{uri}: {error.message}") from None
        subset = without_suffix(name_of(uri))
        split = subset.lower() if is_split_folder(subset) else ""
        told = (Decision("split", split, "the name of the file"),) if split else ()
        return {"names": names, "points": points, "split": split}, told

    def pictures(self, files: Files, source: Source, names: Sequence[str]) -> Iterator[Picture]:
        return pictures_of_elements(files, source, partial(_read, source), "items")


def _names(categories: Members) -> list[str]:
    """The names of the classes in the order of their ids. Raises RowError."""
    label = categories.object("label")
    found = [one.name("name") for one in (label.objects("labels") if label is not None else None) or ()]
    repeated = next((name for name in found if not name or found.count(name) > 1), None)
    if repeated is not None:
        raise RowError("bad_annotation", f"the class {repeated!r} has no name of its own among the categories")
    return found


def _point_names(categories: Members) -> dict[str, list[str]]:
    """Names of the points by the id of their class."""
    points = categories.object("points")
    found = {}
    for one in (points.objects("items") if points is not None else None) or ():
        names = one.raw("labels")
        if isinstance(names, list) and names:
            found[str(one.whole("label_id"))] = [str(name) for name in names]
    return found


def _read(source: Source, members: Members, labels: PictureLabels) -> None:
    image = members.object("image") or members.object("media")
    if image is None:
        raise RowError("bad_row", f"{members.where} is no picture: it has no image")
    labels.stated = image.text("path") or f"{members.name('id')}.jpg"
    labels.found = length_of(members.raw("annotations"))
    captions = _add_all([Members(one.value, one.where) for one in members.listed("annotations")], source, labels)
    labels.with_boxes = not labels.labels and not captions
    if captions:
        labels.further["captions"] = captions
    if source.details["split"]:
        labels.further["split"] = source.details["split"]
    labels.state_shape(image.path("size"), image.raw("size"))


def _add_all(annotations: Sequence[Members], source: Source, labels: PictureLabels) -> list[str]:
    """Add annotations to the labels of their picture; the captions. Raises RowError."""
    captions: list[str] = []
    objects: dict[tuple[Any, ...], list[Members]] = {}
    for one in annotations:
        kind = one.text("type")
        if kind == "label":
            labels.label(_class(one, source))
        elif kind == "caption":
            captions.append(one.text("caption"))
            labels.use("caption")
        elif kind in _WITHOUT_AREA:
            labels.leave_out(one.where, kind, "it has neither a box nor a mask")
        elif kind not in ("bbox", "rotated_bbox", "polygon", "ellipse", "mask", "points"):
            labels.leave_out(one.where, kind or "annotation", "this type of annotation is not known")
        else:
            group = one.whole("group") or _NO_GROUP
            key = (group, one.whole("label_id")) if group != _NO_GROUP else (one.where,)
            objects.setdefault(key, []).append(one)
    for parts in objects.values():
        boxes = [part for part in parts if part.text("type") in ("bbox", "rotated_bbox")]
        for together in [parts] if len(boxes) < 2 else [[part] for part in parts]:
            _add(together, source, labels)
    return captions


def _class(one: Members, source: Source) -> str:
    number, names = one.whole("label_id"), source.details["names"]
    if number is None or not 0 <= number < len(names):
        raise RowError("unknown_category", f"{one.where} has the label_id {number}, and there are {len(names)} classes")
    return str(names[number])


def _add(parts: Sequence[Members], source: Source, labels: PictureLabels) -> None:
    first = parts[0]
    box: dict[str, Any] = {"class": _class(first, source), "origin": first.where}
    for part in parts:
        kind = part.text("type")
        attributes = part.below("attributes")
        rotation = attributes.get("rotation") if kind == "bbox" else None
        corners = corners_of_turned(part.raw("bbox"), rotation, has_size=True)
        for name, value in attributes.items():
            found = attributes_of({str(name).casefold(): value}) if isinstance(value, bool | int) else {}
            box.update(found)
            is_stored = bool(found) or (name == "rotation" and corners is not None)
            labels.attribute(str(name), is_stored=is_stored, where=part.where)
        if corners is not None:
            box.setdefault("polygons", []).append(corners)
        elif kind == "bbox":
            box["bbox_xywh"] = part.raw("bbox")
        elif kind == "mask":
            box["rle"] = part.raw("rle")
        elif kind == "points":
            box["keypoints"] = _keypoints(part)
            names = source.details["points"].get(str(part.whole("label_id")), [])
            if len(box["keypoints"]) == 3 * len(names):
                box["keypoint_names"] = names
            elif names:
                count = len(box["keypoints"]) // 3
                labels.note(
                    part.where, f"it has {count} points and its class names {len(names)}: they are without names"
                )
        elif kind == "polygon":
            box.setdefault("polygons", []).append(part.raw("points"))
        else:
            box.setdefault("polygons", []).append(_outline(part, kind))
    if not any(key in box for key in ("bbox_xywh", "rle", "polygons")):
        for part in parts:
            labels.leave_out(part.where, "points", "there is no box of their group")
        return
    labels.store(box, len(parts))


def _numbers(part: Members, count: int = 0) -> list[float]:
    given = part.raw("points")
    if not isinstance(given, list) or (count and len(given) != count):
        raise bad(part.path("points"), f"is {shown(given)}, not a list of{f' {count}' if count else ''} numbers")
    return numbers_of(given, part.path("points"))


def _outline(part: Members, kind: str) -> list[float]:
    if kind == "ellipse":
        left, top, right, bottom = _numbers(part, 4)
        return ellipse((left + right) / 2, (top + bottom) / 2, (right - left) / 2, (bottom - top) / 2)
    x, y, width, height, degrees = _numbers(part, 5)
    sides = rectangle(x - width / 2, y - height / 2, x + width / 2, y + height / 2)
    return turned(sides, degrees, x, y)


def _keypoints(part: Members) -> list[Any]:
    numbers, given = _numbers(part), part.raw("visibility")
    count = len(numbers) // 2
    seen = [2] * count if given is None else given
    if not isinstance(seen, list) or len(seen) != count:
        raise bad(part.path("visibility"), f"is {shown(given)}, not one number for each of {count} points")
    return [value for place in range(count) for value in (*numbers[2 * place : 2 * place + 2], seen[place])]
