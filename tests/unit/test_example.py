from __future__ import annotations

import math
import os
import struct
import subprocess
import sys
import threading
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.tfrecord.example import (
    decode_example,
    decode_sequence_example,
    encode_example,
    encode_sequence_example,
    is_sequence_example,
)
from tests import tiny_reader

INTEGERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 300),
    st.sampled_from([0, 127, 128, 2**14 - 1, 2**14, 2**21 - 1, 2**21, 2**63 - 1, -1, -(2**63)]),
)
FEATURES = st.one_of(
    st.builds(Feature, st.just("int64"), st.lists(INTEGERS, max_size=4)),
    st.builds(Feature, st.just("float"), st.lists(st.floats(width=32), max_size=4)),
    st.builds(Feature, st.just("bytes"), st.lists(st.binary(max_size=200), max_size=3)),
)
# All of Unicode but lone surrogates, which UTF-8 cannot hold.
KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=150)
# Keys of which none begins with another: of such, the C implementation of Python's protobuf puts the longer one first,
# while C++, Java and the pure Python implementation sort as strings sort.
ENDED_KEYS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="$"), max_size=150).map("{}$".format)


def tensorflow_feature(feature: Feature) -> Any:
    import tensorflow as tf

    if feature.dtype == "int64":
        return tf.train.Feature(int64_list=tf.train.Int64List(value=feature.values))
    if feature.dtype == "float":
        return tf.train.Feature(float_list=tf.train.FloatList(value=feature.values))
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=feature.values))


def tensorflow_features(features: dict[str, Feature]) -> Any:
    import tensorflow as tf

    return tf.train.Features(feature={key: tensorflow_feature(feature) for key, feature in features.items()})


def same(left: Feature, right: Feature) -> bool:
    """Equal type and values, NaN equal to NaN."""
    return left.dtype == right.dtype and [*map(repr, left.values)] == [*map(repr, right.values)]


class TestEncoding:
    @settings(max_examples=200, deadline=None)
    @given(features=st.dictionaries(ENDED_KEYS, FEATURES, max_size=6))
    def test_an_example_is_what_protobuf_serializes_deterministically(self, features: dict[str, Feature]) -> None:
        import tensorflow as tf

        expected = tf.train.Example(features=tensorflow_features(features)).SerializeToString(deterministic=True)
        assert encode_example(features) == expected

    @settings(max_examples=100, deadline=None)
    @given(
        context=st.dictionaries(ENDED_KEYS, FEATURES, max_size=3),
        lists=st.dictionaries(ENDED_KEYS, st.lists(FEATURES, max_size=3), max_size=3),
    )
    def test_a_sequence_example_is_what_protobuf_serializes_deterministically(
        self, context: dict[str, Feature], lists: dict[str, list[Feature]]
    ) -> None:
        import tensorflow as tf

        feature_lists = {
            key: tf.train.FeatureList(feature=[tensorflow_feature(step) for step in steps])
            for key, steps in lists.items()
        }
        message = tf.train.SequenceExample(
            context=tensorflow_features(context), feature_lists=tf.train.FeatureLists(feature_list=feature_lists)
        )
        assert encode_sequence_example(context, lists) == message.SerializeToString(deterministic=True)

    @settings(max_examples=50, deadline=None)
    @given(features=st.dictionaries(KEYS, FEATURES, max_size=6))
    def test_tensorflow_parses_it_and_keys_are_in_the_order_of_their_code_points(
        self, features: dict[str, Feature]
    ) -> None:
        import tensorflow as tf

        data = encode_example(features)
        assert tf.train.Example.FromString(data) == tf.train.Example(features=tensorflow_features(features)) or any(
            value != value for feature in features.values() for value in feature.values
        )
        assert list(tiny_reader.decode(data)) == sorted(features, key=str.encode)

    @pytest.mark.parametrize("size", [0, 1, 127, 128, 2**14, 2**21 - 5, 2**21, 2**21 + 5])
    def test_values_around_each_size_of_a_length_are_right(self, size: int) -> None:
        import tensorflow as tf

        features = {"image": Feature("bytes", [bytes(size)]), "n": Feature("int64", [size])}
        expected = tf.train.Example(features=tensorflow_features(features)).SerializeToString(deterministic=True)
        assert encode_example(features) == expected

    def test_an_example_is_known_bytes(self) -> None:
        features = {"b": Feature("int64", [1, -1]), "a": Feature("bytes", [b"xy"]), "c": Feature("float", [1.5])}
        entry_a = b"\x0a\x01a" + b"\x12\x06" + b"\x0a\x04" + b"\x0a\x02xy"
        entry_b = b"\x0a\x01b" + b"\x12\x0f" + b"\x1a\x0d" + b"\x0a\x0b\x01" + b"\xff" * 9 + b"\x01"
        entry_c = b"\x0a\x01c" + b"\x12\x08" + b"\x12\x06" + b"\x0a\x04" + struct.pack("<f", 1.5)
        entries = b"".join(b"\x0a" + bytes([len(entry)]) + entry for entry in (entry_a, entry_b, entry_c))
        assert encode_example(features) == b"\x0a" + bytes([len(entries)]) + entries

    def test_the_order_of_the_mapping_does_not_matter(self) -> None:
        features = {key: Feature("int64", [number]) for number, key in enumerate("ba\U0001f600\uffffz")}
        reverse = dict(reversed(features.items()))
        assert encode_example(features) == encode_example(reverse)
        assert list(tiny_reader.decode(encode_example(features))) == ["a", "b", "z", "\uffff", "\U0001f600"]

    @pytest.mark.parametrize("dtype", ["int64", "float", "bytes"])
    def test_an_empty_list_stays_set_and_typed(self, dtype: str) -> None:
        assert tiny_reader.decode_typed(encode_example({"k": Feature(dtype, [])})) == {"k": (dtype, [])}
        assert tiny_reader.decode_typed(encode_example({"k": Feature(dtype, ())})) == {"k": (dtype, [])}

    def test_numbers_of_numpy_and_arrays_are_numbers(self) -> None:
        features = {
            "array": Feature("int64", cast("list[int]", np.array([1, 300, -5]))),
            "one": Feature("int64", [np.uint8(7)]),
            "flag": Feature("int64", [True]),
            "floats": Feature("float", cast("list[float]", np.array([0.1, 2.5]))),
            "whole": Feature("float", [3]),
        }
        found = tiny_reader.decode(encode_example(features))
        assert found["array"] == [1, 300, -5]
        assert found["one"] == [7]
        assert found["flag"] == [1]
        assert found["floats"] == [float(np.float32(0.1)), 2.5]
        assert found["whole"] == [3.0]

    def test_nan_and_infinities_are_kept(self) -> None:
        found = tiny_reader.decode(encode_example({"f": Feature("float", [math.nan, math.inf, -math.inf])}))["f"]
        assert math.isnan(found[0])
        assert found[1:] == [math.inf, -math.inf]

    @pytest.mark.parametrize(
        ("feature", "error", "message"),
        [
            (Feature("bytes", ["text"]), TypeError, "feature 'k' must hold bytes, not str: encode text as UTF-8"),
            (Feature("bytes", [b"a", None]), TypeError, "must hold bytes, not NoneType"),
            (Feature("bytes", "text"), TypeError, "must hold bytes, not str"),
            (Feature("bytes", b"text"), TypeError, "must hold bytes, not int"),
            (Feature("int64", [1.0]), TypeError, "feature 'k' must hold integers, not float"),
            (Feature("int64", [1, "2"]), TypeError, "must hold integers, not str"),
            (Feature("int64", [2**63]), ValueError, "9223372036854775808 does not fit into int64"),
            (Feature("int64", [0, -(2**63) - 1]), ValueError, "-9223372036854775809 does not fit into int64"),
            (Feature("float", ["1.0"]), TypeError, "feature 'k' must hold numbers, not str"),
            (Feature("float", [1.0, -1e39]), ValueError, r"-1e\+39 does not fit into float32"),
            (Feature("double", [1.0]), ValueError, "there is no type 'double'"),
        ],
    )
    def test_values_that_the_type_cannot_hold_are_refused(
        self, feature: Feature, error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            encode_example({"k": feature})
        with pytest.raises(error, match=message):
            encode_sequence_example({}, {"k": [feature]})

    def test_threads_encode_the_same_bytes(self) -> None:
        records = [{f"k{n % 7}": Feature("int64", [n]), "b": Feature("bytes", [bytes(n)])} for n in range(2000)]
        expected = [encode_example(record) for record in records]
        results: list[list[bytes]] = []
        threads = [
            threading.Thread(target=lambda: results.append([encode_example(record) for record in records]))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [expected] * 4


class TestDecoding:
    @settings(max_examples=100, deadline=None)
    @given(features=st.dictionaries(KEYS, FEATURES, max_size=5))
    def test_an_example_comes_back(self, features: dict[str, Feature]) -> None:
        found = decode_example(encode_example(features))
        assert list(found) == sorted(features)
        assert all(same(found[key], features[key]) for key in features)

    @settings(max_examples=50, deadline=None)
    @given(
        context=st.dictionaries(KEYS, FEATURES, max_size=3),
        lists=st.dictionaries(KEYS, st.lists(FEATURES, max_size=3), max_size=3),
    )
    def test_a_sequence_example_comes_back(self, context: dict[str, Feature], lists: dict[str, list[Feature]]) -> None:
        found_context, found_lists = decode_sequence_example(encode_sequence_example(context, lists))
        assert list(found_context) == sorted(context)
        assert list(found_lists) == sorted(lists)
        assert all(same(found_context[key], context[key]) for key in context)
        for key, steps in lists.items():
            assert len(found_lists[key]) == len(steps)
            assert all(same(found, step) for found, step in zip(found_lists[key], steps, strict=True))

    def test_what_tensorflow_serializes_is_read(self) -> None:
        import tensorflow as tf

        features = {"i": Feature("int64", [1, 2]), "f": Feature("float", [0.5]), "b": Feature("bytes", [b"x", b""])}
        found = decode_example(tf.train.Example(features=tensorflow_features(features)).SerializeToString())
        assert found == {key: features[key] for key in sorted(features)}

    def test_lists_that_are_not_packed_are_read(self) -> None:
        # field 1 as varints one by one: what writers of proto2 days give
        int64_list = b"\x08\x05\x08\x07"
        entry = b"\x0a\x01k\x12\x06\x1a\x04" + int64_list
        data = b"\x0a" + bytes([len(entry) + 2]) + b"\x0a" + bytes([len(entry)]) + entry
        assert decode_example(data) == {"k": Feature("int64", [5, 7])}

    def test_a_feature_without_a_kind_has_no_type(self) -> None:
        data = b"\x0a\x07\x0a\x05\x0a\x01k\x12\x00"
        assert decode_example(data) == {"k": Feature("none", [])}

    def test_no_features_at_all(self) -> None:
        assert decode_example(b"") == decode_example(encode_example({})) == {}
        assert decode_sequence_example(encode_sequence_example({}, {})) == ({}, {})

    @pytest.mark.parametrize("data", [b"\xff", b"<html>", b"\x0a\x05abc", b"\x0a\x03\x0a\x7fx"])
    def test_other_bytes_are_refused(self, data: bytes) -> None:
        with pytest.raises(ValueError, match=r"is no tf\.train\.Example"):
            decode_example(data)
        with pytest.raises(ValueError, match=r"is no tf\.train\.SequenceExample"):
            decode_sequence_example(data)


class TestKind:
    @settings(max_examples=50, deadline=None)
    @given(features=st.dictionaries(KEYS, FEATURES, max_size=3), steps=st.lists(FEATURES, max_size=3))
    def test_the_two_messages_are_told_apart(self, features: dict[str, Feature], steps: list[Feature]) -> None:
        assert not is_sequence_example(encode_example(features))
        assert is_sequence_example(encode_sequence_example(features, {}))
        assert is_sequence_example(encode_sequence_example(features, {"k": steps}))

    def test_a_record_of_nothing_is_an_example(self) -> None:
        assert not is_sequence_example(b"")

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"\x0a\x05abc", "2 bytes beyond"),
            (b"\x1a\x00", "field 3 of wire type 2"),
            (b"\x08\x01", "field 1 of wire type 0"),
            (b"<html>", "field 7 of wire type 4"),
            (b"\x0a\xff", "ends inside of a number"),
            (b"\xff" * 12, "the number is too long"),
        ],
    )
    def test_bytes_that_are_neither_are_refused(self, data: bytes, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            is_sequence_example(data)


def test_neither_direction_imports_tensorflow_nor_clashes_with_it() -> None:
    script = """
import sys
from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.tfrecord.example import decode_example, encode_example
data = encode_example({"k": Feature("int64", [5])})
assert decode_example(data)["k"].values == [5]
assert "tensorflow" not in sys.modules
import tensorflow as tf
assert list(tf.train.Example.FromString(data).features.feature["k"].int64_list.value) == [5]
assert decode_example(data)["k"].values == [5]
"""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, timeout=120)
