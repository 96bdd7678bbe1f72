"""BDD100K and Scalabel (github.com/bdd100k/bdd100k, ``doc/source/format.rst``, and doc.scalabel.ai/format.html).

A document is a list of frames, or an object with ``frames``: each with ``name``, ``attributes`` and ``labels``, which
have a ``category`` and a ``box2d`` (x1, y1, x2, y2 in pixels, used as they stand), ``poly2d`` or ``rle``. The first
release had a file for each picture, with ``objects`` in its one frame. In a ``poly2d`` the ``types`` of the vertices
are L for a corner and C for the control points and the end of a cubic Bezier curve; one that is not ``closed`` is a
line. Lanes and boxes in space have neither box nor mask. ``--label_column`` names an attribute of frames, such as
``weather``, that is the label of the picture.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from beam_tfrecord.annotations.cells import shown, text_of
from beam_tfrecord.core.account import Decision
from beam_tfrecord.errors import RowError
from beam_tfrecord.manifests.base import Files, Source
from beam_tfrecord.manifests.box_cells import attributes_of
from beam_tfrecord.manifests.documents import DocumentFormat, pictures_of_elements
from beam_tfrecord.manifests.label_files import JsonFilesFormat
from beam_tfrecord.manifests.outlines import outline, ring
from beam_tfrecord.manifests.picture_labels import Picture, PictureLabels, bad, length_of
from beam_tfrecord.manifests.text.compression import open_unpacked
from beam_tfrecord.manifests.text.json_text import OBJECTS, Members, as_utf8, holds, start_of_json
from beam_tfrecord.options.config import ManifestConfig

_GEOMETRY = re.compile(rb'"box2d"\s*:\s*\{\s*"(?:x1|y1|x2|y2)"\s*:|"poly2d"\s*:\s*\[')
_FRAME = re.compile(rb'"(?:timeofday|weather)"\s*:')
_FRAMES, _LABELS, _OBJECTS = (re.compile(rb"\"%s\"\s*:\s*\[" % key) for key in (b"frames", b"labels", b"objects"))
_NAMED = re.compile(rb'"name"\s*:\s*"')
_SIDES = ("x1", "y1", "x2", "y2")
_STEPS = 16  # sides that a curve becomes
_CURVE, _CORNER = "C", "L"


class BddFormat(DocumentFormat):
    """A list of frames."""

    name = "bdd100k"
    asks = ("label",)
    leads = True

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        start = start_of_json(head)
        if not start or holds(head, _OBJECTS):
            return False
        if start == OBJECTS:
            return holds(head, _NAMED, _GEOMETRY) or holds(head, _NAMED, _FRAME)
        return holds(head, _FRAMES, _LABELS, _NAMED, _GEOMETRY)

    def look(self, files: Files, uri: str, config: ManifestConfig) -> tuple[dict[str, Any], tuple[Decision, ...]]:
        asked = config.label_column
        told = (Decision("label", f"the attribute {asked} of the frames", "--label_column"),) if asked else ()
        return {"label": asked}, told

    def pictures(self, files: Files, source: Source, names: Sequence[str]) -> Iterator[Picture]:
        with open_unpacked(files, source.uri) as stream:
            is_list = as_utf8(stream.read(64)).removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")
        return pictures_of_elements(files, source, partial(_read, source.details["label"]), "" if is_list else "frames")


class BddFilesFormat(JsonFilesFormat):
    """A file for each picture, as in the first release."""

    name = "bdd100k_files"
    heads = (_NAMED, _FRAMES, _OBJECTS)

    def is_labels(self, document: Mapping[str, Any]) -> bool:
        return isinstance(document.get("frames"), list) and "name" in document

    def gather(self, document: Mapping[str, Any], name: str, labels: PictureLabels) -> None:
        labels.found = sum(length_of(frame.get("objects")) for frame in document["frames"] if isinstance(frame, dict))
        members = Members(document, "")
        found = members.objects("frames") or []
        if len(found) != 1:
            raise bad("frames", f"has {len(found)} entries; a file of one picture has one")
        _add(found[0].listed("objects"), labels)
        stated = members.text("name")
        labels.stated = f"{stated}.jpg" if "." not in stated else stated
        for box in labels.boxes:
            box["origin"] = f"{name}:{box['origin']}"


def _read(label: str | None, members: Members, labels: PictureLabels) -> None:
    labels.found = length_of(members.raw("labels"))
    video = members.text("videoName")
    labels.stated = "/".join(filter(None, (video, members.text("name"))))
    _add([Members(one.value, one.where) for one in members.objects("labels") or []], labels)
    attributes = members.below("attributes")
    for key in attributes:
        labels.attribute(str(key), is_stored=key == label, where=members.where)
    if label is not None:
        own = text_of(attributes.get(label))
        if not own:
            raise RowError("missing_label", f"{members.where} has no attribute {label!r}")
        labels.labels.append(own)


def _add(given: Sequence[Members], labels: PictureLabels) -> None:
    """Add the labels of a frame. Raises RowError."""
    for one in given:
        box: dict[str, Any] = {"class": one.name("category"), "origin": one.where}
        own = {str(key).casefold(): value for key, value in one.below("attributes").items()}
        box.update({key: value for key, value in attributes_of(own).items() if isinstance(value, bool | int)})
        for key in own:
            labels.attribute(
                key, is_stored=key in box or (key in ("crowd", "iscrowd") and "is_crowd" in box), where=one.where
            )
        if one.raw("score") is not None:
            box["confidence"] = one.raw("score")
        sides = one.object("box2d")
        if sides is not None:
            box["bbox"] = [sides.raw(side) for side in _SIDES]
        runs, outlines = one.object("rle"), _polygons(one)
        if runs is not None:
            box["rle"] = runs.value
        elif outlines:
            box["polygons"] = outlines
        if not any(key in box for key in ("bbox", "polygons", "rle")):
            what = next((key for key in ("poly2d", "box3d") if one.raw(key) is not None), "label")
            labels.leave_out(one.where, what, "it has neither a box nor a closed outline")
        else:
            if one.raw("poly2d") and "polygons" not in box:
                labels.note(one.where, "its poly2d is no closed outline, or an rle stands beside it: it is not stored")
            labels.store(box)


def _polygons(one: Members) -> list[list[float]]:
    """The closed outlines of a label. Raises RowError."""
    given = one.raw("poly2d")
    if given is None:
        return []
    if not isinstance(given, list):
        raise bad(one.path("poly2d"), f"is {shown(given)}, not a list of outlines")
    if given and isinstance(given[0], list):  # the files of the first release: [x, y, type] for each vertex
        where = one.path("poly2d")
        if not all(
            isinstance(vertex, list) and len(vertex) == 3 and vertex[2] in (_CORNER, _CURVE) for vertex in given
        ):
            raise bad(where, 'has a vertex that is not [x, y, "L"] or [x, y, "C"]')
        if not one.name("category").startswith("area"):  # all others are lanes
            return []
        return [_flat([vertex[:2] for vertex in given], "".join(vertex[2] for vertex in given), where)]
    found = []
    for part in one.objects("poly2d") or ():
        if part.raw("closed") is True:
            types = part.text("types")
            found.append(_flat(part.raw("vertices"), types, part.path("vertices")))
    return found


def _flat(vertices: Any, types: str, where: str) -> list[float]:
    """The corners of an outline whose curves are drawn as lines. Raises RowError."""
    numbers = ring(vertices, where)
    points = list(zip(numbers[0::2], numbers[1::2], strict=True))
    types = types or _CORNER * len(points)
    if len(types) != len(points):
        raise bad(where, f"has {len(points)} points, and types {types!r}")
    found: list[tuple[float, float]] = []
    place = 0
    while place < len(points):
        if types[place] == _CURVE:
            if types[place : place + 3] != _CURVE * 3 or not found:
                raise bad(where, f"has types {types!r}: a curve has two control points and its end, behind a corner")
            found += _curve(found[-1], *points[place : place + 3])
            place += 3
        else:
            found.append(points[place])
            place += 1
    return outline([list(point) for point in found], where)


def _curve(*points: tuple[float, float]) -> Iterator[tuple[float, float]]:
    """The points of a cubic Bezier curve behind its start."""
    for step in range(1, _STEPS + 1):
        part = step / _STEPS
        weights = ((1 - part) ** 3, 3 * part * (1 - part) ** 2, 3 * part**2 * (1 - part), part**3)
        x, y = (sum(weight * point[axis] for weight, point in zip(weights, points, strict=True)) for axis in (0, 1))
        yield x, y
