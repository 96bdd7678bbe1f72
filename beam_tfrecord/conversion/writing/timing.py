"""Thread time by kind of work, for the counters of an engine; it never reaches the dataset."""

from __future__ import annotations

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
