"""What documents and tables tell of all that stands in them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.manifests.formats.coco import CocoFormat
from beam_tfrecord.manifests.formats.jsonl import JsonlFormat
from beam_tfrecord.manifests.formats.table import CsvFormat
from beam_tfrecord.options.config import ManifestConfig
from beam_tfrecord.options.values import InputSpec
from tests.annotation_tools import account_of, write
from tests.local_files import LocalFiles


def test_a_coco_file(tmp_path: Path) -> None:
    document: dict[str, Any] = {
        "info": {},
        "images": [
            {"id": 1, "file_name": "a.jpg", "date_captured": "today"},
            {"id": 2, "width": 4, "height": 4},  # no file
        ],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 5, "bbox": [0, 0, 2, 2], "score": 0.5},
            {"id": 2, "image_id": 1, "category_id": 5, "bbox": [0, 0, 2, 2]},
            {"id": 3, "image_id": 2, "category_id": 5, "bbox": [0, 0, 2, 2]},
            {"id": 4, "image_id": 9, "category_id": 5, "bbox": [0, 0, 2, 2]},
            {"id": 5, "category_id": 5, "bbox": [0, 0, 2, 2]},
        ],
        "categories": [{"id": 5, "name": "cat", "supercategory": "animal"}, {"id": 6, "name": "dog"}],
    }
    account = account_of(CocoFormat(), write(tmp_path / "a.json", document)).to_json()
    # Counted by the document itself: 2 images, 5 annotations, 2 categories, and the distinct keys of each.
    keys = {(name, key) for name in ("images", "annotations", "categories") for one in document[name] for key in one}
    assert account["found"] == {"annotations": 5, "categories": 2, "images": 2, "keys": len(keys) + len(document)}
    assert account["used"]["annotations"] == {"of a row": 2}
    assert account["used"]["images"] == {"rows": 1}
    assert account["named"]["annotations"] == {
        "belongs to no image": {"count": 2, "example": "annotations[3]"},
        "of a rejected image": {"count": 1, "example": "images[1]"},
    }
    assert account["named"]["images"] == {"rejected": {"count": 1, "example": "images[1]"}}
    assert account["named"]["categories"] == {"no annotation has it": {"count": 1, "example": "dog"}}
    assert account["named"]["keys"] == {
        "not read": {"count": 1, "example": "info"},
        "not read of annotations": {"count": 1, "example": "score"},
        "not read of categories": {"count": 1, "example": "supercategory"},
        "not read of images": {"count": 1, "example": "date_captured"},
    }


@pytest.mark.parametrize(
    ("header", "used", "named"),
    [
        (["filename", "class", "note"], {"image": 1, "label": 1}, {"not asked for": "note"}),
        (
            ["image", "species_tag", "fold"],
            {"image": 1},
            {"looks like labels": "species_tag", "looks like splits": "fold"},
        ),
        (["image", "label", "bbox_area_polygon"], {"image": 1, "label": 1}, {"looks like boxes": "bbox_area_polygon"}),
        (
            ["image", "width", "height", "class", "xmin", "ymin", "xmax", "ymax", "difficult"],
            {"image": 1, "label": 1, "boxes": 4, "size of the image": 2, "attribute of boxes": 1},
            {},
        ),
    ],
)
def test_columns(tmp_path: Path, header: list[str], used: dict[str, int], named: dict[str, str]) -> None:
    with (tmp_path / "t.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([header, ["a.jpg", *["1"] * (len(header) - 1)]])
    account = account_of(CsvFormat(), tmp_path / "t.csv").to_json()
    assert account["found"] == {"columns": len(header)}
    assert account["used"] == {"columns": used}
    assert {reason: told["example"] for reason, told in account["named"].get("columns", {}).items()} == named


def test_a_key_that_comes_late_is_told(tmp_path: Path) -> None:
    lines = [json.dumps({"image": f"{number}.jpg"}) for number in range(1500)]
    lines.append(json.dumps({"image": "late.jpg", "label": "cat"}))
    account = account_of(JsonlFormat(), write(tmp_path / "t.jsonl", "\n".join(lines))).to_json()
    assert account["found"] == {"columns": 2}
    assert account["named"]["columns"] == {"looks like labels": {"count": 1, "example": "label"}}


def test_decisions_about_a_table(tmp_path: Path) -> None:
    uri = str(write(tmp_path / "t.csv", "path;kind\na.jpg;cat\n"))
    config = ManifestConfig(input=(InputSpec(uri),), label_column="kind")
    told = [tuple(one) for one in CsvFormat().describe(LocalFiles(), uri, None, config).decisions]
    assert told == [
        ("encoding", "utf-8", "its bytes"),
        ("delimiter", "semicolon", "the first lines"),
        ("column of the image", "path", "its name"),
        ("column of the label", "kind", "--label_column"),
    ]
