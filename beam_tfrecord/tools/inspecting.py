"""Findings without a conversion: what stands out in the pictures of a source, or of a finished dataset.

Both are what a conversion would tell, found by the same code: a source is read, looked at and not stored; a dataset is
a source whose records keep their order.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from beam_tfrecord.conversion.job import Job, prepare_job
from beam_tfrecord.conversion.planning.survey import natural_key
from beam_tfrecord.conversion.writing.names import read_name
from beam_tfrecord.conversion.writing.staging import read_lines, staged_of
from beam_tfrecord.core.elements import Finding, WrittenShard
from beam_tfrecord.core.public_text import writable_text
from beam_tfrecord.datasets.metadata import finding_line
from beam_tfrecord.datasets.shard_files import FoundFiles, find_files
from beam_tfrecord.errors import REJECT_CODES, WARNING_CODES, DatasetError
from beam_tfrecord.options.config import ConvertConfig, InsightConfig, ShardConfig
from beam_tfrecord.publishing.gathering import Gathered
from beam_tfrecord.publishing.insights import MOST_LINES, find_insights
from beam_tfrecord.publishing.leaks import find_copies
from beam_tfrecord.publishing.near_rows import PASS_SHARD
from beam_tfrecord.publishing.publish import read_findings
from beam_tfrecord.storage import Storage
from beam_tfrecord.tools.extracting.as_input import dataset_source, in_order

# What tells most comes first; codes that are not named here follow by name.
_FIRST = ("split_leak", "near_leak", "label_conflict", "duplicate_content", "near_duplicate")


@dataclass(frozen=True)
class Found:
    """A finding, and the ids of its row and of the row that it is like ('' where there is none)."""

    finding: Finding
    id: str = ""
    other_id: str = ""

    def to_json(self) -> dict[str, Any]:
        """code, id, origin, uri, message, score, other and other_id; the last three where there are any."""
        told = {
            name: value for name, value in asdict(self.finding).items() if name != "stage" and value not in (None, "")
        }
        ids = {"id": self.id, **({"other_id": self.other_id} if self.other_id else {})}
        return {"code": self.finding.code, **ids, "origin": self.finding.origin, "uri": self.finding.uri, **told}


@dataclass(frozen=True)
class Inspection:
    """Everything that stands out.

    rows: that were read. pictures: that would be stored, or are, and looked_at: those whose pixels were looked at.
    found: how many findings there are, by code. findings: the worst first, of each code at most so many. notes: what
    cannot be told.
    """

    rows: int
    pictures: int
    looked_at: int
    found: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Found, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "rows": self.rows,
            "pictures": self.pictures,
            "looked_at": self.looked_at,
            "found": dict(self.found),
            "findings": [found.to_json() for found in self.findings],
            "notes": list(self.notes),
        }

    def lines(self) -> bytes:
        """The findings as warnings.jsonl has them, for ``--exclude``."""
        return "".join(finding_line(found.finding) for found in self.findings).encode("utf-8", "surrogateescape")


def inspection_from_json(data: bytes) -> Inspection:
    """The inspection in JSON made of :meth:`Inspection.to_json`."""
    values = json.loads(data)
    findings = tuple(
        Found(
            Finding(
                own["origin"],
                own["uri"],
                "inspect",
                own["code"],
                own["message"],
                own.get("score"),
                own.get("other", ""),
            ),
            own["id"],
            own.get("other_id", ""),
        )
        for own in values.pop("findings")
    )
    return Inspection(**{**values, "findings": findings, "notes": tuple(values["notes"])})


# ---------------------------------------------------------------------------------------------------------------------
# What is looked at


def job_for_source(config: ConvertConfig, storage: Storage) -> Job:
    """The job that looks at the inputs as a conversion with these options would store them. Raises ConfigError or
    ManifestError."""
    return prepare_job(_looking(config), storage)


def job_for_dataset(config: ConvertConfig, found: FoundFiles, storage: Storage) -> Job:
    """The job that looks at records as they are. found: what is at the place that is the input."""
    if found.facts is not None:
        source = dataset_source(config.manifest.input[0].uri, found)
        return prepare_job(_looking(config), storage, sources=(source,))
    job = job_for_source(config, storage)
    return replace(job, sources=tuple(map(in_order, job.sources)))


def _looking(config: ConvertConfig) -> ConvertConfig:
    return replace(config, insight=InsightConfig(), shards=ShardConfig(shard_size=PASS_SHARD))


def find_dataset(place: str, storage: Storage) -> FoundFiles:
    """The files of a dataset. Raises DatasetError where there is none."""
    try:
        return find_files((place,), storage)
    except DatasetError as error:
        raise DatasetError(f"{error}; a source that is not converted yet is named with --input") from None


def dataset_options(place: str, found: FoundFiles) -> tuple[dict[str, Any], tuple[str, ...]]:
    """(the options that read the records at a place as they are, what cannot be told of them)."""
    options: dict[str, Any] = {"input": place, "format": "tfrecord", "orientation": "ignore"}
    if found.facts is None:
        return options, (f"{found.trouble}: it is not used",) if found.trouble else ()
    stated = found.facts.conversion.get("options", {})
    if isinstance(stated.get("max_pixels"), int):
        options["max_pixels"] = stated["max_pixels"]
    if stated.get("image_format") == "raw":
        options["image_format"] = "raw"
    group = stated.get("group_column")
    if isinstance(group, str) and group in found.facts.specs:
        options["group_column"] = group
        return options, ()
    note = f"the records do not hold the groups ({group}): leaks between groups of one split cannot be told"
    return options, (note,) if group else ()


# ---------------------------------------------------------------------------------------------------------------------
# What is told of it


def inspect_looks(gathered: Gathered, folder: str, storage: Storage, *, is_dataset: bool) -> Inspection:
    """Everything that stands out among the pictures whose looks are staged in a folder. gathered: its shards sorted.

    is_dataset: whether they are records of a dataset, where one picture that several rows named is stored several
    times.
    """
    shards = gathered.shards
    insights = find_insights(shards, folder, storage, lambda key: "", gathered.classes)
    rejects = read_findings(shards, "rejects", folder, storage)
    findings = [*rejects, *find_copies(shards, folder, storage), *insights.findings]
    if is_dataset:
        findings = [finding for finding in findings if not _is_repeated(finding)]
    counts = Counter(finding.code for finding in findings)
    for code, count in insights.told["found"].items():
        if counts[code] >= MOST_LINES:  # only the worst of them are here
            counts[code] = count
    ids = _ids_of(findings, shards, folder, storage)
    return Inspection(
        rows=gathered.num_rows - sum(gathered.excluded.values()),
        pictures=insights.told["pictures"],
        looked_at=insights.told["looked_at"],
        found={code: counts[code] for code in sorted(counts, key=_rank)},
        findings=tuple(
            Found(own, ids.get((own.origin, own.uri), ""), ids.get(("", own.other), ""))
            for own in sorted(findings, key=_finding_rank)
        ),
    )


def _rank(code: str) -> tuple[int, str]:
    """Rows that cannot be looked at, then what tells most."""
    if code in REJECT_CODES and code not in WARNING_CODES:
        return 0, code
    return (1 + _FIRST.index(code) if code in _FIRST else 1 + len(_FIRST)), code


def _finding_rank(finding: Finding) -> tuple[Any, ...]:
    return *_rank(finding.code), -(finding.score or 0.0), natural_key(finding.origin), finding.message


def _is_repeated(finding: Finding) -> bool:
    """Whether records of one picture are told to be alike: the same bytes under the same name."""
    is_copy = finding.code == "duplicate_content" or (finding.code == "label_conflict" and finding.score == 1.0)
    return is_copy and bool(finding.other) and _named(finding.uri) == _named(finding.other)


def _named(uri: str) -> str:
    """What a record calls its picture: the uri is ``file!/number/name``."""
    return uri.partition("!/")[2].partition("/")[2]


def _ids_of(
    findings: Iterable[Finding], shards: Sequence[WrittenShard], folder: str, storage: Storage
) -> dict[tuple[str, str], str]:
    """Ids by origin and uri; of pictures that others are like, by ('', uri)."""
    wanted = {(own.origin, own.uri) for own in findings} | {("", own.other) for own in findings if own.other}
    found: dict[tuple[str, str], str] = {}
    for shard in shards:
        if not shard.num_records:
            continue
        staged = staged_of(folder, shard)
        for line, name in zip(read_lines(storage, staged.items), read_lines(storage, staged.names), strict=True):
            _, origin, uri, _ = map(writable_text, line.decode("utf-8", "surrogateescape").split("\t"))
            for place in ((origin, uri), ("", uri)):
                if place in wanted:
                    found.setdefault(place, read_name(name).id)
    return found
