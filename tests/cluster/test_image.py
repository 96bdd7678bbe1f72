"""The image: ``make test-image`` builds it without a Docker engine, and runs in it what a cluster runs."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.cloud.storage import Bucket

from beam_tfrecord import convert
from pipelines.convert import main
from tests.cluster.image import LAUNCHER, Built, built, what_is_missing
from tests.conftest import ROOT
from tests.emulators import Emulator, gcs_server
from tests.engines import COLLECTIONS, Files, RunningEngine, converted_on, differing
from tests.integration.test_dataflow import IMAGE, bucket, files, job_flags, places, staged_pipeline

__all__ = ["bucket", "gcs_server"]  # fixtures
USERS = (0, 10001)
pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def image() -> Iterator[Built]:
    place = os.environ.get("IMAGE_PLACE", "")
    if not place:
        pytest.skip("the image is tested by make test-image, which takes some GB and a quarter of an hour")
    missing = what_is_missing()
    if missing:
        pytest.skip(missing)
    with built(Path(place).resolve()) as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For collections and their datasets; users who are not root may go there."""
    made = tmp_path_factory.mktemp("collections")
    for path in (made, made.parent, made.parent.parent):
        path.chmod(0o755)
    return made


@pytest.fixture(scope="module", params=USERS)
def engine(request: pytest.FixtureRequest, image: Built, folder: Path) -> Iterator[tuple[RunningEngine, int]]:
    """Workers in the image, and who they are."""
    before = os.umask(0)  # what this process makes, the other user may write to
    try:
        with image.engine(request.param, folder) as running:
            yield running, request.param
    finally:
        os.umask(before)


@pytest.fixture(scope="module")
def direct(folder: Path) -> dict[str, Files]:
    return {kind: converted_on(None, folder, kind) for kind in COLLECTIONS}


@pytest.fixture(scope="module")
def python(image: Built) -> bytes:
    """The version of the image's Python, which metadata tell."""
    return (
        run(image.command("python", "-c", "import platform; print(platform.python_version())")).stdout.strip().encode()
    )


def as_of_here(files: Files, python: bytes) -> Files:
    """Files of a dataset as they were with the Python of this process."""
    here = platform.python_version().encode()
    told = ("conversion.json", "report.html")
    return {name: data.replace(python, here) if name in told else data for name, data in files.items()}


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600, check=False)


# ---------------------------------------------------------------------------------------------------------------------
# What is in it


def test_only_what_is_copied_stays_in_the_folder(image: Built) -> None:
    """Nothing that pip builds, no tests, no caches."""
    told = run(image.command("find", "/opt/beam_tfrecord", "-mindepth", "1", "-maxdepth", "1", "-printf", r"%f\n"))
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert sorted(told.stdout.split()) == sorted(kept)


def test_what_is_installed_has_the_pinned_versions(image: Built) -> None:
    """Whatever Beam's own image has: records depend on these."""
    wanted = "from importlib.metadata import version as v; print(*(f'{n}=={v(n)}' for n in %r))"
    names = ["apache-beam", "google-crc32c", "numpy", "pillow", "protobuf", "pycurl", "simplejpeg"]
    told = run(image.command("python", "-c", wanted % names)).stdout.split()
    here = run([f"{ROOT}/.venv/bin/python", "-c", wanted % names]).stdout.split()
    assert told == here
    assert len(told) == len(names)


# ---------------------------------------------------------------------------------------------------------------------
# Workers


@pytest.mark.parametrize("kind", COLLECTIONS)
def test_workers_in_the_image_publish_the_bytes_of_a_local_run(
    engine: tuple[RunningEngine, int], folder: Path, direct: dict[str, Files], python: bytes, kind: str
) -> None:
    found = as_of_here(converted_on(engine[0], folder, kind), python)
    assert differing(found, direct[kind]) == []


def test_shards_belong_to_the_user_of_the_image(engine: tuple[RunningEngine, int], folder: Path) -> None:
    running, user = engine
    source, options = COLLECTIONS["coco"](folder / "owned" / "in")
    output = folder / "owned" / f"out-{user}"
    convert(str(source), output, pipeline_options=running.flags, **options)
    assert {path.stat().st_uid for path in output.glob("*.tfrecord")} == {user}


# ---------------------------------------------------------------------------------------------------------------------
# Dataflow


@pytest.mark.parametrize("user", USERS)
def test_a_dry_run_translates_the_graph(image: Built, bucket: Bucket, gcs_server: Emulator, user: int) -> None:
    line = ["beam-tfrecord", "convert", *places(bucket), *job_flags(bucket), "--dry_run=true"]
    done = run(image.command(*line, user=user, variables=gcs_server.environment()))
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "the whole graph was translated for Dataflow; nothing was submitted\n",
        "",
    )
    assert files(bucket, "tmp") == {}
    assert files(bucket, "out") == {}


def test_the_launcher_describes_a_job_that_runs_in_the_image_to_the_bytes_of_a_local_run(
    image: Built,
    bucket: Bucket,
    gcs_server: Emulator,
    python: bytes,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What the template's job would start is run by Beam's in-process runner, in the image, on the emulator."""
    assert main(places(bucket)) == 0
    capsys.readouterr()
    local = files(bucket, "out")
    for blob in bucket.list_blobs(prefix="out/"):
        blob.delete()
    root = f"gs://{bucket.name}"
    pairs = [f"{name}={value}" for name, value in zip(places(bucket)[::2], places(bucket)[1::2], strict=True)]
    flags = [*pairs, *job_flags(bucket), f"--template_location={root}/templates/job", "--no_auth"]
    done = run(image.command(LAUNCHER, *flags, variables=gcs_server.environment()))
    assert done.returncode == 0, done.stderr
    job = json.loads(files(bucket, "templates")["job"])
    (pool,) = job["environment"]["workerPools"]
    assert pool["workerHarnessContainerImage"] == IMAGE

    options: dict[str, Any] = job["environment"]["sdkPipelineOptions"]["options"]
    (tmp_path / "pipeline.pb").write_bytes(staged_pipeline(bucket))
    (tmp_path / "options.json").write_text(json.dumps(options))
    (tmp_path / "tests").mkdir()
    for name in ("dataflow_stub.py", "loopback.py"):
        (tmp_path / "tests" / name).write_bytes((ROOT / "tests" / name).read_bytes())
    script = (
        f"import json, pathlib; from tests.dataflow_stub import run_staged; place = pathlib.Path({str(tmp_path)!r}); "
    )
    script += "run_staged((place / 'pipeline.pb').read_bytes(), json.loads((place / 'options.json').read_text()))"
    variables = {**gcs_server.environment(), "PYTHONPATH": str(tmp_path)}
    done = run(image.command("python", "-c", script, mounted=tmp_path, variables=variables))
    assert done.returncode == 0, done.stderr
    assert differing(as_of_here(files(bucket, "out"), python), local) == []
