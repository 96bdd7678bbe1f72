"""Lists of paths."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import AmbiguousManifestError, ConfigError
from beam_tfrecord.manifests.formats.folder import FolderFormat
from beam_tfrecord.manifests.formats.path_list import ListFormat, label_form
from beam_tfrecord.manifests.leftovers import Reads
from tests.annotation_tools import read_items, rejects, write
from tests.contracts import ManifestFormatContract, Sample, describe, read, rows_of

FORMAT = ListFormat(piece_bytes=20, block_bytes=8)


def written(folder: Path, text: str, name: str = "train.txt") -> Sample:
    path = folder / name
    path.write_bytes(text.encode())
    return Sample(str(path), [])


class TestList(ManifestFormatContract):
    format = FORMAT

    def sample(self, folder: Path) -> Sample:
        sample = written(folder, "cat/a.jpg 0\nmy dog/b 2.jpg 12\n\n  c.JPEG\t007\r\nd.png 1")
        rows = [(1, "cat/a.jpg", "0"), (2, "my dog/b 2.jpg", "12"), (4, "  c.JPEG", "007"), (5, "d.png", "1")]
        return Sample(sample.uri, [(f"{sample.uri}:{n}", {"image": i, "label": k}) for n, i, k in rows])

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        return written(folder, "".join(f"{name}\n" for name in names))

    def damaged(self, folder: Path) -> Sample:
        sample = written(folder, "a.jpg 0\nb\0.jpg 1\nc.jpg\n")
        rows = [(1, "a.jpg", "0"), (3, "c.jpg", "")]  # the empty label is told when the row is parsed
        return Sample(
            sample.uri,
            [(f"{sample.uri}:{n}", {"image": i, "label": k}) for n, i, k in rows],
            [(f"{sample.uri}:2", "bad_row")],
        )

    def empty(self, folder: Path) -> Sample:
        return written(folder, "\n\n")


@pytest.mark.parametrize(
    ("lines", "form"),
    [
        (["a.jpg", "b c.jpg", "photo 2.jpg"], ""),
        (["a.jpg 1", "b.jpg 0"], "number"),
        (["a.jpg -1"], "number"),
        (["no_suffix 1", "other 2"], "number"),
        (["no_suffix 1", "other"], ""),  # may as well be a name with a blank
        (["a.jpg cat", "b c.png\tbig dog"], "name"),
        (["a.jpg cat", "b.jpg"], ""),
        (["a.jpg x.jpg", "b.jpg"], ""),
        (["a.jpg 1", "b.jpg"], "number"),
        ([], ""),
    ],
)
def test_labels_are_told_from_paths_with_blanks(lines: list[str], form: str) -> None:
    assert label_form(lines) == form


def test_paths_without_labels(tmp_path: Path) -> None:
    sample = written(tmp_path, "a b.jpg\nc.jpg \n")
    assert [fields for _, fields in rows_of(read(FORMAT, sample))] == [{"image": "a b.jpg"}, {"image": "c.jpg"}]


def test_a_list_has_no_columns(tmp_path: Path) -> None:
    sample = Sample(written(tmp_path, "a.jpg 1\n").uri, [], options={"label_column": "label"})
    with pytest.raises(ConfigError, match="--label_column"):
        describe(FORMAT, sample)


# ---------------------------------------------------------------------------------------------------------------------
# Lists of other tools


def listed(folder: Path, text: str, name: str = "train.txt", **options: Any) -> list[Any]:
    return read_items(ListFormat(), write(folder / name, text), **options)[1]


def test_boxes_behind_the_paths_as_keras_yolo3_has_them(tmp_path: Path) -> None:
    text = "my pix/a.jpg 10,12,40,48,0 50,5,70,30,1\nb.jpg 8,8,30,30,1\nc.jpg\n"
    found = listed(tmp_path, text)
    assert [item.fields["image"] for item in found] == ["my pix/a.jpg", "b.jpg", "c.jpg"]
    assert [[(box["bbox"], box["class"]) for box in item.fields["boxes"]] for item in found] == [
        [(["10", "12", "40", "48"], "0"), (["50", "5", "70", "30"], "1")],
        [(["8", "8", "30", "30"], "1")],
        [],
    ]


def test_boxes_that_are_no_corners_are_refused_until_they_are_named(tmp_path: Path) -> None:
    with pytest.raises(AmbiguousManifestError, match="--box_format xywh"):
        listed(tmp_path, "a.jpg 100,50,20,30,0\n")
    (item,) = listed(tmp_path, "a.jpg 100,50,20,30,0\n", box_format="xywh")
    assert item.fields["boxes"][0]["bbox_xywh"] == ["100", "50", "20", "30"]


@pytest.mark.parametrize("rest", ["1,2,3,4", "1 2 3 4 0", "0.1 0.2 0.3 0.4", "1,2,3,4,0,0.9", "3 7", "0 1 0 0 1"])
def test_other_numbers_behind_a_path_are_told(tmp_path: Path, rest: str) -> None:
    with pytest.raises(AmbiguousManifestError, match=r"train\.txt: behind 'b\.jpg' stand several numbers"):
        listed(tmp_path, f"a.jpg 0\nb.jpg {rest}\n")


def test_lists_of_mxnet(tmp_path: Path) -> None:
    items = listed(tmp_path, "0\t1.000000\ty1.jpg\n7\t0.000000\tmy y2.jpg\n", "train.lst")
    assert [item.fields for item in items] == [
        {"image": "y1.jpg", "label": "1"},
        {"image": "my y2.jpg", "label": "0"},
    ]
    text = "0\t4\t5\t80\t60\t1\t.1\t.2\t.5\t.6\t0\t.3\t.3\t.4\t.4\ta.jpg\n1\t4\t5\t80\t60\t-1\t-1\t-1\t-1\t-1\tb.jpg\n"
    first, second = listed(tmp_path, text, "train.lst")
    assert [(box["class"], box["bbox"], box["normalized"]) for box in first.fields["boxes"]] == [
        ("1", [".1", ".2", ".5", ".6"], True),
        ("0", [".3", ".3", ".4", ".4"], True),
    ]
    assert second.fields == {"image": "b.jpg", "boxes": []}
    with pytest.raises(AmbiguousManifestError, match="--columns"):
        listed(tmp_path, "0\t1\t0\t1\ta.jpg\n", "train.lst")


def test_a_list_of_darknet_is_no_list_of_images_alone(tmp_path: Path) -> None:
    write(tmp_path / "data/a.txt", "0 .5 .5 .1 .1")
    with pytest.raises(AmbiguousManifestError, match=r"a\.txt: say --format yolo .* --format list"):
        listed(tmp_path, "data/b.jpg\ndata/a.jpg\n")
    assert len(listed(tmp_path, "data/b.jpg\ndata/a.jpg\n", format="list")) == 2


def test_line_ends_of_old_macs(tmp_path: Path) -> None:
    assert [item.fields["label"] for item in listed(tmp_path, "a.jpg 0\rb.jpg 1\r")] == ["0", "1"]


def test_a_folder_of_lists_of_keras_yolo3_is_read_with_the_names_of_its_classes(tmp_path: Path) -> None:
    """As Roboflow exports it: a list and the names of the classes in the folder of each split."""
    for split, line in (("train", "a.jpg 10,12,40,48,1"), ("valid", "b.jpg 8,8,30,30,0 9,9,20,20,2")):
        write(tmp_path / split / "_annotations.txt", line + "\n")
        write(tmp_path / split / "_classes.txt", "fox\nhen\n")
        write(tmp_path / split / f"{line[0]}.jpg", "pixels")
    source, items = read_items(FolderFormat(), tmp_path)
    assert (source.labels, source.category_ids) == (("fox", "hen"), (0, 1))
    (row,) = [item for item in items if isinstance(item, Row)]
    assert (row.fields["image"], row.fields["split"]) == ("train/a.jpg", "train")
    assert [box["class"] for box in row.fields["boxes"]] == ["hen"]
    assert rejects(items) == [("unknown_category", "the class '2' is none of the 2 of _classes.txt")]
    assert f"{tmp_path}/train/_classes.txt" in Reads.of(source.details, "").manifests
