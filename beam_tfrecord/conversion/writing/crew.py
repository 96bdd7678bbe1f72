"""Shards written by this process and its helpers: a shard by each of them, or all of them at one.

Small images cost more Python than anything else, and one interpreter runs Python on one core. Where they are large the
decoder and the hash take the time, without the GIL, and the threads of one process are enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from beam_tfrecord.annotations import kinds_of_modules
from beam_tfrecord.conversion.helpers import MOST_PROCESSES, Tell, available_cores
from beam_tfrecord.conversion.planning.blocks import unpack_block
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan
from beam_tfrecord.conversion.shared_work import Crew
from beam_tfrecord.conversion.writing.progress import NO_ITEMS, PROGRESS, ItemCounts
from beam_tfrecord.conversion.writing.shards import (
    ProgressSink,
    ShardWriter,
    has_latency,
)
from beam_tfrecord.conversion.writing.timing import WorkTimes
from beam_tfrecord.core.elements import ShardInfo
from beam_tfrecord.images.memory import keep_large_buffers
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage

REMOTE_THREADS = 48  # reads that wait for an object store at a time: more than 32 are under way on average
HELPED_RECORD = 64 * 1024  # bytes: records above it keep the decoder and the hash busier than Python
MANY_SHARDS = 8  # for each process: whatever their sizes, the last one does not matter
UNEVEN = 1.15  # times the mean: what records of a helper cost more when another process writes them
HELPED_ROWS = 1_000  # below it a helper would be ready when the work is done


@dataclass(frozen=True)
class WrittenShard:
    """A shard that is finished. times: of the threads that made it.

    by_helper: what the helper that wrote it has read and written; zeros for a shard that this process wrote, which was
    told of while it was being written.
    """

    info: ShardInfo
    times: WorkTimes
    by_helper: ItemCounts = NO_ITEMS


@dataclass(frozen=True)
class ShardTask:
    """Which shard is to be written, and of which packed blocks."""

    split: str
    index: int
    blocks: Sequence[bytes]


@dataclass(frozen=True)
class WriteShard:
    """Writes shards of one dataset, in whatever process it finds itself.

    threads: that read ahead there. shares_cores: as for :class:`~beam_tfrecord.conversion.writing.shards.ShardWriter`.
    """

    config: ConvertConfig
    plan: DatasetPlan
    storage: Storage
    threads: int
    shares_cores: bool = False

    def __call__(self, task: ShardTask, tell: Tell) -> WrittenShard:
        """As a helper calls it: with threads of its own, and finished items told to the process that asked."""
        keep_large_buffers()
        told = _Told(tell)
        with ThreadPoolExecutor(self.threads) as pool:
            written = self.write(task, pool, told)
        return replace(written, by_helper=told.counts)

    def write(
        self,
        task: ShardTask,
        pool: ThreadPoolExecutor,
        progress: ProgressSink,
    ) -> WrittenShard:
        """Write the shard with the threads of a pool."""
        writer = ShardWriter(
            self.config,
            self.plan,
            self.storage,
            pool,
            self.threads,
            progress,
            shares_cores=self.shares_cores,
        )
        items = (item for block in task.blocks for item in unpack_block(block))
        return WrittenShard(writer.write(task.split, task.index, items), writer.times)


@dataclass
class _Told:
    """A progress in another process."""

    tell: Tell
    counts: ItemCounts = NO_ITEMS

    def add(self, records: int, rejects: int, bytes_read: int) -> None:
        self.tell(records, rejects, bytes_read)
        self.counts = ItemCounts(*map(sum, zip(self.counts, (records, rejects, bytes_read), strict=True)))


class ShardCrew:
    """This process with threads that read ahead, and its helpers. progress: told in the thread that calls.

    A helper writes whole shards where that gives all processes as much to do; otherwise this process writes each shard,
    and helpers make records for it, which cost a tenth more on their way through a pipe.
    """

    def __init__(self, work: WriteShard, helpers: int, progress: ProgressSink) -> None:
        self._pool = ThreadPoolExecutor(work.threads, thread_name_prefix="read-ahead")
        self._crew: Crew[ShardTask, WrittenShard] = Crew(
            work, lambda task: work.write(task, self._pool, progress), helpers, PROGRESS.add
        )

    def write(self, task: ShardTask) -> Iterator[WrittenShard]:
        """Take a shard on. Gives what is finished by now, this shard or others."""
        yield from self._crew.take(task)

    def finish(self) -> Iterator[WrittenShard]:
        """All that is not finished yet."""
        yield from self._crew.finish()

    def close(self) -> None:
        """End threads and helpers, whatever they are doing."""
        self._pool.shutdown(cancel_futures=True)
        self._crew.close()


def threads_for(config: ConvertConfig, plan: DatasetPlan) -> int:
    """Threads that read ahead: as many as cores where disks answer at once, many where each read waits."""
    if config.run.read_threads is not None:
        return config.run.read_threads
    if has_latency(plan):
        return REMOTE_THREADS
    return max(2, available_cores())


def helpers_for(config: ConvertConfig, plan: DatasetPlan) -> int:
    """Helpers that pay for a dataset: none where each read waits, or where Python has little to do."""
    wanted = config.run.processes
    if wanted is None:
        is_fast = not has_latency(plan) and plan.record_bytes <= HELPED_RECORD and plan.survey.rows >= HELPED_ROWS
        wanted = available_cores() if is_fast else 1
    if not kinds_of_modules(config.manifest.plugins):
        return 0
    return max(0, min(wanted, MOST_PROCESSES) - 1)


def is_even(plan: DatasetPlan, processes: int) -> bool:
    """Whether so many processes that write whole shards would all have about as much to do."""
    if plan.num_shards >= MANY_SHARDS * processes:
        return True
    loads = [0.0] * processes
    sizes = [split.num_entries / split.num_shards for split in plan.splits.values() for _ in range(split.num_shards)]
    for size in sorted(sizes, reverse=True):
        loads[loads.index(min(loads))] += size
    return max(loads) <= UNEVEN * sum(loads) / processes
