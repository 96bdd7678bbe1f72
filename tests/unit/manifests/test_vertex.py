from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.annotations.boxes import BoxesKind
from beam_tfrecord.core.account import Decision
from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import AnnotationError
from beam_tfrecord.manifests.formats.vertex import VertexFormat
from beam_tfrecord.options.config import InputSpec, ManifestConfig
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


def sides(*boxes: dict[str, float]) -> str:
    """Lines with one box each."""
    lines = [
        {"imageGcsUri": f"{number}.jpg", "boundingBoxAnnotations": [{"displayName": "hen", **box}]}
        for number, box in enumerate(boxes)
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


def told_of(path: Path) -> tuple[list[Any], list[Decision]]:
    files, config = LocalFiles(), ManifestConfig(input=(InputSpec(str(path)),))
    source = FORMAT.describe(files, str(path), None, config)
    items = [item for piece in FORMAT.pieces(files, source) for item in FORMAT.rows(files, piece, config)]
    boxes = [item.fields["boxes"][0]["bbox"] for item in items if isinstance(item, Row)]
    return boxes, [item for item in items if isinstance(item, Decision)]


def test_a_lower_side_that_protobuf_leaves_out_is_zero(tmp_path: Path) -> None:
    whole = {"xMin": 0.1, "yMin": 0.2, "xMax": 0.5, "yMax": 0.9}
    text = sides({"yMin": 0.2, "xMax": 0.5, "yMax": 0.9}, {"xMax": 0.5, "yMax": 0.9}, whole)
    boxes, decisions = told_of(write(tmp_path / "import.jsonl", text))
    assert boxes == [[0, 0.2, 0.5, 0.9], [0, 0, 0.5, 0.9], [0.1, 0.2, 0.5, 0.9]]
    assert decisions == [
        Decision("xMin and yMin that are not there (3)", "0", "as in the JSON of protobuf no line writes one that is 0")
    ]
    assert told_of(write(tmp_path / "import.jsonl", sides(whole)))[1] == []


@pytest.mark.parametrize("zero", ["0", "0.0", "-0.000", "0e0"])
def test_where_a_line_writes_a_zero_side_one_that_is_not_there_is_missing(tmp_path: Path, zero: str) -> None:
    text = sides({"yMin": 0.2, "xMax": 0.5, "yMax": 0.9}, {"xMin": 7, "yMin": 0.3, "xMax": 0.5, "yMax": 0.9})
    boxes, decisions = told_of(write(tmp_path / "import.jsonl", text.replace("7,", f" {zero} ,")))
    assert boxes[0] == [None, 0.2, 0.5, 0.9]
    assert [(told.value, told.why) for told in decisions] == [("missing", "line 2 writes one that is 0")]
    with pytest.raises(AnnotationError):
        parse(BoxesKind(), {"boxes": [{"class": "hen", "bbox": boxes[0], "normalized": True}]})


def test_an_upper_side_or_one_that_is_null_is_never_taken_for_zero(tmp_path: Path) -> None:
    text = sides({"xMin": 0.1, "yMin": 0.2, "yMax": 0.9}) + sides({"xMax": 0.5, "yMax": 0.9, "yMin": 0.1}).replace(
        '"xMax"', '"xMin": null, "xMax"'
    )
    boxes, decisions = told_of(write(tmp_path / "import.jsonl", text))
    assert boxes == [[0.1, 0.2, None, 0.9], [None, 0.1, 0.5, 0.9]]
    assert decisions == []
