"""The step that reads images and writes shards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apache_beam as beam
from apache_beam.transforms.display import DisplayDataItem
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan
from beam_tfrecord.conversion.writing.crew import (
    ShardCrew,
    ShardTask,
    WriteShard,
    WrittenShard,
    helpers_for,
    threads_for,
)
from beam_tfrecord.conversion.writing.progress import PROGRESS
from beam_tfrecord.core.elements import ShardInfo
from beam_tfrecord.images.memory import keep_large_buffers
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage, public_uri
from beam_tfrecord.transforms.counters import EngineProgress, RetryCounts, count_items, count_shard
from beam_tfrecord.transforms.planning import ShardKey


class _WriteShards(beam.DoFn):
    def __init__(self, config: ConvertConfig, storage: Storage, with_helpers: bool) -> None:
        self._config = config
        self._storage = storage
        self._with_helpers = with_helpers
        self._crew: ShardCrew | None = None
        self._retries = RetryCounts(storage)

    def setup(self) -> None:
        keep_large_buffers()

    def teardown(self) -> None:
        if self._crew is not None:
            self._crew.close()
            self._crew = None

    def _opened(self, plan: DatasetPlan) -> ShardCrew:
        """The crew, made for the first shard: what it takes depends on where the images are and how large."""
        if self._crew is None:
            helpers = helpers_for(self._config, plan) if self._with_helpers else 0
            threads = threads_for(self._config, plan)
            work = WriteShard(self._config, plan, self._storage, threads, shares_cores=helpers > 0)
            self._crew = ShardCrew(work, helpers, EngineProgress())
            PROGRESS.total = plan.survey.rows
        return self._crew

    def process(self, element: tuple[ShardKey, Iterable[bytes]], plan: DatasetPlan) -> Iterable[ShardInfo]:
        (split, index), blocks = element
        task = ShardTask(split, index, tuple(blocks))
        yield from map(self._counted, self._opened(plan).write(task))

    def finish_bundle(self) -> Iterable[WindowedValue]:
        """Shards that helpers have still been writing; without helpers there are none."""
        if self._crew is not None:
            window = GlobalWindow()
            for written in self._crew.finish():
                yield WindowedValue(self._counted(written), window.max_timestamp(), [window])
            if self._with_helpers:  # they are gone to whoever needs them next
                self.teardown()

    def _counted(self, written: WrittenShard) -> ShardInfo:
        count_items(*written.by_helper)
        count_shard(written.info, written.times)
        self._retries.tell()
        return written.info


class WriteShards(beam.PTransform):
    """Staged shards: PCollection[((split, shard), block)] -> PCollection[ShardInfo].

    Groups the blocks by shard: the only shuffle of entries, and no pixels in it. Images are read here.
    with_helpers: the worker may start processes beside it; true only where the whole job runs in one process.
    """

    def __init__(
        self,
        config: ConvertConfig,
        plan: beam.PCollection[DatasetPlan],
        storage: Storage | None = None,
        *,
        with_helpers: bool = False,
    ) -> None:
        super().__init__()
        self._config = config
        self._plan = plan
        self._storage = storage or Storage()
        self._with_helpers = with_helpers

    def expand(self, placed: beam.PCollection[tuple[ShardKey, bytes]]) -> beam.PCollection[ShardInfo]:
        return (
            placed
            | "GroupByShard" >> beam.GroupByKey()
            | "WriteShard"
            >> beam.ParDo(
                _WriteShards(self._config, self._storage, self._with_helpers), plan=beam.pvalue.AsSingleton(self._plan)
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
