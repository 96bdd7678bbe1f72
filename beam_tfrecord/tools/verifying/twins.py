"""Whether the ArrayRecord file beside a shard holds the records of the shard, byte for byte."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

from beam_tfrecord.storage import Storage, name_of, parent
from beam_tfrecord.tfrecord import Record, array_record_name, parse_shard_name
from beam_tfrecord.tools.verifying.faults import Fault

PACKAGE = "array_record"
COMPARED, SKIPPED = "compared", "skipped"
_GROUP = 16  # records of the twin in memory at a time
_CHUNK = 1 << 20


def twin_of(uri: str, storage: Storage) -> str:
    """The uri of the ArrayRecord file beside a shard; '' when there is none."""
    name = name_of(uri)
    if parse_shard_name(name) is None:
        return ""
    twin = f"{parent(uri)}/{array_record_name(name)}"
    return twin if storage.is_file(twin) else ""


def can_compare() -> bool:
    """Whether the package that reads ArrayRecord files is installed."""
    return importlib.util.find_spec(PACKAGE) is not None


class TwinComparison:
    """The records of a twin, compared one by one with those of the shard as they are found.

    Only the first difference is told: behind it nothing may be in its place.
    """

    def __init__(self, path: str, name: str) -> None:
        self._name = name
        self._group: list[bytes] = []
        self._start = 0
        self._fault: Fault | None = None
        self._records = 0
        self._reader: Any = None
        try:
            from array_record.python.array_record_module import ArrayRecordReader

            self._reader = ArrayRecordReader(path)
            self._records = self._reader.num_records()
            if not self._reader.ok():
                self._reader.close()  # which raises the reason
        except RuntimeError as error:  # all that the library raises, whatever it is about
            self._tell(None, f"the ArrayRecord file cannot be read: {_reason(error)}")

    def compare(self, record: Record) -> None:
        """Compare the twin's record of the same number with a record of the shard."""
        if self._fault is not None:
            return
        if record.index >= self._records:
            return  # told at the end, by number
        try:
            found = self._read(record.index)
        except RuntimeError as error:
            self._tell(record.index, f"the record cannot be read: {_reason(error)}")
            return
        if found != record.data:
            self._tell(record.index, _difference(found, record.data))

    def finish(self, records: int | None) -> Fault | None:
        """The first difference, or None. records: how many the shard has; None when that cannot be told."""
        if self._fault is None and records is not None and records != self._records:
            number = min(records, self._records)
            self._tell(number, f"the file has {self._records:,} records, but its shard has {records:,}")
        return self._fault

    def close(self) -> None:
        """Let the file go."""
        if self._reader is not None:
            with contextlib.suppress(RuntimeError):  # of a damaged file, which is told
                self._reader.close()

    def _read(self, number: int) -> bytes:
        if not self._start <= number < self._start + len(self._group):
            self._group = self._reader.read(number, min(number + _GROUP, self._records))
            self._start = number
        return self._group[number - self._start]

    def _tell(self, record: int | None, cause: str) -> None:
        cure = "write it anew: reshard or convert with --array_record"
        self._fault = Fault(self._name, record, None, "wrong_twin", f"{cause}; {cure}")


@contextlib.contextmanager
def open_twin(twin: str, storage: Storage) -> Iterator[TwinComparison]:
    """The comparison with a twin. The library reads local files only: any other is copied to the local disk first.

    Raises OSError when the file cannot be read.
    """
    with contextlib.ExitStack() as stack:
        path = twin
        if "://" in twin:
            path = os.path.join(stack.enter_context(tempfile.TemporaryDirectory(prefix="beam-tfrecord-")), "twin")
            with storage.open(twin) as source, open(path, "wb") as target:
                shutil.copyfileobj(source, target, _CHUNK)
        comparison = TwinComparison(path, name_of(twin))
        stack.callback(comparison.close)
        yield comparison


def _difference(found: bytes, expected: bytes) -> str:
    if len(found) != len(expected):
        return f"the record has {len(found):,} bytes, but that of the shard {len(expected):,}"
    place = next(place for place, pair in enumerate(zip(found, expected, strict=True)) if pair[0] != pair[1])
    return f"byte {place:,} of the record is {found[place]:#04x}, but {expected[place]:#04x} in the shard"


def _reason(error: RuntimeError) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
