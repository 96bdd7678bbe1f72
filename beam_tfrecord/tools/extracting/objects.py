"""The lists of objects in a record as the dicts of the canonical field ``boxes``, and panoptic segments likewise.

Boxes and keypoints stay fractions of the image, as the float32 that they are; conversion gives the same float32 again.
Masks become run-length codes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from beam_tfrecord.annotations.objects import ATTRIBUTES
from beam_tfrecord.tools.extracting.values import (
    Features,
    UnextractableError,
    cell_of,
    needed,
    text_of_bytes,
    values_of,
)

Keys = Mapping[str, str]
LeaveOut = Callable[[str, str], None]
NamesOf = Callable[[str, str], list[str] | None]
_SIDES = ("xmin", "ymin", "xmax", "ymax")


def objects_of(
    features: Features, keys: Keys, names_of: NamesOf, leave_out: LeaveOut | None = None
) -> list[dict[str, Any]] | None:
    """The objects of a picture, or None when it has no such lists.

    keys: logical name -> key. names_of(ids, texts): the class names under two logical names. leave_out(key, why): is
    told of a list that does not fit the objects, but for an empty one, as of writers that have nothing to tell; without
    it such a list is an error. Raises UnextractableError.
    """
    boxes = _boxes(features, keys)
    names = names_of("object_label", "object_text")
    if boxes is None and names is None:
        return None
    if boxes is None or (names is not None and len(names) != len(boxes)):
        told = "no boxes" if boxes is None else f"{len(boxes)} boxes"
        raise UnextractableError("uneven_lists", f"there are {told}, but {len(names or ())} classes of objects")
    objects: list[dict[str, Any]] = [{"bbox": box, "normalized": True} for box in boxes]
    for item, name in zip(objects, names or (), strict=False):
        item["class"] = name
    for name, dtype in ATTRIBUTES.items():
        for item, value in _pairs(objects, features, keys.get(f"object_{name}"), dtype, leave_out):
            item[name] = cell_of(value)
    for item, value in _pairs(objects, features, keys.get("object_mask"), "bytes", leave_out):
        item["rle"] = run_lengths(value)
    _put_keypoints(objects, features, keys)
    return objects


def _boxes(features: Features, keys: Keys) -> list[list[float]] | None:
    rows = values_of(features, keys.get("bbox"), "float")
    if rows is not None:
        if len(rows) % 4:
            raise UnextractableError("uneven_lists", f"{keys['bbox']} has {len(rows)} values, which are no boxes")
        found = [rows[start : start + 4] for start in range(0, len(rows), 4)]
        return [[xmin, ymin, xmax, ymax] for ymin, xmin, ymax, xmax in found]
    sides = [values_of(features, keys.get(f"bbox_{side}"), "float") for side in _SIDES]
    lists = [side for side in sides if side is not None]
    if not lists:
        return None
    if len(lists) < 4:
        missing = [side for side, values in zip(_SIDES, sides, strict=True) if values is None]
        raise UnextractableError("uneven_lists", f"the boxes have no {' and no '.join(missing)}")
    if len({len(side) for side in lists}) != 1:
        raise UnextractableError("uneven_lists", "the four lists of the sides of boxes have different lengths")
    return [list(box) for box in zip(*lists, strict=True)]


def _pairs(
    objects: Sequence[dict[str, Any]], features: Features, key: str | None, dtype: str, leave_out: LeaveOut | None
) -> Iterator[tuple[dict[str, Any], Any]]:
    """Each object with its value of a list; nothing where there is no such list."""
    try:
        values = values_of(features, key, dtype)
        if values is None or (leave_out is not None and not values):
            return
        if len(values) != len(objects):
            raise UnextractableError("uneven_lists", f"{key} has {len(values)} values for {len(objects)} objects")
    except UnextractableError as error:
        if leave_out is None or key is None:
            raise
        leave_out(key, error.problem.cause)
        return
    yield from zip(objects, values, strict=True)


def _put_keypoints(objects: Sequence[dict[str, Any]], features: Features, keys: Keys) -> None:
    across = values_of(features, keys.get("keypoint_x"), "float")
    if across is None or not objects:
        if across:
            raise UnextractableError("uneven_lists", f"{keys['keypoint_x']} has {len(across)} values for no object")
        return
    down = needed(features, keys.get("keypoint_y", "y of keypoints"), "float")
    visible = values_of(features, keys.get("keypoint_visibility"), "int64")
    names = values_of(features, keys.get("keypoint_text"), "bytes") or ()
    count = len(across)
    if visible is None:
        visible = [2] * count
    if len(down) != count or len(visible) != count or count % len(objects) or (names and len(names) != count):
        raise UnextractableError("uneven_lists", f"{count} keypoints are no whole number for {len(objects)} objects")
    each = count // len(objects)
    for number, item in enumerate(objects):
        part = slice(number * each, (number + 1) * each)
        points = zip(across[part], down[part], visible[part], strict=True)
        item["keypoints"] = [cell_of(value) for point in points for value in point]
        if any(names[part]):
            item["keypoint_names"] = [text_of_bytes(name) for name in names[part]]


def run_lengths(png: bytes) -> dict[str, Any]:
    """A mask as a run-length code in the manner of COCO: down the columns, zeros first. Raises UnextractableError."""
    mask = decode_mask(png) != 0
    height, width = mask.shape
    flat = mask.T.ravel()
    changes = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    counts = np.diff([0, *changes, len(flat)]).tolist()
    return {"size": [height, width], "counts": [0, *counts] if flat[0] else counts}


def decode_mask(png: bytes) -> npt.NDArray[Any]:
    """The values of a grey PNG, shape (height, width). Raises UnextractableError when it is none."""
    from PIL import Image

    damaged = (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError)
    try:
        with Image.open(io.BytesIO(png), formats=("PNG",)) as image:
            array = np.asarray(image)
    except damaged as error:
        raise UnextractableError("bad_mask", f"a mask does not decode: {error}") from None
    if array.ndim != 2 or not array.size:
        raise UnextractableError("bad_mask", "the mask of an object has colours where it must be 0 and 1")
    return array


def segments_of(features: Features, keys: Keys, names_of: NamesOf) -> list[dict[str, Any]]:
    """The panoptic segments of a picture; their ids are the numbers in the mask, from 1. Raises UnextractableError."""
    names = names_of("panoptic_segment_label", "panoptic_segment_text") or []
    crowds = needed(features, keys["panoptic_segment_is_crowd"], "int64", len(names))
    return [
        {"id": number, "class": name, "is_crowd": crowd}
        for number, (name, crowd) in enumerate(zip(names, crowds, strict=True), start=1)
    ]
