from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.annotations.boxes import BoxesKind
from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import ConfigError, ManifestError
from beam_tfrecord.manifests import detect_format, siblings
from beam_tfrecord.manifests.base import Ignored
from beam_tfrecord.manifests.formats.voc import VocFormat
from tests.annotation_tools import account_of, fields_by_image, parse, read_items, rejects, write
from tests.local_files import LocalFiles

FORMAT = VocFormat()


def annotation(filename: str, *objects: str, size: str = "<width>40</width><height>30</height>") -> str:
    return f"<annotation>\n<filename>{filename}</filename>\n<size>{size}</size>\n{''.join(objects)}</annotation>"


def thing(name: str = "cat", box: Any = (1, 2, 30, 20), more: str = "") -> str:
    sides = "".join(f"<{s}>{v}</{s}>" for s, v in zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True))
    return f"<object><name>{name}</name>{more}<bndbox>{sides}</bndbox></object>\n"


def dataset(root: Path, *stems: str) -> Path:
    for stem in stems:
        write(root / "Annotations" / f"{stem}.xml", annotation(f"{stem}.jpg", thing()))
        write(root / "JPEGImages" / f"{stem}.jpg", "pixels")
    return root


def test_a_devkit_folder_has_a_row_per_annotation(tmp_path: Path) -> None:
    source, items = read_items(FORMAT, dataset(tmp_path, "b", "a"))
    assert source.base == f"{tmp_path}/JPEGImages"
    assert [item.origin for item in items] == [f"{tmp_path}/Annotations/{stem}.xml" for stem in "ab"]
    fields = fields_by_image(items)["a.jpg"]
    assert fields["size"] == (40, 30)
    assert fields["boxes"] == [{"class": "cat", "bbox": ["1", "2", "30", "20"], "origin": "a.xml:4"}]
    assert "mask" not in fields
    assert "stated_image" not in fields


def test_coordinates_stand_as_they_are_and_attributes_are_read(tmp_path: Path) -> None:
    more = "<pose>Left</pose><truncated>1</truncated><difficult>0</difficult><occluded></occluded>"
    write(tmp_path / "Annotations/a.xml", annotation("a.jpg", thing(box=(1, 2.5, 30, 20), more=more)))
    _, items = read_items(FORMAT, tmp_path)
    (parsed,) = parse(BoxesKind(), items[0].fields).objects
    assert parsed.box == (1, 2.5, 30, 20)
    assert parsed.attributes == {"difficult": 0, "truncated": 1, "pose": "Left"}


def test_an_unspecified_pose_and_empty_flags_are_none(tmp_path: Path) -> None:
    more = "<pose>Unspecified</pose><truncated/><difficult/>"
    write(tmp_path / "Annotations/a.xml", annotation("a.jpg", thing(more=more)))
    _, items = read_items(FORMAT, tmp_path)
    assert parse(BoxesKind(), items[0].fields).objects[0].attributes == {}


def test_parts_are_no_objects(tmp_path: Path) -> None:
    part = "<part><name>head</name><bndbox><xmin>5</xmin><ymin>5</ymin><xmax>6</xmax><ymax>6</ymax></bndbox></part>"
    write(tmp_path / "Annotations/a.xml", annotation("a.jpg", thing(more=part)))
    _, items = read_items(FORMAT, tmp_path)
    (box,) = items[0].fields["boxes"]
    assert (box["class"], box["bbox"], box["parts"]) == ("cat", ["1", "2", "30", "20"], 1)


def test_no_objects_are_an_empty_list(tmp_path: Path) -> None:
    write(tmp_path / "Annotations/a.xml", annotation("a.jpg"))
    assert read_items(FORMAT, tmp_path)[1][0].fields["boxes"] == []


@pytest.mark.parametrize("size", ["<width>x</width><height>3</height>", "<width>-9</width><height>3</height>"])
def test_a_size_that_can_be_none_is_told(tmp_path: Path, size: str) -> None:
    write(tmp_path / "Annotations/a.xml", annotation("a.jpg", size=size))
    ((code, message),) = read_items(FORMAT, tmp_path)[1][0].fields["notes"]
    assert (code, message.startswith("a.xml:")) == ("size_mismatch", True)


@pytest.mark.parametrize("size", ["", "<width>0</width><height>0</height>", "<width>x</width><height>3</height>"])
def test_a_size_that_says_nothing_is_none(tmp_path: Path, size: str) -> None:
    write(tmp_path / "Annotations/a.xml", annotation("a.jpg", size=size))
    assert "size" not in read_items(FORMAT, tmp_path)[1][0].fields


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("<annotation>\n<object></annotation>", "line 2"),
        ("", "line 1"),
        ("<html/>", "<html>"),
        ('<!DOCTYPE a [<!ENTITY x "y">]><annotation/>', "entity"),
    ],
)
def test_a_damaged_file_is_a_reject_with_its_line(tmp_path: Path, data: str, told: str) -> None:
    dataset(tmp_path, "a", "c")
    write(tmp_path / "Annotations/b.xml", data)
    write(tmp_path / "JPEGImages/b.png", "pixels")
    _, items = read_items(FORMAT, tmp_path)
    assert [type(item) is Row for item in items] == [True, False, True]
    assert items[1].finding.code == "bad_annotation"
    assert items[1].finding.uri == "b.png"
    assert "b.xml" in items[1].finding.message
    assert told in items[1].finding.message


@pytest.mark.parametrize(
    ("stated", "images", "found"),
    [
        ("a.jpg", ["a.jpg", "b.jpg"], "a.jpg"),
        ("b.jpg", ["a.jpg", "b.jpg"], "b.jpg"),
        ("C:\\pictures\\b.jpg", ["a.jpg", "b.jpg"], "b.jpg"),
        ("/home/me/b.jpg", ["a.jpg", "b.jpg"], "b.jpg"),
        ("renamed.jpg", ["a.png", "b.jpg"], "a.png"),
        ("b", ["b.JPG"], "b.JPG"),
        ("", ["a.jpg"], "a.jpg"),
        ("gone.jpg", ["b.jpg"], "gone.jpg"),
        ("", [], "a.jpg"),
    ],
)
def test_the_image_is_found_by_what_is_stated_and_else_by_its_name(
    tmp_path: Path, stated: str, images: list[str], found: str
) -> None:
    write(tmp_path / "Annotations/a.xml", annotation(stated))
    for name in images:
        write(tmp_path / "JPEGImages" / name, "pixels")
    assert read_items(FORMAT, tmp_path)[1][0].fields["image"] == found


def test_images_and_annotations_side_by_side(tmp_path: Path) -> None:
    write(tmp_path / "annotations/a.xml", annotation("a.png"))
    write(tmp_path / "images/a.png", "pixels")
    for place in (tmp_path, tmp_path / "annotations", tmp_path / "annotations/a.xml"):
        source, items = read_items(FORMAT, place)
        assert (source.base, [item.fields["image"] for item in items]) == (f"{tmp_path}/images", ["a.png"])


def test_annotations_beside_their_images(tmp_path: Path) -> None:
    write(tmp_path / "a.xml", annotation("a.png"))
    write(tmp_path / "a.png", "pixels")
    source, items = read_items(FORMAT, tmp_path)
    assert (source.base, [item.fields["image"] for item in items]) == (str(tmp_path), ["a.png"])


def test_images_in_a_root_of_their_own_and_in_subfolders(tmp_path: Path) -> None:
    write(tmp_path / "xml/day1/a.xml", annotation("a.png"))
    write(tmp_path / "pictures/day1/a.png", "pixels")
    write(tmp_path / "pictures/day2/a.png", "pixels")
    source, items = read_items(FORMAT, tmp_path / "xml", images=str(tmp_path / "pictures"))
    assert (source.base, [item.fields["image"] for item in items]) == (f"{tmp_path}/pictures", ["day1/a.png"])


def test_splits_come_from_the_lists(tmp_path: Path) -> None:
    dataset(tmp_path, "a", "b", "c", "d")
    write(tmp_path / "ImageSets/Main/train.txt", "a\n\n")
    write(tmp_path / "ImageSets/Main/val.txt", "b  1\n")
    write(tmp_path / "ImageSets/Main/trainval.txt", "a\nb\n")
    write(tmp_path / "ImageSets/Main/test.txt", "c\ne\n")
    write(tmp_path / "ImageSets/Main/cat_train.txt", "a 1\nd -1\n")
    _, items = read_items(FORMAT, tmp_path)
    splits = {image: fields.get("split") for image, fields in fields_by_image(items).items()}
    assert splits == {"a.jpg": "train", "b.jpg": "val", "c.jpg": "test", "d.jpg": None}
    ((code, message),) = rejects(items)
    assert code == "bad_annotation"
    assert "e.xml does not exist" in message


def test_trainval_counts_where_nothing_tells_train_and_val_apart(tmp_path: Path) -> None:
    dataset(tmp_path, "a", "b")
    write(tmp_path / "ImageSets/Main/trainval.txt", "a\n")
    write(tmp_path / "ImageSets/Main/test.txt", "b\n")
    _, items = read_items(FORMAT, tmp_path)
    assert [item.fields["split"] for item in items] == ["trainval", "test"]


def test_a_list_is_an_input_of_its_own(tmp_path: Path) -> None:
    dataset(tmp_path, "a", "b", "c")
    source, items = read_items(FORMAT, write(tmp_path / "ImageSets/Main/val.txt", "c\na.jpg\n"), split="validation")
    assert source.split == "validation"
    assert [item.fields["image"] for item in items] == ["c.jpg", "a.jpg"]
    assert not any("split" in item.fields for item in items)


def test_masks_lie_beside(tmp_path: Path) -> None:
    dataset(tmp_path, "a", "b")
    write(tmp_path / "SegmentationClass/a.png", "mask")
    write(tmp_path / "SegmentationObject/a.png", "mask")
    fields = fields_by_image(read_items(FORMAT, tmp_path)[1])
    assert fields["a.jpg"]["mask"] == f"{tmp_path}/SegmentationClass/a.png"
    assert fields["a.jpg"]["instance_mask"] == f"{tmp_path}/SegmentationObject/a.png"
    assert (fields["b.jpg"]["mask"], fields["b.jpg"]["instance_mask"]) == ("", "")


def test_masks_without_annotations_are_rows(tmp_path: Path) -> None:
    write(tmp_path / "SegmentationClass/a.png", "mask")
    write(tmp_path / "JPEGImages/a.jpg", "pixels")
    write(tmp_path / "JPEGImages/b.jpg", "pixels")
    _, items = read_items(FORMAT, tmp_path)
    assert [dict(item.fields) for item in items] == [{"image": "a.jpg", "mask": f"{tmp_path}/SegmentationClass/a.png"}]


def test_a_devkit_of_one_year_is_taken_and_of_several_is_asked_about(tmp_path: Path) -> None:
    dataset(tmp_path / "VOC2007", "a")
    assert [item.fields["image"] for item in read_items(FORMAT, tmp_path)[1]] == ["a.jpg"]
    dataset(tmp_path / "VOC2012", "b")
    with pytest.raises(ConfigError, match=r"several datasets.*VOC2007"):
        read_items(FORMAT, tmp_path)


def test_junk_is_counted_once(tmp_path: Path) -> None:
    dataset(tmp_path, "a")
    write(tmp_path / "Annotations/._a.xml", "junk")
    write(tmp_path / "Annotations/.git/x.xml", "junk")
    write(tmp_path / "Annotations/.git/y.xml", "junk")
    _, items = read_items(FORMAT, tmp_path)
    assert [item for item in items if isinstance(item, Ignored)] == [Ignored(2)]
    assert len(items) == 2


def test_pieces_together_are_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset(tmp_path, *(f"{number:02}" for number in range(7)))
    write(tmp_path / "Annotations/.DS_Store", "junk")
    _, whole = read_items(FORMAT, tmp_path)
    monkeypatch.setattr(siblings, "ITEMS_PER_PIECE", 3)
    assert read_items(FORMAT, tmp_path)[1] == whole
    assert len(whole) == 8


def test_what_is_no_voc_folder_ends_the_job(tmp_path: Path) -> None:
    write(tmp_path / "a.jpg", "pixels")
    with pytest.raises(ManifestError, match=r"Annotations/\*\.xml"):
        read_items(FORMAT, tmp_path)
    with pytest.raises(ManifestError, match="does not exist"):
        read_items(FORMAT, tmp_path / "gone")
    with pytest.raises(ManifestError, match="no Pascal VOC folder"):
        read_items(FORMAT, write(tmp_path / "x/y/list.txt", "a\n"))


def test_recognised_by_content(tmp_path: Path) -> None:
    files = LocalFiles()
    dataset(tmp_path / "voc", "a")
    write(tmp_path / "classes/cat/a.jpg", "pixels")
    write(tmp_path / "yolo/labels/a.txt", "0 0 0 1 1")
    write(tmp_path / "masks/SegmentationClass/a.png", "mask")
    write(tmp_path / "masks/JPEGImages/a.jpg", "pixels")
    found = [
        name
        for name in ("voc", "voc/Annotations", "classes", "yolo", "masks")
        if FORMAT.recognises(files, str(tmp_path / name), b"")
    ]
    assert found == ["voc", "voc/Annotations", "masks"]
    path = tmp_path / "voc/Annotations/a.xml"
    assert FORMAT.recognises(files, str(path), path.read_bytes())
    assert not FORMAT.recognises(files, str(path), b"<?xml version='1.0'?><svg/>")


LABELME_OBJECT = """<object><name>{name}</name><deleted>{deleted}</deleted>
<verified>0</verified><occluded>{occluded}</occluded><polygon><username>x</username>{points}</polygon></object>"""


def labelme_object(name: str, *points: tuple[float, float], deleted: int = 0, occluded: str = "no") -> str:
    told = "".join(f"<pt><x>{x}</x><y>{y}</y></pt>" for x, y in points)
    return LABELME_OBJECT.format(name=name, deleted=deleted, occluded=occluded, points=told)


def test_polygons_of_labelmes_web_tool_are_outlines_and_what_was_deleted_there_is_told(tmp_path: Path) -> None:
    corners = [(5, 6), (30, 6), (30, 25), (5, 28)]
    text = annotation(
        "a.jpg", labelme_object("cat", *corners, occluded="yes"), labelme_object("dog", *corners, deleted=1)
    )
    write(tmp_path / "Annotations/a.xml", text)
    _, items = read_items(FORMAT, tmp_path)
    (parsed,) = parse(BoxesKind(), items[0].fields).objects
    assert (parsed.name, parsed.box) == ("cat", (5, 6, 30, 28))
    assert parsed.attributes == {"occluded": 1}
    named = account_of(FORMAT, tmp_path).named["keys"]
    # name, deleted, verified, occluded, polygon, username, and four points of three elements
    assert named["of an object that was deleted"].count == 1 + 6 + 12


def test_a_turned_box_of_rolabelimg_is_its_outline(tmp_path: Path) -> None:
    """A quarter of a turn: what was 20 wide and 10 high is 10 wide and 20 high, about the same centre."""
    turned = "<robndbox><cx>20</cx><cy>15</cy><w>20</w><h>10</h><angle>1.5707963267948966</angle></robndbox>"
    write(tmp_path / "Annotations/a.xml", annotation("a.jpg", f"<object><name>cat</name>{turned}</object>"))
    _, items = read_items(FORMAT, tmp_path)
    (parsed,) = parse(BoxesKind(), items[0].fields).objects
    assert parsed.box == pytest.approx((15, 5, 25, 25))


@pytest.mark.parametrize("value", ["", "x", "nan", "inf"])
def test_a_shape_whose_numbers_are_none_is_a_reject(tmp_path: Path, value: str) -> None:
    points = [(5, 6), (30, 6), (value, 25)]
    write(tmp_path / "Annotations/a.xml", annotation("a.jpg", labelme_object("cat", *points)))  # type: ignore[arg-type]
    _, items = read_items(FORMAT, tmp_path)
    ((code, message),) = [(item.finding.code, item.finding.message) for item in items if hasattr(item, "finding")]
    assert code == "bad_annotation"
    assert "a.xml:5: x of <pt>" in message


@pytest.mark.parametrize("name", ["Main/cat_train.txt", "Main/train.txt", "Segmentation/val.txt"])
def test_a_list_of_image_sets_needs_no_format(tmp_path: Path, name: str) -> None:
    dataset(tmp_path, "a", "b", "c")
    place = write(tmp_path / "ImageSets" / name, "c -1\na  1\n" if "cat" in name else "c\na\n")
    assert detect_format(LocalFiles(), str(place)) == "voc"
    assert [item.fields["image"] for item in read_items(FORMAT, place)[1]] == ["c.jpg", "a.jpg"]


def test_a_list_of_masks_is_an_input_of_its_own(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / f"SegmentationClass/{name}.png", "mask")
        write(tmp_path / f"JPEGImages/{name}.jpg", "pixels")
    place = write(tmp_path / "ImageSets/Segmentation/val.txt", "b\n")
    items = read_items(FORMAT, place)[1]
    assert [item.fields["mask"] for item in items] == [f"{tmp_path}/SegmentationClass/b.png"]


def test_lists_of_a_dataset_without_annotations_are_no_voc(tmp_path: Path) -> None:
    place = write(tmp_path / "ImageSets/train.txt", "000001\n")  # as KITTI's tools have them
    write(tmp_path / "image_2/000001.png", "pixels")
    assert detect_format(LocalFiles(), str(place)) == "list"
