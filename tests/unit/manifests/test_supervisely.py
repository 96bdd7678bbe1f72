"""Supervisely's annotations, as docs.supervisely.com shows them and supervisely 6.74 packs bitmaps."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beam_tfrecord.core.account import Decision
from beam_tfrecord.core.elements import Row
from beam_tfrecord.manifests import siblings
from beam_tfrecord.manifests.formats.folder import FolderFormat
from beam_tfrecord.manifests.formats.supervisely import SuperviselyFormat
from beam_tfrecord.manifests.picture_labels import ANNOTATIONS
from beam_tfrecord.options.config import ManifestConfig
from beam_tfrecord.options.values import InputSpec
from tests.annotation_tools import account_of, pixels, read_items, rejects, write
from tests.contracts import ManifestFormatContract, Sample, describe
from tests.end_to_end.datasets import conversion, converted, records
from tests.local_files import LocalFiles
from tests.samples import jpeg, painted_boxes, png

SIZE = (160, 120)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siblings, "ITEMS_PER_PIECE", 2)


def document(*objects: Any, tags: Sequence[Any] = ()) -> dict[str, Any]:
    size = {"height": SIZE[1], "width": SIZE[0]}
    return {"description": "", "tags": list(tags), "size": size, "objects": list(objects)}


def figure(kind: str, exterior: Any = (), interior: Any = (), **more: Any) -> dict[str, Any]:
    points = {"exterior": [list(point) for point in exterior], "interior": list(interior)}
    return {"classTitle": "fox", "description": "", "tags": [], "geometryType": kind, "points": points} | more


class TestSupervisely(ManifestFormatContract):
    format = SuperviselyFormat()

    def write(self, folder: Path, names: Sequence[str]) -> str:
        write(folder / "meta.json", {"classes": [], "tags": [], "projectType": "images"})
        for name in names:
            write(folder / "ds/img" / name, "pixels")
            write(folder / "ds/ann" / f"{name}.json", document())
        return str(folder)

    def row(self, uri: str, name: str) -> tuple[str, dict[str, Any]]:
        return f"{uri}/ds/ann/{name}.json", {"boxes": [], "size": SIZE, "image": f"ds/img/{name}"}

    def sample(self, folder: Path) -> Sample:
        uri = self.write(folder, ["a.jpg", "b.jpg", "c.jpg"])
        return Sample(uri, [self.row(uri, f"{name}.jpg") for name in "abc"])

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return Sample(self.write(folder, names), [])

    def damaged(self, folder: Path) -> Sample:
        uri = self.write(folder, ["a.jpg", "b.jpg", "c.jpg"])
        write(folder / "ds/ann/b.jpg.json", "{")
        write(folder / "ds/ann/c.jpg.json", document(figure("polygon", [(1, "x")])))
        told = [(f"{uri}/ds/ann/{name}.jpg.json", "bad_annotation") for name in "bc"]
        return Sample(uri, [self.row(uri, "a.jpg")], told)

    def empty(self, folder: Path) -> Sample:
        return Sample(str(folder), [])

    def test_is_recognised(self, tmp_path: Path) -> None:
        assert describe(FolderFormat(), self.sample(tmp_path)).format == "supervisely"


def boxes_of(folder: Path, *objects: Any) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    write(folder / "ds/img/a.jpg", "pixels")
    write(folder / "ds/ann/a.jpg.json", document(*objects))
    (row,) = [item for item in read_items(FolderFormat(), folder)[1] if isinstance(item, Row)]
    return row.fields, list(row.fields["boxes"])


def test_rectangles_polygons_graphs_and_what_has_no_area(tmp_path: Path) -> None:
    fields, (square, outline, graph) = boxes_of(
        tmp_path,
        figure("rectangle", [(30, 40), (5, 6)]),
        figure("polygon", [(1, 2), (9, 2), (5, 8)]),
        figure("graph") | {"nodes": {"x": {"loc": [5, 6]}, "y": {"loc": [9, 16]}}},
        figure("line", [(1, 2), (9, 2)]),
        figure("point", [(1, 2)]),
    )
    assert square["bbox"] == [5, 6, 30, 40]
    assert outline["polygons"] == [[1, 2, 9, 2, 5, 8]]
    assert (graph["bbox"], graph["keypoints"]) == ([5, 6, 9, 16], [5, 6, 2, 9, 16, 2])
    assert len(fields["notes"]) == 2
    account = account_of(SuperviselyFormat(), tmp_path)
    assert (account.found[ANNOTATIONS], account.uses(ANNOTATIONS), account.unused(ANNOTATIONS)) == (5, 3, 2)


@pytest.mark.parametrize("packed", [False, True])
def test_bitmaps_and_holes_are_masks_and_datasets_are_splits(tmp_path: Path, packed: bool) -> None:
    patch = np.zeros((11, 6), bool)
    patch[2:9, 1:5] = True
    rgba = np.zeros((11, 6, 4), np.uint8)
    rgba[patch] = 255
    data = png(Image.fromarray(rgba)) if packed else png(Image.fromarray(patch))
    bitmap = {"data": base64.b64encode(zlib.compress(data)).decode(), "origin": [40, 30]}
    hole = figure("polygon", [(10, 10), (60, 10), (60, 60), (10, 60)], [[[20, 20], [50, 20], [50, 50], [20, 50]]])
    for split in ("train", "val"):
        write(tmp_path / f"in/{split}/img/a.jpg", jpeg(painted_boxes(*SIZE, [])))
        objects = [{"classTitle": "hen", "geometryType": "bitmap", "bitmap": bitmap, "tags": []}, hole]
        write(tmp_path / f"in/{split}/ann/a.jpg.json", document(*objects, tags=[{"name": "day", "value": None}]))
    converted(tmp_path / "in", tmp_path / "out")
    assert set(conversion(tmp_path / "out")["splits"]) == {"train", "val"}
    (record,) = records(tmp_path / "out", "val")
    first, second = (pixels(mask) > 0 for mask in record["image/object/mask"])
    expected = np.zeros((120, 160), bool)
    expected[30:41, 40:46] = patch
    assert np.array_equal(first, expected)
    assert (second[15, 15], second[35, 35], second[55, 55], second[70, 70]) == (True, False, True, False)
    assert record["image/class/text"] == [b"day"]


@pytest.mark.parametrize(
    "one",
    [
        figure("rectangle", [(1, 2)]),
        figure("rectangle", [(1, 2), (3, float("inf"))]),
        figure("polygon") | {"points": None},
        figure("bitmap") | {"bitmap": {"data": "####", "origin": [1, 2]}},
        figure("bitmap") | {"bitmap": {"data": base64.b64encode(b"abc").decode(), "origin": [1, 2]}},
        figure("bitmap"),
        figure("graph"),
        "text",
    ],
)
def test_what_cannot_be_right_is_a_reject(tmp_path: Path, one: Any) -> None:
    write(tmp_path / "ds/img/a.jpg", "pixels")
    write(tmp_path / "ds/ann/a.jpg.json", document(one))
    ((code, message),) = rejects(read_items(SuperviselyFormat(), tmp_path)[1])
    assert code in ("bad_annotation", "bad_mask")
    assert "a.jpg.json" in message


def decisions_of(folder: Path) -> set[tuple[str, str]]:
    """What is decided on the way."""
    manifest, config = SuperviselyFormat(), ManifestConfig((InputSpec(str(folder)),))
    source = manifest.describe(LocalFiles(), str(folder), None, config)
    pieces = list(manifest.pieces(LocalFiles(), source))
    items = (item for piece in pieces for item in manifest.rows(LocalFiles(), piece, config))
    return {(item.what, item.value) for item in items if isinstance(item, Decision)}


def test_tags_that_are_called_like_splits_are_the_split_and_no_label(tmp_path: Path) -> None:
    tags = {"a": ["Train", "day"], "b": ["val"], "c": [], "d": ["train", "test"]}
    for name, own in tags.items():
        write(tmp_path / f"ds/img/{name}.jpg", "pixels")
        write(tmp_path / f"ds/ann/{name}.jpg.json", document(tags=[{"name": tag, "value": None} for tag in own]))
    write(tmp_path / "ds/img/e.jpg", "pixels")
    write(tmp_path / "ds/ann/e.jpg.json", document(tags=[{"name": "test", "value": "passed"}]))
    items = read_items(SuperviselyFormat(), tmp_path)[1]
    fields = {item.fields["image"][-5]: item.fields for item in items if isinstance(item, Row)}
    assert {name: (own.get("split"), own.get("label"), "boxes" in own) for name, own in fields.items()} == {
        "a": ("train", "day", False),
        "b": ("val", None, True),
        "c": (None, None, True),
        "e": (None, "test: passed", False),
    }
    assert rejects(items) == [
        ("bad_annotation", "d.jpg.json: tags[1] is 'test', and the picture has the tag 'train': it has one split")
    ]
    account = account_of(SuperviselyFormat(), tmp_path)
    assert account.used[ANNOTATIONS]["split"] == 2
    assert decisions_of(tmp_path) == {("split", "the tags of the pictures")}


def test_folders_called_like_splits_count_before_tags(tmp_path: Path) -> None:
    for split, tag in (("train", "val"), ("val", "val")):
        write(tmp_path / f"{split}/img/{split}.jpg", "pixels")
        write(tmp_path / f"{split}/ann/{split}.jpg.json", document(tags=[{"name": tag, "value": None}]))
    items = read_items(SuperviselyFormat(), tmp_path)[1]
    fields = {item.fields["split"]: item.fields for item in items if isinstance(item, Row)}
    assert fields["train"]["notes"] == [
        ("annotation_ignored", "train.jpg.json says the split 'val'; that of its folder, 'train', counts")
    ]
    assert "notes" not in fields["val"]
    assert decisions_of(tmp_path) == set()
