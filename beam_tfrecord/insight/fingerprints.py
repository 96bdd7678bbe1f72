"""Perceptual fingerprints of 256 bits, computed from whole numbers.

A bit is the sign of one of the 16 by 16 lowest frequencies of the grid (its discrete cosine transform, as in pHash), so
brightness and contrast change none of them, and scaling and encoding anew few. The mean has no sign: its bit is 0. A
mirrored picture has the opposite sign in every other column of frequencies and the same in the rest, so its fingerprint
is known without looking at it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from beam_tfrecord.insight.grids import CELLS, Grids

FREQUENCIES = 16
LOW = 8  # frequencies each way of the first word
WORDS = 4
BITS = 64 * WORDS
_SCALE = 4096  # of a cosine: the sums of whole numbers stay below 2**53, which floats hold exactly

Fingerprints = npt.NDArray[np.uint64]  # (pictures, WORDS)


def _cosines() -> npt.NDArray[np.float64]:
    places = (2 * np.arange(CELLS) + 1) * np.arange(FREQUENCIES)[:, None]
    found: npt.NDArray[np.float64] = np.rint(np.cos(np.pi * places / (2 * CELLS)) * _SCALE)
    return found


_COSINES = _cosines()
# The 64 lowest frequencies come first, so that the first word tells pictures apart by what changes least.
_ROWS, _COLUMNS = np.divmod(np.arange(BITS), FREQUENCIES)
_ORDER = np.argsort(np.maximum(_ROWS, _COLUMNS) >= LOW, kind="stable")


def fingerprints_of(grids: Grids) -> Fingerprints:
    """The fingerprints of grids (pictures, CELLS, CELLS)."""
    frequencies = _COSINES @ (grids.astype(np.float64) @ _COSINES.T)
    bits = (frequencies > 0).reshape(-1, BITS)
    bits[:, 0] = False  # the mean
    return _packed(bits)


def _packed(bits: npt.NDArray[np.bool_]) -> Fingerprints:
    octets = np.packbits(bits.take(_ORDER, axis=1), axis=1, bitorder="little")
    return octets.view("<u8").astype(np.uint64, copy=False)


_MIRROR = _packed((_COLUMNS % 2 == 1)[None])[0]


def mirrored(fingerprints: Fingerprints) -> Fingerprints:
    """The fingerprints of the same pictures mirrored left to right."""
    found: Fingerprints = fingerprints ^ _MIRROR
    return found


def count_bits(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    """How many bits of each word are set: pairs of bits are added up, then fours, then all octets at once."""
    pairs = words - ((words >> _1) & _PAIRS)
    fours = (pairs & _FOURS) + ((pairs >> _2) & _FOURS)
    octets = (fours + (fours >> _4)) & _OCTETS
    found: npt.NDArray[np.uint8] = ((octets * _SUM) >> _56).astype(np.uint8)
    return found


_1, _2, _4, _56 = (np.uint64(bits) for bits in (1, 2, 4, 56))
_PAIRS, _FOURS, _OCTETS, _SUM = (np.uint64(octet * 0x0101010101010101) for octet in (0x55, 0x33, 0x0F, 1))
