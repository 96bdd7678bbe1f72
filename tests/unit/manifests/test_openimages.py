from __future__ import annotations

from pathlib import Path

import pytest

from beam_tfrecord.annotations.boxes import BoxesKind
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.formats.openimages import OpenImagesFormat
from tests.annotation_tools import parse, read_items, rejects, write
from tests.local_files import LocalFiles

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
