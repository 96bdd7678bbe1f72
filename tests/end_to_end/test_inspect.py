"""``inspect``: what a conversion would tell of its pictures, without one, and what one told, from its records."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest
from PIL import Image, ImageFilter

from beam_tfrecord.errors import DatasetError
from beam_tfrecord.storage import Storage
from benchmarks.near_duplicates import scene
from pipelines.main import main
from tests.end_to_end.datasets import converted, findings, shard_files
from tests.samples import jpeg, png, truncated, write_files, write_table

Captured = pytest.CaptureFixture[str]
Told = list[tuple[str, str, str]]
OF_PICTURES = ("insight", "publish")
PROCESSES = ("--runner", "DirectRunner", "--direct_num_workers", "2", "--direct_running_mode", "multi_processing")


def told(output: Path, *stages: str) -> Told:
    """(code, picture, picture that it is like) of what a conversion told."""
    lines = [line for line in findings(output, "warnings") if line["stage"] in (stages or OF_PICTURES)]
    return sorted((line["code"], Path(line["uri"]).name, Path(line.get("other", "")).name) for line in lines)


def inspected(capsys: Captured, *arguments: str | Path) -> dict[str, Any]:
    """What ``inspect --json`` says."""
    capsys.readouterr()
    assert main(["inspect", *map(str, arguments), "--json", "--quiet"]) == 0
    values: dict[str, Any] = json.loads(capsys.readouterr().out)
    return values


def seen(values: dict[str, Any]) -> Told:
    """The same of what ``inspect`` found, by ids."""
    return sorted(
        (own["code"], Path(own["id"] or own["uri"]).name, Path(own.get("other_id", "")).name)
        for own in values["findings"]
    )


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of splits and classes with everything in them that is told of a picture by itself or beside others."""
    place = tmp_path_factory.mktemp("pictures") / "in"
    good = [scene(seed, 160, 120) for seed in range(27)]
    framed = Image.new("RGB", (160, 120))
    framed.paste(good[20].resize((160, 80)), (0, 20))
    train = {f"{'ab'[seed % 2]}/{seed:02d}.jpg": jpeg(picture) for seed, picture in enumerate(good[:20])}
    train |= {
        "a/again.jpg": jpeg(good[0], 40),
        "b/other.jpg": jpeg(good[2], 40),
        "b/copy.jpg": train["a/04.jpg"],
        "a/copy5.jpg": train["b/05.jpg"],
        "c/only.png": png(good[25]),
        "a/blank.jpg": jpeg(Image.new("RGB", (160, 120), "teal")),
        "a/framed.jpg": jpeg(framed),
        "b/dark.jpg": jpeg(good[21].point(lambda value: value // 16)),
        "b/white.jpg": jpeg(good[22].point(lambda value: 230 + value // 16)),
        "a/blurred.jpg": jpeg(good[23].filter(ImageFilter.GaussianBlur(30))),
        "a/large.jpg": jpeg(good[24].resize((800, 600))),
        "b/wide.jpg": jpeg(good[24].resize((400, 48))),
    }
    test = {"a/leak.jpg": jpeg(good[1], 40), "b/test.jpg": jpeg(good[26]), "a/same.jpg": train["b/07.jpg"]}
    write_files(place / "train", train)
    write_files(place / "test", test)
    return place


CODES = {
    *("near_duplicate", "near_leak", "label_conflict", "duplicate_content", "split_leak", "class_only_in_one_split"),
    *("blank_image", "dark_image", "overexposed_image", "low_detail", "letterboxed", "odd_size", "odd_aspect"),
}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"keys": "tfds", "num_shards": 3, "seed": 5},
        {"keys": "od", "compression": "gzip", "rename": "image/encoded=picture"},
        {"image_format": "raw", "resize": "96x72", "keys": "simple"},
        {"image_format": "png", "color": "gray"},
    ],
    ids=str,
)
def test_a_dataset_and_its_source_are_told_of_as_the_conversion_did(
    pictures: Path, tmp_path: Path, options: dict[str, Any], capsys: Captured
) -> None:
    converted(pictures, tmp_path / "out", **options)
    expected = told(tmp_path / "out")
    if not options:
        assert {code for code, *_ in expected} == CODES
    of_dataset = inspected(capsys, tmp_path / "out")
    assert seen(of_dataset) == expected
    writing = ("num_shards", "compression")
    flags = [f"--{name}={value}" for name, value in options.items() if name not in writing]
    of_source = inspected(capsys, "--input", pictures, *flags)
    assert seen(of_source) == expected
    for name in ("found", "rows", "pictures", "looked_at"):
        assert of_source[name] == of_dataset[name]
    scores = {
        (line["code"], Path(line["uri"]).name): line.get("score") for line in findings(tmp_path / "out", "warnings")
    }
    for own in of_dataset["findings"]:
        assert own.get("score") == scores[own["code"], Path(own["id"]).name]


def test_doubtful_boxes_are_told_from_records_and_from_tables(tmp_path: Path, capsys: Captured) -> None:
    rows: list[Sequence[Any]] = [["image", "label", "xmin", "ymin", "xmax", "ymax"]]
    for number in range(24):
        write_files(tmp_path / "in", {f"{number:02d}.jpg": jpeg(scene(number, 160, 120))})
        rows.append([f"{number:02d}.jpg", "cat", 10, 10, 50, 60])
    rows += [["00.jpg", "cat", 0, 0, 160, 120], ["01.jpg", "cat", 70, 70, 72, 90], ["02.jpg", "cat", 10, 10, 50, 61]]
    rows += [["04.jpg", "cat", left, 30, left + 3, 90] for left in range(70, 130, 10)]  # exactly 3 pixels wide
    rows += [["05.jpg", "cat", 1.6, 1.2, 158.4, 118.8]]  # exactly 0.98 of both sides
    rows += [["03.jpg", "cat", left, 5, left + 30, 50] for left in range(0, 120, 5)]
    manifest = write_table(tmp_path / "in/boxes.csv", rows)
    converted(manifest, tmp_path / "out")
    expected = told(tmp_path / "out")
    assert {code for code, *_ in expected} >= {"box_covers_all", "tiny_box", "stacked_boxes", "object_counts_outlier"}
    assert ("tiny_box", "01.jpg", "") in expected
    assert ("tiny_box", "04.jpg", "") not in expected
    assert seen(inspected(capsys, tmp_path / "out")) == expected
    assert seen(inspected(capsys, "--input", manifest)) == expected


@pytest.mark.parametrize("flags", [(), pytest.param(PROCESSES, marks=pytest.mark.slow)], ids=["alone", "processes"])
def test_leaks_between_splits_that_options_make_are_told_before_they_are_made(
    tmp_path: Path, capsys: Captured, flags: Sequence[str]
) -> None:
    files = {
        f"{seed:02d}{kind}.jpg": jpeg(scene(seed, 160, 120), quality)
        for seed in range(8)
        for kind, quality in (("", 90), ("b", 40))
    }
    write_files(tmp_path / "in" / "x", files)
    converted(tmp_path / "in", tmp_path / "out", splits="train=0.5,test=0.5")
    expected = told(tmp_path / "out")
    assert {"near_leak", "near_duplicate"} == {code for code, *_ in expected}
    assert seen(inspected(capsys, "--input", tmp_path / "in", "--splits", "train=0.5,test=0.5", *flags)) == expected
    assert seen(inspected(capsys, tmp_path / "out", *flags)) == expected
    assert {code for code, *_ in seen(inspected(capsys, "--input", tmp_path / "in"))} == {"near_duplicate"}


def test_a_picture_that_rows_name_again_and_groups_in_records(tmp_path: Path, capsys: Captured) -> None:
    write_files(tmp_path, {"a.jpg": jpeg(scene(1, 160, 120)), "b.jpg": jpeg(scene(1, 160, 120), 40)})
    rows = [["image", "label", "patient"], ["a.jpg", "x", "1"], ["a.jpg", "y", "1"], ["b.jpg", "x", "2"]]
    manifest = write_table(tmp_path / "rows.csv", rows)
    converted(manifest, tmp_path / "with", group_column="patient", columns="patient:string")
    converted(manifest, tmp_path / "without", group_column="patient")
    expected = told(tmp_path / "with")
    assert "near_leak" in {code for code, *_ in expected}
    numberless = [tuple(name.partition("#")[0] for name in own) for own in seen(inspected(capsys, tmp_path / "with"))]
    assert sorted(numberless) == expected
    values = inspected(capsys, tmp_path / "without")
    assert "do not hold the groups (patient)" in values["notes"][0]
    assert "near_leak" not in values["found"]


def test_what_cannot_be_looked_at_is_told_first(pictures: Path, tmp_path: Path, capsys: Captured) -> None:
    place = tmp_path / "in"
    shutil.copytree(pictures, place)
    write_files(place / "train/a", {"cut.jpg": truncated(jpeg(scene(40))), "empty.jpg": b"", "page.jpg": b"<html>"})
    assert main(["inspect", "--input", str(place)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith("  ")][:4] == [
        *("empty_file", "not_an_image", "truncated_image", "split_leak")
    ]
    values = inspected(capsys, "--input", place)
    assert (values["rows"], values["pictures"]) == (38, 35)
    converted(place, tmp_path / "out")
    name = shard_files(tmp_path / "out")[-1]
    data = bytearray(name.read_bytes())
    data[len(data) // 2] ^= 1
    name.write_bytes(data)
    values = inspected(capsys, tmp_path / "out")
    assert values["found"]["damaged_record"] == 1
    assert values["pictures"] == 34


def test_findings_in_a_file_are_what_a_conversion_leaves_out(tmp_path: Path, capsys: Captured, pictures: Path) -> None:
    file = tmp_path / "found.jsonl"
    values = inspected(capsys, "--input", pictures, "--output", file)
    assert len(file.read_text().splitlines()) == len(values["findings"])
    gone = {own["id"] for own in values["findings"] if own["code"] in ("near_leak", "blank_image", "split_leak")}
    summary = converted(pictures, tmp_path / "out", exclude=f"{file}:near_leak,blank_image,split_leak", strict=True)
    assert summary.excluded == {"exclude": len(gone)}
    assert {"near_leak", "blank_image", "split_leak"}.isdisjoint(summary.warnings)


def test_the_exit_status_tells_only_what_is_asked_for(pictures: Path, tmp_path: Path, capsys: Captured) -> None:
    write_files(tmp_path / "fine" / "x", {f"{seed}.jpg": jpeg(scene(seed, 160, 120)) for seed in range(3)})
    assert main(["inspect", "--input", str(pictures), "--fail_on", "near_leak,missing_file"]) == 1
    assert main(["inspect", "--input", str(pictures), "--fail_on", "missing_file"]) == 0
    assert main(["inspect", "--input", str(tmp_path / "fine"), "--fail_on", "all"]) == 0
    assert "3 pictures: nothing stands out" in capsys.readouterr().out


def test_so_many_findings_are_printed_as_are_asked_for(pictures: Path, capsys: Captured) -> None:
    def printed(*flags: str) -> Iterator[str]:
        assert main(["inspect", "--input", str(pictures), *flags, "--quiet"]) == 0
        yield from capsys.readouterr().out.splitlines()

    every = list(printed("--max_findings", "0"))
    assert not any("... and" in line for line in every)
    heads = {
        line.partition(":")[0].split()[0]: int(line.partition(":")[0].split()[1])
        for line in every[:-1]
        if line[0] != " "
    }
    for code, count in heads.items():
        start = next(number for number, line in enumerate(every) if line.startswith(f"{code} "))
        assert all(line.startswith("  ") for line in every[start + 1 : start + 1 + count])
    few = list(printed("--max_findings", "1"))
    assert sum(line.startswith("  ") and "... and" not in line for line in few) == len(heads)
    more = {code: count - 1 for code, count in heads.items() if count > 1}
    assert [line.strip() for line in few if "... and" in line] == [f"... and {count} more" for count in more.values()]


def test_mistakes_are_told_in_a_line(tmp_path: Path, pictures: Path, capsys: Captured) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset/conversion.json").write_text("{}")
    for status, told_of, arguments in (
        (1, "there is no such file or folder", [tmp_path / "gone"]),
        (2, "there is no such file or folder", ["--input", tmp_path / "gone"]),
        (1, "a source that is not converted yet is named with --input", [pictures]),
        (1, "holds no TFRecord files", [tmp_path / "empty"]),
        (1, "holds no TFRecord files", [tmp_path / "dataset"]),
        (1, "holds no images", ["--input", tmp_path / "empty"]),
        (2, "name the folder of a dataset, or a source with --input", []),
        (2, "one dataset is inspected at a time", [pictures, tmp_path]),
        (2, "belongs to no flag", [tmp_path, "--input", pictures]),
        (2, "did you mean 'near_leak'", [tmp_path, "--fail_on", "near_leek"]),
        (2, "is no whole number", [tmp_path, "--max_findings", "x"]),
        (2, "there is no flag --near_duplicates", ["--input", pictures, "--near_duplicates", "drop"]),
    ):
        assert main(["inspect", *map(str, arguments)]) == status, arguments
        said = capsys.readouterr().err
        assert told_of in said, (said, arguments)
        assert "Traceback" not in said


def test_the_project_that_pays_for_requests_is_known_before_the_dataset_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    projects: list[str | None] = []

    def look(place: str, storage: Storage) -> NoReturn:
        projects.append(storage.options.gcs_user_project)
        raise DatasetError(f"{place}: seen")

    monkeypatch.setattr("pipelines.inspect.find_dataset", look)
    assert main(["inspect", str(tmp_path), "--gcs_user_project", "ours"]) == 1
    assert projects == ["ours"]
    assert "seen" in capsys.readouterr().err
