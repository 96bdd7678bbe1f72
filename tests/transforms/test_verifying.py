"""Verifying as a pipeline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from apache_beam.testing.util import assert_that

from beam_tfrecord.datasets.shard_files import find_files
from beam_tfrecord.errors import ConfigError
from beam_tfrecord.storage import Storage
from beam_tfrecord.tools.verifying.dataset import verdict_from_json
from beam_tfrecord.transforms.running import make_options, make_pipeline, run_watched
from beam_tfrecord.transforms.verifying import VerifyDataset, VerifyOptions
from tests.handmade import small_dataset
from tests.verifying_tools import verdict_of


def test_the_pipeline_comes_to_the_verdict_of_its_parts(tmp_path: Path) -> None:
    dataset = small_dataset(tmp_path / "dataset")
    path = dataset.folder / dataset.shards[1]
    data = bytearray(path.read_bytes())
    data[dataset.places[path.name][1][0] + 20] ^= 1
    path.write_bytes(data)
    expected = verdict_of(dataset.folder)
    assert [fault.code for fault in expected.faults] == ["damaged_record", "wrong_count"]

    results = str(tmp_path / "results" / "verdict.json")
    found = find_files([str(dataset.folder)], Storage())
    pipeline = make_pipeline(make_options([]))
    verdicts = pipeline | VerifyDataset(found, VerifyOptions("pillow", threads=2, results=results))

    def is_expected(actual: list[object]) -> None:
        assert actual == [expected]

    assert_that(verdicts, is_expected)
    run_watched(pipeline)
    assert verdict_from_json(Path(results).read_bytes()) == expected
    assert json.loads(Path(results).read_text())["records"] == 8


def test_a_decoder_that_is_not_installed_ends_the_job_with_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = small_dataset(tmp_path)
    monkeypatch.setattr("beam_tfrecord.tools.verifying.decoders.has_tensorflow", lambda: False)
    pipeline = make_pipeline(make_options([]))
    _ = pipeline | VerifyDataset(find_files([str(dataset.folder)], Storage()), VerifyOptions("tensorflow"))
    with pytest.raises(ConfigError, match="--decoder pillow"):
        run_watched(pipeline)
