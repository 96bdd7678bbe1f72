"""Elements, keys and columns of documents that are not read: each is named, and all are counted."""

from __future__ import annotations

import json
from pathlib import Path

from PIL import Image

from beam_tfrecord.core.account import COLUMNS, KEYS, Account, faults
from beam_tfrecord.manifests.formats.openimages import OpenImagesFormat
from beam_tfrecord.manifests.formats.vertex import VertexFormat
from beam_tfrecord.manifests.formats.voc import VocFormat
from tests.annotation_tools import account_of, write
from tests.samples import jpeg, noise

VOC = """<annotation><folder>x</folder><filename>a.jpg</filename><source><database>d</database></source>
<size><width>40</width><height>30</height><depth>3</depth></size>
<object><name>cat</name><polygon><x1>1</x1><y1>2</y1></polygon>
<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>30</xmax><ymax>20</ymax></bndbox></object></annotation>"""


def named(account: Account, kind: str) -> dict[str, tuple[int, str]]:
    return {reason: (told.count, told.example) for reason, told in account.named.get(kind, {}).items()}


def test_elements_of_voc_that_are_not_read_are_named(tmp_path: Path) -> None:
    for stem in "ab":
        write(tmp_path / f"{stem}.xml", VOC.replace("a.jpg", f"{stem}.jpg"))
        (tmp_path / f"{stem}.jpg").write_bytes(jpeg(Image.fromarray(noise(40, 30))))
    account = account_of(VocFormat(), tmp_path)
    assert faults(account) == []
    assert account.found[KEYS] == 2 * VOC.count("</") - 2  # all but the outer one
    assert named(account, KEYS) == {
        "not read of annotation": (4, "folder"),
        "below what is not read of annotation": (2, "database"),
        "not read of size": (2, "depth"),
        "not read of object": (2, "polygon"),
        "below what is not read of object": (4, "x1"),
    }


def test_keys_of_vertex_that_are_not_read_are_named_and_other_annotations_are_a_surprise(tmp_path: Path) -> None:
    line = {
        "imageGcsUri": "gs://b/a.jpg",
        "boundingBoxAnnotations": [
            {
                "displayName": "cat",
                "xMin": 0.1,
                "yMin": 0.1,
                "xMax": 0.5,
                "yMax": 0.5,
                "annotationResourceLabels": {"a": 1},
            }
        ],
        "polygonAnnotations": [{"displayName": "cat"}],
        "dataItemResourceLabels": {"aiplatform.googleapis.com/ml_use": "test", "mine": "1"},
    }
    text = f"{json.dumps(line)}\n" * 3
    account = account_of(VertexFormat(), write(tmp_path / "a.jsonl", text))
    assert faults(account) == []
    assert account.found[KEYS] == text.count('":')
    assert named(account, KEYS) == {
        "looks like annotations": (3, "polygonAnnotations"),
        "below what is not read of a line": (3, "polygonAnnotations"),
        "not read of boundingBoxAnnotations": (3, "annotationResourceLabels"),
        "below what is not read of boundingBoxAnnotations": (3, "annotationResourceLabels"),
        "not read of dataItemResourceLabels": (3, "mine"),
    }


def test_columns_of_open_images_that_are_not_used_are_named(tmp_path: Path) -> None:
    table = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,Mine\na,x,/m/1,1,0.1,0.2,0.1,0.2,5\n"
    account = account_of(OpenImagesFormat(), write(tmp_path / "boxes.csv", table))
    assert faults(account) == []
    assert account.used[COLUMNS] == {"image": 1, "label": 1, "box": 4, "confidence": 1}
    assert named(account, COLUMNS) == {"not used": (2, "Mine")}
