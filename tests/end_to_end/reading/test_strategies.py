"""Distribution strategies give each record to one worker, once. The right answer is what was put in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from beam_tfrecord import load
from beam_tfrecord.reading.loader import sharding_policy
from beam_tfrecord.reading.options import LoadOptions
from tests.emulators import free_port
from tests.end_to_end.datasets import converted
from tests.samples import noise, png

tf = pytest.importorskip("tensorflow")
NAMES = [f"p{number:02d}.png" for number in range(12)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """The same twelve images in four files, and in one."""
    place = tmp_path_factory.mktemp("strategies")
    for number, name in enumerate(NAMES):
        (place / "in" / "ab"[number % 2]).mkdir(parents=True, exist_ok=True)
        (place / "in" / "ab"[number % 2] / name).write_bytes(png(Image.fromarray(noise(8, 6, seed=number))))
    for count in (1, 4):
        converted(place / "in", place / f"out{count}", num_shards=count)
    return {count: place / f"out{count}" for count in (1, 4)}


def base_names(values: Any) -> list[str]:
    return [name.decode().rpartition("/")[2] for name in values]


def rewritten(folder: Path, workers: int, **options: Any) -> list[list[str]]:
    """What each worker gets of the dataset that TensorFlow's rewriting makes for it."""
    from tensorflow.python.data.experimental.ops.distribute import _AutoShardDataset

    found = []
    for index in range(workers):
        own = {name: (index, workers) if value == "own" else value for name, value in options.items()}
        data = _AutoShardDataset(load(folder, batch_size=2, features=["image/filename"], **own), workers, index)
        found.append(base_names(name for batch in data for name in batch["image/filename"].numpy()))
    return found


@pytest.mark.parametrize("files", [1, 4])
@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"shuffle": True, "seed": 3}])
@pytest.mark.parametrize("workers", [2, 3])
def test_a_share_is_not_divided_again(
    folders: dict[int, Path], files: int, options: dict[str, Any], workers: int
) -> None:
    parts = rewritten(folders[files], workers, shard="own", **options)
    assert sorted(name for part in parts for name in part) == NAMES
    assert {len(part) for part in parts} == {12 // workers}


@pytest.mark.parametrize(
    ("files", "options"),
    [(4, {}), (4, {"shuffle": True}), (1, {}), (1, {"shuffle": True, "seed": 3}), (4, {"split": "train[1:]"})],
)
def test_without_a_share_the_strategy_gives_each_record_to_one_worker(
    folders: dict[int, Path], files: int, options: dict[str, Any]
) -> None:
    parts = rewritten(folders[files], 2, **options)
    got = sorted(name for part in parts for name in part)
    assert len(got) == len(set(got)) == (11 if "split" in options else 12)
    assert all(parts)


def test_workers_that_shuffle_one_file_differently_end_with_an_error(folders: dict[int, Path]) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="FILE based sharding"):
        rewritten(folders[1], 2, shuffle=True)
    assert sharding_policy(LoadOptions(shuffle=True, deterministic=True), 1) == "AUTO"


_WORKER = """
import json, os, sys
index, tasks = int(sys.argv[1]), json.loads(sys.argv[2])
import tensorflow as tf, beam_tfrecord
strategy = tf.distribute.MultiWorkerMirroredStrategy()
for folder, share in tasks:
    data = beam_tfrecord.load(folder, batch_size=2, features=["image/filename"], shard=share)
    names = []
    for batch in strategy.experimental_distribute_dataset(data):
        for part in strategy.experimental_local_results(batch["image/filename"]):
            names += [name.decode().rpartition("/")[2] for name in part.numpy().tolist()]
    print(json.dumps(names))
"""

_MIRRORED = """
import json, sys
import tensorflow as tf, beam_tfrecord
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
def load(context):
    share = (context.input_pipeline_id, context.num_input_pipelines)
    return beam_tfrecord.load(sys.argv[1], batch_size=2, features=["image/filename"], shard=share)
def names(data):
    batches = [strategy.experimental_local_results(batch["image/filename"]) for batch in data]
    return [n.decode().rpartition("/")[2] for parts in batches for part in parts for n in part.numpy().tolist()]
plain = beam_tfrecord.load(sys.argv[1], batch_size=4, features=["image/filename"])
print(json.dumps([names(strategy.experimental_distribute_dataset(plain)),
                  names(strategy.distribute_datasets_from_function(load))]))
"""


def start(script: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    quiet = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, **quiet, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def answers(process: subprocess.Popen[str]) -> list[Any]:
    """What it said, one value of JSON a line."""
    said, _ = process.communicate()
    assert process.returncode == 0
    return [json.loads(line) for line in said.splitlines()]


@pytest.mark.slow
def test_two_workers_of_a_real_strategy_read_each_record_once(folders: dict[int, Path]) -> None:
    """Four files and one, with shares of our own; one file that the strategy divides. One cluster reads all of them."""
    cases = [(4, True), (1, True), (1, False)]
    workers = [f"localhost:{free_port()}" for _ in range(2)]
    processes = [
        start(
            _WORKER,
            str(index),
            json.dumps([(str(folders[files]), [index, 2] if is_shared else [0, 1]) for files, is_shared in cases]),
            TF_CONFIG=json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}),
        )
        for index in range(2)
    ]
    found = [answers(process) for process in processes]
    assert [sorted(first + second) for first, second in zip(*found, strict=True)] == [NAMES] * len(cases)


@pytest.mark.slow
def test_two_replicas_of_one_machine_read_each_record_once(folders: dict[int, Path]) -> None:
    ((distributed, from_function),) = answers(start(_MIRRORED, str(folders[1])))
    assert sorted(distributed) == sorted(from_function) == NAMES
