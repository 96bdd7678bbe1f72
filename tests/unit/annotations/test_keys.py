from __future__ import annotations

import pytest

from beam_tfrecord.annotations.keys import KEYS, PRESETS, feature_keys
from beam_tfrecord.errors import ConfigError
from beam_tfrecord.options.values import parse_columns

OD_KEYS = {
    "encoded": "image/encoded",
    "format": "image/format",
    "height": "image/height",
    "width": "image/width",
    "channels": "image/channels",
    "filename": "image/filename",
    "source_id": "image/source_id",
    "sha256": "image/key/sha256",
    "label": "image/class/label",
    "label_text": "image/class/text",
    "bbox_xmin": "image/object/bbox/xmin",
    "bbox_xmax": "image/object/bbox/xmax",
    "bbox_ymin": "image/object/bbox/ymin",
    "bbox_ymax": "image/object/bbox/ymax",
    "object_label": "image/object/class/label",
    "object_text": "image/object/class/text",
    "object_is_crowd": "image/object/is_crowd",
    "object_area": "image/object/area",
    "object_difficult": "image/object/difficult",
    "object_truncated": "image/object/truncated",
    "object_group_of": "image/object/group_of",
    "object_mask": "image/object/mask",
    "keypoint_x": "image/object/keypoint/x",
    "keypoint_y": "image/object/keypoint/y",
    "keypoint_visibility": "image/object/keypoint/visibility",
    "keypoint_text": "image/object/keypoint/text",
    "keypoint_num": "image/object/keypoint/num",
    "semantic_mask": "image/segmentation/class/encoded",
    "panoptic_category_mask": "image/panoptic/category_mask",
    "panoptic_instance_mask": "image/panoptic/instance_mask",
    "captions": "image/caption",
}


@pytest.mark.parametrize("preset", ["imagenet", "od"])
def test_imagenet_and_od_have_the_keys_of_the_object_detection_api(preset: str) -> None:
    keys = feature_keys(preset)
    assert {name: keys[name] for name in OD_KEYS} == OD_KEYS
    assert "bbox" not in keys


def test_tfds_packs_boxes_under_objects() -> None:
    keys = feature_keys("tfds")
    assert (keys["encoded"], keys["label"]) == ("image", "label")
    assert (keys["bbox"], keys["object_label"]) == ("objects/bbox", "objects/label")
    assert "bbox_xmin" not in keys
    assert "label_text" not in keys


def test_simple_has_what_it_promises_and_no_facts_that_decoding_tells() -> None:
    of_image = {"encoded", "raw", "shape", "dtype", "height", "width", "channels", "format", "sha256", "filename"}
    encoded, raw = feature_keys("simple"), feature_keys("simple", raw=True)
    assert {name: key for name, key in encoded.items() if name in of_image} == {"encoded": "image", "filename": "name"}
    assert {name: key for name, key in raw.items() if name in of_image} == {
        "raw": "data",
        "shape": "shape",
        "dtype": "dtype",
        "height": "height",
        "width": "width",
        "channels": "channels",
        "filename": "name",
    }


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("raw", [False, True])
def test_every_preset_has_the_source_id_and_a_key_of_its_own_for_each_annotation(preset: str, raw: bool) -> None:
    keys = feature_keys(preset, raw=raw)
    assert keys["source_id"] == "image/source_id"
    assert len(set(keys.values())) == len(keys)
    assert ("raw" in keys, "encoded" in keys, "dtype" in keys) == (raw, not raw, raw)
    missing = set(KEYS) - set(keys)
    names_of_ids = {"label_text", "object_text", "panoptic_segment_text"}
    boxes = {"bbox", "bbox_xmin", "bbox_xmax", "bbox_ymin", "bbox_ymax"}
    of_image = {"encoded", "raw", "shape", "dtype", "height", "width", "channels", "format", "sha256"}
    assert missing <= names_of_ids | boxes | of_image


def test_rename_changes_one_key() -> None:
    keys = feature_keys("imagenet", [("image/encoded", "image"), ("age", "years")], columns=parse_columns("age:int64"))
    assert keys["encoded"] == "image"
    assert keys["column/age"] == "years"
    assert keys["height"] == "image/height"


def test_two_keys_may_be_swapped() -> None:
    keys = feature_keys("imagenet", [("image/height", "image/width"), ("image/width", "image/height")])
    assert (keys["height"], keys["width"]) == ("image/width", "image/height")


def test_an_unknown_key_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match=r"image/encodde.*did you mean 'image/encoded'"):
        feature_keys("imagenet", [("image/encodde", "image")])


def test_a_key_of_another_preset_is_unknown() -> None:
    with pytest.raises(ConfigError, match="with --keys simple no feature is called 'image/encoded'"):
        feature_keys("simple", [("image/encoded", "x")])


def test_two_features_cannot_get_one_key() -> None:
    with pytest.raises(ConfigError, match="two features would be called 'image/width'"):
        feature_keys("imagenet", [("image/height", "image/width")])


def test_a_column_cannot_take_the_key_of_another_feature() -> None:
    with pytest.raises(ConfigError, match=r"called 'label' \(label and the column label\)"):
        feature_keys("tfds", columns=parse_columns("label:string"))
    assert feature_keys("imagenet", columns=parse_columns("label:string"))["column/label"] == "label"
