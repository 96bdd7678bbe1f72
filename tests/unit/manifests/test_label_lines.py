"""KITTI, DOTA and VisDrone: a text file for each image, in the folders that the data sets come in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from PIL import Image, ImageDraw

from beam_tfrecord.core.account import LABEL_FILES
from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests import detect_format, siblings
from beam_tfrecord.manifests.formats.dota import DotaFormat
from beam_tfrecord.manifests.formats.folder import FolderFormat
from beam_tfrecord.manifests.formats.kitti import KittiFormat
from beam_tfrecord.manifests.formats.visdrone import VisdroneFormat
from beam_tfrecord.manifests.label_files import LabelLinesFormat
from beam_tfrecord.manifests.picture_labels import ANNOTATIONS, ATTRIBUTES
from tests.annotation_tools import account_of, pixels, read_items, reference_mask, rejects, write, zipped
from tests.contracts import ManifestFormatContract, Sample, describe
from tests.end_to_end.datasets import by_name, conversion, converted, findings, texts
from tests.local_files import LocalFiles
from tests.samples import jpeg, painted_boxes

# The first label file of KITTI's training set, an object of its results, and a region that nobody labelled.
KITTI = "Pedestrian 0.00 0 -0.20 712.40 143.00 810.73 307.92 1.89 0.48 1.20 1.84 1.47 8.41 0.01\n"
KITTI_RESULT = "Car -1 -1 -1.57 10.5 20 30 40 -1 -1 -1 -1000 -1000 -1000 -10 0.75\n"
DONT_CARE = "DontCare -1 -1 -10 503.89 169.71 590.61 190.13 -1 -1 -1 -1000 -1000 -1000 -10\n"
DOTA = "imagesource:GoogleEarth\ngsd:0.146343590398\n20.0 10.0 30.0 20.0 20.0 30.0 10.0 20.0 small-vehicle 1\n"
VISDRONE = "684,8,273,116,0,0,0,0\n406,119,265,70,1,4,1,2\n"


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siblings, "ITEMS_PER_PIECE", 2)


class LabelLinesContract(ManifestFormatContract):
    """Images and label files side by side."""

    format: LabelLinesFormat
    line: str
    box: ClassVar[dict[str, Any]]
    damaged_line: str

    def write(self, folder: Path, names: Sequence[str]) -> str:
        for name in names:
            write(folder / name, "pixels")
            write(folder / f"{name.rpartition('.')[0]}.txt", self.line)
        return str(folder)

    def row(self, uri: str, name: str) -> tuple[str, dict[str, Any]]:
        box = {**self.box, "origin": f"{name}.txt:1"}
        return f"{uri}/{name}.txt", {"boxes": [box], "image": f"{name}.jpg"}

    def sample(self, folder: Path) -> Sample:
        uri = self.write(folder, ["a.jpg", "b.jpg", "c.jpg"])
        write(folder / ".DS_Store", "junk")
        write(folder / "readme.txt", "Thanks to all\n")
        return Sample(uri, [self.row(uri, name) for name in "abc"], ignored=1)

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return Sample(self.write(folder, names), [])

    def damaged(self, folder: Path) -> Sample:
        uri = self.write(folder, ["a.jpg", "b.jpg", "c.jpg", "d.jpg"])
        write(folder / "b.txt", self.line + self.damaged_line)
        write(folder / "d.txt", "<<<<<<< HEAD\n")
        codes = [(f"{uri}/{name}.txt", "bad_annotation") for name in "bd"]
        return Sample(uri, [self.row(uri, name) for name in "ac"], codes)

    def empty(self, folder: Path) -> Sample:
        return Sample(str(folder), [])

    def test_is_recognised(self, tmp_path: Path) -> None:
        """By the files in the folder, and by one file alone."""
        sample = self.sample(tmp_path)
        assert describe(FolderFormat(), sample).format == self.format.name
        assert detect_format(LocalFiles(), f"{sample.uri}/a.txt") == self.format.name

    def test_files_in_folders_called_images_and_labels_are_not_taken_for_yolo(self, tmp_path: Path) -> None:
        write(tmp_path / "images/a.jpg", "pixels")
        write(tmp_path / "labels/a.txt", self.line)
        assert detect_format(LocalFiles(), str(tmp_path)) == "folder"
        source, items = read_items(FolderFormat(), tmp_path)
        assert source.format == self.format.name
        assert [item.fields["image"] for item in items if isinstance(item, Row)] == ["images/a.jpg"]

    def test_an_empty_file_says_that_there_are_no_objects(self, tmp_path: Path) -> None:
        self.write(tmp_path, ["a.jpg", "b.jpg"])
        write(tmp_path / "b.txt", "")
        _, items = read_items(FolderFormat(), tmp_path)
        assert [len(item.fields["boxes"]) for item in items if isinstance(item, Row)] == [1, 0]

    def test_a_file_of_another_kind_is_told(self, tmp_path: Path) -> None:
        uri = self.sample(tmp_path).uri
        assert account_of(FolderFormat(), uri).uses(LABEL_FILES) == 3

    def test_a_text_that_is_cut_anywhere_is_never_a_traceback(self, tmp_path: Path) -> None:
        write(tmp_path / "a.jpg", "pixels")
        for length in range(len(self.line)):
            for tail in ("", "\x00", "é"):
                write(tmp_path / "a.txt", self.line[:length] + tail)
                try:
                    read_items(self.format, tmp_path)
                except ManifestError:
                    continue


class TestKitti(LabelLinesContract):
    format = KittiFormat()
    line = KITTI
    box: ClassVar[dict[str, Any]] = {
        "class": "Pedestrian",
        "bbox": [712.4, 143, 810.73, 307.92],
        "truncated": 0,
        "occluded": 0,
    }
    damaged_line = KITTI.replace("143.00", "1e999")


class TestDota(LabelLinesContract):
    format = DotaFormat()
    line = DOTA
    box: ClassVar[dict[str, Any]] = {
        "class": "small-vehicle",
        "polygons": [[20, 10, 30, 20, 20, 30, 10, 20]],
        "difficult": 1,
    }
    damaged_line = "1 2 3 4 5 6 7 plane 0\n"

    def row(self, uri: str, name: str) -> tuple[str, dict[str, Any]]:
        box = {**self.box, "origin": f"{name}.txt:3"}
        return f"{uri}/{name}.txt", {"boxes": [box], "image": f"{name}.jpg"}


class TestVisdrone(LabelLinesContract):
    format = VisdroneFormat()
    line = VISDRONE.splitlines()[1] + "\n"
    box: ClassVar[dict[str, Any]] = {"class": "car", "bbox_xywh": [406, 119, 265, 70], "truncated": 1, "occluded": 1}
    damaged_line = "1,2,3\n"


def boxes_of(folder: Path, text: str) -> list[dict[str, Any]]:
    write(folder / "a.jpg", "pixels")
    write(folder / "a.txt", text)
    (row,) = [item for item in read_items(FolderFormat(), folder)[1] if isinstance(item, Row)]
    return list(row.fields["boxes"])


@pytest.mark.parametrize(("given", "stored"), [("0", 0), ("1", 1), ("2", 1), ("3", -1), ("-1", -1)])
def test_occlusion_of_kitti_is_yes_no_or_unknown(tmp_path: Path, given: str, stored: int) -> None:
    (box,) = boxes_of(tmp_path, KITTI.replace(" 0 -0.20", f" {given} -0.20"))
    assert box["occluded"] == stored


@pytest.mark.parametrize(("given", "stored"), [("0.00", 0), ("0.15", 1), ("1", 1), ("-1", -1)])
def test_truncation_of_kitti_is_yes_no_or_unknown(tmp_path: Path, given: str, stored: int) -> None:
    (box,) = boxes_of(tmp_path, KITTI.replace("0.00", given, 1))
    assert box["truncated"] == stored


def test_the_score_of_a_result_of_kitti_is_its_confidence(tmp_path: Path) -> None:
    (box,) = boxes_of(tmp_path, KITTI_RESULT)
    assert box["confidence"] == 0.75


def test_a_score_that_is_no_share_is_told_and_not_stored(tmp_path: Path) -> None:
    (box,) = boxes_of(tmp_path, KITTI_RESULT.replace("0.75", "11.5"))
    assert "confidence" not in box
    assert "score: no feature of records" in account_of(FolderFormat(), tmp_path).named[ATTRIBUTES]


def test_regions_that_nobody_labelled_are_told(tmp_path: Path) -> None:
    write(tmp_path / "a.jpg", "pixels")
    write(tmp_path / "a.txt", KITTI + DONT_CARE)
    _, items = read_items(FolderFormat(), tmp_path)
    (row,) = items
    assert len(row.fields["boxes"]) == 1
    ((code, message),) = row.fields["notes"]
    assert code == "annotation_ignored"
    assert message.startswith("a.txt:2: DontCare")


def test_an_occlusion_that_kitti_does_not_know_is_a_reject(tmp_path: Path) -> None:
    write(tmp_path / "a.jpg", "pixels")
    write(tmp_path / "a.txt", KITTI.replace(" 0 -0.20", " 7 -0.20"))
    ((code, message),) = rejects(read_items(FolderFormat(), tmp_path)[1])
    assert code == "bad_annotation"
    assert message.startswith("a.txt:1 has occluded 7")


def test_dota_without_head_and_flag_is_read(tmp_path: Path) -> None:
    (box,) = boxes_of(tmp_path, "1 2 3 2 3 4 1 4 plane\n")
    assert box == {"class": "plane", "polygons": [[1, 2, 3, 2, 3, 4, 1, 4]], "origin": "a.txt:1"}


def test_what_does_not_count_in_visdrone_is_told(tmp_path: Path) -> None:
    write(tmp_path / "a.jpg", "pixels")
    write(tmp_path / "a.txt", VISDRONE + "1,2,3,4,0,11,0,0,\n")
    account = account_of(FolderFormat(), tmp_path)
    assert account.found[ANNOTATIONS] == 3
    assert {what: reason.count for what, reason in account.named[ANNOTATIONS].items()} == {
        "ignored regions": 1,
        "others": 1,
    }


# ---------------------------------------------------------------------------------------------------------------------
# Whole conversions, of the folders that the data sets come in


def test_kitti_as_it_is_downloaded(tmp_path: Path) -> None:
    box = (40, 20, 90, 70)
    for number in range(3):
        write(tmp_path / f"kitti/training/image_2/{number:06}.png", jpeg(painted_boxes(120, 90, [box])))
        write(tmp_path / f"kitti/training/calib/{number:06}.txt", "P0: 7.2e+02 0 6.1e+02 0\n")
        text = f"Car 0.00 0 1.85 {box[0]}.00 {box[1]}.00 {box[2]}.00 {box[3]}.00 1.7 1.9 4.4 -16.5 2.4 58.5 1.57\n"
        write(tmp_path / f"kitti/training/label_2/{number:06}.txt", text)
    summary = converted(tmp_path / "kitti", tmp_path / "out")
    assert (summary.written, sum(summary.rejected.values())) == (3, 0)
    record = by_name(tmp_path / "out")["training/image_2/000000.png"]
    assert texts(record, "image/object/class/text") == ["Car"]
    assert np.allclose(record["image/object/bbox/xmin"], [40 / 120])
    assert np.allclose(record["image/object/bbox/ymax"], [70 / 90])
    assert conversion(tmp_path / "out")["inputs"][0]["decisions"][0]["value"] == "kitti"


def rotated() -> tuple[bytes, list[int]]:
    corners = [60, 10, 100, 50, 60, 90, 20, 50]
    picture = Image.new("RGB", (160, 120), "white")
    ImageDraw.Draw(picture).polygon(corners, fill="red")
    return jpeg(picture, quality=100), corners


def test_dota_in_folders_of_splits_and_in_a_zip(tmp_path: Path) -> None:
    data, corners = rotated()
    for split in ("train", "val"):
        write(tmp_path / f"dota/{split}/images/P0001.png", data)
        text = "imagesource:GoogleEarth\ngsd:null\n" + " ".join(f"{n}.0" for n in corners) + " ship 0\n"
        write(tmp_path / f"dota/{split}/labelTxt/P0001.txt", text)
    for place in (tmp_path / "dota", zipped(tmp_path / "dota")):
        output = tmp_path / f"out of {place.name}"
        summary = converted(place, output)
        assert summary.splits == {"train": 1, "val": 1}
        for record in by_name(output).values():
            assert texts(record, "image/object/class/text") == ["ship"]
            sides = [record[f"image/object/bbox/{side}"][0] for side in ("xmin", "ymin", "xmax", "ymax")]
            assert np.allclose(sides, [20 / 160, 10 / 120, 100 / 160, 90 / 120])
            mask = pixels(record["image/object/mask"][0])
            assert np.array_equal(mask, reference_mask([corners], 120, 160))


def test_visdrone_as_it_is_downloaded(tmp_path: Path) -> None:
    top = tmp_path / "VisDrone2019-DET-train"
    for number in range(2):
        picture = painted_boxes(120, 90, [(10, 20, 40, 60), (90, 80, 95 + number, 85)])
        write(top / f"images/{number:07}_d_1.jpg", jpeg(picture))
        write(top / f"annotations/{number:07}_d_1.txt", "10,20,30,40,1,1,0,1\n50,50,9,9,0,0,0,0\n")
    summary = converted(top, tmp_path / "out", insight="off")
    assert summary.written == 2
    for record in by_name(tmp_path / "out").values():
        assert texts(record, "image/object/class/text") == ["pedestrian"]
        assert np.allclose(record["image/object/bbox/xmax"], [40 / 120])
    assert {finding["code"] for finding in findings(tmp_path / "out", "warnings")} == {"annotation_ignored"}


@pytest.mark.parametrize("path", [".", "./", "../obb", "../obb/.", ".//"])
def test_yolo_obb_keeps_the_four_corners(tmp_path: Path, path: str) -> None:
    data, corners = rotated()
    write(tmp_path / "obb/data.yaml", f"path: {path}\ntrain: images/train\nval: images/val\nnames:\n  0: ship\n")
    fractions = " ".join(str(number / (160, 120)[place % 2]) for place, number in enumerate(corners))
    for split in ("train", "val"):
        write(tmp_path / f"obb/images/{split}/a.jpg", data)
        write(tmp_path / f"obb/labels/{split}/a.txt", f"0 {fractions}\n")
    summary = converted(tmp_path / "obb", tmp_path / "out")
    assert summary.splits == {"train": 1, "val": 1}
    for record in by_name(tmp_path / "out").values():
        mask = pixels(record["image/object/mask"][0])
        assert np.array_equal(mask, reference_mask([corners], 120, 160))
        sides = [record[f"image/object/bbox/{side}"][0] for side in ("xmin", "ymin", "xmax", "ymax")]
        assert np.allclose(sides, [20 / 160, 10 / 120, 100 / 160, 90 / 120])


def test_dota_beside_a_yaml_is_read_where_there_are_no_labels_of_yolo(tmp_path: Path) -> None:
    """As Roboflow exports turned boxes: ``train/images``, ``train/labelTxt`` and a data.yaml."""
    write(tmp_path / "data.yaml", "train: train/images\nnc: 1\nnames: [small-vehicle]\n")
    write(tmp_path / "train/images/a.jpg", "pixels")
    write(tmp_path / "train/labelTxt/a.txt", DOTA)
    assert detect_format(LocalFiles(), str(tmp_path)) == "folder"
    source, items = read_items(FolderFormat(), tmp_path)
    assert source.format == "dota"
    (row,) = [item for item in items if isinstance(item, Row)]
    assert (row.fields["image"], row.fields["split"]) == ("train/images/a.jpg", "train")
    assert row.fields["boxes"][0]["polygons"] == [[20, 10, 30, 20, 20, 30, 10, 20]]
    write(tmp_path / "train/labels/a.txt", "0 0.5 0.5 0.1 0.1\n")
    assert detect_format(LocalFiles(), str(tmp_path)) == "yolo"
