"""Label Studio's exports JSON and JSON_MIN (label_studio_sdk 2.1, ``converter``, and labelstud.io/guide/export).

Both are an array. JSON has tasks with ``data``, ``annotations`` (of several annotators, perhaps) and the regions of
each in ``result``; JSON_MIN has one object for each annotation, the regions in lists by the names of their tags.
Places and sizes are percentages of the picture as a browser shows it; ``rotation`` is clockwise about the upper left
corner, which ``x`` and ``y`` state after the turn. A brush is run-length code of the RGBA pixels, of which opacity
counts (``brush.py``). Choices are labels of the picture; points whose ``parentID`` is a region are its keypoints. A
region with two labels is an object of each. Which of several annotations counts is told by ``--annotator``: by
default the one that is marked as ground truth, else the latest. Predictions, and tasks without an annotation or
skipped, are no labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from beam_tfrecord.annotations.cells import shown
from beam_tfrecord.core.account import KEYS, Decision
from beam_tfrecord.errors import RowError
from beam_tfrecord.manifests.base import Files, Source
from beam_tfrecord.manifests.columns import why_not_read
from beam_tfrecord.manifests.documents import DocumentFormat
from beam_tfrecord.manifests.filenames import is_image_name
from beam_tfrecord.manifests.gathering import Groups
from beam_tfrecord.manifests.outlines import ellipse, numbers_of, rectangle, ring, runs_of, turned
from beam_tfrecord.manifests.picture_labels import (
    PICTURES,
    Annotators,
    Picture,
    PictureLabels,
    gather,
    length_of,
)
from beam_tfrecord.manifests.text.compression import open_unpacked
from beam_tfrecord.manifests.text.json_text import OBJECTS, Members, holds, iterate_array, start_of_json
from beam_tfrecord.manifests.text.roles import Roles
from beam_tfrecord.options.config import ManifestConfig

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_TASKS = re.compile(rb'"annotations"\s*:\s*\[')
_IN_TASKS = re.compile(rb'"(?:result|data)"\s*:\s*[\[{]')
_MIN = (re.compile(rb'"annotation_id"\s*:'), re.compile(rb'"(?:annotator|lead_time|created_at)"\s*:'))
_LABELS = (
    *("rectanglelabels", "polygonlabels", "ellipselabels", "keypointlabels", "brushlabels", "labels", "bitmasklabels"),
    *("vectorlabels",),
)
_OF_ENTRY = frozenset(
    {
        *("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement", "inner_id"),
        "file_upload",
    }
)
_CHOICES = ("choice", "choices", "label", "class", "category", "classification")
_IMAGE_KEYS = ("image", "img", "picture", "photo", "image_url", "url")
_UPLOAD = re.compile(r"^[0-9a-f]{8}-")


class LabelStudioFormat(DocumentFormat):
    """A JSON or JSON_MIN export."""

    name = "label_studio"
    asks = ("label", "annotator")
    leads = True

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        return start_of_json(head) == OBJECTS and (holds(head, *_MIN) or holds(head, _TASKS, _IN_TASKS))

    def look(self, files: Files, uri: str, config: ManifestConfig) -> tuple[dict[str, Any], tuple[Decision, ...]]:
        told = Decision("annotation of several", config.annotator, "--annotator")
        return {"annotator": config.annotator, "label": config.label_column}, (told,)

    def pictures(self, files: Files, source: Source, names: Sequence[str]) -> Iterator[Picture]:
        known = frozenset(name.rpartition("/")[2] for name in names)
        annotator = source.details["annotator"]

        def picture(task: Mapping[str, Any], where: str) -> Picture:
            return gather(where, where, partial(_read, task, where, annotator, known))

        with Groups() as entries, open_unpacked(files, source.uri) as stream:
            for item in iterate_array(stream, source.uri):
                where = f"[{item.place}]"
                if item.repeated or not isinstance(item.value, Mapping):
                    why = f"has the key {item.repeated!r} twice" if item.repeated else f"is {shown(item.value)}"
                    yield Picture(where, "", problem=RowError("bad_row", f"{where} {why}: a task is an object"))
                elif "annotations" in item.value or "completions" in item.value:
                    yield picture(item.value, where)
                else:
                    entries.add(str(item.value.get("id", where)), (where, item.value))
            for key in entries.left():
                found = entries.take(key)
                yield picture(_task_of(found, source.details["label"]), found[0][0])


def _task_of(entries: Sequence[tuple[str, Mapping[str, Any]]], label: str | None) -> dict[str, Any]:
    """The entries of JSON_MIN with one id as a task of JSON.

    label: the name of the tag whose text is the label of the picture; without it, usual names tell.
    """
    data: dict[str, Any] = {}
    annotations = []
    for _, entry in entries:
        results: list[Any] = []
        for name, value in entry.items():
            if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
                results += [{"value": item, "type": "", "from_name": name, **_sizes(item)} for item in value]
            elif isinstance(value, Mapping) and "choices" in value:
                results.append({"type": "choices", "value": value})
            elif isinstance(value, str) and (name == label or (label is None and name.lower() in _CHOICES)):
                results.append({"type": "choices", "value": {"choices": [value]}})
            elif name not in _OF_ENTRY:
                data[name] = value
        annotations.append(
            {"result": results, "completed_by": entry.get("annotator"), "id": entry.get("annotation_id")}
            | {"updated_at": entry.get("updated_at") or entry.get("created_at")}
        )
    return {"data": data, "annotations": annotations}


def _sizes(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value.get(key) for key in ("original_width", "original_height", "id", "parentID")}


def _read(task: Mapping[str, Any], where: str, annotator: str, known: frozenset[str], labels: PictureLabels) -> None:
    members = Members(task, where, "bad_row")
    annotations = members.objects("annotations") or members.objects("completions") or []
    labels.found = sum(map(_ANNOTATORS.count, annotations))
    labels.stated = _image_of(members, known)
    live = [one for one in annotations if one.raw("was_cancelled") is not True and one.raw("skipped") is not True]
    chosen = _ANNOTATORS.choose(live, annotator, where, labels)
    if not chosen:
        return
    for one in chosen:
        _add(one.listed("result"), labels)
    labels.with_boxes = not labels.labels
    labels.further["frame"] = "upright"
    labels.told.find(PICTURES)
    labels.told.use(PICTURES, "annotated")
    roles = Roles(label="" if labels.labels or labels.boxes else None)
    for name, value in members.below("data").items():  # in JSON_MIN answers stand there as well
        if not (isinstance(value, str) and value.endswith(labels.stated)):
            labels.told.find(KEYS)
            labels.told.name(KEYS, why_not_read(name, roles), name)


def _annotator_of(annotation: Members) -> str:
    by = annotation.raw("completed_by")
    if isinstance(by, Mapping):
        by = by.get("email") or by.get("id")
    return str(by) if by is not None else f"annotation {annotation.raw('id')}"


def _at(annotation: Members) -> str:
    return str(annotation.raw("updated_at") or annotation.raw("created_at") or "")


_ANNOTATORS = Annotators(
    _at, lambda one: one.raw("ground_truth") is True, _annotator_of, lambda one: length_of(one.raw("result"))
)


def _image_of(task: Members, known: frozenset[str]) -> str:
    """The picture that a task is about, as it may be found. Raises RowError."""
    data = task.object("data")
    texts = {} if data is None else {key: value for key, value in data.value.items() if isinstance(value, str)}
    named = next((texts[key] for key in _IMAGE_KEYS if texts.get(key, "").strip()), "")
    place = named or next((value for value in texts.values() if is_image_name(urlsplit(value).path)), "")
    if not place:
        raise RowError("bad_row", f"{task.path('data')} names no picture")
    if place.startswith("data:"):
        raise RowError("bad_row", f"{task.path('data')} holds the picture itself: save it as a file")
    parts = urlsplit(place) if "?" in place else None
    if parts is not None and "/local-files" in parts.path:
        place = parse_qs(parts.query).get("d", [place])[0]
    name = place.rpartition("/")[2]
    bare = _UPLOAD.sub("", name)
    if name not in known and bare != name and bare in known:  # Label Studio puts eight digits in front of uploads
        return bare
    return place


# ---------------------------------------------------------------------------------------------------------------------
# Regions


def _add(results: Sequence[Members], labels: PictureLabels) -> None:
    """Add what an annotation says, and the size of the picture that it states. Raises RowError."""
    size: tuple[int, int] | None = None
    regions: dict[str, list[Members]] = {}
    for result in results:
        sides = result.raw("original_width"), result.raw("original_height")
        size = labels.state_size(result.where, *sides) or size
        kind = result.text("type").lower()
        value = result.object("value")
        if value is None:
            labels.leave_out(result.where, kind or "relation", "it is no region of the picture")
        elif kind == "choices" or (value.raw("choices") is not None and value.raw("x") is None):
            _add_choices(value, labels)
        elif not any(key in value.value for key in ("x", "points", "rle", "vertices")):
            labels.leave_out(result.where, kind or "value", "it is no region of the picture")
        else:
            regions.setdefault(result.name("id") or result.where, []).append(result)
    spots: dict[str, list[Members]] = {}
    for parts in regions.values():
        if _is_point(parts[0]) and parts[0].name("parentID") in regions:
            spots.setdefault(parts[0].name("parentID"), []).extend(parts)
    for key, parts in regions.items():
        if not (_is_point(parts[0]) and parts[0].name("parentID") in regions):
            _add_region(parts, spots.get(key, []), size, labels)


def _add_choices(value: Members, labels: PictureLabels) -> None:
    given = value.raw("choices")
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise RowError("bad_annotation", f"{value.path('choices')} is {shown(given)}, not a list of names")
    labels.labels += given
    labels.use("label")


def _is_point(result: Members) -> bool:
    value = result.object("value")
    assert value is not None
    return "keypoint" in result.text("type").lower() or value.raw("keypointlabels") is not None


def _classes(parts: Sequence[Members]) -> list[str]:
    """The classes of a region. Raises RowError."""
    for part in parts:
        value = part.object("value")
        assert value is not None
        for key in _LABELS:
            given = value.raw(key)
            if given is not None:
                if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
                    raise RowError("bad_annotation", f"{value.path(key)} is {shown(given)}, not a list of names")
                if given:
                    return given
    raise RowError("missing_label", f"{parts[0].where} has no label: give the region one, or take it out")


def _add_region(
    parts: Sequence[Members], spots: Sequence[Members], size: tuple[int, int] | None, labels: PictureLabels
) -> None:
    result = parts[0]
    value = result.object("value")
    assert value is not None
    if _is_point(result):
        labels.leave_out(result.where, "keypoint", "it has the parentID of no region")
        return
    box: dict[str, Any] = {"normalized": True, "origin": result.where}
    degrees = _number(value, "rotation", 0.0)
    if value.raw("rle") is not None or result.raw("rle") is not None:
        if size is None:
            raise RowError("bad_mask", f"{result.where} does not state original_width and original_height")
        box = {"rle": _brush(value if value.raw("rle") is not None else result, size), "origin": result.where}
    elif value.raw("points") is not None or value.raw("vertices") is not None:
        box["polygons"] = [_outline(value)]
    elif value.raw("radiusX") is not None or value.raw("radiusY") is not None:
        x, y, across, down = (_percent(value, key) for key in ("x", "y", "radiusX", "radiusY"))
        box["polygons"] = [
            _fractions(
                lambda w, h: turned(ellipse(x * w, y * h, across * w, down * h), degrees, x * w, y * h),
                size,
                result.where,
            )
        ]
    else:
        x, y, width, height = (_percent(value, key) for key in ("x", "y", "width", "height"))
        if degrees % 360:
            box["polygons"] = [
                _fractions(
                    lambda w, h: turned(
                        rectangle(x * w, y * h, (x + width) * w, (y + height) * h), degrees, x * w, y * h
                    ),
                    size,
                    result.where,
                )
            ]
        else:
            box["bbox_xywh"] = [x, y, width, height]
    if spots and "rle" not in box:
        points = [part.object("value") for part in spots]
        box["keypoints"] = [
            number
            for point in points
            if point is not None
            for number in (_percent(point, "x"), _percent(point, "y"), 2)
        ]
        box["keypoint_names"] = [_classes([part])[0] for part in spots]
        labels.use("keypoint", len(spots))
    elif spots:
        for spot in spots:
            labels.leave_out(spot.where, "keypoint", "the points of a brush are not stored")
    classes = _classes(parts)
    labels.use("part of a region", len(parts) - 1)
    for number, name in enumerate(dict.fromkeys(classes)):
        labels.store({"class": name, **box}, 1 if number == 0 else 0)


def _fractions(draw: Callable[[float, float], list[float]], size: tuple[int, int] | None, where: str) -> list[float]:
    """An outline that is drawn in pixels, as fractions of the picture. Raises RowError."""
    if size is None:
        raise RowError("bad_annotation", f"{where} is turned and does not state original_width and original_height")
    width, height = size
    return [number / (height if place % 2 else width) for place, number in enumerate(draw(width, height))]


def _number(value: Members, key: str, otherwise: float | None = None) -> float:
    given = value.raw(key)
    if given is None and otherwise is not None:
        return otherwise
    (number,) = numbers_of([given], value.path(key))
    return number


def _percent(value: Members, key: str) -> float:
    return _number(value, key) / 100


def _outline(value: Members) -> list[float]:
    key = "points" if value.raw("points") is not None else "vertices"
    return [number / 100 for number in ring(value.raw(key), value.path(key))]


# ---------------------------------------------------------------------------------------------------------------------
# Brushes


def _brush(value: Members, size: tuple[int, int]) -> dict[str, Any]:
    width, height = size
    given = value.raw("rle")
    where = value.path("rle")
    if not isinstance(given, list) or not all(isinstance(byte, int) and 0 <= byte < 256 for byte in given):
        raise RowError("bad_mask", f"{where} is {shown(given)}, not a list of bytes")
    try:
        mask = decode_brush(bytes(given), width, height)
    except ValueError as error:
        raise RowError("bad_mask", f"{where}: {error}") from None
    return {"size": [height, width], "counts": runs_of(mask)}


def decode_brush(data: bytes, width: int, height: int) -> npt.NDArray[np.bool_]:
    """The mask of a brush, (height, width). Raises ValueError.

    The code (rle-pack of thi.ng) is a stream of bits: the number of values in 32, their size less one in 5, four sizes
    of run lengths less one in 4 each; then runs: whether all are alike, which size the length has (2 bits), the length
    less one, and one value or all of them.
    """
    import numpy as np

    bits = _Bits(data)
    count, word = bits.read(32), bits.read(5) + 1
    sizes = [bits.read(4) + 1 for _ in range(4)]
    if count != width * height * 4:
        raise ValueError(f"it has {count} values; RGBA of {width}x{height} has {width * height * 4}")
    values = np.zeros(count, np.uint32)
    place = 0
    while place < count:
        is_run = bits.read(1)
        end = place + 1 + bits.read(sizes[bits.read(2)])
        if end > count:
            raise ValueError("a run reaches over the end of the picture")
        if is_run:
            values[place:end] = bits.read(word)
        else:
            values[place:end] = [bits.read(word) for _ in range(end - place)]
        place = end
    return values[3::4].reshape(height, width) > 0


class _Bits:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def read(self, size: int) -> int:
        start, end = self._place, self._place + size
        if end > 8 * len(self._data):
            raise ValueError("the code ends before the picture does")
        self._place = end
        first, last = start // 8, (end + 7) // 8
        return (int.from_bytes(self._data[first:last], "big") >> (8 * last - end)) & ((1 << size) - 1)
