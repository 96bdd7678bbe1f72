"""The files of one shard while they are written, and what is counted of them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType

from beam_tfrecord.conversion.writing.attempt_files import AttemptFiles
from beam_tfrecord.conversion.writing.batches import EncodedBatch
from beam_tfrecord.conversion.writing.staging import StagedShard
from beam_tfrecord.conversion.writing.statistics import Place, ShardStatistics
from beam_tfrecord.core.elements import Finding, ShardInfo
from beam_tfrecord.datasets.metadata import finding_line
from beam_tfrecord.insight.looks import LookFields, looks_of
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage, public_uri
from beam_tfrecord.tfrecord import RecordWriter

_LOOKS_AT_ONCE = 256  # that are measured together: 2 KB of each wait


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
            name: Counter()
            for name in ("rejected", "excluded", "warnings", "changed", "classes", "formats", "exceptions", "objects")
        }
    )
    _looks: list[LookFields] = field(default_factory=list)
    _places: list[tuple[int, int]] = field(default_factory=list)
    _by_input: Counter[int] = field(default_factory=Counter)
    _spellings: Counter[tuple[int, str]] = field(default_factory=Counter)
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

    def add(self, batch: EncodedBatch) -> None:
        """Append the records and the rejects of some items."""
        self._rows += len(batch.sources)
        self._source_rows += batch.source_rows
        self._by_input.update(batch.sources)
        if batch.excluded_by_input:
            self._rows += sum(batch.excluded.values())
            self._counts["excluded"].update(batch.excluded)
            self._by_input.update(batch.excluded_by_input)
        if batch.spellings:
            self._spellings.update(batch.spellings)
        if batch.objects:
            self._counts["objects"].update(batch.objects)
        for reject in batch.rejects:
            self._counts["rejected"][reject.code] += 1
            self._tell(self.staged.rejects, reject)
        for warning in batch.told:
            self._counts["warnings"][warning.code] += 1
            self._tell(self.staged.warnings, warning)
        if not batch.records:
            return
        self._records += len(batch.records)
        places = self._append(batch.records) if self.keeps_records else [(0, 0)] * len(batch.records)
        first = self.statistics.add_all(batch.facts, batch.labels, places, batch.pictures)
        self._line(self.staged.items, "".join(batch.lines))
        if batch.names:
            self._line(self.staged.names, "".join(batch.names))
        self.statistics.add_sums(batch.sums)
        if batch.looks:
            self._looks += batch.looks
            self._places += places
            if len(self._looks) >= _LOOKS_AT_ONCE:
                self._measure()
        for remark in batch.remarks:
            place = Place(first + remark.number, *places[remark.number])
            for warning in remark.warnings:
                self._counts["warnings"][warning.code] += 1
                self.statistics.note_at(place, "warnings", warning.code)
                self._tell(self.staged.warnings, warning)
            for reason in remark.changed:
                self._counts["changed"][reason] += 1
                self.statistics.note_at(place, "changed", reason)
        self._counts["classes"].update(itertools.chain.from_iterable(batch.labels))
        self._counts["formats"].update(batch.formats)
        if batch.exceptions:
            self._counts["exceptions"].update(batch.exceptions)
        self._bytes_read += batch.bytes_read

    def _append(self, records: Sequence[bytes]) -> list[tuple[int, int]]:
        if self._writer is None:
            self._writer = RecordWriter(self._files.file(self.staged.records), self.config.shards.compression)
        places = self._writer.append_all(records)
        if self.config.output.index:
            self._line(self.staged.index_file, "".join([f"{offset} {size}\n" for offset, size in places]))
        return places

    def _measure(self) -> None:
        """Write the looks that wait: measuring many together takes a fraction of the time."""
        rows = looks_of(self._looks)
        rows["offset"], rows["size"] = zip(*self._places, strict=True)
        self._files.file(self.staged.looks).write(rows.tobytes())
        self.statistics.add_looks(rows)
        self._looks = []
        self._places = []

    def finish(self, split: str, index: int, fingerprint: str) -> ShardInfo:
        """Close the files, give them their staged names and tell what they hold."""
        if self._looks:
            self._measure()
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
            owner=self.staged.owner,
            num_rows=self._rows,
            source_rows=self._source_rows,
            bytes_read=self._bytes_read,
            rows_by_input=dict(sorted(self._by_input.items())),
            spellings={
                number: {how: count for (source, how), count in sorted(self._spellings.items()) if source == number}
                for number in sorted({source for source, _ in self._spellings})
            },
            statistics=self.statistics.to_json(),
            **{name: dict(sorted(counts.items())) for name, counts in self._counts.items()},
        )

    def _line(self, name: str, text: str) -> None:
        self._files.file(name).write(text.encode("utf-8", "surrogateescape"))

    def _tell(self, name: str, finding: Finding) -> None:
        self._line(name, finding_line(replace(finding, uri=public_uri(finding.uri))))
