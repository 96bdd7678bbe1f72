from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageOps
from pycocotools import mask as coco

from beam_tfrecord.annotations.boxes import BoxesKind, Objects
from beam_tfrecord.core.geometry import PixelFrame
from beam_tfrecord.errors import AnnotationError, ElementError
from tests.annotation_tools import (
    UPRIGHT,
    Warnings,
    make_placement,
    make_schema,
    nearest,
    parse,
    pixels,
    reference_mask,
    still,
    through_tensorflow,
    turned,
)

KIND = BoxesKind()
CAR = {"class": "car", "bbox": ["10", "8", "60", "48"]}


STILL = still(100, 80)


def placed(*boxes: dict[str, Any], frame: PixelFrame = STILL, **named: Any) -> Objects:
    return KIND.place(parse(KIND, {"boxes": list(boxes)}), make_placement(frame, **named))


def corners(value: Objects) -> list[float]:
    return [side for item in value.objects for side in item.box or ()]


# ---------------------------------------------------------------------------------------------------------------------
# Parsing


def test_the_three_forms_of_a_box_are_one() -> None:
    forms = {"bbox": [10, 8, 60, 48], "bbox_xywh": [10, 8, 50, 40], "bbox_center": [35, 28, 50, 40]}
    parsed = [parse(KIND, {"boxes": [{"class": "car", form: cells}]}) for form, cells in forms.items()]
    assert parsed[0] == parsed[1] == parsed[2]
    assert corners(parsed[0]) == [10, 8, 60, 48]


def test_values_are_pickled_as_they_are() -> None:
    value = parse(KIND, {"boxes": [{**CAR, "area": 5, "polygons": [[1, 1, 5, 1, 5, 5]], "keypoints": [1, 2, 2]}]})
    assert pickle.loads(pickle.dumps(value)) == value


def test_no_field_is_no_value_and_no_objects_are_a_value() -> None:
    assert parse(KIND, {}) is None
    assert parse(KIND, {"boxes": []}) == Objects(())


@pytest.mark.parametrize(
    ("change", "code", "told"),
    [
        ({"bbox": ["1", "x", "3", "4"]}, "bad_box", "ymin 'x' is no number"),
        ({"bbox": ["1", "", "3", "4"]}, "bad_box", "ymin is empty"),
        ({"bbox": [1, 2, 3]}, "bad_box", "not xmin, ymin, xmax, ymax"),
        ({"bbox": "1 2 3 4"}, "bad_box", "not xmin, ymin, xmax, ymax"),
        ({"bbox": None}, "bad_box", "has no box"),
        ({"class": " "}, "missing_label", "has no class"),
        ({"class": None}, "missing_label", "has no class"),
        ({"difficult": "maybe"}, "bad_annotation", "difficult 'maybe'"),
        ({"area": "large"}, "bad_annotation", "area 'large'"),
        ({"polygons": [[1, 2, "x", 4, 5, 6]]}, "bad_mask", "'x' is no number"),
        ({"polygons": [[1, 2, 3, 4, 5, 6, 7]]}, "bad_mask", "odd number"),
        ({"rle": {"size": [1]}}, "bad_mask", "size and counts"),
        ({"rle": {"size": [2, 2], "counts": ["x"]}}, "bad_mask", "size and counts"),
        ({"keypoints": [1, 2]}, "bad_keypoints", "2 numbers"),
        ({"keypoints": [1, 2, 2], "keypoint_names": ["a", "b"]}, "bad_keypoints", "not 2 points"),
        ({"keypoints": [1, "x", 2]}, "bad_keypoints", "'x' is no number"),
        ({"keypoints": [1, 2, 5]}, "bad_keypoints", "visibility 5"),
    ],
)
def test_what_cannot_be_read_is_told_with_object_and_line(change: dict[str, Any], code: str, told: str) -> None:
    with pytest.raises(ElementError) as caught:
        parse(KIND, {"boxes": [CAR, {**CAR, "origin": "boxes.csv:7", **change}]})
    assert caught.value.code == code
    assert told in caught.value.message
    assert "object 2" in caught.value.message
    assert "boxes.csv:7" in caught.value.message


def test_boxes_without_a_class_column_are_objects() -> None:
    value = parse(KIND, {"boxes": [{"bbox": [1, 2, 3, 4]}]})
    assert list(KIND.labels(value)) == ["object"]


def test_flags_may_be_words() -> None:
    value = parse(KIND, {"boxes": [{**CAR, "difficult": "True", "occluded": False, "is_crowd": "1"}]})
    assert value.objects[0].attributes == {"difficult": 1, "occluded": 0, "is_crowd": 1}


def test_what_the_format_has_to_tell_and_parts_become_warnings() -> None:
    warnings: Warnings = []
    parse(KIND, {"boxes": [{**CAR, "parts": 2}], "notes": [("size_mismatch", "line 3 differs")]}, warnings)
    assert [code for code, _ in warnings] == ["size_mismatch", "annotation_ignored"]


# ---------------------------------------------------------------------------------------------------------------------
# Placing


def test_pixels_become_fractions_of_the_decoded_size() -> None:
    assert corners(placed(CAR)) == pytest.approx([0.1, 0.1, 0.6, 0.6])


def test_a_stated_size_that_is_wrong_is_told_and_the_image_wins() -> None:
    warnings: Warnings = []
    value = placed({"class": "car", "bbox": [20, 8, 90, 72]}, warnings=warnings, size=(50, 40))
    assert corners(value) == pytest.approx([0.2, 0.1, 0.9, 0.9])
    assert [code for code, _ in warnings] == ["size_mismatch"]
    assert "50x40" in warnings[0][1]
    assert "100x80" in warnings[0][1]


@pytest.mark.parametrize("size", [None, (0, 0), (100, 80)])
def test_a_size_that_is_absent_or_right_is_no_matter(size: tuple[int, int] | None) -> None:
    warnings: Warnings = []
    placed(CAR, warnings=warnings, size=size)
    assert warnings == []


def test_fractions_need_no_size() -> None:
    assert corners(placed({"class": "car", "bbox": [0.1, 0.2, 0.5, 1], "normalized": True})) == pytest.approx(
        [0.1, 0.2, 0.5, 1]
    )


def test_one_bad_box_takes_its_mask_and_keypoints_with_it_and_the_rest_keeps_its_order() -> None:
    def whole(name: str, *box: float) -> dict[str, Any]:
        x, y = box[:2]
        outline = [x, y, x + 4, y, x + 4, y + 4]
        return {"class": name, "bbox": box, "polygons": [outline], "keypoints": [x, y, 2], "difficult": len(name)}

    warnings: Warnings = []
    value = placed(
        whole("a", 10, 10, 20, 20), whole("bb", 30, 10, 30, 20), whole("ccc", 50, 40, 60, 50), warnings=warnings
    )
    assert [code for code, _ in warnings] == ["box_dropped"]
    assert "object 2 (bb)" in warnings[0][1]
    schema = make_schema(["boxes", *KIND.facets(value)], ["a", "bb", "ccc"])
    parsed = through_tensorflow({"boxes": value}, schema)
    assert parsed["image/object/class/text"] == [b"a", b"ccc"]
    assert parsed["image/object/difficult"] == [1, 3]
    assert parsed["image/object/bbox/xmin"] == pytest.approx([0.1, 0.5])
    assert parsed["image/object/keypoint/x"] == pytest.approx([0.1, 0.5])
    tops = [int(np.argwhere(pixels(png)).min(axis=0)[0]) for png in parsed["image/object/mask"]]
    assert tops == [10, 40]


def test_a_bad_box_rejects_the_image_when_asked() -> None:
    with pytest.raises(AnnotationError) as caught:
        placed(CAR, {"class": "car", "bbox": [30, 40, 50, 20]}, bad_boxes="reject")
    assert caught.value.code == "bad_box"
    assert "object 2" in caught.value.message


def test_a_guess_of_the_orientation_is_told_where_it_matters() -> None:
    warnings: Warnings = []
    frame = turned(6, 100, 80)
    placed(CAR, frame=frame, warnings=warnings, is_ambiguous=True)
    KIND.place(Objects(()), make_placement(frame, warnings, is_ambiguous=True))
    assert [code for code, _ in warnings] == ["ambiguous_orientation"]
    assert "100x80 before the turn" in warnings[0][1]


def test_a_box_that_float32_would_make_empty_is_not_stored() -> None:
    warnings: Warnings = []
    value = placed({"class": "car", "bbox": [0.5, 0.1, 0.5 + 1e-12, 0.2], "normalized": True}, warnings=warnings)
    assert value.objects == ()
    assert [code for code, _ in warnings] == ["box_dropped"]


# A rectangle is painted, the picture goes through Pillow, and the box must lie on the paint again.

SOURCE = (44, 32)


def painted(box: tuple[int, int, int, int]) -> Image.Image:
    image = Image.new("L", SOURCE)
    ImageDraw.Draw(image).rectangle((box[0], box[1], box[2] - 1, box[3] - 1), fill=255)
    return image


def paint_of(image: Image.Image) -> tuple[float, float, float, float]:
    left, top, right, bottom = image.point(lambda value: 255 * (value > 127)).getbbox() or (0, 0, 0, 0)
    return left, top, right, bottom


rectangles = st.tuples(st.integers(0, 35), st.integers(0, 23), st.integers(3, 9), st.integers(3, 9)).map(
    lambda drawn: (drawn[0], drawn[1], drawn[0] + drawn[2], drawn[1] + drawn[3])
)


@given(rectangles, st.integers(1, 8), st.booleans(), st.integers(20, 120), st.integers(20, 120))
def test_boxes_lie_on_what_was_painted_after_turning_and_resizing(
    box: tuple[int, int, int, int], orientation: int, is_upright: bool, width: int, height: int
) -> None:
    stored = painted(box)
    exif = stored.getexif()
    exif[0x0112] = orientation
    upright = ImageOps.exif_transpose(stored)
    given_box = paint_of(upright) if is_upright else box
    final = upright.resize((width, height), Image.Resampling.BOX if width < upright.width else Image.Resampling.NEAREST)
    frame = PixelFrame(
        *SOURCE, width, height, orientation, scale_x=width / upright.width, scale_y=height / upright.height
    )
    value = placed({"class": "car", "bbox": list(given_box)}, frame=frame, is_upright=is_upright)
    found = [side * size for side, size in zip(corners(value), (width, height, width, height), strict=True)]
    assert found == pytest.approx(paint_of(final), abs=1.0)


@given(rectangles, st.integers(0, 20), st.integers(0, 15), st.integers(1, 24), st.integers(1, 17))
def test_a_crop_cuts_boxes_at_its_edges_and_drops_what_it_cuts_away(
    box: tuple[int, int, int, int], left: int, top: int, width: int, height: int
) -> None:
    cropped = painted(box).crop((left, top, left + width, top + height))
    frame = PixelFrame(*SOURCE, width, height, offset_x=-left, offset_y=-top)
    warnings: Warnings = []
    value = placed({"class": "car", "bbox": list(box)}, frame=frame, warnings=warnings, bad_boxes="reject")
    expected = paint_of(cropped)
    if expected == (0, 0, 0, 0):
        assert value.objects == ()
        assert [code for code, _ in warnings] == ["box_dropped"]
    else:
        found = [side * size for side, size in zip(corners(value), (width, height, width, height), strict=True)]
        assert found == pytest.approx(expected, abs=1e-4)
        assert warnings == []


def test_padding_moves_boxes() -> None:
    frame = PixelFrame(100, 80, 50, 50, scale_x=0.5, scale_y=0.5, offset_y=5)
    assert corners(placed(CAR, frame=frame)) == pytest.approx([0.1, 0.18, 0.6, 0.58])


# ---------------------------------------------------------------------------------------------------------------------
# Over the edge

OVER = [-30.0, 20.0, 50.0, 20.0, 50.0, 70.0, -30.0, 60.0]  # an outline, half of a box of 80x50 at the left edge
LEFT = {
    "class": "car",
    "bbox": [-30, 20, 50, 70],
    "polygons": [OVER],
    "keypoints": [-20, 30, 2, 40, 30, 2],
    "area": 3200,
}


@pytest.mark.parametrize("policy", ["visible", "clip"])
def test_mask_area_and_keypoints_are_cut_as_their_box_is(policy: str) -> None:
    warnings: Warnings = []
    value = placed(LEFT, warnings=warnings, bad_boxes=policy)
    assert corners(value) == pytest.approx([0, 0.25, 0.5, 0.875])
    assert np.array_equal(mask_of(value), reference_mask([OVER], 80, 100))
    assert value.objects[0].attributes["area"] == pytest.approx(3200 * 50 / 80)
    assert value.objects[0].keypoints is not None
    assert value.objects[0].keypoints.points == ((0.0, 0.0, 0), (pytest.approx(0.4), pytest.approx(0.375), 2))
    assert sorted(code for code, _ in warnings) == ["box_clipped", "keypoint_outside"]


def test_an_outline_without_a_box_follows_the_same_rule() -> None:
    warnings: Warnings = []
    far = [x - 30 if place % 2 == 0 else x for place, x in enumerate(OVER)]
    value = placed(
        {"class": "car", "polygons": [OVER]},
        {"class": "dog", "polygons": [far]},
        warnings=warnings,
        bad_boxes="visible",
    )
    assert [item.name for item in value.objects] == ["car"]
    assert [code for code, _ in warnings] == ["box_clipped", "box_dropped"]


@given(
    st.lists(st.tuples(st.integers(-60, 60), st.integers(-50, 50), st.integers(1, 90), st.integers(1, 70)), max_size=6),
    st.integers(1, 8),
    st.integers(10, 60),
)
def test_which_objects_are_kept_does_not_depend_on_turn_and_size_and_none_is_lost(
    drawn: list[tuple[int, int, int, int]], orientation: int, width: int
) -> None:
    """Each object is stored, or told with box_dropped."""
    boxes = [
        {"class": f"c{number}", "bbox": [x, y, x + across, y + down]}
        for number, (x, y, across, down) in enumerate(drawn)
    ]
    upright = SOURCE if orientation < 5 else SOURCE[::-1]
    height = max(1, round(width * upright[1] / upright[0]))
    scales = {"scale_x": width / upright[0], "scale_y": height / upright[1]}
    kept = []
    for frame in (still(*SOURCE), PixelFrame(*SOURCE, width, height, orientation, **scales)):
        warnings: Warnings = []
        value = placed(*boxes, frame=frame, warnings=warnings)
        codes = [code for code, _ in warnings]
        assert len(value.objects) + codes.count("box_dropped") == len(boxes)
        kept.append([item.name for item in value.objects])
    assert kept[0] == kept[1]


# ---------------------------------------------------------------------------------------------------------------------
# Masks

OUTLINE = [20.0, 10.0, 60.0, 12.0, 50.0, 70.0, 24.5, 40.0]


def mask_of(value: Objects, number: int = 0) -> Any:
    mask = value.objects[number].mask
    assert mask is not None
    return pixels(mask.png)  # type: ignore[union-attr]


def test_polygons_become_masks_as_pycocotools_draws_them() -> None:
    expected = reference_mask([OUTLINE], 80, 100)
    value = placed({"class": "car", "polygons": [OUTLINE]})
    assert np.array_equal(mask_of(value), expected)
    assert corners(value) == pytest.approx([0.2, 0.125, 0.6, 0.875])


def test_polygons_in_fractions_are_drawn_on_the_size_of_the_image() -> None:
    fractions = [side / (80 if place % 2 else 100) for place, side in enumerate(OUTLINE)]
    expected = reference_mask([OUTLINE], 80, 100)
    assert np.array_equal(mask_of(placed({"class": "car", "polygons": [fractions], "normalized": True})), expected)


@pytest.mark.parametrize("compressed", [True, False])
def test_run_length_codes_become_masks(compressed: bool) -> None:
    mask = np.zeros((80, 100), np.uint8)
    mask[10:30, 40:70] = 1
    code = coco.encode(np.asfortranarray(mask))
    counts: Any = code["counts"].decode()
    if not compressed:
        counts = [40 * 80 + 10, *([20, 60] * 29), 20, 29 * 80 + 50]
        counts = [*counts[:-1], 80 * 100 - sum(counts[:-1])]
    value = placed({"class": "car", "rle": {"size": [80, 100], "counts": counts}, "is_crowd": 1})
    assert np.array_equal(mask_of(value), mask)
    assert corners(value) == pytest.approx([0.4, 0.125, 0.7, 0.375])


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("is_upright", [False, True])
def test_masks_turn_with_the_pixels(orientation: int, is_upright: bool) -> None:
    frame = turned(orientation, 100, 80)
    height, width = (100, 80) if is_upright and orientation >= 5 else (80, 100)
    outline = [side * 0.7 for side in OUTLINE]
    drawn = reference_mask([outline], height, width)
    expected = Image.fromarray(drawn)
    if orientation > 1 and not is_upright:
        expected = expected.transpose(UPRIGHT[orientation])
    value = placed({"class": "car", "polygons": [outline]}, frame=frame, is_upright=is_upright)
    assert np.array_equal(mask_of(value), np.asarray(expected))


def test_masks_are_resized_by_nearest_neighbour() -> None:
    frame = PixelFrame(100, 80, 50, 40, scale_x=0.5, scale_y=0.5)
    drawn = reference_mask([OUTLINE], 80, 100)
    assert np.array_equal(mask_of(placed({"class": "car", "polygons": [OUTLINE]}, frame=frame)), nearest(drawn, frame))


@pytest.mark.parametrize(
    "mask",
    [
        {"rle": {"size": [10, 10], "counts": [100]}},
        {"rle": {"size": [80, 100], "counts": [1, 2]}},
        {"rle": {"size": [80, 100], "counts": "!!"}},
        {"rle": {"size": [200_000, 200_000], "counts": [40_000_000_000]}},
        {"polygons": [[0, 0, 1e7, 0, 5, 5]]},
    ],
)
def test_a_mask_that_cannot_be_right_is_left_out_and_told_or_rejects(mask: dict[str, Any]) -> None:
    warnings: Warnings = []
    value = placed({**CAR, **mask}, warnings=warnings)
    assert value.objects[0].mask is None
    assert [code for code, _ in warnings] == ["mask_dropped"]
    with pytest.raises(AnnotationError) as caught:
        placed({**CAR, **mask}, bad_boxes="reject")
    assert caught.value.code == "bad_mask"


def test_an_outline_of_two_points_is_none() -> None:
    warnings: Warnings = []
    value = parse(KIND, {"boxes": [{**CAR, "polygons": [[1, 2, 3, 4]]}]}, warnings)
    assert value.objects[0].mask is None
    assert [code for code, _ in warnings] == ["mask_dropped"]


def test_an_object_without_a_mask_among_others_has_one_of_zeros() -> None:
    value = placed({"class": "car", "polygons": [OUTLINE]}, CAR)
    parsed = through_tensorflow({"boxes": value}, make_schema(["boxes", "instance_masks"], ["car"]))
    first, second = (pixels(png) for png in parsed["image/object/mask"])
    assert first.any()
    assert second.shape == (80, 100)
    assert not second.any()


# ---------------------------------------------------------------------------------------------------------------------
# Keypoints


def test_keypoints_are_fractions_and_count_as_the_api_expects() -> None:
    value = placed({**CAR, "keypoints": [10, 8, 2, 50, 40, 1, 0, 0, 0], "keypoint_names": ["a", "b", "c"]})
    parsed = through_tensorflow({"boxes": value}, make_schema(["boxes", *KIND.facets(value)], ["car"]))
    assert parsed["image/object/keypoint/x"] == pytest.approx([0.1, 0.5, 0])
    assert parsed["image/object/keypoint/y"] == pytest.approx([0.1, 0.5, 0])
    assert parsed["image/object/keypoint/visibility"] == [2, 1, 0]
    assert parsed["image/object/keypoint/text"] == [b"a", b"b", b"c"]
    assert parsed["image/object/keypoint/num"] == [2]


def test_every_object_has_the_same_number_of_keypoints() -> None:
    value = placed({**CAR, "keypoints": [10, 8, 2]}, CAR, {**CAR, "keypoints": [1, 1, 2, 2, 2, 2]})
    kinds = ["boxes", *KIND.facets(value), "keypoints/3"]
    parsed = through_tensorflow({"boxes": value}, make_schema(kinds, ["car"]))
    assert parsed["image/object/keypoint/visibility"] == [2, 0, 0, 0, 0, 0, 2, 2, 0]
    assert parsed["image/object/keypoint/num"] == [1, 0, 2]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_keypoints_turn_with_the_pixels(orientation: int) -> None:
    frame = turned(orientation, 44, 32)
    raster = np.zeros((32, 44), np.uint8)
    raster[7, 13] = 255
    (row, column), *_ = np.argwhere(nearest(raster, frame))
    value = placed({"class": "car", "bbox": [10, 5, 20, 15], "keypoints": [13.5, 7.5, 2]}, frame=frame)
    keypoints = value.objects[0].keypoints
    assert keypoints is not None
    x, y, _ = keypoints.points[0]
    assert (x * frame.width, y * frame.height) == pytest.approx((column + 0.5, row + 0.5), abs=1e-4)


def test_a_keypoint_outside_is_told_and_not_labelled() -> None:
    warnings: Warnings = []
    value = placed({**CAR, "keypoints": [150, 8, 2, 100.5, 80.5, 2, -3, 4, 1]}, warnings=warnings)
    assert value.objects[0].keypoints is not None
    assert value.objects[0].keypoints.points == ((0, 0, 0), (1, 1, 2), (0, 0, 0))
    assert [code for code, _ in warnings] == ["keypoint_outside", "keypoint_outside"]


def test_a_keypoint_that_a_crop_cuts_away_is_not_labelled() -> None:
    frame = PixelFrame(100, 80, 50, 80)
    warnings: Warnings = []
    value = placed({**CAR, "keypoints": [20, 8, 2, 70, 8, 2]}, frame=frame, warnings=warnings)
    assert value.objects[0].keypoints is not None
    assert [point[2] for point in value.objects[0].keypoints.points] == [2, 0]
    assert warnings == []


def test_a_labelled_keypoint_must_be_finite() -> None:
    with pytest.raises(AnnotationError) as caught:
        placed({**CAR, "keypoints": [float("nan"), 1, 2]})
    assert caught.value.code == "bad_keypoints"


# ---------------------------------------------------------------------------------------------------------------------
# Features

OD_SPEC_KEYS = {
    "image/object/bbox/xmin",
    "image/object/bbox/xmax",
    "image/object/bbox/ymin",
    "image/object/bbox/ymax",
    "image/object/class/label",
    "image/object/class/text",
    "image/object/is_crowd",
    "image/object/area",
    "image/object/difficult",
    "image/object/truncated",
}


def test_an_od_record_has_what_the_object_detection_api_parses() -> None:
    parsed = through_tensorflow({"boxes": placed({**CAR, "truncated": 1}, CAR)}, make_schema(["boxes"], ["bus", "car"]))
    assert set(parsed) == OD_SPEC_KEYS
    assert parsed["image/object/class/label"] == [2, 2]
    assert parsed["image/object/class/text"] == [b"car", b"car"]
    assert parsed["image/object/truncated"] == [1, 0]
    assert parsed["image/object/area"] == [2000, 2000]
    assert parsed["image/object/bbox/xmin"] == pytest.approx([0.1, 0.1])
    assert parsed["image/object/bbox/ymax"] == pytest.approx([0.6, 0.6])


@pytest.mark.parametrize("preset", ["od", "imagenet", "tfds", "simple"])
@pytest.mark.parametrize("value", [None, Objects(()), Objects((), (100, 80))])
def test_an_image_without_objects_has_every_list_set_and_empty(preset: str, value: Objects | None) -> None:
    kinds = ["boxes", "boxes/pose", "boxes/confidence", "instance_masks", "keypoints", "keypoints/17"]
    schema = make_schema(kinds, ["car"], preset)
    parsed = through_tensorflow({} if value is None else {"boxes": value}, schema)
    assert len(parsed) >= 12
    assert set(map(str, parsed.values())) == {"[]"}


@pytest.mark.parametrize("preset", ["tfds", "simple"])
def test_packed_boxes_are_rows_of_ymin_xmin_ymax_xmax(preset: str) -> None:
    schema = make_schema(["boxes"], ["bus", "car"], preset)
    parsed = through_tensorflow({"boxes": placed(CAR, {"class": "bus", "bbox": [0, 0, 50, 20]})}, schema)
    assert parsed["objects/bbox"] == pytest.approx([0.1, 0.1, 0.6, 0.6, 0, 0, 0.25, 0.5])
    assert parsed["objects/label"] == [1, 0]
    (spec,) = [spec for spec in KIND.spec(schema) if spec.key == "objects/bbox"]
    assert (spec.shape, spec.role, spec.dtype) == ((None, 4), "bbox", "float")


def test_rare_attributes_are_stored_when_any_object_has_them() -> None:
    value = placed({**CAR, "pose": "Left", "group_of": -1}, {**CAR, "confidence": 0.5})
    kinds = KIND.facets(value)
    assert kinds == ("boxes", "boxes/confidence", "boxes/group_of", "boxes/pose")
    parsed = through_tensorflow({"boxes": value}, make_schema(kinds, ["car"]))
    assert parsed["image/object/view"] == [b"Left", b""]
    assert parsed["image/object/group_of"] == [-1, 0]
    assert parsed["image/object/confidence"] == [1.0, 0.5]


@pytest.mark.parametrize(
    ("frame", "area"),
    [
        (still(100, 80), 1000),
        (PixelFrame(100, 80, 50, 40, scale_x=0.5, scale_y=0.5), 250),
        (PixelFrame(100, 80, 35, 80), 500),
    ],
)
def test_a_stated_area_follows_the_image(frame: PixelFrame, area: float) -> None:
    assert placed({**CAR, "area": 1000}, frame=frame).objects[0].attributes["area"] == area
