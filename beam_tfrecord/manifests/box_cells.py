"""From the cells of one row to boxes whose numbers are not yet understood.

A box is a dict of the field ``boxes`` (:mod:`beam_tfrecord.annotations.objects`) with its four numbers under
:data:`FOUR`, until :mod:`.box_reading` has seen all boxes of the source and knows what they are.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any

from beam_tfrecord.annotations.cells import is_blank, plain, real_number, shown, text_of
from beam_tfrecord.errors import RowError
from beam_tfrecord.manifests.text.box_columns import XYXY, box_columns, compact

FOUR = "four"  # key of the numbers of a box
FORM = "form"  # key of what they are, where the cell itself says so
REGION = "region"  # key of the attributes of a region
_ATTRIBUTES = {
    "is_crowd": ("is_crowd", "iscrowd", "crowd"),
    "area": ("area",),
    "difficult": ("difficult", "is_difficult"),
    "truncated": ("truncated", "is_truncated", "istruncated"),
    "group_of": ("group_of", "is_group_of", "isgroupof"),
    "occluded": ("occluded", "is_occluded", "isoccluded"),
    "depiction": ("depiction", "is_depiction", "isdepiction"),
    "inside": ("inside", "is_inside", "isinside"),
    "pose": ("pose", "view"),
    "confidence": ("confidence",),
}
ATTRIBUTE_COLUMNS = frozenset(name for names in _ATTRIBUTES.values() for name in names)
_CLASSES = (
    *("category", "categories", "label", "labels", "class", "classes", "class_name", "category_name", "name", "names"),
    *("category_id", "category_ids", "class_id", "class_label", "class_labels"),
)
_SPLIT = re.compile(r"[,;\s]+")
_CURE = "correct it, or pass over the column with --box_format none"


def attributes_of(by_name: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a box among cells by column name, compared without case."""
    found = {}
    for attribute, names in _ATTRIBUTES.items():
        cell = next((by_name[name] for name in names if name in by_name), None)
        if not is_blank(cell):
            found[attribute] = cell
    return found


def boxes_of_cell(cell: Any, column: str) -> tuple[list[dict[str, Any]], bool]:
    """(boxes, whether the cell is a list of them) of one box or a list of boxes. Raises RowError (``bad_box``)."""
    value = _structure(cell, column)
    if value is None:
        return [], False
    if isinstance(value, Mapping):
        return [_box(value, column)], False
    if not value or not all(isinstance(item, list | tuple | Mapping) for item in value):
        return ([_box(value, column)], False) if value else ([], True)
    if len(value) == 2 and all(not isinstance(item, Mapping) and len(item) == 2 for item in value):
        return [{FOUR: [*value[0], *value[1]], FORM: XYXY}], False  # two corners
    return [_box(item, column) for item in value], True


def boxes_of_objects(cell: Any, column: str) -> list[dict[str, Any]]:
    """The boxes of a struct of lists, or of a list of structs. Raises RowError."""
    value = _structure(cell, column)
    if value is None:
        return []
    if isinstance(value, Mapping):
        value = _transposed(value, column)
    boxes = []
    for number, item in enumerate(value, start=1):
        if not isinstance(item, Mapping):
            raise RowError("bad_box", f"column {column!r}: object {number} is {shown(item)}, not a box with its class")
        by_name = {str(name).casefold(): plain(inner) for name, inner in item.items()}
        key = next((name for name in by_name if compact(name) in ("bbox", "box", "boundingbox")), None)
        if key is None:
            raise RowError("bad_box", f"column {column!r}: object {number} has no bbox; it has {', '.join(by_name)}")
        own, _ = boxes_of_cell(by_name[key], f"{column}.{key}")
        if len(own) != 1:
            raise RowError("bad_box", f"column {column!r}: object {number} has {len(own)} boxes, not one")
        name = next((name for name in _CLASSES if name in by_name), None)
        if name is not None:
            own[0]["class"] = by_name[name]
        boxes.append({**own[0], **attributes_of(by_name)})
    return boxes


def _transposed(value: Mapping[str, Any], column: str) -> list[dict[str, Any]]:
    """A struct of lists as a list of structs."""
    given = {name: inner for name, cell in value.items() if (inner := plain(cell)) is not None}
    lists = {name: list(inner) for name, inner in given.items() if isinstance(inner, list | tuple)}
    single = next((name for name in given if name not in lists), None)
    if single is not None:
        raise RowError(
            "bad_box", f"column {column!r}: {single} is {shown(given[single])}, not a list of one for each box"
        )
    lengths = {name: len(inner) for name, inner in lists.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{length} {name}" for name, length in lengths.items())
        raise RowError("bad_box", f"column {column!r} has lists of different lengths: {told}")
    count = next(iter(lengths.values()), 0)
    return [{name: lists[name][place] if name in lists else None for name in value} for place in range(count)]


def region_of(shape: Any, attributes: Any, column: str) -> tuple[dict[str, Any] | None, str]:
    """(box, what is not stored) of a region of the VGG Image Annotator; no box for a line without a region.

    Shapes are those of VIA 2 (www.robots.ox.ac.uk/~vgg/software/via/docs/user_guide.html). Raises RowError.
    """
    value = _structure(shape, column)
    if not value:
        return None, ""
    if not isinstance(value, Mapping) or "name" not in value:
        raise RowError("bad_box", f"column {column!r} holds {shown(value)}, which is no region")
    kind = value["name"]
    box: dict[str, Any]
    try:
        if kind == "rect":
            box = {"bbox_xywh": [value[side] for side in ("x", "y", "width", "height")]}
        elif kind in ("circle", "ellipse"):
            rx, ry = (
                (real_number(value["r"]),) * 2
                if kind == "circle"
                else (real_number(value["rx"]), real_number(value["ry"]))
            )
            box = {"bbox_center": [value["cx"], value["cy"], 2 * rx, 2 * ry]}
        elif kind == "polygon":
            points = zip(value["all_points_x"], value["all_points_y"], strict=True)
            box = {"polygons": [[number for point in points for number in point]]}
        else:
            return None, f"a region of the kind {shown(kind)} is no box"
    except (KeyError, ValueError, TypeError) as error:
        raise RowError("bad_box", f"column {column!r}: the {kind} is not complete ({error})") from None
    known = _structure(attributes, "region_attributes") or {}
    if not isinstance(known, Mapping):
        raise RowError("bad_annotation", f"region_attributes is {shown(known)}, not an object with a value for each")
    box[REGION] = {str(name): text for name, inner in known.items() if (text := _chosen(inner)) is not None}
    return box, ""


def _chosen(value: Any) -> str | None:
    """The value of an attribute: a text, or the only one of the checkboxes that is set."""
    if isinstance(value, Mapping):
        chosen = [str(name) for name, is_set in value.items() if is_set]
        return chosen[0] if len(chosen) == 1 else None
    text = text_of(value)
    return text if text and text.strip() else None


def _box(value: Any, column: str) -> dict[str, Any]:
    """One box: four numbers, or a struct whose keys say what they are."""
    if isinstance(value, Mapping):
        found = box_columns([str(name) for name in value], "auto", "auto")
        if found is None or found.kind != "columns":
            raise RowError("bad_box", f"column {column!r} holds {shown(value)}, which is no box: {_CURE}")
        by_name = {str(name): inner for name, inner in value.items()}
        form = {FORM: found.forms[0]} if len(found.forms) == 1 else {}
        return {FOUR: [by_name[name] for name in found.names], **form}
    if len(value) != 4:
        raise RowError("bad_box", f"column {column!r} holds {len(value)} numbers, not the four of a box: {_CURE}")
    return {FOUR: list(value)}


def list_of_cell(cell: Any) -> list[Any] | None:
    """The items of a cell that is a list, also one spelled as JSON or Python; None for any other."""
    cell = plain(cell)
    if isinstance(cell, str) and cell.strip().startswith("["):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            cell = _literal(cell.strip())
    return list(cell) if isinstance(cell, list | tuple) else None


def _structure(cell: Any, column: str) -> Any:
    """A cell as a list, a mapping, or None for an empty one. Texts are JSON, Python, or numbers."""
    cell = plain(cell)
    if is_blank(cell):
        return None
    if isinstance(cell, list | tuple | Mapping):
        return cell
    if isinstance(cell, str):
        text = cell.strip()
        if text[0] not in "[{(":
            return [part for part in _SPLIT.split(text) if part]
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = _literal(text)
        if isinstance(value, list | tuple | Mapping):
            return value
    raise RowError("bad_box", f"column {column!r} holds {shown(cell)}, which is no box: {_CURE}")


def _literal(text: str) -> Any:
    """A list or mapping as Python or numpy print it; None when it is none."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    parts = [part for part in _SPLIT.split(text.strip("[]() \t")) if part]
    return parts if not any(mark in part for part in parts for mark in "[](){}") else None
