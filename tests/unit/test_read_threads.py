"""How many threads read ahead."""

from __future__ import annotations

from typing import Any

import pytest

from beam_tfrecord.annotations.base import Schema, Vocabulary
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan
from beam_tfrecord.conversion.planning.survey import SizeSample, Survey
from beam_tfrecord.conversion.writing.shards import REMOTE_THREADS, threads_for
from beam_tfrecord.options.config import ConvertConfig


def config(**options: Any) -> ConvertConfig:
    return ConvertConfig.from_options({"input": "in", "output": "out", **options})


def plan(place: str) -> DatasetPlan:
    survey = Survey(rows=5000, sample=(SizeSample(0, place, None),))
    schema = Schema(kinds=(), vocabulary=Vocabulary(()), keys={}, preset="imagenet")
    return DatasetPlan(survey, schema, {})


def test_there_are_as_many_as_cores_where_disks_answer_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beam_tfrecord.conversion.writing.shards.available_cores", lambda: 4)
    assert threads_for(config(), plan("/photos/a.jpg")) == 4
    assert threads_for(config(read_threads=1), plan("/photos/a.jpg")) == 1


@pytest.mark.parametrize("place", ["https://example.org/a.jpg", "gs://bucket/a.jpg"])
def test_reads_that_wait_are_done_many_at_a_time(place: str) -> None:
    assert threads_for(config(), plan(place)) == REMOTE_THREADS >= 32
    assert threads_for(config(read_threads=3), plan(place)) == 3
