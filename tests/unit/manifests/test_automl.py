"""Azure Machine Learning's JSON Lines, and AutoML's CSV with paths in place of uris."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beam_tfrecord.core.elements import Row
from beam_tfrecord.manifests import detect_format
from beam_tfrecord.manifests.formats.azureml import AzureMLFormat
from beam_tfrecord.manifests.formats.vertex import VertexFormat
from tests.annotation_tools import pixels, read_items, reference_mask, rejects, write
from tests.contracts import ManifestFormatContract, Sample
from tests.end_to_end.datasets import conversion, converted, records, texts
from tests.local_files import LocalFiles
from tests.samples import jpeg, painted_boxes

STORE = "azureml://subscriptions/s/resourcegroups/r/workspaces/w/datastores/d/paths/fridge/images/"
BOX = {"label": "can", "topX": 0.25, "topY": 0.5, "bottomX": 0.5, "bottomY": 0.75, "isCrowd": 0}


def line(name: str, label: Any, **more: Any) -> dict[str, Any]:
    details = {"format": "jpg", "width": "80px", "height": "60px"}
    return {"image_url": name, "image_details": details, "label": label, **more}


def lines(folder: Path, *values: Any) -> str:
    text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in values)
    return str(write(folder / "train_annotations.jsonl", text))


class TestAzureML(ManifestFormatContract):
    format = AzureMLFormat()

    def sample(self, folder: Path) -> Sample:
        uri = lines(folder, line("a.jpg", "milk"), "", line("b.jpg", [BOX]))
        box = {
            "class": "can",
            "normalized": True,
            "is_crowd": 0,
            "bbox": [0.25, 0.5, 0.5, 0.75],
            "origin": "3:label[0]",
        }
        rows = [
            (f"{uri}:1", {"label": "milk", "size": (80, 60), "image": "a.jpg"}),
            (f"{uri}:3", {"boxes": [box], "size": (80, 60), "image": "b.jpg"}),
        ]
        return Sample(uri, rows)

    def odd_names(self, folder: Path, names: Sequence[str]) -> Sample:
        for name in names:
            write(folder / name, "pixels")
        return Sample(lines(folder, *(line(name, "x") for name in names)), [])

    def damaged(self, folder: Path) -> Sample:
        half = {"label": "can"}
        bad = ['{"image_url"', [1], line("b.jpg", None), line("b.jpg", 7), line("b.jpg", [half]), line("", "x")]
        uri = lines(folder, line("a.jpg", "milk"), *bad)
        codes = ("bad_row", "bad_row", "missing_label", "bad_annotation", "bad_annotation", "bad_row")
        good = [(f"{uri}:1", {"label": "milk", "size": (80, 60), "image": "a.jpg"})]
        return Sample(uri, good, [(f"{uri}:{number}", code) for number, code in enumerate(codes, start=2)])

    def empty(self, folder: Path) -> Sample:
        return Sample(lines(folder, ""), [])


def test_images_of_a_datastore_are_found_by_the_end_of_their_place(tmp_path: Path) -> None:
    write(tmp_path / "in/images/1.jpg", jpeg(painted_boxes(80, 60, [(20, 30, 40, 45)])))
    outline = [0.25, 0.5, 0.5, 0.5, 0.5, 0.75, 0.25, 0.75]
    lines(tmp_path / "in", line(STORE + "1.jpg", [BOX, {"label": "lid", "isCrowd": 1, "polygon": [outline]}]))
    converted(tmp_path / "in", tmp_path / "out")
    (record,) = records(tmp_path / "out")
    assert texts(record, "image/object/class/text") == ["can", "lid"]
    assert np.allclose(record["image/object/bbox/xmax"], [0.5, 0.5])
    assert record["image/object/is_crowd"] == [0, 1]
    drawn = [number * (60 if place % 2 else 80) for place, number in enumerate(outline)]
    assert np.array_equal(pixels(record["image/object/mask"][1]) > 0, reference_mask([drawn], 60, 80) > 0)
    assert conversion(tmp_path / "out")["inputs"][0]["format"] == "azureml"


def test_several_labels_are_a_list_of_texts(tmp_path: Path) -> None:
    uri = lines(tmp_path, line(STORE + "1.jpg", ["can", "milk"]))
    (row,) = read_items(AzureMLFormat(), uri)[1]
    assert row.fields["label"] == ["can", "milk"]


def test_no_objects_are_an_empty_list(tmp_path: Path) -> None:
    (row,) = read_items(AzureMLFormat(), lines(tmp_path, line("a.jpg", [])))[1]
    assert row.fields["boxes"] == []


def test_an_object_among_texts_is_a_reject(tmp_path: Path) -> None:
    uri = lines(tmp_path, line("a.jpg", ["can", BOX]))
    assert [code for code, _ in rejects(read_items(AzureMLFormat(), uri)[1])] == ["bad_annotation"]


def test_tables_with_a_column_image_url_are_no_files_of_azure(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"image_url": "https://x.org/a.jpg", "label": "fox"}\n')
    assert detect_format(LocalFiles(), str(path)) == "jsonl"


# ---------------------------------------------------------------------------------------------------------------------
# AutoML's CSV

TWO_CORNERS = "TRAIN,images/a.jpg,cat,0.25,0.5,,,0.5,0.75,,\n"
FOUR_CORNERS = "VALIDATION,images/b.jpg,dog,0.25,0.5,0.5,0.5,0.5,0.75,0.25,0.75\n"
NOTHING = "TEST,images/c.jpg,,,,,,,,,\n"


@pytest.mark.parametrize("use", [True, False])
def test_boxes_of_automl_may_name_paths(tmp_path: Path, use: bool) -> None:
    for name in "abc":
        write(tmp_path / f"in/images/{name}.jpg", jpeg(painted_boxes(80, 60, [(20, 30, 40, 45)])))
    text = TWO_CORNERS + FOUR_CORNERS + NOTHING
    if not use:
        text = "".join(one.partition(",")[2] + "\n" for one in text.splitlines())
    path = write(tmp_path / "in/boxes.csv", text)
    assert detect_format(LocalFiles(), str(path)) == "vertex"
    summary = converted(path, tmp_path / "out")
    assert summary.splits == ({"train": 1, "validation": 1, "test": 1} if use else {"train": 3})
    found = {record["image/filename"][0]: record for record in records(tmp_path / "out")}
    for name in (b"images/a.jpg", b"images/b.jpg"):
        sides = [found[name][f"image/object/bbox/{side}"][0] for side in ("xmin", "ymin", "xmax", "ymax")]
        assert np.allclose(sides, [0.25, 0.5, 0.5, 0.75])
    assert found[b"images/c.jpg"]["image/object/bbox/xmin"] == []


def test_several_labels_of_automl_may_name_paths(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "TRAIN,images/a.jpg,cat\nTEST,images/b.jpg,cat,dog\n")
    source, items = read_items(VertexFormat(), path)
    assert detect_format(LocalFiles(), str(path)) == source.format == "vertex"
    assert [item.fields["label"] for item in items if isinstance(item, Row)] == ["cat", ["cat", "dog"]]


@pytest.mark.parametrize(
    "text",
    [
        "images/a.jpg,10,20,30,40,cat\nimages/b.jpg,1,2,3,4,dog\n",  # RetinaNet
        "images/a.jpg,cat,10,20,30,20,30,40,10,40\n",  # corners in pixels
        "TRAIN,images/a.jpg,cat\nTEST,images/b.jpg,dog\n",
        "images/a.jpg,cat,dog\nimages/b.jpg,cat\n",
        "split,image,label\ntrain,images/a.jpg,cat\n",
    ],
)
def test_other_tables_are_not_taken_for_automl(tmp_path: Path, text: str) -> None:
    assert detect_format(LocalFiles(), str(write(tmp_path / "a.csv", text))) != "vertex"
