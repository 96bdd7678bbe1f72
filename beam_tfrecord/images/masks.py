"""Masks in the frame of their image: their values are ids, not brightness, and never blended.

Only the nearest source pixel is ever taken, so that no id appears that was not there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from beam_tfrecord.core.geometry import PixelFrame
from beam_tfrecord.images.orientation import turn

PADDING = 0


def place_mask(mask: NDArray[Any], frame: PixelFrame) -> NDArray[Any]:
    """A mask (height, width) of any dtype, drawn on the raster of the file, in the frame of the stored image; what no
    source pixel falls on is 0.

    Each stored pixel takes the source pixel that its centre lies in.
    """
    mask = turn(mask, frame.orientation)
    rows, has_row = _sources(frame.height, mask.shape[0], frame.scale_y, frame.offset_y)
    columns, has_column = _sources(frame.width, mask.shape[1], frame.scale_x, frame.offset_x)
    placed = mask[rows[:, None], columns[None, :]]
    placed[~has_row] = PADDING
    placed[:, ~has_column] = PADDING
    return placed


def _sources(stored: int, length: int, scale: float, offset: float) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """For each stored coordinate the source coordinate that its centre lies in, and whether there is one."""
    positions = np.floor((np.arange(stored) + 0.5 - offset) / scale).astype(np.intp)
    return np.clip(positions, 0, length - 1), (positions >= 0) & (positions < length)
