"""``beam-tfrecord verify`` as a user runs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from beam_tfrecord import convert
from beam_tfrecord.tools.verifying.decoders import AUTO, TENSORFLOW
from pipelines.main import main
from pipelines.verify import loading_tensorflow
from tests.handmade import Handmade, make_dataset, picture_record, small_dataset, texts
from tests.samples import class_folders, jpeg, noise, png, write_files, write_table

Captured = pytest.CaptureFixture[str]


def verify(*arguments: str | Path, decoder: str | None = "pillow") -> int:
    given = [str(argument) for argument in arguments]
    return main(["verify", *given, *(["--decoder", decoder] if decoder else [])])


def as_json(captured: Captured) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(captured.readouterr().out.splitlines()[-1])
    return values


@pytest.fixture
def dataset(tmp_path: Path) -> Handmade:
    return small_dataset(tmp_path / "dataset")


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def test_a_clean_dataset_is_told_to_be_clean(dataset: Handmade, capsys: Captured) -> None:
    assert verify(dataset.folder) == 0
    out, err = capsys.readouterr()
    assert out.startswith("9 records, 3 shards, no faults, ")
    assert "images (pillow)" in err
    assert [path.name for path in dataset.folder.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("decoder", "told"), [(None, "libjpeg-turbo and zlib, tensorflow in doubt"), ("tensorflow", "tensorflow")]
)
def test_what_looked_at_the_images_is_told(
    dataset: Handmade, decoder: str | None, told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert verify(dataset.folder, "--json", decoder=decoder) == 0
    out, err = capfd.readouterr()
    values = json.loads(out.splitlines()[-1])
    assert values["decoder"] == told
    assert (values["records"], values["shards"], values["images"], values["faults"]) == (9, 3, 9, 0)
    assert values["details"] == []
    assert values["seconds"] > 0
    assert f"images ({told})" in values["checked"]
    assert "cuda" not in err.lower()


def in_a_process_of_its_own(*arguments: str | Path) -> tuple[dict[str, Any], str, bool]:
    """(what --json prints, standard error, whether TensorFlow was imported)."""
    script = "import sys; from pipelines.main import main; main(sys.argv[1:]); print('tensorflow' in sys.modules)"
    given = [sys.executable, "-c", script, "verify", "--json", *map(str, arguments)]
    result = subprocess.run(given, capture_output=True, text=True, check=True)
    values, imported = result.stdout.splitlines()
    return json.loads(values), result.stderr, imported == "True"


def with_pictures(folder: Path, *pictures: bytes) -> Handmade:
    """A dataset of one shard with these bytes in place of the images of its records."""
    records = [{**picture_record(number), "image/encoded": texts(data)} for number, data in enumerate(pictures)]
    return make_dataset(folder, {"train": [records]})


def test_tensorflow_is_not_loaded_for_images_that_leave_no_doubt(dataset: Handmade) -> None:
    values, err, imported = in_a_process_of_its_own(dataset.folder)
    assert values["faults"] == 0
    assert not imported
    assert "TensorFlow" not in err


def test_tensorflow_is_loaded_once_for_the_images_in_doubt_and_decides(tmp_path: Path, capsys: Captured) -> None:
    good = picture_record(0)["image/encoded"].values[0]
    cmyk = jpeg(Image.fromarray(noise(40, 30)).convert("CMYK"))
    odd = [good + b"some more", good[:-2], cmyk, good[: len(good) // 2], b"no image"]
    with_pictures(tmp_path, good, *odd * 30)
    values, err, imported = in_a_process_of_its_own(tmp_path, "--threads", "4")
    assert imported
    assert err.count("loading TensorFlow, which decodes the images that leave a doubt\n") == 1
    assert "cuda" not in err.lower()
    refused = {fault["record"] for fault in values["details"] if fault["code"] == "bad_image"}
    assert refused == {number for number in range(1, 151) if number % 5 in (0, 2, 4)}
    assert verify(tmp_path, "--json", "--quiet", decoder="tensorflow") == 1
    assert as_json(capsys)["details"] == values["details"]


@pytest.mark.parametrize(
    ("decoder", "told"),
    [
        (TENSORFLOW, "loading TensorFlow, which decodes the images\n"),
        (AUTO, "loading TensorFlow, which decodes the images that leave a doubt\n"),
    ],
)
def test_a_word_is_said_about_tensorflow_unless_it_is_to_be_quiet(
    capfd: pytest.CaptureFixture[str], decoder: str, told: str
) -> None:
    for quiet in (False, True):
        with loading_tensorflow(decoder, quiet=quiet):
            os.write(2, b"what TensorFlow says of graphics cards\n")
        assert capfd.readouterr().err == ("" if quiet else told)


@pytest.mark.slow
def test_to_be_quiet_is_to_load_tensorflow_without_a_word(dataset: Handmade) -> None:
    values, err, imported = in_a_process_of_its_own(dataset.folder, "--decoder", "tensorflow", "--quiet")
    assert (values["faults"], err, imported) == (0, "", True)


def test_a_fault_is_named_with_file_record_offset_and_cause(dataset: Handmade, capsys: Captured) -> None:
    name = dataset.shards[1]
    start, size = dataset.places[name][2]
    flip(dataset.folder / name, start + size // 2)
    assert verify(dataset.folder) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith(f"{name}: record 2 at byte {start}: the checksum of its data is ")
    assert out[1] == f"{name}: the file has 2 whole records, but 3 are stated"
    assert out[-1].startswith("8 records, 3 shards, 2 faults, ")
    assert verify(dataset.folder, "--json") == 1
    values = as_json(capsys)
    assert values["faults"] == 2
    assert values["by_code"] == {"damaged_record": 1, "wrong_count": 1}
    first = values["details"][0]
    assert (first["file"], first["record"], first["offset"], first["code"]) == (name, 2, start, "damaged_record")


def test_a_stray_file_is_a_note_and_a_leftover_shard_a_fault(dataset: Handmade, capsys: Captured) -> None:
    (dataset.folder / "placeholder").write_bytes(b"placeholder")
    assert verify(dataset.folder) == 0
    assert "placeholder is no part of the dataset" in capsys.readouterr().err
    shutil.copy(dataset.folder / dataset.shards[0], dataset.folder / "test-00001-of-00002.tfrecord")
    assert verify(dataset.folder) == 1
    assert "test-00001-of-00002.tfrecord: " in capsys.readouterr().out


def test_names_of_files_cannot_control_the_terminal(tmp_path: Path, capsys: Captured) -> None:
    small_dataset(tmp_path)
    (tmp_path / "evil\x1b[2J\nname-00000-of-00001.tfrecord").write_bytes(b"")
    (tmp_path / "stray\x1b[31m").write_bytes(b"")
    assert verify(tmp_path) == 1
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert r"evil\x1b[2J\nname" in out
    assert r"stray\x1b[31m" in err


def test_many_faults_are_counted_beyond_a_limit(dataset: Handmade, capsys: Captured) -> None:
    dataset.edit("conversion.json", lambda conversion: conversion["features"].pop("image/filename"))
    assert verify(dataset.folder, "--max_faults", "2", "--json") == 1
    values = as_json(capsys)
    assert values["by_code"]["wrong_features"] == 9
    assert len([fault for fault in values["details"] if fault["code"] == "wrong_features"]) == 6
    assert verify(dataset.folder, "--max_faults=2") == 1
    assert "--max_faults 0 names all" in capsys.readouterr().err


def test_files_from_elsewhere_and_globs_are_checked(dataset: Handmade, tmp_path: Path, capsys: Captured) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in dataset.shards:
        shutil.copy(dataset.folder / name, elsewhere / name)
    assert verify(elsewhere / "train*.tfrecord", "--json") == 0
    values = as_json(capsys)
    assert (values["shards"], values["records"]) == (2, 6)
    assert any("no conversion.json" in note for note in values["notes"])
    assert verify(elsewhere / dataset.shards[0], elsewhere / dataset.shards[1]) == 0


def test_the_verdict_can_be_kept(dataset: Handmade, tmp_path: Path, capsys: Captured) -> None:
    assert verify(dataset.folder, "--results", tmp_path / "verdict.json", "--quiet") == 0
    assert json.loads((tmp_path / "verdict.json").read_text())["records"] == 9
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "name a dataset"),
        (["nowhere"], 1, "there is no such file or folder"),
        (["x", "--decodr", "pillow"], 2, "did you mean '--decoder'"),
        (["x", "--decoder", "opencv"], 2, "opencv"),
        (["x", "--max_faults", "many"], 2, "'many' is no whole number"),
    ],
)
def test_mistakes_are_told_in_one_line(arguments: list[str], status: int, message: str, capsys: Captured) -> None:
    assert main(["verify", *arguments]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "Traceback" not in err


def test_flags_of_beam_may_stand_anywhere(dataset: Handmade, capsys: Captured) -> None:
    assert verify("--runner", "DirectRunner", dataset.folder, "--direct_num_workers=1") == 0
    assert "9 records" in capsys.readouterr().out


@pytest.mark.slow
def test_processes_of_their_own_come_to_the_same_verdict(dataset: Handmade, capsys: Captured) -> None:
    flags = ["--direct_running_mode", "multi_processing", "--direct_num_workers", "2"]
    assert verify(dataset.folder, *flags, "--json") == 0
    assert as_json(capsys)["records"] == 9


# ---------------------------------------------------------------------------------------------------------------------
# What convert makes has no faults


CONVERSIONS: dict[str, dict[str, Any]] = {
    "imagenet": {"index": True},
    "tfds": {"keys": "tfds", "splits": "train=0.5,test=0.5"},
    "simple": {"keys": "simple", "compression": "gzip"},
    "raw": {"image_format": "raw", "keys": "simple", "compression": "zlib"},
    "columns": {"columns": "age:int64,note:string", "label_offset": 3, "rename": "image/encoded=pixels"},
    "sequence": {"sequence_column": "clip", "order_column": "age"},
    "several labels": {"label_separator": "|"},
}


@pytest.mark.parametrize("options", CONVERSIONS.values(), ids=CONVERSIONS)
def test_what_convert_makes_has_no_faults(tmp_path: Path, options: dict[str, Any], capsys: Captured) -> None:
    photos = tmp_path / "photos"
    write_files(photos, class_folders())
    files = sorted(class_folders())
    separator = "|" if "label_separator" in options else "-"
    rows = [
        [str(photos / file), f"{file.split('/')[0]}{separator}b", number % 4, f"note {number}", f"clip{number // 3}"]
        for number, file in enumerate(files)
    ]
    table = write_table(tmp_path / "rows.csv", [["image", "label", "age", "note", "clip"], *rows])
    convert(str(table), str(tmp_path / "out"), **options)
    assert verify(tmp_path / "out", "--json") == 0, capsys.readouterr()
    values = as_json(capsys)
    assert values["details"] == []
    assert values["images"] == len(files)


def test_a_png_collection_with_rejects_and_copies_has_no_faults(tmp_path: Path, capsys: Captured) -> None:
    files = {
        **class_folders(2),
        "square/deep.png": png(Image.fromarray(noise(9, 9, channels=1)[:, :, 0].astype("<u2"))),
    }
    files["circle/broken.jpg"] = b"no image"
    write_files(tmp_path / "in", files)
    rows = [["image", "label", "split"]]
    for number, name in enumerate([*files, *files]):  # every id twice, in different splits
        rows.append([str(tmp_path / "in" / name), name.split("/")[0], "test" if number < len(files) else "train"])
    table = write_table(tmp_path / "rows.csv", rows)
    convert(str(table), str(tmp_path / "out"), max_rejects="100%")
    assert verify(tmp_path / "out", "--json", decoder="tensorflow") == 0, capsys.readouterr()
    assert any("share their id" in note for note in as_json(capsys)["notes"])


def test_each_of_several_datasets_is_checked_with_its_own_metadata(tmp_path: Path, capsys: Captured) -> None:
    one, other = (small_dataset(tmp_path / name) for name in ("one", "other"))
    assert verify(one.folder, other.folder, f"{one.folder}/", "--json") == 0
    told = as_json(capsys)
    assert (told["records"], told["shards"]) == (18, 6)
    assert "metadata" in told["checked"]
    shard = next(other.folder.glob("*.tfrecord"))
    (one.folder / "labels.txt").unlink()
    flip(shard, shard.stat().st_size - 1)
    results = tmp_path / "verdict.json"
    assert verify(one.folder, other.folder, "--json", "--results", results) == 1
    told = as_json(capsys)
    assert {fault["file"] for fault in told["details"] if fault["code"] == "missing_file"} == {
        f"{one.folder}/labels.txt"
    }
    assert {fault["file"] for fault in told["details"] if fault["code"] == "damaged_record"} == {str(shard)}
    assert json.loads(results.read_text("utf-8"))["faults"] == told["details"]


def test_a_file_that_several_places_name_counts_once(tmp_path: Path, capsys: Captured) -> None:
    dataset = small_dataset(tmp_path / "dataset")
    shards = sorted(dataset.folder.glob("*.tfrecord"))
    assert verify(*shards, shards[0], "--json") == 0
    assert as_json(capsys)["shards"] == len(shards)
