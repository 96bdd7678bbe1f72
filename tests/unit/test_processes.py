"""How many processes write a job of this machine."""

from __future__ import annotations

from typing import Any

import pytest

from beam_tfrecord.annotations.base import Schema, Vocabulary
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan, SplitPlan
from beam_tfrecord.conversion.planning.survey import SizeSample, Survey
from beam_tfrecord.conversion.writing.processes import MANY_ROWS, MOST_PROCESSES, processes_for
from beam_tfrecord.core.elements import Member
from beam_tfrecord.errors import ConfigError
from beam_tfrecord.options.config import ConvertConfig

IMAGE = SizeSample(0, "/photos/a.jpg", None)


@pytest.fixture(autouse=True)
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beam_tfrecord.conversion.writing.processes.available_cores", lambda: 4)


def config(**options: Any) -> ConvertConfig:
    return ConvertConfig.from_options({"input": "in", "output": "out", **options})


def plan(
    image: SizeSample = IMAGE,
    rows: int = MANY_ROWS,
    record_bytes: float = 10_000,
    shards: int = 50,
    images: bool = True,
) -> DatasetPlan:
    schema = Schema(kinds=(), vocabulary=Vocabulary(()), keys={}, preset="imagenet", has_images=images)
    splits = {"train": SplitPlan("train", rows, tuple(range(1, shards)))}
    return DatasetPlan(Survey(rows=rows, sample=(image,)), schema, splits, record_bytes=record_bytes)


def test_there_is_one_for_each_core_where_local_images_are_small_and_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert processes_for(config(), plan()) == 4
    assert processes_for(config(), plan(shards=3)) == 3
    monkeypatch.setattr("beam_tfrecord.conversion.writing.processes.available_cores", lambda: 500)
    assert processes_for(config(), plan()) == MOST_PROCESSES


@pytest.mark.parametrize(
    "other",
    [
        plan(rows=MANY_ROWS - 1),
        plan(record_bytes=100_000),
        plan(SizeSample(0, "gs://bucket/a.jpg", None)),
        plan(SizeSample(0, "/photos/all.tar.gz", Member(0, 10))),
        plan(images=False),
    ],
    ids=["few", "large", "of a store", "of an archive", "a table"],
)
def test_elsewhere_there_is_one(other: DatasetPlan) -> None:
    assert processes_for(config(), other) == 1
    assert processes_for(config(processes=3), other) == 3


def test_an_output_in_a_store_is_written_by_one() -> None:
    assert processes_for(config(output="gs://bucket/out"), plan()) == 1


def test_helpers_cannot_be_had_where_only_this_process_knows_how_to_read() -> None:
    with pytest.raises(ConfigError, match=r"--processes 2: hdfs:// .* leave the option out"):
        processes_for(config(processes=2), plan(SizeSample(0, "hdfs://host/a.jpg", None)))
    assert processes_for(config(), plan(SizeSample(0, "hdfs://host/a.jpg", None))) == 1
