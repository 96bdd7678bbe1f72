"""Engines that tests run conversions on: how each is started, the flags that lead there, and what is compared."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PIL import Image

from beam_tfrecord import convert
from benchmarks.near_duplicates import scene
from tests.conftest import ROOT
from tests.emulators import free_port, running
from tests.end_to_end.reading.kinds import KINDS
from tests.loopback import Answer, Request, Server, serving
from tests.samples import HTML_ERROR_PAGE, class_folders, jpeg, noise, png, truncated, write_files, write_table
from tests.waiting import PATIENCE, wait_until

Files = dict[str, bytes]


@dataclass(frozen=True)
class RunningEngine:
    """An engine that takes jobs. flags: Beam's, to be put behind those of the command.

    pool: process that starts the workers, 0 where there is none.
    """

    name: str
    flags: tuple[str, ...]
    pool: int = 0

    def workers(self) -> list[int]:
        """Process ids of the workers that live at this moment."""
        line = ["ps", "-o", "pid=,stat=", "--ppid", str(self.pool)]
        found = subprocess.run(line, capture_output=True, text=True, check=False).stdout.splitlines()
        return [int(pid) for pid, state in map(str.split, found) if not state.startswith("Z")]


def worker_environment() -> dict[str, str]:
    """For processes that start workers: the ``python`` that they call is this one, and this checkout is what it
    imports."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}


@contextmanager
def job_service() -> Iterator[str]:
    """Beam's own portable job service in a process of its own: HOST:PORT."""
    port = free_port()
    with running(["-m", "apache_beam.runners.portability.local_job_service_main", "-p", str(port)], port):
        yield f"localhost:{port}"


@contextmanager
def worker_pool() -> Iterator[tuple[str, int]]:
    """A pool that starts a worker process for each that an engine asks for: HOST:PORT, and the pool's process id."""
    port = free_port()
    module = "apache_beam.runners.worker.worker_pool_main"
    with running(["-m", module, f"--service_port={port}"], port, worker_environment()) as process:
        yield f"localhost:{port}", process.pid


@contextmanager
def portable_engine() -> Iterator[RunningEngine]:
    """Beam's portable job service with a worker pool."""
    with job_service() as jobs, worker_pool() as (workers, pid):
        yield RunningEngine("portable", (*_portable(jobs), *external(workers)), pid)


@contextmanager
def prism_engine(binary: Path) -> Iterator[RunningEngine]:
    """Prism, Beam's portable local runner, with a worker pool. binary: as Go built it."""
    port = free_port()
    command = [str(binary), "--job_port", str(port), "--serve_http=false", "--log_level=error"]
    with running(command, port, is_python=False), worker_pool() as (workers, pid):
        yield RunningEngine("prism", (*_portable(f"localhost:{port}"), *external(workers)), pid)


@contextmanager
def jar_engine(name: str, jar: Path, *arguments: str) -> Iterator[RunningEngine]:
    """The job server of Flink or Spark, with a cluster of its own process and a worker pool."""
    port = free_port()
    ports = [f"--job-port={port}", f"--artifact-port={free_port()}", f"--expansion-port={free_port()}"]
    with (
        tempfile.TemporaryDirectory() as folder,  # workers that it starts leave files where it works
        running(["java", "-jar", str(jar), *ports, *arguments], port, is_python=False, folder=Path(folder)),
        worker_pool() as (workers, pid),
    ):
        yield RunningEngine(name, (*_portable(f"localhost:{port}"), *external(workers)), pid)


def in_loopback(engine: RunningEngine) -> RunningEngine:
    """The same engine with workers that live in the process that submits the job."""
    flags = tuple(flag for flag in engine.flags if not flag.startswith("--environment_"))
    return RunningEngine(f"{engine.name}-loopback", (*flags, "--environment_type=LOOPBACK"))


def with_flags(engine: RunningEngine, *flags: str) -> RunningEngine:
    """The same engine with further flags."""
    return replace(engine, flags=(*engine.flags, *flags))


def as_processes(engine: RunningEngine, boot: Path) -> RunningEngine:
    """The same engine, which starts its workers itself. boot: Beam's program that becomes one."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    variables = {"PATH": path, "PYTHONPATH": str(ROOT), "RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT": "1"}
    command = json.dumps({"command": str(boot), "env": variables})
    flags = tuple(flag for flag in engine.flags if not flag.startswith("--environment_"))
    return RunningEngine(
        f"{engine.name}-process", (*flags, "--environment_type=PROCESS", f"--environment_config={command}")
    )


def _portable(jobs: str) -> tuple[str, ...]:
    return "--runner=PortableRunner", f"--job_endpoint={jobs}"


def external(workers: str) -> tuple[str, ...]:
    """Flags for workers that a pool starts."""
    return "--environment_type=EXTERNAL", f"--environment_config={workers}"


# ---------------------------------------------------------------------------------------------------------------------
# What is converted


def shapes(folder: Path) -> tuple[Any, dict[str, Any]]:
    """Class folders and a table with splits of its own; some rows are rejected, some records carry a warning."""
    files = class_folders(6)
    files["circle/cut.jpg"] = truncated(files["circle/circle_0.jpg"])
    files["square/page.jpg"] = HTML_ERROR_PAGE
    write_files(folder / "photos", files)
    rows = [("image", "label"), ("photos/circle/circle_1.jpg", "circle"), ("photos/circle/circle_1.jpg", "circle")]
    rows += [("photos/square/square_2.jpg", "square"), ("photos/gone.jpg", "square"), ("", "circle")]
    table = write_table(folder / "held out.csv", rows)
    options = {"splits": "train=0.7,test=0.3", "num_shards": "train=3,test=2,validation=1", "max_rejects": "50%"}
    return [str(folder / "photos"), f"validation={table}"], options


def gzipped(folder: Path) -> tuple[Any, dict[str, Any]]:
    """Compressed shards of pictures that much is to be told of: copies, leaks, contradictions, ruined ones."""
    places = [f"{'train' if seed < 6 else 'test'}/{'ab'[seed % 2]}/{seed}.jpg" for seed in range(8)]
    files = {place: jpeg(scene(seed, 80, 60)) for seed, place in enumerate(places)}
    files["train/a/again.jpg"] = jpeg(scene(0, 80, 60), 40)
    files["test/b/leak.png"] = png(scene(1, 160, 120))
    files["train/b/other.jpg"] = jpeg(scene(2, 80, 60), 50)
    files["train/b/same.jpg"] = files["train/a/4.jpg"]
    files["test/a/blank.jpg"] = jpeg(Image.new("RGB", (80, 60), "teal"))
    files["train/a/dark.jpg"] = jpeg(scene(9, 80, 60).point(lambda value: value // 8))
    write_files(folder, files)
    return folder, {"compression": "gzip", "num_shards": "train=3,test=2"}


COLLECTIONS: Mapping[str, Callable[[Path], tuple[Any, dict[str, Any]]]] = {
    "shapes": shapes,
    "gzip": gzipped,
    "coco": KINDS["objects"],
    "sequence": KINDS["sequence"],
}


def published(output: Path) -> Files:
    """All files below an output folder, hidden ones too."""
    return {
        str(path.relative_to(output)): path.read_bytes()
        for path in sorted(output.rglob("*"))
        if path.is_file() or not any(path.iterdir())
    }


def converted_on(engine: RunningEngine | None, folder: Path, kind: str, **options: Any) -> Files:
    """Convert a collection, made below a folder when it is not there, and take the output away again.

    engine: None for DirectRunner. The output has the same path each time, which the metadata tell.
    """
    place = folder / kind
    made, own = COLLECTIONS[kind](place / "in")
    output = place / "out"
    source = made if isinstance(made, list) else str(made)
    summary = convert(source, output, pipeline_options=engine.flags if engine else (), **{**own, **options})
    assert summary.status == "published"
    files = published(output)
    shutil.rmtree(output)
    return files


def differing(found: Files, expected: Files) -> list[str]:
    """Names of files that one has and the other has not, or that differ."""
    return sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))


# ---------------------------------------------------------------------------------------------------------------------
# A job that loses a worker

IMAGES = 40


@dataclass
class BrokenJob:
    """A conversion that was disturbed after some of its eight shards were finished.

    shards: how many. disturbed: until then the server gives no image beyond those. slow: set while it takes its time
    for each. returncode, said: of the command, and what stood on its standard error. options: of a conversion that
    goes on from there.
    """

    table: Path
    output: Path
    server: Server
    slow: threading.Event
    disturbed: threading.Event
    shards: int = 2
    returncode: int = 0
    said: str = ""

    @property
    def options(self) -> dict[str, Any]:
        return {"images": self.server.url, "num_shards": 8, "read_threads": 1}

    @property
    def staged(self) -> list[Path]:
        """What tells of the shards that are finished."""
        folder = self.output / ".staging" / "shards"
        with contextlib.suppress(FileNotFoundError):
            return [folder / name for name in sorted(os.listdir(folder)) if name.endswith(".info.json")]
        return []

    @property
    def is_held(self) -> bool:
        """Whether so many shards are finished; it goes no further before it is disturbed."""
        return len(self.staged) >= self.shards

    @property
    def published(self) -> bool:
        """Whether a job that goes on alone has come to its end, with nothing left of what it worked with."""
        names = {path.name for path in self.output.iterdir()}
        return "dataset_info.json" in names and not any(name.startswith(".") for name in names)

    @contextmanager
    def running(self, *flags: str) -> Iterator[subprocess.Popen[str]]:
        """The command at it."""
        line = ["convert", "--input", str(self.table), "--images", self.server.url, "--output", str(self.output)]
        line = [sys.executable, "-m", "pipelines.main", *line, "--num_shards", "8", "--read_threads", "1"]
        self.slow.set()
        self.disturbed.clear()
        with subprocess.Popen(
            [*line, *flags],
            cwd=ROOT,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            try:
                yield process
            finally:
                self.slow.clear()
                self.disturbed.set()
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)  # with the engine that it may have started

    def disturb(self, process: subprocess.Popen[str], sign: int) -> str:
        """Send a signal to all processes of the command when it is held; what it said until its end."""
        wait_until(lambda: self.is_held or process.poll() is not None)
        os.killpg(process.pid, sign)
        self.disturbed.set()
        _, said = process.communicate(timeout=PATIENCE)
        self.slow.clear()
        return said

    def resumed(self) -> None:
        convert(str(self.table), self.output, **self.options, resume=True)

    def anew(self, **options: Any) -> Files:
        """What a conversion of its own publishes in place of what is there."""
        shutil.rmtree(self.output)
        convert(str(self.table), self.output, **self.options, **options)
        return published(self.output)


@contextmanager
def broken_job(folder: Path) -> Iterator[BrokenJob]:
    """A conversion of images that come over HTTP, and no more of them once some shards are finished.

    Whoever disturbs it says so with ``disturbed``. They come slowly from then on, until ``slow`` is taken away.
    """
    photos = {f"{n:02}.jpg": jpeg(Image.fromarray(noise(24, 24, n))) for n in range(IMAGES)}
    rows = [("image", "label"), *((name, "ab"[n % 2]) for n, name in enumerate(sorted(photos)))]
    table = write_table(folder / "data.csv", rows)

    def answer(request: Request) -> Answer:
        if job.slow.is_set() and job.is_held:
            job.disturbed.wait(PATIENCE)
        wait = 0.0 if not job.slow.is_set() else 1.0 if job.disturbed.is_set() else 0.05
        return Answer(body=photos[request.path.rpartition("/")[2]], wait=wait)

    with serving(answer) as server:
        job = BrokenJob(table, folder / "out", server, threading.Event(), threading.Event())
        yield job


@contextmanager
def slow_job(folder: Path, *flags: str) -> Iterator[tuple[BrokenJob, subprocess.Popen[str]]]:
    """The command at such a conversion."""
    with broken_job(folder) as job, job.running(*flags) as process:
        yield job, process


@contextmanager
def job_with_a_killed_worker(engine: RunningEngine, folder: Path) -> Iterator[BrokenJob]:
    """Convert images that come over HTTP, and kill a worker at the third shard."""
    of_jobs_before = engine.workers()  # they may take their time to end
    with slow_job(folder, *engine.flags) as (job, process):
        wait_until(lambda: job.is_held or process.poll() is not None)
        os.kill(next(pid for pid in engine.workers() if pid not in of_jobs_before), signal.SIGKILL)
        job.slow.clear()
        job.disturbed.set()
        _, said = process.communicate(timeout=PATIENCE)
        job.server.seen.clear()
        yield replace(job, returncode=process.returncode, said=said)


def interrupted(job: BrokenJob, process: subprocess.Popen[str]) -> BrokenJob:
    """The job after Ctrl-C on a terminal, which all processes of the command get, at its third shard."""
    said = job.disturb(process, signal.SIGINT)
    return replace(job, returncode=process.returncode, said=said)
