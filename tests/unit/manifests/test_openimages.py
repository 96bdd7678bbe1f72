from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beam_tfrecord.annotations.boxes import BoxesKind
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests import detect_format
from beam_tfrecord.manifests.formats.openimages import OpenImagesFormat
from beam_tfrecord.manifests.picture_labels import ANNOTATIONS
from tests.annotation_tools import account_of, parse, pixels, read_items, rejects, write
from tests.end_to_end.datasets import converted, records, texts
from tests.local_files import LocalFiles
from tests.samples import jpeg, painted_boxes, png

FORMAT = OpenImagesFormat()
HEADER = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside"
LINES = [
    HEADER,
    "0001,xclick,/m/01,1,0.1,0.5,0.2,0.6,0,1,0,-1,0",
    "0002,xclick,/m/02,1,0,1,0,1,0,0,0,0,0",
    "0001,xclick,/m/03,1,0.3,0.4,0.3,0.4,1,0,1,0,0",
]


def test_boxes_of_one_image_are_one_row_with_names_and_attributes(tmp_path: Path) -> None:
    write(
        tmp_path / "oidv7-class-descriptions-boxable.csv", 'LabelName,DisplayName\n/m/01,Tortoise\n/m/02,"Cat, big"\n'
    )
    write(tmp_path / "oidv7-class-descriptions.csv", "/m/01,Other\n")
    source, items = read_items(FORMAT, write(tmp_path / "boxes.csv", "\n".join(LINES)), images="/data/train")
    assert source.base == "/data/train"
    assert [(item.fields["image"], item.fields["id"], item.source_rows) for item in items] == [
        ("0001.jpg", "0001", 2),
        ("0002.jpg", "0002", 1),
    ]
    first, second = parse(BoxesKind(), items[0].fields).objects
    assert (first.name, tuple(first.box), first.normalized) == ("Tortoise", (0.1, 0.2, 0.5, 0.6), True)
    assert first.attributes == {
        "confidence": 1.0,
        "occluded": 0,
        "truncated": 1,
        "group_of": 0,
        "depiction": -1,
        "inside": 0,
    }
    assert second.name == "/m/03"
    assert second.origin == f"{tmp_path}/boxes.csv:4"
    assert parse(BoxesKind(), items[1].fields).objects[0].name == "Cat, big"


def test_the_file_that_names_the_classes_is_told(tmp_path: Path) -> None:
    for name in ("oidv7-class-descriptions-boxable.csv", "oidv7-class-descriptions.csv"):
        write(tmp_path / name, "/m/01,Tortoise\n")
    source, _ = read_items(FORMAT, write(tmp_path / "boxes.csv", "\n".join(LINES)))
    assert ("names of the classes", f"{tmp_path}/oidv7-class-descriptions-boxable.csv") in [
        decision[:2] for decision in source.decisions
    ]


@pytest.mark.parametrize("line", ["/m/02", "/m/02,Cat,big"])
def test_a_line_that_is_no_code_and_name_is_no_class_without_a_name(tmp_path: Path, line: str) -> None:
    write(tmp_path / "class-descriptions.csv", f"/m/01,Tortoise\n{line}\n")
    with pytest.raises(ManifestError, match=r"class-descriptions.csv:2 is no code and name"):
        read_items(FORMAT, write(tmp_path / "boxes.csv", "\n".join(LINES)))


def test_older_files_with_fewer_columns_are_read(tmp_path: Path) -> None:
    text = "ImageID,LabelName,XMin,XMax,YMin,YMax\r\n0001,/m/01,0,1,0,1\r\n"
    _, items = read_items(FORMAT, write(tmp_path / "boxes.csv", text))
    assert parse(BoxesKind(), items[0].fields).objects[0].attributes == {}


def test_lines_that_are_none_are_rejects(tmp_path: Path) -> None:
    _, items = read_items(
        FORMAT, write(tmp_path / "boxes.csv", "\n".join([*LINES, "0003,x", ",x,/m/01,1,0,1,0,1,0,0,0,0,0"]))
    )
    assert [code for code, _ in rejects(items)] == ["bad_row", "bad_row"]
    assert len(items) == 4


def test_a_file_without_the_columns_ends_the_job(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="no column XMin, YMin"):
        read_items(FORMAT, write(tmp_path / "labels.csv", "ImageID,Source,LabelName,Confidence,XMax,YMax\n"))


def test_recognised_by_its_header() -> None:
    assert FORMAT.recognises(LocalFiles(), "x.csv", "\n".join(LINES).encode())
    assert not FORMAT.recognises(LocalFiles(), "x.csv", b"filename,width,height,class,xmin,ymin,xmax,ymax\n")


# ---------------------------------------------------------------------------------------------------------------------
# Labels of images, and masks


LABELS = "ImageID,Source,LabelName,Confidence\n"
MASKS = "MaskPath,ImageID,LabelName,BoxID,BoxXMin,BoxXMax,BoxYMin,BoxYMax,PredictedIoU,Clicks\n"


def test_labels_of_an_image_are_those_that_are_there(tmp_path: Path) -> None:
    text = LABELS + "a,verification,/m/1,1\na,verification,/m/2,0\nb,verification,/m/2,0\na,machine,/m/3,0.7\n"
    path = write(tmp_path / "train-annotations-human-imagelabels.csv", text)
    write(tmp_path / "class-descriptions.csv", "/m/1,Fox\n")
    assert detect_format(LocalFiles(), str(path)) == "openimages"
    source, items = read_items(FORMAT, path)
    assert [(item.fields["image"], item.fields["label"]) for item in items] == [
        ("a.jpg", ["Fox", "/m/3"]),
        ("b.jpg", []),
    ]
    account = account_of(FORMAT, path)
    assert (account.found[ANNOTATIONS], account.uses(ANNOTATIONS), account.unused(ANNOTATIONS)) == (4, 2, 2)
    assert any("above 0" in decision.value for decision in source.decisions)


def test_labels_become_several_labels_of_records(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / f"in/{name}.jpg", jpeg(painted_boxes(40, 30, [])))
    write(tmp_path / "in/labels.csv", LABELS + "a,verification,/m/1,1\na,verification,/m/2,1\nb,verification,/m/1,0\n")
    converted(tmp_path / "in/labels.csv", tmp_path / "out")
    found = {record["image/filename"][0]: texts(record) for record in records(tmp_path / "out")}
    assert found == {b"a.jpg": ["/m/1", "/m/2"], b"b.jpg": []}


@pytest.mark.parametrize(
    ("line", "code"), [("a,x,/m/1,much", "bad_annotation"), ("a,x,,1", "missing_label"), (",x,/m/1,1", "bad_row")]
)
def test_labels_that_cannot_be_right_are_rejects(tmp_path: Path, line: str, code: str) -> None:
    _, items = read_items(FORMAT, write(tmp_path / "labels.csv", f"{LABELS}{line}\n"))
    assert [code for code, _ in rejects(items)] == [code]


@pytest.mark.parametrize("scale", [1, 2])
def test_masks_belong_to_their_images_at_any_size(tmp_path: Path, scale: int) -> None:
    """Masks of Open Images have the size of the original pictures, which are published smaller."""
    write(tmp_path / "in/images/a.jpg", jpeg(painted_boxes(40, 30, [(10, 5, 30, 25)])))
    mask = np.zeros((30 * scale, 40 * scale), np.uint8)
    mask[5 * scale : 25 * scale, 10 * scale : 30 * scale] = 255
    write(tmp_path / "in/masks/0/a_m01_x.png", png(Image.fromarray(mask)))
    path = write(tmp_path / "in/masks.csv", f"{MASKS}a_m01_x.png,a,/m/01,x,0.2,0.8,0.1,0.9,0.0,\n")
    assert detect_format(LocalFiles(), str(path)) == "openimages"
    converted(path, tmp_path / "out", images=str(tmp_path / "in/images"))
    (record,) = records(tmp_path / "out")
    assert texts(record, "image/object/class/text") == ["/m/01"]
    sides = [record[f"image/object/bbox/{side}"][0] for side in ("xmin", "ymin", "xmax", "ymax")]
    assert sides == pytest.approx([10 / 40, 5 / 30, 30 / 40, 25 / 30])
    assert np.array_equal(pixels(record["image/object/mask"][0]) > 0, mask[::scale, ::scale] > 0)


def test_a_mask_that_is_not_there_is_a_reject_that_says_where_to_put_it(tmp_path: Path) -> None:
    write(tmp_path / "b.png", b"no picture")
    lines = "a.png,a,/m/01,x,0,1,0,1,0.0,\nb.png,b,/m/01,x,0,1,0,1,0.0,\n"
    _, items = read_items(FORMAT, write(tmp_path / "masks.csv", MASKS + lines))
    (first, second) = rejects(items)
    assert (first[0], "unpack the masks there" in first[1]) == ("bad_mask", True)
    assert (second[0], "cannot be read" in second[1]) == ("bad_mask", True)
