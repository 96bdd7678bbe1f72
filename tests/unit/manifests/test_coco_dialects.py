"""LVIS and Objects365: COCO's format with quirks of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beam_tfrecord.core.account import KEYS
from beam_tfrecord.core.elements import Row
from beam_tfrecord.manifests.formats.coco import CocoFormat
from tests.annotation_tools import account_of, pixels, read_items, reference_mask, rejects, write
from tests.end_to_end.datasets import conversion, converted, records, texts
from tests.samples import jpeg, painted_boxes

# An image, category and annotation of lvis_v1_train.json, with other numbers.
LVIS_IMAGE: dict[str, Any] = {
    "date_captured": "2013-11-14 22:48:07",
    "neg_category_ids": [3],
    "license": 4,
    "height": 60,
    "not_exhaustive_category_ids": [1],
    "width": 80,
    "flickr_url": "http://farm9.staticflickr.com/8186/8119368305_4e622c8349_z.jpg",
}
LVIS_CATEGORIES = [
    {"id": 3, "name": "acorn", "synset": "acorn.n.01", "synonyms": ["acorn"], "def": "x", "frequency": "c"},
    {"id": 1, "name": "zebra", "synset": "zebra.n.01", "synonyms": ["zebra"], "def": "x", "frequency": "f"},
]
OUTLINE = [20, 10, 50, 10, 50, 30, 20, 30]


def lvis(*folders: str) -> dict[str, Any]:
    images = [
        {**LVIS_IMAGE, "id": number, "coco_url": f"http://images.cocodataset.org/{folder}/{number:012}.jpg"}
        for number, folder in enumerate(folders, start=1)
    ]
    annotations = [
        {"id": 9, "image_id": 1, "category_id": 1, "area": 600.0, "bbox": [20, 10, 30, 20], "segmentation": [OUTLINE]}
    ]
    return {"images": images, "annotations": annotations, "categories": LVIS_CATEGORIES, "info": {}, "licenses": []}


def objects365(*names: str) -> dict[str, Any]:
    images = [
        {"id": number, "file_name": name, "height": 60, "width": 80, "license": 5, "url": ""}
        for number, name in enumerate(names, start=1)
    ]
    annotations = [
        {
            "id": number,
            "image_id": number,
            "category_id": 46,
            "bbox": [20.5, 10.25, 30, 20],
            "area": 600,
            "iscrowd": number % 2,
            "isfake": 1,
            "isreflected": 0,
        }
        for number in range(1, len(names) + 1)
    ]
    categories = [{"id": 46, "name": "Cup"}, {"id": 1, "name": "Person"}, {"id": 365, "name": "Iron"}]
    return {"images": images, "annotations": annotations, "categories": categories}


def images_of(folder: Path, **options: Any) -> list[str]:
    return [item.fields["image"] for item in read_items(CocoFormat(), folder, **options)[1] if isinstance(item, Row)]


def test_lvis_as_it_is_downloaded(tmp_path: Path) -> None:
    """The images of its validation set lie in both folders of COCO."""
    for number, folder in enumerate(("train2017", "val2017"), start=1):
        boxes = [(20, 10, 50, 30)] if number == 1 else []
        write(tmp_path / f"lvis/{folder}/{number:012}.jpg", jpeg(painted_boxes(80, 60, boxes)))
    write(tmp_path / "lvis/annotations/lvis_v1_val.json", lvis("train2017", "val2017"))
    summary = converted(tmp_path / "lvis", tmp_path / "out")
    assert (summary.rows, summary.written) == (2, 2)
    found = {record["image/filename"][0].decode(): record for record in records(tmp_path / "out")}
    record = found["train2017/000000000001.jpg"]
    assert texts(record, "image/object/class/text") == ["zebra"]
    assert np.allclose(record["image/object/bbox/xmax"], [50 / 80])
    mask = pixels(record["image/object/mask"][0]) > 0
    assert np.array_equal(mask, reference_mask([OUTLINE], 60, 80) > 0)
    assert conversion(tmp_path / "out")["labels"] == ["zebra", "acorn"]  # by the ids


def test_keys_of_lvis_that_are_not_read_are_told(tmp_path: Path) -> None:
    account = account_of(CocoFormat(), write(tmp_path / "a.json", lvis("train2017")))
    told = account.named[KEYS]
    assert told["not read of images"].count == 5
    assert told["not read of categories"].count == 4
    assert told["not read"].count == 2


def test_addresses_are_kept_where_no_such_file_is_there(tmp_path: Path) -> None:
    write(tmp_path / "other.jpg", "pixels")
    path = write(tmp_path / "a.json", lvis("train2017"))
    assert images_of(path) == ["http://images.cocodataset.org/train2017/000000000001.jpg"]


def test_lvis_finds_images_without_folders_of_their_own(tmp_path: Path) -> None:
    write(tmp_path / "images/000000000001.jpg", "pixels")
    path = write(tmp_path / "a.json", lvis("train2017"))
    assert images_of(path, images=str(tmp_path / "images")) == ["000000000001.jpg"]


def test_objects365_as_it_is_downloaded(tmp_path: Path) -> None:
    names = ["images/v1/patch8/objects365_v1_00420917.jpg", "images/v2/patch16/objects365_v2_00908726.jpg"]
    for patch, name in (("patch8", "objects365_v1_00420917.jpg"), ("patch16", "objects365_v2_00908726.jpg")):
        write(tmp_path / f"o/train/{patch}/{name}", jpeg(painted_boxes(80, 60, [(20, 10, 50, 30)])))
    write(tmp_path / "o/zhiyuan_objv2_train.json", objects365(*names))
    summary = converted(tmp_path / "o", tmp_path / "out")
    assert (summary.rows, summary.written) == (2, 2)
    found = records(tmp_path / "out")
    assert {record["image/filename"][0] for record in found} == {
        b"train/patch8/objects365_v1_00420917.jpg",
        b"train/patch16/objects365_v2_00908726.jpg",
    }
    assert sorted(record["image/object/is_crowd"][0] for record in found) == [0, 1]
    assert all(np.allclose(record["image/object/bbox/xmin"], [20.5 / 80]) for record in found)
    assert conversion(tmp_path / "out")["labels"] == ["Person", "Cup", "Iron"]
    told = account_of(CocoFormat(), tmp_path / "o/zhiyuan_objv2_train.json").named[KEYS]
    assert told["not read of annotations"].count == 2  # isfake, isreflected


def test_two_images_with_one_end_are_rejects(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write(tmp_path / f"{folder}/1.jpg", "pixels")
    write(tmp_path / "a/2.jpg", "pixels")
    path = write(tmp_path / "x.json", objects365("v/1.jpg", "v/2.jpg"))
    source, items = read_items(CocoFormat(), path)
    assert [item.fields["image"] for item in items if isinstance(item, Row)] == ["a/2.jpg"]
    ((code, message),) = rejects(items)
    assert (code, "a/1.jpg or b/1.jpg" in message) == ("bad_row", True)
    assert any(decision.what == "images" for decision in source.decisions)


@pytest.mark.parametrize("names", [("v/1.jpg", "v/2.jpg"), ("1.jpg", "v/9.jpg")])
def test_paths_that_lead_somewhere_are_literal(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in ("v/1.jpg", "w/2.jpg", "1.jpg"):
        write(tmp_path / name, "pixels")
    assert images_of(write(tmp_path / "x.json", objects365(*names))) == list(names)
