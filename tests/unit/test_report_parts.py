"""Texts, charts, thumbnails and tables of the report."""

from __future__ import annotations

import base64
import io
import itertools
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.conversion.writing.digest import digest_of
from beam_tfrecord.datasets.record_view import view_record
from beam_tfrecord.report import text
from beam_tfrecord.report.charts import Part, column_chart, histogram, nice_top, stacked_bar
from beam_tfrecord.report.classes import class_balance
from beam_tfrecord.report.dataset import fair_shares, in_usual_order
from beam_tfrecord.report.details import column_rows, option_rows
from beam_tfrecord.report.overlays import STYLE_COLOURS
from beam_tfrecord.report.pictures import SHOWN_HEIGHT, SHOWN_WIDTH, SIZE, NoThumbnailError, draw_record, make_thumbnail
from beam_tfrecord.report.scan import ColumnSummaries
from beam_tfrecord.report.views import ContentReader, PictureView, guessed_reader
from beam_tfrecord.tfrecord.example import encode_example, encode_sequence_example
from tests.samples import draw_shape, jpeg, noise, painted_boxes, png, turned_jpeg

WIDEST_DIGIT = 6.2  # pixels, of the 11 that the style sheet gives to labels of axes

OD_KEYS = {
    "encoded": "image/encoded",
    "source_id": "image/source_id",
    "label_text": "image/class/text",
    **{f"bbox_{side}": f"image/object/bbox/{side}" for side in ("xmin", "xmax", "ymin", "ymax")},
    "object_text": "image/object/class/text",
}


def parsed(svg: str) -> ET.Element:
    """An SVG as a reader of XML sees it."""
    return ET.fromstring(str(svg))


def pixels_of(uri: str) -> Any:
    head, _, data = uri.partition(",")
    assert head == "data:image/jpeg;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")).astype(int)


# ---------------------------------------------------------------------------------------------------------------------
# Texts


def test_queries_of_web_addresses_are_cut_and_nothing_else() -> None:
    cases = {
        "https://host/a.jpg?X-Goog-Signature=abc&b=c": "https://host/a.jpg",
        "https://host/list.csv?sig=abc:12": "https://host/list.csv:12",  # the number of the line stays
        "reading http://host/a.jpg?sig=1 failed: 'https://b/c?d=e'": "reading http://host/a.jpg failed: 'https://b/c'",
        "https://user:secret@host/a.jpg": "https://host/a.jpg",
        "https://host/a.jpg?sig=a,b;c is gone": "https://host/a.jpg is gone",  # marks do not end a query
        "gs://bucket/what?.jpg": "gs://bucket/what?.jpg",
        "a file called why?.jpg": "a file called why?.jpg",
    }
    assert {told: text.clean(told) for told in cases} == cases


def test_characters_that_cannot_be_seen_are_shown() -> None:
    assert text.clean("a\x00b\x1b[31m") == "a\\u0000b\\u001b[31m"
    assert text.clean("evil\u202egpj.exe") == "evil\\u202egpj.exe"
    assert text.clean("caf\udce9") == "caf\\udce9"
    assert text.clean("名前 שלום café") == "名前 שלום café"


@given(st.text(max_size=400), st.integers(3, 200))
def test_a_shortened_text_fits_and_keeps_both_ends(value: str, most: int) -> None:
    short = text.shorten(value, most)
    assert len(short) <= most
    if len(value) <= most:
        assert short == value
    else:
        head, _, tail = short.partition("…") if "…" not in value else (value[:1], "", "")
        assert value.startswith(head)
        assert value.endswith(tail)


def test_numbers_read_well() -> None:
    assert [text.compact(n) for n in (0, 7, 950, 1200, 35_400, 1_500_000)] == ["0", "7", "950", "1.2k", "35k", "1.5M"]
    assert [text.file_size(n) for n in (0, 950, 1234, 35_400_000, 1.5e9)] == [
        "0 B",
        "950 B",
        "1.23 kB",
        "35.4 MB",
        "1.5 GB",
    ]
    assert [text.percent(s) for s in (0, 0.00001, 0.012, 0.5, 0.9999, 1)] == [
        *("0 %", "< 0.01 %", "1.2 %", "50 %", "> 99.9 %", "100 %")
    ]
    assert [text.number(n) for n in (0, 1234567, 0.12345, 12.345, 1234.5)] == [
        "0",
        "1,234,567",
        "0.123",
        "12.3",
        "1,234",
    ]
    assert [text.megapixels(n) for n in (64, 307_200, 12_000_000)] == ["64 px", "0.307 MP", "12 MP"]


# ---------------------------------------------------------------------------------------------------------------------
# Charts


@given(st.dictionaries(st.integers(0, 10**7), st.integers(1, 1000), min_size=2, max_size=40))
def test_the_bars_of_a_histogram_are_as_high_as_what_they_count(counts: dict[int, int]) -> None:
    chart = parsed(histogram(digest_of(counts), "Width", text.pixels))
    shown = [(float(bar.get("height", 0)), bar[0].text or "") for bar in chart.iter("rect")]
    told = [int(title.split(": ")[1].split()[0].replace(",", "")) for _, title in shown]
    assert sum(told) == sum(counts.values())
    tallest = max(shown, key=lambda bar: bar[0])
    for (height, _), count in zip(shown, told, strict=True):
        assert height == pytest.approx(max(1, tallest[0] * count / max(told)), abs=0.02)


@given(st.dictionaries(st.integers(0, 10**7), st.integers(1, 1000), min_size=2, max_size=40))
def test_nothing_of_a_chart_lies_outside_of_it(counts: dict[int, int]) -> None:
    chart = parsed(histogram(digest_of(counts), "Width", text.file_size))
    _, _, width, height = map(float, chart.get("viewBox", "").split())
    for bar in chart.iter("rect"):
        x, y, w, h = (float(bar.get(name, -1)) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + w <= width
        assert 0 <= y <= y + h <= height
    for label in chart.iter("text"):
        reach = 3.2 * len(label.text or "")
        x = float(label.get("x", -1))
        assert x - (2 * reach if label.get("text-anchor") == "end" else reach) >= -2
        assert x + (0 if label.get("text-anchor") == "end" else reach) <= width + 2


@given(
    st.dictionaries(st.integers(0, 10**6), st.integers(1, 50), min_size=1, max_size=30),
    st.sampled_from([text.number, text.pixels, text.megapixels, text.file_size, text.millionths]),
)
@example(dict.fromkeys(range(1000, 10000, 450), 1), text.megapixels)  # 1,000 px, 2,000 px ...
@example(dict.fromkeys(range(80, 100), 1), text.pixels)  # a bar for each value
def test_labels_of_the_axis_do_not_touch(counts: dict[int, int], unit: Callable[[float], str]) -> None:
    chart = parsed(histogram(digest_of(counts), "Width", unit))
    places = [(float(t.get("x", 0)), t.text or "") for t in chart.iter("text") if t.get("text-anchor") == "middle"]
    for (left, left_text), (right, right_text) in itertools.pairwise(places):
        assert right - left >= WIDEST_DIGIT * (len(left_text) + len(right_text)) / 2 + 3


def test_a_chart_says_in_words_what_it_shows() -> None:
    chart = parsed(histogram(digest_of({100: 1, 300: 3}), "Width", text.pixels))
    assert chart.get("role") == "img"
    assert chart.get("aria-label", "").startswith("Width: 4 images, from 100 px to 300 px")


def test_texts_in_charts_are_escaped() -> None:
    evil = '"><script>alert(1)</script>'
    for svg in (
        stacked_bar([Part(1, "s0", evil)], 1, evil),
        column_chart([Part(1, "s0", evil)], evil, str, [(0.5, evil)]),
    ):
        assert "<script" not in svg
        assert parsed(svg).get("aria-label") == evil


def test_parts_of_a_bar_lie_side_by_side_and_small_ones_can_be_seen() -> None:
    bar = parsed(stacked_bar([Part(900_000, "good"), Part(0, "warn"), Part(1, "bad")], 900_001, "rows"))
    rects = [(float(r.get("x", 0)), float(r.get("width", 0)), r.get("class")) for r in bar]
    assert [style for _, _, style in rects] == ["good", "bad"]
    assert rects[0][1] > 99
    assert rects[1][0] + rects[1][1] == pytest.approx(100)
    assert rects[1][1] >= 0.4


@given(st.integers(1, 10**9))
def test_the_axis_ends_at_a_round_number_and_counts_in_whole_ones(greatest: int) -> None:
    top = nice_top(greatest)
    assert greatest * 0.999 <= top <= max(2, 2 * greatest)
    assert top / 2 == int(top / 2)


# ---------------------------------------------------------------------------------------------------------------------
# Classes, columns, findings, options


def test_the_class_balance_is_that_of_the_counts() -> None:
    classes = {"train": {"cat": 6, "dog": 2}, "test": {"cat": 1}}
    balance = class_balance({"splits": {"train": {}, "test": {}}, "classes": classes, "labels": ["cat", "dog", "eel"]})
    assert [(row.name, row.total, row.share) for row in balance.rows] == [("cat", 7, "78 %"), ("dog", 2, "22 %")]
    assert balance.rows[1].per_split == ((2, "25 %"), (0, "0 %"))
    assert balance.missing == {"train": (), "test": ("dog",)}
    assert balance.unused == ("eel",)
    assert balance.imbalance == 3.5


def test_many_classes_are_cut_and_the_rest_is_added_up() -> None:
    counts = {f"c{n:04}": 1 + n for n in range(700)}
    balance = class_balance({"splits": {"train": {}}, "classes": {"train": counts}, "labels": list(counts)})
    assert balance.rest is not None
    assert len(balance.rows) == 500
    assert balance.rest.name == "200 classes more"
    assert sum(row.total for row in balance.rows) + balance.rest.total == sum(counts.values())


def test_splits_come_in_the_order_in_which_people_list_them() -> None:
    splits = dict.fromkeys(["extra", "test", "train", "validation"])
    assert list(in_usual_order(splits)) == ["train", "validation", "test", "extra"]


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 5000)))
def test_shares_of_a_bounded_table_are_fair(counts: dict[str, int]) -> None:
    shares = fair_shares(counts, 2000)
    assert sum(shares.values()) == min(2000, sum(counts.values()))
    assert all(shares[code] <= count for code, count in counts.items())
    cut = [shares[code] for code, count in counts.items() if shares[code] < count]
    assert not cut or max(shares.values()) - min(cut) <= len(counts)


def test_columns_are_summed_up() -> None:
    summaries = ColumnSummaries()
    for number in range(10):
        summaries.add(
            {
                "n": Feature("int64", [number]),
                "f": Feature("float", [0.5, 1.5]),
                "s": Feature("bytes", [b"ab"[number % 2 : number % 2 + 1]]),
            }
        )
    rows = {row.key: row for row in column_rows(summaries.by_key)}
    assert rows["n"].values == "from 0 to 9, mean 4.5; 10 different values"
    assert rows["n"].common == ()
    assert rows["f"].values == "from 0.5 to 1.5, mean 1; 2 different values; 2 per record"
    assert [(cut.shown, share) for cut, share in rows["s"].common] == [("a", "50 %"), ("b", "50 %")]


def test_columns_with_values_that_are_no_numbers_or_too_many() -> None:
    summaries = ColumnSummaries()
    for number in range(3000):
        summaries.add({"f": Feature("float", [float("nan")]), "id": Feature("bytes", [b"%d" % number])})
    rows = {row.key: row for row in column_rows(summaries.by_key)}
    assert rows["id"].values == "more than 1,000 different values"
    assert "from" not in rows["f"].values


def test_options_that_were_given_come_first() -> None:
    options = {"seed": 0, "quality": 80, "input": [{"uri": "https://h/a.csv?sig=x", "split": "train"}], "name": None}
    rows = option_rows({"options": options})
    assert [(row.name, row.value.shown, row.is_given) for row in rows] == [
        ("quality", "80", True),
        ("input", "train=https://h/a.csv", True),
        ("seed", "0", False),
    ]


# ---------------------------------------------------------------------------------------------------------------------
# Pictures


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "RGBA", "LA", "1", "I;16", "CMYK"])
def test_every_mode_of_an_image_becomes_a_small_jpeg_that_looks_like_it(mode: str) -> None:
    picture = draw_shape("circle", 3, 400, 300).image
    if mode == "I;16":
        stored = Image.fromarray(np.asarray(picture.convert("L")).astype(np.uint16) * 257)
    else:
        stored = picture.convert(mode)
    data = jpeg(stored) if mode == "CMYK" else png(stored)
    thumbnail = make_thumbnail(PictureView(data))
    shown = pixels_of(thumbnail.uri)
    assert (thumbnail.width, thumbnail.height) == (400, 300)
    assert shown.shape[1] <= SIZE[0]
    assert shown.shape[0] <= SIZE[1]
    expected = picture.convert("L" if mode in ("L", "LA", "1", "I;16") else "RGB").convert("RGB")
    small = np.asarray(expected.resize((shown.shape[1], shown.shape[0]), Image.Resampling.BOX)).astype(int)
    assert np.abs(shown - small).mean() < (40 if mode == "1" else 14)


def test_transparency_is_laid_on_white() -> None:
    thumbnail = make_thumbnail(PictureView(png(Image.new("RGBA", (40, 40), (255, 0, 0, 0)))))
    assert pixels_of(thumbnail.uri).min() > 250


@pytest.mark.parametrize(("channels", "dtype"), [(1, "uint8"), (3, "uint8"), (1, "uint16"), (3, "uint16")])
def test_raw_pixels_are_drawn(channels: int, dtype: str) -> None:
    pixels = np.zeros((30, 50, channels), dtype)
    pixels[:, :25] = np.iinfo(dtype).max
    data = pixels.astype(pixels.dtype.newbyteorder("<")).tobytes()
    shown = pixels_of(make_thumbnail(PictureView(data, (), (30, 50, channels), dtype)).uri)
    assert shown.shape == (30, 50, 3)
    assert shown[:, :22].min() > 240
    assert shown[:, 28:].max() < 15


@pytest.mark.parametrize(
    "picture",
    [
        PictureView(b"not an image"),
        PictureView(jpeg(Image.fromarray(noise(64, 64)))[:900]),
        PictureView(b"12345", (), (2, 2, 3), "uint8"),
        PictureView(b"", (), (0, 0, 0), "uint8"),
    ],
)
def test_what_cannot_be_drawn_is_told_apart(picture: PictureView) -> None:
    with pytest.raises(NoThumbnailError):
        make_thumbnail(picture)


def detection_record(data: bytes, boxes: list[tuple[float, ...]], names: list[str]) -> bytes:
    """A record with the keys of the Object Detection API; boxes are (xmin, ymin, xmax, ymax) as fractions."""
    features = {"image/encoded": Feature("bytes", [data]), "image/source_id": Feature("bytes", [b"some/picture.jpg"])}
    for place, side in enumerate(("xmin", "ymin", "xmax", "ymax")):
        features[f"image/object/bbox/{side}"] = Feature("float", [box[place] for box in boxes])
    features["image/object/class/text"] = Feature("bytes", [name.encode() for name in names])
    return encode_example(features)


def test_boxes_lie_on_what_they_are_around() -> None:
    width, height = 640, 360
    painted = [(100, 60, 260, 200), (400, 150, 620, 340)]
    image = painted_boxes(width, height, painted, ("red", "blue"))
    fractions = [(x0 / width, y0 / height, x1 / width, y1 / height) for x0, y0, x1, y1 in painted]
    record = detection_record(png(image), fractions, ["r", "b"])
    drawn = draw_record(record, ContentReader(OD_KEYS), lambda name: 0)
    assert drawn is not None
    assert (drawn.width, drawn.height) == (156, 88)
    assert [box.name for box in drawn.boxes] == ["r", "b"]
    shown = pixels_of(drawn.uri)
    scale = shown.shape[1] / drawn.width
    for box, channel in zip(drawn.boxes, (0, 2), strict=True):
        is_inside = (shown[..., channel] > 150) & (shown[..., 1] < 100)
        rows, columns = np.nonzero(is_inside.any(axis=1))[0], np.nonzero(is_inside.any(axis=0))[0]
        found = (columns[0] / scale, rows[0] / scale, (columns[-1] + 1) / scale, (rows[-1] + 1) / scale)
        assert found == pytest.approx((box.x, box.y, box.x + box.width, box.y + box.height), abs=1.3)


def test_a_picture_says_which_record_it_is() -> None:
    record = detection_record(png(Image.new("RGB", (20, 60))), [(0, 0, 1, 1)] * 2, ["a", "b"])
    drawn = draw_record(record, ContentReader(OD_KEYS), lambda name: 3)
    assert drawn is not None
    assert drawn.caption == "20×60 · 2 boxes"
    assert "some/picture.jpg" in drawn.title
    assert drawn.height == SHOWN_HEIGHT
    assert drawn.width <= SHOWN_WIDTH
    assert [box.style for box in drawn.boxes] == [3, 3]


def test_a_record_whose_picture_cannot_be_drawn_is_left_out() -> None:
    reader = ContentReader(OD_KEYS)
    assert draw_record(encode_example({}), reader, lambda name: 0) is None
    for record in (b"\xff\xff", detection_record(b"broken", [], [])):
        with pytest.raises(NoThumbnailError):
            draw_record(record, reader, lambda name: 0)


def test_the_first_frame_of_a_sequence_is_drawn() -> None:
    frames = [Feature("bytes", [jpeg(draw_shape("square", n, 64, 48).image)]) for n in range(4)]
    record = encode_sequence_example({"image/class/text": Feature("bytes", [b"run"])}, {"image/encoded": frames})
    drawn = draw_record(record, ContentReader(OD_KEYS), lambda name: 0)
    assert drawn is not None
    assert drawn.caption == "64×48 · 4 frames"
    assert "label run" in drawn.title


def test_boxes_that_are_no_numbers_are_not_drawn() -> None:
    record = detection_record(png(Image.new("RGB", (20, 20))), [(float("nan"), 0, 1, 1), (0, 0, 1, 1)], ["a", "b"])
    drawn = draw_record(record, ContentReader(OD_KEYS), lambda name: 0)
    assert drawn is not None
    assert [box.name for box in drawn.boxes] == ["b"]


MASK_KEYS = {
    **OD_KEYS,
    "object_mask": "image/object/mask",
    "semantic_mask": "image/segmentation/class/encoded",
    **{f"keypoint_{part}": f"image/object/keypoint/{part}" for part in ("x", "y", "visibility")},
}


def overlay_of(features: dict[str, Feature], style: int = 2) -> Any:
    """The overlay of a grey picture of 160x80, in RGBA; None when there is none."""
    image = Feature("bytes", [png(Image.new("RGB", (160, 80), (128, 128, 128)))])
    drawn = draw_record(encode_example({"image/encoded": image, **features}), ContentReader(MASK_KEYS), lambda _: style)
    assert drawn is not None
    if not drawn.overlay:
        return None
    head, _, data = drawn.overlay.partition(",")
    assert head == "data:image/png;base64"
    with Image.open(io.BytesIO(base64.b64decode(data))) as overlay:
        assert overlay.width / overlay.height == pytest.approx(drawn.width / drawn.height, rel=0.02)
        return np.asarray(overlay.convert("RGBA")).astype(int)


def mask_of(*boxes: tuple[int, int, int, int], value: int = 1) -> bytes:
    mask = Image.new("L", (160, 80))
    for place, box in enumerate(boxes):
        ImageDraw.Draw(mask).rectangle(box, fill=value + place)
    return png(mask)


def test_a_mask_covers_its_object_in_the_colour_of_its_class() -> None:
    overlay = overlay_of({"image/object/mask": Feature("bytes", [mask_of((40, 20, 79, 59))])})
    scale = overlay.shape[1] / 160
    rows, columns = np.nonzero(overlay[..., 3])
    found = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    assert found == pytest.approx([side * scale for side in (40, 20, 80, 60)], abs=1.5)
    middle = overlay[round(40 * scale), round(60 * scale)]
    assert middle[:3] == pytest.approx(STYLE_COLOURS[2], abs=8)
    assert 60 < middle[3] < 160  # the picture can be seen below it


def test_keypoints_lie_where_they_are_unless_they_are_not_labelled() -> None:
    overlay = overlay_of(
        {
            "image/object/class/text": Feature("bytes", [b"a"]),
            "image/object/keypoint/x": Feature("float", [0.25, 0.75]),
            "image/object/keypoint/y": Feature("float", [0.5, 0.5]),
            "image/object/keypoint/visibility": Feature("int64", [2, 0]),
            "image/object/bbox/xmin": Feature("float", [0.1]),
            "image/object/bbox/ymin": Feature("float", [0.1]),
            "image/object/bbox/xmax": Feature("float", [0.9]),
            "image/object/bbox/ymax": Feature("float", [0.9]),
        },
        style=0,
    )
    rows, columns = np.nonzero(overlay[..., 3])
    height, width = overlay.shape[:2]
    assert ((columns.min() + columns.max() + 1) / 2, (rows.min() + rows.max() + 1) / 2) == pytest.approx(
        (0.25 * width, 0.5 * height), abs=1.5
    )
    assert overlay[height // 2, width // 4].tolist() == pytest.approx([*STYLE_COLOURS[0], 255], abs=8)


def test_a_mask_of_the_whole_image_leaves_background_and_void_free() -> None:
    mask = Image.open(io.BytesIO(mask_of((0, 0, 39, 79), (40, 0, 79, 79))))
    ImageDraw.Draw(mask).rectangle((80, 0, 119, 79), fill=255)
    overlay = overlay_of({"image/segmentation/class/encoded": Feature("bytes", [png(mask)])})
    row, eighth = overlay[overlay.shape[0] // 2], overlay.shape[1] // 8
    colours = [tuple(row[place * eighth]) for place in (1, 3, 5, 7)]
    assert [colour[3] > 0 for colour in colours] == [True, True, False, False]
    assert colours[0][:3] != colours[1][:3]


def test_values_of_deep_masks_are_told_apart() -> None:
    values = np.zeros((80, 160), np.uint16)
    values[:, 40:80], values[:, 80:120], values[:, 120:] = 1000, 1256, 65535
    overlay = overlay_of({"image/segmentation/class/encoded": Feature("bytes", [png(Image.fromarray(values))])})
    row, eighth = overlay[overlay.shape[0] // 2], overlay.shape[1] // 8
    colours = [tuple(row[place * eighth]) for place in (1, 3, 5, 7)]
    assert [colour[3] > 0 for colour in colours] == [False, True, True, False]
    assert colours[1][:3] != colours[2][:3]


def test_nothing_lies_on_a_picture_without_masks_and_keypoints() -> None:
    assert overlay_of({}) is None
    assert overlay_of({"image/object/mask": Feature("bytes", [b"broken", b""])}) is None
    assert overlay_of({"image/object/keypoint/x": Feature("bytes", [b"1"])}) is None


def test_overlays_count_for_the_size_of_the_page_and_the_picture_tells_of_them() -> None:
    image = Feature("bytes", [png(Image.new("RGB", (160, 80)))])
    features = {
        "image/encoded": image,
        "image/object/mask": Feature("bytes", [mask_of((1, 1, 9, 9)), mask_of((30, 1, 39, 9))]),
        "image/segmentation/class/encoded": Feature("bytes", [mask_of((1, 1, 9, 9))]),
    }
    drawn = draw_record(encode_example(features), ContentReader(MASK_KEYS), lambda _: 0)
    assert drawn is not None
    assert "2 masks, a mask of the whole image" in drawn.title
    assert len(drawn.overlay) < 3000


def test_labels_are_found_by_id_where_records_have_no_names() -> None:
    record = encode_example(
        {
            "image": Feature("bytes", [png(Image.new("RGB", (4, 4)))]),
            "label": Feature("int64", [1]),
            "objects/bbox": Feature("float", [0.1, 0.2, 0.3, 0.4]),
            "objects/label": Feature("int64", [0]),
        }
    )
    keys = {"encoded": "image", "label": "label", "bbox": "objects/bbox", "object_label": "objects/label"}
    content = ContentReader(keys, {0: "cat", 1: "dog"}).read(view_record(record))
    assert content.labels == ("dog",)
    assert content.all_labels == ("dog", "cat")
    (box,) = content.pictures[0].boxes
    assert (box.xmin, box.ymin, box.xmax, box.ymax) == pytest.approx((0.2, 0.1, 0.4, 0.3))


def test_an_id_below_zero_is_no_label() -> None:
    record = encode_example({"image": Feature("bytes", [b"x"]), "label": Feature("int64", [-1])})
    assert ContentReader({"label": "label", "encoded": "image"}).read(view_record(record)).labels == ()


def test_keys_of_records_from_elsewhere_are_guessed() -> None:
    record = encode_example(
        {"image_raw": Feature("bytes", [turned_jpeg(Image.new("RGB", (8, 6)), 6)]), "label": Feature("int64", [4])}
    )
    view = view_record(record)
    content = guessed_reader(view.features).read(view)
    assert len(content.pictures) == 1
    assert content.labels == ("4",)


def test_counts_of_shapes_and_formats_use_no_order_from_outside() -> None:
    counts = Counter({"png/1/uint16": 2, "jpeg/3/uint8": 2, "raw/3/uint8": 9})
    from beam_tfrecord.report.images import formats

    rows, note = formats(counts)
    assert [row.name for row in rows] == ["RAW, 3 channels", "JPEG, 3 channels", "PNG, 1 channel, uint16"]
    assert note == ""
