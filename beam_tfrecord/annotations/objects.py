"""The objects of an image as their manifest states them, checked for being complete and made of numbers.

Canonical field ``boxes``: a list of dicts, one per object, with these keys (those that do not apply are absent; numbers
may be text):

``class``       name of the class; a blank one is an error; without the key it is ``object``
``bbox``        xmin, ymin, xmax, ymax; or ``bbox_xywh``: left, top, width, height; or ``bbox_center``: centre x,
                centre y, width, height. Without any of them the box is that around the polygons or the mask
``normalized``  True: box, polygons and keypoints are fractions of the picture, not pixels
``polygons``    the outline as lists x, y, x, y ...; their union is the mask
``rle``         the mask as a COCO run-length code: {"size": [height, width], "counts": text or list}; with "scales":
                True its size is its own, and not that of the picture
``keypoints``   x, y, visibility of each point in one list; visibility 0: not labelled, 1: hidden, 2: visible
``keypoint_names``   their names
``is_crowd``, ``difficult``, ``truncated``, ``group_of``, ``occluded``, ``depiction``, ``inside``   0 or 1 (-1: unknown)
``area``        in square pixels; ``confidence`` from 0 to 1; ``pose`` a text
``parts``       number of parts (head, hand ...) that are annotated but not stored
``origin``      ``file:line`` of the object, where it has one of its own

Beside it ``notes``: pairs (warning code, message) that the format has to tell about the image.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from beam_tfrecord.annotations.box_rules import Box
from beam_tfrecord.annotations.cells import (
    float32_number,
    is_blank,
    name_text,
    plain,
    real_number,
    shown,
    utf8_text,
    whole_number,
)
from beam_tfrecord.annotations.shapes import MIN_NUMBERS, extent
from beam_tfrecord.core.elements import packed_quickly
from beam_tfrecord.errors import AnnotationError, RowError

Warn = Callable[[str, str], None]

UNNAMED_CLASS = "object"
# Attributes of an object by name of the field: the type of its feature.
ATTRIBUTES: Mapping[str, str] = MappingProxyType(
    {
        "is_crowd": "int64",
        "area": "float",
        "difficult": "int64",
        "truncated": "int64",
        "group_of": "int64",
        "occluded": "int64",
        "depiction": "int64",
        "inside": "int64",
        "pose": "bytes",
        "confidence": "float",
    }
)
_BOX_FORMS = ("bbox", "bbox_xywh", "bbox_center")
_SIDES = {
    "bbox": ("xmin", "ymin", "xmax", "ymax"),
    "bbox_xywh": ("left", "top", "width", "height"),
    "bbox_center": ("centre x", "centre y", "width", "height"),
}


@packed_quickly
@dataclass(frozen=True, slots=True)
class Polygons:
    """An outline: x, y, x, y ... of each part."""

    parts: tuple[tuple[float, ...], ...]


@packed_quickly
@dataclass(frozen=True, slots=True)
class Runs:
    """A run-length code of a mask of a stated size; see :mod:`beam_tfrecord.annotations.shapes`.

    scales: the mask is one of the whole picture at a size of its own.
    """

    height: int
    width: int
    counts: str | tuple[int, ...]
    scales: bool = False


@packed_quickly
@dataclass(frozen=True, slots=True)
class MaskImage:
    """A mask in the frame of the stored image: PNG of 0 and 1."""

    png: bytes


@packed_quickly
@dataclass(frozen=True, slots=True)
class Keypoints:
    """x, y, visibility of each point, and the names of the points as far as they are known."""

    points: tuple[tuple[float, float, int], ...]
    names: tuple[str, ...] = ()


@packed_quickly
@dataclass(frozen=True, slots=True)
class Object:
    """One object. box: in pixels, or in fractions of the picture when ``normalized``, which goes for all coordinates.

    After placing: box and keypoints are fractions of the stored image, the mask is a :class:`MaskImage`.
    """

    name: str
    box: Box | None
    normalized: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict)
    mask: Polygons | Runs | MaskImage | None = None
    keypoints: Keypoints | None = None
    origin: str = ""

    def told(self, number: int) -> str:
        """How messages name the object. number: its place, from 0."""
        return f"object {number + 1} ({self.name}{', ' + self.origin if self.origin else ''})"


def parse_object(fields: Mapping[str, Any], number: int, warn: Warn) -> Object:
    """One dict of the field ``boxes``. Raises RowError or AnnotationError that names the object and its line."""
    origin = str(fields.get("origin") or "")
    name = _class_name(fields, f"object {number + 1}{' (' + origin + ')' if origin else ''}")
    told = Object(name, None, origin=origin).told(number)
    mask = _mask(fields, told, warn)
    box = _box(fields, told)
    if box is None and isinstance(mask, Polygons):
        box = Box(*extent(mask.parts))
    if box is None and mask is None:
        raise AnnotationError("bad_box", f"{told} has no box: give it one, or take the object out")
    if fields.get("parts"):
        warn("annotation_ignored", f"{told}: its {fields['parts']} annotated parts are not stored")
    return Object(
        name,
        box,
        bool(fields.get("normalized")),
        _attributes(fields, told, warn),
        mask,
        _keypoints(fields, told),
        origin,
    )


def _class_name(fields: Mapping[str, Any], told: str) -> str:
    if "class" not in fields:
        return UNNAMED_CLASS
    cell = fields["class"]
    if is_blank(cell):
        raise RowError("missing_label", f"{told} has no class: fill the cell, or leave the box out")
    try:
        return name_text(cell).strip()
    except ValueError as error:
        raise RowError("bad_annotation", f"{told}: its class {shown(cell)} {error}") from None


def _number(cell: Any) -> float:
    """A coordinate. Raises ValueError, also for True and False, which are none although Python counts with them."""
    cell = plain(cell)
    if isinstance(cell, bool):
        raise ValueError("is no number")
    return real_number(cell)


def _numbers(cells: Any) -> list[float]:
    """A list of coordinates. Raises ValueError for anything else: a text and a mapping can be gone through as well."""
    numbers = []
    for cell in _listed(cells):
        try:
            numbers.append(_number(cell))
        except ValueError as error:
            raise ValueError(f"{shown(cell)} {error}") from None
    return numbers


def _listed(cells: Any) -> Sequence[Any]:
    cells = plain(cells)
    if not isinstance(cells, list | tuple):
        raise ValueError(f"{shown(cells)} is no list")
    return cells


def _box(fields: Mapping[str, Any], told: str) -> Box | None:
    form = next((form for form in _BOX_FORMS if fields.get(form) is not None), None)
    if form is None:
        return None
    cells = plain(fields[form])
    if not isinstance(cells, list | tuple) or len(cells) != 4:
        raise AnnotationError("bad_box", f"{told}: its box is {shown(cells)}, not {', '.join(_SIDES[form])}")
    numbers = []
    for side, cell in zip(_SIDES[form], cells, strict=True):
        try:
            numbers.append(_number(cell))
        except ValueError as error:
            reason = "is empty" if is_blank(cell) else f"{shown(cell)} {error}"
            raise AnnotationError("bad_box", f"{told}: {side} {reason}") from None
    first, second, third, fourth = numbers
    if form == "bbox_xywh":
        return Box(first, second, first + third, second + fourth)
    if form == "bbox_center":
        return Box(first - third / 2, second - fourth / 2, first + third / 2, second + fourth / 2)
    return Box(first, second, third, fourth)


def _mask(fields: Mapping[str, Any], told: str, warn: Warn) -> Polygons | Runs | None:
    """Polygons of fewer than three points are left out; a mask made of such only is none."""
    runs = fields.get("rle")
    if runs is not None:
        return _runs(runs, told)
    polygons = fields.get("polygons")
    if polygons is None:
        return None
    try:
        polygons = _listed(polygons)
    except ValueError as error:
        raise AnnotationError("bad_mask", f"{told}: its outline {error} of polygons") from None
    parts = []
    for polygon in polygons:
        try:
            numbers = tuple(_numbers(polygon))
        except ValueError as error:
            raise AnnotationError("bad_mask", f"{told}: a polygon holds no numbers: {error}") from None
        if not all(map(math.isfinite, numbers)):
            raise AnnotationError("bad_mask", f"{told}: a polygon has a coordinate that is not finite")
        if len(numbers) % 2:
            raise AnnotationError("bad_mask", f"{told}: a polygon has an odd number of coordinates, {len(numbers)}")
        if len(numbers) < MIN_NUMBERS:
            warn("mask_dropped", f"{told}: a polygon has fewer than three points")
        else:
            parts.append(numbers)
    return Polygons(tuple(parts)) if parts else None


def _runs(runs: Any, told: str) -> Runs:
    try:
        if not isinstance(runs, Mapping):
            raise ValueError(f"{shown(runs)} is none")
        size = _whole_numbers(runs.get("size"))
        if len(size) != 2:
            raise ValueError(f"{shown(size)} is not height and width")
        counts = runs.get("counts")
        if isinstance(counts, bytes):
            counts = counts.decode("ascii")
        if not isinstance(counts, str):
            counts = tuple(_whole_numbers(counts))
    except ValueError as error:
        message = f"{told}: its run-length code needs a size and counts: {error}"
        raise AnnotationError("bad_mask", message) from None
    return Runs(size[0], size[1], counts, runs.get("scales") is True)


def _whole_numbers(cells: Any) -> list[int]:
    """Raises ValueError."""
    numbers = []
    for cell in _listed(cells):
        try:
            numbers.append(whole_number(None if isinstance(cell, bool) else cell))
        except ValueError as error:
            raise ValueError(f"{shown(cell)} {error}") from None
    return numbers


def _keypoints(fields: Mapping[str, Any], told: str) -> Keypoints | None:
    cells = fields.get("keypoints")
    if cells is None:
        return None
    try:
        numbers = _numbers(cells)
    except ValueError as error:
        raise AnnotationError("bad_keypoints", f"{told}: the keypoints are no numbers: {error}") from None
    names = tuple(str(name) for name in fields.get("keypoint_names") or ())
    if len(numbers) % 3 or (names and len(numbers) != 3 * len(names)):
        expected = f"{len(names)} points" if names else "x, y, visibility of each point"
        raise AnnotationError("bad_keypoints", f"{told} has {len(numbers)} numbers for its keypoints, not {expected}")
    return Keypoints(tuple(_point(numbers[place : place + 3], told) for place in range(0, len(numbers), 3)), names)


def _point(numbers: Sequence[float], told: str) -> tuple[float, float, int]:
    x, y, visibility = numbers
    if visibility not in (0, 1, 2):
        raise AnnotationError("bad_keypoints", f"{told}: a keypoint has the visibility {visibility:g}, not 0, 1 or 2")
    return x, y, int(visibility)


def _attributes(fields: Mapping[str, Any], told: str, warn: Warn) -> dict[str, Any]:
    given = {key: _attribute(key, fields[key], told) for key in ATTRIBUTES if not is_blank(fields.get(key))}
    if given.get("area", 0) < 0:
        warn("annotation_ignored", f"{told}: its area {given.pop('area'):g} is negative; that of the box is stored")
    return given


def _attribute(key: str, cell: Any, told: str) -> Any:
    kind = ATTRIBUTES[key]
    try:
        if kind == "bytes":
            return utf8_text(cell).strip()
        if kind == "int64":
            return whole_number(_flag(cell))
        number = float32_number(_number(cell))
        if not math.isfinite(number):
            raise ValueError("is not finite")
        return number
    except ValueError as error:
        raise AnnotationError("bad_annotation", f"{told}: {key} {shown(cell)} {error}") from None


def _flag(cell: Any) -> Any:
    """True and False as text are fine for the attributes that are 0 or 1."""
    return {"true": 1, "false": 0}.get(cell.strip().lower(), cell) if isinstance(cell, str) else cell
