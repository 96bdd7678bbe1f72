"""Annotations and projects of the VGG Image Annotator, as VIA 2.0.12 saves them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import AmbiguousManifestError, ConfigError, ManifestError
from beam_tfrecord.manifests import detect_format
from beam_tfrecord.manifests.formats.folder import FolderFormat
from beam_tfrecord.manifests.formats.via import ViaFormat
from beam_tfrecord.manifests.picture_labels import ANNOTATIONS, ATTRIBUTES
from tests.annotation_tools import account_of, pixels, read_items, rejects, write
from tests.contracts import ManifestFormatContract, Sample
from tests.end_to_end.datasets import by_name, converted, records
from tests.local_files import LocalFiles
from tests.samples import jpeg, painted_boxes

SIZE = (160, 120)


def region(shape: Mapping[str, Any], **attributes: Any) -> dict[str, Any]:
    return {"shape_attributes": dict(shape), "region_attributes": attributes}


def rect(x: float, y: float, width: float, height: float) -> dict[str, Any]:
    return {"name": "rect", "x": x, "y": y, "width": width, "height": height}


def picture(name: str, *regions: Any) -> dict[str, Any]:
    return {"filename": name, "size": 1234, "regions": list(regions), "file_attributes": {}}


def document(*pictures: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{one['filename']}1234": one for one in pictures}


class TestVia(ManifestFormatContract):
    format = ViaFormat()

    def write(self, folder: Path, names: Sequence[str]) -> str:
        for name in names:
            write(folder / name, "pixels")
        return str(write(folder / "via.json", document(*map(picture, names))))

    def row(self, uri: str, name: str) -> tuple[str, dict[str, Any]]:
        return f"{uri}:'{name}1234'", {"boxes": [], "image": name}

    def sample(self, folder: Path) -> Sample:
        uri = self.write(folder, ["a.jpg", "b.jpg"])
        return Sample(uri, [self.row(uri, "a.jpg"), self.row(uri, "b.jpg")])

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return Sample(self.write(folder, names), [])

    def damaged(self, folder: Path) -> Sample:
        self.write(folder, ["a.jpg", "b.jpg", "c.jpg"])
        bad = [picture("b.jpg", region({"name": "rect", "x": 1})), picture("c.jpg") | {"regions": "none"}, picture("")]
        uri = str(write(folder / "via.json", document(picture("a.jpg"), *bad)))
        codes = {"b.jpg": "bad_box", "c.jpg": "bad_annotation", "": "bad_row"}
        return Sample(uri, [self.row(uri, "a.jpg")], [(f"{uri}:'{name}1234'", code) for name, code in codes.items()])

    def empty(self, folder: Path) -> Sample:
        return Sample(str(write(folder / "via.json", {"_via_settings": {}, "_via_img_metadata": {}})), [])


SHAPES = [
    region(rect(10, 20, 30, 40), kind="fox", name="a"),
    region({"name": "polygon", "all_points_x": [1, 9, 5], "all_points_y": [2, 2, 8]}, kind="hen", name=""),
    region({"name": "circle", "cx": 80, "cy": 60, "r": 20}, kind="sun"),
    region({"name": "ellipse", "cx": 80, "cy": 60, "rx": 40, "ry": 10, "theta": np.pi / 2}, kind="sun"),
    region({"name": "point", "cx": 8, "cy": 6}, kind="dot"),
    region({"name": "polyline", "all_points_x": [1, 9], "all_points_y": [2, 2]}, kind="way"),
]


@pytest.mark.parametrize("form", ["annotations", "project", "by number"])
def test_shapes_are_boxes_and_outlines(tmp_path: Path, form: str) -> None:
    write(tmp_path / "in/a.jpg", jpeg(painted_boxes(*SIZE, [(10, 20, 40, 60)])))
    one = picture("a.jpg", *SHAPES)
    if form == "by number":  # VIA 1
        one["regions"] = {str(number): shape for number, shape in enumerate(SHAPES)}
    told: dict[str, Any] = document(one)
    if form == "project":
        told = {"_via_settings": {"ui": {}, "core": {}, "project": {"name": "x"}}, "_via_img_metadata": told}
        told |= {"_via_attributes": {"region": {"kind": {"type": "text"}}, "file": {}}}
    path = write(tmp_path / "in/via.json", told)
    converted(path, tmp_path / "out", label_column="kind")
    (record,) = records(tmp_path / "out")
    assert record["image/object/class/text"] == [b"fox", b"hen", b"sun", b"sun"]
    sides = [record[f"image/object/bbox/{side}"] for side in ("xmin", "ymin", "xmax", "ymax")]
    assert [values[0] for values in sides] == pytest.approx([10 / 160, 20 / 120, 40 / 160, 60 / 120])
    assert [values[3] for values in sides] == pytest.approx([70 / 160, 20 / 120, 90 / 160, 100 / 120])
    disc = pixels(record["image/object/mask"][2]) > 0
    assert disc.sum() == pytest.approx(np.pi * 20**2, rel=0.03)
    account = account_of(ViaFormat(), path, label_column="kind")
    assert (account.found[ANNOTATIONS], account.uses(ANNOTATIONS), account.unused(ANNOTATIONS)) == (6, 4, 2)
    assert account.unused(ATTRIBUTES) == 1


def test_the_class_is_decided_for_the_whole_file(tmp_path: Path) -> None:
    shapes = [region(rect(1, 2, 3, 4), label="fox", colour="red"), region(rect(1, 2, 3, 4), label="hen")]
    path = write(tmp_path / "via.json", document(picture("a.jpg", *shapes)))
    (row,) = [item for item in read_items(ViaFormat(), path)[1] if isinstance(item, Row)]
    assert [box["class"] for box in row.fields["boxes"]] == ["fox", "hen"]
    for shape in shapes:
        shape["region_attributes"]["shape"] = shape["region_attributes"].pop("label")
    write(path, document(picture("a.jpg", *shapes)))
    with pytest.raises(AmbiguousManifestError, match="--label_column"):
        read_items(ViaFormat(), path)
    with pytest.raises(ConfigError, match="colour"):
        read_items(ViaFormat(), path, label_column="color")


def test_regions_without_attributes_are_objects(tmp_path: Path) -> None:
    path = write(tmp_path / "via.json", document(picture("a.jpg", region(rect(1, 2, 3, 4)))))
    (row,) = read_items(ViaFormat(), path)[1]
    assert "class" not in row.fields["boxes"][0]


@pytest.mark.parametrize("attribute", [{"fox": True}, {"fox": True, "hen": False}, "fox"])
def test_checkboxes_and_texts_are_classes(tmp_path: Path, attribute: Any) -> None:
    path = write(tmp_path / "via.json", document(picture("a.jpg", region(rect(1, 2, 3, 4), kind=attribute))))
    (row,) = read_items(ViaFormat(), path)[1]
    assert row.fields["boxes"][0]["class"] == "fox"


@pytest.mark.parametrize(
    "shape",
    [
        {"name": "rect", "x": 1, "y": 2, "width": 3},
        {"name": "polygon", "all_points_x": [1, 2], "all_points_y": [1]},
        {"name": "circle", "cx": 1, "cy": 2, "r": "wide"},
        {"name": "circle", "cx": "x", "cy": 2, "r": 3},
        {"name": "ellipse", "cx": 1, "cy": 2, "rx": None, "ry": 2},
        [1, 2],
    ],
)
def test_what_cannot_be_right_is_a_reject(tmp_path: Path, shape: Any) -> None:
    bad = {"shape_attributes": shape, "region_attributes": {}}
    path = write(tmp_path / "via.json", document(picture("a.jpg", bad), picture("b.jpg")))
    items = read_items(ViaFormat(), path)[1]
    ((code, message),) = rejects(items)
    assert code in ("bad_box", "bad_annotation")
    assert "regions[0]" in message


def test_a_folder_of_pictures_and_their_file_is_read(tmp_path: Path) -> None:
    for name in ("one/a.jpg", "two/b.jpg"):  # folders that would be classes
        write(tmp_path / "in" / name, jpeg(painted_boxes(*SIZE, [(10, 20, 40, 60)])))
    pictures = [picture(name, region(rect(10, 20, 30, 40), kind="fox")) for name in ("one/a.jpg", "b.jpg")]
    write(tmp_path / "in/via_project.json", document(*pictures))
    assert read_items(FolderFormat(), tmp_path / "in")[0].format == "via"
    converted(tmp_path / "in", tmp_path / "out")
    told = {name: record["image/object/class/text"] for name, record in by_name(tmp_path / "out").items()}
    assert told == {"one/a.jpg": [b"fox"], "two/b.jpg": [b"fox"]}


@pytest.mark.parametrize("text", ['{"images": [], "annotations": []}', '{"filename": "a"}', "[]", '{"a": {"size": 3}}'])
def test_other_json_is_not_taken_for_it(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "x.json", text)
    assert not ViaFormat().recognises(LocalFiles(), str(path), text.encode())


def test_its_coco_export_is_coco(tmp_path: Path) -> None:
    told = {"info": {"description": "VIA"}, "images": [], "annotations": [], "licenses": [], "categories": []}
    assert detect_format(LocalFiles(), str(write(tmp_path / "x.json", json.dumps(told)))) == "coco"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "a.json",
            {
                "project": {"pid": "__VIA_PROJECT_ID__", "data_format_version": "3.1.1", "vid_list": ["1"]},
                "config": {},
                "attribute": {},
                "file": {"1": {"fid": "1", "fname": "a.jpg", "type": 2, "loc": 1, "src": "a.jpg"}},
                "metadata": {"1_x": {"vid": "1", "xy": [2, 1, 2, 3, 4], "av": {"1": "fox"}}},
                "view": {"1": {"fid_list": ["1"]}},
            },
        ),
        ("a.csv", "# CSV_HEADER = metadata_id,file_list,flags,temporal_coordinates,spatial_coordinates,metadata\n"),
    ],
)
def test_what_via_3_writes_is_refused_with_a_way_out(tmp_path: Path, name: str, content: Any) -> None:
    place = write(tmp_path / name, content)
    assert detect_format(LocalFiles(), str(place)) == "via"
    with pytest.raises(ManifestError, match=r"is what VIA 3 writes.*VIA 2.*a CSV with columns"):
        read_items(ViaFormat(), place)
