"""Datumaro's JSON, as Datumaro 1.13.12 writes it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beam_tfrecord.core.elements import Row
from beam_tfrecord.manifests.formats.datumaro import DatumaroFormat
from beam_tfrecord.manifests.picture_labels import ANNOTATIONS
from tests.annotation_tools import account_of, pixels, read_items, rejects, write
from tests.contracts import ListedPicturesContract, Sample
from tests.end_to_end.datasets import conversion, converted, records
from tests.local_files import LocalFiles
from tests.samples import jpeg, painted_boxes

# Dataset.export(..., "datumaro") of one picture with a box, polygon and points of one group, a label, a caption, a
# polyline, an ellipse and a mask of 3x4 pixels at (6, 5).
WRITTEN = """{"dm_format_version":"1.0","media_type":2,"infos":{},"categories":{"label":{"labels":[{"name":"fox",
"parent":"","attributes":[]},{"name":"hen","parent":"","attributes":[]}],"label_groups":[],"attributes":[]}},"items":[{"id":"a",
"annotations":[{"id":0,"type":"bbox","attributes":{"occluded":true},"group":1,"label_id":0,"z_order":0,"bbox":[1.0,2.0,
30.0,40.0]},{"id":0,"type":"polygon","attributes":{},"group":1,"label_id":0,"points":[1.0,2.0,30.0,2.0,30.0,40.0],
"z_order":0},{"id":0,"type":"label","attributes":{},"group":0,"label_id":1},{"id":0,"type":"caption","attributes":{},
"group":0,"caption":"hi"},{"id":0,"type":"polyline","attributes":{},"group":0,"label_id":0,"points":[1.0,2.0,3.0,4.0],
"z_order":0},{"id":0,"type":"points","attributes":{},"group":1,"label_id":0,"points":[5.0,6.0,7.0,9.0],"z_order":0,
"visibility":[2,1]},{"id":0,"type":"ellipse","attributes":{},"group":0,"label_id":1,"points":[10.0,20.0,30.0,40.0],
"z_order":0},{"id":0,"type":"mask","attributes":{},"group":0,"label_id":1,"rle":{"counts":"];3i100000SS4",
"size":[60,80]},"z_order":0}],"image":{"path":"a.jpg","size":[60,80]}}]}"""


def document(*items: Any, names: Sequence[str] = ("fox",)) -> str:
    labels = [{"name": name, "parent": "", "attributes": []} for name in names]
    head = {"dm_format_version": "1.0", "media_type": 2, "infos": {}, "categories": {"label": {"labels": labels}}}
    return json.dumps(head | {"items": list(items)})


def picture(name: str, *annotations: Any) -> dict[str, Any]:
    return {"id": name, "annotations": list(annotations), "image": {"path": name, "size": [60, 80]}}


def box(*sides: Any, label_id: Any = 0) -> dict[str, Any]:
    return {"id": 0, "type": "bbox", "attributes": {}, "group": 0, "label_id": label_id, "bbox": list(sides)}


class TestDatumaro(ListedPicturesContract):
    format = DatumaroFormat()

    def write(self, folder: Path, names: Sequence[str]) -> str:
        for name in names:
            write(folder / "images/default" / name, "pixels")
        return str(write(folder / "annotations/default.json", document(*map(picture, names))))

    def row(self, uri: str, name: str, place: int) -> tuple[str, dict[str, Any]]:
        return f"{uri}:items[{place}]", {"boxes": [], "size": (80, 60), "image": name}

    def damaged(self, folder: Path) -> Sample:
        uri = self.write(folder, ["a.jpg"])
        bad = [picture("b.jpg", box(1, 2, 3, 4, label_id=7)), picture("c.jpg", "x"), {"id": "d"}]
        write(Path(uri), document(picture("a.jpg"), *bad))
        codes = ("unknown_category", "bad_row", "bad_row")
        told = [(f"{uri}:items[{place}]", code) for place, code in enumerate(codes, start=1)]
        return Sample(uri, [self.row(uri, "a.jpg", 0)], told)

    def empty(self, folder: Path) -> Sample:
        return Sample(str(write(folder / "annotations/default.json", document())), [])


def test_annotations_of_a_group_are_one_object(tmp_path: Path) -> None:
    path = write(tmp_path / "annotations/train.json", WRITTEN)
    source, items = read_items(DatumaroFormat(), path)
    assert (source.labels, source.category_ids) == (("fox", "hen"), (0, 1))
    (row,) = [item for item in items if isinstance(item, Row)]
    fox, sun, hen = row.fields["boxes"]
    assert (fox["class"], fox["bbox_xywh"], fox["occluded"]) == ("fox", [1, 2, 30, 40], True)
    assert (fox["polygons"], fox["keypoints"]) == ([[1, 2, 30, 2, 30, 40]], [5, 6, 2, 7, 9, 1])
    assert (sun["class"], hen["rle"]["size"]) == ("hen", [60, 80])
    assert (row.fields["label"], row.fields["captions"], row.fields["split"]) == ("hen", ["hi"], "train")
    account = account_of(DatumaroFormat(), path)
    assert (account.found[ANNOTATIONS], account.uses(ANNOTATIONS), account.unused(ANNOTATIONS)) == (8, 7, 1)


def test_a_mask_is_where_datumaro_has_it(tmp_path: Path) -> None:
    write(tmp_path / "in/images/train/a.jpg", jpeg(painted_boxes(80, 60, [])))
    write(tmp_path / "in/images/val/b.jpg", jpeg(painted_boxes(80, 60, [(1, 2, 31, 42)])))
    write(tmp_path / "in/annotations/train.json", WRITTEN)
    write(tmp_path / "in/annotations/val.json", document(picture("b.jpg", box(1, 2, 30, 40)), names=["fox", "hen"]))
    converted(tmp_path / "in", tmp_path / "out")
    (record,) = records(tmp_path / "out", "train")
    expected = np.zeros((60, 80), bool)
    expected[5:8, 6:10] = True
    assert np.array_equal(pixels(record["image/object/mask"][2]) > 0, expected)
    (other,) = records(tmp_path / "out", "val")
    assert other["image/object/bbox/xmax"] == pytest.approx([31 / 80])
    assert conversion(tmp_path / "out")["labels"] == ["fox", "hen"]


@pytest.mark.parametrize(
    "one",
    [
        {"type": "ellipse", "label_id": 0, "points": [1, 2, 3]},
        {"type": "ellipse", "label_id": 0, "points": [1, 2, 3, "x"]},
        {"type": "points", "label_id": 0, "points": None},
        {"type": "label", "label_id": None},
        {"type": "points", "label_id": 0, "points": [1, 2, 3, 4], "visibility": [2]},
        {"type": "points", "label_id": 0, "points": [1, 2, 3, 4], "visibility": "22"},
        {"type": 3},
    ],
)
def test_what_cannot_be_right_is_a_reject(tmp_path: Path, one: Any) -> None:
    path = write(tmp_path / "annotations/x.json", document(picture("a.jpg", one), picture("b.jpg")))
    ((code, message),) = rejects(read_items(DatumaroFormat(), path)[1])
    assert code in ("bad_annotation", "unknown_category", "bad_row")
    assert "items[0]" in message


@pytest.mark.parametrize(("size", "told"), [([60.5, 80], "80 x 60.5"), ([-60, 80], "80 x -60"), ("60", "'60'")])
def test_a_size_that_can_be_none_is_told(tmp_path: Path, size: Any, told: str) -> None:
    one = picture("a.jpg", box(1, 2, 3, 4))
    path = write(tmp_path / "annotations/x.json", document({**one, "image": {"path": "a.jpg", "size": size}}))
    (row,) = read_items(DatumaroFormat(), path)[1]
    assert "size" not in row.fields
    ((code, message),) = row.fields["notes"]
    assert (code, told in message, "items[0].image.size" in message) == ("size_mismatch", True, True)


@pytest.mark.parametrize("text", ['{"categories": [], "images": []}', '{"items": []}', "[]"])
def test_other_json_is_not_taken_for_it(tmp_path: Path, text: str) -> None:
    assert not DatumaroFormat().recognises(LocalFiles(), str(tmp_path), text.encode())
