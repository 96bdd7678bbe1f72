"""What is packed for workers: the source archive of Beam's --setup_file, and the image."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.conftest import ROOT

DOCKERFILE = ROOT / "Dockerfile"


def run(*command: str, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Beam's stager makes of --setup_file, in a clean copy of the tree."""
    tree, packed = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("packed")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("beam_tfrecord", "pipelines", "tests"):
        shutil.copytree(ROOT / name, tree / name, ignore=ignored)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, tree)
    run(sys.executable, "setup.py", "--quiet", "sdist", "--dist-dir", str(packed), folder=tree)
    (found,) = packed.glob("*.tar.gz")
    return found


def members(archive: Path) -> set[str]:
    with tarfile.open(archive) as packed:
        return {name.partition("/")[2] for name in packed.getnames()}


def sources(*folders: str) -> set[str]:
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    return {path.relative_to(ROOT).as_posix() for path in paths if "__pycache__" not in path.parts}


def test_the_archive_for_workers_holds_every_file_of_the_packages(archive: Path) -> None:
    packed = members(archive)
    wanted = sources("beam_tfrecord", "pipelines")
    assert "beam_tfrecord/py.typed" in wanted
    assert any("/templates/" in name for name in wanted)
    assert wanted - packed == set()
    assert {"setup.py", "pyproject.toml", "README.md", "constraints.txt"} <= packed


@pytest.mark.slow
def test_the_archive_installs_and_runs(archive: Path, tmp_path: Path) -> None:
    """As a worker installs it, but without its dependencies, which are here."""
    target = tmp_path / "target"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    run(*pip, "--no-deps", "--no-build-isolation", "--target", str(target), str(archive), folder=tmp_path)
    installed = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    assert sources("beam_tfrecord", "pipelines") - installed == set()
    assert not any(name.startswith("tests/") for name in installed)
    script = "import beam_tfrecord, pipelines; print(beam_tfrecord.__file__, pipelines.__file__, sep='\\n')"
    told = run(sys.executable, "-c", script, folder=tmp_path, PYTHONPATH=str(target))
    assert all(Path(line).is_relative_to(target) for line in told.splitlines())
    # The launcher in the image starts the file, not the module.
    launcher = target / "pipelines" / "flex_template.py"
    template = run(sys.executable, str(launcher), "--metadata", folder=tmp_path, PYTHONPATH=str(target))
    assert template == (ROOT / "flex_template.json").read_text(encoding="utf-8")


def test_the_image_has_the_beam_that_is_pinned() -> None:
    """For the Python of the image: constraints.txt may pin others for other Pythons."""
    text = DOCKERFILE.read_text(encoding="utf-8")
    (beam,) = re.findall(r"^ARG BEAM_VERSION=(\S+)$", text, re.MULTILINE)
    (python,) = re.findall(r"^FROM apache/beam_python(3\.\d+)_sdk:", text, re.MULTILINE)
    assert f"/python{python.replace('.', '')}-template-launcher-base:" in text
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line.startswith("apache-beam==")]
    here = {"python_full_version": f"{python}.0", "python_version": python}
    (pinned,) = [pin for pin in pins if pin.marker is None or pin.marker.evaluate(here)]
    assert str(pinned.specifier) == f"=={beam}"


def test_what_the_image_names_is_there() -> None:
    text = DOCKERFILE.read_text(encoding="utf-8")
    (launched,) = re.findall(r"^ENV FLEX_TEMPLATE_PYTHON_PY_FILE=/opt/beam_tfrecord/(\S+)$", text, re.MULTILINE)
    assert launched == "pipelines/flex_template.py"
    assert (ROOT / launched).is_file()
    context = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {name for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE) for name in line.split()[:-1]}
    assert copied <= context
    assert all((ROOT / name).exists() for name in copied)
    assert not re.search(r"pip install.*tensorflow", text)


@pytest.mark.slow
def test_nothing_that_pip_builds_stays_in_the_image(tmp_path: Path) -> None:
    """The folder as the image has it, installed from as there, and cleaned by the image's own line."""
    text = DOCKERFILE.read_text(encoding="utf-8")
    folder = tmp_path / "opt"
    folder.mkdir()
    for name in re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE):
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile)(ROOT / name, folder / name)
    before = set(folder.iterdir())
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    run(*pip, "--no-deps", "--no-build-isolation", "--target", str(tmp_path / "target"), ".", folder=folder)
    assert set(folder.iterdir()) - before, "pip leaves what it builds, or this test shows nothing"
    (cleaning,) = re.findall(r"&& (rm -rf [^\\\n]+)", text)
    run("sh", "-c", cleaning, folder=folder)
    assert set(folder.iterdir()) == before
