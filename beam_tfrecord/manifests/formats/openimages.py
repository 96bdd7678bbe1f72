"""Annotations of Open Images: CSV with one line per box, label or mask
(storage.googleapis.com/openimages/web/download_v7.html).

Boxes: ImageID, Source, LabelName, Confidence, XMin, XMax, YMin, YMax, IsOccluded, IsTruncated, IsGroupOf, IsDepiction,
IsInside; coordinates are fractions, flags 0, 1 or -1 (unknown). Labels of images: ImageID, Source, LabelName and
Confidence, which is 0 where people found that the class is not there. Masks: MaskPath, ImageID, LabelName, BoxID,
BoxXMin ..., a PNG for each object whose pixels that are not 0 belong to it; the box is the one that it was drawn in,
and that of the object is around the mask. The image is ``ImageID.jpg`` below --images. LabelName is a code such as
/m/011k07; a ``class-descriptions`` CSV beside the file gives its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from beam_tfrecord.annotations.cells import real_number, shown
from beam_tfrecord.core.account import ANNOTATIONS, COLUMNS, AccountBuilder, Decision
from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import ManifestError, RowError
from beam_tfrecord.manifests.base import Files, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.documents import NamedImages, images_below
from beam_tfrecord.manifests.gathering import gather_by_image
from beam_tfrecord.manifests.outlines import mask_of_png, runs_of
from beam_tfrecord.manifests.siblings import in_parallel, parent
from beam_tfrecord.manifests.text.csv_text import csv_rows, sample_cells
from beam_tfrecord.manifests.text.lines import TextForm, TextLines, decode_head, look_at_text, split_lines
from beam_tfrecord.manifests.text.row_fields import rejected
from beam_tfrecord.manifests.text.uri_text import folder_of
from beam_tfrecord.options.config import ManifestConfig

_SIDES = ("XMin", "YMin", "XMax", "YMax")
_ID, _CLASS, _MASK = "ImageID", "LabelName", "MaskPath"
BOXES, LABELS, MASKS = "boxes", "labels", "masks"
_NEEDED = {BOXES: (_ID, _CLASS, *_SIDES), MASKS: (_MASK, _ID, _CLASS), LABELS: (_ID, _CLASS, "Confidence")}
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
    """A CSV of Open Images."""

    name = "openimages"

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        text = decode_head(head)
        return text is not None and _kind(text.split("\n", 1)[0].strip().split(",")) is not None

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        sample = look_at_text(files, uri, config.encoding)
        lines = [line for line in split_lines(sample.text) if line.strip()]
        header = [cell.strip() for cell in next(iter(sample_cells(lines[:1])), [])]
        kind = _kind(header)
        if kind is None:
            absent = [name for name in _NEEDED[BOXES] if name not in header]
            raise ManifestError(f"{uri} is no file of Open Images: it has no column {', '.join(absent)}")
        repeated = [name for name in header if header.count(name) > 1]
        if repeated:
            raise ManifestError(f"{uri}: two columns are called {repeated[0]}: take one of them out")
        base = config.images if config.images is not None else folder_of(uri)
        details = {
            "kind": kind,
            "header": tuple(header),
            "text": sample.form.to_details(),
            "names": {},
        }
        told = AccountBuilder()
        told.find(COLUMNS, len(header))
        for name in header:
            use = "image" if name == "ImageID" else "label" if name == "LabelName" else _ATTRIBUTES.get(name)
            use = "box" if name in _SIDES else "mask" if name == _MASK else use
            use = None if kind == MASKS and name in _ATTRIBUTES else use
            if use:
                told.use(COLUMNS, use)
            else:
                told.name(COLUMNS, "not used", name)
        decided = [Decision("lines", kind, "the columns")]
        descriptions = _descriptions(files, parent(uri), kind)
        if descriptions:
            details["names"] = _class_names(files, descriptions, config.encoding)
            decided.append(Decision("names of the classes", descriptions, "it is called so, and lies beside the file"))
        if kind == LABELS:
            decided.append(Decision("labels", "those with a Confidence above 0", "0 says that the class is not there"))
        return Source(uri, self.name, split, base, details=details, account=told.account(), decisions=tuple(decided))

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        told = AccountBuilder()
        names = _Names(piece.source.details["names"])
        yield from gather_by_image(_rows(files, piece.source, names, told))
        yield told.account()
        if names.names and names.unnamed:
            value = f"{len(names.unnamed):,}, such as {min(names.unnamed)}"
            yield Decision("classes without a name", value, "the class-descriptions lack them: their codes are labels")


class _Names:
    """Names of classes by code; of a code without one, the code itself. unnamed: those that were met."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names
        self.unnamed: set[str] = set()

    def of(self, code: str) -> str:
        if code and code not in self.names:
            self.unnamed.add(code)
        return self.names.get(code, code)


def _kind(header: Sequence[str]) -> str | None:
    """What the lines of a file are; None for a file of something else."""
    found = next((kind for kind, needed in _NEEDED.items() if set(needed) <= set(header)), None)
    is_cut = found == LABELS and any(side in header for side in _SIDES)  # boxes that lack a side
    return None if is_cut else found


def _rows(files: Files, source: Source, names: _Names, told: AccountBuilder) -> Iterator[Row | RejectedRow]:
    kind = source.details["kind"]
    masks = NamedImages(images_below(files, parent(source.uri))) if kind == MASKS else None

    def row_of(line: tuple[str, dict[str, str] | RejectedRow]) -> Row | RejectedRow:
        origin, cells = line
        if isinstance(cells, RejectedRow):
            return cells
        image = cells[_ID].strip()
        if not image:
            return rejected(origin, "bad_row", "the line has no ImageID")
        try:
            fields = _label(cells, names) if kind == LABELS else _object(files, source, cells, names, origin, masks)
        except RowError as error:
            return rejected(origin, error.code, error.message, f"{image}.jpg")
        return Row(origin, {"image": f"{image}.jpg", "id": image, **fields})

    lines = _lines(files, source)
    for row in in_parallel(row_of, lines) if kind == MASKS else map(row_of, lines):
        if kind == LABELS and isinstance(row, Row):
            told.find(ANNOTATIONS)
            if row.fields["label"]:
                told.use(ANNOTATIONS, "label")
            else:
                told.name(ANNOTATIONS, "a class that is not there", row.origin)
        yield row


def _lines(files: Files, source: Source) -> Iterator[tuple[str, dict[str, str] | RejectedRow]]:
    """(origin, cells by column) of each line; a reject for one that is none."""
    header = source.details["header"]
    rows = csv_rows(TextLines(files, source.uri, TextForm(**source.details["text"])))
    next(rows, None)  # the header
    for line, cells in rows:
        origin = f"{source.uri}:{line}"
        if isinstance(cells, str):
            yield origin, rejected(origin, "bad_row", cells)
        elif len(cells) == len(header):
            yield origin, dict(zip(header, cells, strict=True))
        else:
            place = header.index(_ID)
            image = f"{cells[place].strip()}.jpg" if place < len(cells) else ""
            message = f"the line has {len(cells)} cells where the header has {len(header)}"
            yield origin, rejected(origin, "bad_row", message, image)


def _label(cells: Mapping[str, str], names: _Names) -> dict[str, Any]:
    """The label of an image, or none where the class is not there. Raises RowError."""
    code = cells[_CLASS].strip()
    if not code:
        raise RowError("missing_label", "the line has no LabelName")
    try:
        confidence = real_number(cells["Confidence"])
    except ValueError as error:
        raise RowError("bad_annotation", f"the Confidence {shown(cells['Confidence'])} {error}") from None
    return {"label": [names.of(code)] if confidence > 0 else []}


def _object(
    files: Files,
    source: Source,
    cells: Mapping[str, str],
    names: _Names,
    origin: str,
    masks: NamedImages | None,
) -> dict[str, Any]:
    box: dict[str, Any] = {"class": names.of(cells[_CLASS].strip()), "origin": origin}
    if masks is not None:  # masks have sizes of their own
        box["rle"] = {**_mask(files, source, cells[_MASK].strip(), masks), "scales": True}
        return {"boxes": [box]}
    box.update({"bbox": [cells[side] for side in _SIDES], "normalized": True})
    box.update({name: cells[column] for column, name in _ATTRIBUTES.items() if cells.get(column)})
    return {"boxes": [box]}


def _mask(files: Files, source: Source, name: str, masks: NamedImages) -> dict[str, Any]:
    """The code of the mask in a PNG, whose pixels that are not 0 belong to the object. Raises RowError."""
    found = masks.find(name) if name else None
    if found is None:
        where = parent(source.uri)
        raise RowError("bad_mask", f"the mask {name!r} lies nowhere below {where}: unpack the masks there")
    try:
        with files.open(files.join(parent(source.uri), found)) as stream:
            mask = mask_of_png(stream.read())
    except (OSError, ValueError) as error:
        raise RowError("bad_mask", f"the mask {found} cannot be read: {error}") from None
    return {"size": list(mask.shape), "counts": runs_of(mask)}


def _descriptions(files: Files, folder: str, kind: str) -> str:
    """The file of descriptions for the kind of annotations, else any other; '' when there is none."""
    found = [name for name in files.list_folder(folder) if _DESCRIPTIONS in name and name.endswith(".csv")]
    chosen = min(found, key=lambda name: (("boxable" in name) == (kind == LABELS), name), default=None)
    return files.join(folder, chosen) if chosen is not None else ""


def _class_names(files: Files, uri: str, encoding: str) -> dict[str, str]:
    """Names by code. Raises ManifestError for a line that is no code and name."""
    names = {}
    for line, cells in csv_rows(TextLines(files, uri, look_at_text(files, uri, encoding).form)):
        if isinstance(cells, str) or len(cells) != 2:
            told = cells if isinstance(cells, str) else f"the line has {len(cells)} cells"
            raise ManifestError(f"{uri}:{line} is no code and name of a class: {told}")
        names[cells[0].strip()] = cells[1].strip()
    names.pop("LabelName", None)
    return names
