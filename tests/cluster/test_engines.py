"""Conversions on engines that ``make test-engines`` fetches: the same bytes as on DirectRunner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.cluster.fetched import fetched
from tests.engines import (
    COLLECTIONS,
    Files,
    RunningEngine,
    converted_on,
    differing,
    in_loopback,
    jar_engine,
    job_with_a_killed_worker,
    prism_engine,
    published,
)

STARTED: dict[str, Callable[[], AbstractContextManager[RunningEngine]]] = {
    "prism": lambda: prism_engine(fetched("prism")),
    "flink": lambda: jar_engine("flink", fetched("flink-job-server.jar"), "--flink-master=[local]"),
    "spark": lambda: jar_engine("spark", fetched("spark-job-server.jar")),
}
pytestmark = pytest.mark.engines


@pytest.fixture(scope="module", params=sorted(STARTED))
def engine(request: pytest.FixtureRequest) -> Iterator[RunningEngine]:
    with STARTED[request.param]() as running:
        yield running


@pytest.mark.parametrize("kind", COLLECTIONS)
def test_every_file_has_the_bytes_of_a_local_run(
    engine: RunningEngine, engine_folder: Path, direct: dict[str, Files], kind: str
) -> None:
    assert {"dataset_info.json", "conversion.json", "rejects.jsonl", "report.html"} <= set(direct[kind])
    assert differing(converted_on(engine, engine_folder, kind), direct[kind]) == []


def test_workers_in_the_launching_process_do_the_same(
    engine: RunningEngine, engine_folder: Path, direct: dict[str, Files]
) -> None:
    assert differing(converted_on(in_loopback(engine), engine_folder, "shapes"), direct["shapes"]) == []


def test_a_killed_worker_ends_the_job_loudly_or_not_at_all(engine: RunningEngine, tmp_path: Path) -> None:
    """A run that ended is finished by DirectRunner with --resume, to the bytes of a run of its own."""
    with job_with_a_killed_worker(engine, tmp_path) as job:
        if job.returncode:
            assert "error: " in job.said
            assert [path.name for path in job.output.iterdir()] == [".staging"]
            job.resumed()
        found = published(job.output)
        ours = {name for name in differing(found, job.anew()) if name not in ("conversion.json", "report.html")}
    assert ours == set(), "these two tell whether --resume was given"
