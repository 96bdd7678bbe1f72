"""A Pascal VOC annotation as canonical fields.

Two other tools write the same with other shapes: LabelMe's web tool (``<polygon>`` of ``<pt><x/><y/></pt>``, objects
that are ``<deleted>``; github.com/CSAILVision/LabelMeAnnotationTool), and roLabelImg (``<robndbox>`` with ``cx``,
``cy``, ``w``, ``h`` and ``angle`` in radians, clockwise; github.com/cgvict/roLabelImg). CVAT tells in an attribute that
a box was turned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from beam_tfrecord.core.account import KEYS, Account, AccountBuilder
from beam_tfrecord.errors import RowError
from beam_tfrecord.manifests.outlines import corners_of_turned, numbers_of, rectangle, turned
from beam_tfrecord.manifests.picture_labels import stated_size
from beam_tfrecord.manifests.text.xml_tree import Element, XmlEncodingError, parse_xml
from beam_tfrecord.options.values import AUTO_ENCODING

_SIDES = ("xmin", "ymin", "xmax", "ymax")
_YES_NO = {"yes": "1", "no": "0", "true": "1", "false": "0"}  # LabelMe's spelling of flags
_TURNED = ("cx", "cy", "w", "h", "angle")
_FLAGS = ("difficult", "truncated", "occluded")
# What is read of the outer element, and of those below it.
_READ: Mapping[str, Any] = {
    "filename": {},
    "size": {"width": {}, "height": {}},
    "object": {
        **{name: {} for name in ("name", "pose", "part", "deleted", "attributes", *_FLAGS)},
    },
}
# The shape of an object is the first of these that it has.
_SHAPES: Mapping[str, Any] = {
    "bndbox": {side: {} for side in _SIDES},
    "polygon": {"pt": {"x": {}, "y": {}}},
    "robndbox": {side: {} for side in _TURNED},
}


def fields_of_xml(data: bytes, name: str, encoding: str = AUTO_ENCODING) -> tuple[dict[str, Any], Account]:
    """``boxes``, ``size`` when it is stated, and ``stated_image``: the file name as it stands; and the account of all
    elements. name: of the XML file.

    Numbers stay text; they are looked at when the row is parsed. encoding: that of ``--encoding``, for a file that is
    not in the one that it declares. Raises RowError (``bad_annotation``) with the line.
    """
    try:
        root = parse_xml(data, encoding)
    except XmlEncodingError as error:
        raise RowError("bad_annotation", f"{name}: {error}") from None
    except ValueError as error:
        raise RowError("bad_annotation", f"{name} is damaged, {error}") from None
    if root.name == "annotations":
        raise RowError("bad_annotation", f"{name} is an XML file of CVAT: give it as an --input of its own")
    if root.name != "annotation":
        raise RowError("bad_annotation", f"{name} is no annotation: its outer element is <{root.name}>")
    try:
        return _fields(root, name), account_of_xml(root)
    except ValueError as error:
        raise RowError("bad_annotation", f"{name}, {error}") from None


def account_of_xml(root: Element) -> Account:
    """Which elements below the outer one are read, each counted where it stands."""
    told = AccountBuilder()
    told.find(KEYS, sum(1 for _ in _below(root)))
    waiting = [(root, _READ)]
    while waiting:
        element, read = waiting.pop()
        if element.name == "object" and (shape := _shape_of(element)):
            read = {**read, shape: _SHAPES[shape]}
        for child in element.children:
            inner = {"name": {}, "value": {}} if _is_rotation(child) else read.get(child.name)
            if _is_deleted(child):
                told.name(KEYS, "of an object that was deleted", child.name, 1 + sum(1 for _ in _below(child)))
            elif inner is None:
                told.name(KEYS, f"not read of {element.name}", child.name)
                for deeper in _below(child):
                    told.name(KEYS, f"below what is not read of {element.name}", deeper.name)
            else:
                told.use(KEYS, "read")
                waiting.append((child, inner))
    return told.account()


def _below(element: Element) -> Iterator[Element]:
    waiting = list(element.children)
    while waiting:
        child = waiting.pop()
        yield child
        waiting += child.children


def _fields(root: Element, name: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "stated_image": root.text_of("filename") or "",
        "boxes": [_box(element, name) for element in root.all("object") if not _is_deleted(element)],
    }
    element = root.only("size")
    if element is not None:
        sides = (element.text_of(side) for side in ("width", "height"))
        size, note = stated_size(f"{name}:{element.line}", *sides)
        if size is not None:
            fields["size"] = size
        if note:
            fields["notes"] = [("size_mismatch", note)]
    return fields


def _box(element: Element, name: str) -> dict[str, Any]:
    """One object. Only its own box counts: those of its parts (head, hand ...) lie deeper."""
    box: dict[str, Any] = {"class": element.text_of("name"), "origin": f"{name}:{element.line}"}
    kind = _shape_of(element)
    shape = element.only(kind)
    if shape is None:
        pass  # which is told when the row is parsed
    elif kind == "bndbox":
        sides = [shape.text_of(side) for side in _SIDES]
        corners = corners_of_turned(sides, _rotation(element), has_size=False)
        box.update({"bbox": sides} if corners is None else {"polygons": [corners]})
    elif kind == "polygon":
        box["polygons"] = [[_number(point, axis, name) for point in shape.all("pt") for axis in ("x", "y")]]
    else:
        x, y, width, height, angle = (_number(shape, side, name) for side in _TURNED)
        upright = rectangle(x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        box["polygons"] = [turned(upright, math.degrees(angle), x, y)]
    told = {flag: element.text_of(flag) or "" for flag in _FLAGS}
    box.update({flag: _YES_NO.get(text.lower(), text) for flag, text in told.items() if text})
    if element.text_of("pose") not in (None, "", "Unspecified"):
        box["pose"] = element.text_of("pose")
    if element.all("part"):
        box["parts"] = len(element.all("part"))
    return box


def _shape_of(element: Element) -> str:
    return next((shape for shape in _SHAPES if element.all(shape)), "")


def _is_rotation(element: Element) -> bool:
    return element.name == "attribute" and element.text_of("name") == "rotation"


def _rotation(element: Element) -> str | None:
    """How CVAT turned an object: ``<attributes><attribute><name>rotation</name><value>30.0</value>``."""
    attributes = (one for own in element.all("attributes") for one in own.all("attribute") if _is_rotation(one))
    return next((attribute.text_of("value") for attribute in attributes), None)


def _is_deleted(element: Element) -> bool:
    return element.name == "object" and element.text_of("deleted") == "1"


def _number(element: Element, name: str, file: str) -> float:
    (number,) = numbers_of([element.text_of(name)], f"{file}:{element.line}: {name} of <{element.name}>")
    return number
