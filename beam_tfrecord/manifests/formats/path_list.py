"""Lists of images: one path per line, with or without a label behind it, as Caffe and ImageNet use them.

Whether the lines have labels is found from the first ones. A label is what stands behind the last blanks of a line: a
whole number, or, where the paths in front of it end as those of images do, any text. Paths may have blanks in them.

Two forms of other tools are read as well: ``path x1,y1,x2,y2,class x1,y1 ...`` (github.com/qqwweee/keras-yolo3), whose
classes are places in a ``_classes.txt`` beside it, as Roboflow exports them, where that is there; and the ``.lst``
files of MXNet, ``index <tab> label <tab> path``, also with the objects of an image between them
(mxnet.apache.org/versions/1.9.1/api/python/docs/api/mxnet/image).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from beam_tfrecord.annotations.cells import text_of
from beam_tfrecord.core.account import Decision
from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import AmbiguousManifestError, ConfigError, RowError
from beam_tfrecord.manifests.base import Files, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.box_cells import FOUR
from beam_tfrecord.manifests.box_reading import BoxReading
from beam_tfrecord.manifests.filenames import IMAGE_SUFFIXES, is_image_name
from beam_tfrecord.manifests.formats.yolo_data import read_names_file
from beam_tfrecord.manifests.leftovers import Reads
from beam_tfrecord.manifests.siblings import label_path
from beam_tfrecord.manifests.text.box_columns import FORMS, XYXY, BoxColumns
from beam_tfrecord.manifests.text.cuts import BLOCK_BYTES, PIECE_BYTES, text_pieces
from beam_tfrecord.manifests.text.lines import TextForm, TextLines, decode_head, look_at_text
from beam_tfrecord.manifests.text.roles import named_columns
from beam_tfrecord.manifests.text.row_fields import rejected
from beam_tfrecord.manifests.text.uri_text import folder_of
from beam_tfrecord.options.config import ManifestConfig

_SAMPLE_LINES = 1_000
_LOOKED_FOR = 5  # images of a list without labels whose label files are looked for
BOXES, MXNET, MXNET_BOXES = "boxes", "mxnet", "mxnet_boxes"
_CLASSES = "_classes.txt"
_KERAS = ("x1", "y1", "x2", "y2")
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_IMAGE = "(.*(?:" + "|".join(re.escape(suffix) for suffix in IMAGE_SUFFIXES) + "))"
_BOXED = re.compile(rf"{_IMAGE}((?:[ \t]+{_NUMBER}(?:,{_NUMBER}){{3}},[^,\s]+)*)", re.IGNORECASE)
_NUMBERS = re.compile(rf"{_IMAGE}[ \t]+({_NUMBER}(?:[,; \t]+{_NUMBER})+)", re.IGNORECASE)
_MXNET = re.compile(rf"[0-9]+(?:\t{_NUMBER})+\t(\S.*)")
_NUMBERED = re.compile(r"(.*\S)[ \t]+([+-]?\d+)")
_NAMED = re.compile(rf"{_IMAGE}[ \t]+(\S.*)", re.IGNORECASE)


class ListFormat(ManifestFormat):
    """One path per line, and a label behind it or not."""

    name = "list"
    suffixes = (".txt", ".lst", ".list")

    def __init__(self, piece_bytes: int = PIECE_BYTES, block_bytes: int = BLOCK_BYTES) -> None:
        self._piece_bytes = piece_bytes
        self._block_bytes = block_bytes

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        """Whether every line is the name of an image, with or without a label."""
        lines = _lines(decode_head(head) or "", False)
        is_list = bool(lines) and all(is_image_name(line) or _NAMED.fullmatch(line) for line in lines)
        return is_list or is_mxnet(lines)

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        if named_columns(config):
            raise ConfigError(
                f"{uri} is read as a list of paths, which has no columns: leave --{_first_option(config)} out, or name "
                f"another --format"
            )
        sample = look_at_text(files, uri, config.encoding)
        lines = _lines(sample.text, sample.is_whole, sample.form.newline)
        labels = label_form(lines, uri)
        base = config.images if config.images is not None else folder_of(uri)
        if not labels and config.format == "auto":
            _check_no_label_files(files, uri, base, lines)
        details: dict[str, Any] = {"text": sample.form.to_details(), "labels": labels}
        if labels == BOXES:
            told = config.box_format if config.box_format in FORMS else ""
            details["boxes"] = asdict(
                BoxColumns("columns", _KERAS, (told or XYXY,), config.box_units, bool(told), is_assumed=True)
            )
            beside = files.join(folder_of(uri), _CLASSES)
            names = read_names_file(files, beside, config.encoding) if files.is_file(beside) else None
            if names:
                ids = sorted(names)
                details = {
                    **details,
                    "names": {str(number): name for number, name in names.items()},
                    **Reads([uri, beside]).to_details(),
                }
                labels_of = tuple(names[number] for number in ids)
                decided = (Decision("classes", beside, "it lies beside the list"),)
                return Source(uri, self.name, split, base, labels_of, tuple(ids), details, decisions=decided)
        return Source(uri, self.name, split, base, details=details)

    def pieces(self, files: Files, source: Source) -> Iterator[Piece]:
        form = TextForm(**source.details["text"])
        if source.details["labels"] == BOXES:  # whose numbers are understood when all were seen
            yield Piece(source)
            return
        yield from text_pieces(files, source, form, None, self._piece_bytes, self._block_bytes)

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        rows = _rows(files, piece)
        if piece.source.details["labels"] == BOXES:
            return BoxReading(BoxColumns.from_details(piece.source.details["boxes"])).gathered(rows)
        return rows


def _rows(files: Files, piece: Piece) -> Iterator[Row | RejectedRow]:
    source = piece.source
    lines = TextLines(files, source.uri, TextForm(**source.details["text"]), piece.start, piece.end)
    labels, names = source.details["labels"], source.details.get("names", {})
    for number, line, damage in lines.numbered(piece.first_line):
        origin, image = f"{source.uri}:{number}", ""
        try:
            if damage:
                raise RowError("bad_row", damage)
            fields = _fields(line.rstrip(), labels, origin)
            image = str(fields["image"])
            for box in fields["boxes"] if names else ():
                box["class"] = _class_name(box["class"], names)
            yield Row(origin, fields)
        except RowError as error:
            yield rejected(origin, error.code, error.message, image)


def _class_name(number: str, names: Mapping[str, str]) -> str:
    """The name of a class. Raises RowError."""
    if number not in names:
        raise RowError("unknown_category", f"the class {number!r} is none of the {len(names)} of {_CLASSES}")
    return names[number]


def label_form(lines: Sequence[str], uri: str = "") -> str:
    """What stands behind the paths: ``number`` or ``name`` for a label, ``boxes``; ``mxnet`` for lines of that form
    with a label, ``mxnet_boxes`` with objects; empty for lines of paths only.

    Raises AmbiguousManifestError for numbers that look like boxes or several labels and are of none of these forms.
    """
    if is_mxnet(lines):
        return _mxnet_form(lines, uri)
    boxed = [_BOXED.fullmatch(line) for line in lines]
    if lines and all(boxed) and any(found and found[2] for found in boxed):
        return BOXES
    several = next((found for line in lines if (found := _NUMBERS.fullmatch(line))), None)
    if several is not None:
        raise AmbiguousManifestError(
            f"{uri}: behind {several[1]!r} stand several numbers, {several[2][:60]!r}. A list has one label to a line, "
            f"or boxes as x1,y1,x2,y2,class with blanks between them; write other boxes as a CSV with columns image, "
            f"xmin, ymin, xmax, ymax, class (one box to a line), several labels as one with --label_separator"
        )
    named = [_NAMED.fullmatch(line) for line in lines]
    numbered = [_NUMBERED.fullmatch(line) for line in lines]
    if any(found and is_image_name(found[1]) for found in numbered):
        return "number"
    if lines and all(numbered):
        return "number"
    if lines and all(found and not is_image_name(line) for found, line in zip(named, lines, strict=True)):
        return "name"
    return ""


def is_mxnet(lines: Sequence[str]) -> bool:
    """Whether all lines are an index, numbers, and the name of an image, with tabs between them."""
    return bool(lines) and all(_MXNET.fullmatch(line) and is_image_name(line) for line in lines)


def _mxnet_form(lines: Sequence[str], uri: str) -> str:
    middles = [line.split("\t")[1:-1] for line in lines]
    if all(len(middle) == 1 for middle in middles):
        return MXNET
    if all(_objects_of(middle) is not None for middle in middles):
        return MXNET_BOXES
    raise AmbiguousManifestError(
        f"{uri}: the lines of this MXNet list have several numbers that are no objects, such as {lines[0][:80]!r}: "
        f"write a CSV with a column for each, and name them with --columns"
    )


def _objects_of(cells: Sequence[str]) -> list[list[str]] | None:
    """The objects of a line of MXNet: behind the widths of the header and of an object, class and corners of each."""
    try:
        header, width = (int(float(cell)) for cell in cells[:2])
    except ValueError:
        return None
    if header < 2 or width < 5 or (len(cells) - header) % width or len(cells) < header:
        return None
    return [list(cells[place : place + 5]) for place in range(header, len(cells), width)]


def _fields(line: str, labels: str, origin: str) -> dict[str, Any]:
    """The path and, in a list with labels, the label of a line; the label is empty where the line has none."""
    if not labels:
        return {"image": line}
    if labels in (MXNET, MXNET_BOXES):
        return _mxnet_fields(line, labels, origin)
    if labels == BOXES:
        found = _BOXED.fullmatch(line)
        if found is None:
            raise RowError("bad_row", f"the line is not of the form path x1,y1,x2,y2,class ...: {line[:80]!r}")
        objects = [part.split(",") for part in found[2].split()]
        return {"image": found[1], "boxes": [{FOUR: box, "class": name, "origin": origin} for *box, name in objects]}
    found = (_NUMBERED if labels == "number" else _NAMED).fullmatch(line)
    return {"image": found[1], "label": found[2]} if found else {"image": line, "label": ""}


def _mxnet_fields(line: str, labels: str, origin: str) -> dict[str, Any]:
    if not _MXNET.fullmatch(line):
        raise RowError("bad_row", f"the line is not of the form index <tab> label <tab> path: {line[:80]!r}")
    _, *middle, image = line.split("\t")
    if labels == MXNET:
        if len(middle) != 1:
            raise RowError("bad_row", f"the line has {len(middle)} labels where the first ones have one")
        return {"image": image, "label": text_of(float(middle[0]))}
    objects = _objects_of(middle)
    if objects is None:
        raise RowError("bad_row", "the numbers of the line are no objects: class and four sides of each are expected")
    boxes = [
        {"class": text_of(float(name)), "bbox": box, "normalized": True, "origin": origin}
        for name, *box in objects
        if float(name) >= 0  # lines are filled up with -1
    ]
    return {"image": image, "boxes": boxes}


def _check_no_label_files(files: Files, uri: str, base: str, lines: Sequence[str]) -> None:
    """Raises AmbiguousManifestError when images of a list without labels have label files, as darknet's train.txt."""
    for line in lines[:_LOOKED_FOR]:
        try:
            place = label_path(files.join(base, line))
        except ValueError:  # it leads out of a bucket
            continue
        if place != uri and files.is_file(place):
            raise AmbiguousManifestError(
                f"{uri} lists images that have label files, such as {place}: say --format yolo to read them (with a "
                f"data.yaml, a classes.txt or an obj.names beside the list), or --format list for the images alone"
            )


def _lines(text: str, is_whole: bool, newline: str = "\n") -> list[str]:
    """The first lines that are not blank; the last line of a cut text is left out when there are others."""
    lines = [line.rstrip() for line in text.split(newline)]
    if not is_whole and len(lines) > 1:
        lines.pop()
    return [line for line in lines if line][:_SAMPLE_LINES]


def _first_option(config: ManifestConfig) -> str:
    named = (part for part in ("image", "label", "split", "group", "id", "mask", "sequence", "order"))
    return next((f"{part}_column" for part in named if getattr(config, f"{part}_column")), "columns")
