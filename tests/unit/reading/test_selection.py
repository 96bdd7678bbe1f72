"""Which records a split names. The right answer is a slice of a list of record names."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.datasets.metadata import PublishedShard
from beam_tfrecord.errors import ConfigError
from beam_tfrecord.reading.selection import ShardPart, cut, select_parts

SPLITS = {
    "train": tuple(PublishedShard(f"train-{n}", records, 0, 0, "") for n, records in enumerate((4, 1, 5))),
    "validation": (PublishedShard("validation-0", 3, 0, 0, ""),),
}
TRAIN = [f"train-{shard}:{number}" for shard, records in enumerate((4, 1, 5)) for number in range(records)]
VALIDATION = [f"validation-0:{number}" for number in range(3)]


def names(parts: tuple[ShardPart, ...]) -> list[str]:
    return [f"{part.shard.file}:{number}" for part in parts for number in range(part.start, part.stop)]


def selected(expression: str | None, share: tuple[int, int] = (0, 1)) -> list[str]:
    return names(select_parts(SPLITS, expression, share))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("train", TRAIN),
        ("validation", VALIDATION),
        ("all", TRAIN + VALIDATION),
        (None, TRAIN + VALIDATION),
        ("validation+train", VALIDATION + TRAIN),
        ("train[:80%] + validation", TRAIN[:8] + VALIDATION),
        ("train[3:6]", TRAIN[3:6]),
        ("train[4:5]", TRAIN[4:5]),
        ("train[-3:]", TRAIN[-3:]),
        ("train[:-3]", TRAIN[:-3]),
        ("train[-30%:]", TRAIN[-3:]),
        ("train[ 1_0 : ]", []),
        ("train[:]", TRAIN),
        ("train[0%:100%]", TRAIN),
        ("train[12.5%:50%]", TRAIN[1:5]),
        ("all[9:11]", TRAIN[9:] + VALIDATION[:1]),
        ("train[:0]", []),
        ("train[:2]+train[:2]", TRAIN[:2] * 2),
        ("train[1shard]", TRAIN[4:5]),
        ("train[:2shard]", TRAIN[:5]),
        ("train[-1shard:]", TRAIN[5:]),
    ],
)
def test_a_split_names_these_records(expression: str | None, expected: list[str]) -> None:
    assert selected(expression) == expected


def test_shards_without_a_wanted_record_are_left_out() -> None:
    assert [part.shard.file for part in select_parts(SPLITS, "train[4:5]")] == ["train-1"]


@given(st.integers(0, 100), st.integers(1, 60))
def test_two_sides_of_a_percentage_share_their_border(percent: int, records: int) -> None:
    splits = {"s": (PublishedShard("s", records, 0, 0, ""),)}
    halves = names(select_parts(splits, f"s[:{percent}%]")) + names(select_parts(splits, f"s[{percent}%:]"))
    assert halves == [f"s:{number}" for number in range(records)]


@given(st.integers(1, 20), st.sampled_from(["all", "train", "train[3:]", "validation"]))
def test_the_shares_of_all_workers_are_everything_once_and_of_nearly_one_size(count: int, expression: str) -> None:
    shares = [selected(expression, (index, count)) for index in range(count)]
    assert [name for share in shares for name in share] == selected(expression)
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1


@given(st.lists(st.integers(0, 4), max_size=5), st.integers(0, 12), st.integers(0, 12))
def test_cut_is_a_slice(sizes: list[int], start: int, stop: int) -> None:
    parts = [ShardPart(PublishedShard(str(n), 9, 0, 0, ""), n, n + size) for n, size in enumerate(sizes)]
    assert names(tuple(cut(parts, start, stop))) == names(tuple(parts))[start:stop]


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("trian", "no split 'trian' \\(did you mean 'train'\\?\\); the dataset has train, validation"),
        ("train[:11]", "reaches beyond the 10 records"),
        ("train[-11:]", "reaches beyond the 10 records"),
        ("train[:101%]", "reaches beyond"),
        ("train[5:3]", "starts at record 5 and ends at 3"),
        ("train[a:]", "'a' is neither a number of records nor a percentage"),
        ("train[1.5:]", "'1.5' is neither"),
        ("train[3]", "cannot be understood"),
        ("train[", "cannot be understood"),
        ("train++validation", "cannot be understood"),
        ("", "cannot be understood"),
    ],
)
def test_what_cannot_be_selected_is_told(expression: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        selected(expression)


def test_a_split_called_all_is_that_split() -> None:
    splits = {**SPLITS, "all": (PublishedShard("all-0", 1, 0, 0, ""),)}
    assert names(select_parts(splits, "all")) == ["all-0:0"]


NUMBERS = ["", "0", "1", "-1", "3", "-3", "10", "-10", "11", "-0", "1_0"]
PERCENTAGES = ["0%", "-0%", "1%", "-1%", "33%", "-33%", "50%", "66.6%", "100%", "-100%", "101%", "2.3%", "-99.5%"]
FILES = ["0shard", "1shard", "2shard", "-1shard", "-2shard", "4shard"]


@pytest.mark.parametrize("lengths", [(10,), (4, 1, 5), (0, 3), (1,), (333, 334), (500,)])
def test_every_slice_that_tensorflow_datasets_takes_names_the_same_records(lengths: tuple[int, ...]) -> None:
    """But for slices that end before they start: there they give what is not meant, here they are errors."""
    splits = {"train": tuple(PublishedShard(str(n), records, 0, 0, "") for n, records in enumerate(lengths))}
    compared = 0
    for start, stop in itertools.product([*NUMBERS, *PERCENTAGES, *FILES], repeat=2):
        expression = f"train[{start}:{stop}]"
        expected = as_tensorflow_datasets(lengths, expression)
        if expected is None:
            continue
        try:
            found: list[str] | str = names(select_parts(splits, expression))
        except ConfigError as error:
            found = str(error)
        if isinstance(found, str) and "starts at record" in found:
            continue
        assert found == expected, expression
        compared += 1
    assert compared > 300


def as_tensorflow_datasets(lengths: tuple[int, ...], expression: str) -> list[str] | None:
    """The records that TensorFlow Datasets would read, None for what it refuses."""
    from tensorflow_datasets.core import naming, splits

    template = naming.ShardedFileTemplate(data_dir="/d", dataset_name="x", split="train", filetype_suffix="tfrecord")
    info = splits.SplitInfo(name="train", shard_lengths=list(lengths), num_bytes=0, filename_template=template)
    try:
        parts = splits._make_file_instructions([info], expression)
    except (ValueError, AssertionError):
        return None
    files = [path.name for path in info.filepaths]
    found = []
    for part in parts:
        stop = part.examples_in_shard if part.take == -1 else part.skip + part.take
        number = files.index(part.filename.rpartition("/")[2])
        found += [f"{number}:{record}" for record in range(part.skip, stop)]
    return found
