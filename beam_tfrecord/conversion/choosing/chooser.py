"""A choice applied to rows and entries, one by one, and what is noted on the way.

The order is that of the options: ``--exclude`` and ``--where`` look at the row as its manifest has it, before anything
of it is parsed; ``--map_labels``, ``--keep_labels``, ``--drop_labels``, ``--min_box`` and ``--drop_unlabelled`` at its
annotations; ``--near_duplicates`` at what was seen of all pictures before. ``--limit`` comes last and is a matter of
the plan (see :mod:`.limiting`).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from beam_tfrecord.annotations import KINDS
from beam_tfrecord.annotations.box_rules import FLOAT_PIXELS, Box, fault_of
from beam_tfrecord.annotations.boxes import Objects
from beam_tfrecord.annotations.cells import is_blank, plain, shown, text_of
from beam_tfrecord.annotations.label import Label
from beam_tfrecord.annotations.objects import Object, Runs
from beam_tfrecord.annotations.shapes import decode_runs, parse_counts
from beam_tfrecord.conversion.choosing.choice import Choice, told_place
from beam_tfrecord.core.elements import ChosenAway, Entry, Frame, RejectedRow
from beam_tfrecord.errors import RowError
from beam_tfrecord.manifests.base import Told
from beam_tfrecord.options.choosing import Condition, MinBox

Size = tuple[int, int]
SizesOf = Callable[[Sequence[Entry | Frame]], Sequence[Size | None]]
AT_ONCE = 256  # rows of which the sizes of pictures are looked up together
NAMES_KEPT = 1000  # names of rows that are kept, for the nearest one to a name that no row has
_PERCENT_ROUNDING = 1e-4  # of what is stored as a float32, or spelled with six digits


@dataclass(frozen=True)
class ChoiceNotes:
    """What was seen while rows were chosen.

    labels: of the rows, as they were called before. columns: those of --where that any row has a value in. excluded:
    the lines of --exclude that named a row. names: of some rows: those first by code point.
    """

    labels: frozenset[str] = frozenset()
    columns: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()


NOTHING_NOTED = ChoiceNotes()


def merge_notes(notes: Iterable[ChoiceNotes]) -> ChoiceNotes:
    """What was seen in all of several parts."""
    parts = [part for part in notes if part != NOTHING_NOTED]
    return ChoiceNotes(
        frozenset().union(*(part.labels for part in parts)),
        frozenset().union(*(part.columns for part in parts)),
        frozenset().union(*(part.excluded for part in parts)),
        tuple(heapq.nsmallest(NAMES_KEPT, {name for part in parts for name in part.names})),
    )


def annotations_of(entry: Entry) -> Iterable[Mapping[str, Any]]:
    """Those of the entry and of each of its frames."""
    if not entry.frames:
        return (entry.annotations,)
    return (entry.annotations, *(frame.annotations for frame in entry.frames))


def count_objects(entry: Entry) -> int:
    """How many objects (boxes, instance masks, keypoints) an entry has, those of its frames included."""
    return sum(len(annotations["boxes"].objects) for annotations in annotations_of(entry) if "boxes" in annotations)


Parsed = Entry | RejectedRow | ChosenAway | ChoiceNotes | Told


class Chooser:
    """Applies a choice to the rows of one source, and takes notes.

    sizes_of: (width, height) of the pictures in which the boxes of entries or frames were drawn; None when nobody
    knows.
    """

    def __init__(self, choice: Choice, sizes_of: SizesOf) -> None:
        self._choice = choice
        self._sizes_of = sizes_of
        self._sizes: dict[Hashable, Size | None] = {}
        self._labels: set[str] = set()
        self._columns: set[str] = set()
        self._excluded: set[str] = set()
        self._names: set[str] = set()

    def notes(self) -> ChoiceNotes:
        """What was seen so far."""
        names = tuple(heapq.nsmallest(NAMES_KEPT, self._names))
        return ChoiceNotes(frozenset(self._labels), frozenset(self._columns), frozenset(self._excluded), names)

    # -----------------------------------------------------------------------------------------------------------------
    # Rows

    @property
    def looks_at_rows(self) -> bool:
        """Whether rows are chosen before they are parsed."""
        return bool(self._choice.excluded or self._choice.config.where)

    def reason_against(self, origin: str, names: Iterable[str], fields: Mapping[str, Any]) -> str:
        """The option that chooses a row away; '' when none does.

        names: id, path and uri of the row, those of its frames included, '' where there are none. fields: as the
        manifest has them. Raises RowError for a cell that cannot be compared.
        """
        names = [name for name in names if name]
        if self._choice.excluded and self._is_excluded(origin, names):
            return "exclude"
        conditions = self._choice.config.where
        cells = [cell_of(fields, condition.column) for condition in conditions]
        self._columns.update(
            condition.column for condition, cell in zip(conditions, cells, strict=True) if not is_blank(cell)
        )
        return "" if all(map(holds, conditions, cells)) else "where"

    def is_excluded(self, reject: RejectedRow) -> bool:
        """Whether --exclude names a row that could not become one."""
        return bool(self._choice.excluded) and self._is_excluded(reject.finding.origin, [reject.finding.uri])

    def _is_excluded(self, origin: str, names: list[str]) -> bool:
        excluded = self._choice.excluded
        found = {excluded.names[name] for name in names if name in excluded.names}
        if excluded.places:
            places = [told_place(origin, name) for name in (*names, "")]
            found.update(excluded.places[place] for place in places if place in excluded.places)
        self._excluded |= found
        if names and len(self._names) < 16 * NAMES_KEPT:
            self._names.add(names[0])
        elif names:
            self._names = {*heapq.nsmallest(NAMES_KEPT, self._names), names[0]}
        return bool(found)

    # -----------------------------------------------------------------------------------------------------------------
    # Entries

    def choose_all(self, items: Iterable[Parsed]) -> Iterator[Parsed]:
        """What is left of entries, in their order, and what was chosen away; all else as it is."""
        iterator = iter(items)
        while chunk := list(itertools.islice(iterator, AT_ONCE)):
            entries = [item for item in chunk if isinstance(item, Entry)]
            pictures = list(filter(self._needs_size, itertools.chain.from_iterable(map(_parts, entries))))
            self._sizes = dict(zip(map(_picture, pictures), self._sizes_of(pictures), strict=True))
            for item in chunk:
                if isinstance(item, Entry):
                    yield from self.choose(item)
                else:
                    yield item

    def choose(self, entry: Entry) -> Iterator[Entry | ChosenAway]:
        """The entry with what is left of it, or what was chosen away; both where it loses objects."""
        config = self._choice.config
        found = count_objects(entry)
        lost = ""
        if config.chooses_labels:
            for annotations in annotations_of(entry):
                for name, value in annotations.items():
                    self._labels.update(KINDS[name].labels(value))
            lost = self._reason_without_label(entry)
            entry = _with_annotations(entry, self._with_labels)
        if config.min_box is not None:
            entry = _with_annotations(entry, self._without_small_boxes)
        left = count_objects(entry)
        reason = lost if lost and not left else ""
        if not reason and config.drop_unlabelled and not is_labelled(entry):
            reason = "drop_unlabelled"
        told = None if reason else self._choice.near.drop(entry)
        if told is not None:
            reason = "near_duplicates"
        if reason:
            yield ChosenAway({reason: 1}, entry.source_rows, found, uris_of(entry), () if told is None else (told,))
            return
        yield self._choice.near.warned(entry)
        if left < found:
            yield ChosenAway(objects=found - left)

    def _reason_without_label(self, entry: Entry) -> str:
        """The option that drops the one label of a row."""
        label = entry.annotations.get("label")
        if not isinstance(label, Label) or label.is_list or not label.names:
            return ""
        return self._choice.reason_without(label.names[0])

    def _with_labels(self, item: Entry | Frame) -> dict[str, Any]:
        chosen = {name: KINDS[name].chosen(value, self._choice.name_of) for name, value in item.annotations.items()}
        label = chosen.get("label")
        if isinstance(label, Label) and not label.names and not label.is_list:
            del chosen["label"]
        return chosen

    def _without_small_boxes(self, item: Entry | Frame) -> dict[str, Any]:
        annotations = dict(item.annotations)
        objects = annotations.get("boxes")
        least = self._choice.config.min_box
        if isinstance(objects, Objects) and objects.objects and least is not None:
            size = self._sizes.get(_picture(item))
            annotations["boxes"] = objects.having([is_large(one, least, size) for one in objects.objects])
        return annotations

    def _needs_size(self, item: Entry | Frame) -> bool:
        """Whether the size of the picture decides about a box."""
        objects, least = item.annotations.get("boxes"), self._choice.config.min_box
        if least is None or not isinstance(objects, Objects):
            return False
        return any(one.normalized != (least.unit == "%") for one in objects.objects)


def _with_annotations(entry: Entry, change: Callable[[Entry | Frame], dict[str, Any]]) -> Entry:
    """An entry with the annotations that a function gives for it, and for each of its frames."""
    frames = tuple(replace(frame, annotations=change(frame)) for frame in entry.frames)
    return entry._replace(annotations=change(entry), frames=frames)


def _parts(entry: Entry) -> tuple[Entry | Frame, ...]:
    return entry, *entry.frames


def _picture(item: Entry | Frame) -> Hashable:
    """What the size in which boxes were drawn depends on."""
    return item.uri, item.stated_size, item.stated_frame


def is_labelled(entry: Entry) -> bool:
    """Whether an entry has anything that says what is in its picture."""
    return any(
        KINDS[name].is_label(value) for annotations in annotations_of(entry) for name, value in annotations.items()
    )


def uris_of(entry: Entry) -> tuple[str, ...]:
    """Those of its images."""
    return tuple(uri for uri in (entry.uri, *(frame.uri for frame in entry.frames)) if uri)


# ---------------------------------------------------------------------------------------------------------------------
# Cells


def cell_of(fields: Mapping[str, Any], column: str) -> Any:
    """The cell of a row that --where asks for: of a column of the manifest, or a canonical field."""
    for cells in (fields.get("asked"), fields.get("columns")):
        if isinstance(cells, Mapping) and column in cells:
            return cells[column]
    if column in ("width", "height"):
        size = fields.get("size")
        return None if size is None else size[column == "height"]
    return fields.get(column)


def holds(condition: Condition, cell: Any) -> bool:
    """Whether a cell satisfies a condition.

    Numbers are compared as numbers where both are, and all else as text, without white space around it. An empty cell
    equals an empty value, and satisfies no order. Of a list one member must be equal. Raises RowError for a cell that
    is no number where the order of numbers is asked for, and for one that has no order.
    """
    cell = plain(cell)
    if isinstance(cell, list | tuple) and len(cell) == 1:
        cell = cell[0]
    wanted = condition.value.strip()
    if condition.operator in ("=", "!="):
        items = cell if isinstance(cell, list | tuple | set | frozenset) else [cell]
        return any(_equal(item, wanted) for item in items) == (condition.operator == "=")
    if is_blank(cell):
        return False
    text, number = text_of(cell), _number(wanted)
    own = None if text is None else _number(text)
    if text is None or (number is not None and own is None):
        told = "is no number" if number is not None else "has no order"
        raise RowError("bad_row", f"--where {condition}: the cell {shown(cell)} {told}: correct it, or ask another way")
    if number is not None and own is not None:
        return _in_order(condition.operator, own, number)
    return _in_order(condition.operator, text.strip(), wanted)


def _in_order(operator: str, one: Any, other: Any) -> bool:
    if operator == "<":
        return bool(one < other)
    if operator == "<=":
        return bool(one <= other)
    return bool(one > other) if operator == ">" else bool(one >= other)


def _equal(cell: Any, wanted: str) -> bool:
    text = "" if is_blank(cell) else text_of(cell)
    if text is None:
        return False
    text = text.strip()
    if isinstance(cell, bool):
        wanted = wanted.lower()
    if text == wanted:
        return True
    one, other = _number(text), _number(wanted)
    return one is not None and one == other


def _number(text: str) -> float | None:
    """A finite or infinite number; None for everything else, NaN included."""
    try:
        number = float(text) if text.isascii() and "_" not in text else float("nan")
    except ValueError:
        return None
    return None if number != number else number


# ---------------------------------------------------------------------------------------------------------------------
# Boxes


def is_large(item: Object, least: MinBox, size: Size | None) -> bool:
    """Whether a box is as wide and as high as it must be. size: of the picture, where it matters.

    A box that cannot be right is left to ``--bad_boxes``, and one whose size nobody can tell is kept.
    """
    box = item.box if item.box is not None else _around(item)
    if box is None or fault_of(box) is not None:
        return True
    width, height = box.xmax - box.xmin, box.ymax - box.ymin
    if item.normalized and item.box is not None:
        width, height = width * 100, height * 100
        if least.unit == "%":
            return min(width, height) + _PERCENT_ROUNDING >= least.size
        return size is None or min(width * size[0], height * size[1]) / 100 + FLOAT_PIXELS >= least.size
    if least.unit == "px":
        return min(width, height) + FLOAT_PIXELS >= least.size
    return size is None or min(width / size[0], height / size[1]) * 100 + _PERCENT_ROUNDING >= least.size


def _around(item: Object) -> Box | None:
    """The box around a mask that has none."""
    if not isinstance(item.mask, Runs):
        return None
    runs = item.mask
    try:
        counts = parse_counts(runs.counts) if isinstance(runs.counts, str) else runs.counts
        mask = decode_runs(counts, runs.height, runs.width)
    except ValueError:
        return None  # told where it is drawn
    columns, rows = mask.any(axis=0).nonzero()[0], mask.any(axis=1).nonzero()[0]
    return Box(columns[0], rows[0], columns[-1] + 1, rows[-1] + 1) if len(columns) else None
