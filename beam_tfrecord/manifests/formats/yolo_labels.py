"""The label file of one image in YOLO's formats, by the number of values on each line.

``class cx cy w h``                    a box
``class x y x y x y ...``              an outline of three points or more; the box is the one around it
``class cx cy w h x y [v] ...``        a box and keypoints, when the yaml has ``kpt_shape``

Lines of 7, 9, 11 ... values are also what trackers write (box, confidence, number of the track) and poses whose yaml
has no ``kpt_shape``. What they are is decided for the whole dataset from a sample of its files (:func:`decide_lines`),
or stated with ``--yolo_lines``: ``outline``, or ``box`` for the first five values alone.

All coordinates are fractions of the image, unless ``--box_units`` says pixels. A keypoint is not labelled when v is 0;
without v, when it is (0, 0) or negative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.annotations.cells import real_number
from beam_tfrecord.errors import AmbiguousManifestError, AnnotationError, nearest
from beam_tfrecord.manifests.text.lines import decode_text, split_lines
from beam_tfrecord.manifests.text.uri_text import name_of
from beam_tfrecord.options.values import AUTO_ENCODING

CURE = (
    "say --yolo_lines outline, or --yolo_lines box for the first five values alone; a pose needs kpt_shape in its yaml"
)
_TRACK = "a box with confidence and track"
_POINTS = "a box with keypoints"
_SLACK = 0.02
_LARGEST = 2  # no box of fractions reaches over the edge by its own size
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
    lines: str = "auto"
    in_pixels: bool = False


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
    box: dict[str, Any] = {"class": _class_name(cells[0], numbers[0], where, form), "normalized": not form.in_pixels}
    values = numbers[1:]
    if form.points:
        expected = _BOX + form.points * form.values
        if len(cells) != expected:
            raise _wrong_length(cells, where, f"{expected}: class, box and {form.points} keypoints")
        return {**box, "bbox_center": values[:4], **_keypoints(values[4:], form)}
    if len(cells) == _BOX or (form.lines == "box" and len(cells) > _BOX):
        return {**box, "bbox_center": values[:4]}
    if len(cells) >= _SHORTEST_OUTLINE and len(cells) % 2:
        if form.lines == "auto" and (others := other_readings(values)):
            message = f"{where}: the {len(cells)} values can be an outline or {others[0]}: {CURE}"
            raise AnnotationError("bad_annotation", message)
        return {**box, "polygons": [values]}
    raise _wrong_length(cells, where, f"5 for a box, or 7, 9, 11 ... for an outline; behind a box, {CURE}")


def other_readings(values: Sequence[float]) -> list[str]:
    """What the values behind the class of a line can be besides an outline."""
    x, y, width, height, *rest = values
    left, right, top, bottom = x - width / 2, x + width / 2, y - height / 2, y + height / 2
    if min(width, height) <= 0 or min(left, top) < -_SLACK or max(right, bottom) > 1 + _SLACK:
        return []
    found = []
    if len(rest) == 2 and 0 <= rest[0] <= 1 and rest[1] >= 0 and rest[1].is_integer():
        found.append(_TRACK)
    for step in (2, 3):
        points = [rest[place : place + step] for place in range(0, len(rest), step)]
        if len(rest) % step == 0 and all(
            (px == py == 0 or (left - _SLACK <= px <= right + _SLACK and top - _SLACK <= py <= bottom + _SLACK))
            and all(v in (0, 1, 2) for v in visibility)
            for px, py, *visibility in points
        ):
            found.append(_POINTS)
    return found


def decide_lines(files: Iterable[tuple[str, bytes]], asked: str, where: str, units: str = "auto") -> str:
    """What lines of 7, 9, 11 ... values are in a dataset: ``outline``, ``box``, or ``auto`` where it has none.

    files: (uri, content) of a sample of the label files. asked: the option ``--yolo_lines``. An outline has as many
    values as it likes; all poses of a dataset have as many, and their points lie in their boxes. Raises
    AmbiguousManifestError when both readings are left, and for boxes in pixels that are not said to be.
    """
    lengths: set[int] = set()
    readings: Counter[str] = Counter()
    lines = boxes = pixels = 0
    first = ""
    for uri, data in files:
        for number, values in _values_of(data):
            lengths.add(len(values))
            boxes += 1
            pixels += max(map(abs, values[:4])) > _LARGEST
            if len(values) >= _SHORTEST_OUTLINE - 1 and len(values) % 2 == 0:
                lines += 1
                first = first or f"{uri}:{number}"
                readings.update(set(other_readings(values)))
    if units == "auto" and pixels > boxes / 2:
        raise AmbiguousManifestError(
            f"{where}: most boxes are in pixels, where YOLO has fractions of the image: divide them, or say "
            f"--box_units pixels (or --box_units fractions)"
        )
    if asked != "auto" or not lines:
        return asked
    others = [reading for reading, count in readings.items() if count >= 0.98 * lines and len(lengths) == 1]
    if others:
        raise AmbiguousManifestError(
            f"{where}: lines such as {first} can be outlines, or {' or '.join(sorted(others))}: {CURE}"
        )
    return "outline"


def _values_of(data: bytes) -> Iterator[tuple[int, list[float]]]:
    """(number of the line, values behind the class) of each line that has at least those of a box."""
    try:
        lines = split_lines(decode_text(data))
    except ValueError:  # told when the file is read
        return
    for number, line in enumerate(lines, start=1):
        try:
            values = [real_number(cell) for cell in line.split()[1:]]
        except ValueError:
            continue
        if len(values) >= _BOX - 1:
            yield number, values


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
