"""Every place that a command takes: those that can be none end with one line, and ``~`` is the home folder."""

from __future__ import annotations

import argparse
import importlib
import shutil
import zipfile
from pathlib import Path

import pytest

from pipelines.main import COMMANDS, main
from tests.samples import class_folders, write_files

PLACE_METAVARS = {
    *("DIR", "FILE", "FILE.png", "FOLDER", "ROOT", "[SPLIT=]PLACE"),
    *("FILE[:CODE,...]", "FILE|OLD=NEW,..."),
}
# command -> its arguments that are places: flags, and PLACE for what stands beside them.
PLACE = "PLACE"
ARGUMENTS = {
    "convert": ("--input", "--images", "--exclude", "--map_labels", "--labels", "--output"),
    "inspect": (PLACE, "--input", "--images", "--exclude", "--map_labels", "--labels", "--output"),
    "verify": (PLACE, "--results"),
    "show": (PLACE, "--sheet"),
    "extract": (PLACE, "--output"),
    "reshard": (PLACE, "--output"),
    "merge": (PLACE, "--output"),
    "index": (PLACE,),
    "report": (PLACE, "--output"),
    "pack": (PLACE, "--output"),
    "unpack": (PLACE, "--output"),
}
WRITTEN = {"--output", "--results", "--sheet"}
CASES = [(command, argument) for command, arguments in ARGUMENTS.items() for argument in arguments]
# What can be no place, and a word of the line that says why.
NO_PLACES = {
    "": "empty|needed|give --output",
    "gs://": "no bucket",
    "gs:///x": "no bucket",
    "s3://": "no bucket",
    "s3:///x.tar": "no bucket",
    "GS:///x": "no bucket",
    "gs://$BUCKET/x": "name of a bucket",
    "s3://-/x": "name of a bucket",
    "az://": "no account",
    "az://account": "no container",
    "az://account/": "no container",
    "azfs:///box/x": "no account",
    "az://Account_1/box/x": "name of an account",
    "az://account/$BOX/x": "name of a container",
    "az:/account/box": "az://account/box",
    "hdfs://": "nothing follows",
    "file://": "nothing follows",
    "gs:/b/x": "gs://b/x",
    "s3:/": "s3://BUCKET",
    "gs:b": "gs://b",
    "file:/x": "/x",
    "file:x": "two slashes",
    "https:/host/x": "https://host/x",
    "https://": "no host",
    "nosuch://b/x": "nosuch",
}
NOT_WRITTEN = {"https://localhost:9/x": "web", "http://h/x.tar": "web", "~no_such_user/x": "no user"}


def line_for(command: str, argument: str, value: str, dataset: str = "data") -> list[str]:
    """A command line that is right but for one place. Paths are relative to the folder that ``home`` prepares."""
    good = {
        "convert": {"--input": "pics", "--output": "out"},
        "inspect": {PLACE: dataset} if argument in (PLACE, "--output") else {"--input": "pics"},
        "unpack": {PLACE: "data.tar", "--output": "out"},
        "pack": {PLACE: dataset, "--output": "out.tar"},
        **{name: {PLACE: dataset, "--output": "out"} for name in ("extract", "reshard", "merge")},
    }.get(command, {PLACE: dataset})
    flags = {**good, argument: value}
    if "--images" in flags:
        flags["--input"] = "list.csv"
    places = [flags.pop(PLACE)] if PLACE in flags else []
    further = ["other"] if command == "merge" else []
    return [command, *places, *further, *(f"{flag}={text}" for flag, text in flags.items())]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one thing of each kind that a place can name."""
    folder = tmp_path_factory.mktemp("home")
    write_files(folder / "pics", class_folders(2))
    names = sorted(path.relative_to(folder / "pics") for path in (folder / "pics").rglob("*.*"))
    (folder / "list.csv").write_text("image,label\n" + "".join(f"{name},{name.parent}\n" for name in names))
    (folder / "labels.txt").write_text("".join(f"{label}\n" for label in sorted({str(n.parent) for n in names})))
    for name in ("data", "other"):
        assert main(["convert", "--input", f"{folder}/pics", "--output", f"{folder}/{name}", "--quiet"]) == 0
    assert main(["pack", f"{folder}/data", "--output", f"{folder}/data.tar", "--quiet"]) == 0
    return folder


@pytest.fixture
def home(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder, which is the working folder too, with a copy of all of it."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_place_of_every_command_is_in_the_table() -> None:
    assert set(ARGUMENTS) == set(COMMANDS)
    for command, arguments in ARGUMENTS.items():
        parser: argparse.ArgumentParser = importlib.import_module(f"pipelines.{command}").make_parser()
        found = {
            action.option_strings[0]
            for action in parser._actions
            if action.metavar in PLACE_METAVARS or (action.dest in ("input", "output", "images") and action.metavar)
        }
        assert found == {flag for flag in arguments if flag != PLACE}, command


@pytest.mark.parametrize(("command", "argument"), CASES)
def test_what_can_be_no_place_is_told_in_one_line(
    home: Path, capfd: pytest.CaptureFixture[str], command: str, argument: str
) -> None:
    before = sorted(home.rglob("*"))
    for value, why in {**NO_PLACES, **(NOT_WRITTEN if argument in WRITTEN else {})}.items():
        status = main(line_for(command, argument, value))
        said = capfd.readouterr().err.splitlines()
        assert status in (1, 2), (value, said)
        assert len(said) == 1, (value, said)
        assert said[0].startswith("error: "), said
        assert any(word in said[0] for word in why.split("|")), (value, said)
    assert sorted(home.rglob("*")) == before


@pytest.mark.parametrize(("command", "argument"), CASES)
def test_a_tilde_is_the_home_folder(
    home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str, argument: str
) -> None:
    (home / "elsewhere").mkdir()
    for name in ("pics", "data", "other", "data.tar", "list.csv"):
        (home / "elsewhere" / name).symlink_to(home / name)
    monkeypatch.chdir(home / "elsewhere")
    files = {"--labels": "labels.txt", "--exclude": "labels.txt", "--map_labels": "names.json"}
    (home / "names.json").write_text('{"circle": "round"}')
    name = {"--input": "pics", "--images": "pics", PLACE: "data", **files}.get(argument, "new")
    if command == "unpack" and argument == PLACE:
        name = "data.tar"
    name = {("pack", "--output"): "new.tar", ("show", "--sheet"): "new.png"}.get((command, argument), name)
    line = line_for(command, argument, f"~/{name}")
    if command == "convert" and argument not in WRITTEN:
        line.append("--plan")  # which reads all that is read
    assert main(line) == 0, capfd.readouterr().err
    assert not (home / "elsewhere" / "~").exists()
    if argument in WRITTEN:
        assert (home / name).exists()


@pytest.mark.parametrize("command", ["reshard", "merge"])
def test_a_tilde_behind_the_name_of_a_split_is_the_home_folder(home: Path, command: str) -> None:
    places = ["train=~/data", "test=~/other"][: 1 if command == "reshard" else 2]
    assert main([command, *places, "--output=~/new", "--quiet"]) == 0
    assert (home / "new" / "dataset_info.json").exists()


def test_flags_are_read_from_a_file_in_the_home_folder(home: Path) -> None:
    (home / "flags").write_text("--input=~/pics --output=~/new --quiet")
    assert main(["convert", "@~/flags"]) == 0
    assert (home / "new" / "dataset_info.json").exists()


@pytest.mark.parametrize("where", ["boxes.csv", "boxes.zip", "pics", "pics/**/*.jpg"])
def test_an_id_column_that_cannot_be_one_is_told_once_and_not_for_every_row(
    home: Path, capfd: pytest.CaptureFixture[str], where: str
) -> None:
    names = (home / "list.csv").read_text().splitlines()[1:]
    table = "id,image,xmin,ymin,xmax,ymax,label\n" + "".join(
        f"{number},{line.split(',')[0]},1,1,9,9,{line.split(',')[1]}\n" for number, line in enumerate(names)
    )
    (home / "boxes.csv").write_text(table)
    with zipfile.ZipFile(home / "boxes.zip", "w") as archive:
        archive.writestr("boxes.csv", table)
        for line in names:
            archive.write(home / "pics" / line.split(",")[0], line.split(",")[0])
    flags = ["--images=pics"] if where == "boxes.csv" else []
    assert main(["convert", f"--input={where}", "--output=out", "--id_column=id", *flags]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert "leave --id_column out" in line
    assert not (home / "out").exists()


BEAM_OPTIONS = {
    "--pickle_library=dill": "dill",
    "--pickle_library=dill_unsafe": "dill",
    "--resource_hint=nosuch": "resource hint",
    "--type_check_additional=nosuch": "type_check_additional",
    "--type_check_strictness=ALL_REQUIRED": "type_check_strictness",
    "--on_success_matcher=nosuch": "hamcrest",
    "--profile_cpu": "--profile_location",
    "--profile_memory": "--profile_location",
    "--direct_test_splits=7": "direct_test_splits",
    "--sdk_harness_log_level_overrides=7": "Beam",
    "--direct_num_workers=many": "invalid int",
    "--runner=nosuch": "not known",
    "--prebuild_sdk_container_base_image=x": "deprecated",
    "--no_such_option=1": "no flag",
}


@pytest.mark.parametrize("option", BEAM_OPTIONS)
@pytest.mark.parametrize("command", ["convert", "verify", "extract", "reshard", "merge"])
def test_an_option_of_beam_that_cannot_be_met_is_told_in_one_line(
    home: Path, capfd: pytest.CaptureFixture[str], command: str, option: str
) -> None:
    line = line_for(command, "--output", "new") if "--output" in ARGUMENTS[command] else [command, "data"]
    assert main([*line, option, "--quiet"]) == 2
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 1, said
    assert BEAM_OPTIONS[option] in said[0]
    assert not (home / "new" / "dataset_info.json").exists()
