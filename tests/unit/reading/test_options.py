"""Options of load that cannot be right, and what follows from those that can."""

from __future__ import annotations

from typing import Any

import pytest

from beam_tfrecord.datasets.metadata import PublishedShard
from beam_tfrecord.errors import ConfigError
from beam_tfrecord.reading import LoadOptions
from beam_tfrecord.reading.loader import shuffle_buffer
from beam_tfrecord.reading.selection import ShardPart


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"bach_size": 3}, "no option 'bach_size' \\(did you mean 'batch_size'\\?\\)"),
        ({"batch_size": 0}, "batch_size=0: must be a whole number of 1 or more"),
        ({"batch_size": 2.5}, "batch_size=2.5"),
        ({"prefetch": -1}, "prefetch=-1"),
        ({"shuffle": -5}, "shuffle=-5"),
        ({"repeat": "yes"}, "repeat='yes'"),
        ({"image_size": 0}, "image_size=0: must be one side, or"),
        ({"image_size": (1, 2, 3)}, "image_size=\\(1, 2, 3\\)"),
        ({"image_size": "64"}, "image_size='64'"),
        ({"resize_mode": "strech"}, "must be one of stretch, crop, pad \\(did you mean 'stretch'\\?\\)"),
        ({"channels": 2}, "channels=2: must be one of None, 1, 3, 4"),
        ({"names": "long"}, "names='long': must be one of stored, short"),
        ({"shard": (2, 2)}, "shard=\\(2, 2\\): must be \\(index, count\\)"),
        ({"shard": 1}, "shard=1"),
        ({"decode": False, "image_size": 64}, "decode=False"),
        ({"drop_remainder": True}, "give batch_size as well"),
        ({"one_hot": True, "label": ("a", "b")}, "one_hot works on one label"),
    ],
)
def test_wrong_options_are_told(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        LoadOptions.from_keywords(options)


def test_one_side_is_a_square_and_a_pair_is_height_and_width() -> None:
    assert LoadOptions(image_size=64).size == (64, 64)
    assert LoadOptions(image_size=[48, 64]).size == (48, 64)  # type: ignore[arg-type]
    assert LoadOptions().size is None


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, True), ({"shuffle": True}, False), ({"shuffle": 9, "seed": 0}, True), ({"deterministic": False}, False)],
)
def test_order_is_kept_unless_shuffled_without_a_seed(options: dict[str, Any], expected: bool) -> None:
    assert LoadOptions.from_keywords(options).is_deterministic is expected


@pytest.mark.parametrize(
    ("records", "record_bytes", "asked", "expected"),
    [
        (50, 100_000, True, 50),
        (100_000, 100_000, True, 2684),
        (100_000, 10, True, 20_000),
        (100_000, 10**8, True, 100),
        (100_000, 100_000, 7, 7),
        (50, 10, 500, 50),
    ],
)
def test_the_shuffle_buffer_is_bounded_in_records_and_bytes(
    records: int, record_bytes: int, asked: bool | int, expected: int
) -> None:
    shard = PublishedShard("x", records, 0, records * record_bytes, "")
    assert shuffle_buffer([ShardPart(shard, 0, records)], asked) == expected
