"""The step that reads images and writes shards."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import apache_beam as beam
from apache_beam.transforms.display import DisplayDataItem
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from beam_tfrecord.conversion.planning.blocks import unpack_block
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan
from beam_tfrecord.conversion.planning.straddling import Straddling, join_straddling
from beam_tfrecord.conversion.writing.processes import HelperProcesses, ShardTask, processes_for
from beam_tfrecord.conversion.writing.progress import PROGRESS, Progress
from beam_tfrecord.conversion.writing.shards import ShardWriter, threads_for
from beam_tfrecord.core.elements import ShardInfo
from beam_tfrecord.images.memory import keep_large_buffers
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage, public_uri
from beam_tfrecord.transforms.counters import EngineProgress, RetryCounts, count, count_shard
from beam_tfrecord.transforms.planning import ShardKey


class _WriteShards(beam.DoFn):
    def __init__(
        self, config: ConvertConfig, storage: Storage, owner: str, *, only_looks: bool, is_counted: bool, is_alone: bool
    ) -> None:
        self._config = config
        self._owner = owner
        self._only_looks = only_looks
        self._is_counted = is_counted
        self._is_alone = is_alone
        self._storage = storage
        self._pool: ThreadPoolExecutor | None = None
        self._helpers: HelperProcesses | None = None
        self._straddling: Straddling | None = None
        self._retries = RetryCounts(storage)

    def setup(self) -> None:
        keep_large_buffers()

    def start_bundle(self) -> None:
        self._straddling = None

    def teardown(self) -> None:
        if self._helpers is not None:
            self._helpers.close()
            self._helpers = None
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def process(
        self, element: tuple[ShardKey, Iterable[bytes]], plan: DatasetPlan, straddling: Iterable[Straddling]
    ) -> Iterable[ShardInfo]:
        (split, index), blocks = element
        if self._straddling is None:
            self._straddling = join_straddling(straddling)  # once: there may be many, and many shards
        if self._straddling.first:
            plan = replace(plan, straddling=self._straddling.first)
        writer = self._writer(plan)
        if self._helpers is not None:
            if not self._helpers.are_busy:
                self._helpers.give(ShardTask(split, index, tuple(blocks)))
                return
            self._helpers.tell()
        info = writer.write(split, index, itertools.chain.from_iterable(map(unpack_block, blocks)))
        if self._is_counted:
            count_shard(info, writer.times)
        self._retries.tell()
        yield info

    def finish_bundle(self) -> Iterable[WindowedValue]:
        """The shards of the helpers, which end then."""
        if self._helpers is None:
            return
        window = GlobalWindow()
        for finished in self._helpers.finish():
            count_shard(finished.info, finished.times)
            for name, times in finished.retries.items():
                count(name, times)
            yield WindowedValue(finished.info, window.max_timestamp(), [window])
        self.teardown()

    def _writer(self, plan: DatasetPlan) -> ShardWriter:
        threads = threads_for(self._config, plan)  # it depends on where the images are
        is_first = self._pool is None
        if self._pool is None:
            self._pool = ThreadPoolExecutor(threads, thread_name_prefix="read-ahead")
            if self._is_counted:
                PROGRESS.total = plan.rows_left
        progress = EngineProgress() if self._is_counted else Progress()
        writer = ShardWriter(
            self._config,
            plan,
            self._storage,
            self._pool,
            threads,
            progress,
            owner=self._owner,
            only_looks=self._only_looks,
        )
        helpers = processes_for(self._config, plan) - 1 if is_first and self._is_alone else 0
        if helpers:
            self._helpers = HelperProcesses(writer, helpers, progress)
        return writer


class WriteShards(beam.PTransform):
    """Staged shards: PCollection[((split, shard), block)] -> PCollection[ShardInfo].

    Groups the blocks by shard: the only shuffle of entries, and no pixels in it. Images are read here. straddling: as
    :class:`.FindStraddling` gives it. owner: of the lease of the output folder
    (:func:`beam_tfrecord.storage.lease.owner_of`). only_looks: stage what was seen of the records, and not the records.
    is_counted: whether counters and progress are told of it. is_alone: the job runs in this process, which may start
    others (:mod:`beam_tfrecord.conversion.writing.processes`).
    """

    def __init__(
        self,
        config: ConvertConfig,
        plan: beam.PCollection[DatasetPlan],
        straddling: beam.PCollection[Straddling],
        storage: Storage | None = None,
        owner: str = "",
        *,
        only_looks: bool = False,
        is_counted: bool = True,
        is_alone: bool = False,
    ) -> None:
        super().__init__()
        self._is_alone = is_alone
        self._straddling = straddling
        self._owner = owner
        self._only_looks = only_looks
        self._is_counted = is_counted
        self._config = config
        self._plan = plan
        self._storage = storage or Storage()

    def expand(self, placed: beam.PCollection[tuple[ShardKey, bytes]]) -> beam.PCollection[ShardInfo]:
        write = _WriteShards(
            self._config,
            self._storage,
            self._owner,
            only_looks=self._only_looks,
            is_counted=self._is_counted,
            is_alone=self._is_alone,
        )
        return (
            placed
            | "GroupByShard" >> beam.GroupByKey()
            | "WriteShard"
            >> beam.ParDo(
                write,
                plan=beam.pvalue.AsSingleton(self._plan),
                straddling=beam.pvalue.AsIter(self._straddling),
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
