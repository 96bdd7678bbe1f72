"""Labelbox's NDJSON; the lines have the form that its documentation shows for exports of images."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.formats.labelbox import LabelboxFormat
from beam_tfrecord.manifests.picture_labels import ANNOTATIONS, OF_ANOTHER, PICTURES, SKIPPED
from tests.annotation_tools import account_of, pixels, read_items, reference_mask, rejects, write
from tests.contracts import ManifestFormatContract, Sample
from tests.end_to_end.datasets import conversion, converted, records, texts
from tests.local_files import LocalFiles
from tests.samples import jpeg, painted_boxes

BOX: dict[str, Any] = {
    "feature_id": "clh1",
    "feature_schema_id": "clg1",
    "name": "dog",
    "value": "dog",
    "annotation_kind": "ImageBoundingBox",
    "classifications": [],
    "bounding_box": {"top": 10.0, "left": 20.0, "height": 20.0, "width": 30.0},
}
POLYGON: dict[str, Any] = {
    "name": "hat",
    "annotation_kind": "ImagePolygon",
    "classifications": [],
    "polygon": [{"x": 5.0, "y": 5.0}, {"x": 40.0, "y": 5.0}, {"x": 40.0, "y": 30.0}, {"x": 5.0, "y": 5.0}],
}
MASK = {"name": "sky", "annotation_kind": "ImageSegmentationMask", "mask": {"url": "https://api.labelbox.com/x"}}
POINT = {"name": "nose", "annotation_kind": "ImagePoint", "point": {"x": 1, "y": 2}}
LINE = {"name": "edge", "annotation_kind": "ImagePolyline", "line": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]}
RADIO = {"name": "weather", "value": "weather", "radio_answer": {"name": "sunny", "value": "sunny"}}
CHECKLIST = {"name": "kinds", "checklist_answers": [{"name": "indoors"}, {"value": "night"}]}
TEXT = {"name": "note", "text_answer": {"content": "blurred"}}


def label(
    *objects: Any, classes: Sequence[Any] = (), by: str = "ann@x.org", at: str = "2024-01-01", **more: Any
) -> Any:
    return {
        "label_kind": "Default",
        "version": "1.0.0",
        "id": f"label of {by}",
        "label_details": {"created_at": at, "updated_at": at, "created_by": by},
        "annotations": {"objects": list(objects), "classifications": list(classes), "relationships": []},
        **more,
    }


def row(name: str, *labels: Any) -> dict[str, Any]:
    return {
        "data_row": {"id": "clfz", "external_id": name, "row_data": f"https://storage.labelbox.com/{name}?sig=1"},
        "media_attributes": {"height": 60, "width": 80, "mime_type": "image/jpeg", "exif_rotation": "1"},
        "projects": {"clg0": {"name": "animals", "labels": list(labels)}},
    }


def export(folder: Path, *rows: Any) -> str:
    text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in rows)
    return str(write(folder / "export-result.ndjson", text))


class TestLabelbox(ManifestFormatContract):
    format = LabelboxFormat()

    def line(self, uri: str, name: str, number: int) -> tuple[str, dict[str, Any]]:
        where = f"{number}:projects.clg0.labels[0].annotations.objects[0]"
        box = {"class": "dog", "bbox_xywh": [20.0, 10.0, 30.0, 20.0], "origin": where}
        return f"{uri}:{number}", {"boxes": [box], "frame": "upright", "size": (80, 60), "image": name}

    def sample(self, folder: Path) -> Sample:
        uri = export(folder, row("a.jpg", label(BOX)), "", row("b.jpg", label(BOX)))
        return Sample(uri, [self.line(uri, "a.jpg", 1), self.line(uri, "b.jpg", 3)])

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        for name in names:
            write(folder / name, "pixels")
        return Sample(export(folder, *(row(name, label(BOX)) for name in names)), [])

    def damaged(self, folder: Path) -> Sample:
        short = {**POLYGON, "polygon": [{"x": 1, "y": 2}]}
        nameless = label(classes=[{"name": "q", "radio_answer": {}}])
        bad = ['{"data_row": ', {"projects": {}}, [1], row("b.jpg", label(short)), row("c.jpg", nameless)]
        uri = export(folder, row("a.jpg", label(BOX)), *bad)
        codes = ("bad_row", "bad_row", "bad_row", "bad_row", "missing_label")
        told = [(f"{uri}:{number}", code) for number, code in enumerate(codes, start=2)]
        told[3] = (told[3][0], "bad_annotation")
        return Sample(uri, [self.line(uri, "a.jpg", 1)], told)

    def empty(self, folder: Path) -> Sample:
        return Sample(export(folder, ""), [])


def fields_of(folder: Path, one: Any, **options: Any) -> dict[str, Any]:
    (found,) = read_items(LabelboxFormat(), export(folder, one), **options)[1]
    assert isinstance(found, Row), found
    return dict(found.fields)


def test_what_has_no_area_is_told(tmp_path: Path) -> None:
    one = row("a.jpg", label(BOX, POINT, LINE, MASK, classes=[TEXT]))
    fields = fields_of(tmp_path, one)
    assert [box["class"] for box in fields["boxes"]] == ["dog"]
    assert [code for code, _ in fields["notes"]] == ["annotation_ignored"] * 4
    assert "export polygons or boxes" in fields["notes"][2][1]
    account = account_of(LabelboxFormat(), export(tmp_path, one))
    assert (account.found[ANNOTATIONS], account.uses(ANNOTATIONS), account.unused(ANNOTATIONS)) == (5, 1, 4)


def test_answers_are_labels_of_the_picture(tmp_path: Path) -> None:
    fields = fields_of(tmp_path, row("a.jpg", label(classes=[RADIO, CHECKLIST])))
    assert fields["label"] == ["sunny", "indoors", "night"]
    assert "boxes" not in fields


@pytest.mark.parametrize(
    ("annotator", "classes"),
    [
        ("auto", ["hat"]),
        ("latest", ["hat"]),
        ("first", ["dog"]),
        ("all", ["dog", "hat"]),
        ("ann@x.org", ["dog"]),
    ],
)
def test_whose_label_counts_is_an_option(tmp_path: Path, annotator: str, classes: list[str]) -> None:
    one = row("a.jpg", label(BOX), label(POLYGON, by="bob@x.org", at="2024-02-02"))
    fields = fields_of(tmp_path, one, annotator=annotator)
    assert [box["class"] for box in fields["boxes"]] == classes
    if annotator != "all":
        assert "ann@x.org, bob@x.org" in fields["notes"][0][1]
    account = account_of(LabelboxFormat(), export(tmp_path, one), annotator=annotator)
    assert account.found[ANNOTATIONS] == 2


@pytest.mark.parametrize("count", [1, 2])
def test_a_picture_that_the_annotator_did_not_label_is_no_picture_without_objects(tmp_path: Path, count: int) -> None:
    one = row("a.jpg", *[label(BOX), label(POLYGON, by="bob@x.org")][:count])
    account = account_of(LabelboxFormat(), export(tmp_path, one), annotator="nobody")
    assert account.unused("pictures", OF_ANOTHER) == 1
    assert (account.found[ANNOTATIONS], account.unused(ANNOTATIONS)) == (count, count)
    assert not read_items(LabelboxFormat(), export(tmp_path, one), annotator="nobody")[1]


def test_a_benchmark_label_counts_before_later_ones(tmp_path: Path) -> None:
    truth = label(BOX, performance_details={"benchmark_reference_label": True})
    fields = fields_of(tmp_path, row("a.jpg", truth, label(POLYGON, by="bob@x.org", at="2024-02-02")))
    assert [box["class"] for box in fields["boxes"]] == ["dog"]


def test_the_address_of_a_picture_that_lies_nowhere_is_taken(tmp_path: Path) -> None:
    one = row("a.jpg", label(BOX))
    one["data_row"].update({"external_id": "asset 7", "row_data": "https://storage.labelbox.com/b.jpg?sig=1"})
    assert fields_of(tmp_path, one)["image"] == "https://storage.labelbox.com/b.jpg?sig=1"
    write(tmp_path / "images/b.jpg", "pixels")
    assert fields_of(tmp_path, one)["image"] == "images/b.jpg"


def test_old_exports_are_refused_with_the_cure(tmp_path: Path) -> None:
    path = write(tmp_path / "export.json", json.dumps([{"ID": "c", "DataRow ID": "d", "Label": {"objects": []}}]))
    assert LabelboxFormat().recognises(LocalFiles(), str(path), path.read_bytes())
    with pytest.raises(ManifestError, match="as NDJSON"):
        read_items(LabelboxFormat(), path)


def test_an_export_beside_its_images(tmp_path: Path) -> None:
    write(tmp_path / "in/images/a.jpg", jpeg(painted_boxes(80, 60, [(20, 10, 50, 30)])))
    export(tmp_path / "in", row("a.jpg", label(BOX, POLYGON)))
    converted(tmp_path / "in", tmp_path / "out")
    (record,) = records(tmp_path / "out")
    assert texts(record, "image/object/class/text") == ["dog", "hat"]
    assert np.allclose(record["image/object/bbox/xmin"], [20 / 80, 5 / 80])
    outline = [number for point in POLYGON["polygon"] for number in (point["x"], point["y"])]
    assert np.array_equal(pixels(record["image/object/mask"][1]) > 0, reference_mask([outline], 60, 80) > 0)
    assert conversion(tmp_path / "out")["inputs"][0]["format"] == "labelbox"


def test_wrong_types_anywhere_are_rejects(tmp_path: Path) -> None:
    """Each value of a line is put in place of each other one."""
    good = row("a.jpg", label(BOX, POLYGON, classes=[RADIO, CHECKLIST]))
    changed = list(_changed(good))
    uri = export(tmp_path, *changed)
    _, items = read_items(LabelboxFormat(), uri)
    unlabelled = account_of(LabelboxFormat(), uri).unused(PICTURES, SKIPPED)
    assert len(items) + unlabelled == len(changed) > 300
    assert rejects(items)


def _changed(value: Any) -> Any:
    for odd in (None, 7, "x", [], {}, [3], {"a": 1}):
        if not isinstance(odd, type(value)) or odd != value:
            yield odd
    if isinstance(value, dict):
        for key, inner in value.items():
            for other in _changed(inner):
                yield {**value, key: other}
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            for other in _changed(inner):
                yield [*value[:place], other, *value[place + 1 :]]


def test_what_else_a_label_holds_is_left_out_with_a_note(tmp_path: Path) -> None:
    one = label(BOX)
    one["annotations"] |= {"frames": {"1": {"objects": {"x": BOX}}}, "relationships": [{"name": "r"}], "segments": {}}
    uri = export(tmp_path, row("a.jpg", one))
    (found,) = read_items(LabelboxFormat(), uri)[1]
    assert [message.split(": ")[:2] for _, message in found.fields["notes"]] == [
        [f"1:projects.clg0.labels[0].annotations.{key}", key] for key in ("relationships", "frames")
    ]
    account = account_of(LabelboxFormat(), uri)
    assert (account.uses("annotations"), account.unused("annotations")) == (1, 2)


@pytest.mark.parametrize("annotations", [{}, {"objects": None}, {"object": [BOX]}])
def test_a_label_without_its_lists_is_not_one_of_an_empty_picture(annotations: Any, tmp_path: Path) -> None:
    _, items = read_items(LabelboxFormat(), export(tmp_path, row("a.jpg", {**label(), "annotations": annotations})))
    if "object" in annotations:
        assert "annotation_ignored" in str(items[0].fields["notes"])
    else:
        assert [code for code, _ in rejects(items)] == ["bad_annotation"]
