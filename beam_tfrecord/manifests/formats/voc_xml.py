"""A Pascal VOC annotation as canonical fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from beam_tfrecord.core.account import KEYS, Account, AccountBuilder
from beam_tfrecord.errors import RowError
from beam_tfrecord.manifests.text.xml_tree import Element, XmlEncodingError, parse_xml
from beam_tfrecord.options.values import AUTO_ENCODING

_SIDES = ("xmin", "ymin", "xmax", "ymax")
_FLAGS = ("difficult", "truncated", "occluded")
# What is read of the outer element, and of those below it.
_READ: Mapping[str, Any] = {
    "filename": {},
    "size": {"width": {}, "height": {}},
    "object": {"bndbox": {side: {} for side in _SIDES}, **{name: {} for name in ("name", "pose", "part", *_FLAGS)}},
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
        for child in element.children:
            inner = read.get(child.name)
            if inner is None:
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
