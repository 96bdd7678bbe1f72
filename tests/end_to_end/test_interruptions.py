"""A run that is killed, stopped or short of a worker leaves nothing wrong, and --resume ends with the same bytes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from beam_tfrecord.transforms import running
from beam_tfrecord.transforms.failures import WorkerLostError
from tests.end_to_end.datasets import check_conservation, converted, shard_bytes, shard_files
from tests.engines import IMAGES, Files, broken_job, interrupted, slow_job
from tests.samples import noise, png, write_files, write_table


@pytest.mark.slow
def test_a_killed_run_is_finished_by_resume_with_the_same_bytes(tmp_path: Path) -> None:
    """Four kills of one conversion, each later than the last; nothing gets a final name, and no work is lost."""
    with broken_job(tmp_path) as job:
        for shards in range(1, 8, 2):
            job.shards = shards
            with job.running("--resume") as process:
                said = job.disturb(process, signal.SIGKILL)
            assert process.returncode == -signal.SIGKILL, said
            assert shard_files(job.output) == []
            assert len(job.staged) >= shards
        job.server.seen.clear()
        job.resumed()
        assert sum(request.method == "GET" for request in job.server.seen) < IMAGES // 2
        assert shard_bytes(job.output) == shards_of(job.anew())


@pytest.mark.slow
def test_a_killed_run_is_redone_without_resume(tmp_path: Path) -> None:
    with broken_job(tmp_path) as job:
        with job.running() as process:
            job.disturb(process, signal.SIGKILL)
        summary = converted(job.table, job.output, **job.options)
        check_conservation(summary, job.output)
        assert shard_bytes(job.output) == shards_of(job.anew())


def test_ctrl_c_stops_and_keeps_what_is_finished(tmp_path: Path) -> None:
    with slow_job(tmp_path) as running_job:
        job = interrupted(*running_job)
    assert job.returncode == 130
    assert "Traceback" not in job.said
    assert "--resume" in job.said
    assert len(job.staged) >= 2
    assert not shard_files(job.output)


def shards_of(files: Files) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if ".tfrecord" in name}


@pytest.mark.slow
def test_a_lost_worker_process_ends_the_job_loudly(tmp_path: Path, monkeypatch: Any) -> None:
    """The runner itself would wait for it for ever."""
    flags = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    names, out = [f"{number:03d}.png" for number in range(60)], tmp_path / "out"
    write_files(tmp_path, {name: png(Image.fromarray(noise(9, 9, number))) for number, name in enumerate(names)})
    table = write_table(tmp_path / "data.csv", [("image", "label"), *((name, "a") for name in names)])

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
        converted(table, out, pipeline_options=flags, num_shards=12)
    assert not shard_files(out)
    monkeypatch.setattr(
        threading, "excepthook", lambda failure: None
    )  # the other worker ends here, not in the next test
    for pid in workers():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for thread in threading.enumerate():
        if thread.name.startswith("run_worker"):
            thread.join(30)
