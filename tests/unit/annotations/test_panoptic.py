from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from beam_tfrecord.annotations.panoptic import PanopticKind
from beam_tfrecord.core.geometry import PixelFrame
from beam_tfrecord.errors import AnnotationError
from tests.annotation_tools import (
    make_placement,
    make_schema,
    nearest,
    parse,
    pixels,
    png,
    still,
    through_tensorflow,
    turned,
)

KIND = PanopticKind()
SEGMENTS = [{"id": 70_000, "class": "sky"}, {"id": 300, "class": "cat", "is_crowd": 1}, {"id": 5, "class": "cat"}]
NUMBERS = np.array([[1, 1, 0, 2], [1, 3, 3, 2], [0, 3, 3, 0]], np.uint8)


def colours(ids: Any) -> bytes:
    ids = np.asarray(ids, np.uint32)
    return png(np.stack([ids % 256, ids // 256 % 256, ids // 65536], axis=-1).astype(np.uint8))


MASK = colours(np.array([0, 70_000, 300, 5])[NUMBERS])


def placed(frame: PixelFrame, data: bytes = MASK, segments: Any = SEGMENTS) -> Any:
    value = parse(KIND, {"panoptic": {"mask": "p.png", "segments": segments}})
    return KIND.place(value, make_placement(frame, files={"p.png": data}))


def test_pixels_tell_class_and_segment() -> None:
    parsed = through_tensorflow({"panoptic": placed(still(4, 3))}, make_schema(["panoptic"], ["cat", "sky"]))
    assert np.array_equal(pixels(parsed["image/panoptic/category_mask"]), np.array([0, 2, 1, 1])[NUMBERS])
    assert np.array_equal(pixels(parsed["image/panoptic/instance_mask"]), NUMBERS)
    assert parsed["image/panoptic/segment/class/label"] == [2, 1, 1]
    assert parsed["image/panoptic/segment/class/text"] == [b"sky", b"cat", b"cat"]
    assert parsed["image/panoptic/segment/is_crowd"] == [0, 1, 0]
    assert parsed["image/panoptic/segment/area"] == [3, 2, 4]


def test_void_is_a_value_of_its_own_where_a_class_has_the_id_0() -> None:
    parsed = through_tensorflow({"panoptic": placed(still(4, 3))}, make_schema(["panoptic"], ["cat", "sky"], "tfds"))
    assert np.array_equal(pixels(parsed["panoptic/category_mask"]), np.array([255, 1, 0, 0])[NUMBERS])


def test_many_classes_take_16_bits() -> None:
    names = ["cat", *(f"class {number}" for number in range(300)), "sky"]
    features = KIND.features(placed(still(4, 3)), make_schema(["panoptic"], names))
    import tensorflow as tf

    found = tf.io.decode_png(features["image/panoptic/category_mask"].values[0], dtype=tf.uint16).numpy()[..., 0]
    assert np.array_equal(found, np.array([0, 302, 1, 1])[NUMBERS])


@pytest.mark.parametrize("frame", [turned(6, 4, 3), PixelFrame(4, 3, 8, 6, scale_x=2, scale_y=2)])
def test_segments_move_with_the_pixels(frame: PixelFrame) -> None:
    assert np.array_equal(placed(frame).numbers, nearest(NUMBERS, frame))


@pytest.mark.parametrize(
    ("data", "told"), [(colours([[9] * 4] * 3), "segment 9"), (colours([[5] * 3] * 3), "3x3 pixels")]
)
def test_a_mask_that_does_not_fit_is_told(data: bytes, told: str) -> None:
    with pytest.raises(AnnotationError) as caught:
        placed(still(4, 3), data)
    assert caught.value.code == "bad_mask"
    assert told in caught.value.message


@pytest.mark.parametrize(
    "field",
    [
        {"mask": "p.png"},
        {"segments": SEGMENTS},
        {"mask": "p.png", "segments": [{"id": 1}]},
        {"mask": "p.png", "segments": [{"id": "x", "class": "a"}]},
        {"mask": "p.png", "segments": [{"id": 1, "class": "a"}, {"id": 1, "class": "b"}]},
        {"mask": "p.png", "segments": [{"id": 0, "class": "a"}]},
        {"mask": "p.png", "segments": [{"id": 10**30, "class": "a"}]},
        "p.png",
    ],
)
def test_an_incomplete_annotation_is_told(field: Any) -> None:
    with pytest.raises(AnnotationError) as caught:
        parse(KIND, {"panoptic": field})
    assert caught.value.code == "bad_annotation"


def test_an_item_without_segments_has_empty_values() -> None:
    parsed = through_tensorflow({}, make_schema(["panoptic"], ["cat"]))
    assert parsed.pop("image/panoptic/category_mask") == b""
    assert parsed.pop("image/panoptic/instance_mask") == b""
    assert set(map(str, parsed.values())) == {"[]"}


def test_an_item_that_is_stated_to_have_none_makes_the_masks_plain_bytes() -> None:
    value = parse(KIND, {"panoptic": {"mask": "", "segments": []}})
    schema = make_schema(KIND.facets(value), ["cat"])
    assert schema.kinds == ("panoptic", "panoptic/partial")
    parsed = through_tensorflow({"panoptic": KIND.place(value, make_placement(still(4, 3)))}, schema)
    assert parsed["image/panoptic/category_mask"] == b""
    assert {spec.role for spec in KIND.spec(schema)[:2]} == {"scalar"}
    assert {spec.role for spec in KIND.spec(make_schema(["panoptic"]))[:2]} == {"image"}


def test_many_segments_take_16_bits_in_the_whole_dataset() -> None:
    segments = [{"id": number, "class": "cat"} for number in range(1, 301)]
    many = parse(KIND, {"panoptic": {"mask": "p.png", "segments": segments}})
    schema = make_schema(KIND.facets(many), ["cat"])
    assert "panoptic/many_segments" in schema.kinds
    assert [spec.pixel_dtype for spec in KIND.spec(schema)[:2]] == ["uint8", "uint16"]
    import tensorflow as tf

    png_of_few = KIND.features(placed(still(4, 3)), make_schema(["panoptic/many_segments"], ["cat", "sky"]))
    stored = png_of_few["image/panoptic/instance_mask"].values[0]
    assert np.array_equal(tf.io.decode_png(stored, dtype=tf.uint16).numpy()[..., 0], NUMBERS)


def test_labels_are_the_classes_of_the_segments() -> None:
    value = parse(KIND, {"panoptic": {"mask": "p.png", "segments": SEGMENTS}})
    assert list(KIND.labels(value)) == ["sky", "cat", "cat"]
