"""``beam-tfrecord show`` and ``index`` as a user runs them."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from beam_tfrecord.tfrecord.example import encode_example
from pipelines.main import main
from tests.handmade import Handmade, picture_record, small_dataset, texts, whole, write_shard

Captured = pytest.CaptureFixture[str]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def dataset(tmp_path: Path) -> Handmade:
    return small_dataset(tmp_path / "dataset")


def lines_of(captured: Captured) -> list[str]:
    return captured.readouterr().out.splitlines()


def objects(captured: Captured) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines_of(captured)]


def run(*arguments: str | Path) -> int:
    return main([str(argument) for argument in arguments])


def test_the_first_five_records_are_told(dataset: Handmade, capsys: Captured) -> None:
    assert run("show", dataset.folder) == 0
    out, err = capsys.readouterr()
    heads = [line for line in out.splitlines() if "record" in line and "tf.train.Example" in line]
    assert len(heads) == 5
    assert "photos/0.jpg" in out
    assert "5 records of 9 shown" in err


def test_records_are_picked_by_number_split_and_value(dataset: Handmade, capsys: Captured) -> None:
    def names(*flags: str) -> list[str]:
        assert run("show", dataset.folder, "--json", *flags) == 0
        return [value["features"]["image/filename"][0] for value in objects(capsys)]

    assert names("--index", "7") == ["photos/7.jpg"]
    assert names("--index=7,1", "--index", "3") == ["photos/1.jpg", "photos/3.jpg", "photos/7.jpg"]
    assert names("--split", "test") == ["photos/0.jpg", "photos/1.jpg", "photos/2.jpg"]
    assert names("--split", "train", "--index", "0") == ["photos/3.jpg"]
    assert names("--where", "label=cat", "--limit", "2") == ["photos/0.jpg", "photos/3.jpg"]
    assert len(names("--limit", "0")) == 9


def test_json_is_one_object_for_each_record_and_nothing_else(dataset: Handmade, capsys: Captured) -> None:
    assert run("show", dataset.folder, "--json", "--limit", "3") == 0
    first, *others = objects(capsys)
    assert len(others) == 2
    assert (first["file"], first["record"], first["number"], first["split"]) == (dataset.shards[0], 0, 0, "test")
    assert first["features"]["image/encoded"][0]["width"] == 40


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_any_file_and_any_glob_will_do(tmp_path: Path, capsys: Captured, ending: str) -> None:
    for number in range(2):
        path = tmp_path / f"part{number}.rec{ending}"
        write_shard(path, [encode_example({"n": whole(number)})])
        if ending:
            path.write_bytes(gzip.compress(path.read_bytes()))
    assert run("show", tmp_path / f"part*.rec{ending}", "--json") == 0
    assert [value["features"] for value in objects(capsys)] == [{"n": [0]}, {"n": [1]}]
    assert run("show", tmp_path / f"part1.rec{ending}", tmp_path / f"part0.rec{ending}", "--json") == 0
    assert [value["features"] for value in objects(capsys)] == [{"n": [1]}, {"n": [0]}]


def test_a_sheet_is_a_png_with_every_picture(dataset: Handmade, tmp_path: Path, capsys: Captured) -> None:
    sheet = tmp_path / "new folder" / "sheet.png"
    assert run("show", dataset.folder, "--sheet", sheet, "--json") == 0
    (values,) = objects(capsys)
    assert (values["pictures"], values["records"]) == (9, 9)
    with Image.open(sheet) as image:
        assert image.format == "PNG"
        assert image.size == (values["width"], values["height"])
    assert run("show", dataset.folder, "--sheet", sheet, "--columns", "1", "--where", "label=cat") == 0
    assert "4 pictures of 4 records" in lines_of(capsys)[-1]
    with Image.open(sheet) as image:
        assert image.height > image.width


def test_a_damaged_record_is_told_and_the_others_are_shown(dataset: Handmade, capsys: Captured) -> None:
    name = dataset.shards[0]
    data = bytearray((dataset.folder / name).read_bytes())
    data[dataset.places[name][1][0] + 50] ^= 1
    (dataset.folder / name).write_bytes(data)
    assert run("show", dataset.folder, "--json", "--limit", "3") == 1
    out, err = capsys.readouterr()
    assert [json.loads(line)["number"] for line in out.splitlines()] == [0, 2, 3]
    assert f"{name}: record 1 at byte" in err


def test_what_is_shown_cannot_control_the_terminal(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "x.tfrecord"
    evil = "\x1b[2J\x07\u202e"
    write_shard(
        path,
        [encode_example({f"key{evil}": texts(f"value{evil}"), **picture_record(1), "image/class/text": texts(evil)})],
    )
    assert run("show", path) == 0
    assert run("show", path, "--json") == 0
    assert run("show", path, "--sheet", tmp_path / "sheet.png") == 0
    out, err = capsys.readouterr()
    assert not set("\x1b\x07\u202e") & set(out + err)


@pytest.mark.parametrize(
    ("flags", "status", "message"),
    [
        (["--index", "9"], 2, "there are 9 records"),
        (["--index", "first"], 2, "no number of a record"),
        (["--split", "val"], 2, "there is no such split"),
        (["--where", "label=horse"], 2, "no label is called so"),
        (["--where", "nonsense"], 2, "key=value"),
        (["--sheet", "sheet.jpg"], 2, "a sheet is a PNG"),
        (["--limt", "3"], 2, "did you mean '--limit'"),
        (["--columns", "0"], 2, "must be 1 or more"),
    ],
)
def test_mistakes_are_told_in_one_line(
    dataset: Handmade, flags: list[str], status: int, message: str, capsys: Captured
) -> None:
    assert run("show", dataset.folder, *flags) == status
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err


def test_a_sheet_of_records_without_pictures_is_refused(tmp_path: Path, capsys: Captured) -> None:
    write_shard(tmp_path / "x.tfrecord", [encode_example({"n": whole(1)})])
    assert run("show", tmp_path / "x.tfrecord", "--sheet", tmp_path / "s.png") == 1
    assert "no picture" in capsys.readouterr().err
    assert not (tmp_path / "s.png").exists()


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    write_shard(tmp_path / "x.tfrecord", [encode_example({"t": texts("x" * 500)})] * 2000)
    command = [sys.executable, "-m", "pipelines.main", "show", str(tmp_path / "x.tfrecord"), "--limit", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


def test_show_needs_neither_beam_nor_tensorflow(dataset: Handmade) -> None:
    script = (
        "import sys\nfrom pipelines.main import main\n"
        f"status = main(['show', {str(dataset.folder)!r}, '--sheet', {str(dataset.folder / 's.png')!r}])\n"
        "print(status, *sorted({'apache_beam', 'tensorflow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "0", done.stderr


# ---------------------------------------------------------------------------------------------------------------------
# index


def test_an_index_is_written_beside_every_shard_and_used(dataset: Handmade, capsys: Captured) -> None:
    assert run("index", dataset.folder, "--json") == 0
    values = objects(capsys)[-1]
    assert (values["records"], values["indexes"], values["failed"]) == (9, 3, 0)
    for name in dataset.shards:
        lines = (dataset.folder / f"{name}.idx").read_text().splitlines()
        assert lines == [f"{start} {size}" for start, size in dataset.places[name]]
    assert run("show", dataset.folder, "--index", "8", "--json") == 0
    assert objects(capsys)[0]["features"]["image/filename"] == ["photos/8.jpg"]
    assert run("verify", dataset.folder, "--decoder", "pillow", "--json") == 0
    assert "index files" in objects(capsys)[-1]["checked"]


def test_compressed_shards_are_refused_and_the_others_are_indexed(tmp_path: Path, capsys: Captured) -> None:
    write_shard(tmp_path / "a.tfrecord", [encode_example({"n": whole(1)})])
    write_shard(tmp_path / "b.tfrecord.gz", [encode_example({"n": whole(1)})], "gzip")
    assert run("index", tmp_path) == 1
    out, err = capsys.readouterr()
    assert "b.tfrecord.gz is compressed with gzip" in err
    assert "1 index file, 1 file failed" in out
    assert sorted(os.listdir(tmp_path)) == ["a.tfrecord", "a.tfrecord.idx", "b.tfrecord.gz"]
