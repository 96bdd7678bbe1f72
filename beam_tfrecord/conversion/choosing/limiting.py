"""``--limit``: a sample of the rows that depends on nothing but their ids and the seed.

Each row has a place in a fixed random order, and the sample is the first rows of it. Rows are taken from cells: those
of each split, with ``--stratify`` those of each class in it, and those that cannot become records. The k-th row of a
cell of n (from 0) stands at (k + 1/2) / n, and the rows that stand first are taken, whatever their cell: each cell has
its share (it is the method of Webster), and a larger sample holds every smaller one. The first row of a cell that can
become a record stands at 0: no split and no class is left out of a sample that is large enough for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
Cell = tuple[str | None, str]  # split (None: the plan decides it) and class

KEPT_HASHES = 4_000_000  # of a cell; more are only counted where a share of them is asked for
EVERYTHING = 2**64
_ONE = 2**100


def sample_places(orders: Hashes) -> Hashes:
    """The place of each row in the order of the sample, from its place among the records (dtype uint64).

    Another order than that of the records: a manifest may fix theirs, and then its first records are no sample. One to
    one, so that only copies of one id share a place. (The finalizer of splitmix64.)
    """
    mixed = orders + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    places: Hashes = mixed ^ (mixed >> np.uint64(31))
    return places


@dataclass(frozen=True)
class CellSketch:
    """The rows of a cell: how many, and the order hashes (uint64) of those that come first in the sample.

    most: how many of them can be asked for, of which one more is kept: it may be a copy of the last one. None for any
    number, and then the hashes are given up where there are too many. Whether they are kept depends on their number
    alone, so the order of additions cannot show.
    """

    count: int
    orders: bytes | None
    most: int | None

    @property
    def array(self) -> Hashes | None:
        """The hashes in the order of the sample; None when they were given up."""
        return None if self.orders is None else _first(np.frombuffer(self.orders, np.uint64), None)


def cell_sketch(orders: Sequence[int], most: int | None) -> CellSketch:
    """The sketch of some rows."""
    return _sketch(len(orders), np.array(orders, np.uint64), most)


def merge_cells(sketches: Iterable[CellSketch]) -> CellSketch:
    """The sketch of all rows of several sketches, one at least, of one option."""
    parts = list(sketches)
    count, most = sum(part.count for part in parts), parts[0].most
    kept = [np.frombuffer(part.orders, np.uint64) for part in parts if part.orders is not None]
    return _sketch(count, np.concatenate(kept) if len(kept) == len(parts) else None, most)


def _sketch(count: int, orders: Hashes | None, most: int | None) -> CellSketch:
    if orders is None or (most is None and count > KEPT_HASHES):
        return CellSketch(count, None, most)
    kept = orders if most is None or len(orders) <= most else _first(orders, most + 1)
    return CellSketch(count, kept.tobytes(), most)


def _first(orders: Hashes, number: int | None) -> Hashes:
    return orders[np.argsort(sample_places(orders), kind="stable")[:number]]


def sample_size(limit: int | float, rows: int) -> int:
    """How many of so many rows are taken. A share is rounded, and is one row at least."""
    return min(rows, limit if isinstance(limit, int) else max(1, int(limit * rows + 0.5)))


def apportion(total: int, sizes: Mapping[Cell, int], spared: Cell) -> dict[Cell, int]:
    """How many rows of each cell are in a sample of ``total``. spared: the cell that need not have any."""
    cells = sorted(sizes, key=lambda cell: (-sizes[cell], cell[0] or "", cell[0] is None, cell[1]))
    at_once = [cell for cell in cells if sizes[cell] and cell != spared][:total]
    taken = {cell: int(cell in at_once) for cell in cells}
    if len(at_once) == total:
        return taken
    low, high = 0, _ONE  # the rows that stand at high or before it are enough, those at low too few
    while high - low > 1:
        middle = (low + high) // 2
        if sum(_standing_at(middle, sizes[cell], taken[cell]) for cell in cells) < total:
            low = middle
        else:
            high = middle
    taken = {cell: _standing_at(low, sizes[cell], taken[cell]) for cell in cells}
    missing = total - sum(taken.values())
    nearest = [cell for cell in cells if _standing_at(high, sizes[cell], taken[cell]) > taken[cell]]
    for cell in nearest[:missing]:
        taken[cell] += 1
    return taken


def _standing_at(place: int, size: int, least: int) -> int:
    """How many of the rows of a cell stand at a place or before it, ``least`` being taken in any case.

    place: in parts of :data:`_ONE`, so that nothing is rounded.
    """
    return max(least, min(size, (2 * place * size + _ONE) // (2 * _ONE)))


@dataclass(frozen=True)
class SampleEnd:
    """Where the sample of a cell ends. place: the first place that is not in it. orders: hashes of the rows in it, when
    they are known. count: how many it has. tie: (order hash, how many of its copies are in it) of the id that it ends
    within.
    """

    place: int
    count: int
    orders: Hashes | None
    tie: tuple[int, int] | None = None


def sample_end(cell: CellSketch, count: int) -> SampleEnd:
    """The end of a sample of so many rows of a cell."""
    if count >= cell.count:
        return SampleEnd(EVERYTHING, cell.count, cell.array)
    if count == 0:
        return SampleEnd(0, 0, np.zeros(0, np.uint64))
    orders = cell.array
    if orders is None:  # millions: the share is right by the law of large numbers
        return SampleEnd(EVERYTHING * count // cell.count, count, None)
    last = orders[count - 1]
    end = int(sample_places(orders[count - 1 : count])[0]) + 1
    copies = int(np.count_nonzero(orders == last))
    first = int(np.flatnonzero(orders == last)[0])
    tie = (int(last), count - first) if first + copies > count else None
    return SampleEnd(end, count, orders[:count], tie)
