"""JSON Lines: one JSON object per line, its keys being the columns (https://jsonlines.org).

The cell of the image is a path or a uri, or the picture itself, as a data URI or base64. What travels of such a picture
is where its line lies, as of the member of an archive.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Any

from beam_tfrecord.core.elements import Member
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.base import Files, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.columns import LateColumns, told_of_table
from beam_tfrecord.manifests.tables import rows_of_cells
from beam_tfrecord.manifests.text.csv_text import first_line
from beam_tfrecord.manifests.text.cuts import BLOCK_BYTES, PIECE_BYTES, text_pieces
from beam_tfrecord.manifests.text.inline_images import JSON_PICTURE, InlineImage, holds_picture
from beam_tfrecord.manifests.text.json_text import decode_json
from beam_tfrecord.manifests.text.lines import TextForm, TextLines, decode_head, look_at_text
from beam_tfrecord.manifests.text.roles import Roles, check_has_image, find_roles, with_metadata_columns
from beam_tfrecord.manifests.text.uri_text import folder_of, name_of
from beam_tfrecord.options.config import ManifestConfig

Objects = Iterator[tuple[str, dict[str, Any] | str]]
_SAMPLE_ROWS = 1_000


class JsonlFormat(ManifestFormat):
    """One object per line. Columns are the keys of the first thousand objects; a missing key is an empty cell."""

    name = "jsonl"
    suffixes = (".jsonl", ".ndjson")

    def __init__(self, piece_bytes: int = PIECE_BYTES, block_bytes: int = BLOCK_BYTES) -> None:
        self._piece_bytes = piece_bytes
        self._block_bytes = block_bytes

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        """Whether the file begins with a whole object on a line of its own, or with an array of objects."""
        text = (decode_head(head) or "").lstrip()
        if text.startswith("["):
            return text[1:].lstrip().startswith("{")
        return isinstance(_value(text.partition("\n")[0]), dict)

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        sample = look_at_text(files, uri, config.encoding)
        if sample.text.lstrip().startswith("["):
            if all(f'"{key}"' in sample.text for key in ("image_id", "category_id", "score")):
                raise ManifestError(
                    f"{uri} seems to hold the results of a detector, as COCO's evaluation takes them, which name no "
                    "images: give the file of the annotations (with images, annotations and categories)"
                )
            raise ManifestError(
                f"{uri} is one JSON array: write one object per line instead, for instance with: jq -c '.[]'"
            )
        lines = sample.text.split(sample.form.newline)
        lines = lines if sample.is_whole else lines[:-1]
        values = [_value(line) for line in lines[:_SAMPLE_ROWS] if line.strip()]
        objects = [value for value in values if isinstance(value, dict)]
        first = first_line(sample.text).strip()
        if not objects:
            why = f" ({values[0]})" if values and isinstance(values[0], ValueError) else ""
            raise ManifestError(f"{uri}: no line is a JSON object; the first one is: {first[:200]}{why}")
        header = tuple(dict.fromkeys(key for value in objects for key in value))
        roles = find_roles(header, config, uri, lambda name: (value.get(name) for value in objects))
        roles = with_metadata_columns(roles, header, config, uri)
        check_has_image(roles, header, config, uri, first)
        base = config.images if config.images is not None else folder_of(uri)
        details = {"text": sample.form.to_details(), "roles": roles.to_details(), "header": header}
        return Source(uri, self.name, split, base, details=details, **told_of_table(header, roles, config))

    def pieces(self, files: Files, source: Source) -> Iterator[Piece]:
        roles = Roles.from_details(source.details["roles"])
        if roles.is_whole:
            yield Piece(source)
            return
        form = TextForm(**source.details["text"])
        yield from text_pieces(files, source, form, None, self._piece_bytes, self._block_bytes)

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        roles = Roles.from_details(piece.source.details["roles"])
        late = LateColumns(piece.source.details["header"], roles)
        objects = late.watch(json_objects(files, piece, roles.image))
        yield from rows_of_cells(objects, roles, files, piece.source.base)
        yield late.account()


def json_objects(files: Files, piece: Piece, image: str | None = None) -> Objects:
    """(origin, object) of each line that is not blank; for one that holds none, a text that says why.

    image: the column whose cell, where it is a picture itself, becomes an InlineImage.
    """
    uri = piece.source.uri
    form = TextForm(**piece.source.details["text"])
    lines = TextLines(files, uri, form, piece.start, piece.end)
    end = piece.start + (len(codecs.BOM_UTF8) if form.encoding == "utf-8-sig" and piece.start == 0 else 0)
    for number, line in enumerate(lines, start=piece.first_line):
        start, end = end, end + (len(line) if line.isascii() else len(line.encode("utf-8")))
        if lines.had_nul:
            end += lines.nuls
            lines.nuls = 0
            lines.had_nul = False
            yield f"{uri}:{number}", "the line holds NUL characters: the file is damaged at this place"
        elif line.strip():
            value = _value(line)
            if isinstance(value, dict) and image is not None and holds_picture(value.get(image)):
                yield f"{uri}:{number}", _with_inline_image(value, image, uri, number, form, start, end - start)
            elif isinstance(value, dict):
                yield f"{uri}:{number}", value
            else:
                yield f"{uri}:{number}", _no_object(value)


def _with_inline_image(
    value: dict[str, Any], image: str, uri: str, number: int, form: TextForm, start: int, length: int
) -> dict[str, Any] | str:
    if form.encoding not in ("utf-8", "utf-8-sig"):
        return f"the line holds a picture, which is read from UTF-8 files only: this one is {form.encoding}"
    container = Member(uri, (), 0, -1, form.compression) if form.compression else None
    member = Member(uri, (f"line {number}", image), start, length, JSON_PICTURE, container)
    return {**value, image: InlineImage(f"{name_of(uri)}:{number}", member)}


def _value(line: str) -> Any:
    """The value of a line; a ValueError (not raised) for one that is no JSON."""
    try:
        return decode_json(line)
    except ValueError as error:
        return error


def _no_object(value: Any) -> str:
    if isinstance(value, ValueError):
        return f'the line is no JSON: {value}; each line must be one object such as {{"image": ..., "label": ...}}'
    kind = {list: "an array", str: "a text", bool: "true or false", type(None): "null"}.get(type(value), "a number")
    return f'the line is {kind}; each line must be one object such as {{"image": ..., "label": ...}}'
