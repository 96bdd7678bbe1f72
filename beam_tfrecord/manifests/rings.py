"""Outlines as documents of strangers spell them: lists of points."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from beam_tfrecord.annotations.cells import real_number, shown
from beam_tfrecord.errors import RowError


def ring(given: Any, where: str) -> list[float]:
    """x, y, x, y ... of a list of points, each [x, y] or {"x": ..., "y": ...}. Raises RowError."""
    if not isinstance(given, list):
        raise RowError("bad_annotation", f"{where} is {shown(given)}, not a list of points")
    numbers = []
    for place, point in enumerate(given):
        pair = [point.get("x"), point.get("y")] if isinstance(point, Mapping) else point
        try:
            if not isinstance(pair, list) or len(pair) != 2:
                raise ValueError("it is not [x, y]")
            found = [real_number(None if isinstance(number, bool) else number) for number in pair]
            if not all(map(math.isfinite, found)):
                raise ValueError("it is no place in a picture")
        except (ValueError, TypeError) as error:
            raise RowError("bad_annotation", f"{where}[{place}] is {shown(point)}: {error}") from None
        numbers += found
    return numbers


def outline(given: Any, where: str) -> list[float]:
    """The same of something that has an area: of three points or more. Raises RowError."""
    numbers = ring(given, where)
    if len(numbers) < 6:
        raise RowError("bad_annotation", f"{where} has {len(numbers) // 2} points: an outline has at least three")
    return numbers
