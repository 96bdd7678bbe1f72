"""What a document does not have, or has in another shape than its tool writes: a reject, a note or a decision.

A picture whose list of objects is missing is not one without objects; what is read of an object must not be less than
what is told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.core.account import ANNOTATIONS, KEYS, Decision
from beam_tfrecord.manifests import FORMATS
from beam_tfrecord.manifests.base import Piece
from beam_tfrecord.manifests.picture_labels import PICTURES, SKIPPED
from beam_tfrecord.options.config import ManifestConfig
from beam_tfrecord.options.values import InputSpec
from tests.annotation_tools import account_of, read_items, rejects, write
from tests.label_files import picture
from tests.local_files import LocalFiles

CORNERS = [[1, 1], [9, 1], [9, 9]]
REGION = {"shape_attributes": {"name": "rect", "x": 1, "y": 1, "width": 5, "height": 5}, "region_attributes": {}}
# A document of each format with one picture, and where its list of objects stands.
DOCUMENTS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "labelme": ({"imagePath": "a.jpg", "shapes": [], "imageHeight": 9, "imageWidth": 9}, ("shapes",)),
    "createml": ([{"image": "a.jpg", "annotations": []}], (0, "annotations")),
    "datumaro": (
        {"media_type": 1, "categories": {}, "items": [{"id": "a", "image": {"path": "a.jpg"}, "annotations": []}]},
        ("items", 0, "annotations"),
    ),
    "label_studio": (
        [{"data": {"image": "a.jpg"}, "annotations": [{"result": [], "id": 1}]}],
        (0, "annotations", 0, "result"),
    ),
    "cityscapes": ({"imgHeight": 9, "imgWidth": 9, "objects": []}, ("objects",)),
    "supervisely": ({"size": {"height": 9, "width": 9}, "tags": [], "objects": []}, ("objects",)),
    "bdd100k_files": ({"name": "a", "frames": [{"objects": []}]}, ("frames", 0, "objects")),
    "via": ({"a.jpg9": {"filename": "a.jpg", "size": 9, "regions": []}}, ("a.jpg9", "regions")),
}
NAMES = {"cityscapes": "a_gtFine_polygons.json", "supervisely": "a.jpg.json"}


def placed(folder: Path, name: str, document: Any) -> str:
    write(folder / ("a_leftImg8bit.png" if name == "cityscapes" else "a.jpg"), picture(1))
    return str(write(folder / NAMES.get(name, "a.json"), json.dumps(document)))


def without(document: Any, place: tuple[Any, ...], *given: Any) -> Any:
    """The document with null in place of a list, or something else that is given."""
    copy = json.loads(json.dumps(document))
    inner = copy
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = given[0] if given else None
    return copy


@pytest.mark.parametrize("name", DOCUMENTS)
def test_an_empty_list_of_objects_says_that_there_are_none_and_a_missing_one_is_a_reject(
    name: str, tmp_path: Path
) -> None:
    document, place = DOCUMENTS[name]
    _, items = read_items(FORMATS[name], placed(tmp_path, name, document))
    assert [item.fields["boxes"] for item in items] == [[]]
    _, items = read_items(FORMATS[name], placed(tmp_path, name, without(document, place)))
    ((code, message),) = rejects(items)
    assert len(items) == 1
    assert code == "bad_annotation"
    assert f"{place[-1]} is missing" in message


@pytest.mark.parametrize("name", ["createml", "via"])
def test_one_object_in_place_of_a_list_of_them_is_a_reject(name: str, tmp_path: Path) -> None:
    document, place = DOCUMENTS[name]
    _, items = read_items(FORMATS[name], placed(tmp_path, name, without(document, place, "fox")))
    assert [code for code, _ in rejects(items)] == ["bad_annotation"]


def test_the_only_box_of_create_ml_that_is_in_no_list_is_a_reject(tmp_path: Path) -> None:
    box = {"label": "fox", "coordinates": {"x": 1, "y": 1, "width": 2, "height": 2}}
    _, items = read_items(FORMATS["createml"], placed(tmp_path, "createml", [{"image": "a.jpg", "annotation": box}]))
    ((code, message),) = rejects(items)
    assert code == "bad_annotation"
    assert "not a list of boxes" in message


def sagemaker(folder: Path, *lines: Mapping[str, Any]) -> str:
    write(folder / "a.jpg", picture(1))
    return str(write(folder / "out.manifest", "".join(json.dumps(line) + "\n" for line in lines)))


BOXES = {"annotations": [{"class_id": 0, "left": 1, "top": 1, "width": 3, "height": 3}]}
OF_BOXES = {"type": "groundtruth/object-detection", "class-map": {"0": "fox"}}


def test_a_line_of_ground_truth_without_its_labels_is_a_reject_that_says_why(tmp_path: Path) -> None:
    uri = sagemaker(
        tmp_path,
        {"source-ref": "s3://b/a.jpg", "bb": BOXES, "bb-metadata": OF_BOXES},
        {"source-ref": "s3://b/b.jpg", "bb-metadata": {**OF_BOXES, "failure-reason": "ClientError: no picture"}},
        {"source-ref": "s3://b/c.jpg", "bb": {"image_size": []}, "bb-metadata": OF_BOXES},
    )
    _, items = read_items(FORMATS["sagemaker"], uri)
    (missing, reason), (code, message) = rejects(items)
    assert missing == "missing_label"
    assert "no bb: 'ClientError: no picture'" in reason
    assert code == "bad_annotation"
    assert "bb.annotations is missing" in message


def test_what_ground_truth_has_beside_what_is_read_is_noted(tmp_path: Path) -> None:
    scores = {**OF_BOXES, "objects": [{"confidence": 0.5}, {"confidence": 0.7}]}
    line = {"source-ref": "s3://b/a.jpg", "bb": BOXES, "bb-metadata": scores}
    filler = [{"source-ref": "s3://b/a.jpg", "kind": "x", "bb": BOXES, "bb-metadata": OF_BOXES}] * 1_000
    _, items = read_items(FORMATS["sagemaker"], sagemaker(tmp_path, *filler, {**line, "late": "y"}))
    told = " ".join(message for _, message in items[-1].fields["notes"])
    assert "it has no kind" in told
    assert "2 confidences of 1 boxes are not stored" in told
    assert "late is in none of the first lines" in told


def labelbox(folder: Path, *labels: Mapping[str, Any]) -> str:
    write(folder / "a.jpg", picture(1))
    line = {
        "data_row": {"external_id": "a.jpg"},
        "media_attributes": {"height": 9, "width": 9},
        "projects": {"p": {"labels": list(labels)}},
    }
    return str(write(folder / "export.ndjson", json.dumps(line) + "\n"))


@pytest.mark.parametrize("labels", [[], [{"id": "1", "performance_details": {"skipped": True}, "annotations": {}}]])
def test_a_data_row_of_labelbox_that_nobody_labelled_is_no_picture_without_objects(
    labels: list[Any], tmp_path: Path
) -> None:
    uri = labelbox(tmp_path, *labels)
    assert read_items(FORMATS["labelbox"], uri)[1] == []
    assert account_of(FORMATS["labelbox"], uri).unused(PICTURES, SKIPPED) == 1


def test_a_label_of_labelbox_without_annotations_is_a_reject_and_answers_below_answers_are_noted(
    tmp_path: Path,
) -> None:
    _, items = read_items(FORMATS["labelbox"], labelbox(tmp_path, {"id": "1"}))
    assert [code for code, _ in rejects(items)] == ["bad_annotation"]
    answer = {"name": "day", "classifications": [{"name": "weather", "radio_answer": {"name": "rain"}}]}
    asked = {"annotations": {"classifications": [{"name": "time", "radio_answer": answer}]}}
    _, (row,) = read_items(FORMATS["labelbox"], labelbox(tmp_path, {"id": "1", **asked}))
    assert row.fields["label"] == "day"
    ((_, message),) = row.fields["notes"]
    assert "'weather', asked of 'day', is not stored" in message


def test_text_answers_of_json_min_are_the_label_that_an_option_names_and_told_otherwise(tmp_path: Path) -> None:
    write(tmp_path / "a.jpg", picture(1))
    entry = {"image": "a.jpg", "id": 1, "species": "fox", "annotator": 1, "annotation_id": 2, "created_at": "2024"}
    uri = str(write(tmp_path / "min.json", json.dumps([entry])))
    named = account_of(FORMATS["label_studio"], uri).named[KEYS]
    assert {reason: told.example for reason, told in named.items()} == {"looks like labels": "species"}
    _, (row,) = read_items(FORMATS["label_studio"], uri, label_column="species")
    assert row.fields["label"] == "fox"


def test_attributes_that_cannot_be_right_are_told_when_the_row_is_parsed(tmp_path: Path) -> None:
    frame = {"name": "a.jpg", "labels": [{"category": "car", "score": "high", "box2d": {"x1": 1, "y1": 1}}]}
    _, (row,) = read_items(FORMATS["bdd100k"], placed(tmp_path, "bdd100k", [frame]))
    assert row.fields["boxes"][0]["confidence"] == "high"
    one = {
        "name": "fox",
        "polygon": {"x": [1, 9, 9], "y": [1, 1, 9]},
        "occluded": "partly",
        "parts": {"part_level": 1.0},
    }
    document = {"annotation": {"imsize": [9, 9], "object": [one, {**one, "parts": {"part_level": 0}}]}}
    uri = placed(tmp_path / "ade", "ade20k", document)
    _, (row,) = read_items(FORMATS["ade20k"], uri)
    assert [box["occluded"] for box in row.fields["boxes"]] == ["partly"]
    assert account_of(FORMATS["ade20k"], uri).unused(ANNOTATIONS, "part of an object") == 1


def test_an_open_poly2d_beside_a_box_and_points_without_names_are_noted(tmp_path: Path) -> None:
    box = {"x1": 1, "y1": 1, "x2": 5, "y2": 5}
    one = {"category": "car", "box2d": box, "poly2d": [{"vertices": CORNERS, "types": "LLL", "closed": False}]}
    _, (row,) = read_items(FORMATS["bdd100k"], placed(tmp_path, "bdd100k", [{"name": "a.jpg", "labels": [one]}]))
    assert "bbox" in row.fields["boxes"][0]
    assert "is not stored" in row.fields["notes"][0][1]
    document = {
        "media_type": 1,
        "categories": {
            "label": {"labels": [{"name": "fox"}]},
            "points": {"items": [{"label_id": 0, "labels": ["nose"]}]},
        },
        "items": [
            {
                "id": "a",
                "image": {"path": "a.jpg"},
                "annotations": [
                    {"type": "bbox", "label_id": 0, "group": 1, "bbox": [1, 1, 3, 3]},
                    {"type": "points", "label_id": 0, "group": 1, "points": [1, 1, 2, 2]},
                ],
            }
        ],
    }
    _, (row,) = read_items(FORMATS["datumaro"], placed(tmp_path / "d", "datumaro", document))
    assert "2 points and its class names 1" in row.fields["notes"][0][1]


@pytest.mark.parametrize("given", [["fox"], [["fox", 1]]])
def test_region_attributes_that_are_no_object_are_a_reject(given: Any, tmp_path: Path) -> None:
    document = {"a.jpg9": {"filename": "a.jpg", "size": 9, "regions": [{**REGION, "region_attributes": given}]}}
    _, items = read_items(FORMATS["via"], placed(tmp_path, "via", document))
    assert [code for code, _ in rejects(items)] == ["bad_annotation"]


def test_attributes_of_coco_annotations_are_counted_one_by_one(tmp_path: Path) -> None:
    write(tmp_path / "a.jpg", picture(1))
    further = {"occluded": True, "color": "red"}
    document = {
        "images": [{"id": 1, "file_name": "a.jpg"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 3, 3], "attributes": further}],
        "categories": [{"id": 1, "name": "fox"}],
    }
    uri = str(write(tmp_path / "c.json", json.dumps(document)))
    assert account_of(FORMATS["coco"], uri).named[KEYS]["not read of attributes"].example == "color"


def decisions(name: str, uri: str, **options: Any) -> list[Decision]:
    files, config = LocalFiles(), ManifestConfig(input=(InputSpec(uri),), **options)
    source = FORMATS[name].describe(files, uri, None, config)
    items = FORMATS[name].rows(files, Piece(source), config)
    return [*source.decisions, *(item for item in items if isinstance(item, Decision))]


def test_codes_of_open_images_that_no_description_names_are_decided_on(tmp_path: Path) -> None:
    write(tmp_path / "class-descriptions.csv", "/m/1,Fox\n")
    write(tmp_path / "class-descriptions-boxable.csv", "/m/9,Owl\n")
    uri = str(write(tmp_path / "labels.csv", "ImageID,Source,LabelName,Confidence\na,x,/m/1,1\na,x,/m/2,1\n"))
    found = {decided.what: decided.value for decided in decisions("openimages", uri)}
    assert found["names of the classes"] == f"{tmp_path}/class-descriptions.csv"
    assert found["classes without a name"] == "1, such as /m/2"


def test_how_the_boxes_of_a_list_were_read_is_decided_once_and_told(tmp_path: Path) -> None:
    uri = str(write(tmp_path / "train.txt", "a.jpg 1,2,5,6,0\nb.jpg 3,3,40,50,1\n"))
    found = {decided.what: (decided.value, decided.why) for decided in decisions("list", uri)}
    assert found["boxes"] == ("xmin, ymin, xmax, ymax", "all 2 boxes")
    assert found["numbers of boxes"] == ("pixels", "all 2 boxes")


def test_boxes_of_a_table_without_a_class_are_decided_on(tmp_path: Path) -> None:
    uri = str(write(tmp_path / "t.csv", "image,xmin,ymin,xmax,ymax\na.jpg,1,2,5,6\n"))
    assert {decided.what: decided.value for decided in decisions("csv", uri)}["class of all boxes"] == "object"


def test_a_size_that_can_be_none_is_told_by_the_line_of_the_box(tmp_path: Path) -> None:
    text = "image,width,height,class,xmin,ymin,xmax,ymax\na.jpg,wide,9,fox,1,2,5,6\nb.jpg,12.0,9,fox,1,2,5,6\n"
    _, (first, second) = read_items(FORMATS["csv"], str(write(tmp_path / "t.csv", text)))
    assert "size" not in first.fields
    assert first.fields["notes"][0][0] == "size_mismatch"
    assert second.fields["size"] == (12, 9)


def test_two_lines_of_tiny_imagenet_about_one_image_are_a_row_and_a_reject(tmp_path: Path) -> None:
    write(tmp_path / "wnids.txt", "n01\n")
    write(tmp_path / "train/n01/images/x.JPEG", picture(1))
    write(tmp_path / "val/images/y.JPEG", picture(2))
    write(tmp_path / "val/val_annotations.txt", "y.JPEG\tn01\t0\t0\t3\t3\n" * 2)
    _, items = read_items(FORMATS["tiny_imagenet"], tmp_path)
    ((code, message),) = rejects(items)
    assert code == "bad_row"
    assert "earlier line" in message
    assert len(items) == 3


@pytest.mark.parametrize(("cell", "told"), [(None, "missing_label"), (3, "")])
def test_a_struct_of_lists_whose_classes_are_none_gives_no_class_by_default(
    cell: Any, told: str, tmp_path: Path
) -> None:
    line = {"image": "a.jpg", "objects": {"bbox": [[1, 1, 5, 5]], "category": cell}}
    _, items = read_items(
        FORMATS["jsonl"], str(write(tmp_path / "t.jsonl", json.dumps(line) + "\n")), box_format="xyxy"
    )
    if told:
        assert items[0].fields["boxes"][0]["class"] is None  # which is a reject when the row is parsed
    else:
        ((code, message),) = rejects(items)
        assert code == "bad_box"
        assert "category is 3, not a list" in message


@pytest.mark.parametrize(("number", "told"), [(7, 1), (0, 0), (99, 0), ("x", 0), ([], 0)])
def test_the_category_of_a_caption_without_a_box_is_noted_where_it_is_one(
    number: Any, told: int, tmp_path: Path
) -> None:
    write(tmp_path / "a.jpg", picture(1))
    document = {
        "images": [{"id": 1, "file_name": "a.jpg"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": number, "caption": "a fox"}],
        "categories": [{"id": 7, "name": "fox"}, {"id": 0, "name": "none"}],
    }
    _, (row,) = read_items(FORMATS["coco"], str(write(tmp_path / "c.json", json.dumps(document))))
    assert [message for _, message in row.fields.get("notes", ()) if "its category (fox)" in message] == [
        "annotations[0]: its category (fox) is not stored: it has a caption and no box"
    ] * told
