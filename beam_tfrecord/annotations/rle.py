"""COCO run-length codes of masks, read with every number checked.

A mask of height h and width w is read down its columns, left to right, as alternating runs of zeros and ones, zeros
first. Plain codes are lists of run lengths. The compressed text holds each length as 5-bit groups, lowest first, in the
characters from ``0`` on: 0x20 marks that more groups follow, 0x10 in the last group the sign; from the fourth length on
it is the difference to the length two before. (Source: ``maskApi.c`` of the COCO API.)

They are decoded here and not by pycocotools because its C code trusts the lengths; the results are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def parse_counts(text: str) -> list[int]:
    """The run lengths of a compressed code. Raises ValueError when the text is none."""
    counts: list[int] = []
    place = 0
    while place < len(text):
        number = shift = 0
        more = True
        while more:
            if place == len(text):
                raise ValueError("the run-length code ends inside a number")
            group = ord(text[place]) - 48
            if not 0 <= group < 64:
                raise ValueError(f"the run-length code holds {text[place]!r}, which cannot be part of it")
            number |= (group & 0x1F) << shift
            shift += 5
            place += 1
            more = bool(group & 0x20)
            if not more and group & 0x10:
                number -= 1 << shift
        counts.append(number + counts[-2] if len(counts) > 2 else number)
    return counts


def decode_runs(counts: Sequence[int], height: int, width: int) -> npt.NDArray[np.uint8]:
    """The mask of some runs: shape (height, width), 0 and 1. Raises ValueError when they do not fill it exactly."""
    import numpy as np

    if any(count < 0 for count in counts):
        raise ValueError("the run-length code has a negative length")
    if sum(counts) != height * width:
        raise ValueError(f"the runs make {sum(counts)} pixels, the mask has {height}x{width}")
    values = np.arange(len(counts), dtype=np.int64) % 2
    flat = np.repeat(values.astype(np.uint8), np.asarray(counts, dtype=np.int64))
    mask: npt.NDArray[np.uint8] = flat.reshape(width, height).T
    return mask
