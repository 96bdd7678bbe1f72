"""Whatever strangers write into annotation files, an item is written or rejected; nothing else is raised."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from beam_tfrecord.annotations import KINDS, kinds_of
from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.core.account import faults
from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.core.geometry import PixelFrame
from beam_tfrecord.errors import ElementError, ManifestError
from beam_tfrecord.manifests.formats.coco import CocoFormat
from beam_tfrecord.manifests.formats.vertex import VertexFormat
from beam_tfrecord.manifests.formats.voc_xml import fields_of_xml
from beam_tfrecord.manifests.formats.yolo_labels import LabelForm, parse_labels
from beam_tfrecord.tfrecord.example import encode_example
from tests.annotation_tools import make_placement, make_schema, parse, read_items, write

SIZE = PixelFrame(40, 30, 20, 15, scale_x=0.5, scale_y=0.5)
fuzz = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=150)

odd_numbers = st.sampled_from(
    [0, -1, 1e308, -1e308, 1e-320, 2**70, float("inf"), float("nan"), True, "12", "1e5", "", " ", "x"]
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | odd_numbers,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
numbers = st.lists(st.integers(-10, 60) | st.floats(-10, 60) | odd_numbers, max_size=9)
runs = st.fixed_dictionaries(
    {
        "size": st.sampled_from([[30, 40], [30, "40"], [1, 1], [10**9, 10**9], [-1, 5], 7]),
        "counts": numbers | st.text(max_size=9),
    }
)
annotations = st.fixed_dictionaries(
    {},
    optional={
        "image_id": st.sampled_from([1, "1", 2, None]) | anything,
        "category_id": st.sampled_from([1, 1.0, "1", 9, None]) | anything,
        "bbox": numbers | anything,
        "segmentation": st.lists(numbers, max_size=3) | runs | anything,
        "keypoints": numbers | anything,
        "iscrowd": st.sampled_from([0, 1]) | anything,
        "area": odd_numbers | anything,
        "attributes": anything,
        "caption": anything,
        "segments_info": st.lists(st.dictionaries(st.sampled_from(["id", "category_id"]), anything)) | anything,
        "file_name": st.just("m.png") | anything,
    },
)


def outcome(function: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[Any, str]:
    """(what a function gives, ''), or (None, the message of the ElementError that it raises)."""
    try:
        return function(*arguments, **named), ""
    except ElementError as error:
        return None, error.message


def convert(item: Any, **options: Any) -> None:
    """Does to an item what the pipeline does after its manifest was read."""
    if isinstance(item, RejectedRow):
        assert len(item.finding.message) > 10
        return
    assert isinstance(item, Row)
    data, message = outcome(record, item, **options)
    assert data or len(message) > 10


def record(row: Row, **options: Any) -> bytes:
    placement = make_placement(SIZE, files={}, **options)
    parsed = {name: parse(kind, row.fields, **options) for name, kind in KINDS.items()}
    values = {name: value for name, value in parsed.items() if value is not None and name != "panoptic"}
    facets = {facet for name, value in values.items() for facet in KINDS[name].facets(value)}
    labels = {label for name, value in values.items() for label in KINDS[name].labels(value)}
    placed = {name: KINDS[name].place(value, placement) for name, value in values.items()}
    schema = make_schema(sorted(facets), sorted(labels))
    features = {"id": Feature("bytes", [b"x"])}
    for kind in kinds_of(schema):
        features.update(kind.features(placed[kind.name], schema))
    return encode_example(features)


@fuzz
@given(st.lists(annotations, max_size=4), anything, st.sampled_from(["visible", "drop", "clip", "reject"]))
def test_coco(tmp_path: Path, items: list[Any], image: Any, policy: str) -> None:
    images = [{"id": 1, "file_name": "a.jpg", "width": 40, "height": 30}, {"id": 2, "file_name": image}, image]
    document = {
        "images": images,
        "annotations": items,
        "categories": [{"id": 1, "name": "cat", "keypoints": ["a", "b"]}],
    }
    _, found = read_items(CocoFormat(), write(tmp_path / "a.json", json.dumps(document)))
    assert len(found) >= 3
    for item in found:
        convert(item, bad_boxes=policy)


@fuzz
@given(
    st.lists(st.one_of(st.just("0"), st.text(max_size=6), st.floats(-1, 2).map(str)), max_size=14),
    st.sampled_from([(0, 0), (2, 3), (3, 2)]),
)
def test_yolo(cells: list[str], shape: tuple[int, int]) -> None:
    form = LabelForm({0: "cat"}, *shape)
    boxes, message = outcome(parse_labels, " ".join(cells).encode("utf-8", "replace"), "labels/a.txt", form)
    if message:
        assert "labels/a.txt" in message
    else:
        convert(Row("a", {"image": "a.jpg", "boxes": boxes}))


@fuzz
@given(st.binary(max_size=200))
def test_yolo_bytes(data: bytes) -> None:
    boxes, message = outcome(parse_labels, data, "labels/a.txt", LabelForm({0: "cat"}))
    assert boxes is not None or "labels/a.txt" in message


XML = b"""<?xml version="1.0"?><annotation><filename>a.jpg</filename><size><width>40</width><height>30</height></size>
<object><name>cat</name><pose>Left</pose><difficult>0</difficult><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>30</xmax>
<ymax>20</ymax></bndbox><part><name>head</name></part></object></annotation>"""


@fuzz
@given(st.lists(st.tuples(st.integers(0, len(XML) - 1), st.integers(0, 255)), max_size=6), st.integers(0, len(XML)))
def test_voc(changes: list[tuple[int, int]], length: int) -> None:
    data = bytearray(XML)
    for place, byte in changes:
        data[place] = byte
    read, message = outcome(fields_of_xml, bytes(data[:length] if length % 5 == 0 else data), "a.xml")
    if message:
        assert "a.xml" in message
    else:
        fields, account = read
        assert faults(account) == []
        convert(Row("a.xml", {"image": "a.jpg", **fields}))


@fuzz
@given(
    st.fixed_dictionaries(
        {"imageGcsUri": st.just("gs://b/a.jpg") | anything},
        optional={
            "classificationAnnotation": st.fixed_dictionaries({"displayName": anything}) | anything,
            "classificationAnnotations": st.lists(st.fixed_dictionaries({"displayName": anything})) | anything,
            "boundingBoxAnnotations": st.lists(
                st.dictionaries(st.sampled_from(["displayName", "xMin", "yMin", "xMax", "yMax"]), anything)
            )
            | anything,
            "dataItemResourceLabels": st.fixed_dictionaries({"aiplatform.googleapis.com/ml_use": anything}) | anything,
        },
    )
)
def test_vertex_json(tmp_path: Path, value: Any) -> None:
    _, found = read_items(VertexFormat(), write(tmp_path / "a.jsonl", json.dumps(value) + "\n"))
    assert len(found) == 1
    convert(found[0])


@fuzz
@given(
    st.lists(
        st.lists(st.sampled_from(["", "0.5", "x", "TEST", "gs://b/a.jpg", "nan", '"', "cat"]), max_size=12),
        min_size=1,
        max_size=4,
    )
)
def test_vertex_csv(tmp_path: Path, lines: list[list[str]]) -> None:
    text = "gs://b/first.jpg\n" + "\n".join(",".join(cells) for cells in lines)
    with suppress(*[ManifestError] if '"' in text else []):  # a quote that takes in the next line
        _, found = read_items(VertexFormat(), write(tmp_path / "a.csv", text))
        for item in found:
            convert(item)


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("boxes", 5),
        ("boxes", [5]),
        ("boxes", {}),
        ("panoptic", 5),
        ("captions", {"a": 1}),
        ("label", {}),
    ],
)
def test_fields_of_the_wrong_form_are_told(kind: str, field: Any) -> None:
    with pytest.raises(ElementError):
        parse(KINDS[kind], {kind: field})
