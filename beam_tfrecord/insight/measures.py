"""How light, flat or framed a picture is, measured on its grid."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from beam_tfrecord.insight.grids import CELLS, LEVEL, Grids

DARK, BRIGHT = 51, 204  # levels of grey: a fifth, and four fifths of white
_EVEN = 6 * LEVEL  # what the cells of a bar may differ by
_EDGE = 10 * LEVEL  # what the cells beside a bar differ from it at least
_MOST_BAR = CELLS // 2 - 2  # cells

Numbers = npt.NDArray[np.int64]


def brightness_of(grids: Grids) -> Numbers:
    """The mean level of grey, 0 to 255, rounded down."""
    found: Numbers = (grids.sum(axis=(1, 2), dtype=np.int64) // (CELLS * CELLS * LEVEL)).astype(np.int64)
    return found


def dark_share(grids: Grids) -> Numbers:
    """Cells darker than a fifth of white, in thousandths of all."""
    return _share(grids < DARK * LEVEL)


def bright_share(grids: Grids) -> Numbers:
    """Cells lighter than four fifths of white, in thousandths of all."""
    return _share(grids > BRIGHT * LEVEL)


def _share(cells: npt.NDArray[np.bool_]) -> Numbers:
    found: Numbers = cells.sum(axis=(1, 2), dtype=np.int64) * 1000 // (CELLS * CELLS)
    return found


def range_of(grids: Grids) -> Numbers:
    """Levels of grey between the darkest and the lightest cell, in sixteenths."""
    found: Numbers = (grids.max(axis=(1, 2)) - grids.min(axis=(1, 2))).astype(np.int64)
    return found


def edge_of(grids: Grids) -> Numbers:
    """By how much the cell that stands out most differs from the mean of its two neighbours, across or down: in
    sixteenths of a level. Of what is sharp it is a large part of the range, of what is blurred far a small one, however
    much of the picture is plain."""
    middle = 2 * grids
    across = np.abs(middle[:, :, 1:-1] - grids[:, :, :-2] - grids[:, :, 2:]).max(axis=(1, 2))
    down = np.abs(middle[:, 1:-1] - grids[:, :-2] - grids[:, 2:]).max(axis=(1, 2))
    found: Numbers = (np.maximum(across, down) // 2).astype(np.int64)
    return found


def bars_of(grids: Grids) -> Numbers:
    """How much of a picture is taken by bars of one colour at two opposite sides, in thousandths; 0 without any.

    A bar ends in a straight edge: most of the cells behind it differ from it. The ground of a thing that was
    photographed before white has none.
    """
    found = np.zeros(len(grids), np.int64)
    for way in (grids, grids.transpose(0, 2, 1)):
        edges = way[:, (0, -1)].reshape(-1, 2 * CELLS)
        framed = np.flatnonzero(np.ptp(edges, axis=1) <= 3 * _EVEN)  # most have other edges, and need no second look
        if len(framed):
            found[framed] = np.maximum(found[framed], _bars(np.ascontiguousarray(way[framed])))
    return found * 1000 // CELLS


def _bars(grids: Grids) -> Numbers:
    """Rows of two bars, at the top and at the bottom."""
    lowest, highest = grids.min(axis=2), grids.max(axis=2)
    top = _rows_of_bar(grids, lowest, highest)
    bottom = _rows_of_bar(grids[:, ::-1], lowest[:, ::-1], highest[:, ::-1])
    is_framed = (top > 0) & (bottom > 0) & (np.abs(grids[:, 0, 0] - grids[:, -1, 0]) <= _EVEN)
    return np.where(is_framed, top + bottom, 0)


def _rows_of_bar(grids: Grids, lowest: Grids, highest: Grids) -> Numbers:
    colour = grids[:, :1, 0]
    is_bar = (highest - colour <= _EVEN) & (colour - lowest <= _EVEN)
    rows = np.where(is_bar.all(axis=1), CELLS, np.argmin(is_bar, axis=1))
    behind = np.minimum(rows + 1, CELLS - 1)  # the row between may hold the edge itself
    cells = grids[np.arange(len(grids)), behind]
    is_straight = (np.abs(cells - colour) >= _EDGE).sum(axis=1) * 5 >= CELLS * 4
    return np.where((rows <= _MOST_BAR) & is_straight, rows, 0)
