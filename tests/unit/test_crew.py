"""When helpers are asked: where they pay, and never where they could not do the work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.annotations.base import Schema, Vocabulary
from beam_tfrecord.conversion.job import MANY_ROWS, find_long_source, prepare_job
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan, SplitPlan
from beam_tfrecord.conversion.planning.survey import SizeSample, Survey
from beam_tfrecord.conversion.writing.crew import REMOTE_THREADS, helpers_for, is_even, threads_for
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage
from tests.samples import class_folders, write_files


def config(**options: Any) -> ConvertConfig:
    return ConvertConfig.from_options({"input": "in", "output": "out", **options})


def plan(rows: int = 5000, record_bytes: float = 15_000, shards: int = 16, place: str = "/photos/a.jpg") -> DatasetPlan:
    survey = Survey(rows=rows, sample=(SizeSample(0, place, None),))
    boundaries = tuple(range(1, shards))
    return DatasetPlan(
        survey,
        Schema(kinds=(), vocabulary=Vocabulary(()), keys={}, preset="imagenet"),
        {"train": SplitPlan("train", rows, boundaries)},
        record_bytes=record_bytes,
    )


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beam_tfrecord.conversion.writing.crew.available_cores", lambda: 4)


def test_many_small_images_on_this_machine_get_a_process_for_each_core() -> None:
    assert helpers_for(config(), plan()) == 3


@pytest.mark.parametrize(
    "other",
    [{"rows": 900}, {"record_bytes": 500_000.0}, {"place": "gs://bucket/a.jpg"}],
    ids=["few", "large", "remote"],
)
def test_elsewhere_one_process_does_it(other: dict[str, Any]) -> None:
    assert helpers_for(config(), plan(**other)) == 0


def test_what_the_user_says_counts() -> None:
    assert helpers_for(config(processes=1), plan()) == 0
    assert helpers_for(config(processes=2), plan(rows=10, record_bytes=10**6)) == 1
    assert helpers_for(config(processes=50), plan(shards=5)) == 31


@pytest.mark.parametrize(
    ("shards", "processes", "even"),
    [
        ((1,), 2, False),
        ((2,), 2, True),
        ((3,), 2, False),  # two of three in one process: a third more than half of all
        ((7,), 2, True),
        ((16,), 3, True),  # six of sixteen in one process
        ((10,), 3, False),
        ((1, 1), 2, True),
        ((24,), 3, True),
    ],
)
def test_whole_shards_are_written_where_that_keeps_all_processes_busy(
    shards: tuple[int, ...], processes: int, even: bool
) -> None:
    splits = {str(number): SplitPlan(str(number), 1000, tuple(range(1, count))) for number, count in enumerate(shards)}
    assert is_even(replace(plan(), splits=splits), processes) == even


def test_a_large_split_beside_small_ones_is_not_left_to_one_process() -> None:
    splits = {"train": SplitPlan("train", 8000), "test": SplitPlan("test", 1000), "more": SplitPlan("more", 1000)}
    assert not is_even(replace(plan(), splits=splits), 2)


def test_reads_that_wait_are_done_many_at_a_time() -> None:
    assert threads_for(config(), plan(place="https://example.org/a.jpg")) == REMOTE_THREADS >= 32
    assert threads_for(config(read_threads=3), plan(place="https://example.org/a.jpg")) == 3


def test_a_job_looks_long_by_the_size_of_its_manifest_or_the_files_in_its_folder(tmp_path: Path) -> None:
    write_files(tmp_path / "photos", class_folders(2))
    (tmp_path / "short.csv").write_text("image,label\n" + "a.jpg,a\n" * 10)
    (tmp_path / "long.csv").write_text("image,label\n" + "a/rather/long/name/of/a/photo.jpg,label of it\n" * MANY_ROWS)

    def is_long(name: str) -> bool:
        return find_long_source(prepare_job(config(input=str(tmp_path / name)), Storage()), Storage()) == 0

    assert [is_long(name) for name in ("photos", "short.csv", "long.csv")] == [False, False, True]
    job = prepare_job(config(input=str(tmp_path / "photos")), Storage())
    [source] = job.sources
    assert source.details["images"] == len(class_folders(2))
    many = replace(source, details={**source.details, "images": MANY_ROWS})
    assert find_long_source(replace(job, sources=(many,)), Storage()) == 0
    assert find_long_source(replace(job, sources=(job.sources[0], many)), Storage()) == 1
    assert find_long_source(replace(job, sources=(replace(many, uri="gs://bucket/photos"),)), Storage()) is None
