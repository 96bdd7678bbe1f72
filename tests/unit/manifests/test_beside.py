"""Label files that lie beside their images, in every arrangement that tools leave behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.core.account import FILES, LABEL_FILES
from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.beside import pair_files
from beam_tfrecord.manifests.formats.folder import FolderFormat
from beam_tfrecord.manifests.formats.voc import VocFormat
from beam_tfrecord.manifests.formats.yolo import YoloFormat
from beam_tfrecord.manifests.siblings import key_of
from tests.annotation_tools import account_of, read_items, write

XML = "<annotation><filename>{name}.jpg</filename><object><name>{label}</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>5</xmax><ymax>5</ymax></bndbox></object></annotation>"  # noqa: E501
FORMATS = {"voc": VocFormat(), "yolo": YoloFormat()}
SPLITS = {"x": "train", "y": "valid"}


def tree(root: Path, images: str, labels: str, kind: str) -> None:
    """Pictures x (a fox, in train) and y (a hen, in valid) with their labels, placed as the patterns say."""
    for number, (name, split) in enumerate(SPLITS.items()):
        write(root / images.format(split=split, name=name), "pixels")
        label = ("fox", "hen")[number]
        text = XML.format(name=name, label=label) if kind == "voc" else f"{number} 0.5 0.5 0.2 0.2\n"
        write(root / labels.format(split=split, name=name), text)
    if kind == "yolo":
        write(root / "classes.txt", "fox\nhen\n")


def told(items: list[Any]) -> dict[str, tuple[Any, Any]]:
    """(classes, split) by image."""
    rows = [item for item in items if isinstance(item, Row)]
    names = {"0": "fox", "1": "hen"}
    return {
        row.fields["image"].rpartition("/")[2]: (
            [names.get(str(box["class"]), box["class"]) for box in row.fields["boxes"]],
            row.fields.get("split"),
        )
        for row in rows
    }


ARRANGEMENTS = [
    ("{split}/{name}.jpg", "{split}/{name}"),
    ("images/{split}/{name}.jpg", "images/{split}/{name}"),
    ("images/{split}/{name}.jpg", "labels/{split}/{name}"),
    ("images/{split}/{name}.jpg", "annotations/{split}/{name}"),
    ("{split}/images/{name}.jpg", "{split}/labels/{name}"),
    ("{split}/images/{name}.jpg", "{split}/annotations/{name}"),
    ("data/{split}/images/{name}.jpg", "data/{split}/labels/{name}"),
    ("{split}/img/{name}.jpg", "{split}/ann/{name}"),
]


@pytest.mark.parametrize("kind", ["voc", "yolo"])
@pytest.mark.parametrize(("images", "labels"), ARRANGEMENTS)
@pytest.mark.parametrize("is_named", [False, True])
def test_labels_and_splits_are_found(tmp_path: Path, kind: str, images: str, labels: str, is_named: bool) -> None:
    tree(tmp_path, images, labels + (".xml" if kind == "voc" else ".txt"), kind)
    chosen = FORMATS[kind] if is_named else FolderFormat()
    source, items = read_items(chosen, tmp_path)
    assert source.format == kind
    assert told(items) == {"x.jpg": (["fox"], "train"), "y.jpg": (["hen"], "valid")}


@pytest.mark.parametrize(("images", "labels"), [("{name}.jpg", "{name}"), ("{name}.jpg", "labels/{name}")])
@pytest.mark.parametrize("kind", ["voc", "yolo"])
def test_one_folder_has_no_splits(tmp_path: Path, kind: str, images: str, labels: str) -> None:
    tree(tmp_path, images, labels + (".xml" if kind == "voc" else ".txt"), kind)
    assert told(read_items(FolderFormat(), tmp_path)[1]) == {"x.jpg": (["fox"], None), "y.jpg": (["hen"], None)}


def test_two_files_for_one_image_are_refused(tmp_path: Path) -> None:
    paths = ["annotations/x.txt", "images/x.jpg", "labels/x.txt"]
    with pytest.raises(
        ManifestError, match=r"annotations/x\.txt and labels/x\.txt could both be the labels of images/x"
    ):
        pair_files(paths, lambda path: path.endswith(".txt"), "here")


def test_a_file_beside_its_image_comes_first() -> None:
    paths = ["images/x.jpg", "images/x.txt", "labels/x.txt"]
    pairs = pair_files(paths, lambda path: path.endswith(".txt"), "here")
    assert pairs.label_of == {"images/x.jpg": "images/x.txt"}
    assert pairs.orphans == ("labels/x.txt",)


@pytest.mark.parametrize("path", ["images/a/x.jpg", "a/Labels/x.txt", "a/x.xml", "a/JPEGImages/x.png"])
def test_folders_of_either_kind_do_not_count(path: str) -> None:
    assert key_of(path) == "a/x"


def test_all_that_lies_in_a_yolo_tree_is_told(tmp_path: Path) -> None:
    tree(tmp_path, "images/{split}/{name}.jpg", "labels/{split}/{name}.txt", "yolo")
    write(tmp_path / "labels/train/gone.txt", "0 0.5 0.5 0.1 0.1")
    write(tmp_path / "images/train/empty.jpg", "pixels")
    write(tmp_path / "README.md", "hello")
    write(tmp_path / ".DS_Store", "")
    account = account_of(YoloFormat(), tmp_path)
    assert account.to_json() == {
        "found": {"files": 9, "images": 3, "label files": 3},
        "used": {
            "files": {"image": 3, "label file": 2, "manifest": 1},
            "images": {"with a label file": 2, "without a label file": 1},
            "label files": {"read": 2},
        },
        "named": {
            "files": {
                "junk": {"count": 1, "example": ".DS_Store"},
                "label file that belongs to no image": {"count": 1, "example": "labels/train/gone.txt"},
                "other files .md": {"count": 1, "example": "README.md"},
            },
            "label files": {"belongs to no image": {"count": 1, "example": "labels/train/gone.txt"}},
        },
    }


def test_texts_that_are_no_labels_leave_a_folder_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "oak/1.jpg", "pixels")
    write(tmp_path / "elm/2.jpg", "pixels")
    write(tmp_path / "notes/2.txt", "seen in May")
    source, _ = read_items(FolderFormat(), tmp_path)
    assert source.format == "folder"
    account = account_of(FolderFormat(), tmp_path)
    assert account.unused(FILES, "looks like labels") == 1
    assert LABEL_FILES not in account.found
