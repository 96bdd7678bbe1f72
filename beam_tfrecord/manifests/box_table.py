"""Tables with one line per box: columns xmin, ymin, xmax, ymax beside the image and its class.

The style of the raccoon dataset and of the Object Detection API's tutorials: filename, width, height, class, xmin,
ymin, xmax, ymax. Lines of one image may be anywhere in the file, so such a table is read in one piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from beam_tfrecord.annotations.cells import is_blank, real_number, whole_number
from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import ConfigError, ElementError
from beam_tfrecord.manifests.base import Item
from beam_tfrecord.manifests.gathering import gather_by_image
from beam_tfrecord.manifests.text.roles import BOX_COLUMNS, Roles, normal
from beam_tfrecord.manifests.text.row_fields import canonical_fields, rejected

# Columns of a box's attributes as people call them.
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
_SIZES = (("width", "height"), ("image_width", "image_height"), ("img_width", "img_height"))


def group_boxes(rows: Iterable[tuple[str, Mapping[str, Any] | str]], roles: Roles) -> Iterator[Item]:
    """Rows with one item per image, for lines with one box each.

    rows: (origin, cells by column) of each line, in the order of the file; for a line that is none, a text that says
    why, which becomes a reject. roles: of the columns; ``roles.label`` is the class of the box. All lines of the table
    must be given to one call. Raises ConfigError when no column holds the image.
    """
    if roles.image is None:
        raise ConfigError(
            "a table of boxes needs a column with the image that each box is on: name it with --image_column"
        )
    return gather_by_image(
        rejected(origin, "bad_row", cells) if isinstance(cells, str) else box_row(origin, cells, roles)
        for origin, cells in rows
    )


def box_row(origin: str, cells: Mapping[str, Any], roles: Roles) -> Row | RejectedRow:
    """The row of one line: the image, its stated size, and the box, or none when all four cells are empty.

    Numbers are looked at when the row is parsed; only whether they are fractions is decided here: a box within (0, 0)
    and (1, 1) is read as fractions of the image, because no box of pixels is that small.
    """
    try:
        # The id of a line that is one box is not that of the image.
        fields = canonical_fields(cells, replace(roles, label=None, id=None))
    except ElementError as error:
        shown = cells.get(roles.image) if roles.image else None
        return rejected(origin, error.code, error.message, shown if isinstance(shown, str) else "")
    by_name = {normal(name): cell for name, cell in reversed(list(cells.items()))}
    corners = [by_name.get(name) for name in BOX_COLUMNS]
    fields["boxes"] = []
    if not all(is_blank(cell) for cell in corners):
        box: dict[str, Any] = {"bbox": corners, "origin": origin}
        if _are_fractions(corners):
            box["normalized"] = True
        if roles.label is not None:
            box["class"] = cells.get(roles.label)
        box.update(_attributes(by_name))
        fields["boxes"].append(box)
    size = _stated_size(by_name)
    if size is not None:
        fields["size"] = size
    return Row(origin, fields)


def _are_fractions(corners: Iterable[Any]) -> bool:
    try:
        return all(0 <= real_number(cell) <= 1 for cell in corners)
    except ValueError:
        return False


def _attributes(by_name: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for attribute, names in _ATTRIBUTES.items():
        cell = next((by_name[name] for name in names if name in by_name), None)
        if not is_blank(cell):
            found[attribute] = cell
    return found


def _stated_size(by_name: Mapping[str, Any]) -> tuple[int, int] | None:
    for pair in _SIZES:
        try:
            width, height = (whole_number(by_name[name]) for name in pair)
        except (KeyError, ValueError):
            continue
        if width > 0 and height > 0:
            return width, height
    return None
