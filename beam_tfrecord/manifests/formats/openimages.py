"""Box annotations of Open Images: CSV with one line per box (storage.googleapis.com/openimages/web/download_v7.html).

Columns ImageID, Source, LabelName, Confidence, XMin, XMax, YMin, YMax, IsOccluded, IsTruncated, IsGroupOf, IsDepiction,
IsInside; coordinates are fractions, flags 0, 1 or -1 (unknown). The image is ``ImageID.jpg`` below --images. LabelName
is a code such as /m/011k07; a ``class-descriptions`` CSV beside the file gives its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from beam_tfrecord.core.account import COLUMNS, AccountBuilder
from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.base import Files, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.gathering import gather_by_image
from beam_tfrecord.manifests.siblings import parent
from beam_tfrecord.manifests.text.csv_rows import csv_rows, sample_cells
from beam_tfrecord.manifests.text.lines import TextForm, TextLines, decode_head, look_at_text, split_lines
from beam_tfrecord.manifests.text.row_fields import rejected
from beam_tfrecord.manifests.text.uri_text import folder_of
from beam_tfrecord.options.config import ManifestConfig

_SIDES = ("XMin", "YMin", "XMax", "YMax")
_NEEDED = ("ImageID", "LabelName", *_SIDES)
_ATTRIBUTES = {
    "Confidence": "confidence",
    "IsOccluded": "occluded",
    "IsTruncated": "truncated",
    "IsGroupOf": "group_of",
    "IsDepiction": "depiction",
    "IsInside": "inside",
}
_DESCRIPTIONS = "class-descriptions"


class OpenImagesFormat(ManifestFormat):
    """A box CSV of Open Images."""

    name = "openimages"

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        text = decode_head(head)
        return text is not None and set(_NEEDED) <= set(text.split("\n", 1)[0].strip().split(","))

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        sample = look_at_text(files, uri, config.encoding)
        lines = [line for line in split_lines(sample.text) if line.strip()]
        header = [cell.strip() for cell in next(iter(sample_cells(lines[:1])), [])]
        absent = [name for name in _NEEDED if name not in header]
        if absent:
            raise ManifestError(f"{uri} is no box file of Open Images: it has no column {', '.join(absent)}")
        repeated = [name for name in header if header.count(name) > 1]
        if repeated:
            raise ManifestError(f"{uri}: two columns are called {repeated[0]}: take one of them out")
        base = config.images if config.images is not None else folder_of(uri)
        details = {
            "header": tuple(header),
            "text": sample.form.to_details(),
            "names": _class_names(files, parent(uri), config.encoding),
        }
        told = AccountBuilder()
        told.find(COLUMNS, len(header))
        for name in header:
            use = "image" if name == "ImageID" else "label" if name == "LabelName" else _ATTRIBUTES.get(name)
            use = "box" if name in _SIDES else use
            if use:
                told.use(COLUMNS, use)
            else:
                told.name(COLUMNS, "not used", name)
        return Source(uri, self.name, split, base, details=details, account=told.account())

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        yield from gather_by_image(_box_rows(files, piece.source))


def _box_rows(files: Files, source: Source) -> Iterator[Row | RejectedRow]:
    header, names = source.details["header"], source.details["names"]
    rows = csv_rows(TextLines(files, source.uri, TextForm(**source.details["text"])))
    next(rows, None)  # the header
    for line, cells in rows:
        origin = f"{source.uri}:{line}"
        if isinstance(cells, str):
            yield rejected(origin, "bad_row", cells)
        elif len(cells) == len(header):
            yield _box_row(dict(zip(header, cells, strict=True)), origin, names)
        else:
            place = header.index("ImageID")
            image = f"{cells[place].strip()}.jpg" if place < len(cells) else ""
            message = f"the line has {len(cells)} cells where the header has {len(header)}"
            yield rejected(origin, "bad_row", message, image)


def _box_row(cells: Mapping[str, str], origin: str, names: Mapping[str, str]) -> Row | RejectedRow:
    image = cells["ImageID"].strip()
    if not image:
        return rejected(origin, "bad_row", "the line has no ImageID")
    code = cells["LabelName"].strip()
    box: dict[str, Any] = {
        "class": names.get(code, code),
        "bbox": [cells[side] for side in _SIDES],
        "normalized": True,
        "origin": origin,
    }
    box.update({name: cells[column] for column, name in _ATTRIBUTES.items() if cells.get(column)})
    return Row(origin, {"image": f"{image}.jpg", "id": image, "boxes": [box]})


def _class_names(files: Files, folder: str, encoding: str) -> dict[str, str]:
    """Names by code, from the file of descriptions for boxes, else from any other; empty when there is none."""
    found = [name for name in files.list_folder(folder) if _DESCRIPTIONS in name and name.endswith(".csv")]
    chosen = min(found, key=lambda name: ("boxable" not in name, name), default=None)
    if chosen is None:
        return {}
    uri = files.join(folder, chosen)
    lines = TextLines(files, uri, look_at_text(files, uri, encoding).form)
    pairs = [cells for _, cells in csv_rows(lines) if not isinstance(cells, str) and len(cells) == 2]
    return {code.strip(): name.strip() for code, name in pairs if code.strip() != "LabelName"}
