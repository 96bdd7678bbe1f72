"""Pairs of near fingerprints among many, without comparing all with all.

The 64 bits of the lowest frequencies are cut into six blocks. Two pictures are compared when they agree in any two
blocks, which those whose low frequencies differ in up to four bits always do, and most of those that differ in six. For
each of the fifteen pairs of blocks the fingerprints are sorted, and each is compared with those behind it in its
neighbourhood: so the work grows with n log n, whatever the collection is like.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from beam_tfrecord.insight.fingerprints import WORDS, Fingerprints, count_bits, mirrored
from beam_tfrecord.insight.likeness import Thumbnails, likeness

NEAR_BITS = 40  # in which the fingerprints of near-duplicates differ at most
LEAST_CORRELATION, MOST_APART = 0.97, 0.55  # of their thumbnails: see beam_tfrecord.insight.likeness
BLOCKS = 6
WINDOW = 16  # fingerprints of one neighbourhood that each is compared with
MOST_PICTURES = 16_000_000  # above it nobody looks for pairs: 40 bytes of each are held
_AT_ONCE = 1 << 14  # thumbnails that are compared together
_NONE, _NUMBER_BITS = np.iinfo(np.int64).max, 48  # of a picture
_PAIRS_AT_ONCE = 1 << 18  # of copies of near pictures
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_24, _40 = np.uint64(24), np.uint64(40)

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pairs:
    """Pairs of pictures by their numbers, ``first`` below ``second``, each once, sorted. distance: in bits."""

    first: Numbers
    second: Numbers
    distance: Numbers
    is_mirrored: npt.NDArray[np.bool_]

    def of(self, which: npt.NDArray[Any]) -> Pairs:
        """Some of them: a mask, or their numbers."""
        return Pairs(self.first[which], self.second[which], self.distance[which], self.is_mirrored[which])

    def joined(self, other: Pairs) -> Pairs:
        """These pairs and others."""
        return Pairs(
            np.concatenate((self.first, other.first)),
            np.concatenate((self.second, other.second)),
            np.concatenate((self.distance, other.distance)),
            np.concatenate((self.is_mirrored, other.is_mirrored)),
        )

    def numbered(self, renumber: Callable[[Numbers], Numbers]) -> Pairs:
        """The same pairs under other numbers."""
        return Pairs(renumber(self.first), renumber(self.second), self.distance, self.is_mirrored)

    def __len__(self) -> int:
        return len(self.first)


def numbers_of(pairs: Pairs) -> Numbers:
    """The pictures in pairs, each once, sorted."""
    numbers = np.sort(np.concatenate((pairs.first, pairs.second)))
    found: Numbers = numbers[np.diff(numbers, prepend=-1) != 0]
    return found


NO_PAIRS = Pairs(*(np.zeros(0, np.int64),) * 3, np.zeros(0, np.bool_))


class Nearest:
    """Of each picture, the pair with the nearest one before it: as it stands before mirrored, and the first of all."""

    def __init__(self, members: Numbers) -> None:
        self._members = members
        self._best = np.full(len(members), _NONE)  # distance, mirrored and number in one, so that the least is nearest

    def add(self, pairs: Pairs) -> None:
        """Take in pairs of the members, whose numbers are sorted."""
        own = (pairs.distance << 1 | pairs.is_mirrored) << _NUMBER_BITS | pairs.first
        np.minimum.at(self._best, np.searchsorted(self._members, pairs.second), own)

    def pairs(self) -> Pairs:
        """The nearest of all pairs."""
        found = np.flatnonzero(self._best != _NONE)
        best = self._best[found]
        how = best >> _NUMBER_BITS
        return Pairs(best & ((1 << _NUMBER_BITS) - 1), self._members[found], how >> 1, how & 1 == 1)


def near_pairs(fingerprints: Fingerprints, numbers: Numbers, most: int, mirrors: bool = True) -> Pairs:
    """Pairs that differ in at most ``most`` bits, as they stand or one of them mirrored.

    numbers: of the pictures that take part.
    """
    own = fingerprints[numbers]
    found = list(_same_way(own, most))
    if mirrors:
        found += _other_way(own, most)
    none = np.zeros(0, np.int64)
    first, second, distance = (np.concatenate([none, *(part[column] for part in found)]) for column in range(3))
    turned = np.concatenate([np.zeros(0, np.bool_), *(part[3] for part in found)])
    first, second = numbers[np.minimum(first, second)], numbers[np.maximum(first, second)]
    first, second = np.minimum(first, second), np.maximum(first, second)
    order = np.lexsort((turned, distance, second, first))
    first, second, distance, turned = first[order], second[order], distance[order], turned[order]
    is_new = np.ones(len(first), np.bool_)
    is_new[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    return Pairs(first[is_new], second[is_new], distance[is_new], turned[is_new])


Found = tuple[Numbers, Numbers, Numbers, npt.NDArray[np.bool_]]


def _same_way(own: Fingerprints, most: int) -> Iterator[Found]:
    for mask in _masks():
        for one, other, distance in _in_windows(own, mask, most):
            yield one, other, distance, np.zeros(len(one), np.bool_)


def _other_way(own: Fingerprints, most: int) -> Iterator[Found]:
    """Each with the mirrored ones: both lie in one list, and only pairs of a plain and a mirrored one count."""
    both = np.concatenate((own, mirrored(own)))
    for mask in _masks():
        for one, other, distance in _in_windows(both, mask, most):
            is_turned = ((one < len(own)) != (other < len(own))) & (one % len(own) != other % len(own))
            one, other, distance = one[is_turned] % len(own), other[is_turned] % len(own), distance[is_turned]
            yield one, other, distance, np.ones(len(one), np.bool_)


def _in_windows(all_of_them: Fingerprints, mask: np.uint64, most: int) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
    """Near ones among those that agree in the bits of a mask, each compared with the next ones in a fixed order."""
    # The agreeing bits as a number of 24 bits above; below what puts alike ones side by side.
    key = ((all_of_them[:, 0] & mask) * _SPREAD >> _40 << _40) | (all_of_them[:, 1] >> _24)
    order = np.argsort(key, kind="stable")
    key = key[order] >> _40
    words = [np.ascontiguousarray(all_of_them[order, word]) for word in range(WORDS)]
    places = np.arange(len(order))
    for step in range(1, WINDOW + 1):
        places = places[: np.searchsorted(places, len(order) - step)]
        places = places[key[places] == key[places + step]]
        here, distance = places, np.zeros(len(places), np.int64)
        for word in reversed(words):
            if not len(here):
                break
            distance += count_bits(word[here] ^ word[here + step])
            is_near = distance <= most
            here, distance = here[is_near], distance[is_near]
        if len(here):
            yield order[here], order[here + step], distance


def _masks() -> list[np.uint64]:
    """Of each pair of blocks of the first word. Its bits go round the blocks, so that each holds low and high ones."""
    blocks = [sum(1 << bit for bit in range(block, 64, BLOCKS)) for block in range(BLOCKS)]
    return [np.uint64(one | other) for one, other in itertools.combinations(blocks, 2)]


def pairs_of_copies(contents: npt.NDArray[np.uint64]) -> Pairs:
    """Of pictures with the same content, each with the first of them. contents: hashes, 0 for none."""
    order = np.argsort(contents, kind="stable")
    ordered = contents[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=np.uint64(0)) != 0)
    if not len(starts):
        starts = np.zeros(1, np.int64)
    run = np.searchsorted(starts, np.arange(len(order)), side="right") - 1
    first = order[starts[np.maximum(run, 0)]] if len(order) else order
    is_copy = (first != order) & (ordered != 0)
    pairs = first[is_copy], order[is_copy]
    zeros = np.zeros(int(is_copy.sum()), np.int64)
    return Pairs(*pairs, zeros, zeros.astype(np.bool_))


def with_copies(near: Pairs, copies: Pairs, kinds: Callable[[Numbers], Sequence[npt.NDArray[Any]]]) -> Iterator[Pairs]:
    """Pairs of near pictures and of all their copies, some at a time: each picture beside those before it that are the
    first of their kind, WINDOW of each content at most.

    near: of pictures that are the first of their content. copies: each beside the first. kinds: values that tell kinds
    of pictures apart, from their numbers.
    """
    firsts = numbers_of(near)
    is_copy = np.isin(copies.first, firsts)
    if not is_copy.any():
        yield near
        return
    contents = np.concatenate((firsts, copies.first[is_copy]))  # by the first picture of each
    members = np.concatenate((firsts, copies.second[is_copy]))
    order = np.lexsort((members, contents))
    contents, members = contents[order], members[order]
    columns = [contents, *kinds(members)]
    order = np.lexsort((members, *reversed(columns)))
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = np.any([values[order[1:]] != values[order[:-1]] for values in columns], axis=0)
    heads = np.sort(order[is_first])
    for one, other in ((near.first, near.second), (near.second, near.first)):
        starts, ends = (np.searchsorted(contents[heads], one, side) for side in ("left", "right"))
        for rank in range(WINDOW):
            places = np.flatnonzero(starts + rank < ends)
            begin, end = (np.searchsorted(contents, other[places], side) for side in ("left", "right"))
            batch = np.cumsum(end - begin) // _PAIRS_AT_ONCE
            for own in np.split(np.arange(len(places)), np.flatnonzero(np.diff(batch)) + 1):
                which = np.repeat(own, (end - begin)[own])
                second = members[np.concatenate([np.zeros(0, np.int64), *map(np.arange, begin[own], end[own])])]
                first = members[heads[starts[places[which]] + rank]]
                pair = places[which]
                found = Pairs(first, second, near.distance[pair], near.is_mirrored[pair])
                yield found.of(first < second)


def alike(pairs: Pairs, thumbnails: Thumbnails) -> npt.NDArray[np.bool_]:
    """Which pairs have thumbnails (by the numbers of the pictures) that are alike; mirrored ones must be more so."""
    keep = np.zeros(len(pairs), np.bool_)
    for start in range(0, len(pairs), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        others = thumbnails[pairs.second[part]]
        others = np.where(pairs.is_mirrored[part, None, None], others[:, :, ::-1], others)
        correlation, apart = likeness(thumbnails[pairs.first[part]], others)
        most = np.where(pairs.is_mirrored[part], MOST_APART / 2, MOST_APART)
        keep[part] = (correlation >= LEAST_CORRELATION) & (apart <= most)
    return keep


def clusters_of(pairs: Pairs) -> list[Numbers]:
    """The pictures that pairs hold together, each cluster sorted, in the order of their first pictures."""
    members = numbers_of(pairs)
    first, second = np.searchsorted(members, pairs.first), np.searchsorted(members, pairs.second)
    root = np.arange(len(members))  # the first member of the cluster of each, as far as it is known
    while len(first):
        np.minimum.at(root, np.maximum(root[first], root[second]), np.minimum(root[first], root[second]))
        while (root[root] != root).any():
            root = root[root]
        is_apart = root[first] != root[second]
        first, second = first[is_apart], second[is_apart]
    order = np.argsort(root, kind="stable")
    return np.split(members[order], np.flatnonzero(np.diff(root[order])) + 1) if len(members) else []
