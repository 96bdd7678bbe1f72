"""Records in words and as JSON values."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from beam_tfrecord.tfrecord.example import encode_sequence_example
from beam_tfrecord.tools.showing.describe import (
    describe_record,
    image_facts,
    json_value,
    record_values,
    short_value,
    shortest_float,
)
from tests.handmade import floats, small_dataset, texts, whole
from tests.samples import jpeg, noise, png
from tests.showing_tools import found_at, picked_from, picked_record

PICTURE = jpeg(Image.fromarray(noise(31, 17)))


def test_a_record_of_a_dataset_is_told_with_shapes_names_and_the_facts_of_its_image(tmp_path: Path) -> None:
    small_dataset(tmp_path)
    lines = describe_record(picked_from(tmp_path, numbers=(1,))[0], found_at(tmp_path).facts)
    rows = {words[0]: words[1:] for words in (line.split() for line in lines[1:])}
    assert "test-00000-of-00001.tfrecord: record 1 at byte" in lines[0]
    assert rows["image/height"] == ["int64", "scalar", "30"]
    assert rows["image/object/bbox/xmin"] == ["float", "[2]", "0.1,", "0.6"]
    assert rows["image/object/class/label"] == ["int64", "[2]", "2,", "3", "(dog,", "emu)"]
    assert rows["image/object/class/text"] == ["bytes", "[2]", "dog,", "emu"]
    assert " ".join(rows["image/encoded"]).startswith("bytes scalar JPEG image, 40 × 30, 3 channels,")


def test_rows_of_four_have_their_shape(tmp_path: Path) -> None:
    from beam_tfrecord.annotations.base import FeatureSpec
    from beam_tfrecord.tools.showing.describe import shape_of

    spec = FeatureSpec("objects/bbox", "float", (None, 4), "bbox")
    assert shape_of(floats(*range(12)), spec) == "[3, 4]"
    assert shape_of(floats(1, 2, 3), spec) == "[3]"
    assert shape_of(whole(1), FeatureSpec("n", "int64")) == "scalar"
    assert shape_of(whole(1), None) == "[1]"


def test_nothing_from_the_data_can_control_the_terminal(tmp_path: Path) -> None:
    record = {"evil\x1b[2J\nkey": texts("value\x1b]0;title\x07\r\nnext", "\u202ereversed"), "b": texts(b"\xff\x1b\x9b")}
    lines = describe_record(picked_record(tmp_path, record), None)
    assert all(line.isprintable() for line in lines)
    assert any(r"evil\x1b[2J\nkey" in line for line in lines)


def test_long_values_are_cut_and_counted(tmp_path: Path) -> None:
    record = {
        "many": whole(*range(1000)),
        "long": texts("x" * 900),
        "blob": texts(b"\x00\xff" * 5000),
        "none": floats(),
    }
    lines = describe_record(picked_record(tmp_path, record), None)
    assert all(len(line) < 230 for line in lines)
    text = "\n".join(lines)
    assert "… 994 more" in text
    assert "10,000 bytes" in text
    assert "empty" in text


def test_a_sequence_is_told_by_its_context_and_its_steps(tmp_path: Path) -> None:
    data = encode_sequence_example({"label": whole(3)}, {"frame": [texts(PICTURE)] * 12, "n": [whole(1, 2)] * 12})
    picked = picked_record(tmp_path, data)
    lines = describe_record(picked, None)
    assert "tf.train.SequenceExample" in lines[0]
    assert "feature lists of 12 steps" in lines[2]
    assert "[12]" in lines[3]
    assert "31 × 17" in lines[3]
    assert "[12, 2]" in lines[4]
    values = record_values(picked)
    assert values["context"] == {"label": [3]}
    assert values["feature_lists"]["n"] == [[1, 2]] * 12
    assert values["dtypes"] == {"label": "int64", "frame": "bytes", "n": "int64"}


def test_json_values_are_what_the_record_holds(tmp_path: Path) -> None:
    blob = bytes(range(256)) * 8
    record = {
        "text": texts("größe"),
        "long": texts("x" * 2000),
        "blob": texts(blob),
        "image": texts(PICTURE),
        "floats": floats(0.1, float("nan"), float("inf")),
        "ints": whole(-(2**63), 2**63 - 1),
    }
    values = json.loads(json.dumps(record_values(picked_record(tmp_path, record)), allow_nan=False))
    assert values["message"] == "Example"
    features = values["features"]
    assert features["text"] == ["größe"]
    assert features["long"] == [{"bytes": 2000, "sha256": hashlib.sha256(b"x" * 2000).hexdigest()}]
    assert features["blob"] == [{"bytes": 2048, "sha256": hashlib.sha256(blob).hexdigest()}]
    assert features["image"] == [
        {
            "image": "jpeg",
            "width": 31,
            "height": 17,
            "channels": 3,
            "bytes": len(PICTURE),
            "sha256": hashlib.sha256(PICTURE).hexdigest(),
        }
    ]
    assert features["floats"] == [0.1, "nan", "inf"]
    assert features["ints"] == [-(2**63), 2**63 - 1]


def test_image_facts_are_read_from_the_header_alone() -> None:
    cut = png(Image.fromarray(noise(50, 40, channels=4)))[:60]
    facts = image_facts(cut)
    assert facts is not None
    assert (facts.format, facts.width, facts.height, facts.channels) == ("png", 50, 40, 4)
    assert image_facts(b"P6 is how some texts begin") is None
    assert image_facts(b"") is None
    assert "header unreadable" in str(image_facts(b"\xff\xd8\xff\xe0 and no more"))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_are_shown_in_their_shortest_form_and_lose_nothing(number: float) -> None:
    shown = shortest_float(number)
    assert struct.pack("<f", shown) == struct.pack("<f", number)
    assert len(repr(shown)) <= len(repr(float(str(np.float32(number))))) + 1


@given(st.binary(max_size=64))
def test_every_value_can_be_shown(data: bytes) -> None:
    assert short_value(data).isprintable()
    json.dumps(json_value(data))
