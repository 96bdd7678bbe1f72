from __future__ import annotations

import json
import math
import random
from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.conversion.writing.digest import Digest
from beam_tfrecord.conversion.writing.statistics import (
    MAX_SAMPLES,
    MAX_SIZES,
    MIN_SAMPLES,
    SAMPLED_CLASSES,
    SAMPLES_PER_NOTE,
    SHAPES,
    ImageFacts,
    ShardStatistics,
    count_shapes,
    merge_statistics,
    sampled_labels,
    samples_per_class,
)

Item = tuple[ImageFacts, str | None, tuple[str, ...]]

ITEMS = st.lists(
    st.tuples(
        st.builds(
            ImageFacts,
            st.integers(1, 5000),
            st.integers(1, 5000),
            st.integers(1, 10**6),
            st.lists(st.floats(0, 1), max_size=3).map(tuple),
        ),
        st.sampled_from(["cat", "dog", "ibis", None]),
        st.lists(st.sampled_from(["rotated", "resized"]), max_size=2).map(tuple),
    ),
    max_size=40,
)


def shard(items: list[Item], labels: dict[str, int] | None = None, first: int = 0) -> dict[str, Any]:
    """Statistics of records of 100 bytes each, as JSON that was written and read."""
    counts = labels if labels is not None else {"cat": 1, "dog": 1, "ibis": 1}
    statistics = ShardStatistics(counts, has_boxes=True)
    for number, (facts, label, changed) in enumerate(items, start=first):
        statistics.add((facts,), (label,) if label else (), number * 100, 100)
        for reason in changed:
            statistics.note("changed", reason)
    told: dict[str, Any] = json.loads(json.dumps(statistics.to_json()))
    return told


@given(ITEMS, st.integers(0, 40), st.randoms(use_true_random=False))
def test_shards_added_up_in_any_order_give_the_same(items: list[Item], cut: int, shuffler: random.Random) -> None:
    shards = [("a", shard(items[:cut])), ("b", shard(items[cut:])), ("c", shard([]))]
    expected = merge_statistics(shards)
    shuffler.shuffle(shards)
    assert merge_statistics(shards) == expected


@given(ITEMS, st.integers(0, 40))
def test_numbers_do_not_depend_on_how_records_lie_in_shards(items: list[Item], cut: int) -> None:
    whole = merge_statistics([("a", shard(items))])
    parts = merge_statistics([("a", shard(items[:cut])), ("b", shard(items[cut:]))])
    assert {name: parts.get(name) for name in ("images", "objects")} == {
        name: whole.get(name) for name in ("images", "objects")
    }


@given(ITEMS)
def test_numbers_are_those_of_the_images(items: list[Item]) -> None:
    told = merge_statistics([("a", shard(items))])
    if not items:
        assert "images" not in told
        return
    facts = [item[0] for item in items]
    for name, values in {
        "width": [f.width for f in facts],
        "height": [f.height for f in facts],
        "pixels": [f.width * f.height for f in facts],
        "bytes": [f.num_bytes for f in facts],
    }.items():
        digest = Digest.from_json(told["images"][name])
        assert (digest.count, digest.total, digest.least) == (len(values), sum(values), min(values))
    sizes = Counter(f"{f.width}x{f.height}" for f in facts)
    assert told["images"]["sizes"] == sizes
    boxes = Digest.from_json(told["objects"]["per_image"])
    assert boxes.total == sum(len(f.box_areas) for f in facts)
    areas = [round(area * f.width * f.height) for f in facts for area in f.box_areas]
    assert abs(Digest.from_json(told["objects"]["area"]).total - sum(areas)) <= len(areas)


def test_too_many_sizes_are_only_counted_in_digests_in_any_order() -> None:
    def with_sizes(widths: range) -> dict[str, Any]:
        return shard([(ImageFacts(width, 10, 1), None, ()) for width in widths])

    low, high = with_sizes(range(1, 200)), with_sizes(range(150, 300))
    many = with_sizes(range(1, MAX_SIZES + 2))
    assert many["images"]["sizes"] is None
    assert with_sizes(range(1, MAX_SIZES + 1))["images"]["sizes"] is not None
    assert merge_statistics([("a", low), ("b", high)])["images"]["sizes"] is None
    assert merge_statistics([("a", many), ("b", low)])["images"]["sizes"] is None
    assert merge_statistics([("a", low), ("b", low)])["images"]["sizes"]["1x10"] == 2


def test_an_image_counts_for_the_nearest_usual_shape() -> None:
    cases = {(640, 480): "4:3", (480, 640): "3:4", (1920, 1080): "16:9", (100, 100): "1:1", (101, 100): "1:1"}
    cases |= {(10, 3000): "1:3", (3000, 10): "3:1", (3000, 2000): "3:2", (2100, 1000): "2:1"}
    for (width, height), shape in cases.items():
        nearest = min(SHAPES, key=lambda ratio: abs(math.log(width * ratio[1] / height / ratio[0])))
        assert "{}:{}".format(*nearest) == shape
        assert count_shapes(np.array([width]), np.array([height])) == {shape: 1}


def test_samples_are_the_first_records_of_every_shard() -> None:
    items: list[Item] = [(ImageFacts(8, 8, 1), "cat", ()) for _ in range(50)]
    merged = merge_statistics((f"train-{n}", shard(items, {"cat": 150, "dog": 1})) for n in range(3))
    places = merged["samples"]["classes"]["cat"]
    assert len(places) == samples_per_class(1) == MAX_SAMPLES
    assert places[:4] == [
        {"file": "train-0", "record": 0, "offset": 0, "size": 100},
        {"file": "train-1", "record": 0, "offset": 0, "size": 100},
        {"file": "train-2", "record": 0, "offset": 0, "size": 100},
        {"file": "train-0", "record": 1, "offset": 100, "size": 100},
    ]
    assert "dog" not in merged["samples"]["classes"]


def test_records_without_a_label_are_sampled_too() -> None:
    merged = merge_statistics([("a", shard([(ImageFacts(8, 8, 1), None, ())] * 3))])
    assert [place["record"] for place in merged["samples"]["unlabelled"]] == [0, 1, 2]


def test_the_most_frequent_labels_are_sampled() -> None:
    counts = {f"label {n:03}": n // 2 for n in range(500)}
    chosen = sampled_labels(counts)
    assert len(chosen) == SAMPLED_CLASSES
    assert chosen[:4] == ["label 498", "label 499", "label 496", "label 497"]
    assert samples_per_class(SAMPLED_CLASSES) == MIN_SAMPLES


def test_a_record_is_sampled_once_for_a_label_that_it_uses_twice() -> None:
    statistics = ShardStatistics({"cat": 4})
    statistics.add((ImageFacts(8, 8, 1),), ("cat", "cat"), 0, 100)
    statistics.note("warnings", "box_clipped")
    statistics.note("warnings", "box_clipped")
    samples = statistics.to_json()["samples"]
    assert samples["classes"] == {"cat": [[0, 0, 100]]}
    assert samples["warnings"] == {"box_clipped": [[0, 0, 100]]}


def test_examples_of_changes_are_few() -> None:
    items: list[Item] = [(ImageFacts(8, 8, 1), "cat", ("rotated",))] * 30
    merged = merge_statistics([("a", shard(items)), ("b", shard(items))])
    assert [place["file"] for place in merged["samples"]["changed"]["rotated"]] == ["a", "b", "a", "b"]
    assert len(merged["samples"]["changed"]["rotated"]) == SAMPLES_PER_NOTE


def test_a_shard_without_a_file_gives_numbers_but_no_samples() -> None:
    merged = merge_statistics([("", shard([(ImageFacts(8, 8, 1), "cat", ("rotated",))]))])
    assert merged["images"]["width"]["count"] == 1
    assert merged["samples"] == {"classes": {}, "changed": {}, "warnings": {}, "unlabelled": []}


def test_sequences_count_their_frames() -> None:
    statistics = ShardStatistics({}, is_sequence=True)
    statistics.add([ImageFacts(8, 8, 1)] * 3, (), 0, 1)
    statistics.add([ImageFacts(8, 8, 1)] * 5, (), 1, 1)
    merged = merge_statistics([("a", statistics.to_json())])
    assert Digest.from_json(merged["frames"]).bins == {3: 1, 5: 1}
    assert merged["images"]["width"]["count"] == 8


def test_a_table_has_no_images() -> None:
    statistics = ShardStatistics({"a": 1})
    statistics.add((), ("a",), 0, 1)
    merged = merge_statistics([("t", statistics.to_json())])
    assert "images" not in merged
    assert list(merged["samples"]["classes"]) == ["a"]


def many_records(count: int) -> dict[str, Any]:
    rng = random.Random(3)
    labels = [f"class {n}" for n in range(1000)]
    statistics = ShardStatistics(dict.fromkeys(labels, 1), has_boxes=True)
    for number in range(count):
        facts = ImageFacts(rng.randrange(1, 9999), rng.randrange(1, 9999), rng.randrange(10**7), (rng.random(),))
        statistics.add((facts,), (labels[number % 1000],), number * 10**6, 10**6)
        statistics.note("warnings", "box_clipped")
    return statistics.to_json()


def test_statistics_are_small_whatever_the_number_of_records() -> None:
    small, large = (len(json.dumps(many_records(count))) for count in (5_000, 30_000))
    assert large < 40_000
    assert large < small * 1.5
