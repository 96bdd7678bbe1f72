from __future__ import annotations

import gzip
import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.annotations.boxes import BoxesKind
from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import AnnotationError, ElementError, ManifestError
from beam_tfrecord.manifests import gathering
from beam_tfrecord.manifests.formats.coco import CocoFormat
from beam_tfrecord.manifests.text import json_text
from beam_tfrecord.options.config import ManifestConfig
from beam_tfrecord.options.values import InputSpec
from tests.annotation_tools import parse, read_items, rejects, write
from tests.local_files import LocalFiles

FORMAT = CocoFormat()
CATEGORIES = [{"id": 7, "name": "dog"}, {"id": 3, "name": "cat", "keypoints": ["nose", "tail"]}]
IMAGES = [
    {"id": 2, "file_name": "sub/b.jpg", "width": 40, "height": 30},
    {"id": "x1", "file_name": "a.jpg"},
    {"id": 9, "file_name": "c.jpg", "width": 0, "height": 0},
]


def document(
    annotations: Any = (), images: Any = IMAGES, categories: Any = CATEGORIES, **further: Any
) -> dict[str, Any]:
    return {"info": {}, "annotations": list(annotations), "images": images, "categories": categories, **further}


def test_one_row_per_image_in_order_with_its_annotations_from_anywhere(tmp_path: Path) -> None:
    annotations = [
        {"id": 1, "image_id": "x1", "category_id": 7, "bbox": [1, 2, 3, 4], "area": 12, "iscrowd": 0},
        {"id": 2, "image_id": 2, "category_id": 3, "bbox": [5, 6, 7, 8]},
        {"id": 3, "image_id": "x1", "category_id": 3, "bbox": [0, 0, 1, 1], "iscrowd": 1},
    ]
    source, items = read_items(FORMAT, write(tmp_path / "instances.json", document(annotations)))
    assert source.base == str(tmp_path)
    assert (source.labels, source.category_ids) == (("cat", "dog"), (3, 7))
    assert [(item.fields["image"], item.fields["id"]) for item in items] == [
        ("sub/b.jpg", "2"),
        ("a.jpg", "x1"),
        ("c.jpg", "9"),
    ]
    assert [item.fields.get("size") for item in items] == [(40, 30), None, None]
    assert [[box["class"] for box in item.fields["boxes"]] for item in items] == [["cat"], ["dog", "cat"], []]
    parsed = parse(BoxesKind(), items[1].fields)
    assert parsed.objects[0].box == (1, 2, 4, 6)
    assert parsed.objects[1].attributes == {"is_crowd": 1}
    assert items[0].origin == f"{tmp_path}/instances.json:image 2"


def test_the_order_of_the_parts_and_gzip_make_no_difference(tmp_path: Path) -> None:
    annotations = [{"image_id": 2, "category_id": 3, "bbox": [5, 6, 7, 8]}]
    plain = document(annotations)
    reordered = {key: plain[key] for key in ("categories", "images", "annotations")}
    (tmp_path / "b.json").write_bytes(gzip.compress(json.dumps(reordered).encode()))
    _, first = read_items(FORMAT, write(tmp_path / "a.json", plain))
    _, second = read_items(FORMAT, tmp_path / "b.json")
    assert [item.fields for item in first] == [item.fields for item in second]


def test_images_start_from_the_given_root(tmp_path: Path) -> None:
    source, _ = read_items(FORMAT, write(tmp_path / "a.json", document()), images="/data/train2017")
    assert source.base == "/data/train2017"


def test_segmentations_of_all_forms_are_told_apart(tmp_path: Path) -> None:
    square = [0, 0, 4, 0, 4, 4]
    runs = {"size": [30, 40], "counts": [1200]}
    annotations = [
        {"image_id": 2, "category_id": 3, "bbox": [0, 0, 4, 4], "segmentation": [square, square]},
        {"image_id": 2, "category_id": 3, "bbox": [0, 0, 4, 4], "segmentation": runs},
        {"image_id": 2, "category_id": 3, "bbox": [0, 0, 4, 4], "segmentation": square},
        {"image_id": 2, "category_id": 3, "bbox": [0, 0, 4, 4], "segmentation": []},
    ]
    _, items = read_items(FORMAT, write(tmp_path / "a.json", document(annotations)))
    boxes = items[0].fields["boxes"]
    assert [box.get("polygons") for box in boxes] == [[square, square], None, [square], None]
    assert [box.get("rle") for box in boxes] == [None, runs, None, None]


def test_keypoints_have_the_names_of_their_category(tmp_path: Path) -> None:
    annotations = [{"image_id": 2, "category_id": 3, "bbox": [0, 0, 4, 4], "keypoints": [1, 2, 2, 0, 0, 0]}]
    _, items = read_items(FORMAT, write(tmp_path / "a.json", document(annotations)))
    keypoints = parse(BoxesKind(), items[0].fields).objects[0].keypoints
    assert keypoints.points == ((1, 2, 2), (0, 0, 0))
    assert keypoints.names == ("nose", "tail")


def test_captions(tmp_path: Path) -> None:
    annotations = [{"image_id": 2, "id": 1, "caption": "a cat"}, {"image_id": 2, "id": 2, "caption": "the cat"}]
    source, items = read_items(FORMAT, write(tmp_path / "a.json", document(annotations, categories=[])))
    assert source.labels is None
    assert [item.fields["captions"] for item in items] == [["a cat", "the cat"], [], []]
    assert "boxes" not in items[0].fields


def test_plain_categories_are_labels(tmp_path: Path) -> None:
    annotations = [
        {"image_id": 2, "category_id": 3},
        {"image_id": 9, "category_id": 3},
        {"image_id": 9, "category_id": 7},
    ]
    _, items = read_items(FORMAT, write(tmp_path / "a.json", document(annotations)))
    assert [item.fields.get("label") for item in items] == ["cat", None, ["cat", "dog"]]


@pytest.mark.parametrize("has_folder", [True, False])
def test_panoptic_masks_lie_in_the_folder_of_the_files_name(tmp_path: Path, has_folder: bool) -> None:
    if has_folder:
        (tmp_path / "panoptic_val").mkdir()
    segments = [{"id": 70_000, "category_id": 7, "iscrowd": 0, "bbox": [0, 0, 1, 1], "area": 1}]
    annotations = [{"image_id": 2, "file_name": "b.png", "segments_info": segments}]
    _, items = read_items(FORMAT, write(tmp_path / "panoptic_val.json", document(annotations)))
    folder = tmp_path / "panoptic_val" if has_folder else tmp_path
    assert items[0].fields["panoptic"] == {
        "mask": f"{folder}/b.png",
        "segments": [{"id": 70_000, "class": "dog", "is_crowd": 0}],
    }
    assert items[1].fields["panoptic"] == {"mask": "", "segments": []}


def test_a_file_without_annotations_has_images_without_objects(tmp_path: Path) -> None:
    _, items = read_items(FORMAT, write(tmp_path / "a.json", document()))
    assert [item.fields["boxes"] for item in items] == [[], [], []]
    _, items = read_items(FORMAT, write(tmp_path / "test.json", {"images": IMAGES}))
    assert not any("boxes" in item.fields for item in items)


def test_an_unknown_category_rejects_its_image_and_is_named(tmp_path: Path) -> None:
    annotations = [{"id": 1, "image_id": 2, "category_id": 99, "bbox": [1, 2, 3, 4]}]
    _, items = read_items(FORMAT, write(tmp_path / "a.json", document(annotations)))
    ((code, message),) = rejects(items)
    assert code == "unknown_category"
    assert "annotations[0] has category 99" in message
    assert len(items) == 3


def test_annotations_of_an_unknown_image_are_rejects(tmp_path: Path) -> None:
    annotations = [{"image_id": 5, "category_id": 3, "bbox": [1, 2, 3, 4]}] * 2 + [{"category_id": 3}]
    _, items = read_items(FORMAT, write(tmp_path / "a.json", document(annotations)))
    found = [item for item in items if not isinstance(item, Row)]
    assert [(item.finding.code, item.finding.origin) for item in found] == [
        ("bad_annotation", f"{tmp_path}/a.json:image 5"),
        ("bad_annotation", f"{tmp_path}/a.json:image (no image_id)"),
    ]
    assert "2 annotations" in found[0].finding.message
    assert "annotations[0]" in found[0].finding.message


@pytest.mark.parametrize(
    ("images", "code", "told"),
    [
        ([{"id": 1, "file_name": "a.jpg"}, {"id": "1", "file_name": "./a.jpg"}], "bad_annotation", "the same id"),
        ([{"file_name": "a.jpg"}, IMAGES[0]], "bad_row", "images[0] has no id"),
        ([IMAGES[0], {"id": 1}], "bad_row", "images[1] has no file_name"),
        ([IMAGES[0], "a.jpg"], "bad_row", "images[1] is 'a.jpg', not an object"),
    ],
)
def test_images_that_cannot_be_rows_are_rejects(tmp_path: Path, images: Any, code: str, told: str) -> None:
    _, items = read_items(FORMAT, write(tmp_path / "a.json", document(images=images)))
    ((found, message),) = rejects(items)
    assert (found, told in message) == (code, True)
    assert len(items) == 2


@pytest.mark.parametrize(
    "annotation",
    [
        {"image_id": 2, "segments_info": [{"id": 1, "category_id": 3}]},
        {"image_id": 2, "segments_info": "x", "file_name": "b.png"},
    ],
)
def test_broken_panoptic_annotations_are_rejects(tmp_path: Path, annotation: Any) -> None:
    _, items = read_items(FORMAT, write(tmp_path / "a.json", document([annotation])))
    assert [code for code, _ in rejects(items)] == ["bad_annotation"]


def test_two_categories_with_one_name_show_both_ids(tmp_path: Path) -> None:
    categories = [{"id": 4, "name": "cat"}, {"id": 17, "name": "cat"}]
    with pytest.raises(ManifestError, match="categories 4 and 17 are both called 'cat'"):
        read_items(FORMAT, write(tmp_path / "a.json", document(categories=categories)))


@pytest.mark.parametrize(
    ("categories", "told"),
    [
        ([{"id": 4, "name": "cat"}, {"id": 4, "name": "dog"}], "'cat' and 'dog' are both category 4"),
        ([{"id": "four", "name": "cat"}], "whole number"),
        ([{"id": 4}], "needs a name"),
        (["cat"], "needs a name"),
    ],
)
def test_broken_categories_end_the_job(tmp_path: Path, categories: Any, told: str) -> None:
    with pytest.raises(ManifestError, match=told):
        read_items(FORMAT, write(tmp_path / "a.json", document(categories=categories)))


@pytest.mark.parametrize(
    ("data", "told"), [('{"a": 1}', "no images"), ('{"images": [', "no valid JSON"), ("[]", "no valid JSON")]
)
def test_what_is_no_coco_file_ends_the_job(tmp_path: Path, data: str, told: str) -> None:
    with pytest.raises(ManifestError, match=told):
        read_items(FORMAT, write(tmp_path / "a.json", data))


def test_a_missing_file_ends_the_job(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"a\.json"):
        read_items(FORMAT, tmp_path / "a.json")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (json.dumps(document()), True),
        ("\ufeff \n" + json.dumps(document()), True),
        ('{"image": "a.jpg", "label": "cat"}\n{"image": "b.jpg"}', False),
        ("[]", False),
        ('{"images": [], "x": 1}', False),
        ("image,label\n", False),
    ],
)
def test_recognised_by_content(tmp_path: Path, data: str, expected: bool) -> None:
    path = write(tmp_path / "a.json", data)
    assert FORMAT.recognises(LocalFiles(), str(path), path.read_bytes()[:100]) is expected


def test_many_annotations_do_not_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    polygon = [float(number) for number in range(400)]
    with open(tmp_path / "a.json", "w") as stream:
        stream.write('{"images": [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "b.jpg"}], "annotations": [')
        for number in range(1200):
            annotation = {"image_id": number, "category_id": 1, "bbox": [0, 0, 1, 1], "segmentation": [polygon]}
            stream.write(json.dumps(annotation) + ",")
        stream.write('{"image_id": 1}], "categories": [{"id": 1, "name": "a"}]}')
    monkeypatch.setattr(gathering, "IN_MEMORY", 2**18)
    monkeypatch.setattr(json_text, "CHUNK", 2**14)
    files = LocalFiles()
    config = ManifestConfig(input=(InputSpec("x"),))
    source = FORMAT.describe(files, str(tmp_path / "a.json"), None, config)
    tracemalloc.start()
    try:
        items = (item for piece in FORMAT.pieces(files, source) for item in FORMAT.rows(files, piece, config))
        count = sum(isinstance(item, (Row, RejectedRow)) for item in items)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 2 + 1198
    assert peak < (tmp_path / "a.json").stat().st_size / 3


# ---------------------------------------------------------------------------------------------------------------------
# What other tools write, and slips


BOX = {"image_id": 2, "category_id": 3, "bbox": [0, 0, 4, 4]}


def test_two_pictures_with_one_id_are_both_rejected_and_no_other(tmp_path: Path) -> None:
    images = [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "b.jpg"}, {"id": 1, "file_name": "c.jpg"}]
    _, items = read_items(FORMAT, write(tmp_path / "a.json", document([BOX, {**BOX, "image_id": 1}], images)))
    assert [item.fields["image"] for item in items if isinstance(item, Row)] == ["b.jpg"]
    assert [code for code, _ in rejects(items)] == ["bad_annotation"] * 2
    assert all("images[0] (a.jpg) and images[2] (c.jpg)" in message for _, message in rejects(items))


@pytest.mark.parametrize(("second", "is_kept"), [([0, 0, 4, 4], True), ([1, 1, 4, 4], False)])
def test_one_file_under_two_ids_is_kept_only_with_the_same_annotations(
    tmp_path: Path, second: list[int], is_kept: bool
) -> None:
    images = [{"id": 1, "file_name": "s/a.jpg"}, {"id": 2, "file_name": "./s\\a.jpg"}, {"id": 3, "file_name": "c.jpg"}]
    annotations = [{**BOX, "id": 1, "image_id": 1}, {**BOX, "id": 2, "bbox": second}]
    _, items = read_items(FORMAT, write(tmp_path / "a.json", document(annotations, images)))
    assert len([item for item in items if isinstance(item, Row)]) == (3 if is_kept else 1)
    assert all("one file with different annotations" in message for _, message in rejects(items))


def test_an_annotation_without_a_box_among_others_rejects_its_image(tmp_path: Path) -> None:
    images = [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "b.jpg"}]
    annotations = [{**BOX, "image_id": 1}, {"image_id": 1, "category_id": 7, "area": 9}, BOX]
    _, items = read_items(FORMAT, write(tmp_path / "a.json", document(annotations, images)))
    assert "label" not in items[0].fields
    with pytest.raises(AnnotationError, match=r"object 2 \(dog, annotations\[1\]\) has no box"):
        parse(BoxesKind(), items[0].fields)
    assert len(parse(BoxesKind(), items[1].fields).objects) == 1


def test_an_annotation_of_several_kinds_gives_all_of_them(tmp_path: Path) -> None:
    points = [1, 2, 2, 0, 0, 0]
    everything = {**BOX, "segmentation": [[0, 0, 4, 0, 4, 4]], "keypoints": points, "caption": "a cat"}
    _, items = read_items(FORMAT, write(tmp_path / "a.json", document([everything])))
    (found,) = parse(BoxesKind(), items[0].fields).objects
    assert (found.name, found.box, found.mask is not None, found.keypoints is not None) == (
        "cat",
        (0, 0, 4, 4),
        True,
        True,
    )
    assert items[0].fields["captions"] == ["a cat"]
    assert "label" not in items[0].fields


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"categories": []}, r"no categories, but annotations\[0\] has a category_id"),
        ({"categories": {"3": "cat"}}, "categories is .*, not an array"),
        ({"categories": None}, "categories is None, not an array"),
        ({"annotations": {"2": []}}, "annotations is .*, not an array"),
        ({"images": {"2": {}}}, "images is .*, not an array"),
        ({"categories": [{"id": 3, "name": "f\ud800"}]}, r"categories\[0\].name .* half of a surrogate pair"),
        ({"categories": [{"id": 3, "name": ["cat"]}]}, r"categories\[0\].name is \['cat'\], not a text"),
        ({"categories": [{"id": "--3", "name": "cat"}]}, r"categories\[0\].id is '--3'"),
        ({"categories": [{"id": 3, "name": "cat", "keypoints": 17}]}, r"categories\[0\].keypoints is 17"),
    ],
)
def test_what_concerns_all_objects_ends_the_job_with_its_place(
    tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    path = write(tmp_path / "a.json", {**document([BOX]), **change})
    with pytest.raises(ManifestError, match=f"a.json.*{told}"):
        read_items(FORMAT, path)


@pytest.mark.parametrize("image_id", [2, 2.0, "2"])
@pytest.mark.parametrize("category_id", [3, 3.0, "3"])
def test_ids_are_the_same_whatever_their_type(tmp_path: Path, image_id: Any, category_id: Any) -> None:
    annotation = {**BOX, "image_id": image_id, "category_id": category_id}
    _, items = read_items(FORMAT, write(tmp_path / "a.json", document([annotation])))
    assert [box["class"] for box in items[0].fields["boxes"]] == ["cat"]
    assert not rejects(items)


@pytest.mark.parametrize(
    ("annotation", "told"),
    [
        ({"segmentation": 1}, "its outline 1 is no list"),
        ({"segmentation": True}, "its outline True is no list"),
        ({"segmentation": ["123456"]}, "odd number of coordinates, 1"),
        ({"segmentation": {"size": "24", "counts": "0"}}, "'24' is no list"),
        ({"segmentation": [[1, 2, 3, 4, 5, float("nan")]]}, "not finite"),
        ({"bbox": "1234"}, "its box is '1234'"),
        ({"bbox": {"1": 2, "3": 4, "5": 6, "7": 8}}, "its box is"),
        ({"bbox": [True, 0, 4, 4]}, "left True is no number"),
        ({"bbox": 0}, "its box is 0"),
        ({"keypoints": "120120"}, "'120120' is no list"),
        ({"keypoints": {}}, "is no list"),
        ({"area": 1e300}, "area 1e\\+300 is too large"),
        ({"area": float("inf")}, "area inf is not finite"),
        ({"iscrowd": [0]}, r"is_crowd \[0\]"),
        ({"category_id": "--1"}, r"annotations\[0\].category_id is '--1'"),
        ({"category_id": True}, "category_id is True"),
        ({"category_id": None}, "has no category"),
    ],
)
def test_a_value_of_another_type_is_told_and_never_taken_for_something(
    tmp_path: Path, annotation: dict[str, Any], told: str
) -> None:
    path = write(tmp_path / "a.json", document([{**BOX, **annotation}, {**BOX, "image_id": 9}]))
    _, items = read_items(FORMAT, path)
    if isinstance(items[0], Row):
        with pytest.raises(ElementError, match=told):
            parse(BoxesKind(), items[0].fields)
    else:
        assert re.search(told, items[0].finding.message)
    assert len(parse(BoxesKind(), items[2].fields).objects) == 1


def test_a_key_that_stands_twice_rejects_its_image_and_no_other(tmp_path: Path) -> None:
    text = json.dumps(document([BOX, {**BOX, "image_id": 9}])).replace('"bbox": [', '"bbox": [9], "bbox": [', 1)
    _, items = read_items(FORMAT, write(tmp_path / "a.json", text))
    assert rejects(items) == [("bad_annotation", "annotations[0] has the key 'bbox' twice: take one of them out")]
    whole = json.dumps(document([BOX]))
    with pytest.raises(ManifestError, match="'images' stands twice"):
        read_items(FORMAT, write(tmp_path / "b.json", whole[:-1] + ', "images": []}'))


def test_a_size_that_can_be_none_is_told_and_not_taken(tmp_path: Path) -> None:
    images = [
        {"id": number, "file_name": f"{number}.jpg", "width": width, "height": 30}
        for number, width in enumerate(["--80", None, 0, -5, 40])
    ]
    _, items = read_items(FORMAT, write(tmp_path / "a.json", document(images=images)))
    assert [item.fields.get("size") for item in items] == [None, None, None, None, (40, 30)]
    assert [len(item.fields.get("notes", ())) for item in items] == [1, 0, 0, 1, 0]


def test_what_tools_leave_out_is_no_trouble(tmp_path: Path) -> None:
    """Roboflow, CVAT, LVIS, Label Studio, VIA: no info, licenses null, no iscrowd, category 0, a supercategory none."""
    categories = [{"id": 0, "name": "things", "supercategory": "none"}, {"id": 1, "name": 7, "supercategory": "things"}]
    annotation = {"image_id": 1, "category_id": 0, "bbox": [1.5, 0, 0.5, 4], "segmentation": [], "keypoints": []}
    given = {"images": [{"id": 1, "file_name": "s/a b.jpg"}], "annotations": [annotation], "categories": categories}
    source, items = read_items(FORMAT, write(tmp_path / "a.json", "\ufeff" + json.dumps({**given, "licenses": None})))
    assert (source.labels, source.category_ids) == (("things", "7"), (0, 1))
    assert parse(BoxesKind(), items[0].fields).objects[0].box == (1.5, 0, 2, 4)
