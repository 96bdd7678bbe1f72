"""LabelMe: a JSON file for each picture (source: ``_label_file.py`` and ``utils/shape.py`` of labelme 6.3).

``shapes`` with ``label``, ``points`` and ``shape_type`` (a polygon where it is absent, as in old versions); ``flags``
of the picture, which become its labels; ``imagePath`` from the folder of the file on, and the picture itself in
``imageData``, which counts where no picture lies beside. Shapes of one label and one ``group_id`` are parts of one
object, and points with the ``group_id`` of an object are its keypoints. A line has neither box nor mask, and a point of
no object has none: they are left out with a warning. LabelMe turns pictures by their EXIF tag before it shows them.
X-AnyLabeling writes the same files, with ``rotation`` as a further type of shape.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beam_tfrecord.annotations.shapes import draw_polygons
from beam_tfrecord.errors import RowError
from beam_tfrecord.manifests.box_cells import attributes_of
from beam_tfrecord.manifests.label_files import JsonFilesFormat
from beam_tfrecord.manifests.outlines import ellipse, hull, mask_of_png, rectangle, ring, rle_of_patch, runs_of
from beam_tfrecord.manifests.picture_labels import PictureLabels, bad, length_of, true_flags
from beam_tfrecord.manifests.text.json_text import Members

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# The picture may stand first, and be so long that nothing else is seen.
_SHAPES = re.compile(rb'"shapes"\s*:\s*\[|"imageData"\s*:\s*"[A-Za-z0-9+/=\\]{1000}')
_OTHERS = re.compile(rb'"(?:imagePath|imageData|imageHeight|shape_type)"\s*:')
_POINTS = ("point", "points")
_LINES = ("line", "linestrip")
# What labelme's own converters (examples/*/labelme2voc.py) take for no class: -1 and 0 in their masks.
_NO_CLASSES = ("__ignore__", "_background_")
_FOUR_CORNERS = ("oriented_rectangle", "rotation")


class LabelmeFormat(JsonFilesFormat):
    """LabelMe files and their pictures, or one file."""

    name = "labelme"
    heads = (_SHAPES, _OTHERS)

    def is_labels(self, document: Mapping[str, Any]) -> bool:
        return "shapes" in document or "imagePath" in document

    def gather(self, document: Mapping[str, Any], name: str, labels: PictureLabels) -> None:
        members = Members(document, "")
        labels.found = length_of(document.get("shapes"))
        flags = members.below("flags")
        labels.labels += [flag for flag in true_flags(flags) if flag not in _NO_CLASSES]
        labels.with_boxes = bool(labels.found) or not flags
        labels.further["frame"] = "upright"
        size = labels.state_size(name, members.raw("imageWidth"), members.raw("imageHeight"))
        _add_shapes(members, size, labels)
        labels.stated = members.text("imagePath")
        labels.holds_itself = bool(members.text("imageData"))
        for box in labels.boxes:
            box["origin"] = f"{name}:{box['origin']}"


@dataclass(frozen=True)
class _Region:
    """A shape that has an area. patch: the mask of one, its left and its top."""

    where: str
    label: str
    group: int | None
    outline: list[float]
    attributes: Mapping[str, Any]
    is_box: bool = False
    patch: tuple[npt.NDArray[np.bool_], int, int] | None = None


@dataclass(frozen=True)
class _Spots:
    """A shape of one point or several."""

    where: str
    label: str
    group: int | None
    points: list[tuple[float, float]]


def _add_shapes(members: Members, size: tuple[int, int] | None, labels: PictureLabels) -> None:
    objects: dict[tuple[str, Any], list[_Region]] = {}
    spots: list[_Spots] = []
    for shape in members.listed("shapes"):
        kind = shape.name("shape_type") or "polygon"
        if shape.name("label") in _NO_CLASSES:
            labels.leave_out(shape.where, shape.name("label"), "labelme's word for what is of no class is no object")
        elif kind in _LINES:
            labels.leave_out(shape.where, kind, "a line has neither a box nor a mask")
        elif kind in _POINTS:
            spots.append(_Spots(shape.where, shape.name("label"), shape.whole("group_id"), _points(shape)))
        else:
            region = _region(shape, kind, labels)
            if region is None:
                labels.leave_out(shape.where, kind, f"the type of shape {kind!r} is not known")
            else:
                group = shape.where if region.group is None else region.group
                objects.setdefault((region.label, group), []).append(region)
    for regions in objects.values():
        box = _box(regions, size)
        key = regions[0].label, regions[0].group
        points = [spot for spot in spots if _owner(spot, objects) == key]
        if points:
            box["keypoints"] = [number for spot in points for x, y in spot.points for number in (x, y, 2)]
            box["keypoint_names"] = [spot.label for spot in points for _ in spot.points]
            labels.use("keypoint", len(points))
        labels.store(box, len(regions))
    for spot in spots:
        if _owner(spot, objects) is None:
            labels.leave_out(spot.where, "point", "it has the group_id of no object, or of more than one")


def _owner(spot: _Spots, objects: Mapping[tuple[str, Any], list[_Region]]) -> tuple[str, Any] | None:
    """The object whose keypoint a point is: the only one of its group."""
    owners = [key for key in objects if spot.group is not None and key[1] == spot.group]
    return owners[0] if len(owners) == 1 else None


def _region(shape: Members, kind: str, labels: PictureLabels) -> _Region | None:
    """A shape with an area; None for one of a type that is not known."""
    points = _points(shape)
    names = {str(name).casefold(): value for name, value in shape.below("flags").items()}
    attributes = attributes_of({"difficult": shape.raw("difficult"), **names})
    for name in true_flags(names):
        if not attributes_of({name: True}):
            labels.note(shape.where, f"the flag {name!r} of a shape is not stored")
    label, group = shape.name("label"), shape.whole("group_id")
    if kind == "rectangle":
        _check_count(shape, points, 2, 4)
        box = hull([[x, y] for x, y in points])
        return _Region(shape.where, label, group, rectangle(*box), attributes, is_box=True)
    if kind == "circle":
        _check_count(shape, points, 2)
        (x, y), (right, down) = points
        radius = math.dist((x, y), (right, down))
        return _Region(shape.where, label, group, ellipse(x, y, radius, radius), attributes)
    if kind == "mask":
        _check_count(shape, points, 2)
        left, top, _, _ = hull([[x, y] for x, y in points])
        patch = _patch(shape)
        outline = rectangle(int(left), int(top), int(left) + patch.shape[1], int(top) + patch.shape[0])
        return _Region(shape.where, label, group, outline, attributes, patch=(patch, int(left), int(top)))
    if kind in _FOUR_CORNERS:
        _check_count(shape, points, 4)
    elif kind != "polygon":
        return None
    return _Region(shape.where, label, group, [number for point in points for number in point], attributes)


def _points(shape: Members) -> list[tuple[float, float]]:
    """The points of a shape. Raises RowError."""
    numbers = ring(shape.raw("points"), shape.path("points"))
    if not numbers:
        raise bad(shape.path("points"), "is an empty list of points")
    return list(zip(numbers[0::2], numbers[1::2], strict=True))


def _check_count(shape: Members, points: Sequence[object], *counts: int) -> None:
    if len(points) not in counts:
        wanted = " or ".join(map(str, counts))
        raise bad(shape.path("points"), f"has {len(points)} points; a {shape.name('shape_type')} has {wanted}")


def _patch(shape: Members) -> npt.NDArray[np.bool_]:
    """The mask that a shape holds: a PNG in base64, its pixels being 0 outside of the object."""
    try:
        return mask_of_png(base64.b64decode(shape.text("mask"), validate=True))
    except (ValueError, OSError) as error:
        raise RowError("bad_mask", f"{shape.path('mask')} is no PNG in base64: {error}") from None


def _box(regions: Sequence[_Region], size: tuple[int, int] | None) -> dict[str, Any]:
    """One object of all its parts."""
    first = regions[0]
    attributes = {name: value for region in regions for name, value in region.attributes.items()}
    box: dict[str, Any] = {"class": first.label, "origin": first.where, **attributes}
    outlines = [region.outline for region in regions if region.patch is None]
    patches = [region.patch for region in regions if region.patch is not None]
    if patches:
        box["rle"] = _rle(patches, outlines, size, first.where)
    elif len(regions) == 1 and first.is_box:
        box["bbox"] = hull(outlines)
    else:
        box["polygons"] = outlines
    return box


def _rle(
    patches: Sequence[tuple[npt.NDArray[np.bool_], int, int]],
    outlines: Sequence[Sequence[float]],
    size: tuple[int, int] | None,
    where: str,
) -> dict[str, Any]:
    import numpy as np

    from beam_tfrecord.annotations.shapes import decode_runs

    if size is None:
        raise bad(where, "is a mask, and the file does not state imageWidth and imageHeight")
    width, height = size
    codes = [rle_of_patch(patch, left, top, width, height) for patch, left, top in patches]
    if len(codes) == 1 and not outlines:
        return codes[0]
    masks = [decode_runs(code["counts"], height, width) for code in codes]
    try:
        masks += [draw_polygons(outlines, height, width)] if outlines else []
    except ValueError as error:
        raise RowError("bad_mask", f"{where}: {error}") from None
    return {"size": [height, width], "counts": runs_of(np.logical_or.reduce(masks))}
