"""The flags that convert what was extracted."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from beam_tfrecord.annotations.base import Vocabulary
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.options.values import Column
from beam_tfrecord.tools.extracting.command import (
    Told,
    arguments_file,
    command_line,
    convert_flags,
    joint_vocabulary,
    likely_keys,
    shard_flags,
    told_vocabulary,
    undeclared_columns,
)
from beam_tfrecord.tools.extracting.shards import ColumnUse, Seen
from pipelines.convert import make_parser
from pipelines.options import config_from


def config_of(**told: Any) -> ConvertConfig:
    """What convert understands of the flags."""
    given = {
        "columns": (),
        "vocabulary": None,
        "preset": "imagenet",
        "compression": "none",
        "options": {},
        "shards": {},
        **told,
    }
    flags = shlex.split(arguments_file(convert_flags(Told(**given), "the folder")))
    return config_from(make_parser().parse_args([*flags, "--output=out"]))


def test_flags_say_what_was_told() -> None:
    columns = (Column("a b", "int64"), Column("x:y", "string", True))
    config = config_of(
        columns=columns,
        vocabulary=Vocabulary(("x", "y"), 3),
        preset="tfds",
        compression="zlib",
        options={"rename": [["label", "y"], ["image", "i'm"]], "image_format": "raw", "seed": 7, "one_hot": True},
        shards={"train": [3, 4], "test": [1]},
    )
    assert config.manifest.input[0].uri == "the folder/manifest.jsonl"
    assert config.manifest.format == "extracted"
    assert config.manifest.columns == columns
    assert (config.labels.labels, config.labels.label_offset) == ("the folder/labels.txt", 3)
    assert config.labels.one_hot
    assert config.features.keys == "tfds"
    assert config.features.rename == (("label", "y"), ("image", "i'm"))
    assert (config.images.image_format, config.images.orientation) == ("raw", "ignore")
    assert (config.splits.seed, config.shards.compression) == (7, "zlib")
    assert config.shards.num_shards == (("test", 1), ("train", 2))


def test_ids_with_gaps_are_told_one_by_one() -> None:
    config = config_of(vocabulary=Vocabulary(("x", "y"), 4, (4, 9)))
    assert (config.labels.label_ids, config.labels.label_offset) == ((4, 9), None)


def test_a_table_has_no_options_of_images() -> None:
    config = config_of(has_images=False, columns=(Column("a", "int64"),))
    assert config.images.orientation == "upright"


@pytest.mark.parametrize(
    ("counts", "flag"),
    [
        ({"train": [3, 3, 4]}, ["--num_shards=train=3"]),
        ({"train": [4, 3, 3]}, ["--shard_records=train=4+3+3"]),
        ({"train": [3, 0, 3], "test": [0]}, ["--num_shards=train=2"]),
        ({"b": [1, 2], "a": [2, 1]}, ["--shard_records=a=2+1,b=1+2"]),
        ({}, []),
    ],
)
def test_shards_are_numbered_where_that_is_enough(counts: dict[str, list[int]], flag: list[str]) -> None:
    assert shard_flags(counts) == flag


def test_the_command_can_be_pasted() -> None:
    flags = ["--input=a b/c", "--rename=x=it's"]
    assert shlex.split(command_line(flags)) == ["beam-tfrecord", "convert", *flags, "--output=NEW_FOLDER"]


def test_keys_from_elsewhere_lead_to_the_nearest_preset() -> None:
    assert likely_keys(["image/encoded", "image/class/label", "image/colorspace"]) == ("imagenet", ())
    assert likely_keys(["image/encoded", "image/object/bbox/xmin", "image/object/class/label"]) == ("od", ())
    assert likely_keys(["image", "label", "objects/bbox", "objects/label"])[0] == "tfds"
    preset, renames = likely_keys(["image_raw", "label", "height", "width", "depth"])
    assert ("encoded", "image_raw") in {("encoded", new) for _, new in renames}
    assert preset in ("tfds", "simple", "imagenet")


def test_columns_from_elsewhere_are_single_where_all_are() -> None:
    seen = {
        "one": [("int64", 1), ("int64", 1), ("int64", 1)],
        "some": [("bytes", 1), ("bytes", 1)],
        "many": [("float", 1), ("float", 2), ("float", 1)],
        "null": [("none", 0), ("int64", 1), ("bytes", 0)],  # a missing value has no type, or any
        "empty": [("float", 0)],
        "nothing": [("none", 0)],
        "mixed": [("float", 1), ("int64", 1)],
        "a,b": [("float", 1)],
        "label": [("float", 1)],
    }
    uses: dict[str, ColumnUse] = {name: ColumnUse() for name in seen}
    for name, features in seen.items():
        for number, (dtype, values) in enumerate(features):
            uses[name].see(dtype, values, Seen(0, number, 0))
    columns, left_out = undeclared_columns(uses, 3, {"label"})
    assert columns == (
        Column("empty", "float", True),
        Column("many", "float", True),
        Column("null", "int64", True),
        Column("one", "int64"),
        Column("some", "string", True),
    )
    assert sorted(left_out) == ["a,b", "label", "mixed"]
    assert left_out["mixed"] == "it holds float and int64, and a column has one type"


def test_two_vocabularies_become_one_and_what_moves_is_told() -> None:
    labels = {("label", 0): "oak", ("label", 1): "elm", ("object_label", 0): "stem", ("object_label", 1): "oak"}
    vocabulary, told = joint_vocabulary(labels)
    assert vocabulary == Vocabulary(("oak", "elm", "stem"), 0, (0, 1, 2))
    assert told == ["the objects have a vocabulary of their own, and get other ids: stem 0 -> 2, oak 1 -> 0"]
    assert joint_vocabulary({("label", 3): "a", ("object_label", 3): "a", ("object_label", 5): "b"}) == (
        Vocabulary(("a", "b"), 3, (3, 5)),
        [],
    )


def test_labels_from_elsewhere_are_a_vocabulary_or_none() -> None:
    assert told_vocabulary({9: "y", 4: "x"}) == Vocabulary(("x", "y"), 4, (4, 9))
    assert told_vocabulary({}) is None
    assert told_vocabulary({1: "x", 2: "x"}) is None
    assert told_vocabulary({-1: "x"}) is None
