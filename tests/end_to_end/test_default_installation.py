"""What a default installation brings is enough for everything but jobs on Dataflow."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.licences import closure

COMMANDS = """
import json, sys
sys.path[:0] = sys.argv[1:3]
from pipelines.main import main
told = [main(line) for line in json.loads(sys.argv[3])]
print(json.dumps([told, sorted(sys.modules.keys() & {"pandas", "google.cloud.dataflow", "tensorflow"})]))
"""

LIBRARY = """
import logging, sys
sys.path[:0] = sys.argv[1:3]
import beam_tfrecord
assert beam_tfrecord.convert(sys.argv[3], sys.argv[4]).status == "published"
assert logging.root.filters == []
from apache_beam.io.filesystems import FileSystems
print(type(FileSystems.get_filesystem("gs://bucket/x")).__name__)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with links to the files of all packages that a default installation brings, and of no other."""
    folder = tmp_path_factory.mktemp("site")
    for name in closure():
        for file in distribution(name).files or ():
            if file.parts[0] != ".." and "__pycache__" not in file.parts:
                link = folder / file
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(file.locate())  # type: ignore[arg-type]
    return folder


def run(site: Path, script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A script in a Python that has nothing but the folder and this checkout."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, str(site), str(ROOT), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_the_folder_has_what_is_asked_for_and_no_more(site: Path) -> None:
    assert (site / "google/cloud/storage").exists()
    assert not (site / "google/cloud/bigquery").exists()


@pytest.mark.slow
def test_the_commands_work_and_the_extra_for_dataflow_is_named(site: Path, photos: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    convert = ["convert", "--input", str(photos), "--output", out]
    cloud = ["convert", "--input", "gs://bucket/a.csv", "--output", "gs://bucket/out", "--runner", "DataflowRunner"]
    lines = [convert, ["verify", out], [*convert, "--overwrite", "--writer", "beam"], ["verify", out], cloud]
    done = run(site, COMMANDS, json.dumps(lines))
    assert json.loads(done.stdout.splitlines()[-1]) == [[0, 0, 0, 0, 2], []]
    assert done.stderr.splitlines()[-1] == (
        "error: --runner DataflowRunner needs Beam with Google's clients: pip install 'beam-tfrecord[dataflow]'"
    )


@pytest.mark.slow
def test_a_program_converts_in_silence_and_beam_knows_cloud_storage(site: Path, photos: Path, tmp_path: Path) -> None:
    done = run(site, LIBRARY, photos, tmp_path / "out")
    assert (done.stdout, done.stderr) == ("GCSFileSystem\n", "")
