"""What load decides before it reads anything."""

from __future__ import annotations

from typing import Any

import pytest

from beam_tfrecord.errors import ConfigError
from beam_tfrecord.reading.element_plan import MIXED, ElementPlan, PixelType, plan_elements
from beam_tfrecord.reading.options import LoadOptions
from tests.unit.reading.facts import IMAGE, LABEL, OBJECTS, make_facts, spec

CLASSES = {**IMAGE, **LABEL, "age": spec()}
RAW_KEYS = ("height", "width", "channels")
RAW = {
    "image/raw": spec("bytes", role="raw"),
    "image/dtype": spec("bytes", role="text"),
    **{f"image/{key}": spec() for key in RAW_KEYS},
}


def plan(features: dict[str, Any], stated: dict[str, Any] | None = None, /, **options: Any) -> ElementPlan:
    return plan_elements(make_facts(features, **(stated or {})), LoadOptions(**options))


def parsed(found: ElementPlan) -> set[str]:
    return {spec.key for spec in found.specs}


def test_only_what_is_wanted_is_parsed() -> None:
    assert parsed(plan(CLASSES)) == set(CLASSES)
    assert parsed(plan(CLASSES, as_supervised=True)) == {"image/encoded", "image/class/label"}
    assert parsed(plan(CLASSES, features=["age"])) == {"age"}
    assert plan(CLASSES, features=["age"]).is_plain
    assert not plan(CLASSES).is_plain
    assert plan(CLASSES, decode=False).is_plain


def test_the_target_is_the_label_else_the_mask_else_the_objects() -> None:
    mask = {"image/segmentation/class/encoded": spec("bytes", role="image")}
    assert plan({**CLASSES, **mask}, as_supervised=True).supervised == ("image/class/label",)
    assert plan({**IMAGE, **mask}, as_supervised=True).supervised == tuple(mask)
    objects = plan(OBJECTS, as_supervised=True)
    assert set(objects.supervised or ()) == set(OBJECTS) - {"image/encoded"}
    assert objects.is_dict_target
    assert plan(CLASSES, as_supervised=True, label="label").supervised == ("image/class/label",)
    assert plan(CLASSES, as_supervised=True, label="age").supervised == ("age",)


@pytest.mark.parametrize(
    ("formats", "channels", "expected"),
    [
        (["jpeg/3/uint8"], None, PixelType(3, "uint8")),
        (["jpeg/1/uint8", "png/1/uint8"], None, PixelType(1, "uint8")),
        (["jpeg/1/uint8", "png/4/uint8"], None, PixelType(3, "uint8")),
        (["png/1/uint16"], None, PixelType(1, "uint16")),
        (["png/1/uint16", "png/3/uint8"], None, PixelType(3, "uint8")),
        (["png/2/uint8"], None, PixelType(2, "uint8")),
        (["jpeg/3/uint8"], 1, PixelType(1, "uint8")),
        (["png/4/uint8"], 4, PixelType(4, "uint8")),
    ],
)
def test_pixels_follow_what_was_stored(formats: list[str], channels: int | None, expected: PixelType) -> None:
    found = plan(CLASSES, {"image_formats": dict.fromkeys(formats, 1)}, channels=channels)
    assert found.pixels == {"image/encoded": expected}


def test_raw_pixels_need_what_stands_beside_them() -> None:
    found = plan(RAW, {"options": {"image_format": "raw"}, "image_formats": {"raw/3/uint8": 2, "raw/3/uint16": 1}})
    assert found.pixels == {"image/raw": PixelType(3, MIXED)}
    stated = {"options": {"image_format": "raw"}, "image_formats": {"raw/3/uint8": 2}}
    only = plan(RAW, stated, features=["image/raw"])
    assert parsed(only) == set(RAW)
    assert set(only.names) == {"image/raw"}


@pytest.mark.parametrize(
    ("features", "stated", "options", "told"),
    [
        ({"age": spec()}, {}, {"image_size": 9}, "no image: image_size, scale and channels do not apply"),
        ({"age": spec()}, {}, {"as_supervised": True}, "no label; name the feature .* label='age'"),
        (CLASSES, {}, {"channels": 4}, "some images are JPEGs"),
        (OBJECTS, {}, {"image_size": 9, "resize_mode": "crop"}, "could cut objects away"),
        (OBJECTS, {}, {"as_supervised": True, "one_hot": True}, "is no label with ids"),
        (CLASSES, {}, {"one_hot": True}, "needs as_supervised=True"),
        (CLASSES, {}, {"as_supervised": True, "one_hot": True, "label": "age"}, "one_hot: age is no label"),
        (CLASSES, {}, {"features": ["ages"]}, "did you mean 'age'"),
        (
            RAW,
            {"options": {"image_format": "raw"}, "image_formats": {"raw/1/uint8": 1, "raw/3/uint8": 1}},
            {},
            "channels that are stored \\(1 and 3\\): convert with --color",
        ),
        (
            {key: {**value, "in_sequence": True} for key, value in OBJECTS.items()},
            {"message": "SequenceExample"},
            {"image_size": 9, "resize_mode": "pad"},
            "does not move the boxes of sequences",
        ),
    ],
)
def test_options_that_do_not_fit_the_dataset_are_told(
    features: dict[str, Any], stated: dict[str, Any], options: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        plan(features, stated, **options)
