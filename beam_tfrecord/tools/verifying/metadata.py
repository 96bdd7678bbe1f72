"""Whether the metadata files of a dataset agree with one another and with what the shards hold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from beam_tfrecord.conversion.writing.statistics import places_of
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.datasets.metadata import CONVERSION, DATASET_INFO, STATISTICS
from beam_tfrecord.datasets.metadata.labels import label_line
from beam_tfrecord.datasets.metadata.shape import read_statistics, shape_troubles
from beam_tfrecord.datasets.metadata.text import utf8
from beam_tfrecord.datasets.published import PUBLISHED, REJECTS_FILE, WARNINGS_FILE
from beam_tfrecord.datasets.tfds_info import FEATURES, TfdsInfo, class_labels, read_json, read_tfds_info, tfds_stem
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.storage import Storage
from beam_tfrecord.tfrecord import array_record_name, parse_shard_name
from beam_tfrecord.tools.verifying.faults import Fault
from beam_tfrecord.tools.verifying.shards import ShardReport

LABELS, LABEL_MAP = "labels.txt", "label_map.pbtxt"
_ITEM = re.compile(r'item\s*\{\s*id:\s*(-?\d+)\s+name:\s*"((?:[^"\\]|\\.)*)"\s*\}')
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def _fault(file: str, cause: str, code: str = "wrong_metadata") -> Fault:
    return Fault(file, None, None, code, cause)


def check_conversion(
    facts: DatasetFacts, reports: Sequence[ShardReport], folder: str, storage: Storage
) -> Iterator[Fault]:
    """Whether conversion.json is whole, its numbers add up, and what else tells of labels, findings and
    images tells the same."""
    damaged = [_fault(CONVERSION, f"it is damaged: {trouble}") for trouble in shape_troubles(facts.conversion)]
    yield from damaged
    if not damaged:
        yield from _check_sums(facts)
        yield from _check_classes(facts, reports)
        yield from _check_findings(facts, folder, storage)
        yield from _check_statistics(facts, folder, storage)


def _check_sums(facts: DatasetFacts) -> Iterator[Fault]:
    conversion = facts.conversion
    if conversion["status"] != PUBLISHED:
        yield _fault(CONVERSION, f"its status is {conversion['status']!r}, not {PUBLISHED!r}")
    total = 0
    for split, shards in sorted(facts.splits.items()):
        stated = conversion["splits"][split]
        records = sum(shard.records for shard in shards)
        total += records
        if stated["records"] != records:
            yield _fault(
                CONVERSION, f"split {split}: {stated['records']} records are stated, but its shards state {records}"
            )
        yield from _check_shard_names(facts, split)
    rejected = conversion["rejected"]
    excluded = conversion.get("excluded", {"total": 0, "by_option": {}})  # earlier versions could choose nothing away
    ended = conversion["written"] + rejected["total"] + excluded["total"]
    pairs = (
        ("written", conversion["written"], "the shards state", total),
        ("rejected.total", rejected["total"], "by_code adds up to", sum(rejected["by_code"].values())),
        ("excluded.total", excluded["total"], "by_option adds up to", sum(excluded["by_option"].values())),
        ("rows", conversion["rows"], "written, rejected and excluded add up to", ended),
    )
    for name, stated, what, found in pairs:
        if stated != found:
            yield _fault(CONVERSION, f"{name} is {stated}, but {what} {found}")


def _check_shard_names(facts: DatasetFacts, split: str) -> Iterator[Fault]:
    shards = facts.splits[split]
    for number, shard in enumerate(shards):
        name = parse_shard_name(shard.file)
        if name is None or (name.split, name.index, name.count) != (split, number, len(shards)):
            yield _fault(
                CONVERSION, f"{shard.file} is no name for shard {number} of the {len(shards)} of split {split}"
            )


def _check_classes(facts: DatasetFacts, reports: Sequence[ShardReport]) -> Iterator[Fault]:
    """Whether labels are used as often as stated, in splits of which every record was seen."""
    for split in sorted(facts.splits):
        own = [report for report in reports if report.split == split]
        if not all(report.is_whole for report in own):
            continue
        found: Counter[str] = Counter()
        for report in own:
            for number, count in report.labels.items():
                if number in facts.label_names:
                    found[facts.label_names[number]] += count
        stated = {name: count for name, count in facts.conversion["classes"].get(split, {}).items() if count}
        for name in sorted(found.keys() | stated.keys()):
            if found[name] != stated.get(name, 0):
                yield _fault(
                    CONVERSION,
                    f"split {split}: label {name!r} is used {found[name]} times, but {stated.get(name, 0)} are stated",
                    "wrong_count",
                )


def _check_findings(facts: DatasetFacts, folder: str, storage: Storage) -> Iterator[Fault]:
    """Whether rejects.jsonl and warnings.jsonl have as many lines as conversion.json states."""
    rejected, warnings = facts.conversion["rejected"]["total"], sum(facts.conversion["warnings"].values())
    for name, stated in ((REJECTS_FILE, rejected), (WARNINGS_FILE, warnings)):
        uri = f"{folder}/{name}"
        if not storage.is_file(uri):
            if stated:
                yield _fault(name, "the file is not there", "missing_file")
            continue
        with storage.open(uri) as file:
            lines = sum(1 for _ in file)
        if lines != stated:
            yield _fault(name, f"it has {lines:,} lines, but {CONVERSION} counts {stated:,}", "wrong_count")


def _check_statistics(facts: DatasetFacts, folder: str, storage: Storage) -> Iterator[Fault]:
    """Whether statistics.json, where there is one, tells of as many images and of records that conversion.json has."""
    try:
        statistics = read_statistics(folder, storage)
    except DatasetError as error:
        yield _fault(STATISTICS, f"it {str(error).removeprefix(f'{folder}/{STATISTICS}').strip()}")
        return
    records = {shard.file: shard.records for shard in facts.shards}
    for place in places_of(statistics):
        file, record = place["file"], place["record"]
        if file and not record < records.get(file, 0):
            yield _fault(STATISTICS, f"it tells of record {record} of {file}, which {CONVERSION} does not have")
            break
    formats = facts.conversion.get("image_formats")
    if "images" in statistics and formats is not None:
        found, stated = sum(statistics["images"]["shapes"].values()), sum(formats.values())
        if found != stated:
            yield _fault(STATISTICS, f"it counts {found:,} images, but {CONVERSION} has {stated:,}")


def check_tfds(facts: DatasetFacts, folder: str, storage: Storage) -> Iterator[Fault]:
    """Whether dataset_info.json states the same splits, shards and numbers as conversion.json."""
    try:
        info = read_tfds_info(folder, storage)
    except DatasetError as error:
        yield _fault(DATASET_INFO, str(error))
        return
    if info is None:
        return  # told as a missing file
    stated = {split: shards for split, shards in facts.splits.items() if shards}
    if set(info.splits) != set(stated):
        yield _fault(DATASET_INFO, f"it has the splits {_listed(info.splits)}, but {CONVERSION} has {_listed(stated)}")
    for split in sorted(set(info.splits) & set(stated)):
        own, shards = info.splits[split], stated[split]
        files = [shard.file for shard in shards]
        if info.file_format == "array_record":  # where the shards are compressed, only their twins can be loaded
            files = list(map(array_record_name, files))
        numbers = (
            ("shardLengths", list(own.lengths), [shard.records for shard in shards]),
            ("numBytes", own.num_bytes, sum(shard.payload_bytes for shard in shards)),
            ("filepathTemplate", list(own.files), files),
        )
        for name, found, expected in numbers:
            if found != expected:
                yield _fault(DATASET_INFO, f"split {split}: {name} gives {found}, but {CONVERSION} has {expected}")


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(sorted(names)) or "none"


def check_tfds_counts(info: TfdsInfo, reports: Sequence[ShardReport]) -> Iterator[Fault]:
    """Whether the files that a dataset_info.json of TensorFlow Datasets names have as many records."""
    by_name = {report.name.rpartition("/")[2]: report for report in reports}
    for split, own in sorted(info.splits.items()):
        for name, length in zip(own.files, own.lengths, strict=True):
            report = by_name.get(name)
            if report is not None and report.records != length:
                cause = f"the file has {report.records:,} whole records, but {DATASET_INFO} states {length:,}"
                yield _fault(name, cause, "wrong_count")
        seen = [by_name[name] for name in own.files if name in by_name]
        found = sum(report.payload_bytes for report in seen)
        if own.num_bytes and len(seen) == len(own.files) and all(r.is_whole for r in seen) and found != own.num_bytes:
            cause = f"split {split}: numBytes is {own.num_bytes}, but the records have {found} bytes"
            yield _fault(DATASET_INFO, cause, "wrong_size")


# ---------------------------------------------------------------------------------------------------------------------
# Names of labels


def check_label_files(facts: DatasetFacts, folder: str, storage: Storage) -> Iterator[Fault]:
    """Whether the files that tell names of labels tell those of conversion.json."""
    names = facts.label_names
    lines = _text(f"{folder}/{LABELS}", storage)
    if lines is not None:
        expected = [utf8(label_line(name)).decode() for name in names.values()]
        yield from _differences(
            LABELS, dict(enumerate(lines.splitlines(), 1)), dict(enumerate(expected, 1)), "name in line"
        )
    text = _text(f"{folder}/{LABEL_MAP}", storage)
    if text is not None:
        found = {int(number): _unescaped(name) for number, name in _ITEM.findall(text)}
        yield from _differences(LABEL_MAP, found, names, "label with the id")
    yield from _check_tfds_labels(folder, storage)


def _text(uri: str, storage: Storage) -> str | None:
    if not storage.is_file(uri):
        return None
    with storage.open(uri) as file:
        return file.read().decode("utf-8", "backslashreplace")


def _unescaped(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code, 8)) if code.isdigit() else _ESCAPES.get(code, code)

    return re.sub(r"\\([0-7]{3}|.)", one, text, flags=re.DOTALL)


def _differences(file: str, found: Mapping[int, str], expected: Mapping[int, str], what: str) -> Iterator[Fault]:
    if len(found) != len(expected):
        yield _fault(file, f"it has {len(found)} labels, but {CONVERSION} has {len(expected)}")
        return
    for number, name in expected.items():
        if found.get(number) != name:
            told = f"the {what} {number} is {found.get(number)!r}, but {CONVERSION} has {name!r}"
            yield _fault(file, told)
            return


def _check_tfds_labels(folder: str, storage: Storage) -> Iterator[Fault]:
    """Whether each class label in features.json has as many names as it says: TensorFlow Datasets does not look."""
    uri = f"{folder}/{FEATURES}"
    if not storage.is_file(uri):
        return
    try:
        features = read_json(uri, storage)
        numbers = {tfds_stem(path): count for path, count in class_labels(features)}
    except (DatasetError, TypeError, ValueError, AttributeError) as error:
        yield _fault(FEATURES, f"it is damaged: {error}")
        return
    for path, count in sorted(numbers.items()):
        text = _text(f"{folder}/{path}.labels.txt", storage)
        if text is None:
            yield _fault(f"{path}.labels.txt", f"the file is not there, but {FEATURES} needs it", "missing_file")
        elif len(text.splitlines()) != count:
            told = f"it has {len(text.splitlines())} names, but {FEATURES} states {count} classes"
            yield _fault(f"{path}.labels.txt", told)
