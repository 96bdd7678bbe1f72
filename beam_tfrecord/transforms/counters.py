"""What every engine shows while a job runs: counters, and how long each kind of work takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from apache_beam.metrics import Metrics

from beam_tfrecord.conversion.writing.progress import PROGRESS, Progress
from beam_tfrecord.conversion.writing.timing import WorkTimes
from beam_tfrecord.core.elements import ShardInfo
from beam_tfrecord.storage import Storage

NAMESPACE = "beam_tfrecord"


def count(name: str, amount: int) -> None:
    """Add to a counter of the step that runs."""
    Metrics.counter(NAMESPACE, name).inc(amount)


@dataclass
class EngineProgress:
    """A progress that the engine's counters follow: rows are counted while a shard is being written.

    Only to be used by the thread that Beam calls, to which its counters belong.
    """

    here: Progress = field(default_factory=lambda: PROGRESS)

    def add(self, records: int, rejects: int, bytes_read: int) -> None:
        """Count finished items."""
        self.here.add(records, rejects, bytes_read)
        count_items(records, rejects, bytes_read)


def count_items(records: int, rejects: int, bytes_read: int) -> None:
    """Count finished items."""
    for name, amount in (
        ("rows", records + rejects),
        ("records_written", records),
        ("rejected", rejects),
        ("bytes_read", bytes_read),
    ):
        if amount:
            count(name, amount)


def count_shard(info: ShardInfo, times: WorkTimes | None = None) -> None:
    """Count what is known when a shard is finished.

    times: thread time that it took; each kind of work is a distribution over shards, in milliseconds.
    """
    count("shards_written", int(bool(info.path)))
    count("bytes_written", info.num_bytes)
    for code, amount in info.rejected.items():
        count(f"rejected_{code}", amount)
    for option, amount in info.excluded.items():
        count(f"excluded_{option}", amount)
    for name, milliseconds in times.milliseconds().items() if times is not None else ():
        Metrics.distribution(NAMESPACE, f"{name}_ms").update(milliseconds)
    Metrics.distribution(NAMESPACE, "shard_bytes").update(info.num_bytes)
    Metrics.distribution(NAMESPACE, "shard_records").update(info.num_records)


@dataclass
class RetryCounts:
    """Tells an engine how often the storage of a step was tried again since it was last told.

    Every step that uses storage has one, beside the storage: where a worker unpickles the step, both begin at nothing.
    """

    storage: Storage
    _told: dict[str, int] = field(default_factory=dict)

    def tell(self) -> None:
        """Add what is new to the counters ``read_retries`` and ``write_retries``."""
        for name, total in self.storage.counters.snapshot().items():
            if total > self._told.get(name, 0):
                count(name, total - self._told.get(name, 0))
            self._told[name] = total

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.storage,)
