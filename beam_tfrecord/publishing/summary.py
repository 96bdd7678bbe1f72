"""How a conversion ended, as its conversion.json tells: published, or kept in the staging place."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from beam_tfrecord.conversion.writing.staging import read_lines, staging_folder
from beam_tfrecord.core.elements import Finding
from beam_tfrecord.datasets.metadata import CONVERSION, read_finding_lines
from beam_tfrecord.datasets.published import REJECTS_FILE, REPORT, read_conversion
from beam_tfrecord.storage import Storage

SHOWN_REJECTS = 10


@dataclass(frozen=True)
class Summary:
    """How a conversion ended: what the command line tells at the end.

    status: ``published``; ``withheld`` (more rejects than --max_rejects); ``empty`` (no record was written). report:
    uri of the page about it, '' when there is none. excluded: rows that were chosen away, by option. surprises: a line
    for each thing that is surprising about an input, and for each option of choosing that matched nothing.
    """

    status: str
    output: str
    rows: int
    written: int
    ignored: int
    rejected: Mapping[str, int]
    excluded: Mapping[str, int]
    warnings: Mapping[str, int]
    changed: Mapping[str, int]
    splits: Mapping[str, int]
    shards: int
    classes: int
    examples: tuple[Finding, ...] = field(default=())
    report: str = ""
    surprises: tuple[str, ...] = ()


def read_summary(output: str, storage: Storage) -> Summary:
    """How the last conversion into a folder ended; one in the staging place is the later one."""
    staging = staging_folder(output)
    folder = staging if storage.is_file(f"{staging}/{CONVERSION}") else output
    conversion = read_conversion(folder, storage)
    rejects = f"{folder}/{REJECTS_FILE}"
    lines = itertools.islice(read_lines(storage, rejects), SHOWN_REJECTS)
    report = f"{folder}/{REPORT}"
    return summary_from(
        conversion,
        output,
        tuple(read_finding_lines(lines, rejects)),
        report if storage.is_file(report) else "",
    )


def summary_from(conversion: Mapping[str, Any], output: str, examples: tuple[Finding, ...], report: str) -> Summary:
    """The summary that a conversion.json tells."""
    splits = conversion["splits"]
    excluded = conversion.get("excluded", {})
    return Summary(
        status=conversion["status"],
        output=output,
        rows=conversion["rows"],
        written=conversion["written"],
        ignored=conversion["ignored"],
        rejected=conversion["rejected"]["by_code"],
        excluded=excluded.get("by_option", {}),
        warnings=conversion["warnings"],
        changed=conversion["changed"],
        splits={name: split["records"] for name, split in splits.items()},
        shards=sum(len(split["shards"]) for split in splits.values()),
        classes=len(conversion["labels"]),
        examples=examples,
        report=report,
        surprises=(
            *(
                f"{told['uri']}: {found['code']}: {found['message']}"
                for told in conversion.get("inputs", ())
                for found in told["surprises"]
            ),
            *excluded.get("unmatched", ()),
        ),
    )
