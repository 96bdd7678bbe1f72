"""Conversions on Beam's portable job service with workers in processes of their own: the same bytes, or a loud end."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord import prepare
from beam_tfrecord.transforms.dataset import ConvertDataset
from beam_tfrecord.transforms.running import make_options, make_pipeline, run_watched
from tests.end_to_end.datasets import conversion
from tests.engines import (
    COLLECTIONS,
    IMAGES,
    Files,
    RunningEngine,
    converted_on,
    differing,
    in_loopback,
    job_with_a_killed_worker,
    portable_engine,
    published,
)
from tests.samples import write_table


@pytest.fixture(scope="module")
def engine() -> Iterator[RunningEngine]:
    with portable_engine() as running:
        yield running


# What the command line publishes below is another one.
@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in COLLECTIONS if kind != "shapes"])
def test_workers_of_a_pool_publish_the_same_bytes(
    engine: RunningEngine, engine_folder: Path, direct: dict[str, Files], kind: str
) -> None:
    assert {"dataset_info.json", "conversion.json", "rejects.jsonl", "report.html"} <= set(direct[kind])
    assert differing(converted_on(engine, engine_folder, kind), direct[kind]) == []


def test_the_collections_have_what_makes_a_comparison_worth_it(direct: dict[str, Files]) -> None:
    shards = [name for name in direct["shapes"] if ".tfrecord" in name]
    assert len(shards) == 6
    assert sorted(direct["shapes"]["rejects.jsonl"].count(code) for code in (b"missing_file", b"bad_row")) == [1, 1]
    assert direct["shapes"]["rejects.jsonl"].count(b"\n") == 4
    assert b"duplicate_id" in direct["shapes"]["warnings.jsonl"]
    assert any(name.endswith(".tfrecord.gz") for name in direct["gzip"])


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["pool", "loopback"])
def test_the_command_line_publishes_the_same_bytes(
    engine: RunningEngine, engine_folder: Path, direct: dict[str, Files], run_cli: Any, workers: str
) -> None:
    place = engine_folder / "shapes"
    (photos, table), options = COLLECTIONS["shapes"](place / "in")
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    chosen = engine if workers == "pool" else in_loopback(engine)
    ended = run_cli("convert", "--input", photos, "--input", table, "--output", place / "out", *flags, *chosen.flags)
    assert ended.returncode == 0, ended.stderr
    assert "25 rows, 21 written, 4 rejected, 6 shards" in ended.stdout
    found = published(place / "out")
    shutil.rmtree(place / "out")
    assert differing(found, direct["shapes"]) == []


@pytest.mark.slow
def test_a_mistake_that_a_worker_finds_is_told_in_one_line(engine: RunningEngine, tmp_path: Path, run_cli: Any) -> None:
    table = write_table(tmp_path / "data.csv", [("image", "label"), ("gone.jpg", "a")])
    ended = run_cli("convert", "--input", table, "--output", tmp_path / "out", *engine.flags)
    assert (ended.returncode, ended.stdout) == (1, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"error: 0 of 1 images exist in {tmp_path}")


# ---------------------------------------------------------------------------------------------------------------------
# A worker that is killed


@pytest.mark.slow
def test_a_killed_worker_ends_the_job_loudly_and_resume_finishes_it_elsewhere(
    engine: RunningEngine, tmp_path: Path
) -> None:
    with job_with_a_killed_worker(engine, tmp_path) as job:
        assert job.returncode == 1
        assert job.said.startswith("error: a worker process ended before its work was done")
        assert "--resume" in job.said
        assert job.said.count("\n") == 1
        assert [path.name for path in job.output.iterdir()] == [".staging"]
        finished = [json.loads(path.read_bytes())["num_records"] for path in job.staged]
        job.resumed()
        read = sum(request.method == "GET" for request in job.server.seen)
        assert IMAGES - sum(finished) <= read < IMAGES, "what was finished is not read again"
        resumed = published(job.output)
        assert differing(resumed, job.anew(resume=True)) == []


# ---------------------------------------------------------------------------------------------------------------------
# Counters


def metrics(source: Any, output: Path, flags: tuple[str, ...], **options: Any) -> tuple[dict[str, int], dict[str, Any]]:
    """Counters added up over steps, and distributions by name."""
    job = prepare(input=source, output=str(output), **options)
    pipeline = make_pipeline(make_options(flags), job.config)
    _ = pipeline | "ConvertDataset" >> ConvertDataset(job)
    found = run_watched(pipeline).metrics().query()
    counters: dict[str, int] = defaultdict(int)
    for metric in found["counters"]:
        if metric.key.metric.namespace == "beam_tfrecord":
            counters[metric.key.metric.name] += metric.committed
    distributions = {metric.key.metric.name: metric.committed for metric in found["distributions"]}
    return dict(counters), distributions


@pytest.mark.parametrize("where", ["direct", pytest.param("portable", marks=pytest.mark.slow)])
def test_counters_are_those_of_the_published_dataset(
    request: pytest.FixtureRequest, tmp_path: Path, where: str
) -> None:
    source, options = COLLECTIONS["shapes"](tmp_path / "in")
    flags = request.getfixturevalue("engine").flags if where == "portable" else ()
    counters, distributions = metrics(source, tmp_path / "out", flags, **options)
    told = conversion(tmp_path / "out")
    shards = [shard for split in told["splits"].values() for shard in split["shards"]]
    sizes = [path.stat().st_size for path in (tmp_path / "out").glob("*.tfrecord")]
    photos = tmp_path / "in" / "photos"
    good = [path.stat().st_size for path in photos.rglob("*_*.jpg")]
    twice, once = photos / "circle/circle_1.jpg", photos / "square/square_2.jpg"
    assert counters == {
        "rows": 20 + 5,
        "records_written": 18 + 3,
        "rejected": 4,
        "rejected_truncated_image": 1,
        "rejected_not_an_image": 1,
        "rejected_missing_file": 1,
        "rejected_bad_row": 1,
        "shards_written": len(shards),
        "bytes_written": sum(sizes),
        "bytes_read": sum(good) + 2 * twice.stat().st_size + once.stat().st_size,
    }
    seen = distributions["shard_bytes"]
    assert seen.count in (6, 7)  # the rows that never came to an image are written apart, as rejects only
    sizes += [0] * (seen.count - 6)
    assert (seen.sum, seen.min, seen.max) == (sum(sizes), min(sizes), max(sizes))
    held = [shard["records"] for shard in shards]
    assert (distributions["shard_records"].sum, distributions["shard_records"].max) == (sum(held), max(held))
    for name in ("read_ms", "decode_ms", "encode_ms", "write_ms"):
        spent = distributions[name]
        assert spent.count == seen.count
        assert 0 <= spent.min <= spent.max <= spent.sum < 60_000
