"""What all tests share: their environment, and a browser. Sample pictures are made by tests/samples.py."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import hypothesis
import pytest

from beam_tfrecord.storage.clients import forget_clients
from tests.samples import class_folders, write_files

ROOT = Path(__file__).resolve().parent.parent

# Before anything imports TensorFlow or a Google client, here and in the processes that tests start.
os.environ.update(
    {
        "TF_CPP_MIN_LOG_LEVEL": "3",  # no start-up messages
        "CUDA_VISIBLE_DEVICES": "-1",
        "NO_GCE_CHECK": "true",  # no search for a metadata server that is not there
    }
)

# What tests and Beam make is freed without the collector, and TensorFlow leaves it much to look through: less often.
gc.set_threshold(50_000, 20, 50)

# The machine is shared: slow is no error. In CI the same examples are tried on every run.
hypothesis.settings.register_profile(
    "suite", deadline=None, derandomize="CI" in os.environ, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("suite")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are no names of tests: they can hold a time (gzip does), and then two workers collect different tests."""
    return f"{argname}-{len(val)}B" if isinstance(val, bytes) else None


@pytest.fixture(autouse=True)
def no_clients_left() -> Iterator[None]:
    """Clients keep connections to their server; tests start servers by the hundred, which a process knows few of."""
    yield
    forget_clients()


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three classes of three small JPEGs each. Shared: tests only read it."""
    folder = tmp_path_factory.mktemp("photos")
    write_files(folder, class_folders())
    return folder


@pytest.fixture(scope="session")
def engine_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the collections of tests/engines.py lie, whatever engine converts them: metadata tell the path."""
    return tmp_path_factory.mktemp("collections")


@pytest.fixture(scope="session")
def direct(engine_folder: Path) -> dict[str, dict[str, bytes]]:
    """What DirectRunner publishes, by collection."""
    from tests.engines import COLLECTIONS, converted_on

    return {kind: converted_on(None, engine_folder, kind) for kind in COLLECTIONS}


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a Chromium; tests that ask for it are skipped where there is none."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    return found


@pytest.fixture(scope="session")
def run_cli() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line in a process of its own: ``run_cli("convert", "--input", place, env={...})``."""

    def run(*arguments: object, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pipelines.main", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
        )

    return run
