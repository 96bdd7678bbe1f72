"""The rows of tables: one for each line, or, where each line is one box, one for each image.

The sides of a box are in columns of their own or in one, or a cell holds a list of boxes: the style of the raccoon
dataset and of the Object Detection API's tutorials (filename, width, height, class, xmin, ymin, xmax, ymax), of
makesense (bbox_x, bbox_y, bbox_width, bbox_height), of the VGG Image Annotator, and of Hugging Face (a column
``objects``). Lines of one image may be anywhere in the file, and what the numbers of the boxes are is known when all of
them were seen, so such a table is read in one piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from beam_tfrecord.annotations.cells import is_blank, shown
from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import ConfigError, ElementError, RowError
from beam_tfrecord.manifests.base import Files, Item
from beam_tfrecord.manifests.box_cells import (
    FOUR,
    attributes_of,
    boxes_of_cell,
    boxes_of_objects,
    list_of_cell,
    region_of,
)
from beam_tfrecord.manifests.box_reading import BoxReading
from beam_tfrecord.manifests.picture_labels import stated_size
from beam_tfrecord.manifests.text.box_columns import compact
from beam_tfrecord.manifests.text.roles import Roles, normal
from beam_tfrecord.manifests.text.row_fields import canonical_fields, rejected, row_of

_SIZES = (("width", "height"), ("image_width", "image_height"), ("img_width", "img_height"))
SIZE_COLUMNS = frozenset(name for pair in _SIZES for name in pair)


def rows_of_cells(
    table: Iterable[tuple[str, Mapping[str, Any] | str]], roles: Roles, files: Files, base: str
) -> Iterator[Item]:
    """The rows of a table: one for each line, or, where each line is one box, one for each image.

    table: (origin, cells by column) of each line; for a line that is none, a text that says why. base: the folder that
    relative paths start from.
    """
    if roles.has_boxes:
        items = group_boxes(table, roles)
    else:
        items = (
            rejected(origin, "bad_row", cells) if isinstance(cells, str) else row_of(origin, cells, roles)
            for origin, cells in table
        )
    return _with_mask_places(items, files, base) if roles.mask is not None else items


def _with_mask_places(items: Iterator[Item], files: Files, base: str) -> Iterator[Item]:
    """The same items, paths of masks joined to the folder."""
    for item in items:
        if isinstance(item, Row) and item.fields.get("mask"):
            try:
                item = item._replace(fields={**item.fields, "mask": files.join(base, item.fields["mask"])})
            except ValueError as error:  # it leads out of a bucket
                item = rejected(item.origin, "unsafe_path", f"the mask: {error}", source_rows=item.source_rows)
        yield item


def group_boxes(rows: Iterable[tuple[str, Mapping[str, Any] | str]], roles: Roles) -> Iterator[Item]:
    """Rows with one item per image, for lines with one box each.

    rows: (origin, cells by column) of each line, in the order of the file; for a line that is none, a text that says
    why, which becomes a reject. roles: of the columns; ``roles.label`` is the class of the box. All lines of the table
    must be given to one call. Raises ConfigError when no column holds the image, and AmbiguousManifestError when the
    boxes can be read in more than one way.
    """
    if roles.image is None:
        raise ConfigError(
            "a table of boxes needs a column with the image that each box is on: name it with --image_column"
        )
    assert roles.boxes is not None
    reading = BoxReading(roles.boxes, roles.label if roles.boxes.kind == "via" else None)
    lines = (
        rejected(origin, "bad_row", cells) if isinstance(cells, str) else box_row(origin, cells, roles)
        for origin, cells in rows
    )
    yield from reading.gathered(lines)


def box_row(origin: str, cells: Mapping[str, Any], roles: Roles) -> Row | RejectedRow:
    """The row of one line: the image, its stated size, and its boxes, which are not yet understood."""
    try:
        # The id of a line that is one box is not that of the image.
        fields = canonical_fields(cells, replace(roles, label=None, id=None))
        boxes, notes = _boxes(cells, roles)
    except ElementError as error:
        shown = cells.get(roles.image) if roles.image else None
        return rejected(origin, error.code, error.message, shown if isinstance(shown, str) else "")
    columns = roles.boxes.names if roles.boxes else ()
    by_name = {normal(name): cell for name, cell in reversed(list(cells.items())) if name not in columns}
    attributes = attributes_of(by_name) if len(boxes) == 1 else {}
    fields["boxes"] = [{**box, **attributes, "origin": origin} for box in boxes]
    told = [("annotation_ignored", f"{origin}: {note}") for note in notes]
    sides = next((pair for pair in _SIZES if by_name.keys() >= set(pair)), None)
    size, odd = stated_size(origin, by_name[sides[0]], by_name[sides[1]]) if sides is not None else (None, "")
    if size is not None:
        fields["size"] = size
    if odd:
        told.append(("size_mismatch", odd))
    if told:
        fields["notes"] = told
    return Row(origin, fields)


def _boxes(cells: Mapping[str, Any], roles: Roles) -> tuple[list[dict[str, Any]], list[str]]:
    """(boxes with their classes, what else is to be told) of one line. Raises RowError."""
    columns = roles.boxes
    assert columns is not None
    values = [cells.get(name) for name in columns.names]
    if columns.kind == "via":
        by_name = {compact(name): cell for name, cell in cells.items()}
        box, note = region_of(values[0], by_name.get("regionattributes"), columns.names[0])
        return [box] if box is not None else [], [note] if note else []
    if columns.kind == "objects":
        return boxes_of_objects(values[0], columns.names[0]), []
    if columns.kind == "cell":
        boxes, is_list = boxes_of_cell(values[0], columns.names[0])
    elif all(is_blank(value) for value in values):
        boxes, is_list = [], False
    else:
        boxes, is_list = [{FOUR: values} if columns.kind == "columns" else {"polygons": [values]}], False
    if roles.label is None:
        return boxes, []
    label = cells.get(roles.label)
    if not boxes:
        blank = is_blank(label) or is_list
        return [], [] if blank else [f"the line has the class {shown(label)} and no box"]
    names = list_of_cell(label) if is_list else None
    if names is not None and len(names) != len(boxes):
        raise RowError("bad_row", f"the line has {len(boxes)} boxes and {len(names)} classes (column {roles.label!r})")
    classes = names if names is not None else [label] * len(boxes)
    return [{**box, "class": name} for box, name in zip(boxes, classes, strict=True)], []
