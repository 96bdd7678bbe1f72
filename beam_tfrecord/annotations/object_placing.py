"""Objects moved into the stored image: box, mask and keypoints of one object together."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from beam_tfrecord.annotations.base import Placement
from beam_tfrecord.annotations.box_rules import (
    ROUNDING_PIXELS,
    Box,
    drop_box,
    float32,
    mend_box,
    normalized_box,
    overhang,
    place_box,
)
from beam_tfrecord.annotations.mask_images import encode_png, frame_of_size, place_array
from beam_tfrecord.annotations.objects import Keypoints, MaskImage, Object, Polygons, Runs
from beam_tfrecord.annotations.shapes import decode_runs, draw_polygons, parse_counts
from beam_tfrecord.errors import AnnotationError

_MOST_PIXELS = 2**28  # of a mask that is scaled


def drawn_size(placement: Placement) -> tuple[int, int]:
    """(width, height) in pixels of the picture that the annotation was drawn in."""
    return placement.frame.turned_size if placement.is_upright else placement.frame.source_size


def place_object(item: Object, told: str, placement: Placement) -> Object | None:
    """An object in the frame of the stored image, or None when its box is dropped.

    Raises AnnotationError when something of it cannot be right and ``--bad_boxes`` is ``reject``.
    """
    policy = placement.config.features.bad_boxes
    mask = _drawn_mask(item, told, placement)
    given = item.box if item.box is not None else _extent_of_mask(mask)
    if given is None:
        drop_box(f"{told} has no box, and no mask to take one from", policy, placement.warn)
        return None
    if item.normalized and item.box is not None:
        given = given.scaled(*drawn_size(placement))
    mended = mend_box(given, drawn_size(placement), policy, told, placement.warn)
    if mended is None:
        return None
    frame = placement.frame
    placed = place_box(mended, frame, is_upright=placement.is_upright)
    box = normalized_box(placed, frame.width, frame.height)
    if not placed.is_in_order or not box.is_in_order:
        placement.warn("box_dropped", f"{told}: nothing of the box {mended} is left in the stored image")
        return None
    keypoints = item.keypoints and place_keypoints(item.keypoints, item.normalized, told, placement)
    png = None if mask is None else MaskImage(encode_png(place_array(mask, placement)))
    is_clipped = overhang(given, *drawn_size(placement)) > ROUNDING_PIXELS
    area = _placed_area(item, given if is_clipped else mended, placed, placement)
    return replace(
        item,
        box=box,
        normalized=True,
        attributes={**item.attributes, "area": area},
        mask=png,
        keypoints=keypoints,
    )


def _placed_area(item: Object, whole: Box, placed: Box, placement: Placement) -> float:
    """The stated area, or else that of the box, in square pixels of the stored image.

    Of a stated area as large a part is taken as the edge of the image and a crop leave of the whole box.
    """
    stated = item.attributes.get("area")
    if stated is None or not math.isfinite(stated) or stated < 0:
        return float32(placed.area)
    scale = placement.frame.scale_x * placement.frame.scale_y
    return float32(stated * scale * min(1.0, placed.area / (whole.area * scale)))


# ---------------------------------------------------------------------------------------------------------------------
# Masks


def _drawn_mask(item: Object, told: str, placement: Placement) -> Any:
    """The mask of an object as an array (height, width) of 0 and 1 in the picture it was drawn in, or None.

    A mask that cannot be right is left out with a warning, or rejects the item under ``--bad_boxes reject``.
    """
    try:
        if isinstance(item.mask, Polygons):
            width, height = drawn_size(placement)
            parts = item.mask.parts
            if item.normalized:
                parts = tuple(_scaled(part, width, height) for part in parts)
            return draw_polygons(parts, height, width)
        if isinstance(item.mask, Runs):
            runs = item.mask
            if runs.scales and runs.width * runs.height > _MOST_PIXELS:
                raise ValueError(f"a mask of {runs.width}x{runs.height} pixels is larger than any picture")
            if not runs.scales:
                frame_of_size((runs.width, runs.height), placement)  # before any memory is taken
            counts = parse_counts(runs.counts) if isinstance(runs.counts, str) else runs.counts
            mask = decode_runs(counts, runs.height, runs.width)
            return _scaled_mask(mask, drawn_size(placement)) if runs.scales else mask
    except ValueError as error:
        return _drop_mask(f"{told}: {error}", placement)
    except AnnotationError as error:
        return _drop_mask(f"{told}: {error.message}", placement)
    return None


def _scaled_mask(mask: Any, size: tuple[int, int]) -> Any:
    """A mask that is a fraction of the picture at any size, in that of the picture, by nearest neighbour."""
    import numpy as np
    from PIL import Image

    if mask.shape == size[::-1]:
        return mask
    return np.asarray(Image.fromarray(mask).resize(size, Image.Resampling.NEAREST))


def _scaled(polygon: tuple[float, ...], width: int, height: int) -> tuple[float, ...]:
    return tuple(number * (height if place % 2 else width) for place, number in enumerate(polygon))


def _drop_mask(message: str, placement: Placement) -> None:
    if placement.config.features.bad_boxes == "reject":
        raise AnnotationError("bad_mask", message)
    placement.warn("mask_dropped", message)


def _extent_of_mask(mask: Any) -> Box | None:
    """The box around the pixels of a mask."""
    if mask is None or not mask.any():
        return None
    columns, rows = mask.any(axis=0).nonzero()[0], mask.any(axis=1).nonzero()[0]
    return Box(float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1))


# ---------------------------------------------------------------------------------------------------------------------
# Keypoints


def place_keypoints(keypoints: Keypoints, normalized: bool, told: str, placement: Placement) -> Keypoints:
    """Keypoints as fractions of the stored image. A point that is not labelled is (0, 0, 0).

    A point outside of the picture by no more than a rounding pixel is moved to the edge; further out it cannot be right
    and counts as not labelled, with a warning. One that a crop cuts away counts as not labelled.
    Raises AnnotationError (``bad_keypoints``) for a labelled point that is not finite.
    """
    width, height = drawn_size(placement)
    placed = []
    for number, (x, y, visibility) in enumerate(keypoints.points):
        if visibility == 0:
            placed.append((0.0, 0.0, 0))
            continue
        if not (math.isfinite(x) and math.isfinite(y)):
            raise AnnotationError("bad_keypoints", f"{told}: keypoint {number + 1} is not a finite number")
        if normalized:
            x, y = x * width, y * height
        if max(-x, -y, x - width, y - height) > ROUNDING_PIXELS:
            placement.warn(
                "keypoint_outside",
                f"{told}: keypoint {number + 1} at ({x:g}, {y:g}) lies outside of the image of {width}x{height}",
            )
            placed.append((0.0, 0.0, 0))
            continue
        placed.append(_place_point(min(max(x, 0.0), width), min(max(y, 0.0), height), visibility, placement))
    return Keypoints(tuple(placed), keypoints.names)


def _place_point(x: float, y: float, visibility: int, placement: Placement) -> tuple[float, float, int]:
    frame = placement.frame
    left, top = frame.place_point(x, y, is_upright=placement.is_upright)
    across, down = float32(left / frame.width), float32(top / frame.height)
    if not (0 <= across <= 1 and 0 <= down <= 1):
        return 0.0, 0.0, 0
    return across, down, visibility
