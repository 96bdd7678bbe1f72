"""Whether two pictures with near fingerprints are one: their thumbnails of 16 by 16 grey values compared.

A fingerprint tells the directions in which a picture gets lighter, not how much: two of it can agree for a burst of
photos, or for two digits of the same kind. Here both are brought to the same mean and the same contrast, and must
agree everywhere.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from beam_tfrecord.insight.grids import CELLS, LEVEL, Grids

SIDE = CELLS // 2
LEAST_CONTRAST = 3  # levels of grey (standard deviation): below it there is nothing to compare
_PLACES = SIDE * SIDE
_ODD_ONES = 4  # places that may differ more: an edge moves by less than a cell

Thumbnails = npt.NDArray[np.uint8]  # (pictures, SIDE, SIDE)


def thumbnails_of(grids: Grids) -> Thumbnails:
    """The thumbnails of grids."""
    pairs = grids[:, ::2] + grids[:, 1::2]
    found: Thumbnails = ((pairs[:, :, ::2] + pairs[:, :, 1::2]) // (4 * LEVEL)).astype(np.uint8)
    return found


def has_contrast(thumbnails: Thumbnails) -> npt.NDArray[np.bool_]:
    """Whether there is anything in a picture that another can be like."""
    _, squares = _deviations(thumbnails)
    return squares >= _PLACES * (_PLACES * LEAST_CONTRAST) ** 2


def likeness(one: Thumbnails, other: Thumbnails) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """(correlation, difference) of pairs of thumbnails that have contrast.

    difference: that of all but the few places that differ most, in standard deviations. All sums are of whole numbers,
    and what is left are single divisions and roots, which are the same on every machine.
    """
    (a, squares_a), (b, squares_b) = _deviations(one), _deviations(other)
    norm = np.sqrt(squares_a) * np.sqrt(squares_b)
    correlation = (a * b).sum(axis=1) / norm
    apart = np.abs(a * np.sqrt(_PLACES / squares_a)[:, None] - b * np.sqrt(_PLACES / squares_b)[:, None])
    return correlation, np.partition(apart, _PLACES - _ODD_ONES, axis=1)[:, _PLACES - _ODD_ONES]


def _deviations(thumbnails: Thumbnails) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """What each place is above the mean, times 256, and the sum of the squares."""
    values = thumbnails.reshape(-1, _PLACES).astype(np.float64)
    above = values * _PLACES - values.sum(axis=1, keepdims=True)
    return above, (above * above).sum(axis=1)
