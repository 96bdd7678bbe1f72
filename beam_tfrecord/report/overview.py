"""The head of a report: totals, what became of the rows, the splits, and what is worth a look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from beam_tfrecord.datasets.published import EMPTY, PUBLISHED, WITHHELD
from beam_tfrecord.report.charts import Part, stacked_bar
from beam_tfrecord.report.classes import ClassBalance, split_style
from beam_tfrecord.report.dataset import Dataset
from beam_tfrecord.report.text import clean, file_size, percent, plural, shorten

NAMED = 5  # names that a sentence lists
UNBALANCED = 10.0
MAX_SHARDS = 1_000
_TOLD_BY_NAME = (
    "split_leak",
    "near_leak",
    "conflicting_label",
    "label_conflict",
)  # warnings with a notice of their own


@dataclass(frozen=True, slots=True)
class Tile:
    """A number at the top of the page."""

    label: str
    value: str
    note: str = ""
    style: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """What is worth a look. link: id of the section that tells more. style: ``good``, ``info``, ``warn`` or ``bad``."""

    text: str
    link: str = ""
    style: str = "warn"


@dataclass(frozen=True, slots=True)
class SplitRow:
    """One split. records: as text, since it may not be known."""

    name: str
    style: str
    records: str
    share: str
    shards: int
    size: str
    bar: Markup


@dataclass(frozen=True, slots=True)
class InputRow:
    """One input."""

    name: str
    rows: int
    share: str


@dataclass(frozen=True, slots=True)
class ShardRow:
    """One shard."""

    file: str
    records: str
    size: str
    crc32c: str


def tiles(dataset: Dataset, balance: ClassBalance) -> list[Tile]:
    """The numbers at the top."""
    conversion = dataset.conversion
    splits = conversion["splits"]
    num_shards = sum(len(split["shards"]) for split in splits.values())
    size = sum(shard["bytes"] for split in splits.values() for shard in split["shards"])
    written = conversion.get("written")
    found = [Tile("Records", f"{written:,}" if written is not None else "not counted", plural(len(splits), "split"))]
    images = sum(conversion.get("image_formats", {}).values())
    if dataset.has_metadata and images and images != written:
        found.append(Tile("Images", f"{images:,}", "in sequences"))
    if balance:
        in_vocabulary = len(conversion.get("labels", ())) or balance.used
        found.append(Tile("Classes", f"{in_vocabulary:,}", f"{balance.used:,} used" if balance.unused else ""))
    found.append(Tile("Size", file_size(size), plural(num_shards, "shard")))
    if dataset.has_metadata:
        rows = conversion["rows"]
        rejected = conversion["rejected"]["total"]
        found.append(Tile("Rejected", f"{rejected:,}", _of_rows(rejected, rows), "bad" if rejected else "good"))
        by_option = excluded_by_option(conversion)
        if by_option:
            told = ", ".join(f"{clean(name)} {count:,}" for name, count in sorted(by_option.items()))
            found.append(Tile("Excluded", f"{sum(by_option.values()):,}", told))
        warnings = conversion["warnings"]
        kinds = f"of {plural(len(warnings), 'kind')}" if warnings else ""
        found.append(Tile("Warnings", f"{sum(warnings.values()):,}", kinds, "warn" if warnings else "good"))
    return found


def _of_rows(count: int, rows: int) -> str:
    return f"{percent(count / rows)} of {plural(rows, 'row')}" if rows else ""


def excluded_by_option(conversion: Mapping[str, Any]) -> dict[str, int]:
    """Rows that were chosen away, by the option; none in datasets of earlier versions."""
    return {name: int(count) for name, count in conversion.get("excluded", {}).get("by_option", {}).items()}


def row_bar(conversion: Mapping[str, Any]) -> Markup:
    """What became of the rows as one bar; what is left of it was chosen away."""
    rows, written, rejected = conversion["rows"], conversion["written"], conversion["rejected"]["total"]
    excluded = sum(excluded_by_option(conversion).values())
    parts = [Part(written, "good", f"{written:,} written"), Part(rejected, "bad", f"{rejected:,} rejected")]
    told = f", {excluded:,} excluded" if excluded else ""
    return stacked_bar(parts, rows, f"{rows:,} rows: {written:,} written, {rejected:,} rejected{told}")


def input_rows(conversion: Mapping[str, Any]) -> list[InputRow]:
    """Rows by input."""
    rows = conversion.get("rows", 0)
    return [
        InputRow(shorten(clean(uri), 100), count, percent(count / rows) if rows else "")
        for uri, count in conversion.get("rows_by_input", {}).items()
    ]


def split_rows(conversion: Mapping[str, Any]) -> list[SplitRow]:
    """The splits."""
    counts = {
        name: None if any(shard["records"] is None for shard in split["shards"]) else _sum(split, "records")
        for name, split in conversion["splits"].items()
    }
    total = sum(count or 0 for count in counts.values())
    rows = []
    for place, (name, split) in enumerate(conversion["splits"].items()):
        count = counts[name]
        known = count is not None and total > 0
        share = percent((count or 0) / total) if known else ""
        told = f"{count:,}" if count is not None else "not counted"
        rows.append(
            SplitRow(
                clean(name),
                split_style(place),
                told,
                share,
                len(split["shards"]),
                file_size(_sum(split, "bytes")),
                stacked_bar([Part(count or 0, split_style(place))], total),
            )
        )
    return rows


def _sum(split: Mapping[str, Any], name: str) -> int:
    return sum(int(shard[name]) for shard in split["shards"])


def shard_rows(conversion: Mapping[str, Any]) -> list[ShardRow]:
    """The first shards."""
    shards = [shard for split in conversion["splits"].values() for shard in split["shards"]]
    return [
        ShardRow(
            clean(shard["file"]),
            f"{shard['records']:,}" if shard["records"] is not None else "not counted",
            f"{shard['bytes']:,}",
            clean(shard.get("crc32c", "")),
        )
        for shard in shards[:MAX_SHARDS]
    ]


# ---------------------------------------------------------------------------------------------------------------------
# Notices


def notices(dataset: Dataset, balance: ClassBalance, *, has_pictures: bool = True, failed: int = 0) -> list[Notice]:
    """What is worth a look, the most important first.

    has_pictures: whether any sample picture is shown. failed: how many could not be read or drawn.
    """
    conversion = dataset.conversion
    found = [
        *_status(conversion),
        *_about_rejects(conversion),
        *_about_unmatched(conversion),
        *_about_leaks(conversion, "insight" if dataset.statistics.get("insight") else "findings"),
        *_about_classes(balance),
        *_about_warnings(conversion),
    ]
    if dataset.scan is not None and dataset.scan.records != dataset.scan.total:
        of_total = f" of {dataset.scan.total:,}" if dataset.scan.total is not None else ""
        found.append(
            Notice(
                f"What is said of the content was found by reading {plural(dataset.scan.records, 'record')}{of_total}: "
                "the first of each shard.",
                style="info",
            )
        )
    if not has_pictures and conversion.get("status", PUBLISHED) == WITHHELD and conversion.get("image_formats"):
        found.append(Notice("No pictures are shown: the staged shards are not there any more.", style="info"))
    elif failed:
        told = (
            f"{plural(failed, 'sample picture')} could not be read or drawn; beam-tfrecord verify tells what is wrong."
        )
        found.insert(0, Notice(told, style="bad"))
    if dataset.scan is not None and dataset.scan.damaged:
        names = ", ".join(shorten(clean(name), 60) for name in dataset.scan.damaged[:NAMED])
        files = plural(len(dataset.scan.damaged), "file")
        told = f"{files} could not be read on ({names}); beam-tfrecord verify tells what is wrong."
        found.insert(0, Notice(told, style="bad"))
    if not dataset.has_metadata:
        found.append(
            Notice(
                "The folder has no conversion.json: this is what its TFRecord files tell by themselves.", style="info"
            )
        )
    elif not found:
        found.append(Notice("Every row became a record, and nothing stands out.", style="good"))
    return found


def _status(conversion: Mapping[str, Any]) -> Iterator[Notice]:
    status = conversion.get("status", PUBLISHED)
    if status == EMPTY:
        yield Notice("This conversion was not published: no row could be converted.", "rejects", "bad")
    elif status == WITHHELD:
        limit = conversion.get("options", {}).get("max_rejects")
        flag = "" if conversion.get("options", {}).get("writer") == "beam" else "--resume "
        told = percent(limit) if isinstance(limit, float) else f"{limit:,}" if isinstance(limit, int) else ""
        yield Notice(
            f"This conversion was not published: more rows were rejected than --max_rejects {told} allows. To publish "
            f"it all the same, run the same command with {flag}--max_rejects 100%.",
            "rejects",
            "bad",
        )


def _about_rejects(conversion: Mapping[str, Any]) -> Iterator[Notice]:
    by_code = conversion["rejected"]["by_code"]
    if by_code:
        code, most = max(by_code.items(), key=lambda item: (item[1], item[0]))
        total = sum(by_code.values())
        told = "all" if most == total else "most" if 2 * most > total else f"{most:,}"
        yield Notice(
            f"{plural(total, 'row')} ({percent(total / _rows_left(conversion))}) could not be converted, "
            f"{told} of them because of {clean(code)}.",
            "rejects",
            "bad",
        )


def _rows_left(conversion: Mapping[str, Any]) -> int:
    rows: int = conversion["rows"] - sum(excluded_by_option(conversion).values())
    return rows


def _about_unmatched(conversion: Mapping[str, Any]) -> Iterator[Notice]:
    for told in conversion.get("excluded", {}).get("unmatched", ()):
        yield Notice(f"{clean(told)}.", style="warn")


def _about_leaks(conversion: Mapping[str, Any], section: str) -> Iterator[Notice]:
    """section: that shows pictures which are nearly the same."""
    warnings = conversion.get("warnings", {})
    if warnings.get("split_leak"):
        yield Notice(
            f"The same images lie in more than one split ({plural(warnings['split_leak'], 'warning')}): results on "
            "them will look better than they are.",
            "findings",
            "bad",
        )
    if warnings.get("near_leak"):
        count = plural(warnings["near_leak"], "warning")
        yield Notice(
            f"Nearly the same pictures lie in different splits or groups ({count}): results on them will look better "
            "than they are.",
            section,
            "bad",
        )
    if warnings.get("conflicting_label"):
        count = plural(warnings["conflicting_label"], "item occurs", "items occur")
        yield Notice(f"{count} again with another label.", "findings")
    if warnings.get("label_conflict"):
        count = plural(warnings["label_conflict"], "picture occurs", "pictures occur")
        yield Notice(f"{count} again, or nearly so, with another label.", section)


def _about_classes(balance: ClassBalance) -> Iterator[Notice]:
    for split, labels in balance.missing.items():
        if labels:
            yield Notice(f"{_named(labels)} {_do(labels)} not occur in {clean(split)}.", "classes")
    if balance.unused:
        yield Notice(f"{_named(balance.unused)} of the vocabulary {_do(balance.unused)} not occur at all.", "classes")
    if balance.imbalance >= UNBALANCED:
        ratio = f"{balance.imbalance:,.0f}"
        yield Notice(
            f"The classes are unbalanced: the most frequent is used {ratio} times as often as the rarest.", "classes"
        )


def _about_warnings(conversion: Mapping[str, Any]) -> Iterator[Notice]:
    """The warnings that nothing else at the top tells of, the most frequent first."""
    others = {code: count for code, count in conversion.get("warnings", {}).items() if code not in _TOLD_BY_NAME}
    if others:
        by_count = sorted(others.items(), key=lambda item: (-item[1], item[0]))
        names = ", ".join(f"{clean(code)} {count:,}" for code, count in by_count[:NAMED])
        more = ", …" if len(by_count) > NAMED else ""
        yield Notice(f"{plural(sum(others.values()), 'warning')} about what was kept: {names}{more}.", "findings")


def _do(labels: Sequence[str]) -> str:
    return "does" if len(labels) == 1 else "do"


def _named(labels: Sequence[str]) -> str:
    """``The class a``, ``The classes a and b``, ``7 classes (a, b, c, d, e ...)``."""
    names = [shorten(clean(label), 40) for label in labels[:NAMED]]
    if len(labels) == 1:
        return f"The class {names[0]}"
    if len(labels) <= NAMED:
        return f"The classes {', '.join(names[:-1])} and {names[-1]}"
    return f"{len(labels):,} classes ({', '.join(names)} …)"
