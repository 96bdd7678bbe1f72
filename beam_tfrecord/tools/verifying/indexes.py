"""Whether the index file beside a shard leads to its records."""

from __future__ import annotations

from collections.abc import Iterator

from beam_tfrecord.storage import Storage
from beam_tfrecord.tfrecord import FRAME_SIZE, INDEX_SUFFIX, Record
from beam_tfrecord.tools.verifying.faults import FaultLog, Problem


class IndexComparison:
    """The index file of a shard, compared line by line with the records as they are found."""

    def __init__(self, lines: Iterator[bytes], name: str) -> None:
        self._lines = lines
        self._name = name
        self._trouble = ""

    @classmethod
    def open(cls, uri: str, storage: Storage) -> IndexComparison | None:
        """The comparison for a shard; None when it has no index file."""
        if not storage.is_file(uri + INDEX_SUFFIX):
            return None
        return cls(_lines_of(uri + INDEX_SUFFIX, storage), uri)

    def compare(self, record: Record, size: int) -> None:
        """Compare the next line with a record of ``size`` bytes."""
        expected = f"{record.offset} {size + FRAME_SIZE}"
        found = next(self._lines, b"nothing").decode("ascii", "backslashreplace").rstrip("\r\n")
        if found != expected and not self._trouble:
            self._trouble = f"line {record.index + 1} of its index file is {found!r}, but must be {expected!r}"

    def finish(self, log: FaultLog) -> None:
        """Tell what was wrong, after the last record."""
        if not self._trouble and next(self._lines, None) is not None:
            self._trouble = "its index file has more lines than there are records"
        if self._trouble:
            log.add(Problem("wrong_index", f"{self._trouble}; write it anew with beam-tfrecord index"))


def _lines_of(uri: str, storage: Storage) -> Iterator[bytes]:
    with storage.open(uri) as file:
        yield from file
