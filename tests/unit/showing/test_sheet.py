"""Sheets of pictures: what is annotated lands where it belongs."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from beam_tfrecord.tfrecord.example import encode_sequence_example
from beam_tfrecord.tools.showing.drawing import (
    draw_annotations,
    fitted,
    numbered_colour,
    set_text,
    text_colour,
    text_width,
)
from beam_tfrecord.tools.showing.pictures import DrawnObject, DrawnPicture, drawn_pictures
from beam_tfrecord.tools.showing.sheet import draw_sheet, plan_layout, png_bytes
from tests.handmade import floats, small_dataset, texts, whole
from tests.samples import jpeg, noise, painted_boxes, png
from tests.showing_tools import found_at, picked_from, picked_record

GREY = (128, 128, 128)


def pixels(image: Image.Image) -> Any:
    return np.asarray(image.convert("RGB")).astype(int)


def pictures_of(folder: Path, record: Any, names: dict[int, str] | None = None, side: int = 640) -> list[DrawnPicture]:
    return list(drawn_pictures(picked_record(folder, record), names or {}, side))


def changed_box(before: Any, after: Any) -> tuple[int, int, int, int]:
    """(xmin, ymin, xmax, ymax) of all pixels that differ."""
    rows, columns = np.nonzero((before != after).any(axis=2))
    return columns.min(), rows.min(), columns.max() + 1, rows.max() + 1


def boxes_features(*boxes: tuple[int, int, int, int], size: tuple[int, int]) -> dict[str, Any]:
    width, height = size
    return {
        "image/object/bbox/xmin": floats(*(box[0] / width for box in boxes)),
        "image/object/bbox/ymin": floats(*(box[1] / height for box in boxes)),
        "image/object/bbox/xmax": floats(*(box[2] / width for box in boxes)),
        "image/object/bbox/ymax": floats(*(box[3] / height for box in boxes)),
    }


# ---------------------------------------------------------------------------------------------------------------------
# What is drawn on a picture


@pytest.mark.parametrize("scale", [0.5, 1, 3])
def test_a_box_is_drawn_around_the_painted_object(tmp_path: Path, scale: float) -> None:
    box, size = (40, 24, 136, 96), (200, 160)
    image = painted_boxes(*size, [box], ["gray"])
    record = {"image/encoded": texts(png(image)), **boxes_features(box, size=size)}
    (picture,) = pictures_of(tmp_path, record)
    canvas = image.resize((round(size[0] * scale), round(size[1] * scale)))
    drawn = draw_annotations(canvas, picture, {0: (255, 0, 0)})
    found = changed_box(pixels(canvas), pixels(drawn))
    assert np.allclose(found, [side * scale for side in box], atol=2)
    middle = pixels(drawn)[round(60 * scale), round(88 * scale)]
    assert tuple(middle) == GREY  # a frame, not a filling


def test_a_mask_is_laid_over_its_object_and_nothing_else(tmp_path: Path) -> None:
    image = Image.new("RGB", (120, 80), GREY)
    mask = Image.new("L", (120, 80))
    ImageDraw.Draw(mask).rectangle((30, 20, 89, 59), fill=1)
    record = {
        "image/encoded": texts(png(image)),
        "image/object/mask": texts(png(mask)),
        "image/object/class/label": whole(4),
    }
    (picture,) = pictures_of(tmp_path, record)
    drawn = pixels(draw_annotations(image, picture, {4: (255, 0, 0)}))
    assert changed_box(pixels(image), drawn) == (30, 20, 90, 60)
    assert drawn[40, 60].tolist() == pytest.approx([181, 74, 74], abs=2)  # translucent
    assert drawn[20, 60].tolist() == [255, 0, 0]  # its edge in full


def test_masks_of_the_whole_image_leave_background_and_void_as_they_are(tmp_path: Path) -> None:
    values = np.zeros((40, 60), np.uint8)
    values[:, 20:40], values[:, 40:] = 7, 255
    record = {"image/encoded": texts(png(Image.new("RGB", (60, 40), GREY)))}
    record["image/segmentation/class/encoded"] = texts(png(Image.fromarray(values)))
    (picture,) = pictures_of(tmp_path, record)
    drawn = pixels(draw_annotations(Image.new("RGB", (60, 40), GREY), picture, {}))
    assert drawn[20, 10].tolist() == drawn[20, 50].tolist() == list(GREY)
    assert drawn[20, 30].tolist() != list(GREY)


def test_keypoints_are_dots_where_they_are_and_those_not_labelled_are_left_out(tmp_path: Path) -> None:
    image = Image.new("RGB", (200, 100), GREY)
    record = {
        "image/encoded": texts(png(image)),
        **boxes_features((0, 0, 200, 100), size=(200, 100)),
        "image/object/keypoint/x": floats(0.25, 0.75, 0.5),
        "image/object/keypoint/y": floats(0.5, 0.5, 0.5),
        "image/object/keypoint/visibility": whole(2, 1, 0),
    }
    (picture,) = pictures_of(tmp_path, record)
    drawn = pixels(draw_annotations(image, picture, {0: (255, 0, 0)}))
    assert drawn[50, 50].tolist() == pytest.approx([255, 0, 0], abs=40)
    assert drawn[50, 149].tolist() == pytest.approx([255, 255, 255], abs=40)  # a ring: hidden
    assert drawn[50, 100].tolist() == list(GREY)


def test_panoptic_segments_take_the_colour_of_their_class(tmp_path: Path) -> None:
    numbers = np.repeat(np.array([[0, 1, 2]], np.uint8), 10, axis=1).repeat(30, axis=0)
    record = {
        "image/encoded": texts(png(Image.new("RGB", (30, 30), GREY))),
        "image/panoptic/instance_mask": texts(png(Image.fromarray(numbers))),
        "image/panoptic/segment/class/label": whole(5, 9),
    }
    (picture,) = pictures_of(tmp_path, record, {5: "sky", 9: "sea"})
    assert [(item.number, item.name) for item in picture.objects] == [(5, "sky"), (9, "sea")]
    drawn = pixels(draw_annotations(Image.new("RGB", (30, 30), GREY), picture, {5: (255, 0, 0), 9: (0, 0, 255)}))
    assert drawn[15, 5].tolist() == list(GREY)
    assert drawn[15, 15, 0] > drawn[15, 15, 2]
    assert drawn[15, 25, 2] > drawn[15, 25, 0]


def test_boxes_that_cannot_be_do_not_stop_the_sheet() -> None:
    image = Image.new("RGB", (50, 40), GREY)
    boxes = [(0.5, 0.5, 0.1, 0.1), (float("nan"), 0, 1, 1), (-3, -3, 4, 4), (0.2, 0.2, 0.2, 0.2)]
    objects = tuple(DrawnObject(0, "thing", box) for box in boxes)
    picture = DrawnPicture(image, image.size, "", "", objects)
    assert draw_annotations(image, picture, {0: (255, 0, 0)}).size == (50, 40)


# ---------------------------------------------------------------------------------------------------------------------
# Pictures of records


def test_the_title_tells_labels_or_objects_or_the_file(tmp_path: Path) -> None:
    image = {"image/encoded": texts(jpeg(Image.new("RGB", (8, 6))))}
    objects = {**boxes_features((0, 0, 4, 4), (1, 1, 5, 5), size=(8, 6)), "image/object/class/label": whole(1, 1)}
    cases = [
        ({"image/class/text": texts("cat", "dog")}, "cat, dog"),
        ({"image/class/label": whole(1)}, "one"),
        ({"image/class/label": whole(-1)}, "record 0"),
        (objects, "one (2)"),
        ({"image/caption": texts("a cat\nsleeps")}, "a cat\\nsleeps"),
        ({"image/filename": texts("deep/path/cat.jpg")}, "cat.jpg"),
    ]
    for further, title in cases:
        (picture,) = pictures_of(tmp_path, {**image, **further}, {1: "one"})
        assert picture.title == title


@pytest.mark.parametrize(
    "record",
    [
        {"image/encoded": texts(png(Image.fromarray(noise(9, 7))))},
        {"whatever": texts(png(Image.fromarray(noise(9, 7))))},
        {"data": texts(noise(9, 7).tobytes()), "shape": whole(7, 9, 3)},
        {
            "image/raw": texts((noise(9, 7).astype("<u2") * 257).tobytes()),
            "image/height": whole(7),
            "image/width": whole(9),
            "image/channels": whole(3),
            "image/dtype": texts("uint16"),
        },
    ],
)
def test_pixels_are_found_and_right_however_they_are_stored(tmp_path: Path, record: Any) -> None:
    (picture,) = pictures_of(tmp_path, record)
    assert picture.image is not None
    assert np.array_equal(pixels(picture.image), noise(9, 7))
    assert picture.size == (9, 7)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (Image.fromarray(np.full((4, 4), 51400, np.uint16)), 200),
        (Image.new("L", (4, 4), 200), 200),
        (Image.new("P", (4, 4), 0), 0),
        (Image.new("RGBA", (4, 4), (200, 200, 200, 255)), 200),
        (Image.new("RGBA", (4, 4), (0, 0, 0, 0)), 245),
        (Image.new("LA", (4, 4), (200, 255)), 200),
    ],
)
def test_every_kind_of_png_becomes_rgb(tmp_path: Path, image: Image.Image, expected: int) -> None:
    (picture,) = pictures_of(tmp_path, {"image": texts(png(image))})
    assert picture.image is not None
    assert pixels(picture.image)[0, 0].tolist() == [expected] * 3


def test_large_pictures_and_masks_are_shrunk_and_keep_their_proportions(tmp_path: Path) -> None:
    record = {
        "image/encoded": texts(jpeg(Image.new("RGB", (1000, 400)))),
        "image/segmentation/class/encoded": texts(png(Image.new("L", (1000, 400), 3))),
    }
    (picture,) = pictures_of(tmp_path, record, side=100)
    assert picture.image is not None
    assert picture.classes is not None
    assert picture.image.size == picture.classes.size == (100, 40)
    assert picture.size == (1000, 400)
    assert set(np.unique(np.asarray(picture.classes))) == {3}


def test_a_picture_that_does_not_decode_is_a_picture_that_says_so(tmp_path: Path) -> None:
    for broken in (b"\xff\xd8\xff\xe0 nothing", b"", jpeg(Image.fromarray(noise(60, 60)))[:500]):
        (picture,) = pictures_of(tmp_path, {"image/encoded": texts(broken)})
        assert picture.image is None
        assert picture.trouble
        assert draw_sheet([picture], "", "").width > 100
    (picture,) = pictures_of(tmp_path, {"data": texts(b"123"), "shape": whole(9, 9, 3)})
    assert picture.image is None


def test_frames_of_a_sequence_are_spread_over_it(tmp_path: Path) -> None:
    frames = [texts(jpeg(Image.new("RGB", (8, 6)))) for _ in range(40)]
    data = encode_sequence_example({"image/class/text": texts("run")}, {"image/encoded": frames})
    pictures = pictures_of(tmp_path, data)
    assert len(pictures) == 12
    assert (pictures[0].title, pictures[-1].title) == ("run · 1/40", "run · 40/40")


def test_a_record_without_a_picture_has_none(tmp_path: Path) -> None:
    assert pictures_of(tmp_path, {"n": whole(1), "t": texts("text")}) == []


# ---------------------------------------------------------------------------------------------------------------------
# The page


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 12, 48, 100, 200])
def test_pictures_are_large_enough_at_every_number(count: int) -> None:
    layout = plan_layout(count)
    assert layout.cell >= 150
    assert layout.title_size >= 12
    assert layout.subtitle_size >= 10
    rows = -(-count // layout.columns)
    assert count <= layout.columns * rows < count + layout.columns
    assert layout.width <= 3000


def test_columns_may_be_chosen() -> None:
    assert plan_layout(10, 2).columns == 2
    assert plan_layout(3, 50).columns == 3


def test_a_page_holds_every_picture_once() -> None:
    colours = [numbered_colour(number) for number in range(7)]
    pictures = [DrawnPicture(Image.new("RGB", (30, 20), colour), (30, 20), "", "") for colour in colours]
    page = pixels(draw_sheet(pictures, "", ""))
    for colour in colours:
        assert (page == colour).all(axis=2).sum() >= 140 * 90


def test_the_page_is_the_same_for_the_same_records_and_a_png(tmp_path: Path) -> None:
    small_dataset(tmp_path)
    names = dict(found_at(tmp_path).facts.label_names)  # type: ignore[union-attr]
    pages = [
        png_bytes(
            draw_sheet(
                [one for record in picked_from(tmp_path) for one in drawn_pictures(record, names, 640)], "a", "b"
            )
        )
        for _ in range(2)
    ]
    assert pages[0] == pages[1]
    with Image.open(io.BytesIO(pages[0])) as image:
        assert (image.format, image.mode) == ("PNG", "RGB")


def test_without_pictures_there_is_no_page() -> None:
    with pytest.raises(ValueError, match="no picture"):
        draw_sheet([], "", "")


# ---------------------------------------------------------------------------------------------------------------------
# Letters and colours


@pytest.mark.parametrize("text", ["short", "a rather long label that does not fit", "Überlänge und Ähnliches", ""])
def test_text_is_cut_to_the_width_that_there_is(text: str) -> None:
    shown = fitted(text, 90, 14)
    assert text_width(shown, 14) <= 90
    assert shown == text or shown.endswith("…")


def test_letters_without_a_shape_are_replaced_by_ones_that_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beam_tfrecord.tools.showing.drawing._CANDIDATES", ())
    set_text.cache_clear()
    assert set_text("naïve Žižek 漢", 14)[0] == "naive Zizek ?"
    assert set_text("plain", 14)[0] == "plain"
    set_text.cache_clear()


def test_the_first_colours_differ_and_text_on_all_of_them_can_be_read() -> None:
    colours = [numbered_colour(number) for number in range(60)]
    assert len(set(colours)) == 60
    for colour in colours:
        light = [0.299 * r + 0.587 * g + 0.114 * b for r, g, b in (colour, text_colour(colour))]
        assert abs(light[0] - light[1]) > 90
