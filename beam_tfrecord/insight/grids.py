"""A grey picture of any size as a grid of 32 by 32 means: what everything else here is computed from."""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt
from PIL import Image

CELLS = 32
LEVEL = 16  # steps of a grid to one of 256 levels of grey

Grids = npt.NDArray[np.int16]  # (pictures, CELLS, CELLS), 0 to 255 * LEVEL


def grid_of(grey: npt.NDArray[np.uint8], span: tuple[int, int] | None = None, step: int = 1) -> Grids:
    """The means of the cells of a grey picture (height, width): :func:`grids_of` of one."""
    found: Grids = grids_of(grey[None], span, step)[0]
    return found


def grids_of(greys: npt.NDArray[np.uint8], span: tuple[int, int] | None = None, step: int = 1) -> Grids:
    """The means of the cells of grey pictures (pictures, height, width), in sixteenths of a level, rounded down.

    span, step: the height and width that a picture stands for, in units of which each pixel is ``step`` high and
    wide, but for those at the far edges where the span ends (a JPEG of 259 pixels at an eighth has 33, the last of
    which is 3 wide). Every sum is of whole numbers that floats hold exactly, so the order in which a library adds them
    up cannot show. Matrices are so small that no library calls threads for them.
    """
    down, across = span or greys.shape[1:]
    y, x = (max(1, side // CELLS) for side in greys.shape[1:])
    if y > 1 or x > 1:
        greys = np.stack([np.asarray(Image.fromarray(grey).reduce((x, y))) for grey in greys])
    if greys.shape[1:] == (CELLS, CELLS) and (down, across) == (CELLS * step * y, CELLS * step * x):
        return greys.astype(np.int16) * LEVEL  # a pixel is a cell
    rows, _, height = _shares(greys.shape[1], down, step * y)
    _, columns, width = _shares(greys.shape[2], across, step * x)
    sums = (rows @ greys.astype(np.float32)).astype(np.float64) @ columns
    # Half of the least difference of two means: what is whole stays so, whatever the division makes of it.
    grids: Grids = ((sums + 0.5 / LEVEL) * (LEVEL / (height * width))).astype(np.int16)
    return grids


@functools.lru_cache(maxsize=256)
def _shares(size: int, span: int, step: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64], int]:
    """How much each pixel of a side counts for each cell, in whole numbers: (cells, pixels), the same (pixels, cells),
    and the sum of them, which is that of every cell. Pixels larger than cells are drawn out linearly, as pictures are
    when they are enlarged."""
    if size < CELLS:
        shares = np.zeros((CELLS, size), np.float32)
        for cell in range(CELLS):
            place = (2 * cell + 1) * size - CELLS  # of its middle, behind that of the first pixel, in 64ths of a pixel
            pixel, part = divmod(min(max(place, 0), 2 * CELLS * (size - 1)), 2 * CELLS)
            shares[cell, pixel] += 2 * CELLS - part
            shares[cell, min(pixel + 1, size - 1)] += part
        total = 2 * CELLS
    else:
        edges = np.minimum(np.arange(size + 1) * step, span) * CELLS
        cells = np.arange(CELLS)[:, None] * span
        overlap = np.minimum(edges[1:], cells + span) - np.maximum(edges[:-1], cells)
        shares, total = np.clip(overlap, 0, None).astype(np.float32), span
    return shares, np.ascontiguousarray(shares.T, np.float64), total
