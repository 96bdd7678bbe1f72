"""Whether boxes and keypoints lie in the frame of the image, and the lists of objects belong together.

Boxes are fractions of the image: 0 <= xmin < xmax <= 1, 0 <= ymin < ymax <= 1. float32 rounding is allowed for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.tools.verifying.faults import Problem

Frame = Mapping[str, Feature]

SLACK = 1e-6
SIDES = ("ymin", "xmin", "ymax", "xmax")
# Lists with one value for each object.
_PER_OBJECT = (
    *(f"bbox_{side}" for side in SIDES),
    "object_label",
    "object_text",
    "object_area",
    "object_is_crowd",
    "object_difficult",
    "object_truncated",
    "object_group_of",
    "object_occluded",
    "object_depiction",
    "object_inside",
    "object_pose",
    "object_confidence",
    "object_mask",
    "keypoint_num",
)
_PER_SEGMENT = (
    "panoptic_segment_label",
    "panoptic_segment_text",
    "panoptic_segment_is_crowd",
    "panoptic_segment_area",
)
_PER_POINT = ("keypoint_x", "keypoint_y", "keypoint_visibility", "keypoint_text")
_ALL = frozenset(("bbox", "label_text", *_PER_OBJECT, *_PER_SEGMENT, *_PER_POINT))


def check_objects(frame: Frame, keys: Mapping[str, str], *, partial: bool = False) -> Iterator[Problem]:
    """The boxes, keypoints and lists of one frame. keys: logical name -> key.

    partial: lists may be left empty, as writers do that have nothing to tell for any object.
    """
    if _ALL.isdisjoint(keys):
        return
    yield from _check_lengths(frame, keys, _PER_SEGMENT, partial)
    yield from _check_lengths(frame, keys, _PER_POINT, partial)
    if partial:
        yield from _check_lengths(frame, keys, ("label", "label_text"), partial)
        yield from _check_complete(frame, keys, [f"bbox_{side}" for side in SIDES])
        yield from _check_complete(frame, keys, ["keypoint_x", "keypoint_y"])
    uneven = list(_check_lengths(frame, keys, _PER_OBJECT, partial))
    yield from uneven
    rows = box_rows(frame, keys)
    count = _number_of_objects(frame, keys)
    if rows is not None and not uneven and "bbox" in keys and count is not None and count != len(rows):
        yield Problem("uneven_lists", f"{keys['bbox']} has {len(rows)} boxes, but there are {count} objects")
    for number, box in enumerate(rows or ()):
        fault = box_fault(box)
        if fault:
            told = ", ".join(f"{side} {value:g}" for side, value in zip(SIDES, box, strict=True))
            yield Problem("bad_box", f"box {number} ({told}) {fault}")
    yield from _check_keypoints(frame, keys, count if count is not None else len(rows) if rows is not None else 0)


def box_rows(frame: Frame, keys: Mapping[str, str]) -> list[tuple[float, ...]] | None:
    """(ymin, xmin, ymax, xmax) of each object, or None when the frame has no boxes or uneven ones."""
    rows = _values(frame, keys.get("bbox"))
    if rows is not None:
        whole = len(rows) - len(rows) % 4
        return [tuple(rows[start : start + 4]) for start in range(0, whole, 4)]
    sides = [_values(frame, keys.get(f"bbox_{side}")) for side in SIDES]
    if any(side is None for side in sides):
        return None
    lists = [side for side in sides if side is not None]
    if len({len(side) for side in lists}) != 1:
        return None
    return list(zip(*lists, strict=True))


def box_fault(box: Sequence[float]) -> str:
    """What is wrong with (ymin, xmin, ymax, xmax), or ''."""
    ymin, xmin, ymax, xmax = box
    if not all(map(math.isfinite, box)):
        return "has a side that is not a finite number"
    if xmin > xmax or ymin > ymax:
        return "is inverted"
    if xmin == xmax or ymin == ymax:
        return "is empty"
    if min(xmin, ymin) < -SLACK or max(xmax, ymax) > 1 + SLACK:
        return "reaches out of the image"
    return ""


def _values(frame: Frame, key: str | None) -> Sequence[float] | None:
    """The values of a list of numbers; None when there is none under the key."""
    feature = frame.get(key) if key else None
    return feature.values if feature is not None and feature.dtype in ("float", "int64") else None


def _number_of_objects(frame: Frame, keys: Mapping[str, str]) -> int | None:
    for name in _PER_OBJECT:
        feature = frame.get(keys.get(name, ""))
        if feature is not None:
            return len(feature.values)
    return None


def _check_lengths(frame: Frame, keys: Mapping[str, str], names: Sequence[str], partial: bool) -> Iterator[Problem]:
    lengths = {keys[name]: len(frame[keys[name]].values) for name in names if keys.get(name) in frame}
    if partial:
        lengths = {key: length for key, length in lengths.items() if length}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{key} {length}" for key, length in lengths.items())
        yield Problem("uneven_lists", f"lists that belong together have different lengths: {told}")


def _check_complete(frame: Frame, keys: Mapping[str, str], names: Sequence[str]) -> Iterator[Problem]:
    """Whether lists of numbers that mean nothing without one another are all there, or none."""
    missing = [name for name in names if _values(frame, keys.get(name)) is None]
    if 0 < len(missing) < len(names):
        there = next(keys[name] for name in names if name not in missing)
        told = " and no ".join(name.rpartition("_")[2] for name in missing)
        yield Problem("uneven_lists", f"{there} is there, but no {told} that belongs to it")


def _check_keypoints(frame: Frame, keys: Mapping[str, str], objects: int) -> Iterator[Problem]:
    across, down = _values(frame, keys.get("keypoint_x")), _values(frame, keys.get("keypoint_y"))
    if across is None or down is None or len(across) != len(down):
        return
    if across and not objects:
        yield Problem("uneven_lists", f"{keys['keypoint_x']} has {len(across)} values for no object")
    elif objects and len(across) % objects:
        yield Problem("bad_keypoints", f"{len(across)} keypoints are no whole number for each of {objects} objects")
    for number, (x, y) in enumerate(zip(across, down, strict=True)):
        if not (-SLACK <= x <= 1 + SLACK and -SLACK <= y <= 1 + SLACK):  # false for NaN, too
            yield Problem("bad_keypoints", f"keypoint {number} ({x:g}, {y:g}) is not in the image")
    visible, numbers = _values(frame, keys.get("keypoint_visibility")), _values(frame, keys.get("keypoint_num"))
    if visible is None or numbers is None or not objects or len(visible) % objects or len(numbers) != objects:
        return
    each = len(visible) // objects
    for number, stated in enumerate(numbers):
        found = sum(value > 0 for value in visible[number * each : (number + 1) * each])
        if found != stated:
            yield Problem("bad_keypoints", f"object {number} has {found} labelled keypoints, but {stated} are stated")
