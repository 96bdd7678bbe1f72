"""Lists of objects to boxes of a manifest."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.annotations import feature_keys
from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.annotations.boxes import BoxesKind
from beam_tfrecord.tools.extracting.objects import objects_of, run_lengths
from beam_tfrecord.tools.extracting.values import UnextractableError
from tests.annotation_tools import make_placement, make_schema, parse, png, reference_mask, still

OD, TFDS = feature_keys("od"), feature_keys("tfds")
NAMES = {1: "cat", 2: "dog"}


def extracted(features: dict[str, Feature], keys: dict[str, str], left_out: dict[str, str] | None = None) -> Any:
    def names_of(ids: str, texts: str) -> list[str] | None:
        feature = features.get(keys[ids])
        return None if feature is None else [NAMES[number] for number in feature.values]

    return objects_of(features, keys, names_of, None if left_out is None else left_out.__setitem__)


@given(
    st.lists(st.lists(st.floats(0, 1, width=32), min_size=4, max_size=4), max_size=4),
    st.integers(1, 20_000),
    st.integers(1, 20_000),
)
def test_every_float32_box_comes_back_as_it_is(sides: list[list[float]], width: int, height: int) -> None:
    """Through JSON and conversion, on an image of any size."""
    boxes = [(min(a, b), min(c, d), max(a, b), max(c, d)) for a, b, c, d in sides if a != b and c != d]
    rows = [side for xmin, ymin, xmax, ymax in boxes for side in (ymin, xmin, ymax, xmax)]
    features = {
        "objects/bbox": Feature("float", rows),
        "objects/label": Feature("int64", [1] * len(boxes)),
        "objects/area": Feature("float", [box[0] for box in boxes]),
    }
    cells = json.loads(json.dumps({"boxes": extracted(features, TFDS)}))
    kind, schema = BoxesKind(), make_schema(["boxes"], ["cat"], "tfds")
    placed = kind.place(parse(kind, cells), make_placement(still(width, height)))
    again = kind.features(placed, schema)
    assert struct.pack(f"{len(rows)}f", *again["objects/bbox"].values) == struct.pack(f"{len(rows)}f", *rows)
    assert again["objects/area"].values == features["objects/area"].values


def test_everything_about_objects_is_told() -> None:
    mask = np.zeros((3, 4), np.uint8)
    mask[1:, 2] = 1
    side = {name: Feature("float", values) for name, values in (("xmin", [0.0, 0.5]), ("xmax", [0.25, 1.0]))}
    features = {
        **{OD[f"bbox_{name}"]: feature for name, feature in side.items()},
        OD["bbox_ymin"]: Feature("float", [0.125, 0.0]),
        OD["bbox_ymax"]: Feature("float", [0.5, 1.0]),
        OD["object_label"]: Feature("int64", [2, 1]),
        OD["object_is_crowd"]: Feature("int64", [0, 1]),
        OD["object_pose"]: Feature("bytes", ["schräg".encode(), b""]),
        OD["object_confidence"]: Feature("float", [0.5, float("nan")]),
        OD["object_mask"]: Feature("bytes", [png(mask), png(1 - mask)]),
        OD["keypoint_x"]: Feature("float", [0.5, 0.0, 0.25, 1.0]),
        OD["keypoint_y"]: Feature("float", [0.5, 0.0, 0.75, 0.0]),
        OD["keypoint_visibility"]: Feature("int64", [2, 0, 1, 2]),
        OD["keypoint_text"]: Feature("bytes", [b"nose", b"tail", b"", b""]),
    }
    first, second = extracted(features, OD)
    assert first == {
        "bbox": [0.0, 0.125, 0.25, 0.5],
        "normalized": True,
        "class": "dog",
        "is_crowd": 0,
        "pose": "schräg",
        "confidence": 0.5,
        "rle": {"size": [3, 4], "counts": [7, 2, 3]},
        "keypoints": [0.5, 0.5, 2, 0.0, 0.0, 0],
        "keypoint_names": ["nose", "tail"],
    }
    assert second["confidence"] == "nan"
    assert second["rle"]["counts"] == [0, 7, 2, 3]
    assert "keypoint_names" not in second


@given(st.integers(1, 9), st.integers(1, 9), st.data())
def test_run_lengths_are_those_of_the_coco_api(height: int, width: int, data: st.DataObject) -> None:
    bits = data.draw(st.lists(st.integers(0, 1), min_size=height * width, max_size=height * width))
    mask = np.array(bits, np.uint8).reshape(height, width)
    code = run_lengths(png(mask))
    assert code["size"] == [height, width]
    assert np.array_equal(reference_mask(code, height, width), mask)


@pytest.mark.parametrize(
    ("key", "feature", "code"),
    [
        ("objects/bbox", Feature("float", [0.0] * 5), "uneven_lists"),
        ("objects/bbox", Feature("int64", [0] * 4), "wrong_features"),
        ("objects/label", Feature("int64", [1, 2]), "uneven_lists"),
        ("objects/area", Feature("float", []), "uneven_lists"),
        ("objects/mask", Feature("bytes", [b"no png"]), "bad_mask"),
        ("objects/mask", Feature("bytes", [png(np.zeros((2, 2, 3), np.uint8))]), "bad_mask"),
        ("objects/keypoints/x", Feature("float", [0.5]), "wrong_features"),
    ],
)
def test_lists_that_do_not_fit_are_told(key: str, feature: Feature, code: str) -> None:
    good = {"objects/bbox": Feature("float", [0.0, 0.0, 1.0, 1.0]), "objects/label": Feature("int64", [1])}
    assert len(extracted(good, TFDS)) == 1
    with pytest.raises(UnextractableError) as error:
        extracted({**good, key: feature}, TFDS)
    assert error.value.problem.code == code


def test_a_missing_side_of_boxes_is_called_by_its_name() -> None:
    keys = {f"bbox_{side}": side for side in ("xmin", "ymin", "xmax", "ymax")}
    sides = {side: Feature("float", [0.5]) for side in ("xmin", "ymin", "xmax")}
    with pytest.raises(UnextractableError) as error:
        extracted(sides, keys)
    assert error.value.problem == ("uneven_lists", "the boxes have no ymax")


def test_elsewhere_lists_that_do_not_fit_the_objects_are_left_out_and_told() -> None:
    features = {
        "objects/bbox": Feature("float", [0.0, 0.0, 1.0, 1.0]),
        "objects/label": Feature("int64", [1]),
        "objects/area": Feature("float", []),
        "objects/is_crowd": Feature("bytes", [b"no"]),
    }
    left_out: dict[str, str] = {}
    (item,) = extracted(features, TFDS, left_out)
    assert left_out == {
        "objects/is_crowd": "objects/is_crowd is bytes, not int64",
    }
    assert item == {"bbox": [0.0, 0.0, 1.0, 1.0], "normalized": True, "class": "cat"}


def test_a_record_without_objects_has_none() -> None:
    assert extracted({"label": Feature("int64", [1])}, TFDS) is None
    assert extracted({"objects/bbox": Feature("float", []), "objects/label": Feature("int64", [])}, TFDS) == []
