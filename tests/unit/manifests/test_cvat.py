"""CVAT's XML: pictures as docs.cvat.ai describes "CVAT for images 1.1", and tracks of "CVAT for video 1.1"."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
import pytest
from PIL import Image, ImageDraw

from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests import detect_format
from beam_tfrecord.manifests.formats.cvat import CvatFormat
from beam_tfrecord.manifests.formats.folder import FolderFormat
from beam_tfrecord.manifests.picture_labels import ANNOTATIONS, ATTRIBUTES
from tests.annotation_tools import account_of, pixels, read_items, rejects, write, zipped
from tests.contracts import ListedPicturesContract, Sample
from tests.end_to_end.datasets import by_name, conversion, converted, findings, records
from tests.local_files import LocalFiles
from tests.samples import jpeg, painted_boxes

SIZE = (160, 120)
META = """  <version>1.1</version>
  <meta><task><id>4</id><name>fruit</name><size>2</size><mode>annotation</mode>
    <labels><label><name>apple</name><color>#c06060</color><type>any</type><attributes></attributes></label></labels>
  </task><dumped>2024-01-01 10:00:00.000000+00:00</dumped></meta>
"""


def xml(*children: str) -> str:
    inner = "\n".join(children)
    return f'<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n{META}{inner}\n</annotations>\n'


def image(name: str, *shapes: str, more: str = "") -> str:
    inner = "\n".join(shapes)
    return f'  <image id="0" name={quoteattr(name)} width="{SIZE[0]}" height="{SIZE[1]}"{more}>{inner}</image>'


def box(*sides: float, more: str = "", inner: str = "") -> str:
    xtl, ytl, xbr, ybr = sides
    place = f'xtl="{xtl:.2f}" ytl="{ytl:.2f}" xbr="{xbr:.2f}" ybr="{ybr:.2f}"'
    return f'<box label="apple" source="manual" occluded="0" {place} z_order="0" {more}>{inner}</box>'


class TestCvat(ListedPicturesContract):
    format = CvatFormat()

    def write(self, folder: Path, names: Sequence[str]) -> str:
        for name in names:
            write(folder / "images" / name, "pixels")
        return str(write(folder / "annotations.xml", xml(*(image(name) for name in names))))

    def row(self, uri: str, name: str, place: int) -> tuple[str, dict[str, Any]]:
        return f"{uri}:{7 + place}", {"boxes": [], "size": SIZE, "image": f"images/{name}"}

    def damaged(self, folder: Path) -> Sample:
        self.write(folder, ["a.jpg", "b.jpg"])
        bad = [image("b.jpg", '<box label="apple" xtl="1" ytl="x" xbr="3" ybr="4"/>'), image(" ")]
        uri = str(write(folder / "annotations.xml", xml(image("a.jpg"), *bad)))
        return Sample(uri, [self.row(uri, "a.jpg", 0)], [(f"{uri}:8", "bad_annotation"), (f"{uri}:9", "bad_row")])

    def empty(self, folder: Path) -> Sample:
        return Sample(str(write(folder / "annotations.xml", xml())), [])


def boxes_of(folder: Path, *shapes: str) -> list[Mapping[str, Any]]:
    path = write(folder / "annotations.xml", xml(image("a.jpg", *shapes)))
    (row,) = [item for item in read_items(CvatFormat(), path)[1] if isinstance(item, Row)]
    return list(row.fields["boxes"])


def converted_mask(folder: Path, shape: str) -> Any:
    write(folder / "in/a.jpg", jpeg(painted_boxes(*SIZE, [])))
    write(folder / "in/annotations.xml", xml(image("a.jpg", shape)))
    converted(folder / "in", folder / "out")
    (record,) = records(folder / "out")
    return pixels(record["image/object/mask"][0]) > 0, record


@pytest.mark.parametrize("degrees", [30.0, 90.0, 200.5, 359.0])
def test_a_turned_box_is_drawn_as_pillow_turns_it(tmp_path: Path, degrees: float) -> None:
    """Pillow turns counterclockwise about the centre; CVAT clockwise."""
    mask, record = converted_mask(tmp_path, box(60, 40, 100, 60, more=f'rotation="{degrees}"'))
    drawn = Image.new("L", (SIZE[0] * 4, SIZE[1] * 4))
    ImageDraw.Draw(drawn).rectangle((240, 160, 399, 239), fill=255)
    turned = drawn.rotate(-degrees, center=(320, 200)).resize(SIZE, Image.Resampling.BOX)
    expected = np.asarray(turned) > 127
    assert np.count_nonzero(mask != expected) < 0.12 * expected.sum()
    rows, columns = np.nonzero(expected)
    sides = [record[f"image/object/bbox/{side}"][0] for side in ("xmin", "ymin", "xmax", "ymax")]
    assert sides == pytest.approx(
        [columns.min() / 160, rows.min() / 120, (columns.max() + 1) / 160, (rows.max() + 1) / 120], abs=0.015
    )


def test_a_mask_is_run_lengths_along_the_rows_of_its_box(tmp_path: Path) -> None:
    """The example of docs.cvat.ai has rle="3, 5, 7, 5, ...": zeros first."""
    rle = '<mask label="apple" source="manual" occluded="0" rle="1, 2, 3, 3" left="20" top="10" width="3" height="3"/>'
    mask, record = converted_mask(tmp_path, rle)
    expected = np.zeros((120, 160), bool)
    expected[10:13, 20:23] = [[0, 1, 1], [0, 0, 0], [1, 1, 1]]
    assert np.array_equal(mask, expected)
    sides = [record[f"image/object/bbox/{side}"][0] for side in ("xmin", "ymin", "xmax", "ymax")]
    assert sides == pytest.approx([20 / 160, 10 / 120, 23 / 160, 13 / 120])


def test_a_turned_ellipse_is_drawn_as_one(tmp_path: Path) -> None:
    mask, _ = converted_mask(tmp_path, '<ellipse label="apple" cx="80" cy="60" rx="40" ry="15" rotation="30"/>')
    down, right = np.mgrid[0:120, 0:160] + 0.5
    angle = np.radians(30)
    along = (right - 80) * np.cos(angle) + (down - 60) * np.sin(angle)
    across = -(right - 80) * np.sin(angle) + (down - 60) * np.cos(angle)
    expected = (along / 40) ** 2 + (across / 15) ** 2 <= 1
    assert np.count_nonzero(mask != expected) < 0.05 * expected.sum()


def test_polygons_skeletons_points_and_tags(tmp_path: Path) -> None:
    skeleton = """<skeleton label="apple" source="manual" z_order="0">
      <points label="stalk" outside="0" occluded="0" points="10.00,20.00"></points>
      <points label="leaf" outside="0" occluded="1" points="30.00,60.00"></points>
      <points label="worm" outside="1" occluded="0" points="0.00,0.00"></points></skeleton>"""
    polygon, person, spots = boxes_of(
        tmp_path,
        '<polygon label="apple" source="manual" occluded="1" points="1.5,2;9,2;5,8" z_order="0"/>',
        skeleton,
        '<points label="apple" source="manual" occluded="0" points="5,6;7,9" z_order="0"/>',
        '<tag label="ripe" source="manual"/>',
    )
    assert (polygon["polygons"], polygon["occluded"]) == ([[1.5, 2, 9, 2, 5, 8]], "1")
    assert (person["keypoints"], person["bbox"]) == ([10, 20, 2, 30, 60, 1, 0, 0, 0], [10, 20, 30, 60])
    assert person["keypoint_names"] == ["stalk", "leaf", "worm"]
    assert (spots["keypoints"], spots["bbox"]) == ([5, 6, 2, 7, 9, 2], [5, 6, 7, 9])


def test_what_has_no_box_is_told_and_counted_and_attributes_are(tmp_path: Path) -> None:
    write(tmp_path / "in/a.jpg", jpeg(painted_boxes(*SIZE, [])))
    given = '<attribute name="truncated">true</attribute><attribute name="colour">red</attribute>'
    shapes = [
        '<polyline label="apple" points="1,2;3,4"/>',
        '<cuboid label="apple" xtl1="1"/>',
        '<points label="apple" points="3,4"/>',
        box(1, 2, 30, 40, inner=given),
    ]
    path = write(tmp_path / "in/annotations.xml", xml(image("a.jpg", *shapes)))
    converted(path, tmp_path / "out")
    (record,) = records(tmp_path / "out")
    assert record["image/object/truncated"] == [1]
    told = " ".join(found["message"] for found in findings(tmp_path / "out", "warnings"))
    assert all(word in told for word in ("line 7: polyline", "line 8: cuboid", "line 9: points"))
    account = account_of(CvatFormat(), path)
    assert (account.found[ANNOTATIONS], account.uses(ANNOTATIONS), account.unused(ANNOTATIONS)) == (4, 1, 3)
    assert (account.uses(ATTRIBUTES), account.unused(ATTRIBUTES)) == (1, 1)


@pytest.mark.parametrize("packed", [False, True])
def test_an_export_is_read_as_it_is_whatever_its_folders(tmp_path: Path, packed: bool) -> None:
    """A project: subsets in the XML and as folders of the pictures, in which folders look like classes."""
    for subset, name in (("Train", "cam1/x.jpg"), ("Validation", "cam2/x.jpg")):
        write(tmp_path / f"in/images/{subset}/{name}", jpeg(painted_boxes(*SIZE, [(10, 20, 60, 70)])))
    pictures = (
        image("cam1/x.jpg", box(10, 20, 60, 70), more=' subset="Train"'),
        image("cam2/x.jpg", '<tag label="ripe"/>', more=' subset="Validation"'),
    )
    write(tmp_path / "in/annotations.xml", xml(*pictures))
    converted(zipped(tmp_path / "in") if packed else tmp_path / "in", tmp_path / "out")
    (train,) = records(tmp_path / "out", "train")
    assert train["image/filename"] == [b"images/Train/cam1/x.jpg"]
    assert train["image/object/bbox/xmax"] == pytest.approx([60 / 160])
    (validation,) = records(tmp_path / "out", "validation")
    assert validation["image/class/text"] == [b"ripe"]


def test_tracks_are_the_objects_of_frames(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / f"in/images/frame_{number:06}.PNG", jpeg(painted_boxes(*SIZE, [(10, 20, 60, 70)])))
    shapes = "".join(
        f'<box frame="{frame}" outside="{outside}" occluded="0" keyframe="1" xtl="{10 + frame}" ytl="20" xbr="60" '
        f'ybr="70" z_order="0"></box>'
        for frame, outside in ((0, 0), (1, 0), (2, 1))
    )
    path = write(tmp_path / "in/annotations.xml", xml(f'<track id="0" label="apple" source="manual">{shapes}</track>'))
    converted(tmp_path / "in", tmp_path / "out")
    told = {name[-5:-4]: record["image/object/bbox/xmin"] for name, record in by_name(tmp_path / "out").items()}
    assert told == {"0": pytest.approx([10 / 160]), "1": pytest.approx([11 / 160]), "2": []}
    account = account_of(CvatFormat(), path)
    assert (account.found[ANNOTATIONS], account.uses(ANNOTATIONS, "object")) == (3, 2)


def test_a_frame_without_its_picture_is_told(tmp_path: Path) -> None:
    shape = '<box frame="7" outside="0" occluded="0" xtl="1" ytl="2" xbr="3" ybr="4"/>'
    write(tmp_path / "in/frame_000001.png", jpeg(painted_boxes(*SIZE, [])))
    path = write(tmp_path / "in/annotations.xml", xml(f'<track id="0" label="apple">{shape}</track>'))
    converted(path, tmp_path / "out", max_rejects="90%")
    ((found),) = findings(tmp_path / "out")
    assert (found["code"], found["uri"][-16:]) == ("missing_file", "frame_000007.PNG")


@pytest.mark.parametrize(
    ("shape", "code"),
    [
        ('<box label="apple" xtl="1" ytl="2" xbr="3"/>', "bad_annotation"),
        ('<box label="apple" xtl="1" ytl="2" xbr="3" ybr="inf"/>', "bad_annotation"),
        ('<polygon label="apple" points="1,2;3"/>', "bad_annotation"),
        ('<polygon label="apple"/>', "bad_annotation"),
        ('<mask label="apple" rle="1, 2" left="0" top="0" width="3" height="3"/>', "bad_mask"),
        ('<mask label="apple" rle="1, x" left="0" top="0" width="1" height="1"/>', "bad_mask"),
        ('<mask label="apple" rle="-1, 2" left="0" top="0" width="1" height="1"/>', "bad_mask"),
        ('<tag label=" "/>', "missing_label"),
    ],
)
def test_what_cannot_be_right_is_a_reject_with_its_line(tmp_path: Path, shape: str, code: str) -> None:
    path = write(tmp_path / "annotations.xml", xml(image("a.jpg", shape), image("b.jpg")))
    items = read_items(CvatFormat(), path)[1]
    ((found, message),) = rejects(items)
    assert (found, "line 7" in message) == (code, True)
    assert sum(isinstance(item, Row) for item in items) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<annotations><version>1.1</version><image", "line 1"),
        ('<!DOCTYPE a [<!ENTITY x "y">]><annotations><version/></annotations>', "entity"),
        ("<annotations><version/><object/></annotations>", "<object>"),
        ('<annotations><version/><track label="a"><box frame="x"/></track></annotations>', "frame"),
    ],
)
def test_a_damaged_file_is_an_error_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    path = write(tmp_path / "annotations.xml", text)
    with pytest.raises(ManifestError, match=told):
        read_items(CvatFormat(), path)


def test_two_pictures_that_could_be_meant_are_a_reject(tmp_path: Path) -> None:
    for folder in "ab":
        write(tmp_path / folder / "x.jpg", "pixels")
    path = write(tmp_path / "annotations.xml", xml(image("x.jpg")))
    ((code, message),) = rejects(read_items(CvatFormat(), path)[1])
    assert (code, "a/x.jpg or b/x.jpg" in message) == ("bad_row", True)


def test_other_xml_is_not_taken_for_it(tmp_path: Path) -> None:
    for text in ("<annotation><filename>a</filename></annotation>", "<annotations2/>", "<a><annotations/></a>"):
        path = write(tmp_path / "x.xml", text)
        assert not CvatFormat().recognises(LocalFiles(), str(path), text.encode())
    path = write(tmp_path / "some.xml", xml(image("a.jpg")))
    assert detect_format(LocalFiles(), str(path)) == "cvat"


def test_plan_tells_what_it_was_taken_for(tmp_path: Path) -> None:
    write(tmp_path / "in/a.jpg", jpeg(painted_boxes(*SIZE, [])))
    write(tmp_path / "in/annotations.xml", xml(image("a.jpg", box(1, 2, 30, 40))))
    assert read_items(FolderFormat(), tmp_path / "in")[0].format == "cvat"
    converted(tmp_path / "in", tmp_path / "out")
    (told,) = conversion(tmp_path / "out")["inputs"]
    assert (told["format"], told["found"]) == ("cvat", {"annotations": 1, "files": 2})


def test_a_long_file_is_read_in_little_memory(tmp_path: Path) -> None:
    """The children of the outer element are let go of as they come."""
    from beam_tfrecord.manifests.text.xml_tree import iterate_children

    one = image("a.jpg", box(1, 2, 3, 4)).encode()
    data = b"<annotations>" + one * 5_000 + b"</annotations>"
    elements = iterate_children(io.BytesIO(data), "x", "annotations")
    assert sum(element.children[0].attributes["xtl"] == "1.00" for element in elements) == 5_000
