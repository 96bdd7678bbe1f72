"""From staged shards to a dataset under its final names.

The order matters: shards first, then the metadata, ``dataset_info.json`` last. A reader that waits for that file never
sees a part of a dataset. Everything here may run twice (a retried step) with the same result.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from beam_tfrecord.config import ConvertConfig
from beam_tfrecord.datasets.published import EMPTY, PUBLISHED, REJECTS_FILE, REPORT, WARNINGS_FILE, WITHHELD
from beam_tfrecord.elements import Finding, ShardInfo
from beam_tfrecord.errors import BeamTfrecordError
from beam_tfrecord.job import PUBLISHING, Job
from beam_tfrecord.metadata import (
    CONVERSION,
    DATASET_INFO,
    DatasetDescription,
    PublishedShard,
    dataset_files,
    finding_line,
    read_finding_lines,
)
from beam_tfrecord.planning.dataset_plan import DatasetPlan
from beam_tfrecord.planning.survey import natural_key
from beam_tfrecord.publishing.leaks import find_copies
from beam_tfrecord.report import build_report
from beam_tfrecord.storage import Storage, name_of, public_uri
from beam_tfrecord.tfrecord import INDEX_SUFFIX, array_record_name, parse_shard_name, shard_name
from beam_tfrecord.writing.records import record_specs
from beam_tfrecord.writing.staging import read_lines, staged_shard, staging_folder
from beam_tfrecord.writing.statistics import merge_statistics


class ConservationError(Exception):
    """Rows were lost or counted twice: a bug of this project, never a fault of the input."""


@dataclass(frozen=True)
class Summary:
    """How a conversion ended: what the command line tells at the end.

    status: ``published``; ``withheld`` (more rejects than --max_rejects); ``empty`` (no record was written).
    """

    status: str
    output: str
    rows: int
    written: int
    ignored: int
    rejected: Mapping[str, int]
    warnings: Mapping[str, int]
    changed: Mapping[str, int]
    splits: Mapping[str, int]
    shards: int
    classes: int
    examples: tuple[Finding, ...] = field(default=())


@dataclass(frozen=True)
class StagedFile:
    """A complete TFRecord file under its staged name, and what it holds."""

    split: str
    path: str
    index_path: str
    num_records: int
    num_bytes: int
    payload_bytes: int
    crc32c: str
    array_record_path: str = ""


def staged_files(infos: Iterable[ShardInfo], output: str) -> list[StagedFile]:
    """The files that the shard writers left. A shard all of whose entries were rejected has none."""
    return [
        StagedFile(
            info.split,
            info.path,
            staged_shard(output, info.split, info.index).index_file,
            info.num_records,
            info.num_bytes,
            info.payload_bytes,
            info.crc32c,
            staged_shard(output, info.split, info.index).array_record,
        )
        for info in infos
        if info.path
    ]


@dataclass(frozen=True)
class NamedShard:
    """A written shard and its final name."""

    staged: StagedFile
    file: str


def publish_dataset(
    infos: Iterable[ShardInfo], plan: DatasetPlan, job: Job, storage: Storage, files: Sequence[StagedFile] | None = None
) -> Summary:
    """Check the counts, and publish the dataset unless too many rows were rejected.

    files: the shards, when another sink than the planned writer made them. Raises ConservationError when rows are
    missing or doubled.
    """
    infos = sorted(infos, key=lambda info: (info.split, info.index))
    config = job.config
    staged = staged_files(infos, config.output.output) if files is None else files
    check_conservation(infos, staged, plan)
    shards = name_shards(staged, config.shards.compression)
    rejects = read_findings(infos, "rejects", config.output.output, storage)
    warnings = read_findings(infos, "warnings", config.output.output, storage)
    copies = find_copies(infos, config.output.output, storage)
    warnings = sorted([*warnings, *copies], key=finding_key)
    status = decide(
        rows=sum(info.num_rows for info in infos),
        rejected=len(rejects),
        written=sum(info.num_records for info in infos),
        limit=config.output.max_rejects,
    )
    description = describe(infos, shards, plan, job, warnings, status)
    findings = {
        REJECTS_FILE: "".join(map(finding_line, rejects)).encode("utf-8", "surrogateescape"),
        WARNINGS_FILE: "".join(map(finding_line, warnings)).encode("utf-8", "surrogateescape"),
    }
    metadata = {**dataset_files(description), **findings}
    if status == PUBLISHED:
        publish_files(shards, metadata, config, storage)
    else:
        for name in (CONVERSION, REJECTS_FILE, WARNINGS_FILE):
            storage.write_bytes(f"{staging_folder(config.output.output)}/{name}", metadata[name])
    return summarize(description, rejects, config)


def check_conservation(infos: Sequence[ShardInfo], files: Sequence[StagedFile], plan: DatasetPlan) -> None:
    """rows read == records written + rejects, for every input and in total; and every record lies in a file."""
    found: Counter[int] = Counter()
    for info in infos:
        found.update(info.rows_by_input)
        if info.num_records + sum(info.rejected.values()) != info.num_rows:
            raise ConservationError(f"shard {info.split}-{info.index}: {info}")
    in_files = sum(file.num_records for file in files)
    encoded = sum(info.num_records for info in infos)
    if in_files != encoded:
        raise ConservationError(f"{encoded} records were made, {in_files} lie in the files")
    expected = {number: rows for number, rows in plan.survey.rows_by_input.items() if rows}
    if dict(found) != expected:
        raise ConservationError(f"rows by input: {expected} were read, {dict(found)} came to the shards")


def decide(rows: int, rejected: int, written: int, limit: int | float) -> str:
    """Whether the dataset may be published."""
    if written == 0:
        return EMPTY
    allowed = limit * rows if isinstance(limit, float) else limit
    return WITHHELD if rejected > allowed else PUBLISHED


def name_shards(files: Sequence[StagedFile], compression: str) -> list[NamedShard]:
    """Final names, numbered without gaps in the order of the staged files; empty files are left out."""
    named = []
    for split in sorted({file.split for file in files}):
        own = [file for file in files if file.split == split and file.num_records]
        named += [NamedShard(file, shard_name(split, number, len(own), compression)) for number, file in enumerate(own)]
    return named


def finding_key(finding: Finding) -> tuple[Any, ...]:
    """Findings in the order of the input."""
    return natural_key(finding.origin), finding.code, finding.message


def read_findings(infos: Iterable[ShardInfo], kind: str, output: str, storage: Storage) -> list[Finding]:
    """The rejects or warnings of all shards, in the order of the input."""
    findings: list[Finding] = []
    for info in infos:
        counts = info.rejected if kind == "rejects" else info.warnings
        if counts:
            uri = staged_shard(output, info.split, info.index).of(kind)
            findings += read_finding_lines(read_lines(storage, uri), uri)
    return sorted(findings, key=finding_key)


def _added_up(infos: Iterable[ShardInfo], name: str) -> dict[str, int]:
    total: Counter[str] = Counter()
    for info in infos:
        total.update(getattr(info, name))
    return dict(sorted(total.items()))


def describe(
    infos: Sequence[ShardInfo],
    shards: Sequence[NamedShard],
    plan: DatasetPlan,
    job: Job,
    warnings: Sequence[Finding],
    status: str,
) -> DatasetDescription:
    """Everything that the metadata tells."""
    splits: dict[str, list[PublishedShard]] = {}
    for shard in shards:
        file = shard.staged
        splits.setdefault(file.split, []).append(
            PublishedShard(shard.file, file.num_records, file.num_bytes, file.payload_bytes, file.crc32c)
        )
    classes = {split: _added_up((info for info in infos if info.split == split), "classes") for split in sorted(splits)}
    formats = _added_up(infos, "formats")
    file_of = {shard.staged.path: shard.file for shard in shards}
    return DatasetDescription(
        name=dataset_name(job.config),
        schema=plan.schema,
        specs=tuple(record_specs(plan.schema, formats)),
        splits={split: tuple(splits[split]) for split in sorted(splits)},
        compression=job.config.shards.compression,
        rows=sum(info.num_rows for info in infos),
        source_rows=sum(info.source_rows for info in infos),
        ignored=plan.survey.ignored,
        rejected=_added_up(infos, "rejected"),
        changed=_added_up(infos, "changed"),
        warnings=dict(sorted(Counter(warning.code for warning in warnings).items())),
        classes=classes,
        formats=formats,
        rows_by_input={
            public_uri(source.uri): plan.survey.rows_by_input.get(number, 0)
            for number, source in enumerate(job.sources)
        },
        options=public_options(job.config),
        status=status,
        has_array_record=job.config.output.array_record,
        statistics=merge_statistics((file_of.get(info.path, ""), info.statistics) for info in infos),
    )


def public_options(config: ConvertConfig) -> dict[str, Any]:
    """The options as they may be shown: without the queries of signed urls."""
    options = config.to_json()
    options["input"] = [{**place, "uri": public_uri(place["uri"])} for place in options["input"]]
    return options


def dataset_name(config: ConvertConfig) -> str:
    """The name given, else that of the output folder."""
    return config.output.name or name_of(config.output.output) or "dataset"


def publish_files(
    shards: Sequence[NamedShard], files: Mapping[str, bytes], config: ConvertConfig, storage: Storage
) -> None:
    """Move the shards and write the metadata; the old dataset goes first, ``dataset_info.json`` comes last."""
    output = config.output.output
    with_index = config.output.index
    names = (
        [shard.file for shard in shards] + [shard.file + INDEX_SUFFIX for shard in shards if with_index] + list(files)
    )
    if config.output.array_record:
        names += [array_record_name(shard.file) for shard in shards]
    old = dataset_file_names(output, storage)
    staging = staging_folder(output)
    storage.write_bytes(f"{staging}/{PUBLISHING}", json.dumps(sorted({*names, *old, REPORT})).encode())
    if old:
        storage.delete([f"{output}/{DATASET_INFO}"])
        storage.delete(f"{output}/{name}" for name in sorted(old - {DATASET_INFO}))
    for shard in shards:
        storage.rename(shard.staged.path, f"{output}/{shard.file}")
        if with_index:
            storage.rename(shard.staged.index_path, f"{output}/{shard.file}{INDEX_SUFFIX}")
        if config.output.array_record:
            storage.rename(shard.staged.array_record_path, f"{output}/{array_record_name(shard.file)}")
    for name in sorted(set(files) - {DATASET_INFO}):
        storage.write_bytes(f"{output}/{name}", files[name])
    write_report(output, storage)
    storage.write_bytes(f"{output}/{DATASET_INFO}", files[DATASET_INFO])
    storage.delete_tree(staging)


def write_report(output: str, storage: Storage) -> None:
    """Write report.html. A place that cannot be read back is no reason to lose the dataset: there is no page then."""
    with contextlib.suppress(OSError, BeamTfrecordError):
        storage.write_bytes(f"{output}/{REPORT}", build_report(output, storage))


def dataset_file_names(output: str, storage: Storage) -> set[str]:
    """Names of the files of the dataset in a folder: those that its conversion.json lists, and its metadata."""
    present = {name_of(uri) for uri in storage.list_folder(output)} if storage.is_folder(output) else set()
    if CONVERSION not in present:
        return set()
    with storage.open(f"{output}/{CONVERSION}") as file:
        try:
            conversion = json.load(file)
        except ValueError:
            conversion = {}
    return present & set(_files_named(conversion))


def _files_named(conversion: Mapping[str, Any]) -> Iterator[str]:
    yield from (CONVERSION, DATASET_INFO, REJECTS_FILE, WARNINGS_FILE, REPORT)
    yield from conversion.get("files", ())
    for split in conversion.get("splits", {}).values():
        for shard in split.get("shards", ()):
            yield shard["file"]
            yield shard["file"] + INDEX_SUFFIX
            if parse_shard_name(shard["file"]) is not None:
                yield array_record_name(shard["file"])


def summarize(description: DatasetDescription, rejects: Sequence[Finding], config: ConvertConfig) -> Summary:
    """The summary for the terminal."""
    return Summary(
        status=description.status,
        output=config.output.output,
        rows=description.rows,
        written=description.written,
        ignored=description.ignored,
        rejected=dict(description.rejected),
        warnings=dict(description.warnings),
        changed=dict(description.changed),
        splits={name: sum(shard.records for shard in shards) for name, shards in description.splits.items()},
        shards=sum(len(shards) for shards in description.splits.values()),
        classes=len(description.schema.vocabulary),
        examples=tuple(rejects[:10]),
    )
