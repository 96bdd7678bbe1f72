"""Near pairs beside the comparison of all with all."""

from __future__ import annotations

import itertools

import numpy as np

from beam_tfrecord.insight.fingerprints import mirrored
from beam_tfrecord.insight.neighbours import Nearest, Pairs, clusters_of, near_pairs, pairs_of_copies, with_copies

NONE = np.zeros(0, np.int64)


def with_flips(fingerprint: np.ndarray, bits: list[int]) -> np.ndarray:
    changed = fingerprint.copy()
    for bit in bits:
        changed[bit // 64] ^= np.uint64(1 << bit % 64)
    return changed


def collection(count: int, seed: int) -> np.ndarray:
    """Random fingerprints, and copies of some with four bits of the first word and some of the others changed."""
    random = np.random.default_rng(seed)
    own = random.integers(0, 2**64, (count, 4), dtype=np.uint64)
    copies = [
        with_flips(
            own[number],
            [*random.choice(64, 4, replace=False).tolist(), *random.choice(range(64, 256), 20, replace=False).tolist()],
        )
        for number in range(0, count, 5)
    ]
    turned = mirrored(np.array(copies[: len(copies) // 2]))
    return np.concatenate((own, turned, copies[len(copies) // 2 :]))


def by_all(fingerprints: np.ndarray, most: int) -> dict[tuple[int, int], int]:
    values = [int.from_bytes(row.tobytes(), "little") for row in fingerprints]
    others = [int.from_bytes(row.tobytes(), "little") for row in mirrored(fingerprints)]
    found = {}
    for one, other in itertools.combinations(range(len(values)), 2):
        distance = min((values[one] ^ values[other]).bit_count(), (others[one] ^ values[other]).bit_count())
        if distance <= most:
            found[one, other] = distance
    return found


def test_all_pairs_are_found_that_differ_in_four_of_the_low_frequencies() -> None:
    fingerprints = collection(400, 1)
    pairs = near_pairs(fingerprints, np.arange(len(fingerprints)), 40)
    found = dict(
        zip(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True), pairs.distance.tolist(), strict=True)
    )
    assert found == by_all(fingerprints, 40)
    assert len(found) >= 80


def test_only_the_pictures_that_take_part_are_paired() -> None:
    fingerprints = np.repeat(collection(9, 2)[:1], 6, axis=0)
    pairs = near_pairs(fingerprints, np.array([1, 3, 4]), 40)
    assert {*pairs.first.tolist(), *pairs.second.tolist()} == {1, 3, 4}
    assert len(near_pairs(fingerprints, NONE, 40)) == 0


def test_many_equal_ones_are_all_held_together() -> None:
    fingerprints = np.repeat(collection(9, 3)[:1], 500, axis=0)
    pairs = near_pairs(fingerprints, np.arange(500), 40)
    assert [own.tolist() for own in clusters_of(pairs)] == [list(range(500))]
    nearest = Nearest(np.arange(500))
    nearest.add(pairs)
    assert nearest.pairs().second.tolist() == list(range(1, 500))
    assert len(pairs) <= 500 * 16 * 15 * 2  # what each is compared with, whatever the collection is like


def test_copies_are_paired_with_the_first_of_them() -> None:
    contents = np.array([7, 0, 5, 7, 0, 5, 7, 9], np.uint64)
    pairs = pairs_of_copies(contents)
    assert set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)) == {(0, 3), (0, 6), (2, 5)}
    assert len(pairs_of_copies(np.zeros(0, np.uint64))) == len(pairs_of_copies(np.zeros(3, np.uint64))) == 0


def test_clusters_do_not_depend_on_the_order_of_pairs() -> None:
    first, second = np.array([0, 4, 1, 6]), np.array([4, 5, 2, 7])
    expected = [[0, 4, 5], [1, 2], [6, 7]]
    for order in itertools.permutations(range(4)):
        pairs = Pairs(first[list(order)], second[list(order)], np.zeros(4, np.int64), np.zeros(4, np.bool_))
        assert [own.tolist() for own in clusters_of(pairs)] == expected


def random_pairs(numbers: np.random.Generator, pictures: int, contents: int) -> tuple[Pairs, Pairs, np.ndarray]:
    """Contents of pictures at random, some of which are near one another: (near, copies, contents)."""
    content = numbers.integers(0, contents, pictures)
    first = np.array([content.tolist().index(own) for own in content])
    copies = np.flatnonzero(first != np.arange(pictures))
    none = np.zeros(len(copies), np.int64)
    own = np.unique(first)
    ways = [pair for pair in itertools.combinations(own.tolist(), 2) if numbers.random() < 0.4]
    near = Pairs(
        np.array([one for one, _ in ways], np.int64),
        np.array([other for _, other in ways], np.int64),
        numbers.integers(0, 3, len(ways)),
        numbers.random(len(ways)) < 0.5,
    )
    return near, Pairs(first[copies], copies, none, none == 1), content


def test_each_copy_of_a_near_picture_is_beside_the_nearest_before_it_of_any_other_kind() -> None:
    numbers = np.random.default_rng(5)
    for _ in range(200):
        near, copies, content = random_pairs(numbers, int(numbers.integers(2, 16)), int(numbers.integers(1, 6)))
        kind = numbers.integers(0, 3, len(content))
        for same in (True, False):
            nearest = Nearest(np.arange(len(content)))
            for pairs in with_copies(near, copies, lambda which: [kind[which]]):  # noqa: B023 - it is called at once
                nearest.add(pairs.of((kind[pairs.first] == kind[pairs.second]) == same))
            found = nearest.pairs()
            expected = {}
            for one, other, distance, turned in zip(
                *(column.tolist() for column in (near.first, near.second, near.distance, near.is_mirrored)), strict=True
            ):
                here, there = np.flatnonzero(content == content[one]), np.flatnonzero(content == content[other])
                for a, b in itertools.product(here.tolist(), there.tolist()):
                    if (kind[a] == kind[b]) == same:
                        told = (distance, turned, min(a, b))
                        expected[max(a, b)] = min(told, expected.get(max(a, b), told))
            columns = (found.second, found.distance, found.is_mirrored, found.first)
            assert {
                second: tuple(told) for second, *told in zip(*map(np.ndarray.tolist, columns), strict=True)
            } == expected


def test_pairs_of_copies_do_not_grow_with_their_square() -> None:
    pictures = 3_000
    content = np.arange(pictures) % 3
    copies = Pairs(
        content[3:], np.arange(3, pictures), *(np.zeros(pictures - 3, kind) for kind in (np.int64, np.bool_))
    )
    near = Pairs(np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([4, 5, 6]), np.zeros(3, np.bool_))
    numbers = np.arange(pictures)
    assert sum(map(len, with_copies(near, copies, lambda which: [which % 2]))) <= 3 * 2 * 2 * pictures
    assert sum(map(len, with_copies(near, copies, lambda which: [numbers[which]]))) <= 3 * 2 * 16 * pictures
