"""BDD100K, Cityscapes and ADE20K, as they are published."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from beam_tfrecord.core.elements import Row
from beam_tfrecord.manifests import detect_format, siblings
from beam_tfrecord.manifests.formats.ade20k import Ade20kFormat
from beam_tfrecord.manifests.formats.bdd100k import BddFilesFormat, BddFormat
from beam_tfrecord.manifests.formats.cityscapes import CityscapesFormat
from beam_tfrecord.manifests.formats.folder import FolderFormat
from beam_tfrecord.manifests.label_files import LabelFileFormat
from beam_tfrecord.manifests.picture_labels import ANNOTATIONS, ATTRIBUTES
from tests.annotation_tools import account_of, pixels, read_items, rejects, write
from tests.contracts import ManifestFormatContract, Sample, describe
from tests.end_to_end.datasets import conversion, converted, records, texts
from tests.local_files import LocalFiles
from tests.samples import jpeg, painted_boxes, png


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siblings, "ITEMS_PER_PIECE", 2)


# ---------------------------------------------------------------------------------------------------------------------
# BDD100K; the first label is that of the documentation

CAR: dict[str, Any] = {
    "id": "0",
    "attributes": {"occluded": True, "truncated": False, "trafficLightColor": "none"},
    "category": "car",
    "box2d": {"x1": 20, "y1": 10, "x2": 50.5, "y2": 30},
}
LANE: dict[str, Any] = {
    "category": "lane",
    "attributes": {"laneDirection": "parallel"},
    "poly2d": [{"vertices": [[1, 2], [30, 40]], "types": "LL", "closed": False}],
}
AREA: dict[str, Any] = {
    "category": "drivable area",
    "attributes": {"areaType": "direct"},
    "poly2d": [{"vertices": [[0, 0], [0, 40], [60, 40], [60, 0]], "types": "LCCC", "closed": True}],
}
DAY = {"weather": "clear", "scene": "city street", "timeofday": "daytime"}


def frame(name: str, *labels: Any) -> dict[str, Any]:
    return {"name": name, "attributes": DAY, "timestamp": 10000, "labels": list(labels)}


def bdd(folder: Path, *frames: Any) -> str:
    return str(write(folder / "det_train.json", json.dumps(frames)))


class TestBdd(ManifestFormatContract):
    format = BddFormat()

    def sample(self, folder: Path) -> Sample:
        uri = bdd(folder, frame("a.jpg", CAR), frame("b.jpg"))
        box = {"class": "car", "bbox": [20, 10, 50.5, 30], "occluded": True, "truncated": False}
        boxes = [{**box, "origin": "[0].labels[0]"}]
        return Sample(
            uri, [(f"{uri}:[0]", {"boxes": boxes, "image": "a.jpg"}), (f"{uri}:[1]", {"boxes": [], "image": "b.jpg"})]
        )

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return Sample(bdd(folder, *(frame(name, CAR) for name in names)), [])

    def damaged(self, folder: Path) -> Sample:
        bad = [{"category": "car", "poly2d": 3}, "text", {"category": "car", "box2d": [1, 2, 3, 4]}]
        uri = bdd(folder, frame("a.jpg"), *(frame("b.jpg", one) for one in bad), frame(""), [])
        codes = ("bad_annotation", "bad_row", "bad_annotation", "bad_row", "bad_row")
        told = [(f"{uri}:[{place}]", code) for place, code in enumerate(codes, start=1)]
        return Sample(uri, [(f"{uri}:[0]", {"boxes": [], "image": "a.jpg"})], told)

    def empty(self, folder: Path) -> Sample:
        return Sample(bdd(folder), [])


def test_curves_of_bdd_pass_where_bezier_says(tmp_path: Path) -> None:
    (row,) = [item for item in read_items(BddFormat(), bdd(tmp_path, frame("a.jpg", AREA)))[1] if isinstance(item, Row)]
    ((outline,),) = [box["polygons"] for box in row.fields["boxes"]]
    points = list(zip(outline[0::2], outline[1::2], strict=True))
    assert (points[0], points[-1]) == ((0, 0), (60, 0))
    # At the middle of the curve: (start + 3 first + 3 second + end) / 8.
    assert ((0 + 0 + 180 + 60) / 8, (0 + 120 + 120 + 0) / 8) in points
    assert len(points) == 17


@pytest.mark.parametrize("types", ["LCC", "LCCCL", "CCCL", "LXXX"])
def test_curves_that_are_not_whole_are_rejects(tmp_path: Path, types: str) -> None:
    part = {"vertices": [[0, 0], [0, 40], [60, 40], [60, 0]], "types": types, "closed": True}
    uri = bdd(tmp_path, frame("a.jpg", {**AREA, "poly2d": [part]}))
    if types == "LXXX":  # a letter that is not known is a corner: nothing is lost
        assert not rejects(read_items(BddFormat(), uri)[1])
    else:
        assert [code for code, _ in rejects(read_items(BddFormat(), uri)[1])] == ["bad_annotation"]


def test_lanes_and_attributes_of_bdd_are_told(tmp_path: Path) -> None:
    uri = bdd(tmp_path, frame("a.jpg", CAR, LANE))
    account = account_of(BddFormat(), uri)
    assert (account.found[ANNOTATIONS], account.uses(ANNOTATIONS), account.unused(ANNOTATIONS)) == (2, 1, 1)
    assert (account.uses(ATTRIBUTES), account.unused(ATTRIBUTES)) == (2, 5)
    (row,) = read_items(BddFormat(), uri)[1]
    assert "closed outline" in row.fields["notes"][0][1]


def test_an_attribute_of_frames_may_be_the_label(tmp_path: Path) -> None:
    uri = bdd(tmp_path, frame("a.jpg", CAR), {"name": "b.jpg", "labels": []})
    _, items = read_items(BddFormat(), uri, label_column="weather")
    assert items[0].fields["label"] == "clear"
    assert [code for code, _ in rejects(items)] == ["missing_label"]


def test_bdd_as_it_is_downloaded(tmp_path: Path) -> None:
    for split, left in (("train", 20), ("val", 25)):
        write(tmp_path / f"bdd/images/100k/{split}/{split}_1.jpg", jpeg(painted_boxes(80, 60, [(left, 10, 50, 30)])))
        label = {**CAR, "box2d": {"x1": left, "y1": 10, "x2": 50, "y2": 30}}
        write(tmp_path / f"bdd/labels/det_20/det_{split}.json", json.dumps([frame(f"{split}_1.jpg", label)]))
    summary = converted(tmp_path / "bdd", tmp_path / "out")
    assert summary.splits == {"train": 1, "val": 1}
    for split, left in (("train", 20), ("val", 25)):
        (record,) = records(tmp_path / "out", split)
        assert texts(record, "image/object/class/text") == ["car"]
        sides = [record[f"image/object/bbox/{side}"][0] for side in ("xmin", "ymin", "xmax", "ymax")]
        assert np.allclose(sides, [left / 80, 10 / 60, 50 / 80, 0.5])


def test_a_document_in_the_folder_of_labels_finds_its_images(tmp_path: Path) -> None:
    write(tmp_path / "bdd/images/100k/train/a.jpg", jpeg(painted_boxes(80, 60, [])))
    uri = bdd(tmp_path / "bdd/labels/det_20", frame("a.jpg", CAR))
    source, items = read_items(BddFormat(), uri)
    assert f"{source.base}/{items[0].fields['image']}" == str(tmp_path / "bdd/images/100k/train/a.jpg")


def test_scalabel_has_its_frames_in_an_object(tmp_path: Path) -> None:
    uri = write(tmp_path / "a.json", {"frames": [{**frame("7.jpg", CAR), "videoName": "v"}], "config": {}})
    write(tmp_path / "v/7.jpg", "pixels")
    write(tmp_path / "w/7.jpg", "pixels")
    assert detect_format(LocalFiles(), str(uri)) == "bdd100k"
    (row,) = read_items(BddFormat(), uri)[1]
    assert (row.fields["image"], len(row.fields["boxes"])) == ("v/7.jpg", 1)


# ---------------------------------------------------------------------------------------------------------------------
# A file for each picture


class LabelFileContract(ManifestFormatContract):
    """Images and label files in the folders of a data set."""

    format: LabelFileFormat
    images: str
    labels: str

    def document(self, name: str, *objects: Any) -> Any:
        raise NotImplementedError

    def row(self, uri: str, name: str) -> tuple[str, dict[str, Any]]:
        raise NotImplementedError

    def write(self, folder: Path, names: Sequence[str]) -> str:
        for name in names:
            stem = name.rpartition(".")[0]
            write(folder / self.images.format(stem), "pixels")
            write(folder / self.labels.format(stem), self.document(name))
        return str(folder)

    def sample(self, folder: Path) -> Sample:
        uri = self.write(folder, ["a.jpg", "b.jpg", "c.jpg"])
        write(folder / ".DS_Store", "junk")
        return Sample(uri, [self.row(uri, stem) for stem in "abc"], ignored=1)

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return Sample(self.write(folder, names), [])

    def damaged(self, folder: Path) -> Sample:
        uri = self.write(folder, ["a.jpg", "b.jpg", "c.jpg"])
        write(folder / self.labels.format("b"), json.dumps(self.document("b.jpg"))[:-2])
        return Sample(
            uri, [self.row(uri, stem) for stem in "ac"], [(f"{uri}/{self.labels.format('b')}", "bad_annotation")]
        )

    def empty(self, folder: Path) -> Sample:
        return Sample(str(folder), [])

    def test_is_recognised(self, tmp_path: Path) -> None:
        """By the files in the folder, and by one file alone."""
        sample = self.sample(tmp_path)
        assert describe(FolderFormat(), sample).format == self.format.name
        assert detect_format(LocalFiles(), f"{sample.uri}/{self.labels.format('a')}") == self.format.name


class TestBddFiles(LabelFileContract):
    format = BddFilesFormat()
    images = "{}.jpg"
    labels = "{}.json"

    def document(self, name: str, *objects: Any) -> Any:
        frames = [{"timestamp": 10000, "objects": list(objects) or [CAR]}]
        return {"name": name.rpartition(".")[0], "frames": frames, "attributes": DAY}

    def row(self, uri: str, name: str) -> tuple[str, dict[str, Any]]:
        box = {"class": "car", "bbox": [20, 10, 50.5, 30], "occluded": True, "truncated": False}
        return f"{uri}/{name}.json", {
            "boxes": [{**box, "origin": f"{name}.json:frames[0].objects[0]"}],
            "image": f"{name}.jpg",
        }

    def test_areas_of_the_first_release_are_outlines_and_lanes_are_lines(self, tmp_path: Path) -> None:
        area = {"category": "area/drivable", "poly2d": [[0, 0, "L"], [9, 0, "L"], [9, 9, "L"]]}
        lane = {"category": "lane/road curb", "poly2d": [[0, 0, "L"], [9, 9, "C"]]}
        write(tmp_path / "a.jpg", "pixels")
        write(tmp_path / "a.json", self.document("a.jpg", area, lane))
        (row,) = read_items(FolderFormat(), tmp_path)[1]
        assert [box["polygons"] for box in row.fields["boxes"]] == [[[0, 0, 9, 0, 9, 9]]]
        assert len(row.fields["notes"]) == 1


class TestCityscapes(LabelFileContract):
    format = CityscapesFormat()
    images = "leftImg8bit/train/aachen/{}_leftImg8bit.png"
    labels = "gtFine/train/aachen/{}_gtFine_polygons.json"

    def document(self, name: str, *objects: Any) -> Any:
        one = {"label": "car", "polygon": [[20, 10], [50, 10], [50, 30]]}
        return {"imgHeight": 60, "imgWidth": 80, "objects": list(objects) or [one]}

    def row(self, uri: str, name: str) -> tuple[str, dict[str, Any]]:
        box = {
            "class": "car",
            "polygons": [[20, 10, 50, 10, 50, 30]],
            "origin": f"{name}_gtFine_polygons.json:objects[0]",
        }
        fields = {"boxes": [box], "size": (80, 60), "split": "train", "image": self.images.format(name)}
        return f"{uri}/{self.labels.format(name)}", fields

    def test_names_are_literal(self, tmp_path: Path) -> None:
        names = ["with space.jpg", "50%.jpg", "n#1.jpg", "übung.jpg"]
        _, items = read_items(self.format, self.odd_names(tmp_path, names).uri)
        assert sorted(item.fields["image"] for item in items) == sorted(self.images.format(n[:-4]) for n in names)

    def test_groups_are_crowds_and_deleted_objects_are_told(self, tmp_path: Path) -> None:
        self.write(tmp_path, ["a.jpg"])
        square = [[0, 0], [9, 0], [9, 9]]
        objects = [
            {"label": "cargroup", "polygon": square},
            {"label": "person", "polygon": square, "deleted": 1},
            {"label": "road", "polygon": square, "deleted": 0},
        ]
        write(tmp_path / self.labels.format("a"), self.document("a.jpg", *objects))
        (row,) = read_items(self.format, tmp_path)[1]
        assert [(box["class"], box.get("is_crowd")) for box in row.fields["boxes"]] == [("car", 1), ("road", None)]
        assert "deleted" in row.fields["notes"][0][1]

    @pytest.mark.parametrize("polygon", [None, [], [[1, 2]], [[1, 2], [3, 4]], [[1, 2], [3], [5, 6]], "x"])
    def test_polygons_that_cannot_be_right_are_rejects(self, tmp_path: Path, polygon: Any) -> None:
        self.write(tmp_path, ["a.jpg"])
        write(tmp_path / self.labels.format("a"), self.document("a.jpg", {"label": "car", "polygon": polygon}))
        assert [code for code, _ in rejects(read_items(self.format, tmp_path)[1])] == ["bad_annotation"]


def test_cityscapes_as_it_is_downloaded(tmp_path: Path) -> None:
    """Polygons are painted, and masks of numbers lie beside them, as the scripts of the data set make them."""
    for split, city, left in (("train", "aachen", 20), ("val", "bonn", 30)):
        stem = f"{city}_000000_000019"
        corners = [(left, 10), (70, 10), (70, 50), (left, 50)]
        ids = Image.new("L", (80, 60), 7)
        ImageDraw.Draw(ids).polygon(corners, fill=26)
        picture = painted_boxes(80, 60, [(left, 10, 70, 50)])
        write(tmp_path / f"city/leftImg8bit/{split}/{city}/{stem}_leftImg8bit.png", png(picture))
        ground = tmp_path / f"city/gtFine/{split}/{city}"
        for kind, image in (("labelIds", ids), ("instanceIds", ids), ("color", picture)):
            write(ground / f"{stem}_gtFine_{kind}.png", png(image))
        objects = [
            {"label": "road", "polygon": [[0, 0], [79, 0], [79, 59], [0, 59]]},
            {"label": "car", "polygon": [list(corner) for corner in corners]},
        ]
        write(ground / f"{stem}_gtFine_polygons.json", {"imgHeight": 60, "imgWidth": 80, "objects": objects})
    summary = converted(tmp_path / "city", tmp_path / "out")
    assert summary.splits == {"train": 1, "val": 1}
    for split, left in (("train", 20), ("val", 30)):
        (record,) = records(tmp_path / "out", split)
        assert texts(record, "image/object/class/text") == ["road", "car"]
        assert np.allclose(record["image/object/bbox/xmin"], [0, left / 80])
        semantic = pixels(record["image/segmentation/class/encoded"][0])
        assert (semantic[0, 0], semantic[30, 50]) == (7, 26)
        mask = pixels(record["image/object/mask"][1]) > 0
        assert mask[12:48, left + 2 : 68].all()
        assert not mask[:9].any()
    assert conversion(tmp_path / "out")["inputs"][0]["format"] == "cityscapes"


class TestAde20k(LabelFileContract):
    format = Ade20kFormat()
    images = "training/urban/street/{}.jpg"
    labels = "training/urban/street/{}.json"

    def object(self, **more: Any) -> dict[str, Any]:
        return {
            "id": 2,
            "name": "car, auto",
            "name_ndx": 401,
            "hypernym": ["car, auto"],
            "raw_name": "car",
            "attributes": [],
            "occluded": "yes",
            "crop": "0",
            "parts": {"hasparts": [], "ispartof": [], "part_level": 0},
            "polygon": {"x": [20, 50, 50], "y": [10, 10, 30]},
            **more,
        }

    def document(self, name: str, *objects: Any) -> Any:
        return {
            "annotation": {
                "filename": name,
                "folder": "ADE20K_2021_17_01/images/ADE/training/urban/street",
                "imsize": [60, 80, 3],
                "scene": ["outdoor", "urban", "street"],
                "object": list(objects) or [self.object()],
            }
        }

    def row(self, uri: str, name: str) -> tuple[str, dict[str, Any]]:
        box = {
            "class": "car, auto",
            "polygons": [[20, 10, 50, 10, 50, 30]],
            "occluded": 1,
            "origin": f"{name}.json:annotation.object[0]",
        }
        fields = {"boxes": [box], "size": (80, 60), "split": "training", "image": self.images.format(name)}
        return f"{uri}/{self.labels.format(name)}", fields

    def test_parts_are_counted_with_what_they_are_of(self, tmp_path: Path) -> None:
        self.write(tmp_path, ["a.jpg"])
        part = {"hasparts": [], "ispartof": 2, "part_level": 1}
        wheel = self.object(id=32, name="wheel", parts=part, occluded=[])
        write(tmp_path / self.labels.format("a"), self.document("a.jpg", self.object(occluded=[]), wheel))
        (row,) = read_items(self.format, tmp_path)[1]
        assert [(box["class"], box["parts"], box.get("occluded")) for box in row.fields["boxes"]] == [
            ("car, auto", 1, None)
        ]

    def test_a_single_object_may_stand_without_a_list(self, tmp_path: Path) -> None:
        self.write(tmp_path, ["a.jpg"])
        document = self.document("a.jpg")
        document["annotation"]["object"] = document["annotation"]["object"][0]
        write(tmp_path / self.labels.format("a"), document)
        (row,) = read_items(self.format, tmp_path)[1]
        assert len(row.fields["boxes"]) == 1

    @pytest.mark.parametrize("polygon", [None, {"x": [1, 2, 3], "y": [1, 2]}, {"x": [1], "y": [2]}, {"x": 3, "y": 4}])
    def test_polygons_that_cannot_be_right_are_rejects(self, tmp_path: Path, polygon: Any) -> None:
        self.write(tmp_path, ["a.jpg"])
        write(tmp_path / self.labels.format("a"), self.document("a.jpg", self.object(polygon=polygon)))
        assert [code for code, _ in rejects(read_items(self.format, tmp_path)[1])] == ["bad_annotation"]


def test_ade20k_as_it_is_downloaded(tmp_path: Path) -> None:
    """With the coloured pictures and the folder of instances that lie beside each picture."""
    sample = TestAde20k()
    for split, scene in (("training", "urban/street"), ("validation", "home/kitchen")):
        place = tmp_path / f"ADE/{split}/{scene}"
        stem = f"ADE_{split[:5]}_00016900"
        picture = painted_boxes(80, 60, [(20, 10, 50, 30)])
        write(place / f"{stem}.jpg", jpeg(picture))
        for name in (f"{stem}_seg.png", f"{stem}_parts_1.png", f"{stem}/instance_000_{stem}.png"):
            write(place / name, png(picture))
        write(place / f"{stem}.json", sample.document(f"{stem}.jpg"))
    summary = converted(tmp_path / "ADE", tmp_path / "out")
    assert sum(summary.splits.values()) == 2
    assert conversion(tmp_path / "out")["inputs"][0]["format"] == "ade20k"
    for record in records(tmp_path / "out"):
        assert texts(record, "image/object/class/text") == ["car, auto"]
        assert np.allclose(record["image/object/bbox/xmax"], [50 / 80])


def test_scene_parsing_of_ade20k_is_a_folder_with_masks(tmp_path: Path) -> None:
    for split in ("training", "validation"):
        write(tmp_path / f"in/images/{split}/ADE_{split}_1.jpg", jpeg(painted_boxes(80, 60, [])))
        mask = Image.new("L", (80, 60), 5 if split == "training" else 9)
        write(tmp_path / f"in/annotations/{split}/ADE_{split}_1.png", png(mask))
    write(tmp_path / "in/objectInfo150.txt", "Idx\tRatio\tTrain\tVal\tStuff\tName\n1\t0.1\t1\t1\t1\twall\n")
    write(tmp_path / "in/sceneCategories.txt", "ADE_training_1 street\nADE_validation_1 kitchen\n")
    summary = converted(tmp_path / "in", tmp_path / "out")
    assert summary.splits == {"training": 1, "validation": 1}
    for split, value in (("training", 5), ("validation", 9)):
        (record,) = records(tmp_path / "out", split)
        assert pixels(record["image/segmentation/class/encoded"][0]).max() == value
