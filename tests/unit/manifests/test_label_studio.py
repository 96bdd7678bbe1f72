"""Label Studio's JSON and JSON_MIN; brushes and turned boxes as label_studio_sdk 2.1.2 writes and reads them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beam_tfrecord.core.account import UNNAMED_IMAGE
from beam_tfrecord.core.elements import Row
from beam_tfrecord.manifests import detect_format
from beam_tfrecord.manifests.formats.label_studio import LabelStudioFormat, decode_brush
from beam_tfrecord.manifests.picture_labels import ANNOTATIONS
from tests.annotation_tools import account_of, pixels, read_items, rejects, write
from tests.contracts import ListedPicturesContract, Sample
from tests.end_to_end.datasets import conversion, converted, findings, records
from tests.local_files import LocalFiles
from tests.samples import jpeg, painted_boxes

SIZE = (160, 120)
# brush.mask2rle of label_studio_sdk 2.1.2, of the mask below.
BRUSH = bytes.fromhex(
    "000000fc391bfcfff18047ff38047ff18047ff1804fff18047ff85c023ff9c02fffce013ffc6017ffe3008ffe700b7ff1805fff8c02dffc601"
    "1ffce016ffed8047fe"
)
BRUSHED = np.array(
    [
        [1, 1, 0, 1, 0, 0, 1, 0, 1],
        [0, 1, 1, 0, 1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 1, 1, 1, 1],
        [0, 0, 1, 1, 0, 1, 1, 1, 1],
        [0, 1, 0, 0, 1, 1, 1, 0, 1],
        [1, 1, 1, 0, 1, 1, 1, 0, 1],
        [0, 0, 1, 1, 1, 0, 0, 0, 1],
    ],
    bool,
)


def region(kind: str, labels: Sequence[str] = ("fox",), key: str = "r1", **value: Any) -> dict[str, Any]:
    """A result as the JSON export has it."""
    return {
        "id": key,
        "type": f"{kind}labels",
        "from_name": "label",
        "to_name": "image",
        "original_width": SIZE[0],
        "original_height": SIZE[1],
        "image_rotation": 0,
        "value": {**value, f"{kind}labels": list(labels)},
    }


def rectangle(*numbers: float, **more: Any) -> dict[str, Any]:
    x, y, width, height = numbers
    return region("rectangle", **{"x": x, "y": y, "width": width, "height": height, "rotation": 0} | more)


def annotation(*results: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": 9, "completed_by": 1, "result": list(results), "was_cancelled": False, "ground_truth": False} | more


def task(place: str, *annotations: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": 7, "annotations": list(annotations), "predictions": [], "data": {"image": place}} | more


def export(folder: Path, *tasks: Any) -> Path:
    return write(folder / "export.json", json.dumps(list(tasks)))


class TestLabelStudio(ListedPicturesContract):
    format = LabelStudioFormat()

    def write(self, folder: Path, names: Sequence[str]) -> str:
        for name in names:
            write(folder / name, "pixels")
        return str(export(folder, *(task(name, annotation()) for name in names)))

    def row(self, uri: str, name: str, place: int) -> tuple[str, dict[str, Any]]:
        return f"{uri}:[{place}]", {"boxes": [], "frame": "upright", "image": name}

    def damaged(self, folder: Path) -> Sample:
        self.write(folder, ["a.jpg", "b.jpg"])
        bad = task("b.jpg", annotation(rectangle(1, 2, 3, 4, x="left")))
        uri = str(export(folder, task("a.jpg", annotation()), bad, 3, task("", annotation())))
        codes = ["bad_annotation", "bad_row", "bad_row"]
        return Sample(
            uri, [self.row(uri, "a.jpg", 0)], [(f"{uri}:[{place}]", code) for place, code in enumerate(codes, start=1)]
        )

    def empty(self, folder: Path) -> Sample:
        return Sample(str(export(folder)), [])


def boxes_of(folder: Path, *results: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    path = export(folder, task("a.jpg", annotation(*results)))
    (row,) = [item for item in read_items(LabelStudioFormat(), path)[1] if isinstance(item, Row)]
    return list(row.fields["boxes"])


def test_percentages_become_fractions(tmp_path: Path) -> None:
    (box,) = boxes_of(tmp_path, rectangle(10, 20, 30, 40))
    assert box["bbox_xywh"] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert (box["class"], box["normalized"]) == ("fox", True)


def test_a_turned_box_has_the_corners_that_the_sdk_gives_it(tmp_path: Path) -> None:
    """convert_annotation_to_yolo_obb(..., normalize=False) of label_studio_sdk 2.1.2."""
    (box,) = boxes_of(tmp_path, rectangle(40, 25, 25, 20, rotation=30))
    corners = [
        (64.0, 30.0),
        (98.64101615137756, 50.0),
        (86.64101615137756, 70.78460969082653),
        (52.0, 50.7846096908265),
    ]
    expected = [number / side for corner in corners for number, side in zip(corner, SIZE, strict=True)]
    assert box["polygons"][0] == pytest.approx(expected)


def test_a_brush_is_decoded_as_the_sdk_does() -> None:
    assert np.array_equal(decode_brush(BRUSH, 9, 7), BRUSHED)


@pytest.mark.parametrize("damage", [BRUSH[:20], BRUSH[:4], b"", b"\xff" * 40])
def test_a_damaged_brush_is_refused(damage: bytes) -> None:
    with pytest.raises(ValueError, match=r"code|values|run"):
        decode_brush(damage, 9, 7)


@pytest.mark.parametrize("minimal", [False, True])
def test_an_export_with_its_pictures_is_read_as_it_is(tmp_path: Path, minimal: bool) -> None:
    """In a zip, under the names that Label Studio gives to uploads."""
    picture = jpeg(painted_boxes(9, 7, []))
    brush = region("brush", format="rle", rle=list(BRUSH)) | {"original_width": 9, "original_height": 7}
    ripe = {"type": "choices", "from_name": "choice", "to_name": "image", "value": {"choices": ["ripe"]}, "id": "c"}
    place = "/data/upload/3/0a1b2c3d-kitchen.jpg"
    told: Any = task(place, annotation(brush, ripe))
    if minimal:
        inner = brush["value"] | {"original_width": 9, "original_height": 7}
        told = {"image": place, "id": 7, "label": [inner], "choice": "ripe", "annotator": 1, "annotation_id": 4}
        told |= {"created_at": "2024-01-01T10:00:00Z", "updated_at": "2024-01-01T10:00:00Z", "lead_time": 3.2}
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr("export.json", json.dumps([told]))
        archive.writestr("images/kitchen.jpg", picture)
    converted(tmp_path / "in.zip", tmp_path / "out")
    (record,) = records(tmp_path / "out")
    assert record["image/class/text"] == [b"ripe"]
    assert np.array_equal(pixels(record["image/object/mask"][0]) > 0, BRUSHED)
    assert conversion(tmp_path / "out")["inputs"][0]["decisions"][1]["value"] == "label_studio"


@pytest.mark.parametrize(
    "place",
    ["s3://bucket/a.jpg", "https://host/a.jpg", "/data/local-files/?d=some/a.jpg", "/data/upload/1/0123abcd-a.jpg"],
)
def test_places_of_other_machines_are_found_by_their_names(tmp_path: Path, place: str) -> None:
    write(tmp_path / "photos/a.jpg", "pixels")
    (row,) = read_items(LabelStudioFormat(), export(tmp_path, task(place, annotation())))[1]
    assert row.fields["image"] == "photos/a.jpg"


def test_a_place_that_is_not_here_stays_what_it_is(tmp_path: Path) -> None:
    (row,) = read_items(LabelStudioFormat(), export(tmp_path, task("s3://bucket/a.jpg", annotation())))[1]
    assert row.fields["image"] == "s3://bucket/a.jpg"


BY = [
    annotation(rectangle(1, 1, 9, 9, labels=["one"]), completed_by=1, updated_at="2024-01-03"),
    annotation(rectangle(1, 1, 9, 9, labels=["two"]), completed_by={"email": "b@c.d"}, updated_at="2024-01-05"),
    annotation(rectangle(1, 1, 9, 9, labels=["three"]), completed_by=3, updated_at="2024-01-04"),
    annotation(rectangle(1, 1, 9, 9, labels=["skipped"]), completed_by=4, updated_at="2024-01-09", was_cancelled=True),
]


@pytest.mark.parametrize("minimal", [False, True])
@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("auto", ["two"]),
        ("latest", ["two"]),
        ("first", ["one"]),
        ("3", ["three"]),
        ("b@c.d", ["two"]),
        ("all", ["one", "two", "three"]),
    ],
)
def test_whose_annotation_counts_is_an_option(tmp_path: Path, rule: str, expected: list[str], minimal: bool) -> None:
    tasks: list[Any] = [task("a.jpg", *BY)]
    if minimal:
        tasks = [
            {"image": "a.jpg", "id": 7, "label": [one["result"][0]["value"]], "annotation_id": number, "lead_time": 1}
            | {"annotator": by["email"] if isinstance(by := one["completed_by"], dict) else by}
            | {"updated_at": one["updated_at"]}
            for number, one in enumerate(BY[:3])
        ]
    path = export(tmp_path, *tasks)
    (row,) = read_items(LabelStudioFormat(), path, annotator=rule)[1]
    assert sorted(box["class"] for box in row.fields["boxes"]) == sorted(expected)
    account = account_of(LabelStudioFormat(), path, annotator=rule)
    assert account.uses(ANNOTATIONS, "object") == len(expected)
    assert bool(row.fields.get("notes")) == (rule != "all")


def test_ground_truth_counts_before_what_is_later(tmp_path: Path) -> None:
    truth = annotation(rectangle(1, 1, 9, 9, labels=["true"]), ground_truth=True, updated_at="2020")
    (row,) = read_items(LabelStudioFormat(), export(tmp_path, task("a.jpg", *BY, truth)))[1]
    assert [box["class"] for box in row.fields["boxes"]] == ["true"]


def test_tasks_without_annotation_are_no_records_without_labels(tmp_path: Path) -> None:
    for name in "abc":
        write(tmp_path / f"in/{name}.jpg", jpeg(painted_boxes(*SIZE, [])))
    skipped = annotation(rectangle(1, 2, 3, 4), was_cancelled=True)
    done = annotation(rectangle(1, 2, 30, 40))
    export(tmp_path / "in", task("a.jpg", done), task("b.jpg"), task("c.jpg", skipped))
    converted(tmp_path / "in", tmp_path / "out")
    (account,) = conversion(tmp_path / "out")["inputs"]
    assert account["named"]["pictures"]["not annotated, or skipped"]["count"] == 2
    assert account["named"]["files"][UNNAMED_IMAGE]["count"] == 2
    assert len(records(tmp_path / "out")) == 1


def test_points_of_a_region_are_keypoints_and_others_are_told(tmp_path: Path) -> None:
    eye = region("keypoint", ["eye"], "k1", x=50, y=25, width=1) | {"parentID": "r1"}
    stray = region("keypoint", ["ear"], "k2", x=5, y=5, width=1)
    text = {"type": "textarea", "value": {"text": ["a fox"]}, "id": "t"}
    relation = {"type": "relation", "from_id": "r1", "to_id": "k1"}
    path = export(tmp_path, task("a.jpg", annotation(eye, rectangle(10, 20, 30, 40), stray, text, relation)))
    (row,) = read_items(LabelStudioFormat(), path)[1]
    (box,) = row.fields["boxes"]
    assert (box["keypoints"], box["keypoint_names"]) == ([0.5, 0.25, 2], ["eye"])
    assert len([code for code, _ in row.fields["notes"] if code == "annotation_ignored"]) == 3
    account = account_of(LabelStudioFormat(), path)
    assert (account.found[ANNOTATIONS], account.uses(ANNOTATIONS), account.unused(ANNOTATIONS)) == (5, 2, 3)


def test_ellipses_polygons_and_several_labels(tmp_path: Path) -> None:
    path = write(tmp_path / "in/a.jpg", jpeg(painted_boxes(*SIZE, [])))
    ellipse = region("ellipse", ["sun"], "e", x=50, y=50, radiusX=25, radiusY=10, rotation=90)
    polygon = region("polygon", ["fox", "red"], "p", points=[[10, 10], [20, 10], [20, 30]], closed=True)
    export(path.parent, task("a.jpg", annotation(ellipse, polygon)))
    converted(path.parent, tmp_path / "out")
    (record,) = records(tmp_path / "out")
    assert record["image/object/class/text"] == [b"sun", b"fox", b"red"]
    sides = [record[f"image/object/bbox/{side}"][0] for side in ("xmin", "ymin", "xmax", "ymax")]
    assert sides == pytest.approx([(80 - 12) / 160, (60 - 40) / 120, (80 + 12) / 160, (60 + 40) / 120])
    assert not findings(tmp_path / "out", "rejects")


@pytest.mark.parametrize(
    "result",
    [
        rectangle(1, 2, 3, 4, width=None),
        rectangle(1, 2, 3, 4, x=True),
        rectangle(1, 2, 3, 4, x=float("nan")),
        rectangle(1, 2, 3, 4, labels=[]),
        region("rectangle", [3], x=1, y=2, width=3, height=4),  # type: ignore[list-item]
        region("polygon", points=[[1, 2], [3]]),
        region("polygon", points="here"),
        region("brush", rle=[1, 2, 300]),
        region("brush", rle=[1, 2, 3]),
        {"id": "c", "type": "choices", "value": {"choices": "ripe"}},
        "text",
    ],
)
def test_what_cannot_be_right_is_a_reject_that_names_its_place(tmp_path: Path, result: Any) -> None:
    path = export(tmp_path, task("a.jpg", annotation(result)), task("b.jpg", annotation()))
    items = read_items(LabelStudioFormat(), path)[1]
    ((code, message),) = rejects(items)
    assert code in ("bad_annotation", "bad_mask", "missing_label", "bad_row")
    assert "[0]" in message
    assert sum(isinstance(item, Row) for item in items) == 1


@pytest.mark.parametrize(
    "text", ['[{"image": "a.jpg", "label": "x"}]', '{"annotations": []}', "[]", '[{"annotations": 3}]', "[1, 2]"]
)
def test_other_json_is_not_taken_for_it(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "x.json", text)
    assert not LabelStudioFormat().recognises(LocalFiles(), str(path), text.encode())


def test_it_is_recognised_by_a_task_that_nobody_annotated(tmp_path: Path) -> None:
    assert detect_format(LocalFiles(), str(export(tmp_path, task("a.jpg")))) == "label_studio"
