"""Import files of Vertex AI: CSV without a header, and JSON Lines (cloud.google.com/vertex-ai/docs/image-data).

CSV, with an optional ML_USE in front (TRAINING, VALIDATION, TEST, UNASSIGNED; TRAIN of AutoML):

``[ML_USE,]uri[,label,...]``                       one label, several, or none
``[ML_USE,]uri,label,x,y,x,y,x,y,x,y``             one box: its corners, clockwise from the upper left, as fractions

Two opposite corners are enough; the cells of the others are empty, those at the end of the line may be missing. Paths
in place of the uris are met where people fetched the images: lines with eight cells of corners, all fractions, or,
behind an ML_USE in capitals, with several labels.
JSON Lines: ``imageGcsUri`` with ``classificationAnnotation``, ``classificationAnnotations`` or
``boundingBoxAnnotations``. The JSON of protobuf leaves out numbers that are 0 (protobuf.dev/programming-guides/json),
so an ``xMin`` or ``yMin`` that is not there is 0, unless any line of the file writes one that is 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from beam_tfrecord.annotations.cells import is_number, real_number
from beam_tfrecord.core.account import KEYS, AccountBuilder, Decision
from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import RowError
from beam_tfrecord.manifests.base import Files, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.filenames import is_image_name
from beam_tfrecord.manifests.gathering import gather_by_image
from beam_tfrecord.manifests.split_names import is_split_word, split_of_cell
from beam_tfrecord.manifests.text.csv_text import csv_rows, sample_cells
from beam_tfrecord.manifests.text.json_text import Members, decode_json
from beam_tfrecord.manifests.text.lines import TextForm, TextLines, decode_head, look_at_text
from beam_tfrecord.manifests.text.row_fields import rejected
from beam_tfrecord.manifests.text.uri_text import folder_of
from beam_tfrecord.options.config import ManifestConfig

_ML_USE = "aiplatform.googleapis.com/ml_use"
_SAMPLE_ROWS = 200
_USES = ("TRAIN", "TRAINING", "VALIDATION", "VALIDATE", "TEST", "UNASSIGNED")
_ANNOTATIONS = re.compile(r"annotations?$", re.IGNORECASE)
# What is read of a line, and of the objects in it.
_READ: Mapping[str, Any] = {
    "imageGcsUri": {},
    "dataItemResourceLabels": {_ML_USE: {}},
    "classificationAnnotation": {"displayName": {}},
    "classificationAnnotations": {"displayName": {}},
    "boundingBoxAnnotations": {key: {} for key in ("displayName", "xMin", "yMin", "xMax", "yMax")},
}
_ZERO_SIDE = re.compile(r'"[xy]Min"\s*:\s*-?0(?:\.0*)?(?:[eE][-+]?\d+)?\s*[,}]')


class VertexFormat(ManifestFormat):
    """An import file for image classification (one label or several) or object detection."""

    name = "vertex"

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        """JSON with imageGcsUri, or lines whose first cell, behind ML_USE, is a gs:// uri or the path of an image."""
        text = decode_head(head)
        if text is None:
            return False
        lines = [line for line in text.splitlines()[:_SAMPLE_ROWS] if line.strip()]
        if not lines:
            return False
        if _is_json(lines):
            return True
        is_whole = text.endswith("\n") and len(lines) < _SAMPLE_ROWS
        rows = sample_cells(lines if is_whole else lines[:-1] or lines)
        rests = [split_off_use(row)[1] for row in rows if row]
        if not rests or not all(rest[:1] for rest in rests):
            return False
        return all(rest[0].startswith("gs://") for rest in rests) or _has_paths(rows, rests)

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        sample = look_at_text(files, uri, config.encoding)
        lines = [line for line in sample.text.splitlines()[:_SAMPLE_ROWS] if line.strip()]
        if _is_json(lines):
            task = "json"
        else:
            task = "boxes" if any(is_box_row(split_off_use(row)[1]) for row in sample_cells(lines)) else "labels"
        base = config.images if config.images is not None else folder_of(uri)
        return Source(uri, self.name, split, base, details={"task": task, "text": sample.form.to_details()})

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        source = piece.source
        lines = TextLines(files, source.uri, TextForm(**source.details["text"]))
        if source.details["task"] == "json":
            again = TextLines(files, source.uri, TextForm(**source.details["text"]))
            told = AccountBuilder()
            yield from _json_rows(lines, source.uri, _Sides(again), told)
            yield told.account()
        elif source.details["task"] == "boxes":
            yield from gather_by_image(_csv_rows(lines, source.uri, with_boxes=True))
        else:
            yield from _csv_rows(lines, source.uri, with_boxes=False)


def _has_paths(rows: Sequence[Sequence[str]], rests: Sequence[Sequence[str]]) -> bool:
    """Whether lines are of this form with paths of images. rests: the cells behind ML_USE."""
    if not all(is_image_name(rest[0].strip()) for rest in rests):
        return False
    boxes = [rest for rest in rests if len(rest) == 10 and is_box_row(rest)]
    if boxes:
        return all(0 <= real_number(cell) <= 1 for rest in boxes for cell in rest[2:] if cell.strip())
    has_use = all(row[0].strip() in _USES for row in rows if row)
    return has_use and any(len(rest) > 2 for rest in rests) and not any(is_number(c) for r in rests for c in r[1:])


def _is_json(lines: Sequence[str]) -> bool:
    """Whether any line of a sample is an object with an image: the first one may be damaged."""
    return any(line.lstrip().startswith("{") and '"imageGcsUri"' in line for line in lines)


# ---------------------------------------------------------------------------------------------------------------------
# CSV


def split_off_use(cells: Sequence[str]) -> tuple[str, list[str]]:
    """(split, the other cells). The first cell is ML_USE when it is one of its values, or empty before a second one."""
    if len(cells) > 1 and (is_split_word(cells[0]) or not cells[0].strip()):
        return split_of_cell(cells[0], is_ml_use=True), list(cells[1:])
    return "", list(cells)


def is_box_row(cells: Sequence[str]) -> bool:
    """Whether cells are uri, label, and corners: numbers or nothing, of which there are at least four."""
    corners = [cell for cell in cells[2:] if cell.strip()]
    return len(cells) <= 10 and len(corners) >= 4 and all(is_number(cell) for cell in corners)


def _csv_rows(lines: TextLines, uri: str, *, with_boxes: bool) -> Iterator[Row | RejectedRow]:
    for line, cells in csv_rows(lines):
        origin = f"{uri}:{line}"
        yield rejected(origin, "bad_row", cells) if isinstance(cells, str) else _csv_row(cells, origin, with_boxes)


def _csv_row(cells: Sequence[str], origin: str, with_boxes: bool) -> Row | RejectedRow:
    split, rest = split_off_use(cells)
    image = rest[0].strip() if rest else ""
    if not image:
        return rejected(origin, "bad_row", "the line names no image")
    fields: dict[str, Any] = {"image": image}
    if split:
        fields["split"] = split
    if not with_boxes and sum("." in cell and is_number(cell) for cell in rest[2:]) > 1:
        return rejected(
            origin, "bad_row", "the line seems to have a box, but not uri, label and all its corners", image
        )
    if not with_boxes:
        fields.update(_labels([cell.strip() for cell in rest[1:] if cell.strip()]))
        return Row(origin, fields)
    if len(rest) > 10:
        return rejected(origin, "bad_row", f"the line has {len(cells)} cells, more than a box has", image)
    fields["boxes"] = []
    if any(cell.strip() for cell in rest[1:]):
        corners = _corners([*rest[2:], *[""] * (10 - len(rest))])
        fields["boxes"].append(
            {"class": rest[1] if len(rest) > 1 else "", "bbox": corners, "normalized": True, "origin": origin}
        )
    return Row(origin, fields)


def _labels(names: Sequence[str]) -> dict[str, Any]:
    if not names:
        return {}
    return {"label": names[0] if len(names) == 1 else list(names)}


def _corners(cells: Sequence[str]) -> list[str]:
    """xmin, ymin, xmax, ymax from the eight cells of four corners, of which two opposite ones are there."""
    x1, y1, x2, y2, x3, y3, x4, y4 = cells
    first = [x1, y1, x3, y3]
    second = [x4, y2, x2, y4]
    return second if any(not cell.strip() for cell in first) and all(cell.strip() for cell in second) else first


# ---------------------------------------------------------------------------------------------------------------------
# JSON Lines


@dataclass
class _Sides:
    """What a side that is not there means, in the whole file. lines: of the file, which are read when one is met."""

    lines: TextLines
    absent: int = 0
    _written_in: int | None = field(default=None, repr=False)

    @property
    def written_in(self) -> int:
        """The first line that writes a side of 0; 0 when none does."""
        if self._written_in is None:
            numbered = enumerate(self.lines, start=1)
            self._written_in = next((number for number, line in numbered if _ZERO_SIDE.search(line)), 0)
        return self._written_in

    def of(self, annotation: Members, side: str) -> Any:
        """One side as it stands, or what stands for it when it is not there."""
        if side in annotation.value or side not in ("xMin", "yMin"):
            return annotation.raw(side)
        self.absent += 1
        return None if self.written_in else 0

    def decided(self) -> Iterator[Decision]:
        """What was made of them, if any was met."""
        if self.absent:
            told = f"line {self.written_in} writes" if self.written_in else "as in the JSON of protobuf no line writes"
            value = "missing" if self.written_in else "0"
            yield Decision(f"xMin and yMin that are not there ({self.absent:,})", value, f"{told} one that is 0")


def _json_rows(lines: TextLines, uri: str, sides: _Sides, told: AccountBuilder) -> Iterator[Item]:
    for number, line, damage in lines.numbered():
        origin = f"{uri}:{number}"
        yield rejected(origin, "bad_row", damage) if damage else _json_row(line, origin, sides, told)
    yield from sides.decided()


def tell_keys(value: Any, told: AccountBuilder) -> None:
    """Which keys of the object in a line are read, each counted where it stands."""
    told.find(KEYS, _count_keys(value))
    waiting: list[tuple[Any, str, Mapping[str, Any]]] = [(value, "a line", _READ)]
    while waiting:
        part, where, read = waiting.pop()
        if isinstance(part, list) and (deeper := _count_keys(part)):
            told.name(KEYS, f"below what is not read of {where}", where, deeper)
        for key, inner in part.items() if isinstance(part, Mapping) else ():
            if key not in read:
                is_like = where == "a line" and _ANNOTATIONS.search(key) is not None
                told.name(KEYS, "looks like annotations" if is_like else f"not read of {where}", key)
                if deeper := _count_keys(inner):
                    told.name(KEYS, f"below what is not read of {where}", key, deeper)
                continue
            told.use(KEYS, "read")
            parts = inner if isinstance(inner, list) else [inner]
            waiting += [(item, key, read[key]) for item in parts]


def _count_keys(value: Any) -> int:
    count, waiting = 0, [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            count += len(part)
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return count


def _json_row(line: str, origin: str, sides: _Sides, told: AccountBuilder) -> Row | RejectedRow:
    try:
        value = decode_json(line)
    except ValueError as error:
        return rejected(origin, "bad_row", f"the line is no JSON: {error}")
    tell_keys(value, told)
    image = ""
    try:
        members = Members(value, "", "bad_row")
        image = members.text("imageGcsUri")
        if not image.strip():
            raise RowError("bad_row", "the line has no imageGcsUri")
        return Row(origin, {"image": image, **_json_fields(members, origin, sides)})
    except RowError as error:
        return rejected(origin, error.code, error.message, image)


def _json_fields(members: Members, origin: str, sides: _Sides) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    resources = members.object("dataItemResourceLabels")
    split = split_of_cell(resources.text(_ML_USE), is_ml_use=True) if resources is not None else ""
    if split:
        fields["split"] = split
    single, several = members.object("classificationAnnotation"), members.objects("classificationAnnotations")
    if single is not None and several is not None:
        raise RowError(
            "bad_row", "the line has classificationAnnotation and classificationAnnotations: keep one of them"
        )
    if single is not None:
        fields["label"] = single.name("displayName")
    if several is not None:
        fields["label"] = [annotation.name("displayName") for annotation in several]
    boxes = members.objects("boundingBoxAnnotations")
    if boxes is not None:
        fields["boxes"] = [
            {
                "class": annotation.name("displayName"),
                "bbox": [sides.of(annotation, side) for side in ("xMin", "yMin", "xMax", "yMax")],
                "normalized": True,
                "origin": f"{origin}:{annotation.where}",
            }
            for annotation in boxes
        ]
    return fields
