"""Keys of records that nothing tells about."""

from __future__ import annotations

import pytest

from beam_tfrecord.datasets.record_keys import guess_keys, keys_of_conversion


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        (
            ["image/encoded", "image/class/label", "image/class/text", "image/height"],
            {
                "encoded": "image/encoded",
                "label": "image/class/label",
                "label_text": "image/class/text",
                "height": "image/height",
            },
        ),
        (["image", "label", "objects/bbox"], {"encoded": "image", "label": "label", "bbox": "objects/bbox"}),
        (
            ["data", "shape", "label", "name"],
            {"raw": "data", "shape": "shape", "label": "label", "filename": "name"},
        ),
        (["image_raw", "label", "depth"], {"encoded": "image_raw", "label": "label", "channels": "depth"}),
        (["x", "y"], {}),
    ],
)
def test_common_names_are_understood(present: list[str], expected: dict[str, str]) -> None:
    assert guess_keys(present) == expected


def test_guessing_depends_on_the_keys_alone() -> None:
    first = guess_keys(["label", "image"])
    first["encoded"] = "changed by a caller"
    assert guess_keys(["image", "label"])["encoded"] == "image"


def test_a_conversion_tells_its_preset_and_renames() -> None:
    options = {"rename": [["image/encoded", "pixels"]], "columns": [{"name": "age", "type": "int64", "is_list": False}]}
    keys = keys_of_conversion({"keys": "imagenet", "options": options})
    assert keys["encoded"] == "pixels"
    assert keys["label"] == "image/class/label"
    assert keys["column/age"] == "age"
    raw = keys_of_conversion({"keys": "simple", "options": {"image_format": "raw"}})
    assert raw["raw"] == "data"
