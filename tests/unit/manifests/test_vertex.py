from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.annotations.boxes import BoxesKind
from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import AnnotationError
from beam_tfrecord.manifests.formats.vertex import VertexFormat
from tests.annotation_tools import parse, read_items, rejects, write
from tests.local_files import LocalFiles

FORMAT = VertexFormat()


def rows_of(tmp_path: Path, text: str, **named: Any) -> list[Any]:
    return read_items(FORMAT, write(tmp_path / "import.csv", text), **named)[1]


def test_labels_and_splits(tmp_path: Path) -> None:
    items = rows_of(
        tmp_path,
        "training,gs://b/a.jpg,cat\n"
        "VALIDATION,gs://b/b.jpg,cat,dog\n"
        "TEST,gs://b/c.jpg\n"
        "UNASSIGNED,gs://b/d.jpg,dog\n"
        ",gs://b/e.jpg,dog\n"
        "\n"
        'gs://b/f.jpg,"a, b"\n'
        "TRAIN,gs://b/g.jpg,cat\n",
    )
    assert [(item.fields.get("split"), item.fields["image"], item.fields.get("label")) for item in items] == [
        ("train", "gs://b/a.jpg", "cat"),
        ("validation", "gs://b/b.jpg", ["cat", "dog"]),
        ("test", "gs://b/c.jpg", None),
        (None, "gs://b/d.jpg", "dog"),
        (None, "gs://b/e.jpg", "dog"),
        (None, "gs://b/f.jpg", "a, b"),
        ("train", "gs://b/g.jpg", "cat"),
    ]
    assert [item.origin.rpartition(":")[2] for item in items] == ["1", "2", "3", "4", "5", "7", "8"]


def test_local_paths_start_from_the_file_or_the_option(tmp_path: Path) -> None:
    path = write(tmp_path / "import.csv", "a.jpg,cat\n")
    assert read_items(FORMAT, path)[0].base == str(tmp_path)
    assert read_items(FORMAT, path, images="/data")[0].base == "/data"


@pytest.mark.parametrize(
    "corners",
    ["0.1,0.2,0.5,0.2,0.5,0.6,0.1,0.6", "0.1,0.2,,,0.5,0.6,,", "0.1,0.2,,,0.5,0.6", ",,0.5,0.2,,,0.1,0.6"],
)
def test_boxes_of_one_image_are_one_row_in_every_form_of_corners(tmp_path: Path, corners: str) -> None:
    items = rows_of(
        tmp_path,
        f"TEST,gs://b/a.jpg,cat,{corners}\nTEST,gs://b/b.jpg,,,,,,,,,\nTEST,gs://b/a.jpg,dog,0,0,,,1,1,,\n",
    )
    assert [(item.fields["image"], len(item.fields["boxes"]), item.source_rows) for item in items] == [
        ("gs://b/a.jpg", 2, 2),
        ("gs://b/b.jpg", 0, 1),
    ]
    first, second = parse(BoxesKind(), items[0].fields).objects
    assert (first.name, tuple(first.box), first.normalized) == ("cat", (0.1, 0.2, 0.5, 0.6), True)
    assert (second.name, tuple(second.box)) == ("dog", (0, 0, 1, 1))
    assert items[0].fields["split"] == "test"


def test_a_box_without_two_opposite_corners_is_told_with_its_line(tmp_path: Path) -> None:
    items = rows_of(tmp_path, "gs://b/a.jpg,cat,0,0,,,1,1,,\ngs://b/b.jpg,cat,0.1,0.2,0.5,0.2,,,,\n")
    with pytest.raises(AnnotationError, match=r"import\.csv:2"):
        parse(BoxesKind(), items[1].fields)


def test_lines_that_are_none_are_rejects(tmp_path: Path) -> None:
    items = rows_of(tmp_path, 'TEST,gs://b/a.jpg,cat\nTEST,"gs://b/b.jpg"x,cat\nTEST, ,cat\n')
    assert [code for code, _ in rejects(items)] == ["bad_row", "bad_row"]
    assert sum(isinstance(item, Row) for item in items) == 1


ML_USE = {"aiplatform.googleapis.com/ml_use": "validation"}


def test_json_lines(tmp_path: Path) -> None:
    lines = [
        {
            "imageGcsUri": "gs://b/a.jpg",
            "classificationAnnotation": {"displayName": "cat"},
            "dataItemResourceLabels": ML_USE,
        },
        {"imageGcsUri": "gs://b/b.jpg", "classificationAnnotations": [{"displayName": "cat"}, {"displayName": "dog"}]},
        {
            "imageGcsUri": "gs://b/c.jpg",
            "boundingBoxAnnotations": [{"displayName": "cat", "xMin": "0.1", "yMin": 0.2, "xMax": 0.3, "yMax": 0.4}],
        },
        {"imageGcsUri": "gs://b/d.jpg", "boundingBoxAnnotations": []},
        {"imageGcsUri": "gs://b/e.jpg"},
    ]
    text = "\n".join(json.dumps(line) for line in lines)
    items = rows_of(tmp_path, text)
    assert items[0].fields == {"image": "gs://b/a.jpg", "label": "cat", "split": "validation"}
    assert items[1].fields == {"image": "gs://b/b.jpg", "label": ["cat", "dog"]}
    (box,) = parse(BoxesKind(), items[2].fields).objects
    assert (box.name, tuple(box.box), box.normalized) == ("cat", (0.1, 0.2, 0.3, 0.4), True)
    assert items[3].fields["boxes"] == []
    assert items[4].fields == {"image": "gs://b/e.jpg"}


@pytest.mark.parametrize(
    "line",
    ["{", "[1]", '{"a": 1}', '{"imageGcsUri": "gs://b/a.jpg", "boundingBoxAnnotations": [1]}', '{"imageGcsUri": 5}'],
)
def test_json_lines_that_are_none_are_rejects(tmp_path: Path, line: str) -> None:
    items = rows_of(tmp_path, '{"imageGcsUri": "gs://b/x.jpg"}\n' + line)
    ((code, _),) = rejects(items)
    assert code == "bad_row"
    assert items[1].finding.origin.endswith("import.csv:2")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TRAIN,gs://b/a.jpg,cat\nTEST,gs://b/b.jpg,dog\n", True),
        ("gs://b/a.jpg,cat,0,0,,,1,1,,\n", True),
        ('{"imageGcsUri": "gs://b/a.jpg"}\n', True),
        ("split,image_uri,label\nTRAIN,gs://b/a.jpg,cat\n", False),
        ("a.jpg,cat\n", False),
        ('{"image": "gs://b/a.jpg"}\n', False),
        ("", False),
    ],
)
def test_recognised_by_content(text: str, expected: bool) -> None:
    assert FORMAT.recognises(LocalFiles(), "x.csv", text.encode()) is expected
