"""What this tool wrote is no input, wherever it lies."""

from __future__ import annotations

import json
import shutil
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pipelines.main import main
from tests.end_to_end.datasets import check_accounts
from tests.samples import class_folders, write_files


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two classes, ``circle`` and ``square``; the working folder is the one above."""
    write_files(tmp_path / "photos", class_folders(3))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "photos"


def run(*line: str) -> None:
    assert main([*line, "--quiet"]) == 0


def told(out: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(Path(out, "conversion.json").read_bytes())
    check_accounts(values)
    return values


def content(out: str) -> list[object]:
    """What the images of the collection alone decide."""
    values = told(out)
    shards = sorted((path.name, path.read_bytes()) for path in Path(out).glob("*.tfrecord"))
    return [values["rows"], values["rejected"], values["labels"], values["ignored"], shards]


def outputs_told(out: str) -> str:
    """The message about outputs among the input; '' when there is none."""
    lines = [json.loads(line) for line in Path(out, "warnings.jsonl").read_text().splitlines()]
    return "".join(line["message"] for line in lines if line["code"] == "own_output")


@pytest.mark.parametrize("source", ["photos", "photos/", "ABSOLUTE", "photos/**/*.*g"])
def test_an_output_below_the_input_is_no_part_of_it(
    photos: Path, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same command makes the same dataset again, and its plan is that for an output elsewhere, wherever it lies."""
    source = source.replace("ABSOLUTE", str(photos))

    def planned(output: str) -> dict[str, Any]:
        capsys.readouterr()
        run("convert", "--input", source, "--output", output, "--overwrite", "--plan", "--json")
        plan: dict[str, Any] = json.loads(capsys.readouterr().out)
        return plan

    run("convert", "--input", source, "--output", "elsewhere")
    expected = planned("elsewhere")
    made = []
    for number in range(2):
        run("convert", "--input", source, "--output", "photos/circle/out", "--overwrite")
        assert content("photos/circle/out") == content("elsewhere")
        assert not outputs_told("photos/circle/out"), number
        made.append(Path("photos/circle/out/conversion.json").read_bytes())
    assert made[0] == made[1]  # what it writes itself is nothing that lay in the input
    finished = Path("photos/circle/out").rename("finished")
    for output in ("photos/out", "./photos/out/", "photos/deep/er/out", "photos/circle/out"):
        assert planned(output) == expected, output
        shutil.copytree(finished, output)
        assert planned(output) == expected, output
        shutil.rmtree(output)


def test_an_output_reached_through_a_link_is_left_out(photos: Path) -> None:
    Path("real").mkdir()
    (photos / "link").symlink_to(photos.parent / "real")
    run("convert", "--input", "photos", "--output", "elsewhere")
    for flags in ([], ["--overwrite"]):
        run("convert", "--input", "photos", "--output", "photos/link/out", *flags)
        assert content("real/out") == content("elsewhere")


def test_every_output_below_the_input_is_left_out_and_told(photos: Path) -> None:
    run("convert", "--input", "photos", "--output", "elsewhere")
    run("convert", "--input", "photos", "--output", "photos/old/one")
    run("reshard", "photos/old/one", "--output", "photos/two", "--num_shards", "2")
    run("extract", "elsewhere", "--output", "photos/circle/extracted")
    Path("photos/broken/.staging").mkdir(parents=True)
    Path("photos/broken/.staging/publishing.json").write_text('{"token": "x", "names": []}')
    Path("photos/broken/train-00000-of-00001.tfrecord").write_bytes(b"x")
    run("convert", "--input", "photos", "--output", "new")
    assert content("new") == content("elsewhere")
    message = outputs_told("new")
    assert "photos/broken, photos/circle/extracted, photos/old/one and 1 more are what this tool wrote" in message
    named = told("new")["inputs"][0]["named"]["files"]["output of this tool"]
    files = [path for name in ("broken", "circle/extracted", "old/one", "two") for path in (photos / name).rglob("*")]
    assert named["count"] == sum(path.is_file() for path in files)


def test_a_file_of_that_name_that_tells_of_no_dataset_is_nothing_special(photos: Path) -> None:
    (photos / "conversion.json").write_text('{"rows": 3}')
    (photos / "circle/convert.args").write_text("--x")
    run("convert", "--input", "photos", "--output", "new", "--max_rejects", "1")
    assert not outputs_told("new")
    assert told("new")["written"] == len(list(photos.rglob("*.*g")))


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_an_output_in_an_archive_is_left_out(photos: Path, kind: str) -> None:
    def archive(name: str) -> None:
        if kind == "zip":
            with zipfile.ZipFile(name, "w") as made:
                for path in sorted(photos.rglob("*")):
                    made.write(path, path.relative_to(photos))
        else:
            with tarfile.open(name, "w:gz") as made:
                made.add(photos, ".")

    archive(f"before.{kind}")
    run("convert", "--input", "photos", "--output", "photos/out")
    archive(f"after.{kind}")
    run("convert", "--input", f"before.{kind}", "--output", "one")
    run("convert", "--input", f"after.{kind}", "--output", "two")
    assert content("one") == content("two")
    assert f"after.{kind}!/out is what this tool wrote" in outputs_told("two")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset, ``out``, and the same as ``out.tar``. Shared: tests only read it."""
    folder = tmp_path_factory.mktemp("finished")
    write_files(folder / "photos", class_folders(3))
    run("convert", "--input", f"{folder}/photos", "--output", f"{folder}/out")
    run("pack", f"{folder}/out", "--output", f"{folder}/out.tar")
    return folder


@pytest.mark.parametrize("source", ["out", "out/", "train=out", "out/*", "out/*.tfrecord", "out/**/*.json", "out.tar"])
def test_a_dataset_as_input_is_told_what_to_use(
    finished: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], source: str
) -> None:
    monkeypatch.chdir(finished)
    assert main(["convert", "--input", source, "--output", "new"]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    for word in ("that this tool made", "reshard", "merge", "extract"):
        assert word in line
    assert ("unpack" in line) == (source == "out.tar")
    assert not Path("new").exists()


def test_a_folder_of_nothing_but_outputs_says_so(photos: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        run("convert", "--input", "photos", "--output", f"made/{name}")
    assert main(["convert", "--input", "made", "--output", "new"]) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert "made/one, made/two are what this tool wrote" in line


def test_an_extracted_folder_is_an_input_and_what_was_made_in_it_is_none(photos: Path) -> None:
    run("convert", "--input", "photos", "--output", "out")
    run("extract", "out", "--output", "extracted")
    run("convert", "@extracted/convert.args", "--output", "extracted/again")
    assert content("extracted/again")[-1] == content("out")[-1]
    for flags in ([], ["--overwrite"]):
        run("convert", "--input", "extracted", "--output", "extracted/more", *flags)
        assert told("extracted/more")["rows"] == told("out")["rows"]


def test_the_plan_tells_of_outputs_too(photos: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run("convert", "--input", "photos", "--output", "photos/out")
    capfd.readouterr()
    assert main(["convert", "--input", "photos", "--output", "photos/new", "--plan"]) == 0
    assert "photos/out is what this tool wrote" in capfd.readouterr().out


def test_an_output_beside_a_manifest_is_nothing_to_tell(photos: Path) -> None:
    names = sorted(path.relative_to(photos) for path in photos.rglob("*.*g"))
    Path("list.csv").write_text("image,label\n" + "".join(f"photos/{name},{name.parent}\n" for name in names))
    for flags in ([], ["--overwrite"]):
        run("convert", "--input", "list.csv", "--output", "out", *flags)
        assert not outputs_told("out")
