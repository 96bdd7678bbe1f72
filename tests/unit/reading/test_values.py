"""Records as plain values, and the names that they have."""

from __future__ import annotations

from typing import Any

import pytest

from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.errors import ConfigError, DatasetError
from beam_tfrecord.reading.names import SHORT, STORED, keys_named, names_by_key
from beam_tfrecord.reading.reader import RecordValues
from beam_tfrecord.tfrecord.example import encode_example, encode_sequence_example
from tests.unit.reading.facts import IMAGE, LABEL, OBJECTS, make_facts, spec

FEATURES = {
    "one": spec(),
    "three": spec("int64", [3]),
    "any": spec("float", [None]),
    "rows": spec("float", [None, 2]),
    "text": spec("bytes", role="text"),
    "bytes": spec("bytes"),
}
RECORD = {
    "one": Feature("int64", [-5]),
    "three": Feature("int64", [1, 2, 3]),
    "any": Feature("float", []),
    "rows": Feature("float", [0.5, 1.0, 1.5, 2.0]),
    "text": Feature("bytes", ["gr\xfcn".encode() + b"\xff"]),
    "bytes": Feature("bytes", [b"\x00\xff"]),
}


def test_values_are_plain_and_shaped_as_the_spec_says() -> None:
    values = RecordValues(make_facts(FEATURES)).of(encode_example(RECORD))
    expected: dict[str, Any] = {
        "one": -5,
        "three": [1, 2, 3],
        "any": [],
        "rows": [[0.5, 1.0], [1.5, 2.0]],
        "text": "gr\xfcn\udcff",
        "bytes": b"\x00\xff",
    }
    assert values == expected
    assert {type(value) for value in values.values()} == {int, list, str, bytes}


def test_feature_lists_have_an_item_for_each_step() -> None:
    features = {
        "clip": spec("bytes", role="text"),
        "number": spec(in_sequence=True),
        "tags": spec("bytes", [None], role="text", in_sequence=True),
    }
    data = encode_sequence_example(
        {"clip": Feature("bytes", [b"m"])},
        {
            "number": [Feature("int64", [4]), Feature("int64", [5])],
            "tags": [Feature("bytes", [b"a", b"b"]), Feature("bytes", [])],
        },
    )
    facts = make_facts(features, message="SequenceExample")
    assert RecordValues(facts).of(data) == {"clip": "m", "number": [4, 5], "tags": [["a", "b"], []]}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"one": Feature("int64", [1, 2])}, "'one' holds 2 values, not one"),
        ({"one": Feature("float", [1.0])}, "'one' holds float, not int64"),
        ({"three": Feature("int64", [1])}, "'three' holds 1 values, not 3"),
        ({"rows": Feature("float", [1.0])}, "'rows' holds 1 values, which are no rows of 2"),
        ({"one": None}, "has no feature 'one'"),
    ],
)
def test_a_record_that_is_not_as_the_spec_says_is_told(change: dict[str, Any], told: str) -> None:
    record = {key: feature for key, feature in {**RECORD, **change}.items() if feature is not None}
    with pytest.raises(DatasetError, match=told):
        RecordValues(make_facts(FEATURES)).of(encode_example(record))


def test_bytes_that_are_no_record_are_told() -> None:
    with pytest.raises(DatasetError, match=r"no tf\.train\.Example"):
        RecordValues(make_facts(FEATURES)).of(b"\xff\xff\xff")


SIDES = {
    "image/object/bbox/xmin": Feature("float", [0.25, 0.5]),
    "image/object/bbox/xmax": Feature("float", [0.75, 1.0]),
    "image/object/bbox/ymin": Feature("float", [0.0, 0.125]),
    "image/object/bbox/ymax": Feature("float", [0.5, 0.625]),
}


def test_short_names_make_rows_of_four_lists_of_sides() -> None:
    record = {
        **SIDES,
        "image/encoded": Feature("bytes", [b"jpeg"]),
        "image/object/class/label": Feature("int64", [1, 2]),
    }
    assert RecordValues(make_facts(OBJECTS), SHORT).of(encode_example(record)) == {
        "image": b"jpeg",
        "boxes": [[0.0, 0.25, 0.5, 0.75], [0.125, 0.5, 0.625, 1.0]],
        "object_label": [1, 2],
    }


def test_sides_of_different_length_are_told() -> None:
    record = {
        **SIDES,
        "image/object/bbox/xmin": Feature("float", []),
        "image/encoded": Feature("bytes", [b""]),
        "image/object/class/label": Feature("int64", []),
    }
    with pytest.raises(DatasetError, match="2, 0, 2, 2 sides"):
        RecordValues(make_facts(OBJECTS), SHORT).of(encode_example(record))


def test_a_column_gives_way_to_a_name_that_is_taken() -> None:
    columns = [{"name": "label", "type": "int64"}, {"name": "age", "type": "int64"}]
    facts = make_facts({**LABEL, "label": spec(), "age": spec()}, options={"columns": columns})
    assert names_by_key(facts, SHORT) == {"image/class/label": "label", "label": "column/label", "age": "age"}
    assert names_by_key(facts, STORED) == {key: key for key in facts.specs}


def test_one_name_finds_all_sides_of_boxes_and_a_wrong_one_finds_the_nearest() -> None:
    names = names_by_key(make_facts(OBJECTS), SHORT)
    assert len(keys_named(["boxes", "image"], names, "features")) == 5
    with pytest.raises(ConfigError, match=r"features: no feature is called 'imag' \(did you mean 'image'\?\)"):
        keys_named(["imag"], names, "features")
    with pytest.raises(ConfigError, match="there are boxes, image, object_label"):
        keys_named(["qqq"], names, "features")


def test_renamed_keys_keep_their_short_names() -> None:
    facts = make_facts({"pic": IMAGE["image/encoded"]}, options={"rename": [["image/encoded", "pic"]]})
    assert names_by_key(facts, SHORT) == {"pic": "image"}
