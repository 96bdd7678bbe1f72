"""The files of one shard while they are written, and what is counted of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import NamedTuple

from beam_tfrecord.conversion.planning.arranging import Placed
from beam_tfrecord.conversion.writing.attempt_files import AttemptFiles
from beam_tfrecord.conversion.writing.records import EncodedRecord
from beam_tfrecord.conversion.writing.staging import StagedShard
from beam_tfrecord.conversion.writing.statistics import ShardStatistics
from beam_tfrecord.core.elements import Finding, ShardInfo
from beam_tfrecord.datasets.metadata import finding_line
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage, public_uri
from beam_tfrecord.tfrecord import RecordWriter


class Outcome(NamedTuple):
    """What became of one item: a record or a reject."""

    placed: Placed
    origin: str
    uri: str
    source_rows: int
    record: EncodedRecord | None
    reject: Finding | None


@dataclass
class StagedShardFile:
    """The files of a shard while they are written, under names of their own; :meth:`finish` gives them their staged
    names.

    Two workers may write the same shard at the same time (a retried bundle): each has its own files, and the last to
    finish wins with the same bytes. Without ``keeps_records`` another sink writes the records, and only what there is
    to tell of them is kept here.
    """

    staged: StagedShard
    storage: Storage
    config: ConvertConfig
    statistics: ShardStatistics
    keeps_records: bool = True
    _files: AttemptFiles = field(init=False)
    _writer: RecordWriter | None = None
    _counts: dict[str, Counter[str]] = field(
        default_factory=lambda: {
            name: Counter() for name in ("rejected", "warnings", "changed", "classes", "formats", "exceptions")
        }
    )
    _by_input: Counter[int] = field(default_factory=Counter)
    _rows: int = 0
    _records: int = 0
    _source_rows: int = 0
    _bytes_read: int = 0

    def __post_init__(self) -> None:
        self._files = AttemptFiles(self.storage)

    def __enter__(self) -> StagedShardFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self._files.abandon(kind, error, traceback)

    def add(self, outcome: Outcome) -> None:
        """Append the record or the reject of an item."""
        placed, origin, uri, source_rows, record, reject = outcome
        self._rows += 1
        self._source_rows += source_rows
        self._by_input[placed.source] += 1
        if record is None:
            assert reject is not None
            self._counts["rejected"][reject.code] += 1
            self._tell(self.staged.rejects, reject)
            return
        self._records += 1
        offset, size = self._append(record.data) if self.keeps_records else (0, 0)
        self.statistics.add(record.facts, record.labels, offset, size)
        self._line(self.staged.items, item_line(record.content, origin, public_uri(uri)))
        for warning in (*placed.warnings, *record.warnings):
            self._counts["warnings"][warning.code] += 1
            self.statistics.note("warnings", warning.code)
            self._tell(self.staged.warnings, warning)
        for reason in record.changed:
            self._counts["changed"][reason] += 1
            self.statistics.note("changed", reason)
        # One value nearly always: Counter.update would take longer to begin.
        counts = self._counts["classes"]
        for label in record.labels:
            counts[label] += 1
        counts = self._counts["formats"]
        for image_format in record.image_formats:
            counts[image_format] += 1
        counts = self._counts["exceptions"]
        for exception in record.exceptions:
            counts[exception] += 1
        self._bytes_read += record.bytes_read

    def _append(self, data: bytes) -> tuple[int, int]:
        if self._writer is None:
            self._writer = RecordWriter(self._files.file(self.staged.records), self.config.shards.compression)
        offset, size = self._writer.append(data)
        if self.config.output.index:
            self._line(self.staged.index_file, f"{offset} {size}\n")
        return offset, size

    def finish(self, split: str, index: int, fingerprint: str) -> ShardInfo:
        """Close the files, give them their staged names and tell what they hold."""
        if self._writer is not None:
            self._writer.finish()
        self._files.finish(self.staged.all)
        writer = self._writer
        return ShardInfo(
            split=split,
            index=index,
            path=self.staged.records if writer else "",
            num_records=self._records,
            num_bytes=writer.num_bytes if writer else 0,
            payload_bytes=writer.payload_bytes if writer else 0,
            crc32c=writer.crc32c if writer else "",
            fingerprint=fingerprint,
            num_rows=self._rows,
            source_rows=self._source_rows,
            bytes_read=self._bytes_read,
            rows_by_input=dict(sorted(self._by_input.items())),
            statistics=self.statistics.to_json(),
            **{name: dict(sorted(counts.items())) for name, counts in self._counts.items()},
        )

    def _line(self, name: str, text: str) -> None:
        self._files.file(name).write(text.encode("utf-8", "surrogateescape"))

    def _tell(self, name: str, finding: Finding) -> None:
        self._line(name, finding_line(replace(finding, uri=public_uri(finding.uri))))


def item_line(content: bytes, origin: str, uri: str) -> str:
    """A line of the items sidecar: content hash (sixteen hex digits, or none), origin and uri, separated by tabs."""
    line = f"{content.hex()}\t{origin}\t{uri}\n"
    if line.count("\t") == 2 and line.count("\n") == 1:
        return line
    clean: Callable[[str], str] = lambda text: text.replace("\t", " ").replace("\n", " ")  # noqa: E731
    return f"{content.hex()}\t{clean(origin)}\t{clean(uri)}\n"
