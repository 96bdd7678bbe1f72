"""Labelbox: an export as NDJSON, one data row a line (source: docs.labelbox.com/reference/label-export).

``data_row`` with ``external_id`` and ``row_data`` (where the picture is), ``media_attributes`` with its size, and
``projects``, each with ``labels`` of one or several people: ``annotations.objects`` have a ``bounding_box`` (left, top,
width, height in pixels of the upright picture), a ``polygon``, a ``point``, a ``line`` or a ``mask`` behind an address;
``annotations.classifications`` are the labels of the picture, by their ``radio_answer`` or ``checklist_answers``.
Points and lines have neither box nor mask. Which of several labels counts is told with
``--annotator``, by ``created_by``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from beam_tfrecord.core.account import Decision
from beam_tfrecord.errors import ManifestError, RowError
from beam_tfrecord.manifests.base import Files, Source
from beam_tfrecord.manifests.documents import DocumentFormat, pictures_of_lines
from beam_tfrecord.manifests.filenames import is_image_name
from beam_tfrecord.manifests.outlines import outline
from beam_tfrecord.manifests.picture_labels import Annotators, Picture, PictureLabels, bad, length_of
from beam_tfrecord.manifests.text.json_text import Members
from beam_tfrecord.manifests.text.lines import decode_head, look_at_text
from beam_tfrecord.manifests.text.uri_text import name_of, scheme_of
from beam_tfrecord.options.config import ManifestConfig

_ROW = re.compile(r'^\s*\{.{0,400}?"data_row"\s*:\s*\{', re.DOTALL)
_ARRAY = re.compile(r'^\s*\[\s*\{\s*"(?:data_row|ID|DataRow ID)"\s*:', re.DOTALL)
_BOX, _POLYGON = "bounding_box", "polygon"
_WITHOUT_AREA = {"point": "a point", "line": "a line"}
_MASKS = ("mask", "composite_mask")
_LISTS = ("objects", "classifications")


class LabelboxFormat(DocumentFormat):
    """An export of a project, or of several."""

    name = "labelbox"
    asks = ("annotator",)

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        text = decode_head(head) or ""
        return (_ROW.match(text) is not None and "media_attributes" in text) or _ARRAY.match(text) is not None

    def look(self, files: Files, uri: str, config: ManifestConfig) -> tuple[dict[str, Any], tuple[Decision, ...]]:
        sample = look_at_text(files, uri, config.encoding)
        if sample.text.lstrip().startswith("["):
            raise ManifestError(
                f"{uri} is one JSON array, as old exports of Labelbox are: export the project anew as NDJSON (v2)"
            )
        told = Decision("label of several", config.annotator, "--annotator")
        return {"text": sample.form.to_details(), "annotator": config.annotator}, (told,)

    def pictures(self, files: Files, source: Source, names: Sequence[str]) -> Iterator[Picture]:
        known = frozenset(map(name_of, names))
        annotator = source.details["annotator"]
        return pictures_of_lines(files, source, partial(_read, annotator, known))


def _read(annotator: str, known: frozenset[str], members: Members, where: str, labels: PictureLabels) -> None:
    labels.stated = _image_of(members, known)
    found = _found_labels(members)
    labels.found = sum(map(_count, found))
    live = [one for one in found if one.below("performance_details").get("skipped") is not True]
    for one in Annotators(_at, _is_truth, _by, _count).choose(live, annotator, where, labels):
        _add(one, labels, where)
    media = members.below("media_attributes")
    labels.state_size(f"line {where}", media.get("width"), media.get("height"))
    labels.with_boxes = not labels.labels
    labels.further["frame"] = "upright"


def _image_of(row: Members, known: frozenset[str]) -> str:
    """The picture: by its name where it lies there, else by its address. Raises RowError."""
    data = row.object("data_row")
    if data is None:
        raise RowError("bad_row", "the line has no data_row")
    named = [data.text(key) for key in ("external_id", "global_key", "row_data")]
    bare = [name.partition("?")[0] if scheme_of(name) else name for name in named]  # without the signature
    there = next((name for name in bare if name_of(name) in known), "")
    return there or next(
        (name for name, own in zip(named, bare, strict=True) if is_image_name(own)), named[2] or named[0]
    )


def _found_labels(row: Members) -> list[Members]:
    projects = row.object("projects")
    if projects is None:
        raise RowError("bad_row", "the line has no projects")
    each = [project for key in projects.value if (project := projects.object(key)) is not None]
    return [label for project in each for label in project.listed("labels")]


def _count(label: Members) -> int:
    """How many annotations a label has."""
    annotations = label.value.get("annotations")
    if not isinstance(annotations, dict):
        return 0
    return sum(length_of(annotations.get(key)) for key in _LISTS) + len(_others(annotations))


def _others(annotations: Mapping[str, Any]) -> list[str]:
    """The keys below which a label has something else than what is read, as that of a video has ``frames``."""
    return [key for key, value in annotations.items() if key not in _LISTS and value not in (None, [], {})]


def _by(label: Members) -> str:
    details = label.object("label_details")
    return (details.name("created_by") if details is not None else "") or f"label {label.name('id')}"


def _at(label: Members) -> str:
    details = label.below("label_details")
    return str(details.get("updated_at") or details.get("created_at") or "")


def _is_truth(label: Members) -> bool:
    performance, details = label.below("performance_details"), label.below("label_details")
    return performance.get("benchmark_reference_label") is True or details.get("is_benchmark_reference") is True


def _add(label: Members, labels: PictureLabels, where: str) -> None:
    annotations = label.object("annotations")
    if annotations is None:
        raise bad(label.path("annotations"), "is missing, though the label is not marked as skipped")
    others = _others(annotations.value)
    if not others and all(annotations.raw(key) is None for key in _LISTS):
        raise bad(annotations.where, "has neither objects nor classifications; an empty list says that there are none")
    for key in others:
        labels.leave_out(f"{where}:{annotations.path(key)}", key, "only objects and classifications are read")
    for one in annotations.objects("objects") or ():
        _add_object(one, labels, where)
    for one in annotations.objects("classifications") or ():
        _add_class(one, labels)


def _add_object(one: Members, labels: PictureLabels, where: str) -> None:
    box: dict[str, Any] = {"class": one.name("name"), "origin": f"{where}:{one.where}"}
    for further in one.objects("classifications") or ():
        labels.attribute(further.name("name"), is_stored=False, where=f"{where}:{one.where}")
    sides = one.object(_BOX)
    if sides is not None:
        box["bbox_xywh"] = [sides.raw(side) for side in ("left", "top", "width", "height")]
    if one.raw(_POLYGON) is not None:
        box["polygons"] = [outline(one.raw(_POLYGON), one.path(_POLYGON))]
    if len(box) > 2:
        labels.store(box)
        return
    kind = next((key for key in (*_WITHOUT_AREA, *_MASKS) if one.raw(key) is not None), "object")
    if kind in _MASKS:
        why = "its mask lies behind an address of Labelbox, and is not fetched: export polygons or boxes"
    else:
        why = f"{_WITHOUT_AREA.get(kind, 'it')} has neither a box nor a mask"
    labels.leave_out(f"{where}:{one.where}", kind, why)


def _add_class(one: Members, labels: PictureLabels) -> None:
    """The answers of a question. Raises RowError."""
    radio = one.object("radio_answer") or one.object("answer")
    several = one.objects("checklist_answers") or one.objects("answers")
    text = one.object("text_answer")
    if radio is not None:
        names = [_answer(radio, labels)]
    elif several is not None:
        names = [_answer(answer, labels) for answer in several]
    elif text is not None:
        labels.leave_out(one.where, "text answer", "a text is no label: rename it to a choice, or keep it elsewhere")
        return
    else:
        labels.leave_out(one.where, "classification", "it has no answer that is known")
        return
    labels.labels += names
    labels.use("label")


def _answer(answer: Members, labels: PictureLabels) -> str:
    name = answer.name("name") or answer.name("value")
    if not name:
        raise RowError("missing_label", f"{answer.where} has no name")
    for further in answer.objects("classifications") or ():
        labels.note(further.where, f"the answer to {further.name('name')!r}, asked of {name!r}, is not stored")
    return name
