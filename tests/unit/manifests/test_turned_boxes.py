"""Boxes that CVAT turned, as its exports in other formats have them: the box before it was turned, and an attribute."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.core.elements import Row
from beam_tfrecord.manifests.registry import FORMATS
from tests.annotation_tools import read_items
from tests.samples import write_files

BOX, DEGREES = (10.0, 20.0, 50.0, 40.0), 30.0


def coco(rotation: Any) -> str:
    annotation = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 20, 40, 20], "segmentation": []}
    annotation["attributes"] = {"occluded": False, "rotation": rotation}
    image = {"id": 1, "file_name": "a.jpg", "width": 80, "height": 60}
    names = [{"id": 1, "name": "fox"}]
    return json.dumps({"images": [image], "annotations": [annotation], "categories": names})


def datumaro(rotation: Any) -> str:
    labels = {"label": {"labels": [{"name": "fox", "parent": "", "attributes": []}]}}
    box = {"id": 0, "type": "bbox", "group": 0, "label_id": 0, "bbox": [10, 20, 40, 20]}
    box["attributes"] = {"occluded": False, "rotation": rotation}
    item = {"id": "a", "annotations": [box], "image": {"path": "a.jpg", "size": [60, 80]}}
    return json.dumps({"dm_format_version": "1.0", "media_type": 2, "infos": {}, "categories": labels, "items": [item]})


def voc(rotation: Any) -> str:
    sides = zip(("xmin", "ymin", "xmax", "ymax"), BOX, strict=True)
    box = "".join(f"<{side}>{value}</{side}>" for side, value in sides)
    attributes = f"<attribute><name>rotation</name><value>{rotation}</value></attribute>"
    other = "<attribute><name>colour</name><value>red</value></attribute>"
    return (
        f"<annotation><filename>a.jpg</filename><object><name>fox</name><bndbox>{box}</bndbox>"
        f"<attributes>{other}{attributes}</attributes></object></annotation>"
    )


DOCUMENTS = {"coco": ("a.json", coco), "datumaro": ("annotations/train.json", datumaro), "voc": ("a.xml", voc)}


def box_of(folder: Path, name: str, rotation: Any) -> dict[str, Any]:
    path, document = DOCUMENTS[name]
    write_files(folder, {path: document(rotation).encode(), "a.jpg": b"pixels"})
    _, items = read_items(FORMATS[name], folder / path, images=str(folder))
    (box,) = next(item.fields["boxes"] for item in items if isinstance(item, Row))
    return dict(box)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_turned_box_is_its_four_corners(tmp_path: Path, name: str) -> None:
    box = box_of(tmp_path, name, DEGREES)
    assert not {"bbox", "bbox_xywh"} & box.keys()
    (outline,) = box["polygons"]
    centre = complex((BOX[0] + BOX[2]) / 2, (BOX[1] + BOX[3]) / 2)
    turn = complex(math.cos(math.radians(DEGREES)), math.sin(math.radians(DEGREES)))  # y points down: clockwise
    corners = [complex(x, y) for x, y in ((10, 20), (50, 20), (50, 40), (10, 40))]
    wanted = [centre + (corner - centre) * turn for corner in corners]
    assert outline == pytest.approx([part for corner in wanted for part in (corner.real, corner.imag)])


@pytest.mark.parametrize("rotation", [0.0, 360, "left"])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_box_that_is_not_turned_stays_one(tmp_path: Path, name: str, rotation: Any) -> None:
    box = box_of(tmp_path, name, rotation)
    assert "polygons" not in box
    assert {"bbox", "bbox_xywh"} & box.keys()
