from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from beam_tfrecord.annotations.boxes import BoxesKind
from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import AnnotationError, ConfigError
from beam_tfrecord.manifests.tables import group_boxes
from beam_tfrecord.manifests.text.roles import find_roles
from tests.annotation_tools import Warnings, make_config, parse

HEADER = ("filename", "width", "height", "class", "xmin", "ymin", "xmax", "ymax")


def grouped(*lines: str, header: tuple[str, ...] = HEADER) -> list[Any]:
    """The rows of the lines of a table, the first of which is line 2 of t.csv."""
    roles = find_roles(header, make_config().manifest, "t.csv")
    rows: list[tuple[str, Mapping[str, Any] | str]] = []
    for number, line in enumerate(lines, start=2):
        cells = line.split(",")
        rows.append((f"t.csv:{number}", dict(zip(header, cells, strict=True)) if len(cells) == len(header) else "bad"))
    return [item for item in group_boxes(rows, roles) if isinstance(item, (Row, RejectedRow))]


def test_lines_of_one_image_are_one_row_wherever_they_stand() -> None:
    first, second = grouped("b.jpg,40,30,cat,1,2,3,4", "a.jpg,20,10,dog,5,6,7,8", "b.jpg,40,30,dog,9,9,12,12")
    assert (first.origin, first.source_rows, first.fields["image"]) == ("t.csv:2", 2, "b.jpg")
    assert first.fields["size"] == (40, 30)
    assert [(box["class"], box["bbox"], box["origin"]) for box in first.fields["boxes"]] == [
        ("cat", ["1", "2", "3", "4"], "t.csv:2"),
        ("dog", ["9", "9", "12", "12"], "t.csv:4"),
    ]
    assert (second.origin, second.source_rows) == ("t.csv:3", 1)
    assert "label" not in first.fields
    assert "notes" not in first.fields


def test_a_line_without_a_box_is_an_image_without_objects() -> None:
    (row,) = grouped("a.jpg,20,10,,,,,")
    assert row.fields["boxes"] == []
    (row,) = grouped("a.jpg,20,10,,,,,", "a.jpg,20,10,cat,1,2,3,4")
    assert len(row.fields["boxes"]) == 1


def test_sizes_that_disagree_are_told_and_the_first_one_stays() -> None:
    (row,) = grouped("a.jpg,20,10,cat,1,2,3,4", "a.jpg,21,10,cat,1,2,3,4")
    assert row.fields["size"] == (20, 10)
    warnings: Warnings = []
    parse(BoxesKind(), row.fields, warnings)
    ((code, message),) = warnings
    assert code == "size_mismatch"
    assert message.startswith("t.csv:3 says that the image has 21x10")


def test_a_size_that_is_none_is_absent() -> None:
    (row,) = grouped("a.jpg,,x,cat,1,2,3,4")
    assert "size" not in row.fields


def test_a_bad_number_is_told_with_its_line() -> None:
    (row,) = grouped("a.jpg,20,10,cat,1,2,3,4", "a.jpg,20,10,cat,1,,3,4")
    with pytest.raises(AnnotationError, match=r"t\.csv:3.*ymin is empty"):
        parse(BoxesKind(), row.fields)


def flags_of(*boxes: str) -> list[bool]:
    rows = grouped(*(f"{number}.jpg,20,10,cat,{box}" for number, box in enumerate(boxes)))
    return [parse(BoxesKind(), row.fields).objects[0].normalized for row in rows]


def test_boxes_of_a_table_are_all_fractions_or_all_pixels() -> None:
    assert flags_of("0,0,1,1", "0.25,0.5,0.5,1", "0,0,1,2", "-0.1,0,0.5,1.004") == [True] * 4
    assert flags_of("0,0,1,1", "1,2,3,4", "0,0,1,2") == [False] * 3
    assert flags_of("0,0,1,1", "0,0,0,1") == [True] * 2
    assert flags_of("0,0,1,1", "0,0,1,2") == [False] * 2


def test_splits_that_disagree_reject_the_image() -> None:
    header = (*HEADER, "split")
    found = grouped("a.jpg,20,10,cat,1,2,3,4,train", "a.jpg,20,10,cat,1,2,3,4,test", header=header)
    assert [type(row) for row in found] == [RejectedRow]
    assert found[0].source_rows == 2
    assert found[0].finding.code == "bad_row"
    assert "'test'" in found[0].finding.message
    assert "t.csv:2" in found[0].finding.message


def test_lines_that_are_none_are_rejects_of_their_own() -> None:
    found = grouped("a.jpg,20,10,cat,1,2,3,4", "a.jpg,20", ",20,10,cat,1,2,3,4", "a.jpg,20,10,cat,1,2,3,4")
    broken = [row for row in found if isinstance(row, RejectedRow)]
    assert [(row.finding.origin, row.finding.code) for row in broken] == [
        ("t.csv:3", "bad_row"),
        ("t.csv:4", "bad_row"),
    ]
    (row,) = (row for row in found if isinstance(row, Row))
    assert row.source_rows == 2


def test_attributes_are_found_by_their_usual_names() -> None:
    header = ("image", "label", "XMin", "YMin", "XMax", "YMax", "IsGroupOf", "difficult", "pose", "Confidence")
    (row,) = grouped("a.jpg,cat,1,2,3,4,1,0,Left,", header=header)
    assert parse(BoxesKind(), row.fields).objects[0].attributes == {"group_of": 1, "difficult": 0, "pose": "Left"}


def test_a_table_without_a_class_column_has_objects() -> None:
    (row,) = grouped("a.jpg,1,2,3,4", header=("image", "xmin", "ymin", "xmax", "ymax"))
    assert parse(BoxesKind(), row.fields).objects[0].name == "object"


def test_an_id_of_the_box_is_not_that_of_the_image() -> None:
    header = (*HEADER, "id")
    roles = find_roles(header, make_config(id_column="id").manifest, "t.csv")
    rows = [("t.csv:2", dict(zip(header, ["a.jpg", "", "", "cat", "1", "2", "3", "4", "box-1"], strict=True)))]
    row, *_ = group_boxes(rows, roles)
    assert isinstance(row, Row)
    assert "id" not in row.fields


def test_a_table_of_boxes_needs_images() -> None:
    with pytest.raises(ConfigError, match="--image_column"):
        grouped("1,2,3,4", header=("xmin", "ymin", "xmax", "ymax"))
