from __future__ import annotations

import pytest

from beam_tfrecord.annotations.captions import Captions, CaptionsKind
from beam_tfrecord.errors import AnnotationError
from tests.annotation_tools import Warnings, make_schema, parse, through_tensorflow

KIND = CaptionsKind()


def test_captions_keep_their_order_and_blank_ones_are_told() -> None:
    warnings: Warnings = []
    assert parse(KIND, {"captions": ["b. ", "", "ä"]}, warnings) == Captions(("b.", "ä"))
    assert [code for code, _ in warnings] == ["annotation_ignored"]


def test_one_text_is_one_caption() -> None:
    assert parse(KIND, {"captions": "a cat"}) == Captions(("a cat",))
    assert parse(KIND, {}) is None


def test_what_is_no_text_is_told() -> None:
    with pytest.raises(AnnotationError) as caught:
        parse(KIND, {"captions": [["a"]]})
    assert caught.value.code == "bad_annotation"


@pytest.mark.parametrize(("preset", "key"), [("od", "image/caption"), ("tfds", "captions")])
def test_tensorflow_reads_them(preset: str, key: str) -> None:
    schema = make_schema(["captions"], preset=preset)
    assert through_tensorflow({"captions": Captions(("a", "ä"))}, schema) == {key: [b"a", "ä".encode()]}
    assert through_tensorflow({}, schema) == {key: []}
