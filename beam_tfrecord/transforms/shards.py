"""The step that reads images and writes shards."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import apache_beam as beam
from apache_beam.transforms.display import DisplayDataItem

from beam_tfrecord.config import ConvertConfig
from beam_tfrecord.elements import ShardInfo
from beam_tfrecord.images.memory import keep_large_buffers
from beam_tfrecord.planning.blocks import unpack_block
from beam_tfrecord.planning.dataset_plan import DatasetPlan
from beam_tfrecord.storage import Storage, public_uri
from beam_tfrecord.transforms.counters import EngineProgress, RetryCounts, count_shard
from beam_tfrecord.transforms.planning import ShardKey
from beam_tfrecord.writing.progress import PROGRESS
from beam_tfrecord.writing.shards import ShardWriter, has_latency

REMOTE_THREADS = 32  # reads that wait for an object store at a time


def default_threads(config: ConvertConfig, plan: DatasetPlan) -> int:
    """Threads that read ahead: as many as cores where disks answer at once, many where each read waits."""
    if config.run.read_threads is not None:
        return config.run.read_threads
    if has_latency(plan):
        return REMOTE_THREADS
    return max(2, os.cpu_count() or 1)


class _WriteShards(beam.DoFn):
    def __init__(self, config: ConvertConfig, storage: Storage) -> None:
        self._config = config
        self._storage = storage
        self._pool: ThreadPoolExecutor | None = None
        self._threads = 0
        self._retries = RetryCounts(storage)

    def setup(self) -> None:
        keep_large_buffers()

    def teardown(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _opened(self, plan: DatasetPlan) -> ThreadPoolExecutor:
        """The pool, made for the first shard: how many threads it needs depends on where the images are."""
        if self._pool is None:
            self._threads = default_threads(self._config, plan)
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="read-ahead")
            PROGRESS.total = plan.survey.rows
        return self._pool

    def process(self, element: tuple[ShardKey, Iterable[bytes]], plan: DatasetPlan) -> Iterable[ShardInfo]:
        (split, index), blocks = element
        progress = EngineProgress()
        writer = ShardWriter(self._config, plan, self._storage, self._opened(plan), self._threads, progress)
        info = writer.write(split, index, (item for block in blocks for item in unpack_block(block)))
        count_shard(info, writer.times)
        self._retries.tell()
        yield info


class WriteShards(beam.PTransform):
    """Staged shards: PCollection[((split, shard), block)] -> PCollection[ShardInfo].

    Groups the blocks by shard: the only shuffle of entries, and no pixels in it. Images are read here.
    """

    def __init__(
        self, config: ConvertConfig, plan: beam.PCollection[DatasetPlan], storage: Storage | None = None
    ) -> None:
        super().__init__()
        self._config = config
        self._plan = plan
        self._storage = storage or Storage()

    def expand(self, placed: beam.PCollection[tuple[ShardKey, bytes]]) -> beam.PCollection[ShardInfo]:
        return (
            placed
            | "GroupByShard" >> beam.GroupByKey()
            | "WriteShard"
            >> beam.ParDo(
                _WriteShards(self._config, self._storage), plan=beam.pvalue.AsSingleton(self._plan)
            ).with_output_types(ShardInfo)
        )

    def display_data(self) -> dict[str, Any]:
        shards = self._config.shards
        return {
            "output": DisplayDataItem(public_uri(self._config.output.output), label="Output"),
            "compression": DisplayDataItem(shards.compression, label="Compression"),
            "shard_size": DisplayDataItem(shards.shard_size, label="Bytes aimed at in a shard"),
            "validate": DisplayDataItem(self._config.images.validate, label="Decoded before storing"),
            "read_threads": DisplayDataItem(self._config.run.read_threads or 0, label="Read threads (0: automatic)"),
        }
