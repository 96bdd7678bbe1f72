"""All that a report is made of, read from the folder of a dataset."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from beam_tfrecord.conversion.writing.staging import read_lines
from beam_tfrecord.core.elements import Finding
from beam_tfrecord.datasets.facts import facts_from
from beam_tfrecord.datasets.metadata import CONVERSION, read_finding_lines
from beam_tfrecord.datasets.metadata.shape import check_shape, read_statistics
from beam_tfrecord.datasets.published import REJECTS_FILE, WARNINGS_FILE, read_conversion
from beam_tfrecord.datasets.shard_files import ShardFile, find_files
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.report.scan import MAX_RECORDS, ColumnSummary, Scan, scan_dataset
from beam_tfrecord.report.views import ContentReader
from beam_tfrecord.storage import Storage, name_of

MAX_REJECTS = 2_000
EXAMPLES_PER_CODE = 4
TABLE_RECORDS = 10_000
UNNAMED_SPLIT = "all"
SPLIT_ORDER = ("train", "training", "trainval", "validation", "valid", "val", "dev", "test", "testing")


@dataclass(frozen=True)
class ScanNote:
    """Which part of the records was read for the report.

    total: of all records, None when it is not known. damaged: files that could not be read on.
    """

    records: int
    total: int | None
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dataset:
    """A dataset as the report sees it.

    folder: uri, no slash at its end. conversion: of conversion.json, or as much of it as could be found out;
    has_metadata: the first. statistics: as
    :func:`beam_tfrecord.conversion.writing.statistics.merge_statistics` gives them.
    rejects: the first :data:`MAX_REJECTS`, some of each code. warnings: the first few of each code. columns: of a
    table. scan: when records were read for the statistics or the columns. compressed: names of the shards that are.
    places: uris of those that do not lie in the folder under their names.
    """

    folder: str
    conversion: Mapping[str, Any]
    statistics: Mapping[str, Any]
    reader: ContentReader
    has_metadata: bool = True
    rejects: tuple[Finding, ...] = ()
    warnings: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)
    columns: Mapping[str, ColumnSummary] = field(default_factory=dict)
    scan: ScanNote | None = None
    compressed: frozenset[str] = frozenset()
    places: Mapping[str, str] = field(default_factory=dict)

    def uri_of(self, file: str) -> str:
        """Where a shard lies."""
        return self.places.get(file, f"{self.folder}/{file}")


def load_dataset(folder: str, storage: Storage) -> Dataset:
    """Read what the folder tells. Raises DatasetError when it holds no dataset, or damaged metadata."""
    if storage.is_file(f"{folder}/{CONVERSION}"):
        return _own_dataset(folder, read_conversion(folder, storage), storage)
    return _foreign_dataset(folder, storage)


def _own_dataset(folder: str, conversion: Mapping[str, Any], storage: Storage) -> Dataset:
    check_shape(conversion, f"{folder}/{CONVERSION}")
    facts = facts_from(conversion)
    reader = ContentReader(facts.keys, facts.label_names)
    counts = {"source_rows": conversion["rows"]}  # as where every row is one
    conversion = {**counts, **conversion, "splits": in_usual_order(conversion["splits"])}
    places = _staged_places(folder, conversion)
    shards = [
        ShardFile(places.get(shard.file, f"{folder}/{shard.file}"), shard.file, split)
        for split, own in facts.splits.items()
        for shard in own
    ]
    statistics = read_statistics(folder, storage)
    is_counted = "images" in statistics
    is_table = not conversion.get("image_formats")
    scan = None
    if not _has_samples(statistics) or is_table:
        scan = scan_dataset(shards, storage, reader, TABLE_RECORDS if is_table else MAX_RECORDS)
        statistics = {**scan.statistics, **statistics, "samples": scan.statistics["samples"]}
    return Dataset(
        folder=folder,
        conversion=conversion,
        statistics=statistics,
        reader=reader,
        rejects=tuple(
            _some_of_each(
                f"{folder}/{REJECTS_FILE}", fair_shares(conversion["rejected"]["by_code"], MAX_REJECTS), storage
            )
        ),
        warnings=_by_code(
            _some_of_each(
                f"{folder}/{WARNINGS_FILE}",
                {code: min(count, EXAMPLES_PER_CODE) for code, count in conversion["warnings"].items()},
                storage,
            )
        ),
        columns=scan.columns.by_key if scan else {},
        scan=_note_of(scan, conversion["written"]) if scan and (is_table or not is_counted) else None,
        compressed=frozenset(shard.name for shard in shards if facts.compression != "none"),
        places=places,
    )


def _staged_places(folder: str, conversion: Mapping[str, Any]) -> dict[str, str]:
    """Where the shards of a conversion that is not published lie: always in the staging place itself."""
    staged = conversion.get("staged")
    if not isinstance(staged, Mapping):
        return {}
    return {
        file: f"{folder}/{path}"
        for file, path in staged.items()
        if isinstance(path, str) and not path.startswith("/") and ".." not in path.split("/")
    }


def _has_samples(statistics: Mapping[str, Any]) -> bool:
    samples = statistics.get("samples", {})
    return bool(samples.get("classes") or samples.get("unlabelled"))


def _foreign_dataset(folder: str, storage: Storage) -> Dataset:
    """TFRecord files without our metadata: names and sizes, and what reading some of the records tells."""
    found = find_files([folder], storage)
    mixed = next((fault for fault in found.faults if fault.code == "mixed_datasets"), None)
    if mixed is not None:
        raise DatasetError(f"{folder}: mixed_datasets: {mixed.file}: {mixed.cause}")
    odd = [Finding(f"{folder}/{fault.file}", "", "report", fault.code, fault.cause) for fault in found.faults]
    shards = [replace(file, split=file.split or UNNAMED_SPLIT) for file in found.files]
    scan = scan_dataset(shards, storage)
    sizes = storage.sizes(f"{folder}/{shard.name}" for shard in shards)
    is_complete = len(scan.complete) == len(shards)
    splits: dict[str, dict[str, Any]] = {}
    for shard in shards:
        records = scan.records[shard.name] if shard.name in scan.complete else None
        told = {"file": shard.name, "records": records, "bytes": sizes.get(f"{folder}/{shard.name}", 0)}
        splits.setdefault(shard.split, {"shards": []})["shards"].append(told)
    classes = {split: dict(sorted(counts.items())) for split, counts in sorted(scan.classes.items()) if counts}
    conversion = {
        "name": name_of(folder) or folder,
        "splits": in_usual_order(splits),
        "classes": classes,
        "labels": sorted({label for counts in classes.values() for label in counts}),
        "image_formats": dict(sorted(scan.formats.items())),
        "message": "SequenceExample" if "frames" in scan.statistics else "Example",
        "rejected": {"total": 0, "by_code": {}},
        "written": scan.num_records if is_complete else None,
        "warnings": dict(sorted(Counter(finding.code for finding in odd).items())),
    }
    return Dataset(
        folder=folder,
        conversion=conversion,
        statistics=scan.statistics,
        reader=scan.reader or ContentReader({}),
        has_metadata=False,
        warnings=_by_code(iter(odd)),
        columns=scan.columns.by_key,
        scan=_note_of(scan, scan.num_records if is_complete else None),
        compressed=frozenset(scan.compressed),
    )


def _note_of(scan: Scan, total: int | None) -> ScanNote:
    return ScanNote(scan.num_records, total, tuple(sorted(scan.damaged)))


def in_usual_order(splits: Mapping[str, Any]) -> dict[str, Any]:
    """Splits as people list them: train, validation, test; those of other names behind them."""
    place = {name: number for number, name in enumerate(SPLIT_ORDER)}
    return {name: splits[name] for name in sorted(splits, key=lambda name: (place.get(name, len(place)), name))}


# ---------------------------------------------------------------------------------------------------------------------
# Findings


def fair_shares(counts: Mapping[str, int], most: int) -> dict[str, int]:
    """How many of each code are shown when ``most`` are shown in all: all of a rare one, equally many of the others."""
    shares: dict[str, int] = {}
    left = most
    ordered = sorted(counts.items(), key=lambda item: (item[1], item[0]))
    for place, (code, count) in enumerate(ordered):
        shares[code] = min(count, left // (len(ordered) - place))
        left -= shares[code]
    return shares


def _some_of_each(uri: str, shares: Mapping[str, int], storage: Storage) -> Iterator[Finding]:
    """The first findings of each code in the order of the file, which is read no further than needed."""
    left = Counter({code: share for code, share in shares.items() if share > 0})
    if not left:
        return
    for finding in read_finding_lines(read_lines(storage, uri), uri):
        if left[finding.code] > 0:
            left[finding.code] -= 1
            yield finding
            if not +left:
                return


def _by_code(findings: Iterator[Finding]) -> dict[str, tuple[Finding, ...]]:
    ordered = sorted(findings, key=lambda finding: finding.code)
    return {code: tuple(group) for code, group in itertools.groupby(ordered, key=lambda finding: finding.code)}
