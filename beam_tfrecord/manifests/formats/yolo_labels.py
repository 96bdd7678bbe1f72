"""The label file of one image in YOLO's formats, by the number of values on each line.

``class cx cy w h``                    a box
``class x y x y x y ...``              an outline of three points or more; the box is the one around it
``class cx cy w h x y [v] ...``        a box and keypoints, when the yaml has ``kpt_shape``

All coordinates are fractions of the image. A keypoint is not labelled when v is 0; without v, when it is (0, 0) or
negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.annotations.cells import real_number
from beam_tfrecord.errors import AnnotationError, nearest
from beam_tfrecord.manifests.text.lines import decode_text, split_lines
from beam_tfrecord.manifests.text.uri_text import name_of
from beam_tfrecord.options.values import AUTO_ENCODING

_BOX = 5
_SHORTEST_OUTLINE = 7


@dataclass(frozen=True)
class LabelForm:
    """What lines mean. names: by class id. points, values: of keypoints, 0 when there are none."""

    names: Mapping[int, str]
    points: int = 0
    values: int = 0
    point_names: tuple[str, ...] = ()
    encoding: str = AUTO_ENCODING


def parse_labels(data: bytes, uri: str, form: LabelForm) -> list[dict[str, Any]]:
    """The field ``boxes`` of a label file.

    Raises AnnotationError (``bad_annotation``, ``unknown_category``) that names the line.
    """
    try:
        lines = split_lines(decode_text(data, form.encoding))
    except ValueError as error:
        raise AnnotationError("bad_annotation", f"{uri} is no text: {error}") from None
    boxes = []
    for number, line in enumerate(lines, start=1):
        cells = line.split()
        if cells:
            boxes.append({**_parse_line(cells, f"{uri}:{number}", form), "origin": f"{name_of(uri)}:{number}"})
    return boxes


def _parse_line(cells: list[str], where: str, form: LabelForm) -> dict[str, Any]:
    numbers = []
    for cell in cells:
        try:
            numbers.append(real_number(cell))
        except ValueError as error:
            raise AnnotationError("bad_annotation", f"{where}: {cell!r} {error}") from None
    box: dict[str, Any] = {"class": _class_name(cells[0], numbers[0], where, form), "normalized": True}
    values = numbers[1:]
    if form.points:
        expected = _BOX + form.points * form.values
        if len(cells) != expected:
            raise _wrong_length(cells, where, f"{expected}: class, box and {form.points} keypoints")
        return {**box, "bbox_center": values[:4], **_keypoints(values[4:], form)}
    if len(cells) == _BOX:
        return {**box, "bbox_center": values}
    if len(cells) >= _SHORTEST_OUTLINE and len(cells) % 2:
        return {**box, "polygons": [values]}
    raise _wrong_length(cells, where, "5 for a box, or 7, 9, 11 ... for an outline")


def _wrong_length(cells: list[str], where: str, expected: str) -> AnnotationError:
    return AnnotationError("bad_annotation", f"{where}: the line has {len(cells)} values, not {expected}")


def _class_name(cell: str, number: float, where: str, form: LabelForm) -> str:
    if number not in form.names:
        known = f"{len(form.names)} classes, {min(form.names)} to {max(form.names)}" if form.names else "no classes"
        hint = nearest(cell, form.names.values())
        message = f"{where}: there is no class {cell}{hint}; the dataset has {known}"
        raise AnnotationError("unknown_category", message)
    return form.names[int(number)]


def _keypoints(values: list[float], form: LabelForm) -> dict[str, Any]:
    points: list[float] = []
    for place in range(0, len(values), form.values):
        x, y = values[place : place + 2]
        is_labelled = not (x < 0 or y < 0 or (x == 0 and y == 0))
        visibility = values[place + 2] if form.values == 3 else 2.0 * is_labelled
        points += [x, y, visibility]
    return {"keypoints": points, "keypoint_names": form.point_names}
