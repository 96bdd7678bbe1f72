"""A run that is killed, stopped or short of a worker leaves nothing wrong, and --resume ends with the same bytes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from beam_tfrecord.transforms import running
from beam_tfrecord.transforms.failures import WorkerLostError
from tests.conftest import ROOT
from tests.end_to_end.datasets import check_conservation, converted, shard_bytes, shard_files
from tests.samples import noise, png, write_files, write_table

COUNT = 240
OPTIONS = ["--splits", "train=0.8,validation=0.2", "--num_shards", "12"]


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("collection")
    names = [f"{n:03d}.png" for n in range(COUNT)]
    write_files(folder, {name: png(Image.fromarray(noise(96, 96, n))) for n, name in enumerate(names)})
    return write_table(
        folder / "data.csv", [("image", "label"), *((name, "ab"[n % 2]) for n, name in enumerate(names))]
    )


@pytest.fixture(scope="module")
def undisturbed(collection: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    converted(collection, out, splits="train=0.8,validation=0.2", num_shards=12)
    return shard_bytes(out)


def start(collection: Path, out: Path, *flags: str) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "pipelines.main", "convert", "--input", str(collection), "--output", str(out)]
    return subprocess.Popen(
        [*line, *OPTIONS, *flags],
        cwd=ROOT,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def staged(out: Path, ending: str = ".info.json") -> int:
    folder = out / ".staging" / "shards"
    return sum(path.name.endswith(ending) for path in folder.iterdir()) if folder.is_dir() else 0


def stop_when(process: subprocess.Popen[str], out: Path, shards: int, sign: int) -> None:
    """Send a signal as soon as so many shards are staged (or the run has ended)."""
    deadline = time.monotonic() + 120
    while process.poll() is None and staged(out) < shards and time.monotonic() < deadline:
        time.sleep(0.002)
    if process.poll() is None:
        os.killpg(process.pid, sign)


@pytest.mark.slow
def test_a_killed_run_is_finished_by_resume_with_the_same_bytes(
    collection: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    """Five kills of one conversion, each later than the last; after each, what has a final name is right."""
    out = tmp_path / "out"
    kept = 0
    for shards in range(0, 10, 2):
        process = start(collection, out, "--resume", "--read_threads", "1")
        stop_when(process, out, shards + 1, signal.SIGKILL)
        process.communicate(timeout=60)
        wrong = [path.name for path in shard_files(out) if path.read_bytes() != undisturbed.get(path.name)]
        assert not wrong
        if process.returncode == 0:
            break
        assert not (out / "dataset_info.json").exists()
        assert staged(out) >= kept  # what was finished stays finished
        kept = staged(out)
    process = start(collection, out, "--resume")
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert shard_bytes(out) == undisturbed


@pytest.mark.slow
def test_a_killed_run_is_redone_without_resume(collection: Path, undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start(collection, out)
    stop_when(process, out, 3, signal.SIGKILL)
    process.communicate(timeout=60)
    summary = converted(collection, out, splits="train=0.8,validation=0.2", num_shards=12)
    check_conservation(summary, out)
    assert shard_bytes(out) == undisturbed


def test_ctrl_c_stops_and_keeps_what_is_finished(collection: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start(collection, out, "--read_threads", "1")
    stop_when(process, out, 1, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "--resume" in said
    assert staged(out) >= 1
    assert not shard_files(out)


@pytest.mark.slow
def test_a_lost_worker_process_ends_the_job_loudly(collection: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """The runner itself would wait for it for ever."""
    flags = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    out = tmp_path / "out"

    def workers() -> list[int]:
        line = ["pgrep", "-f", "-P", str(os.getpid()), "sdk_worker_main"]
        found = subprocess.run(line, capture_output=True, text=True, check=False).stdout
        return [int(pid) for pid in found.split()]

    def kill_a_worker() -> None:
        for pid in workers()[:1]:
            os.kill(pid, signal.SIGKILL)

    watched = running.run_watched
    monkeypatch.setattr(running, "run_watched", lambda pipeline, watch: watched(pipeline, kill_a_worker))
    with pytest.raises(WorkerLostError):
        converted(collection, out, pipeline_options=flags, num_shards=12)
    assert not shard_files(out)
    monkeypatch.setattr(
        threading, "excepthook", lambda failure: None
    )  # the other worker ends here, not in the next test
    for pid in workers():
        os.kill(pid, signal.SIGKILL)
    for thread in threading.enumerate():
        if thread.name.startswith("run_worker"):
            thread.join(30)
