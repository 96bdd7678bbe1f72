"""LabelMe files, as ``write_label_file`` of labelme 6.3.1 writes them: every kind of shape, and pictures inside."""

from __future__ import annotations

import base64
import io
import json
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from beam_tfrecord.core.account import FILES, LABEL_FILES
from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import ConfigError, ManifestError
from beam_tfrecord.manifests import detect_format, siblings
from beam_tfrecord.manifests.formats.folder import FolderFormat
from beam_tfrecord.manifests.formats.labelme import LabelmeFormat
from beam_tfrecord.manifests.picture_labels import ANNOTATIONS
from tests.annotation_tools import account_of, pixels, read_items, rejects, write, zipped
from tests.contracts import ManifestFormatContract, Sample, describe
from tests.end_to_end.datasets import by_name, conversion, converted, findings, records
from tests.local_files import LocalFiles
from tests.samples import jpeg, painted_boxes, png, turned_jpeg

SIZE = (160, 120)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siblings, "ITEMS_PER_PIECE", 2)


def document(name: str, *shapes: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What labelme 6.3.1 saves: all keys, in its order."""
    whole = [
        {"label": "fox", "points": [], "group_id": None, "description": "", "shape_type": "polygon", "flags": {}}
        | {"mask": None}
        | shape
        for shape in shapes
    ]
    found = {"version": "6.3.1", "flags": {}, "shapes": whole, "imagePath": name, "imageData": None}
    return found | {"imageHeight": SIZE[1], "imageWidth": SIZE[0]} | more


def rectangle(*numbers: float, **more: Any) -> dict[str, Any]:
    xmin, ymin, xmax, ymax = numbers
    return {"points": [[xmin, ymin], [xmax, ymax]], "shape_type": "rectangle", **more}


def encoded(values: Any) -> str:
    return base64.b64encode(png(Image.fromarray(values))).decode()


class TestLabelme(ManifestFormatContract):
    format = LabelmeFormat()

    def write(self, folder: Path, names: Sequence[str], labels: str = "") -> str:
        for name in names:
            write(folder / name, "pixels")
            write(folder / labels / f"{name.rpartition('.')[0]}.json", document(name))
        return str(folder)

    def row(self, uri: str, name: str) -> tuple[str, dict[str, Any]]:
        return f"{uri}/{name}.json", {"boxes": [], "frame": "upright", "size": SIZE, "image": f"{name}.jpg"}

    def sample(self, folder: Path) -> Sample:
        uri = self.write(folder, ["a.jpg", "b.jpg", "c.jpg"])
        write(folder / ".DS_Store", "junk")
        write(folder / "notes.json", {"by": "me"})
        return Sample(uri, [self.row(uri, name) for name in "abc"], ignored=1)

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return Sample(self.write(folder, names), [])

    def damaged(self, folder: Path) -> Sample:
        uri = self.write(folder, ["a.jpg", "b.jpg", "c.jpg", "d.jpg"])
        write(folder / "b.json", '{"shapes": [')
        write(folder / "d.json", document("d.jpg", {"points": [[1, "x"]]}))
        return Sample(
            uri,
            [self.row(uri, name) for name in "ac"],
            [(f"{uri}/{name}.json", "bad_annotation") for name in "bd"],
        )

    def empty(self, folder: Path) -> Sample:
        return Sample(str(folder), [])

    def test_is_recognised(self, tmp_path: Path) -> None:
        """By one of the files, wherever below the folder it lies."""
        sample = self.sample(tmp_path)
        assert describe(FolderFormat(), sample).format == "labelme"


def boxes_of(folder: Path, *shapes: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    write(folder / "a.jpg", "pixels")
    write(folder / "a.json", document("a.jpg", *shapes, **more))
    (row,) = [item for item in read_items(FolderFormat(), folder)[1] if isinstance(item, Row)]
    return list(row.fields["boxes"])


def test_a_rectangle_may_be_drawn_from_any_corner(tmp_path: Path) -> None:
    (box,) = boxes_of(tmp_path, rectangle(30, 40, 5, 6))
    assert box == {"class": "fox", "bbox": [5, 6, 30, 40], "origin": "a.json:shapes[0]"}


def test_a_shape_without_a_type_is_a_polygon(tmp_path: Path) -> None:
    (box,) = boxes_of(tmp_path, {"points": [[1, 2], [9, 2], [5, 8]], "shape_type": None})
    assert box["polygons"] == [[1, 2, 9, 2, 5, 8]]


def test_a_turned_rectangle_keeps_its_corners(tmp_path: Path) -> None:
    points = [[20, 10], [30, 20], [20, 30], [10, 20]]
    (box,) = boxes_of(tmp_path, {"points": points, "shape_type": "oriented_rectangle"})
    assert box["polygons"] == [[20, 10, 30, 20, 20, 30, 10, 20]]


def test_a_circle_is_what_pillow_draws(tmp_path: Path) -> None:
    """labelme's own mask of a circle is an ellipse of Pillow."""
    write(tmp_path / "a.jpg", jpeg(painted_boxes(*SIZE, [])))
    write(tmp_path / "a.json", document("a.jpg", {"points": [[60, 50], [60, 80]], "shape_type": "circle"}))
    converted(tmp_path, tmp_path / "out")
    (record,) = records(tmp_path / "out")
    sides = [record[f"image/object/bbox/{side}"][0] for side in ("xmin", "ymin", "xmax", "ymax")]
    assert sides == pytest.approx([30 / 160, 20 / 120, 90 / 160, 80 / 120])
    drawn = Image.new("L", SIZE)
    ImageDraw.Draw(drawn).ellipse((30, 20, 90, 80), fill=1)
    mask = pixels(record["image/object/mask"][0])
    assert np.count_nonzero(mask != np.asarray(drawn)) < 0.04 * mask.sum()  # Pillow draws the last pixel too


@pytest.mark.parametrize("place", [(40, 30), (-3, 30), (40, 115)])
def test_a_mask_lies_where_its_corner_is(tmp_path: Path, place: tuple[int, int]) -> None:
    left, top = place
    patch = np.zeros((11, 6), bool)
    patch[2:9, 1:5] = True
    patch[4, 2] = False
    write(tmp_path / "a.jpg", jpeg(painted_boxes(*SIZE, [])))
    points = [[left, top], [left + 5, top + 10]]
    write(tmp_path / "a.json", document("a.jpg", {"points": points, "shape_type": "mask", "mask": encoded(patch)}))
    converted(tmp_path, tmp_path / "out")
    (record,) = records(tmp_path / "out")
    whole = np.zeros((140, 180), bool)
    whole[10 + top : 21 + top, 10 + left : 16 + left] = patch
    assert np.array_equal(pixels(record["image/object/mask"][0]) > 0, whole[10:130, 10:170])


def test_shapes_of_one_label_and_group_are_one_object(tmp_path: Path) -> None:
    parts = [[[1, 2], [9, 2], [5, 8]], [[21, 2], [29, 2], [25, 8]]]
    shapes = [{"points": part, "group_id": 3} for part in parts]
    other = {"points": parts[0], "group_id": 3, "label": "hen"}
    fox, hen = boxes_of(tmp_path, *shapes, other)
    assert fox["polygons"] == [[1, 2, 9, 2, 5, 8], [21, 2, 29, 2, 25, 8]]
    assert (hen["class"], len(hen["polygons"])) == ("hen", 1)


def test_points_of_the_group_of_an_object_are_its_keypoints(tmp_path: Path) -> None:
    nose = {"label": "nose", "points": [[7, 8]], "shape_type": "point", "group_id": 1}
    tail = {"label": "tail", "points": [[9, 9]], "shape_type": "point", "group_id": 1}
    (box,) = boxes_of(tmp_path, nose, rectangle(5, 6, 30, 40, group_id=1), tail)
    assert (box["keypoints"], box["keypoint_names"]) == ([7, 8, 2, 9, 9, 2], ["nose", "tail"])


def test_what_has_no_area_is_told_and_counted(tmp_path: Path) -> None:
    shapes = [
        {"points": [[1, 1], [2, 2]], "shape_type": "line"},
        {"points": [[1, 1], [2, 2], [3, 3]], "shape_type": "linestrip"},
        {"points": [[1, 1]], "shape_type": "point"},
        {"points": [[1, 1]], "shape_type": "cuboid"},
        rectangle(5, 6, 30, 40, flags={"occluded": True, "blurred": True}),
    ]
    assert [box["occluded"] for box in boxes_of(tmp_path, *shapes)] == [True]
    (row,) = [item for item in read_items(LabelmeFormat(), tmp_path)[1] if isinstance(item, Row)]
    told = " ".join(message for code, message in row.fields["notes"] if code == "annotation_ignored")
    for word in ("shapes[0]: line", "shapes[1]: linestrip", "shapes[2]: point", "'cuboid'", "'blurred'"):
        assert word in told
    account = account_of(LabelmeFormat(), tmp_path)
    assert (account.found[ANNOTATIONS], account.uses(ANNOTATIONS, "object")) == (5, 1)
    assert account.unused(ANNOTATIONS) == 4


def test_flags_are_labels_of_the_picture(tmp_path: Path) -> None:
    for name, flags in (("a", {"day": True, "night": False}), ("b", {"day": False, "night": True})):
        write(tmp_path / f"{name}.jpg", jpeg(painted_boxes(*SIZE, [(1, 1, 9, 9)])))
        write(tmp_path / f"{name}.json", document(f"{name}.jpg", flags=flags))
    converted(tmp_path, tmp_path / "out")
    told = {name: record["image/class/text"] for name, record in by_name(tmp_path / "out").items()}
    assert told == {"a.jpg": [b"day"], "b.jpg": [b"night"]}
    assert not any("object" in key for record in records(tmp_path / "out") for key in record)


def test_what_is_told_of_a_picture_without_objects_is_kept(tmp_path: Path) -> None:
    """Notes are not lost with the objects that they would have been about."""
    write(tmp_path / "a.jpg", jpeg(painted_boxes(*SIZE, [])))
    line = {"points": [[1, 1], [2, 2]], "shape_type": "line"}
    write(tmp_path / "a.json", document("a.jpg", line, flags={"day": True}))
    converted(tmp_path, tmp_path / "out", insight="off")
    assert [finding["code"] for finding in findings(tmp_path / "out", "warnings")] == ["annotation_ignored"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"points": [[1, 2], [3, 4], [5, 6]], "shape_type": "circle"}, r"shapes\[0\].points has 3 points"),
        ({"points": [[1, 2], [3, float("nan")], [5, 6]]}, "no place in a picture"),
        ({"points": [[1, 2], [3, True], [5, 6]]}, r"points\[1\]"),
        ({"points": {}}, "not a list of points"),
        ({"points": [[1, 2], [3, 4]], "shape_type": "mask", "mask": "####"}, "no PNG in base64"),
        ({"label": ["fox"]}, r"shapes\[0\].label"),
        ({"group_id": "x"}, "group_id"),
    ],
)
def test_what_cannot_be_right_is_a_reject_that_names_its_place(tmp_path: Path, change: Any, told: str) -> None:
    write(tmp_path / "a.jpg", "pixels")
    write(tmp_path / "a.json", document("a.jpg", {"points": [[1, 2], [3, 4], [5, 1]], **change}))
    ((code, message),) = rejects(read_items(LabelmeFormat(), tmp_path)[1])
    assert code in ("bad_annotation", "bad_mask")
    assert re.search(told, message)
    assert "a.json" in message
    assert account_of(LabelmeFormat(), tmp_path).unused(ANNOTATIONS) == 1


ARRANGEMENTS = [
    ("{split}/{name}.jpg", "{split}/{name}.json"),
    ("{split}/images/{name}.jpg", "{split}/annotations/{name}.json"),
    ("images/{split}/{name}.jpg", "labels/{split}/{name}.json"),
]


@pytest.mark.parametrize(("image", "label"), ARRANGEMENTS)
@pytest.mark.parametrize("packed", [False, True])
def test_folders_and_archives_tell_splits(tmp_path: Path, image: str, label: str, packed: bool) -> None:
    picture = jpeg(painted_boxes(*SIZE, [(10, 20, 60, 70)]))
    for split, name in (("train", "x"), ("val", "y")):
        write(tmp_path / "in" / image.format(split=split, name=name), picture)
        shapes = rectangle(10, 20, 60, 70, label=name)
        write(tmp_path / "in" / label.format(split=split, name=name), document(f"..\\{name}.jpg", shapes))
    converted(zipped(tmp_path / "in") if packed else tmp_path / "in", tmp_path / "out")
    for split, name in (("train", b"x"), ("val", b"y")):
        (record,) = records(tmp_path / "out", split)
        assert record["image/object/class/text"] == [name]
        assert record["image/encoded"] == [picture]


def with_picture_inside(name: str, form: str, picture: bytes) -> str:
    """The text of a document with a picture inside, in one of the forms that people have."""
    text = base64.b64encode(picture).decode()
    told = document(f"far/away/{name}.jpg", rectangle(10, 20, 60, 70), imageData=text)
    if form == "first":
        told = {"imageData": text} | told
    written = json.dumps(told, indent=None if form == "compact" else 2, ensure_ascii=False)
    return written.replace("/", "\\/") if form == "escaped" else written


@pytest.mark.parametrize("kind", ["folder", "zip", "stored zip", "file"])
def test_the_picture_inside_counts_where_none_lies_beside(tmp_path: Path, kind: str) -> None:
    forms = ("labelme", "compact", "first", "escaped")
    colours = ("red", "blue", "lime", "black")
    pictures = {
        f"{form}.jpg": turned_jpeg(painted_boxes(*SIZE, [(10, 20, 60, 70)], [colour]), 6)
        for form, colour in zip(forms, colours, strict=True)
    }
    files = [
        write(tmp_path / f"in/{form}.json", with_picture_inside(form, form, pictures[f"{form}.jpg"])) for form in forms
    ]
    place: Path | tuple[Path, ...] = tuple(files) if kind == "file" else tmp_path / "in"
    if "zip" in kind:
        place = tmp_path / "in.zip"
        with zipfile.ZipFile(place, "w", zipfile.ZIP_STORED if "stored" in kind else zipfile.ZIP_DEFLATED) as archive:
            for file in files:
                archive.write(file, f"deep/{file.name}")
    converted(place, tmp_path / "out", orientation="ignore")
    found = {Path(record["image/filename"][0].decode()).name: record for record in records(tmp_path / "out")}
    assert {name: record["image/encoded"] for name, record in found.items()} == {
        name: [picture] for name, picture in pictures.items()
    }
    assert [record["image/object/class/text"] for record in found.values()] == [[b"fox"]] * 4
    formats = {told["format"] for told in conversion(tmp_path / "out")["inputs"]}
    assert formats == {"archive" if "zip" in kind else "labelme"}


def test_a_picture_inside_that_is_no_base64_is_a_reject(tmp_path: Path) -> None:
    write(tmp_path / "in/a.json", document("a.jpg", imageData="QUJD*"))
    write(tmp_path / "in/b.json", document("b.jpg", imageData=base64.b64encode(jpeg(painted_boxes(9, 9, []))).decode()))
    converted(tmp_path / "in", tmp_path / "out", max_rejects="90%")
    ((found),) = findings(tmp_path / "out")
    assert found["code"] == "corrupt_image"
    assert "base64" in found["message"]


def test_pictures_of_elsewhere_are_named_with_images(tmp_path: Path) -> None:
    write(tmp_path / "labels/a.json", document("a.jpg", rectangle(1, 2, 3, 4)))
    with pytest.raises(ManifestError, match="--images"):
        read_items(FolderFormat(), tmp_path / "labels")
    write(tmp_path / "elsewhere/a.jpg", "pixels")
    source, items = read_items(FolderFormat(), tmp_path / "labels", images=str(tmp_path / "elsewhere"))
    assert source.format == "labelme"
    assert [item.fields["image"] for item in items] == ["a.jpg"]


def test_a_label_file_whose_picture_is_missing_is_told(tmp_path: Path) -> None:
    write(tmp_path / "in/a.jpg", jpeg(painted_boxes(*SIZE, [])))
    write(tmp_path / "in/a.json", document("a.jpg"))
    write(tmp_path / "in/b.json", document("b.jpg", rectangle(1, 2, 3, 4)))
    converted(tmp_path / "in", tmp_path / "out", max_rejects="90%")
    assert [found["code"] for found in findings(tmp_path / "out")] == ["missing_file"]


def test_pictures_without_a_label_file_are_told(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / f"in/{name}.jpg", jpeg(painted_boxes(*SIZE, [])))
    write(tmp_path / "in/a.json", document("a.jpg"))
    converted(tmp_path / "in", tmp_path / "out", insight="off")
    assert conversion(tmp_path / "out")["warnings"] == {"images_not_named": 1}
    (account,) = conversion(tmp_path / "out")["inputs"]
    assert account["found"] == {ANNOTATIONS: 0, FILES: 3, LABEL_FILES: 1}


@pytest.mark.parametrize(
    "other", ['{"shapes": "none", "imagePath": "a.jpg", "other": [', '{"images": []}', "[1, 2]", '{"imagePath": 3}']
)
def test_json_of_other_kinds_beside_pictures_is_not_taken_for_it(tmp_path: Path, other: str) -> None:
    write(tmp_path / "a.jpg", "pixels")
    write(tmp_path / "a.json", other)
    try:
        source = read_items(FolderFormat(), tmp_path)[0]
    except (ManifestError, ConfigError):
        return
    assert source.format != "labelme"


def test_one_file_is_read_by_itself(tmp_path: Path) -> None:
    write(tmp_path / "a.png", jpeg(painted_boxes(*SIZE, [])))
    path = write(tmp_path / "a.json", document("a.jpg", rectangle(1, 2, 3, 4)))
    (item,) = read_items(LabelmeFormat(), path)[1]
    assert item.fields["image"] == "a.png"
    assert item.fields["boxes"][0]["bbox"] == [1, 2, 3, 4]
    assert detect_format(LocalFiles(), str(path)) == "labelme"


def test_masks_with_gaps_between_groups_are_one_mask(tmp_path: Path) -> None:
    """A mask and a polygon of one group are drawn together."""
    patch = np.ones((4, 4), bool)
    write(tmp_path / "a.jpg", jpeg(painted_boxes(*SIZE, [])))
    mask = {"points": [[10, 10], [13, 13]], "shape_type": "mask", "mask": encoded(patch), "group_id": 1}
    polygon = {"points": [[50, 50], [60, 50], [60, 60], [50, 60]], "group_id": 1}
    write(tmp_path / "a.json", document("a.jpg", mask, polygon))
    converted(tmp_path, tmp_path / "out")
    (record,) = records(tmp_path / "out")
    found = np.asarray(Image.open(io.BytesIO(record["image/object/mask"][0])))
    expected = np.zeros((120, 160), bool)
    expected[10:14, 10:14] = expected[50:60, 50:60] = True
    assert np.array_equal(found > 0, expected)


def test_what_labelme_calls_no_class_is_neither_object_nor_label(tmp_path: Path) -> None:
    """``__ignore__`` and ``_background_`` stand for -1 and 0 in the masks of labelme's own converters."""
    shapes = [{**rectangle(1, 2, 30, 40), "label": name} for name in ("__ignore__", "fox", "_background_")]
    write(tmp_path / "a.jpg", "pixels")
    write(tmp_path / "a.json", document("a.jpg", *shapes, flags={"__ignore__": True, "day": True}))
    (row,) = [item for item in read_items(FolderFormat(), tmp_path)[1] if isinstance(item, Row)]
    assert [box["class"] for box in row.fields["boxes"]] == ["fox"]
    assert row.fields["label"] == "day"
    assert [message.partition(": labelme")[0] for _, message in row.fields["notes"]] == [
        "shapes[0]: __ignore__",
        "shapes[2]: _background_",
    ]
