"""From the cells of a table to a row with canonical fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from beam_tfrecord.annotations.cells import is_blank, plain, text_of
from beam_tfrecord.core.elements import Finding, RejectedRow, Row
from beam_tfrecord.errors import ElementError, RowError
from beam_tfrecord.manifests.split_names import split_of_cell
from beam_tfrecord.manifests.text.inline_images import InlineImage
from beam_tfrecord.manifests.text.roles import Roles, is_marked

STAGE = "manifest"


class NoRow(str):
    """Why a line is no row. image: its image cell, as far as it can be told in spite of that. code: of the reject."""

    image: str
    code: str

    def __new__(cls, reason: str, image: str, code: str = "bad_row") -> NoRow:
        made = super().__new__(cls, reason)
        made.image, made.code = image, code
        return made


def rejected(origin: str, code: str, message: str, uri: str = "", source_rows: int = 1) -> RejectedRow:
    """A row that cannot be one."""
    if isinstance(message, NoRow):
        uri, code = uri or message.image, message.code
        message = str(message)  # what travels is a plain text
    return RejectedRow(Finding(origin, uri, STAGE, code, message), source_rows)


def row_of(origin: str, cells: Mapping[str, Any], roles: Roles) -> Row | RejectedRow:
    """The row that some cells make, or the reject that says why they make none."""
    try:
        return Row(origin, canonical_fields(cells, roles))
    except ElementError as error:
        reject = rejected(origin, error.code, error.message, _shown(cells.get(roles.image) if roles.image else None))
        column = dict(roles.texts).get("sequence")
        return replace(reject, sequence=text_of(cells.get(column)) or None) if column else reject


def canonical_fields(cells: Mapping[str, Any], roles: Roles) -> dict[str, Any]:
    """The fields that the columns of a table give, by canonical name.

    An absent cell counts as an empty one. An empty split or group is left out; an empty label stays, so that it is
    told, and so does an empty mask, which says that the image has none. Raises RowError for a cell that can be no path
    or label, and for an empty image cell.
    """
    fields: dict[str, Any] = {}
    if roles.image is not None:
        cell = cells.get(roles.image)
        if isinstance(cell, InlineImage):
            fields.update(image=cell.name, filename=cell.filename or cell.name, member=cell.member)
            if cell.filename:  # which others may have as well
                fields["id"] = cell.name
        else:
            image = _text(cell, roles.image)
            if not image or image.isspace():
                raise RowError("bad_row", f"the image cell (column {roles.image!r}) is empty")
            fields["image"] = image
    if roles.label is not None:
        fields["label"] = _label(cells.get(roles.label), roles.label)
    elif roles.classes:
        names = [column.strip() for column in roles.classes if is_marked(cells.get(column), column)]
        fields["label"] = names[0] if len(names) == 1 else names
    if roles.split is not None:
        split = split_of_cell(_text(cells.get(roles.split), roles.split), roles.is_ml_use)
        if split:
            fields["split"] = split
    if roles.id is not None:
        fields["id"] = _text(cells.get(roles.id), roles.id)
    if roles.captions is not None:
        fields["captions"] = [text for text in list_of(cells.get(roles.captions)) if not is_blank(text)]
    for part, column in roles.texts:
        if isinstance(cell := cells.get(column), InlineImage):
            fields.update({part: cell.name, f"{part}_member": cell.member})
            continue
        text = _text(cell, column)
        if part == "mask":
            fields[part] = text if text.strip() else ""
        elif text:
            fields[part] = text
    if roles.columns:
        fields["columns"] = {name: cells.get(column) for name, column in roles.columns}
    if roles.asked:
        fields["asked"] = {name: cells.get(column) for name, column in roles.asked}
    return fields


def list_of(cell: Any) -> list[Any]:
    """The items of a cell that is a list; one item of any other."""
    cell = plain(cell)
    return list(cell) if isinstance(cell, list | tuple) else [cell]


def _text(cell: Any, column: str) -> str:
    """A cell as text, an empty one as ''. Raises RowError for what is no single text."""
    if type(cell) is str:
        text = cell
    elif is_blank(cell):
        return ""
    else:
        spelled = text_of(cell.__fspath__() if hasattr(cell, "__fspath__") else cell)
        if spelled is None:
            kind = type(cell).__name__
            hint = ": only paths and uris of images can be used, not their bytes" if isinstance(cell, Mapping) else ""
            raise RowError("bad_row", f"column {column!r} holds a {kind} where one text is expected{hint}")
        text = spelled
    return text if text.isascii() else _encodable(text, column)


def _encodable(text: str, column: str) -> str:
    """The text itself. Raises RowError when UTF-8 cannot hold it: JSON can spell half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RowError("bad_row", f"column {column!r}: {text!r} is no valid text ({error.reason})") from None
    return text


def _label(cell: Any, column: str) -> str | list[str]:
    if type(cell) is str:
        return _text(cell, column)
    cell = plain(cell)
    if isinstance(cell, list | tuple):
        return [_text(item, column) for item in cell]
    return _text(cell, column)


def _shown(cell: Any) -> str:
    return cell.name if isinstance(cell, InlineImage) else cell if isinstance(cell, str) else ""
