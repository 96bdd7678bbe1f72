"""Files that are written under names of one attempt, and get their own names together once they are complete."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import BinaryIO

from beam_tfrecord.errors import StorageError
from beam_tfrecord.storage import Storage


@dataclass
class AttemptFiles:
    """The files of one attempt at writing a shard.

    Two workers may write the same shard at the same time (a retried bundle): each has its own files, and the last to
    finish wins with the same bytes.
    """

    storage: Storage
    _attempt: str = field(default_factory=lambda: f"{os.getpid()}-{uuid.uuid4().hex[:8]}")
    _open: dict[str, BinaryIO] = field(default_factory=dict)

    def file(self, name: str) -> BinaryIO:
        """The file that will have this name, open for writing; the same one whenever it is asked for."""
        if name not in self._open:
            self._open[name] = self.storage.open_write(self._temporary(name))
        return self._open[name]

    def finish(self, names: Iterable[str]) -> None:
        """Close the files and give them their names. names: of all that may be there; what an earlier attempt left
        under those that this one has not written is deleted."""
        for name, file in self._open.items():
            file.close()
            self.storage.rename(self._temporary(name), name)
        self.storage.delete(sorted(set(names) - set(self._open)))

    def abandon(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave nothing behind when writing failed; the failure itself goes on to the caller.

        The files are left as by an exception: what is on its way to an object store is not uploaded any more.
        """
        for name, file in self._open.items():
            with contextlib.suppress(OSError, StorageError):
                file.__exit__(kind, error, traceback)
            with contextlib.suppress(OSError, StorageError):
                self.storage.delete([self._temporary(name)])

    def _temporary(self, name: str) -> str:
        return f"{name}.{self._attempt}.tmp"
