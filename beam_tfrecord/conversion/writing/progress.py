"""Counts that the writers of this process leave, for a progress bar to read."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass
class Progress:
    """Records and rejects so far, and bytes of images read; safe to use from several threads."""

    records: int = 0
    rejects: int = 0
    bytes_read: int = 0
    total: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, records: int, rejects: int, bytes_read: int) -> None:
        with self._lock:
            self.records += records
            self.rejects += rejects
            self.bytes_read += bytes_read

    def at_least(self, records: int, rejects: int, bytes_read: int) -> None:
        """Take over counts made elsewhere, where they are ahead of those made here."""
        with self._lock:
            self.records = max(self.records, records)
            self.rejects = max(self.rejects, rejects)
            self.bytes_read = max(self.bytes_read, bytes_read)

    def reset(self) -> None:
        with self._lock:
            self.records = self.rejects = self.bytes_read = 0
            self.total = None


PROGRESS = Progress()  # of this process: workers that live in it share it with the command line
