"""Beam's JVM code below the runners for Flink and Spark, with an engine of these tests below it (tests/cluster/jvm).

It does to a conversion what clusters do and local engines do not. It is not Flink and not Spark.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from beam_tfrecord import prepare
from beam_tfrecord.conversion.writing.progress import Progress
from beam_tfrecord.transforms.dataset import ConvertDataset
from beam_tfrecord.transforms.running import make_options, make_pipeline, run_watched, take_counters
from tests.cluster.fetched import fetched
from tests.conftest import ROOT
from tests.emulators import free_port
from tests.end_to_end.datasets import conversion
from tests.engines import (
    COLLECTIONS,
    Files,
    RunningEngine,
    as_processes,
    converted_on,
    differing,
    external,
    in_loopback,
    interrupted,
    jar_engine,
    job_with_a_killed_worker,
    published,
    slow_job,
    with_flags,
)
from tests.fetch_engines import JVM_JAR
from tests.samples import write_table
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.engines
RESUME_TOLD = ("conversion.json", "report.html")  # which tell whether --resume was given


@pytest.fixture(scope="module")
def engine() -> Iterator[RunningEngine]:
    with jar_engine("jvm", fetched(JVM_JAR)) as running:
        yield running


@pytest.mark.parametrize("kind", COLLECTIONS)
def test_workers_of_a_pool_publish_the_bytes_of_a_local_run(
    engine: RunningEngine, engine_folder: Path, direct: dict[str, Files], kind: str
) -> None:
    assert differing(converted_on(engine, engine_folder, kind), direct[kind]) == []


@pytest.mark.parametrize("kind", COLLECTIONS)
def test_workers_in_the_launching_process_do_the_same(
    engine: RunningEngine, engine_folder: Path, direct: dict[str, Files], kind: str
) -> None:
    assert differing(converted_on(in_loopback(engine), engine_folder, kind), direct[kind]) == []


def test_workers_that_the_engine_starts_do_the_same(
    engine: RunningEngine, engine_folder: Path, direct: dict[str, Files]
) -> None:
    processes = as_processes(engine, fetched("boot"))
    assert differing(converted_on(processes, engine_folder, "shapes"), direct["shapes"]) == []


@pytest.mark.parametrize("kind", COLLECTIONS)
def test_every_bundle_run_twice_at_once_makes_no_difference(
    engine: RunningEngine, engine_folder: Path, direct: dict[str, Files], kind: str
) -> None:
    """As engines do with a slow machine: the outputs of one of the two count, whichever that is."""
    twice = with_flags(in_loopback(engine), "--engine_copies=2")
    assert differing(converted_on(twice, engine_folder, kind), direct[kind]) == []


def test_two_jobs_at_once_on_one_pool_do_not_disturb_each_other(
    engine: RunningEngine, engine_folder: Path, direct: dict[str, Files]
) -> None:
    kinds = ("shapes", "coco")
    with ThreadPoolExecutor() as executor:
        found = list(executor.map(lambda kind: converted_on(engine, engine_folder, kind), kinds))
    assert [differing(files, direct[kind]) for files, kind in zip(found, kinds, strict=True)] == [[], []]


def test_metrics_without_a_committed_value_are_counted(engine: RunningEngine, tmp_path: Path) -> None:
    """Flink and Spark tell what was attempted, and nothing before the end."""
    source, options = COLLECTIONS["shapes"](tmp_path / "in")
    job = prepare(input=source, output=str(tmp_path / "out"), **options)
    pipeline = make_pipeline(make_options(in_loopback(engine).flags), job.config)
    _ = pipeline | "ConvertDataset" >> ConvertDataset(job)
    result = run_watched(pipeline)
    found = result.metrics().query()
    assert {metric.committed for metric in found["counters"]} == {None}
    progress, told = Progress(), conversion(tmp_path / "out")
    take_counters(result, progress)
    assert (progress.records, progress.rejects) == (told["written"], told["rejected"]["total"]) == (21, 4)
    (records,) = [m for m in found["distributions"] if m.key.metric.name == "shard_records"]
    assert (records.result.sum, records.result.count) == (21, 6 + 1)


# ---------------------------------------------------------------------------------------------------------------------
# What goes wrong


def test_a_killed_worker_ends_the_job_and_resume_finishes_it_elsewhere(engine: RunningEngine, tmp_path: Path) -> None:
    with job_with_a_killed_worker(engine, tmp_path) as job:
        assert job.returncode == 1
        assert job.said.splitlines()[-1].startswith("error: a worker process ended before its work was done")
        assert "PortableRunner did not replace it" in job.said
        assert "--resume" in job.said
        assert "Traceback" not in job.said
        assert [path.name for path in job.output.iterdir()] == [".staging"]
        job.resumed()
        found = published(job.output)
        ours = [name for name in differing(found, job.anew()) if name not in RESUME_TOLD]
    assert ours == []


def test_where_the_engine_tries_again_a_killed_worker_makes_no_difference(
    engine: RunningEngine, tmp_path: Path
) -> None:
    retrying = with_flags(engine, "--number_of_execution_retries=3")
    with job_with_a_killed_worker(retrying, tmp_path) as job:
        assert job.returncode == 0, job.said
        found = published(job.output)
        assert differing(found, job.anew()) == []


def test_a_pool_that_is_not_there_is_named(engine: RunningEngine, tmp_path: Path) -> None:
    pool = f"localhost:{free_port()}"
    flags = [*(flag for flag in engine.flags if "environment" not in flag), *external(pool)]
    with slow_job(tmp_path, *flags) as (job, process):
        job.slow.clear()
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    (line,) = said.splitlines()
    assert line.startswith(f"error: PortableRunner could not reach the worker pool at {pool} (")
    assert "--environment_config" in line


def test_a_mistake_that_a_worker_in_this_process_finds_is_told_in_one_line(
    engine: RunningEngine, tmp_path: Path
) -> None:
    table = write_table(tmp_path / "data.csv", [("image", "label"), ("gone.jpg", "a")])
    line = ["convert", "--input", str(table), "--output", str(tmp_path / "out"), *in_loopback(engine).flags]
    ended = subprocess.run(
        [sys.executable, "-m", "pipelines.main", *line],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    (told,) = ended.stderr.splitlines()
    assert told.startswith(f"error: 0 of 1 images exist in {tmp_path}")


# ---------------------------------------------------------------------------------------------------------------------
# Ctrl-C

OWN_SERVERS = {
    "flink": lambda: ("--runner=FlinkRunner", f"--flink_job_server_jar={fetched(JVM_JAR)}", "--flink_master=[local]"),
    "spark": lambda: ("--runner=SparkRunner", f"--spark_job_server_jar={fetched(JVM_JAR)}"),
    "prism": lambda: ("--runner=PrismRunner", f"--prism_location={fetched('prism')}"),
}


def own_lines(said: str) -> list[str]:
    """What stands on standard error but for the progress."""
    return [line for line in said.splitlines() if " rows, " not in line]


@pytest.mark.parametrize("runner", OWN_SERVERS)
def test_ctrl_c_ends_a_job_whose_engine_was_started_for_it(runner: str, tmp_path: Path) -> None:
    with slow_job(tmp_path, *OWN_SERVERS[runner]()) as running:
        job = interrupted(*running)
    assert job.returncode == 130, job.said
    (line,) = own_lines(job.said)
    assert line.startswith("stopped; the job has ended; ")
    assert "--resume" in line
    assert [path.name for path in job.output.iterdir()] == [".staging"]


def test_ctrl_c_ends_a_job_whose_workers_are_here(engine: RunningEngine, tmp_path: Path) -> None:
    with slow_job(tmp_path, *in_loopback(engine).flags) as running:
        job = interrupted(*running)
    assert job.returncode == 130, job.said
    (line,) = own_lines(job.said)
    assert line.startswith("stopped; the job has ended; ")


def test_ctrl_c_leaves_a_job_to_an_engine_that_goes_on(engine: RunningEngine, tmp_path: Path) -> None:
    with slow_job(tmp_path, *engine.flags) as running:
        job = interrupted(*running)
        assert job.returncode == 130, job.said
        (line,) = own_lines(job.said)
        assert line.startswith("no longer watching; the job goes on at localhost:")
        wait_until(lambda: job.published)
        found = published(job.output)
        assert differing(found, job.anew()) == []


def test_ctrl_c_says_where_a_cluster_goes_on_when_its_job_server_ends(engine: RunningEngine, tmp_path: Path) -> None:
    cluster = "http://localhost:1"
    flags = [flag for flag in engine.flags if "environment" in flag]
    server = f"--flink_job_server_jar={fetched(JVM_JAR)}"
    with slow_job(tmp_path, "--runner=FlinkRunner", server, f"--flink_master={cluster}", *flags) as running:
        job = interrupted(*running)
    assert job.returncode == 130, job.said
    (line,) = own_lines(job.said)
    assert line.startswith(f"no longer watching; the job goes on at {cluster}")
