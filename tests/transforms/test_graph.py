"""What a person sees of the job in an engine's own pages: names of steps, and what is shown of their options."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.transforms.display import DisplayData

from beam_tfrecord import ConvertDataset, prepare
from beam_tfrecord.datasets.shard_files import find_files
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage
from beam_tfrecord.transforms.shards import WriteShards
from beam_tfrecord.transforms.verifying import VerifyDataset
from tests.handmade import small_dataset

STEP = re.compile(r"(?:[A-Z][A-Za-z]*[a-z](?:\[\w+\])?/?)+")


def steps(transform: Any) -> list[str]:
    """Full names of the steps of ours: not of those that Beam puts inside its own."""
    pipeline = beam.Pipeline()
    _ = pipeline | transform
    names: list[str] = []

    def walk(node: Any) -> None:
        for part in node.parts:
            names.append(part.full_label)
            if type(part.transform).__module__.startswith("beam_tfrecord."):
                walk(part)

    walk(pipeline.transforms_stack[0])
    return names


@pytest.mark.parametrize("writer", ["planned", "beam"])
def test_steps_of_a_conversion_have_names_that_read_well(photos: Path, tmp_path: Path, writer: str) -> None:
    job = prepare(input=str(photos), output=str(tmp_path / "out"), writer=writer, splits="train=0.8,test=0.2")
    names = steps("ConvertDataset" >> ConvertDataset(job))
    assert [name for name in names if not STEP.fullmatch(name)] == []
    assert len(names) == len(set(names)) > 10
    last_parts = [name.rpartition("/")[2] for name in names]
    assert {"ReadBlocks", "CutByShard", "GroupByShard", "Publish"} <= set(last_parts)
    assert all(outer != inner for outer, inner in (name.split("/")[-2:] for name in names if "/" in name))


def test_steps_of_a_verification_have_names_that_read_well(tmp_path: Path) -> None:
    names = steps("VerifyDataset" >> VerifyDataset(find_files([str(small_dataset(tmp_path).folder)], Storage())))
    assert [name for name in names if not STEP.fullmatch(name)] == []
    assert "VerifyDataset/VerifyShard" in names


def shown(transform: Any) -> dict[str, Any]:
    return {item.key: item.value for item in DisplayData.create_from(transform).items}


def test_the_job_shows_its_places_and_choices(photos: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    job = prepare(input=str(photos), output=out, compression="gzip", image_format="png")
    assert shown(ConvertDataset(job)).items() >= {
        ("inputs", str(photos)),
        ("formats", "folder"),
        ("output", out),
        ("writer", "planned"),
        ("keys", "auto"),
        ("image_format", "png"),
        ("compression", "gzip"),
    }


def test_signatures_of_urls_are_not_shown(photos: Path, tmp_path: Path) -> None:
    place = "http://localhost:1/set.csv?X-Signature=5ec2e7"
    options = {"input": str(photos), "output": "hdfs://me:5ec2e7@localhost/out"}
    config = ConvertConfig.from_options(options)
    job = prepare(input=str(photos), output=str(tmp_path / "out"))
    hidden = replace(job, config=config, sources=(replace(job.sources[0], uri=place),))
    for transform in (ConvertDataset(hidden), WriteShards(config, None, None)):
        assert "5ec2e7" not in str(shown(transform))


def test_writing_shows_what_decides_its_cost() -> None:
    options = {"input": "in", "output": "out", "shard_size": "1MiB", "read_threads": 7, "validate": "header"}
    assert shown(WriteShards(ConvertConfig.from_options(options), None, None)) == {
        "output": "out",
        "compression": "none",
        "shard_size": 1024 * 1024,
        "validate": "header",
        "read_threads": 7,
    }
