"""The step that reads images and writes shards."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import apache_beam as beam
from apache_beam.metrics import Metrics

from beam_tfrecord.config import ConvertConfig
from beam_tfrecord.elements import ShardInfo
from beam_tfrecord.images.memory import keep_large_buffers
from beam_tfrecord.planning.blocks import unpack_block
from beam_tfrecord.planning.dataset_plan import DatasetPlan
from beam_tfrecord.storage import Storage
from beam_tfrecord.transforms.planning import ShardKey
from beam_tfrecord.writing.progress import PROGRESS
from beam_tfrecord.writing.shards import ShardWriter, has_latency

NAMESPACE = "beam_tfrecord"
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
        writer = ShardWriter(self._config, plan, self._storage, self._opened(plan), self._threads, PROGRESS)
        info = writer.write(split, index, (item for block in blocks for item in unpack_block(block)))
        count_shard(info)
        yield info


def count_shard(info: ShardInfo) -> None:
    """Add a written shard to the counters that every engine shows."""
    counts = {
        "rows": info.num_rows,
        "records_written": info.num_records,
        "bytes_read": info.bytes_read,
        "bytes_written": info.num_bytes,
        "shards_written": int(bool(info.path)),
        **{f"rejected_{code}": count for code, count in info.rejected.items()},
    }
    for name, count in counts.items():
        Metrics.counter(NAMESPACE, name).inc(count)


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
