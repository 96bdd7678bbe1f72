"""Boxes under the names and in the forms that tools and people give them, against boxes that are known."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.annotations.boxes import BoxesKind
from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import AmbiguousManifestError, ConfigError
from beam_tfrecord.manifests import describe_rows
from beam_tfrecord.manifests.base import Piece
from beam_tfrecord.manifests.formats.folder import FolderFormat
from beam_tfrecord.manifests.formats.jsonl import JsonlFormat
from beam_tfrecord.manifests.formats.memory import MemoryFormat
from beam_tfrecord.manifests.formats.table import CsvFormat
from beam_tfrecord.options.config import ManifestConfig
from tests.annotation_tools import Warnings, parse, read_items, write
from tests.local_files import LocalFiles

WIDTH, HEIGHT = 200, 100
Box = tuple[float, float, float, float]
Line = tuple[str, Box, str]  # image, corners in pixels, class
# The first box has its right side left of its width, the last one reaches to the right of the middle.
KNOWN: list[Line] = [
    ("a.jpg", (150, 60, 170, 90), "fox"),
    ("b.jpg", (0, 10, 40, 30), "hen"),
    ("a.jpg", (5, 6, 25, 36), "hen"),
    ("c.jpg", (120, 50, 200, 100), "owl"),
]


def corners(box: Box) -> Sequence[float]:
    return box


def corner_and_size(box: Box) -> Sequence[float]:
    return (box[0], box[1], box[2] - box[0], box[3] - box[1])


def centre(box: Box) -> Sequence[float]:
    return ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2, box[2] - box[0], box[3] - box[1])


def fractions(box: Box) -> Box:
    return (box[0] / WIDTH, box[1] / HEIGHT, box[2] / WIDTH, box[3] / HEIGHT)


Form = Callable[[Box], Sequence[float]]
NAMES: list[tuple[Form, str]] = [
    (corners, "xmin ymin xmax ymax"),
    (corners, "x_min y_min x_max y_max"),
    (corners, "XMin YMin XMax YMax"),
    (corners, "bbox_xmin bbox_ymin bbox_xmax bbox_ymax"),
    (corners, "bndbox.xmin bndbox.ymin bndbox.xmax bndbox.ymax"),
    (corners, "min_x min_y max_x max_y"),
    (corners, "x1 y1 x2 y2"),
    (corners, "Roi.X1 Roi.Y1 Roi.X2 Roi.Y2"),
    (corners, "bbox_x1 bbox_y1 bbox_x2 bbox_y2"),
    (corners, "x0 y0 x1 y1"),
    (corners, "left top right bottom"),
    (corners, "box_left box_top box_right box_bottom"),
    (corners, "xtl ytl xbr ybr"),
    (corners, "x_start y_start x_end y_end"),
    (corner_and_size, "left top width height"),
    (corner_and_size, "bbox_x bbox_y bbox_width bbox_height"),
    (corner_and_size, "bbox_x bbox_y bbox_w bbox_h"),
    (corner_and_size, "xmin ymin width height"),
    (corner_and_size, "x y w h"),
    (corner_and_size, "x y width height"),
    (centre, "x_center y_center width height"),
    (centre, "cx cy w h"),
    (centre, "bbox_cx bbox_cy bbox_w bbox_h"),
]


def csv_text(rows: Sequence[Sequence[Any]]) -> str:
    from io import StringIO

    buffer = StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue()


def found(items: list[Any]) -> dict[str, list[tuple[str, Box, bool]]]:
    """(class, corners, whether they are fractions) of the objects of each image."""
    told: dict[str, list[tuple[str, Box, bool]]] = {}
    for item in items:
        assert isinstance(item, Row), item
        for thing in parse(BoxesKind(), item.fields).objects:
            told.setdefault(item.fields["image"], []).append((thing.name, tuple(thing.box), thing.normalized))
    return told


def wanted(lines: Sequence[Line], scale: Callable[[Box], Box] = lambda box: box) -> dict[str, list[Any]]:
    told: dict[str, list[Any]] = {}
    for image, box, name in lines:
        told.setdefault(image, []).append((name, pytest.approx(scale(box), abs=1e-9), scale is fractions))
    return told


def from_csv(folder: Path, rows: Sequence[Sequence[Any]], **options: Any) -> dict[str, list[tuple[str, Box, bool]]]:
    return found(read_items(CsvFormat(), write(folder / "t.csv", csv_text(rows)), **options)[1])


def from_jsonl(
    folder: Path, rows: Sequence[Mapping[str, Any]], **options: Any
) -> dict[str, list[tuple[str, Box, bool]]]:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    return found(read_items(JsonlFormat(), write(folder / "t.jsonl", text), **options)[1])


@pytest.mark.parametrize("scale", [lambda box: box, fractions], ids=["pixels", "fractions"])
@pytest.mark.parametrize(("form", "names"), NAMES, ids=[names for _, names in NAMES])
def test_boxes_under_other_names(tmp_path: Path, form: Form, names: str, scale: Callable[[Box], Box]) -> None:
    header = ["file_name", "class", *names.split()]
    rows = [[image, name, *form(scale(box))] for image, box, name in KNOWN]
    assert from_csv(tmp_path, [header, *rows]) == wanted(KNOWN, scale)
    assert from_jsonl(tmp_path, [dict(zip(header, row, strict=True)) for row in rows]) == wanted(KNOWN, scale)


@pytest.mark.parametrize(
    "spell",
    [str, json.dumps, lambda box: " ".join(map(str, box)), lambda box: f"({box[0]}, {box[1]}, {box[2]}, {box[3]})"],
)
@pytest.mark.parametrize("form", [corners, corner_and_size])
def test_four_numbers_in_one_cell(tmp_path: Path, form: Form, spell: Callable[[Any], str]) -> None:
    sized = form is corners  # the size of the images tells corners from sizes
    header = ["image", "label", "bbox", *(["image_width", "image_height"] * sized)]
    size = [WIDTH, HEIGHT] * sized
    rows = [[image, name, spell(list(form(box))), *size] for image, box, name in KNOWN]
    assert from_csv(tmp_path, [header, *rows]) == wanted(KNOWN)
    rows = [[image, name, list(form(box)), *size] for image, box, name in KNOWN]
    assert from_jsonl(tmp_path, [dict(zip(header, row, strict=True)) for row in rows]) == wanted(KNOWN)


def test_numbers_that_can_be_both_are_refused_until_they_are_named(tmp_path: Path) -> None:
    lines: list[Line] = [("a.jpg", (5, 6, 25, 36), "fox"), ("b.jpg", (8, 8, 28, 28), "hen")]
    rows = [["image", "label", "bbox"], *([image, name, list(box)] for image, box, name in lines)]
    with pytest.raises(
        AmbiguousManifestError, match=r"t\.csv: .*'bbox'.* in all 2 boxes: .*--box_format xyxy or --box_format xywh"
    ):
        from_csv(tmp_path, rows)
    assert from_csv(tmp_path, rows, box_format="xyxy") == wanted(lines)
    sized = [(image, (box[0], box[1], box[0] + box[2], box[1] + box[3]), name) for image, box, name in lines]
    assert from_csv(tmp_path, rows, box_format="xywh") == wanted(sized)
    rows[0][2] = "bbox_xyxy"
    assert from_csv(tmp_path, rows) == wanted(lines)
    rows[0][2] = "bbox_xywh"
    assert from_csv(tmp_path, rows) == wanted(sized)
    rows[0] = ["image", "label", "x", "y", "w", "h"]
    rows[1:] = [[image, name, *map(float, (50, 50, 20, 20))] for image, _, name in lines]
    with pytest.raises(AmbiguousManifestError, match=r"--box_format xywh or --box_format cxcywh"):
        from_csv(tmp_path, rows)


@st.composite
def any_lines(draw: st.DrawFn) -> list[Line]:
    lines = []
    for number in range(draw(st.integers(1, 8))):
        left, top = draw(st.integers(0, WIDTH - 3)), draw(st.integers(0, HEIGHT - 3))
        box = (left, top, draw(st.integers(left + 3, WIDTH)), draw(st.integers(top + 3, HEIGHT)))
        lines.append((f"{number}.jpg", box, "x"))
    return lines


@given(any_lines(), st.sampled_from([corners, corner_and_size]), st.booleans(), st.booleans())
def test_a_reading_is_right_or_refused(lines: list[Line], form: Form, sized: bool, in_fractions: bool) -> None:
    scale = fractions if in_fractions else lambda box: box
    config = ManifestConfig(input=("rows",))
    size = {"image_width": WIDTH, "image_height": HEIGHT} if sized else {}
    rows = [{"image": image, "label": name, "bbox": list(form(scale(box))), **size} for image, box, name in lines]
    source = describe_rows(rows, config)
    try:
        items = [item for item in MemoryFormat().rows(LocalFiles(), Piece(source), config) if isinstance(item, Row)]
    except AmbiguousManifestError:
        return
    assert found(items) == wanted(lines, scale)


def test_units_that_are_mixed_are_refused_and_an_odd_line_is_left_out(tmp_path: Path) -> None:
    header = ["image", "label", "xmin", "ymin", "xmax", "ymax"]
    pixels = [[f"{number}.jpg", "x", number, 5, number + 20, 30] for number in range(40)]
    odd = ["odd.jpg", "x", 0.1, 0.2, 0.5, 0.6]
    with pytest.raises(AmbiguousManifestError, match=r"t\.csv:2.*t\.csv:3.*--box_units pixels or --box_units"):
        from_csv(tmp_path, [header, pixels[0], odd])
    assert from_csv(tmp_path, [header, pixels[0], odd], box_units="pixels")["odd.jpg"] == [
        ("x", (0.1, 0.2, 0.5, 0.6), False)
    ]
    (*_, last) = read_items(CsvFormat(), write(tmp_path / "t.csv", csv_text([header, *pixels, odd])))[1]
    warnings: Warnings = []
    assert parse(BoxesKind(), last.fields, warnings).objects == ()
    assert [code for code, _ in warnings] == ["box_dropped"]


def test_the_vgg_image_annotator(tmp_path: Path) -> None:
    header = [
        "filename",
        "file_size",
        "file_attributes",
        "region_count",
        "region_id",
        "region_shape_attributes",
        "region_attributes",
    ]
    shapes: list[tuple[str, Any, Any]] = [
        ("a.jpg", {"name": "rect", "x": 5, "y": 6, "width": 20, "height": 30}, {"type": "fox", "note": "x"}),
        ("a.jpg", {"name": "circle", "cx": 50, "cy": 40, "r": 10}, {"type": {"hen": True, "fox": False}}),
        ("b.jpg", {"name": "ellipse", "cx": 50, "cy": 40, "rx": 10, "ry": 5, "theta": 0}, {"type": "hen"}),
        ("b.jpg", {"name": "polygon", "all_points_x": [1, 9, 5], "all_points_y": [2, 2, 8]}, {"type": "owl"}),
        ("b.jpg", {"name": "point", "cx": 5, "cy": 4}, {"type": "owl"}),
        ("c.jpg", {}, {}),
    ]
    rows = [[image, 9, "{}", 1, 0, json.dumps(shape), json.dumps(told)] for image, shape, told in shapes]
    items = read_items(CsvFormat(), write(tmp_path / "via.csv", csv_text([header, *rows])))[1]
    assert found(items) == {
        "a.jpg": [("fox", (5, 6, 25, 36), False), ("hen", (40, 30, 60, 50), False)],
        "b.jpg": [("hen", (40, 35, 60, 45), False), ("owl", (1, 2, 9, 8), False)],
    }
    assert [item.fields["image"] for item in items] == ["a.jpg", "b.jpg", "c.jpg"]
    assert "point" in items[1].fields["notes"][0][1]
    rows[1][6] = json.dumps({"type": "hen", "occluded": "yes"})  # an attribute that no earlier region has
    assert [name for name, _, _ in from_csv(tmp_path, [header, *rows])["a.jpg"]] == ["fox", "hen"]
    rows[0][6] = json.dumps({"kind": "fox", "sort": "x"})
    rows[1][6] = rows[2][6] = rows[3][6] = rows[4][6] = json.dumps({"kind": "hen", "sort": "y"})
    with pytest.raises(AmbiguousManifestError, match=r"csv: regions have .* --label_column kind"):
        from_csv(tmp_path, [header, *rows])
    assert {
        name for boxes in from_csv(tmp_path, [header, *rows], label_column="sort").values() for name, _, _ in boxes
    } == {"x", "y"}


def test_objects_as_hugging_face_has_them(tmp_path: Path) -> None:
    boxes = {"a.jpg": [[150, 60, 20, 30], [5, 6, 20, 30]], "b.jpg": [[0, 10, 40, 20]], "c.jpg": []}
    known = {
        "a.jpg": [("1", (150, 60, 170, 90), False), ("0", (5, 6, 25, 36), False)],
        "b.jpg": [("1", (0, 10, 40, 30), False)],
    }
    lists = [
        {"file_name": image, "objects": {"bbox": found, "category": [1, 0][: len(found)], "id": [7, 8][: len(found)]}}
        for image, found in boxes.items()
    ]
    assert from_jsonl(tmp_path, lists) == known
    structs = [
        {
            "file_name": image,
            "objects": [{"bbox": box, "category": name} for box, name in zip(found, (1, 0), strict=False)],
        }
        for image, found in boxes.items()
    ]
    assert from_jsonl(tmp_path, structs) == known
    lists[1]["objects"]["category"] = []  # type: ignore[index]
    text = "".join(json.dumps(row) + "\n" for row in lists)
    items = read_items(JsonlFormat(), write(tmp_path / "t.jsonl", text))[1]
    assert [item.finding.message for item in items if isinstance(item, RejectedRow)] == [
        "column 'objects' has lists of different lengths: 1 bbox, 0 category, 1 id"
    ]


def test_parquet_structs(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    from beam_tfrecord.manifests.formats.parquet import ParquetFormat

    rows = [
        {"file_name": "a.jpg", "objects": {"bbox": [[150.0, 60, 20, 30], [5, 6, 20, 30]], "category": ["fox", "hen"]}},
        {"file_name": "b.jpg", "objects": {"bbox": [], "category": []}},
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "t.parquet")
    items = read_items(ParquetFormat(), tmp_path / "t.parquet")[1]
    assert found(items) == {"a.jpg": [("fox", (150, 60, 170, 90), False), ("hen", (5, 6, 25, 36), False)]}
    assert items[1].fields["boxes"] == []


def test_lists_of_boxes_with_lists_of_classes(tmp_path: Path) -> None:
    rows = [{"image": "a.jpg", "bboxes": [[150, 60, 20, 30], [5, 6, 20, 30]], "labels": ["fox", "hen"]}]
    known = {"a.jpg": [("fox", (150, 60, 170, 90), False), ("hen", (5, 6, 25, 36), False)]}
    assert from_jsonl(tmp_path, rows) == known
    assert (
        from_csv(tmp_path, [["image", "bboxes", "labels"], ["a.jpg", str(rows[0]["bboxes"]), str(rows[0]["labels"])]])
        == known
    )
    keyed = [{"image": "a.jpg", "box": {"xmin": 1, "ymin": 2, "xmax": 3, "ymax": 4}, "label": "fox"}]
    assert from_jsonl(tmp_path, keyed) == {"a.jpg": [("fox", (1, 2, 3, 4), False)]}


def test_columns_of_other_things_are_none_of_boxes(tmp_path: Path) -> None:
    rows = [["image", "label", "box", "objects", "width", "height"], ["a.jpg", "x", "A3", 7, 10, 20]]
    items = read_items(CsvFormat(), write(tmp_path / "t.csv", csv_text(rows)))[1]
    assert items[0].fields == {"image": "a.jpg", "label": "x"}
    rows = [["image", "label", "xmin", "ymin", "xmax", "ymax"], ["a.jpg", "x", 1, 2, 3, 4]]
    items = read_items(CsvFormat(), write(tmp_path / "t.csv", csv_text(rows)), box_format="none")[1]
    assert items[0].fields == {"image": "a.jpg", "label": "x"}
    items = read_items(CsvFormat(), write(tmp_path / "t.csv", csv_text(rows)), columns="xmin:int64")[1]
    assert items[0].fields == {"image": "a.jpg", "label": "x", "columns": {"xmin": "1"}}


def test_three_sides_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"x1, y1, x2 are three sides of a box, and there is no y2"):
        from_csv(tmp_path, [["image", "label", "x1", "y1", "x2", "y_2b"], ["a.jpg", "x", 1, 2, 3, 4]])


def test_a_class_without_a_box_is_told(tmp_path: Path) -> None:
    rows = [["image", "label", "x1", "y1", "x2", "y2"], ["a.jpg", "x", "", "", "", ""]]
    (row,) = read_items(CsvFormat(), write(tmp_path / "t.csv", csv_text(rows)))[1]
    assert row.fields["notes"] == [("annotation_ignored", f"{tmp_path}/t.csv:2: the line has the class 'x' and no box")]


def test_a_quadrilateral_is_an_outline(tmp_path: Path) -> None:
    header = ["image", "label", *(f"{side}{corner}" for corner in (1, 2, 3, 4) for side in "xy")]
    assert from_csv(tmp_path, [header, ["a.jpg", "x", 10, 5, 30, 9, 28, 20, 8, 16]]) == {
        "a.jpg": [("x", (8, 5, 30, 20), False)]
    }


def test_a_table_without_a_header_as_retinanet_has_it(tmp_path: Path) -> None:
    rows = [[image, *box, name] for image, box, name in KNOWN]
    items = read_items(CsvFormat(), write(tmp_path / "t.csv", csv_text([*rows, ["d.jpg", "", "", "", "", ""]])))[1]
    assert found(items) == wanted(KNOWN)
    assert items[-1].fields["boxes"] == []
    assert [code for code, _ in items[0].fields["notes"]] == ["box_format_assumed"]
    assert "4 boxes" in items[0].fields["notes"][0][1]
    sized = [[image, *corner_and_size(box), name] for image, box, name in KNOWN]
    with pytest.raises(AmbiguousManifestError, match="--box_format xywh"):
        from_csv(tmp_path, sized)
    assert from_csv(tmp_path, sized, box_format="xywh") == wanted(KNOWN)


def test_a_folder_does_not_hide_that_its_table_is_in_doubt(tmp_path: Path) -> None:
    for name in ("a.jpg", "b.jpg"):
        write(tmp_path / name, "pixels")
    rows = [{"file_name": name, "objects": {"bbox": [[5, 6, 25, 36]], "category": [0]}} for name in ("a.jpg", "b.jpg")]
    write(tmp_path / "metadata.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(AmbiguousManifestError, match="--box_format"):
        read_items(FolderFormat(), tmp_path)
