"""The lists of WIDER FACE (source: ``readme.txt`` of wider_face_split.zip).

For each image its path below ``images``, the number of its faces, and a line for each face: ``x1 y1 w h blur expression
illumination invalid occlusion pose``, in pixels; old lists have the first four values. Behind a number of 0 stands one
line of zeros. ``occlusion`` is 0, 1 (partial) or 2 (heavy); ``invalid`` faces are kept and told; the other attributes
have no features in records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from beam_tfrecord.core.account import Decision
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.base import Files, Source
from beam_tfrecord.manifests.documents import DocumentFormat
from beam_tfrecord.manifests.filenames import is_image_name
from beam_tfrecord.manifests.outlines import numbers_of
from beam_tfrecord.manifests.picture_labels import Picture, PictureLabels, bad, gather
from beam_tfrecord.manifests.text.lines import TextForm, TextLines, decode_head, look_at_text, split_lines
from beam_tfrecord.options.config import ManifestConfig

CLASS = "face"
_ATTRIBUTES = ("blur", "expression", "illumination", "invalid", "occlusion", "pose")
_VALUES = (4, 4 + len(_ATTRIBUTES))


class WiderFaceFormat(DocumentFormat):
    """A ``wider_face_train_bbx_gt.txt``."""

    name = "wider_face"
    leads = True

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        lines = [line.strip() for line in split_lines(decode_head(head) or "")[:3]]
        return (
            len(lines) == len(_VALUES) + 1
            and is_image_name(lines[0])
            and lines[1].isdecimal()
            and len(lines[2].split()) in _VALUES
            and all(cell.removeprefix("-").isdecimal() for cell in lines[2].split())
        )

    def look(self, files: Files, uri: str, config: ManifestConfig) -> tuple[dict[str, Any], tuple[Decision, ...]]:
        return {"text": look_at_text(files, uri, config.encoding).form.to_details()}, ()

    def pictures(self, files: Files, source: Source, names: Sequence[str]) -> Iterator[Picture]:
        lines = TextLines(files, source.uri, TextForm(**source.details["text"]))
        for number, name, own in _blocks(lines, source.uri):
            yield gather(str(number), "", partial(_read, own, number, name))


def _blocks(lines: TextLines, uri: str) -> Iterator[tuple[int, str, list[tuple[int, list[str]]]]]:
    """(number of the line, name, the lines below it) of each image."""
    block: tuple[int, str, list[tuple[int, list[str]]]] | None = None
    for number, spelled, damage in lines.numbered():
        if damage:
            raise ManifestError(f"{uri}:{number}: {damage}")
        line = spelled.strip()
        if is_image_name(line):
            if block is not None:
                yield block
            block = number, line, []
        else:
            if block is None:
                raise ManifestError(f"{uri}:{number}: the name of an image is expected, not {line[:80]!r}")
            block[2].append((number, line.split()))
    if block is not None:
        yield block


def _read(own: Sequence[tuple[int, list[str]]], number: int, name: str, labels: PictureLabels) -> None:
    """Add the faces of an image. Raises RowError."""
    (_, stated), *faces = own or [(number, [""])]
    labels.stated, labels.found = name, len(faces)
    if len(stated) != 1 or not stated[0].isdecimal():
        raise bad(f"line {number}", f"({name}) is not followed by a line with the number of its faces")
    count = int(stated[0])
    if count == 0 and len(faces) == 1 and not any(numbers_of(faces[0][1], f"line {faces[0][0]}")):
        labels.use("line of zeros: no face")
        return
    if count != len(faces):
        raise bad(f"line {number}", f"({name}) has {len(faces)} lines of faces, and says that it has {count}")
    for place, cells in faces:
        where = f"line {place}"
        if len(cells) not in _VALUES:
            raise bad(where, f"has {len(cells)} values; a face has {' or '.join(map(str, _VALUES))}")
        values = numbers_of(cells, where)
        box: dict[str, Any] = {"class": CLASS, "bbox_xywh": values[:4], "origin": where}
        for attribute, value in zip(_ATTRIBUTES, values[4:], strict=False):
            if attribute == "occlusion":
                box["occluded"] = int(value > 0)
            labels.attribute(attribute, is_stored=attribute == "occlusion", where=where)
            if attribute == "invalid" and value:
                labels.note(where, "a face that is marked as invalid is kept, the mark is not stored")
        labels.store(box)
