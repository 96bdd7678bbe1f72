"""Helper processes of a job on this machine: each writes whole shards beside this process.

What is Python in the work on an image runs on one core in each process. The processes are those of
:mod:`concurrent.futures`; added is what that leaves open: they end with this process however it ends, Ctrl-C is not
theirs, and their counts are known while they work.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from beam_tfrecord.conversion.planning.blocks import unpack_block
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan
from beam_tfrecord.conversion.writing.shards import SMALL_RECORD, ProgressSink, ShardWriter
from beam_tfrecord.conversion.writing.timing import WorkTimes
from beam_tfrecord.core.cores import available_cores
from beam_tfrecord.core.elements import ShardInfo
from beam_tfrecord.errors import ConfigError, JobError
from beam_tfrecord.images.memory import keep_large_buffers
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage, scheme_of
from beam_tfrecord.storage.uris import OBJECT_SCHEMES, WEB_SCHEMES

MANY_ROWS = 50_000  # at 20,000 a helper gains a tenth, for half a second of CPU and its memory
MOST_PROCESSES = 16  # each holds some 50 MiB
GARBAGE_THRESHOLD = 20_000  # objects between two looks for cycles of them: records are freed without the collector
SECONDS_BETWEEN_COUNTS = 0.1
_LOCAL = {"", "file"}
_OWN = {*_LOCAL, *OBJECT_SCHEMES, *WEB_SCHEMES}


def processes_for(config: ConvertConfig, plan: DatasetPlan) -> int:
    """Processes that write the shards of a job on this machine, this one included.

    As many as the option says; else one for each core where there are many images in files of the local disk, so small
    that Python takes longer than what runs on all cores beside it; else one. Raises ConfigError where helpers are asked
    for and could not get at the images or the output.
    """
    sample = plan.survey.sample
    schemes = {scheme_of(config.output.output), *(scheme_of(image.uri) for image in sample)}
    wanted = config.run.processes
    if wanted is None:
        is_local = schemes <= _LOCAL and all(image.member is None for image in sample)
        is_python = plan.schema.has_images and plan.record_bytes <= SMALL_RECORD
        wanted = min(available_cores(), MOST_PROCESSES) if is_local and is_python and plan.rows_left >= MANY_ROWS else 1
    elif wanted > 1 and not schemes <= _OWN:
        raise ConfigError(
            f"--processes {wanted}: {min(schemes - _OWN)}:// is known to this process only, by Beam's file systems; "
            "leave the option out"
        )
    return min(wanted, plan.num_shards)


@dataclass(frozen=True)
class ShardTask:
    """A shard to be written. blocks: packed, as they come from the shuffle."""

    split: str
    index: int
    blocks: tuple[bytes, ...]


@dataclass(frozen=True)
class FinishedShard:
    """What a helper gives back. retries: by name, how often storage was tried again since it last told."""

    info: ShardInfo
    times: WorkTimes
    retries: dict[str, int]


class HelperProcesses:
    """Processes that write shards as a writer of this process would.

    Not safe to use from several threads. Close it when it is not needed any more. Raises JobError where the system has
    no semaphores for them, and where the run of the writer was ended.

    writer: what they do. helpers: how many. progress: hears of their items in whichever call comes next.
    """

    def __init__(self, writer: ShardWriter, helpers: int, progress: ProgressSink) -> None:
        threads = writer.threads
        if writer.config.run.read_threads is None:
            threads = max(1, threads // (helpers + 1))
        self.owner = writer.owner
        self.helpers = helpers
        self._progress = progress
        self._told = [0, 0, 0]
        self._waiting: list[Future[FinishedShard]] = []
        self._context = _Context()
        try:
            self._counts = self._context.Array("q", 3)
            arguments = (writer.config, writer.plan, writer.storage, threads, self.owner, self._counts)
            self._pool = ProcessPoolExecutor(helpers, self._context, _begin, arguments)
        except (OSError, ImportError) as error:
            raise JobError(f"helper processes need semaphores, which are missing here ({error}); {_CURE}") from error
        with _lock:
            if self.owner in _ended:
                raise JobError("the job was stopped")
            _open.add(self)

    @property
    def are_busy(self) -> bool:
        """Whether all helpers have a shard to write."""
        return sum(not future.done() for future in self._waiting) >= self.helpers

    def give(self, task: ShardTask) -> None:
        """Have a helper write a shard. Raises JobError when no process can be started for it."""
        with _told(), _interrupts_held():
            self._waiting.append(self._pool.submit(_write, task))

    def tell(self) -> None:
        """Hand the progress what is new in the counts of the helpers."""
        with self._counts.get_lock():
            counts = self._counts[:]
        news = [count - told for count, told in zip(counts, self._told, strict=True)]
        self._told = counts
        if any(news):
            self._progress.add(*news)

    def finish(self) -> Iterator[FinishedShard]:
        """The shards that were given, in that order, when they are written. Raises what stopped a helper."""
        while self._waiting:
            future = self._waiting.pop(0)
            while not future.done():
                wait([future], SECONDS_BETWEEN_COUNTS)
                self.tell()
            with _told():
                finished = future.result()
            self.tell()
            yield finished

    def close(self) -> None:
        """End the helpers; what they still write is given up."""
        with _lock:
            _open.discard(self)
        if any(not future.done() for future in self._waiting):
            self.end()
        self._pool.shutdown(cancel_futures=True)

    def end(self) -> None:
        """End the helpers now, whatever they do."""
        for process in self._context.started:
            process.terminate()


_CURE = "--processes 1 does without them"
_open: set[HelperProcesses] = set()
_ended: set[str] = set()  # owners of runs that are over
_lock = threading.Lock()


class _Context(SpawnContext):
    """Starts processes anew, since a copy of one with threads may stand still for ever; and knows those it started."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[SpawnProcess] = []

    def Process(self, *arguments: Any, **options: Any) -> SpawnProcess:  # type: ignore[override] # noqa: N802
        process = SpawnProcess(*arguments, **options)
        self.started.append(process)
        return process


@contextlib.contextmanager
def helpers_ended(owner: str) -> Iterator[None]:
    """When the block ends, so do the helpers of a run; none is started later. owner: of its lease.

    A job that is stopped lives on in threads that nobody waits for, and Python would wait for their processes.
    """
    try:
        yield
    finally:
        with _lock:
            _ended.add(owner)
            for helpers in _open:
                if helpers.owner == owner:
                    helpers.end()


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """What happens to processes, told as what it is."""
    try:
        yield
    except BrokenProcessPool as error:
        raise JobError(
            "a helper process ended before its work was done (killed, or out of memory); run the same command again, "
            "with fewer --processes where memory is short"
        ) from error


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Processes that are started inside never hear of Ctrl-C, which the terminal sends to them as well."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    except OSError as error:
        raise JobError(f"no further process can be started here ({error}); {_CURE}") from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# ---------------------------------------------------------------------------------------------------------------------
# In a helper

_OF_HELPER: list[ShardWriter] = []  # the one that it writes with


class _SharedProgress:
    """Counts in memory that the process which started this one sees."""

    def __init__(self, counts: Any) -> None:
        self._counts = counts

    def add(self, records: int, rejects: int, bytes_read: int) -> None:
        with self._counts.get_lock():
            for place, amount in enumerate((records, rejects, bytes_read)):
                self._counts[place] += amount


def _begin(config: ConvertConfig, plan: DatasetPlan, storage: Storage, threads: int, owner: str, counts: Any) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    keep_large_buffers()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="read-ahead")
    _OF_HELPER.append(ShardWriter(config, plan, storage, pool, threads, _SharedProgress(counts), owner=owner))


def _end_with_parent() -> None:
    """A process that was killed cannot end its helpers: they would wait for it for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _write(task: ShardTask) -> FinishedShard:
    writer = replace(_OF_HELPER[0], times=WorkTimes())
    before = writer.storage.counters.snapshot()
    info = writer.write(task.split, task.index, itertools.chain.from_iterable(map(unpack_block, task.blocks)))
    after = writer.storage.counters.snapshot()
    return FinishedShard(info, writer.times, {name: count - before.get(name, 0) for name, count in after.items()})
