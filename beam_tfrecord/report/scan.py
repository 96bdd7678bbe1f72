"""What is told of a dataset that has no statistics, found by reading a bounded part of its records.

The first records of every shard are read, which are as good as any others in a dataset whose records are shuffled.
"""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from beam_tfrecord.conversion.writing.statistics import ImageFacts, ShardStatistics, merge_statistics
from beam_tfrecord.datasets.record_view import view_record
from beam_tfrecord.datasets.shard_files import ShardFile
from beam_tfrecord.errors import BeamTfrecordError
from beam_tfrecord.report.views import ContentReader, Features, PictureView, guessed_reader
from beam_tfrecord.storage import Storage
from beam_tfrecord.tfrecord import FRAME_SIZE, Record, detect_compression, read_records

# ---------------------------------------------------------------------------------------------------------------------
# What the features of some records hold, for datasets without images.


MAX_DISTINCT = 1000  # values of a column that are told apart
SHOWN_VALUES = 5
_MAX_TEXT = 200  # bytes of a text that tell it apart


@dataclass
class ColumnSummary:
    """One feature. values: how often each occurs, None when there are too many. least, greatest, total: of numbers."""

    dtype: str
    records: int = 0
    count: int = 0
    values: Counter[Any] | None = field(default_factory=Counter)
    least: float = math.inf
    greatest: float = -math.inf
    total: float = 0.0

    def add(self, values: list[Any]) -> None:
        """Take in the values of one record."""
        self.records += 1
        self.count += len(values)
        for value in values:
            if isinstance(value, bytes):
                value = value[:_MAX_TEXT].decode("utf-8", "replace")
            elif math.isfinite(value):
                self.least = min(self.least, value)
                self.greatest = max(self.greatest, value)
                self.total += value
            if self.values is not None:
                self.values[value] += 1
        if self.values is not None and len(self.values) > MAX_DISTINCT:
            self.values = None

    @property
    def common(self) -> list[tuple[Any, int]]:
        """The most frequent values, when any occurs more than once."""
        if self.values is None:
            return []
        ordered = sorted(self.values.items(), key=lambda item: (-item[1], str(item[0])))
        return ordered[:SHOWN_VALUES] if ordered and ordered[0][1] > 1 else []

    @property
    def distinct(self) -> int | None:
        """How many different values there are; None when they are too many."""
        return None if self.values is None else len(self.values)


class ColumnSummaries:
    """Summaries by key."""

    def __init__(self) -> None:
        self.by_key: dict[str, ColumnSummary] = {}

    def add(self, features: Features) -> None:
        """Take in a record."""
        for key, (dtype, values) in features.items():
            if key not in self.by_key:
                self.by_key[key] = ColumnSummary(dtype)
            self.by_key[key].add(list(values))


# ---------------------------------------------------------------------------------------------------------------------
# The first records


MAX_RECORDS = 20_000
MAX_BYTES = 256 << 20
_HEAD = 1 << 16  # bytes that tell the compression of a file


@dataclass(frozen=True, slots=True)
class _Seen:
    file: str
    images: tuple[ImageFacts, ...]
    labels: tuple[str, ...]
    offset: int
    size: int


@dataclass
class Scan:
    """What was found.

    records: read, by file. complete: files that were read to their end. compressed: those that are. damaged: those in
    which something was met that is no record or no message of TensorFlow's, or that could not be read at all.
    """

    records: Counter[str] = field(default_factory=Counter)
    complete: set[str] = field(default_factory=set)
    compressed: set[str] = field(default_factory=set)
    damaged: set[str] = field(default_factory=set)
    statistics: dict[str, Any] = field(default_factory=dict)
    classes: dict[str, Counter[str]] = field(default_factory=dict)
    formats: Counter[str] = field(default_factory=Counter)
    columns: ColumnSummaries = field(default_factory=ColumnSummaries)
    reader: ContentReader | None = None

    @property
    def num_records(self) -> int:
        return sum(self.records.values())


def scan_dataset(
    shards: Sequence[ShardFile],
    storage: Storage,
    reader: ContentReader | None = None,
    max_records: int = MAX_RECORDS,
    max_bytes: int = MAX_BYTES,
) -> Scan:
    """Read the first records of each shard. reader: None when the keys have to be guessed from the first record."""
    scan = Scan(reader=reader)
    seen: list[_Seen] = []
    share = -(-max_records // max(1, len(shards)))
    bytes_share = max_bytes // max(1, len(shards))
    for shard in shards:
        try:
            if _is_compressed(shard.uri, storage):
                scan.compressed.add(shard.name)
            for record in _first_records(shard.uri, storage, share, bytes_share):
                if record is None:
                    scan.complete.add(shard.name)
                    break
                scan.records[shard.name] += 1
                seen.append(_see(scan, shard, record))
        except (OSError, BeamTfrecordError, ValueError):
            scan.damaged.add(shard.name)
    scan.statistics = _statistics(seen)
    return scan


def _is_compressed(uri: str, storage: Storage) -> bool:
    with storage.open(uri) as file:
        return detect_compression(file.read(_HEAD), uri) != "none"


def _first_records(uri: str, storage: Storage, most: int, most_bytes: int) -> Iterator[Record | None]:
    """The first records, and None when these are all. Raises RecordFault, and what the storage raises."""
    read = 0
    with storage.open(uri) as file:
        for record in read_records(file, uri):
            if record.index >= most or read > most_bytes:
                return
            read += len(record.data)
            yield record
    yield None


def _see(scan: Scan, shard: ShardFile, record: Record) -> _Seen:
    """What there is to know of a record. Raises ValueError when it is no Example."""
    view = view_record(record.data)
    if scan.reader is None:
        scan.reader = guessed_reader({*view.features, *view.steps})
    content = scan.reader.read(view)
    labels = content.all_labels
    scan.classes.setdefault(shard.split, Counter()).update(labels)
    if not content.pictures:
        scan.columns.add(view.features)
    images = tuple(_facts(picture, scan.formats) for picture in content.pictures)
    return _Seen(shard.name, images, labels, record.offset, len(record.data) + FRAME_SIZE)


def _facts(picture: PictureView, formats: Counter[str]) -> ImageFacts:
    from PIL import Image

    from beam_tfrecord.images.safety import DECODE_ERRORS

    width, height, name = picture.width, picture.height, "unknown"
    if picture.shape is not None:
        name = f"raw/{picture.shape[2]}/{picture.dtype}"
    else:
        try:
            image = Image.open(io.BytesIO(picture.data))
            width, height = image.size
            dtype = "uint16" if image.mode.startswith("I") else "uint8"
            name = f"{str(image.format).lower()}/{len(image.getbands())}/{dtype}"
        except DECODE_ERRORS:
            pass
    formats[name] += 1
    areas = tuple(max(0.0, (box.xmax - box.xmin) * (box.ymax - box.ymin)) for box in picture.boxes)
    return ImageFacts(max(width, 1), max(height, 1), len(picture.data), areas)


def _statistics(seen: Sequence[_Seen]) -> dict[str, Any]:
    """The same as the statistics that are taken while records are written."""
    labels = Counter(label for record in seen for label in record.labels)
    has_boxes = any(facts.box_areas for record in seen for facts in record.images)
    is_sequence = any(len(record.images) > 1 for record in seen)
    shards: dict[str, ShardStatistics] = {}
    for record in seen:
        if record.file not in shards:
            shards[record.file] = ShardStatistics(labels, has_boxes=has_boxes, is_sequence=is_sequence)
        shards[record.file].add(record.images, record.labels, record.offset, record.size)
    return merge_statistics((file, statistics.to_json()) for file, statistics in shards.items())
