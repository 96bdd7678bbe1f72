"""The page as a whole, made from facts in memory."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from beam_tfrecord.conversion.writing.statistics import ImageFacts, ShardStatistics, merge_statistics
from beam_tfrecord.core.elements import Finding
from beam_tfrecord.errors import CHANGE_REASONS, REJECT_CODES, WARNING_CODES
from beam_tfrecord.report.dataset import Dataset, ScanNote
from beam_tfrecord.report.insight import draw_insight
from beam_tfrecord.report.page import page_values, render_page
from beam_tfrecord.report.pictures import BoxMark, Picture, Pictures
from beam_tfrecord.report.views import ContentReader
from beam_tfrecord.storage import Storage

EVIL = "<script>alert(1)</script>"
NO_PICTURES = Pictures({}, (), {}, {})
VOID = {"meta", "br", "image", "input", "rect", "line"}


class Reader(HTMLParser):
    """What a browser makes of the page: its tags, its text, and whether they are nested as they must be."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.stack: list[str] = []
        self.misnested: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.stack or self.stack.pop() != tag:
            self.misnested.append(tag)

    def handle_data(self, data: str) -> None:
        if self.stack and self.stack[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def read(page: bytes) -> Reader:
    reader = Reader()
    reader.feed(re.sub(r'<span class="flag">([^<]*)</span>|<wbr>', r"\1", page.decode("utf-8")))  # which part no words
    reader.close()
    return reader


def conversion(**changes: Any) -> dict[str, Any]:
    """A conversion of 10 rows of two classes into two splits."""
    shard = {"records": 4, "bytes": 4000, "payload_bytes": 3900, "crc32c": "0a1b2c3d"}
    told: dict[str, Any] = {
        "name": "pets",
        "status": "published",
        "rows": 10,
        "source_rows": 10,
        "rows_by_input": {"/data/pets.csv": 10},
        "written": 8,
        "ignored": 1,
        "rejected": {"total": 2, "by_code": {"missing_file": 2}},
        "changed": {"rotated": 1},
        "warnings": {"trailing_data": 1},
        "image_formats": {"jpeg/3/uint8": 8},
        "compression": "none",
        "splits": {
            "train": {"records": 4, "bytes": 4000, "shards": [{"file": "train-00000-of-00001.tfrecord", **shard}]},
            "test": {"records": 4, "bytes": 4000, "shards": [{"file": "test-00000-of-00001.tfrecord", **shard}]},
        },
        "labels": ["cat", "dog"],
        "label_offset": 0,
        "classes": {"train": {"cat": 3, "dog": 1}, "test": {"cat": 4}},
        "keys": "imagenet",
        "message": "Example",
        "features": {"image/encoded": {"dtype": "bytes", "shape": [], "role": "image", "description": "the image"}},
        "options": {"seed": 3, "quality": 95},
        "versions": {"beam_tfrecord": "9.9", "python": "3.11.0"},
    }
    return {**told, **changes}


def statistics(count: int = 8, has_boxes: bool = False) -> dict[str, Any]:
    shard = ShardStatistics({"cat": 7, "dog": 1}, has_boxes=has_boxes)
    for number in range(count):
        areas = (0.01, 0.2, 0.5)[: number % 4]
        shard.add((ImageFacts(600 + number, 400, 9000 + 100 * number, areas),), ("cat",), number, 1)
    return merge_statistics([("train-00000-of-00001.tfrecord", shard.to_json())])


def dataset(told: dict[str, Any] | None = None, **changes: Any) -> Dataset:
    values: dict[str, Any] = {
        "folder": "/somewhere/out",
        "conversion": told if told is not None else conversion(),
        "statistics": statistics(),
        "reader": ContentReader({}),
    }
    return Dataset(**{**values, **changes})


def page_of(found: Dataset, pictures: Pictures = NO_PICTURES) -> bytes:
    return render_page(page_values(found, pictures))


def reject(number: int, code: str = "missing_file", message: str = "there is no such file") -> Finding:
    return Finding(f"/data/pets.csv:{number}", f"/data/{number}.jpg", "encode", code, message)


def picture(size: int = 50, **changes: Any) -> Picture:
    uri = "data:image/jpeg;base64," + base64.b64encode(b"x" * size).decode()
    values = {"uri": uri, "width": 90, "height": 60, "boxes": (), "caption": "90×60", "title": "a.jpg"}
    return Picture(**{**values, **changes})


def test_the_numbers_of_the_conversion_are_on_the_page() -> None:
    found = dataset(rejects=(reject(2), reject(7)), warnings={"trailing_data": (reject(3, "trailing_data"),)})
    text = read(page_of(found)).text
    for told in (
        *("pets", "8 written", "2 rejected", "10 rows read", "1 file ignored", "tf.train.Example", "imagenet keys"),
        *("train-00000-of-00001.tfrecord", "0a1b2c3d", "JPEG, 3 channels", "/data/pets.csv:7", "--seed"),
        *("2 rows (20 %) could not be converted, all of them because of missing_file.",),
        *("The class dog does not occur in test.", "9.9", "image/encoded"),
        *(REJECT_CODES["missing_file"].meaning, REJECT_CODES["missing_file"].cure),
        *(WARNING_CODES["trailing_data"].meaning, "Pixels turned upright as the EXIF orientation says."),
    ):
        assert told in text, told


def test_the_page_is_well_formed_and_names_its_parts() -> None:
    found = dataset(rejects=(reject(2),), statistics=statistics(has_boxes=True))
    reader = read(page_of(found, Pictures({"cat": (picture(),)}, (picture(),), {"rotated": (picture(),)}, {})))
    assert reader.misnested == []
    assert reader.stack == []
    ids = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for tag, attributes in reader.tags if tag == "a"]
    assert links
    assert all(link is not None and link.removeprefix("#") in ids for link in links)
    labelled = [a["aria-labelledby"] for _, a in reader.tags if "aria-labelledby" in a]
    assert set(labelled) <= set(ids)
    images = [place for place, (tag, a) in enumerate(reader.tags) if tag == "svg" and not a.get("aria-hidden")]
    assert all(reader.tags[n][1].get("aria-label") or reader.tags[n + 1][0] == "title" for n in images)


def test_every_text_of_the_data_is_escaped() -> None:
    told = conversion(
        name=EVIL,
        labels=[EVIL, f'"{EVIL}'],
        classes={"train": {EVIL: 3}, "test": {f'"{EVIL}': 1}},
        rows_by_input={f"/data/{EVIL}.csv": 10},
        rejected={"total": 1, "by_code": {EVIL: 1}},
        warnings={EVIL: 1},
        changed={EVIL: 1},
        image_formats={f"{EVIL}/3/uint8": 8},
        features={EVIL: {"dtype": EVIL, "shape": [], "description": EVIL}},
        options={EVIL: EVIL},
        versions={EVIL: EVIL},
        compression=EVIL,
        keys=EVIL,
    )
    finding = Finding(EVIL, EVIL, EVIL, EVIL, EVIL * 40)
    evil_picture = picture(caption=EVIL, title=f"'{EVIL}", boxes=(BoxMark(0, 0, 1, 1, 0, EVIL),))
    found = dataset(told, rejects=(finding,), warnings={EVIL: (finding,)})
    page = page_of(found, Pictures({EVIL: (evil_picture,)}, (), {EVIL: (evil_picture,)}, {EVIL: (evil_picture,)}))
    reader = read(page)
    assert [tag for tag, _ in reader.tags].count("script") == 1
    assert page.count(b"<script") == page.count(b"</script") == 1
    assert not [name for _, attributes in reader.tags for name in attributes if name.startswith("on")]
    assert reader.text.count(EVIL) > 15
    assert reader.misnested == []


def test_nothing_can_be_loaded_and_only_the_script_of_the_page_may_run() -> None:
    reader = read(page_of(dataset(), Pictures({"cat": (picture(),)}, (), {}, {})))
    policy = next(a["content"] for tag, a in reader.tags if a.get("http-equiv") == "Content-Security-Policy") or ""
    assert "default-src 'none'" in policy
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/=]{44}'", policy)
    sources = [value for _, a in reader.tags for name, value in a.items() if name in ("src", "href", "data", "srcset")]
    assert sources
    assert all(source is not None and source.startswith(("#", "data:image/jpeg;base64,")) for source in sources)
    assert b"url(" not in page_of(dataset())
    assert b"@import" not in page_of(dataset())


def test_the_same_facts_give_the_same_page_wherever_the_dataset_lies() -> None:
    assert page_of(dataset()) == page_of(dataset(folder="gs://elsewhere/out"))
    assert b"/somewhere" not in page_of(dataset())


def test_signed_addresses_lose_their_signature() -> None:
    secret = "X-Goog-Signature=0123abc"
    address = f"https://host/pets.csv?{secret}"
    told = conversion(
        rows_by_input={address: 10},
        options={"input": [{"uri": address, "split": None}], "images": address},
        rejected={"total": 1, "by_code": {"read_failed": 1}},
    )
    finding = Finding(f"{address}:3", address, "encode", "read_failed", f"reading {address} failed")
    page = page_of(dataset(told, rejects=(finding,)))
    assert b"https://host/pets.csv" in page
    assert secret.encode() not in page


def test_names_that_are_no_utf_8_do_not_break_the_page() -> None:
    told = conversion(name="caf\udce9", labels=["\udce9t\x00é"], classes={"train": {"\udce9t\x00é": 1}})
    text = page_of(dataset(told)).decode("utf-8")
    assert "caf\\udce9" in text
    assert "\x00" not in text


def test_long_texts_are_cut_and_whole_in_their_title() -> None:
    message = "m" * 120 + "MIDDLE" + "m" * 120
    reader = read(page_of(dataset(rejects=(reject(1, message=message),))))
    assert "MIDDLE" not in reader.text
    assert any(message in (attributes.get("title") or "") for _, attributes in reader.tags)


def test_a_cut_table_says_so() -> None:
    told = conversion(rows=50_008, rejected={"total": 50_000, "by_code": {"missing_file": 50_000}})
    found = dataset(told, rejects=tuple(reject(number) for number in range(2000)))
    text = read(page_of(found)).text
    assert "2,000 of 50,000 rejects are shown" in text
    assert "all of them are in rejects.jsonl" in text


def test_a_part_that_was_read_is_named_as_such() -> None:
    text = read(page_of(dataset(scan=ScanNote(20_000, 1_000_000)))).text
    assert "20,000 records of 1,000,000" in text
    assert "20,000" not in read(page_of(dataset())).text


def test_a_clean_dataset_is_told_to_be_one() -> None:
    told = conversion(
        rows=8,
        rejected={"total": 0, "by_code": {}},
        warnings={},
        changed={},
        classes={"train": {"cat": 4}},
        labels=["cat"],
    )
    reader = read(page_of(dataset(told)))
    assert "Every row became a record, and nothing stands out." in reader.text
    assert not {"rejects", "findings"} & {attributes.get("id") for _, attributes in reader.tags}


def test_a_dataset_with_warnings_is_not_told_to_be_clean() -> None:
    told = conversion(
        rows=8,
        rejected={"total": 0, "by_code": {}},
        warnings={"exif_damaged": 1_200, "box_clipped": 3},
        changed={},
        classes={"train": {"cat": 4}},
        labels=["cat"],
    )
    text = read(page_of(dataset(told))).text
    assert "nothing stands out" not in text
    assert "1,203 warnings about what was kept: exif_damaged 1,200, box_clipped 3." in text


def test_a_warning_that_has_its_own_notice_is_not_told_twice() -> None:
    text = read(page_of(dataset(conversion(warnings={"split_leak": 3})))).text
    assert "about what was kept" not in text


@pytest.mark.parametrize("status", ["withheld", "empty"])
def test_a_dataset_that_was_not_published_is_told_to_be_none(status: str) -> None:
    assert "not published" in read(page_of(dataset(conversion(status=status)))).text


def test_a_leak_between_splits_is_told_first() -> None:
    text = read(page_of(dataset(conversion(warnings={"split_leak": 3})))).text
    assert "The same images lie in more than one split (3 warnings)" in text


def test_all_codes_can_be_shown() -> None:
    told = conversion(
        rows=1000,
        rejected={"total": len(REJECT_CODES), "by_code": dict.fromkeys(REJECT_CODES, 1)},
        warnings=dict.fromkeys(WARNING_CODES, 1),
        changed=dict.fromkeys(CHANGE_REASONS, 1),
    )
    text = read(page_of(dataset(told))).text
    for code in (*REJECT_CODES, *WARNING_CODES, *CHANGE_REASONS):
        assert code in text


def test_the_page_about_a_million_records_is_small() -> None:
    labels = [f"class number {n} of a thousand" for n in range(1000)]
    shards = [
        {"file": f"train-{n:05}-of-02048.tfrecord", "records": 500, "bytes": 10**8 + n * 1000, "crc32c": "01234567"}
        for n in range(2048)
    ]
    told = conversion(
        rows=1_060_000,
        written=1_024_000,
        rejected={"total": 36_000, "by_code": {"missing_file": 30_000, "bad_box": 6000}},
        labels=labels,
        classes={
            split: {label: 1000 - n for n, label in enumerate(labels)} for split in ("train", "validation", "test")
        },
        splits={"train": {"shards": shards}, "validation": {"shards": shards[:9]}, "test": {"shards": shards[:9]}},
    )
    long = "/a/rather/long/path/as/they/are/in/data/lakes/" + "x" * 60
    codes = ["bad_box"] * 1000 + ["missing_file"] * 1000
    rejects = tuple(
        Finding(f"{long}.csv:{n}", f"{long}/{n}.jpg", "encode", code, "m" * 200) for n, code in enumerate(codes)
    )
    boxes = tuple(BoxMark(10.5, 20.5, 30.5, 40.5, n % 8, "class number 7") for n in range(10))
    shown = {label: (picture(2400, boxes=boxes, title="t" * 200),) * 6 for label in labels[:40]}
    page = page_of(
        dataset(told, rejects=rejects, statistics=statistics(5000, has_boxes=True)), Pictures(shown, (), {}, {})
    )
    assert len(page) < 3_000_000
    text = read(page).text
    assert "1,000 of 2,066" in text
    assert "some of each code; all of them are in rejects.jsonl" in text


def test_the_inputs_are_accounted_for() -> None:
    told = {
        "uri": f"/data/{EVIL}",
        "format": "yolo",
        "found": {"files": 3},
        "used": {"files": {"image": 1}},
        "named": {"files": {"looks like labels": {"count": 2, "example": f"{EVIL}.txt"}}},
        "decisions": [{"what": "split", "value": "train", "why": "the name of a folder"}],
        "surprises": [{"code": "labels_not_read", "message": f"2 files {EVIL}"}],
    }
    page = page_of(dataset(conversion(inputs=[told] * 51)))
    text = page.decode("utf-8")
    assert "files: 3" in text
    assert "looks like labels" in text
    assert "the name of a folder" in text
    assert "50 of 51 inputs are shown" in text
    assert EVIL not in text


# ---------------------------------------------------------------------------------------------------------------------
# What the pictures tell


def insight_told(**found: int) -> dict[str, Any]:
    """Statistics of 9 pictures: of each code the table has one finding, but for the one that is about no picture."""
    row = {"uri": "a/1.jpg", "split": "train", "labels": "a", "score": 1.0}
    told: dict[str, Any] = {"pictures": 9, "looked_at": 9, "found": found, "common": {}, "most_lines": 50}
    places: dict[str, Any] = {"clusters": [], "conflicts": [], "worst": {}}
    return {**told, **places, "listed": {code: [row] for code in found if code != "class_only_in_one_split"}}


def insight_text(**found: int) -> str:
    found_in = dataset(statistics={**statistics(), "insight": insight_told(**found)})
    return read(render_page(page_values(found_in, NO_PICTURES, draw_insight(found_in, Storage())))).text


def test_findings_about_no_picture_are_not_missed_in_the_table_of_pictures() -> None:
    text = insight_text(blank_image=1, class_only_in_one_split=3)
    assert "All findings about single pictures" in text
    assert "Nothing stands out" in insight_text()


def test_the_table_says_how_many_findings_it_leaves_out_and_where_they_are() -> None:
    text = insight_text(blank_image=50, dark_image=4, class_only_in_one_split=3)
    assert "The worst 2 of 54 findings about single pictures, some of each kind; all are lines" in text
    text = insight_text(blank_image=1051, dark_image=4)  # warnings.jsonl has at most 50 of each here
    assert "The worst 2 of 1,055 findings about single pictures, some of each kind; the worst 50 of each" in text


def test_near_leaks_and_conflicts_are_told_at_the_top_with_a_way_to_their_pictures() -> None:
    warned = conversion(warnings={"near_leak": 4, "label_conflict": 1})
    for told, link in (
        ({**statistics(), "insight": insight_told(near_leak=4)}, "#insight"),
        (statistics(), "#findings"),
    ):
        page = read(page_of(dataset(warned, statistics=told)))
        assert "different splits or groups (4 warnings)" in page.text
        assert "1 picture occurs again, or nearly so, with another label." in page.text
        links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
        assert links.count(link) >= 2, link
