"""What the four numbers of boxes are, decided once for a whole source from all of its boxes.

Two questions are open where the columns do not answer them: whether the numbers are corners, corner and size, or centre
and size; and whether they are pixels or fractions of the picture. A reading is out when more boxes contradict it than
odd lines would (:data:`ODD_FORMS`): the right side is left of the left one, a size is negative, the box reaches over
the edge of a picture whose size is known. Where more than one reading is left, the source is refused.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from beam_tfrecord.annotations.cells import real_number
from beam_tfrecord.core.account import Decision
from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import AmbiguousManifestError
from beam_tfrecord.manifests.base import Item
from beam_tfrecord.manifests.box_cells import FORM, FOUR, REGION
from beam_tfrecord.manifests.gathering import gather_by_image
from beam_tfrecord.manifests.text.box_columns import CENTER, XYWH, XYXY, BoxColumns

ODD_FORMS = 0.02  # share of boxes that may contradict a reading: the odd line of a long table
ODD_UNITS = 0.05
_KEYS = {XYXY: "bbox", XYWH: "bbox_xywh", CENTER: "bbox_center"}
_TOLD = {
    XYXY: "xmin, ymin, xmax, ymax",
    XYWH: "left, top, width, height",
    CENTER: "centre x, centre y, width, height",
}
_CLASS_KEYS = ("class", "label", "name", "category", "type", "class_name", "object")


class _Numbers(NamedTuple):
    """The numbers of a box. kind: ``pixels``, ``fractions``, or '' for whole numbers that can be either."""

    values: tuple[float, ...]
    kind: str
    largest: float


class BoxReading:
    """Sees all boxes of a source first, and then says what they are."""

    def __init__(self, columns: BoxColumns, class_key: str | None = None) -> None:
        """class_key: the attribute of a region that is its class, when it is stated."""
        self._columns = columns
        self._class_key = class_key
        self._boxes = 0
        self._apart = 0  # boxes whose corner is not (0, 0): of the others corner and size are the same
        self._contradicted: Counter[str] = Counter()
        self._units: Counter[str] = Counter()
        self._first: dict[str, str] = {}  # origin of the first box by unit
        self._largest = 0.0
        self._keys: dict[str, None] = {}
        self._decided: tuple[str, bool] | None = None
        self._notes: list[tuple[str, str]] = []

    def seen(self, items: Iterable[Row | RejectedRow]) -> Iterator[Row | RejectedRow]:
        """The same items, looked at on the way."""
        for item in items:
            if isinstance(item, Row):
                self.look(item)
            yield item

    def gathered(self, lines: Iterable[Row | RejectedRow]) -> Iterator[Item]:
        """One row for each image of lines with boxes, which are understood when all were seen; then the decisions."""
        for item in gather_by_image(self.seen(lines)):
            yield self.finish(item) if isinstance(item, Row) else item
        yield from self.decisions()

    def look(self, row: Row) -> None:
        """Learn from the boxes of one line."""
        size = row.fields.get("size")
        for box in row.fields["boxes"]:
            self._keys.update(dict.fromkeys(box.get(REGION, ())))
            numbers = _numbers(box)
            if numbers is None:
                continue
            self._boxes += 1
            self._units[numbers.kind] += 1
            self._first.setdefault(numbers.kind, str(box.get("origin", row.origin)))
            self._largest = max(self._largest, numbers.largest)
            if FORM not in box and FOUR in box:
                x, y, *_ = numbers.values
                self._apart += x != 0 or y != 0
                self._contradicted.update(_contradicted(numbers, size))

    def finish(self, row: Row) -> Row:
        """The same row with its boxes understood. Raises AmbiguousManifestError when that can be done in two ways."""
        if self._decided is None:
            self._decided = self._form(row.origin), self._are_fractions()
        form, are_fractions = self._decided
        notes = [*row.fields.get("notes", ()), *self._notes]
        self._notes = []
        boxes = []
        among_pixels = self._columns.units == "auto" and not are_fractions
        for box in row.fields["boxes"]:
            numbers = _numbers(box)
            if among_pixels and numbers is not None and numbers.kind == "fractions":
                told = f"{box.get('origin', row.origin)}: a box of fractions among boxes of pixels is left out"
                notes.append(("box_dropped", told))
                continue
            boxes.append(self._finished(box, form, are_fractions, row.origin))
        return row._replace(fields={**row.fields, "boxes": boxes, **({"notes": notes} if notes else {})})

    def decisions(self) -> Iterator[Decision]:
        """What was decided, once a row is finished."""
        if self._decided is None or not self._boxes:
            return
        form, are_fractions = self._decided
        columns = self._columns
        seen = f"all {self._boxes:,} boxes"
        if columns.kind in ("columns", "cell"):
            named = columns.is_told or (len(columns.forms) == 1 and not columns.is_assumed)
            yield Decision(
                "boxes", _TOLD[form], ("--box_format" if columns.is_told else "the columns") if named else seen
            )
        units = "fractions" if are_fractions else "pixels"
        yield Decision("numbers of boxes", units, seen if columns.units == "auto" else "--box_units")

    def _finished(self, box: Mapping[str, Any], form: str, are_fractions: bool, where: str) -> dict[str, Any]:
        kept = {key: value for key, value in box.items() if key not in (FOUR, FORM, REGION)}
        if FOUR in box:
            kept[_KEYS[form if self._columns.is_told else box.get(FORM, form)]] = box[FOUR]
        if are_fractions:
            kept["normalized"] = True
        if REGION in box and self._keys:
            kept["class"] = box[REGION].get(self._class_of_region(where), "")
        return kept

    def _form(self, where: str) -> str:
        columns = self._columns
        forms = (XYXY, XYWH) if columns.is_assumed and not columns.is_told else columns.forms
        if len(forms) == 1 or not self._boxes:
            return forms[0]
        most = ODD_FORMS * self._boxes
        left = [form for form in forms if self._contradicted[form] <= most]
        if CENTER in left and len(left) > 1 and columns.kind == "cell" and self._units["pixels"]:
            left.remove(CENTER)  # nobody writes that in pixels without saying so
        if not self._apart and XYXY in left:
            return XYXY
        if len(left) == 1 and (not columns.is_assumed or left == [XYXY]):
            return left[0]
        if columns.is_assumed and XYXY in left:
            self._notes.append(("box_format_assumed", self._doubt(where, left) + ": the first was taken"))
            return XYXY
        raise AmbiguousManifestError(
            f"{self._doubt(where, left or forms)}: say which, with {_flags('box_format', left or forms)}"
        )

    def _doubt(self, where: str, forms: Any) -> str:
        named = ", ".join(map(repr, self._columns.names))
        readings = " or ".join(_TOLD[form] for form in forms)
        return f"{_file(where)}: the four numbers of {named} can be {readings} in all {self._boxes:,} boxes"

    def _are_fractions(self) -> bool:
        if self._columns.units != "auto":
            return self._columns.units == "fractions"
        pixels, fractions = self._units["pixels"], self._units["fractions"]
        if not pixels or not fractions:
            return bool(fractions) or (not pixels and self._boxes > 0 and self._largest <= 1)
        if min(pixels, fractions) <= ODD_UNITS * (pixels + fractions):
            return fractions > pixels
        raise AmbiguousManifestError(
            f"{self._first['pixels']} has a box in pixels, {self._first['fractions']} one in fractions of the picture; "
            f"there are {pixels:,} and {fractions:,} of them: correct the lines, or say what all are, with "
            f"{_flags('box_units', ('pixels', 'fractions'))}"
        )

    def _class_of_region(self, where: str) -> str:
        """The attribute that is the class: the stated one, or what the names tell."""
        if self._class_key is None:
            self._class_key = class_attribute(list(self._keys), _file(where))
        return self._class_key


def class_attribute(keys: Sequence[str], where: str) -> str:
    """The attribute of regions that is their class: the only one, or the only one with a usual name.

    keys: names of the attributes. where: the file, for the message. Raises AmbiguousManifestError.
    """
    usual = [key for key in keys if key.casefold() in _CLASS_KEYS]
    found = list(keys) if len(keys) == 1 else usual
    if len(found) != 1:
        told = ", ".join(map(repr, keys))
        raise AmbiguousManifestError(
            f"{where}: regions have the attributes {told}; say which is the class, such as --label_column {keys[0]}"
        )
    return found[0]


def _numbers(box: Mapping[str, Any]) -> _Numbers | None:
    """None for a box that is not made of numbers; that is told when the row is parsed."""
    cells = box.get(FOUR) or (box.get("polygons") or [None])[0]
    try:
        values = tuple(real_number(cell) for cell in cells or ())
    except ValueError:
        return None
    if not values or not all(map(math.isfinite, values)):
        return None
    largest = max(map(abs, values))
    if largest > 2:  # no box reaches over the edge by its own size
        return _Numbers(values, "pixels", largest)
    return _Numbers(values, "" if all(value.is_integer() for value in values) else "fractions", largest)


def _contradicted(numbers: _Numbers, size: tuple[int, int] | None) -> list[str]:
    """The readings that a box cannot have."""
    a, b, c, d = numbers.values
    slack = 1.0 if numbers.kind == "pixels" else 0.01
    width, height = (size or (math.inf, math.inf)) if numbers.kind == "pixels" else (1, 1)
    right, bottom = width + slack, height + slack
    found = []
    if c <= a or d <= b or c > right or d > bottom:
        found.append(XYXY)
    if c <= 0 or d <= 0 or a + c > right or b + d > bottom:
        found.append(XYWH)
    if c <= 0 or d <= 0 or min(a - c / 2, b - d / 2) < -slack or a + c / 2 > right or b + d / 2 > bottom:
        found.append(CENTER)
    return found


def _file(origin: str) -> str:
    return origin.rpartition(":")[0] or origin


def _flags(option: str, values: Any) -> str:
    return " or ".join(f"--{option} {value}" for value in values)
