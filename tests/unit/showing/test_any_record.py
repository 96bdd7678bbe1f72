"""Records from elsewhere may hold anything under any key: nothing may trip over it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.annotations.keys import KEYS
from beam_tfrecord.tfrecord.example import encode_example, encode_sequence_example
from beam_tfrecord.tools.showing.describe import describe_record, record_values
from beam_tfrecord.tools.showing.pictures import drawn_pictures
from beam_tfrecord.tools.showing.sheet import draw_sheet
from beam_tfrecord.tools.verifying.records import RecordRules
from tests.handmade import decode_for_tests
from tests.samples import jpeg, noise, png
from tests.showing_tools import picked_record

KNOWN = sorted({key for names in KEYS.values() for key in names if key})
BYTES = [
    b"",
    b"text",
    b"\xff\xfe",
    b"uint8",
    b"png",
    jpeg(Image.fromarray(noise(6, 5))),
    jpeg(Image.fromarray(noise(6, 5)))[:80],
    png(Image.fromarray(noise(5, 6, channels=1)[:, :, 0])),
    png(Image.new("1", (3, 2))),
    b"GIF89a\x01\x00\x01\x00",
]
FEATURES = st.one_of(
    st.builds(Feature, st.just("bytes"), st.lists(st.sampled_from(BYTES), max_size=4)),
    st.builds(Feature, st.just("int64"), st.lists(st.integers(-2, 6) | st.just(2**62), max_size=4)),
    st.builds(Feature, st.just("float"), st.lists(st.floats(-2, 2, width=32) | st.just(float("nan")), max_size=8)),
)
RECORDS = st.dictionaries(st.sampled_from(KNOWN) | st.text(max_size=5), FEATURES, max_size=12)
NAMES = {0: "zero", 1: "one"}


def look_at(data: bytes) -> None:
    checked = RecordRules(None, decode_for_tests).check(data)
    assert all(problem.cause for problem in checked.problems)
    with tempfile.TemporaryDirectory() as folder:
        picked = picked_record(Path(folder), data)
        assert all(line.isprintable() for line in describe_record(picked, None))
        json.dumps(record_values(picked), allow_nan=False)
        pictures = list(drawn_pictures(picked, NAMES, 100))
        if pictures:
            draw_sheet(pictures, "heading", "remark")


@given(RECORDS)
@settings(max_examples=150)
def test_any_example_can_be_checked_and_shown(record: Mapping[str, Feature]) -> None:
    look_at(encode_example(record))


@given(RECORDS, st.dictionaries(st.sampled_from(KNOWN), st.lists(FEATURES, max_size=3), max_size=8))
@settings(max_examples=80)
def test_any_sequence_can_be_checked_and_shown(
    context: Mapping[str, Feature], steps: Mapping[str, list[Feature]]
) -> None:
    look_at(encode_sequence_example(context, steps))
