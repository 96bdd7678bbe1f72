"""The recipes of CONTRIBUTING.md as they stand there: modules outside of the package, and the commands for them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from pipelines.main import main
from tests.conftest import ROOT
from tests.end_to_end.datasets import by_name, conversion, findings, texts
from tests.samples import jpeg, noise, write_files

RECIPES = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PROCESSES = ("--direct_running_mode", "multi_processing", "--direct_num_workers", "2")


def module(name: str) -> str:
    """The block of the recipes that is called so."""
    (text,) = re.findall(rf"```python\n# {name}\.py\n(.*?)```", RECIPES, re.DOTALL)
    return str(text)


def command(name: str) -> list[str]:
    """Arguments of the command of a recipe, which names its module as a plugin."""
    (line,) = re.findall(rf"```\nPYTHONPATH=\. beam-tfrecord (.* --plugins {name} .*)\n```", RECIPES)
    return shlex.split(line)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Photos of fruit, the weight in some names; a list of three of them, with one line that is none."""
    names = ["pear/pear_120g.jpg", "pear/pear_98g.jpg", "plum/plum.jpg", "plum/plum_0g.jpg"]
    pictures = {name: jpeg(Image.fromarray(noise(16, 16, number))) for number, name in enumerate(names)}
    write_files(tmp_path / "photos", pictures)
    lines = [f"{name.split('/')[0]}: photos/{name}" for name in names[:3]]
    (tmp_path / "basket.fruits").write_text("\n".join([*lines, "", "what is this", ""]))
    return tmp_path


def run_recipe(name: str, folder: Path, *flags: str) -> dict[str, dict[str, list[object]]]:
    """Records by file name, of the command of a recipe run in another process."""
    (folder / f"{name}.py").write_text(module(name))
    search = os.pathsep.join([".", str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.main", *command(name), *flags],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": search},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert name in conversion(folder / "out")["options"]["plugins"]
    return by_name(folder / "out")


@pytest.mark.parametrize("name", ["fruit_list", "fruit_weight"])
def test_the_modules_are_short(name: str) -> None:
    assert len(module(name).splitlines()) < 40


def test_a_format_of_ones_own_converts(folder: Path) -> None:
    records = run_recipe("fruit_list", folder)
    assert {name: texts(record) for name, record in records.items()} == {
        "photos/pear/pear_120g.jpg": ["pear"],
        "photos/pear/pear_98g.jpg": ["pear"],
        "photos/plum/plum.jpg": ["plum"],
    }
    for name, record in records.items():
        assert record["image/encoded"] == [(folder / name).read_bytes()]
    (reject,) = findings(folder / "out")
    assert (reject["origin"], reject["code"]) == ("basket.fruits:5", "bad_row")


def test_a_kind_of_ones_own_becomes_a_feature(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = run_recipe("fruit_weight", folder)
    assert {name: record["image/weight"] for name, record in records.items()} == {
        "pear/pear_120g.jpg": [120],
        "pear/pear_98g.jpg": [98],
        "plum/plum.jpg": [],
    }
    (reject,) = findings(folder / "out")
    assert (reject["uri"].rpartition("/")[2], reject["code"]) == ("plum_0g.jpg", "bad_annotation")
    verified = main(["verify", str(folder / "out"), "--decoder", "pillow"])
    assert verified == 0, capsys.readouterr()
    assert "fruit_weight" not in sys.modules, "what was converted needs the module no longer"


@pytest.mark.slow
def test_worker_processes_have_the_modules_too(folder: Path) -> None:
    (folder / "fruit_weight.py").write_text(module("fruit_weight"))
    records = run_recipe("fruit_list", folder, "--plugins", "fruit_list,fruit_weight", *PROCESSES)
    assert {name: record["image/weight"] for name, record in records.items()} == {
        "photos/pear/pear_120g.jpg": [120],
        "photos/pear/pear_98g.jpg": [98],
        "photos/plum/plum.jpg": [],
    }
