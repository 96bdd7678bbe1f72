"""What a conversion says of the content of its pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from beam_tfrecord.errors import DatasetError
from beam_tfrecord.publishing import insights
from beam_tfrecord.report import build_report
from beam_tfrecord.storage import Storage
from benchmarks.near_duplicates import CHANGES, scene
from tests.end_to_end.datasets import conversion, converted, findings, shard_bytes
from tests.engines import COLLECTIONS
from tests.samples import jpeg, png, write_files, write_table

Told = list[tuple[str, str, str]]


def picture(seed: int) -> Image.Image:
    return scene(seed, 160, 120)


def told(output: Path) -> Told:
    """(code, file, file that it is like) of what the pictures themselves say, sorted."""
    found = [line for line in findings(output, "warnings") if line["stage"] == "insight"]
    names = [(line["code"], Path(line["uri"]).name, Path(line.get("other", "")).name) for line in found]
    return sorted(names)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two splits of two classes with a copy, a leak and a conflict among them, and a blank picture."""
    place = tmp_path_factory.mktemp("pictures")
    train = {f"{'ab'[seed % 2]}/{seed:02d}.jpg": jpeg(picture(seed)) for seed in range(12)}
    train |= {
        "a/again.jpg": jpeg(picture(0), 35),
        "b/other.jpg": CHANGES["half the size"](scene(2, 320, 240)),
        "a/copy.png": png(picture(3)),
        "a/blank.jpg": jpeg(Image.new("RGB", (160, 120), "teal")),
        "b/empty.jpg": jpeg(Image.new("RGB", (160, 120), "navy")),
        "b/same.jpg": jpeg(picture(4)),
    }
    test = {f"{'ab'[seed % 2]}/{seed:02d}.jpg": jpeg(picture(seed)) for seed in range(20, 24)}
    test |= {"b/leak.jpg": jpeg(picture(5).transpose(Image.Transpose.FLIP_LEFT_RIGHT))}
    write_files(place / "train", train)
    write_files(place / "test", test)
    return place


@pytest.fixture(scope="module")
def expected(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What is told of it, with every option at its default."""
    output = tmp_path_factory.mktemp("told") / "out"
    converted(folder, output)
    return told(output)


def unordered(found: Told) -> set[tuple[str, frozenset[str]]]:
    """Which of two comes first depends on their places in the dataset."""
    return {(code, frozenset({one, other} - {""})) for code, one, other in found}


def test_copies_leaks_conflicts_and_ruined_pictures_are_told_once_each(expected: Told) -> None:
    assert unordered(expected) == {
        ("near_duplicate", frozenset({"00.jpg", "again.jpg"})),
        ("near_duplicate", frozenset({"02.jpg", "other.jpg"})),
        ("near_duplicate", frozenset({"03.jpg", "copy.png"})),
        ("near_leak", frozenset({"05.jpg", "leak.jpg"})),
        ("label_conflict", frozenset({"02.jpg", "other.jpg"})),
        ("label_conflict", frozenset({"03.jpg", "copy.png"})),
        ("label_conflict", frozenset({"04.jpg", "same.jpg"})),
        ("blank_image", frozenset({"blank.jpg"})),
        ("blank_image", frozenset({"empty.jpg"})),
    }
    assert len(expected) == 9


@pytest.mark.parametrize(
    "options",
    [
        {"seed": 5},
        {"num_shards": 7},
        {"read_threads": 1},
        {"writer": "beam"},
        {
            "pipeline_options": [
                "--runner=DirectRunner",
                "--direct_num_workers=2",
                "--direct_running_mode=multi_threading",
            ]
        },
    ],
    ids=str,
)
def test_the_same_is_told_in_any_order_and_with_any_number_of_workers(
    folder: Path, tmp_path: Path, expected: Told, options: dict[str, Any]
) -> None:
    converted(folder, tmp_path / "out", **options)
    assert unordered(told(tmp_path / "out")) == unordered(expected)


def test_switched_off_it_tells_nothing_and_stores_the_same(folder: Path, tmp_path: Path, expected: Told) -> None:
    for choice in ("on", "off"):
        converted(folder, tmp_path / choice, insight=choice)
    assert told(tmp_path / "off") == []
    assert told(tmp_path / "on") == expected
    assert shard_bytes(tmp_path / "off") == shard_bytes(tmp_path / "on")
    assert "insight" not in json.loads((tmp_path / "off" / "statistics.json").read_text())


def test_headers_alone_tell_no_pixels_and_say_so(folder: Path, tmp_path: Path) -> None:
    converted(folder, tmp_path / "out", validate="header")
    assert unordered(told(tmp_path / "out")) == {("label_conflict", frozenset({"04.jpg", "same.jpg"}))}
    insight = json.loads((tmp_path / "out" / "statistics.json").read_text())["insight"]
    assert (insight["pictures"], insight["looked_at"]) == (23, 0)


def test_a_resumed_conversion_tells_what_a_whole_one_tells(
    folder: Path, tmp_path: Path, expected: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("beam_tfrecord.publishing.publish.find_insights", _stopped)
        with pytest.raises(RuntimeError, match="stopped here"):
            converted(folder, tmp_path / "out")
    assert list((tmp_path / "out" / ".staging" / "shards").glob("*.looks"))
    converted(folder, tmp_path / "out", resume=True)
    assert told(tmp_path / "out") == expected
    assert not list((tmp_path / "out").rglob("*.looks"))


def _stopped(*_: object) -> None:
    raise RuntimeError("stopped here")


def test_shards_that_were_made_without_a_look_are_made_again_where_one_is_wanted(
    folder: Path, tmp_path: Path, expected: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("beam_tfrecord.publishing.publish.find_copies", _stopped)
        with pytest.raises(RuntimeError, match="stopped here"):
            converted(folder, tmp_path / "out", insight="off")
    converted(folder, tmp_path / "out", resume=True)
    assert told(tmp_path / "out") == expected


def test_near_pictures_of_different_groups_are_a_leak(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.jpg": jpeg(picture(1)), "b.jpg": jpeg(picture(1), 40), "c.jpg": jpeg(picture(1), 60)})
    rows = [["image", "label", "patient"], *(["a.jpg", "x", "1"], ["b.jpg", "x", "1"], ["c.jpg", "x", "2"])]
    write_table(tmp_path / "rows.csv", rows)
    converted(tmp_path / "rows.csv", tmp_path / "out", group_column="patient")
    found = {(code, frozenset({one, other})) for code, one, other in told(tmp_path / "out")}
    leaks = {pair for code, pair in found if code == "near_leak"}
    assert leaks
    assert all("c.jpg" in pair for pair in leaks)


def test_a_picture_that_is_listed_twice_is_no_near_duplicate(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.jpg": jpeg(picture(1))})
    write_table(tmp_path / "rows.csv", [["image", "label"], ["a.jpg", "x"], ["a.jpg", "y"]])
    converted(tmp_path / "rows.csv", tmp_path / "out")
    assert told(tmp_path / "out") == []


def test_at_most_so_many_lines_of_a_code_are_written_the_worst_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = {f"{level}.png": png(Image.new("L", (64, 64), level)) for level in range(0, 200, 10)}
    write_files(tmp_path / "in" / "x", pictures)
    whole = insights.find_insights

    def bounded(*args: Any) -> insights.Insights:
        return whole(*args, most_lines=3)

    monkeypatch.setattr("beam_tfrecord.publishing.publish.find_insights", bounded)
    converted(tmp_path / "in", tmp_path / "out")
    insight = json.loads((tmp_path / "out" / "statistics.json").read_text())["insight"]
    assert insight["found"] == {"blank_image": 20}
    assert insight["most_lines"] == 3
    assert conversion(tmp_path / "out")["warnings"] == {"blank_image": 3}


def test_of_more_pictures_than_are_held_all_is_told_but_near_ones(
    folder: Path, tmp_path: Path, expected: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("beam_tfrecord.publishing.insights.MOST_PICTURES", 5)
    converted(folder, tmp_path / "out", num_shards=6)
    of_copies = ("label_conflict", frozenset({"04.jpg", "same.jpg"}))
    blank = {found for found in unordered(expected) if found[0] == "blank_image"}
    assert unordered(told(tmp_path / "out")) == {of_copies, *blank}


@pytest.mark.parametrize("most", [16_000_000, 25])
def test_outliers_are_told_by_all_pictures_or_by_a_part_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("beam_tfrecord.publishing.insights.MOST_PICTURES", most)
    usual = {f"{number:02d}.png": png(Image.new("L", (64 + number % 3, 48), 200)) for number in range(60)}
    write_files(tmp_path / "in" / "x", {**usual, "large.png": png(Image.new("L", (640, 480), 200))})
    converted(tmp_path / "in", tmp_path / "out", num_shards=4)
    assert [name for code, name, _ in told(tmp_path / "out") if code == "odd_size"] == ["large.png"]


def rows_of_report(output: Path) -> list[tuple[str, int]]:
    """Code and number of pictures of each row of the section."""
    page = (output / "report.html").read_text("utf-8")
    section = page.partition('<section id="insight"')[2].partition("</section>")[0]
    rows = section.split('<div class="picture-group')[1:]
    return [(row.partition('data-code="')[2].partition('"')[0], row.count("<figure")) for row in rows]


def test_the_report_shows_conflicts_side_by_side_then_leaks_then_copies_and_the_worst(
    folder: Path, tmp_path: Path
) -> None:
    converted(folder, tmp_path / "out", num_shards=3)
    assert rows_of_report(tmp_path / "out") == [
        *[("label_conflict", 2)] * 3,
        ("near_leak", 2),
        *[("near_duplicate", 2)] * 3,
        ("blank_image", 2),
    ]
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "train · a · " in page
    assert "leak.jpg" in page.partition('<section id="insight"')[2]


def test_the_report_says_what_was_not_looked_at_and_that_nothing_stands_out(tmp_path: Path) -> None:
    write_files(tmp_path / "in" / "x", {f"{seed}.jpg": jpeg(picture(seed)) for seed in range(4)})
    converted(tmp_path / "in", tmp_path / "whole")
    converted(tmp_path / "in", tmp_path / "header", validate="header")
    converted(tmp_path / "in", tmp_path / "off", insight="off")
    whole, header, off = ((tmp_path / name / "report.html").read_text("utf-8") for name in ("whole", "header", "off"))
    assert "Nothing stands out" in whole
    assert "Pixels were not looked at" not in whole
    assert "Pixels were not looked at" in header
    assert 'id="insight"' not in off


def test_damaged_statistics_of_insight_are_told(folder: Path, tmp_path: Path) -> None:
    converted(folder, tmp_path / "out")
    statistics = tmp_path / "out" / "statistics.json"
    told = json.loads(statistics.read_text())
    for damage in ({"clusters": [[{}]]}, {"found": None}, {"worst": {"blank_image": [{"file": 1}]}}):
        statistics.write_text(json.dumps({**told, "insight": {**told["insight"], **damage}}))
        with pytest.raises(DatasetError, match="is damaged"):
            build_report(str(tmp_path / "out"), Storage())


def test_what_holds_for_a_large_part_of_the_pictures_is_told_once(tmp_path: Path) -> None:
    dark = {f"x/{seed:02}.jpg": jpeg(picture(seed).point(lambda value: value // 8)) for seed in range(10)}
    light = {f"y/{seed:02}.jpg": jpeg(picture(seed)) for seed in range(20, 34)}
    write_files(tmp_path / "in", dark | light)
    converted(tmp_path / "in", tmp_path / "out", num_shards=3)
    lines = [line for line in findings(tmp_path / "out", "warnings") if line["stage"] == "insight"]
    assert [(line["code"], line["origin"], line["uri"]) for line in lines] == [("dark_image", "whole collection", "")]
    assert "10 of 24 pictures" in lines[0]["message"]
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "dark_image holds for 10 of 24 pictures" in page


def test_the_collection_that_engines_convert_has_findings_of_many_kinds(tmp_path: Path) -> None:
    """All files of it are compared byte by byte, those with the findings too."""
    source, options = COLLECTIONS["gzip"](tmp_path / "in")
    converted(source, tmp_path / "out", **options)
    pairs = {"near_duplicate", "near_leak", "label_conflict", "duplicate_content"}
    assert set(conversion(tmp_path / "out")["warnings"]) == pairs | {"blank_image", "dark_image"}
    assert len(list((tmp_path / "out").glob("*.tfrecord.gz"))) == 5
