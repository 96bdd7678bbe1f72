"""What threads spend and wait for, for the counters of an engine and the choice of threads; it never reaches the
dataset."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import dataclass


@dataclass(slots=True)
class WorkTimes:
    """Nanoseconds that threads spent: waiting for bytes, checking and converting images, making records, writing."""

    read: int = 0
    decode: int = 0
    encode: int = 0
    write: int = 0

    def add(self, other: WorkTimes) -> None:
        """Add what another thread spent."""
        self.read += other.read
        self.decode += other.decode
        self.encode += other.encode
        self.write += other.write

    def milliseconds(self) -> dict[str, int]:
        """Whole milliseconds by kind."""
        return {name: getattr(self, name) // 1_000_000 for name in ("read", "decode", "encode", "write")}


def waits_of_thread() -> int:
    """How often this thread gave its core up because it had to wait, for a disk or for another thread; always growing
    where the system does not tell."""
    if sys.platform != "linux":
        return time.perf_counter_ns()
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
