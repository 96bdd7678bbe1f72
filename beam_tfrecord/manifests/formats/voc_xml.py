"""A Pascal VOC annotation as canonical fields."""

from __future__ import annotations

from typing import Any

from beam_tfrecord.errors import RowError
from beam_tfrecord.manifests.text.xml_tree import Element, XmlEncodingError, parse_xml
from beam_tfrecord.options.values import AUTO_ENCODING

_SIDES = ("xmin", "ymin", "xmax", "ymax")
_FLAGS = ("difficult", "truncated", "occluded")


def fields_of_xml(data: bytes, name: str, encoding: str = AUTO_ENCODING) -> dict[str, Any]:
    """``boxes``, ``size`` when it is stated, and ``stated_image``: the file name as it stands. name: of the XML file.

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
        return _fields(root, name)
    except ValueError as error:
        raise RowError("bad_annotation", f"{name}, {error}") from None


def _fields(root: Element, name: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "stated_image": root.text_of("filename") or "",
        "boxes": [_box(element, name) for element in root.all("object")],
    }
    size = _size(root.only("size"))
    if size is not None:
        fields["size"] = size
    return fields


def _size(element: Element | None) -> tuple[int, int] | None:
    """(width, height); None when they are absent, no numbers, or 0, as tools write that do not know them."""
    if element is None:
        return None
    try:
        width, height = (int(float(element.text_of(side) or "")) for side in ("width", "height"))
    except (ValueError, OverflowError):
        return None
    return (width, height) if width > 0 and height > 0 else None


def _box(element: Element, name: str) -> dict[str, Any]:
    """One object. Only its own box counts: those of its parts (head, hand ...) lie deeper."""
    box: dict[str, Any] = {"class": element.text_of("name"), "origin": f"{name}:{element.line}"}
    corners = element.only("bndbox")
    if corners is not None:
        box["bbox"] = [corners.text_of(side) for side in _SIDES]
    box.update({flag: element.text_of(flag) for flag in _FLAGS if element.text_of(flag)})
    if element.text_of("pose") not in (None, "", "Unspecified"):
        box["pose"] = element.text_of("pose")
    if element.all("part"):
        box["parts"] = len(element.all("part"))
    return box
