"""The same files, however many processes of this machine write them; and all of them end when the job does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from beam_tfrecord import convert
from beam_tfrecord.conversion.writing import processes
from beam_tfrecord.conversion.writing.processes import HelperProcesses, ShardTask
from beam_tfrecord.conversion.writing.progress import PROGRESS
from beam_tfrecord.errors import ConfigError, ManifestError
from tests.conftest import ROOT
from tests.end_to_end.datasets import converted, shard_bytes
from tests.engines import COLLECTIONS, BrokenJob, Files, converted_on, differing, interrupted, slow_job
from tests.samples import write_files, write_table
from tests.waiting import wait_until


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[ShardTask]:
    """Fills with the shards that helpers are given."""
    noted: list[ShardTask] = []
    give = HelperProcesses.give

    def note(helpers: HelperProcesses, task: ShardTask) -> None:
        noted.append(task)
        give(helpers, task)

    monkeypatch.setattr(HelperProcesses, "give", note)
    return noted


def without_option(files: Files) -> Files:
    """The files, but for where they tell the number of processes."""
    told = json.loads(files["conversion.json"])
    del told["options"]["processes"]
    return {**files, "conversion.json": json.dumps(told).encode(), "report.html": b""}


def helpers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The helper processes of a command; what keeps count of semaphores for Python is none."""
    return [child for child in psutil.Process(process.pid).children() if "spawn_main" in " ".join(child.cmdline())]


def wait_for_helpers(job: BrokenJob, process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The helpers, when some shards are finished and the others are being written."""
    wait_until(lambda: job.is_held or process.poll() is not None)
    helpers = helpers_of(process)
    assert len(helpers) == 2
    return helpers


@pytest.mark.parametrize(
    "kind", [kind if kind == "shapes" else pytest.param(kind, marks=pytest.mark.slow) for kind in COLLECTIONS]
)
def test_helpers_make_the_files_that_one_process_makes(tmp_path: Path, given: list[ShardTask], kind: str) -> None:
    shards = {} if kind == "shapes" else {"num_shards": 4}
    alone = converted_on(None, tmp_path, kind, processes=1, **shards)
    assert not given
    together = converted_on(None, tmp_path, kind, processes=3, **shards)
    assert given
    assert differing(without_option(together), without_option(alone)) == []


def test_every_row_is_told_to_the_progress_whoever_writes_it(tmp_path: Path, given: list[ShardTask]) -> None:
    source, options = COLLECTIONS["shapes"](tmp_path / "in")
    PROGRESS.reset()
    converted(source, tmp_path / "out", processes=2, **options)
    assert given
    assert (PROGRESS.records, PROGRESS.rejects) == (21, 4)


def test_a_mistake_that_a_helper_finds_is_told_as_one(tmp_path: Path, given: list[ShardTask]) -> None:
    rows = [("image", "label"), *[(f"{number % 20}.jpg", "a") for number in range(40)]]
    write_files(tmp_path, {f"{number}.jpg": b"" for number in range(20)})
    table = write_table(tmp_path / "rows.csv", rows)
    with pytest.raises(ManifestError, match=r"the id '\d+\.jpg' is used by .*rows\.csv:\d+ and by .*rows\.csv:\d+"):
        convert(table, tmp_path / "out", duplicates="fail", num_shards=2, processes=2)
    assert given


def test_ctrl_c_ends_the_helpers_too_and_keeps_what_is_finished(tmp_path: Path) -> None:
    with slow_job(tmp_path, "--processes", "3") as (job, process):
        helpers = wait_for_helpers(job, process)
        job = interrupted(job, process)
        assert (job.returncode, "Traceback" in job.said) == (130, False), job.said
        assert "--resume" in job.said
        psutil.wait_procs(helpers, timeout=60)
        assert not any(helper.is_running() for helper in helpers)
        job.resumed()
        shards = shard_bytes(job.output)
        job.anew()
        assert shard_bytes(job.output) == shards


@pytest.mark.slow
def test_a_killed_helper_ends_the_job_with_the_reason(tmp_path: Path) -> None:
    with slow_job(tmp_path, "--processes", "3") as (job, process):
        killed, other = wait_for_helpers(job, process)
        killed.kill()
        job.disturbed.set()
        _, said = process.communicate(timeout=300)
        assert (process.returncode, "Traceback" in said) == (1, False), said
        assert "a helper process ended before its work was done (killed, or out of memory)" in said
        assert "--resume" in said
        other.wait(timeout=60)


@pytest.mark.slow
def test_helpers_of_a_killed_process_end(tmp_path: Path) -> None:
    with slow_job(tmp_path, "--processes", "3") as (job, process):
        helpers = wait_for_helpers(job, process)
        process.kill()
        gone, alive = psutil.wait_procs(helpers, timeout=120)
        assert (len(gone), alive) == (2, [])


@pytest.mark.slow
def test_a_script_that_is_run_anew_by_its_helpers_is_told_how_to_mend_it(tmp_path: Path) -> None:
    source, _ = COLLECTIONS["shapes"](tmp_path / "in")
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(f"""\
            from beam_tfrecord import convert
            convert({source!r}, {str(tmp_path / "out")!r}, num_shards=2, processes=2)
            """)
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False, env=environment
    )
    assert done.returncode == 1
    assert "if __name__ == '__main__':" in done.stderr


@pytest.mark.parametrize(
    ("options", "flags", "told"),
    [
        ({"writer": "beam"}, [], "planned"),
        ({}, ["--direct_running_mode=multi_processing"], "Beam starts the workers"),
        ({}, ["--direct_num_workers=2"], "Beam starts the workers"),
        ({}, ["--runner=PortableRunner", "--job_endpoint=localhost:1"], "Beam starts the workers"),
    ],
)
def test_processes_are_refused_where_they_would_not_be_used(
    tmp_path: Path, options: dict[str, str], flags: list[str], told: str
) -> None:
    source, _ = COLLECTIONS["shapes"](tmp_path / "in")
    with pytest.raises(ConfigError, match=f"--processes 2.*{told}"):
        convert(source, tmp_path / "out", processes=2, pipeline_options=flags, **options)


def test_helpers_are_not_started_for_a_run_that_was_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, options = COLLECTIONS["shapes"](tmp_path / "in")
    monkeypatch.setattr(processes, "_ended", _Everything())
    with pytest.raises(processes.JobError, match="the job was stopped"):
        converted(source, tmp_path / "out", processes=2, **options)


class _Everything(set[str]):
    def __contains__(self, name: object) -> bool:
        return True
