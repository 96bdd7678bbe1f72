"""All that the metadata of a finished dataset is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from beam_tfrecord.annotations.base import FeatureSpec, Schema


@dataclass(frozen=True, slots=True)
class PublishedShard:
    """A shard under its final name.

    file: name in the folder of the dataset. bytes: size of the file. payload_bytes: sum of the lengths of its records,
    without framing. crc32c: of the file's bytes, compressed or not, eight hex digits.
    """

    file: str
    records: int
    bytes: int
    payload_bytes: int
    crc32c: str


@dataclass(frozen=True)
class DatasetDescription:
    """What a conversion made.

    name: of the dataset, as people spell it. specs: types of exactly the features that the records have. splits: the
    shards of each split, in order. rows: items; source_rows: lines of the manifests that made them; ignored: files that
    are no data. rejected, changed, warnings: counts by code or reason; excluded: rows that were chosen away, by option;
    unmatched: what options of choosing named and nothing had. objects: how
    many were found, stored, dropped, rejected with their rows and excluded. classes: uses of each label, by split.
    formats: images by ``format/channels/dtype``. rows_by_input: items of each source. inputs: the account of each,
    as plain values. options: as they were resolved.
    status: ``published``, ``withheld`` (too many rejects) or ``empty``; of the last two only the staging place tells.
    has_array_record: whether an ArrayRecord file lies beside each shard. staged: where the shards of a conversion that
    is not published lie, by the names that they would get: paths that start from the folder of the metadata.
    statistics: of the records, as :func:`beam_tfrecord.conversion.writing.statistics.merge_statistics` gives them.
    """

    name: str
    schema: Schema
    specs: tuple[FeatureSpec, ...]
    splits: Mapping[str, tuple[PublishedShard, ...]]
    compression: str
    rows: int
    source_rows: int
    ignored: int
    rejected: Mapping[str, int] = field(default_factory=dict)
    excluded: Mapping[str, int] = field(default_factory=dict)
    unmatched: Sequence[str] = ()
    objects: Mapping[str, int] = field(default_factory=dict)
    changed: Mapping[str, int] = field(default_factory=dict)
    warnings: Mapping[str, int] = field(default_factory=dict)
    classes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    formats: Mapping[str, int] = field(default_factory=dict)
    rows_by_input: Mapping[str, int] = field(default_factory=dict)
    inputs: Sequence[Mapping[str, Any]] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    status: str = "published"
    has_array_record: bool = False
    statistics: Mapping[str, Any] = field(default_factory=dict)
    staged: Mapping[str, str] = field(default_factory=dict)

    @property
    def written(self) -> int:
        """Records in all shards."""
        return sum(shard.records for shards in self.splits.values() for shard in shards)
