"""Folders of images and what their layouts mean."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.base import Piece
from beam_tfrecord.manifests.formats.folder import FolderFormat
from beam_tfrecord.manifests.layout import find_layout
from beam_tfrecord.options.config import ManifestConfig
from tests.contracts import ManifestFormatContract, Sample, describe, ignored_in, read, rejects_of, rows_of
from tests.local_files import LocalFiles
from tests.samples import write_files

FORMAT = FolderFormat()


def written(folder: Path, names: Sequence[str], texts: Mapping[str, str] | None = None, **options: Any) -> Sample:
    write_files(folder, {**dict.fromkeys(names, b"x"), **{n: t.encode() for n, t in (texts or {}).items()}})
    return Sample(str(folder), [], options=options)


def found_in(folder: Path, names: Sequence[str], **options: Any) -> list[tuple[str, str | None, str | None]]:
    """(image, split, label) of each row."""
    items = read(FORMAT, written(folder, names, **options))
    assert not rejects_of(items)
    return [(f["image"], f.get("split"), f.get("label")) for _, f in rows_of(items)]


class TestFolder(ManifestFormatContract):
    format = FORMAT

    def sample(self, folder: Path) -> Sample:
        names = ["dog/b.jpg", "cat/a.jpg", "cat/10.jpg", "cat/2.PNG", "cat/no_suffix", "cat/odd.xyz", "cat-2/z.gif"]
        junk = [
            *(".DS_Store", "Thumbs.db", "cat/Thumbs.db", "cat/._a.jpg", "desktop.ini", "README.md", "labels.txt"),
            *(".ipynb_checkpoints/a-checkpoint.jpg", ".ipynb_checkpoints/b.jpg", "cat/.git/x/y.jpg", "cat/.git/z.jpg"),
            *("__MACOSX/cat/a.jpg", "__MACOSX/dog/b.jpg"),
        ]
        written(folder, names + junk)
        order = ["cat-2/z.gif", "cat/10.jpg", "cat/2.PNG", "cat/a.jpg", "cat/no_suffix", "cat/odd.xyz", "dog/b.jpg"]
        rows = [(f"{folder}/{name}", {"image": name, "label": name.split("/", 1)[0]}) for name in order]
        return Sample(str(folder), rows, ignored=10)

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return written(folder, [f"100% {kind}#?/{name}" for kind in "ab" for name in names][: len(names)])

    def damaged(self, folder: Path) -> Sample:
        """A file that is no image is a row: it is told, with its bytes, when it is read."""
        written(folder, ["cat/a.jpg", "cat/notes.txt", "dog/b.jpg"])
        names = ["cat/a.jpg", "cat/notes.txt", "dog/b.jpg"]
        return Sample(str(folder), [(f"{folder}/{n}", {"image": n, "label": n.split("/", 1)[0]}) for n in names])

    def empty(self, folder: Path) -> Sample:
        return written(folder, [".DS_Store"])


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a.jpg", "b.jpg"], [("a.jpg", None, None), ("b.jpg", None, None)]),
        (["cat/a.jpg"], [("cat/a.jpg", None, "cat")]),
        (
            ["train/cat/a.jpg", "val/dog/b.jpg", "test/cat/c.jpg"],
            [("test/cat/c.jpg", "test", "cat"), ("train/cat/a.jpg", "train", "cat"), ("val/dog/b.jpg", "val", "dog")],
        ),
        (["TRAIN/cat/a.jpg", "Validation/cat/b.jpg"],
         [("TRAIN/cat/a.jpg", "train", "cat"), ("Validation/cat/b.jpg", "validation", "cat")]),
        (["train/a.jpg", "test/b.jpg"], [("test/b.jpg", "test", None), ("train/a.jpg", "train", None)]),
        (["all/cat/a.jpg", "all/dog/b.jpg"], [("all/cat/a.jpg", None, "cat"), ("all/dog/b.jpg", None, "dog")]),
        (
            ["all/images/train/cat/a.jpg", "all/images/test/dog/b.jpg"],
            [("all/images/test/dog/b.jpg", "test", "dog"), ("all/images/train/cat/a.jpg", "train", "cat")],
        ),
        (["n1/images/a.jpg", "n2/images/b.jpg"], [("n1/images/a.jpg", None, "n1"), ("n2/images/b.jpg", None, "n2")]),
        (
            ["train/n01/images/a.jpg", "train/n02/images/b.jpg"],
            [("train/n01/images/a.jpg", "train", "n01"), ("train/n02/images/b.jpg", "train", "n02")],
        ),
        (["train/img/a.jpg", "test/img/b.jpg"], [("test/img/b.jpg", "test", None), ("train/img/a.jpg", "train", None)]),
        (["images/a.jpg"], [("images/a.jpg", None, None)]),
        # Trains among other vehicles are a class.
        (["train/a.jpg", "car/b.jpg"], [("car/b.jpg", None, "car"), ("train/a.jpg", None, "train")]),
    ],
)  # fmt: skip
def test_layouts_that_are_understood(tmp_path: Path, names: list[str], expected: list[Any]) -> None:
    assert found_in(tmp_path, names) == sorted(expected)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a.jpg", "cat/b.jpg"], ["1 images in *", "1 images in cat/*"]),
        (["n01/x/a.jpg", "n01/y/b.jpg", "n02/x/c.jpg"], ["n01/x/*", "n02/x/*", "--label_pattern"]),
        (["train/cat/a.jpg", "test/b.jpg"], ["train/cat/*", "test/*", "--input"]),
        (["a/b/c/d.jpg", "b/b/c/d.jpg"], ["a/b/c/*"]),
    ],
)
def test_other_layouts_are_told_with_what_is_expected(tmp_path: Path, names: list[str], said: list[str]) -> None:
    with pytest.raises(ManifestError) as caught:
        describe(FORMAT, written(tmp_path, names))
    for text in (*said, str(tmp_path), "Expected: class/x.jpg or split/class/x.jpg"):
        assert text in str(caught.value)


def test_a_pattern_for_labels_takes_folders_of_any_depth(tmp_path: Path) -> None:
    found = found_in(tmp_path, ["a/b/apple01.jpg", "pear02.jpg"], label_pattern=r"(?P<label>[a-z]+)\d+")
    assert found == [("a/b/apple01.jpg", None, None), ("pear02.jpg", None, None)]
    found = found_in(tmp_path / "split", ["train/x/a1.jpg", "test/b2.jpg"], label_pattern=r"(?P<label>[a-z]+)\d+")
    assert found == [("test/b2.jpg", "test", None), ("train/x/a1.jpg", "train", None)]


def test_texts_beside_class_folders_are_ignored_and_inside_of_them_told(tmp_path: Path) -> None:
    names = ["cat/a.jpg", "dog/b.jpg", "classes.txt", "docs/paper.pdf", "cat/a.json", "cat/deep/er.xml"]
    items = read(FORMAT, written(tmp_path, names))
    assert [f["image"] for _, f in rows_of(items)] == ["cat/a.jpg", "cat/a.json", "dog/b.jpg"]
    assert ignored_in(items) == 3


def test_a_file_that_came_after_the_folder_was_looked_at_is_told_when_it_does_not_fit(tmp_path: Path) -> None:
    sample = written(tmp_path, ["cat/a.jpg", "dog/b.jpg"])
    source = describe(FORMAT, sample)
    written(tmp_path, ["dog/c.jpg", "new.jpg"])
    items = list(FORMAT.rows(LocalFiles(), Piece(source), ManifestConfig(input=(sample.uri,))))
    assert [f["image"] for _, f in rows_of(items)] == ["cat/a.jpg", "dog/b.jpg", "dog/c.jpg"]
    assert rejects_of(items) == [(f"{tmp_path}/new.jpg", "bad_row")]


def test_a_class_whose_name_is_no_text_is_told(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(folder)
    Path(os.fsdecode(folder), "a.jpg").write_bytes(b"x")
    items = read(FORMAT, written(tmp_path, ["dog/b.jpg"]))
    assert [f["image"] for _, f in rows_of(items)] == ["dog/b.jpg"]
    assert [item.finding.code for item in items if isinstance(item, RejectedRow)] == ["bad_row"]


# ---------------------------------------------------------------------------------------------------------------------
# Folders with a manifest in them


def test_unlabelled_images_with_one_manifest_are_read_by_it(tmp_path: Path) -> None:
    table = {"metadata.csv": "file_name,label\nimages/a.jpg,cat\nimages/b.jpg,dog\n", "stats.csv": "mean,std\n1,2\n"}
    source = describe(FORMAT, written(tmp_path, ["images/a.jpg", "images/b.jpg"], table))
    assert (source.format, source.uri, source.base) == ("csv", f"{tmp_path}/metadata.csv", str(tmp_path))
    assert "metadata.csv" in source.details["found"]


def test_class_folders_are_read_as_such_whatever_lies_beside_them(tmp_path: Path) -> None:
    table = {"labels.csv": "image,label\ncat/a.jpg,1\n"}
    items = read(FORMAT, written(tmp_path, ["cat/a.jpg", "dog/b.jpg"], table))
    assert [(f["image"], f["label"]) for _, f in rows_of(items)] == [("cat/a.jpg", "cat"), ("dog/b.jpg", "dog")]
    assert ignored_in(items) == 1


def test_a_manifest_of_other_images_is_no_manifest_of_the_folder(tmp_path: Path) -> None:
    source = describe(FORMAT, written(tmp_path, ["a.jpg"], {"data.csv": "image,label\nz.jpg,cat\n"}))
    assert source.format == "folder"


def test_asking_for_a_folder_leaves_manifests_alone(tmp_path: Path) -> None:
    sample = written(tmp_path, ["a.jpg"], {"data.csv": "image,label\na.jpg,cat\n"}, format="folder")
    assert describe(FORMAT, sample).format == "folder"


def test_several_manifests_are_a_question(tmp_path: Path) -> None:
    tables = {"train_1.csv": "image,label\na.jpg,cat\n", "train_2.csv": "image,label\nb.jpg,cat\n"}
    with pytest.raises(ManifestError, match=r"train_1.csv, train_2.csv.*--input .*train_1.csv --input .*train_2.csv"):
        describe(FORMAT, written(tmp_path, ["a.jpg", "b.jpg"], tables))


def test_a_manifest_whose_first_images_cannot_be_used_is_read_all_the_same(tmp_path: Path) -> None:
    document = {
        "images": [{"id": number, "file_name": f"{number}.jpg"} for number in range(9)],
        "annotations": [{"id": n, "image_id": n, "category_id": 7, "bbox": [1, 1, 2, 2]} for n in range(9)],
        "categories": [{"id": 1, "name": "cat"}],
    }
    names = [f"{number}.jpg" for number in range(9)]
    source = describe(FORMAT, written(tmp_path, names, {"labels.json": json.dumps(document)}))
    assert (source.format, source.uri) == ("coco", f"{tmp_path}/labels.json")


def test_a_folder_of_manifests_only_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"no images, but a.parquet, b.parquet.*/\*.parquet"):
        describe(FORMAT, written(tmp_path, ["a.parquet", "b.parquet"]))


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    written(tmp_path, ["a.jpg"])
    with pytest.raises(ManifestError, match="is a file, not a folder"):
        describe(FORMAT, Sample(f"{tmp_path}/a.jpg", []))


def test_the_folder_is_walked_as_a_stream(tmp_path: Path) -> None:
    """Rows come before the walk is over, and nothing is kept of them."""
    source = describe(FORMAT, written(tmp_path, [f"c{n % 3}/{n:03}.jpg" for n in range(30)]))

    class Endless(LocalFiles):
        def walk(self, uri: str) -> Any:
            yield from super().walk(uri)
            raise AssertionError("walked to the end")

    rows = FORMAT.rows(Endless(), Piece(source), ManifestConfig(input=("x",)))
    assert all(isinstance(next(rows), Row) for _ in range(30))


def test_a_layout_says_what_it_is() -> None:
    counts = {("data", "train", "cat"): 3, ("data", "test", "dog"): 1}
    layout = find_layout(counts, "x")
    assert str(layout) == "folder/split/class/image"
    assert layout.place(("data", "train", "cat")) == ("train", "cat")
    assert layout.class_count(counts) == 2
    assert not layout.fits(("data", "train"))


@pytest.mark.parametrize(
    ("paths", "told"),
    [
        (["a-0.tar", "a-1.tar"], "--input '{folder}/*.tar'"),
        (["train/0.tar", "val/0.tar"], "--input 'train={folder}/train/*.tar' --input 'val={folder}/val/*.tar'"),
        (["x/0.tar", "x/1.zip"], "--input '{folder}/x/*'"),
        (["0.tar.gz"], "--input '{folder}/*.gz'"),
    ],
)
def test_a_folder_of_archives_is_refused_with_what_reads_them(tmp_path: Path, paths: list[str], told: str) -> None:
    sample = written(tmp_path, [*paths, "README.md"])
    with pytest.raises(ManifestError) as caught:
        describe(FORMAT, sample)
    assert str(caught.value).endswith(told.format(folder=tmp_path))


def test_an_archive_among_images_is_a_row_like_them(tmp_path: Path) -> None:
    assert [image for image, _, _ in found_in(tmp_path, ["a.jpg", "b.tar"])] == ["a.jpg", "b.tar"]
