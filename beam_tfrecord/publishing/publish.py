"""From staged shards to a dataset under its final names.

The order matters: shards first, then the metadata, ``dataset_info.json`` last. A reader that waits for that file never
sees a part of a dataset. Everything here may run twice (a retried step) with the same result.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from beam_tfrecord.conversion.job import Job
from beam_tfrecord.conversion.planning.accounts import InputAccount
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan
from beam_tfrecord.conversion.planning.survey import natural_key
from beam_tfrecord.conversion.writing.records import record_specs
from beam_tfrecord.conversion.writing.staging import read_lines, staged_of, staging_folder
from beam_tfrecord.conversion.writing.statistics import told_statistics
from beam_tfrecord.core.elements import Finding, WrittenShard
from beam_tfrecord.datasets.metadata import (
    CONVERSION,
    STATISTICS,
    DatasetDescription,
    PublishedShard,
    dataset_files,
    finding_line,
    read_finding_lines,
)
from beam_tfrecord.datasets.published import EMPTY, PUBLISHED, REJECTS_FILE, REPORT, WARNINGS_FILE, WITHHELD
from beam_tfrecord.manifests.text.spelling import spelling_decisions
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.publishing.final_names import (
    NamedShard,
    StagedFile,
    final_names,
    is_published,
    name_shards,
    one_publication,
    publish_files,
    side_by_side,
    staged_files,
    write_report,
)
from beam_tfrecord.publishing.gathering import Gathered, in_order
from beam_tfrecord.publishing.insights import Insights, find_insights
from beam_tfrecord.publishing.leaks import find_copies
from beam_tfrecord.publishing.summary import Summary, read_summary
from beam_tfrecord.storage import Storage, name_of, public_uri


class ConservationError(Exception):
    """Rows were lost or counted twice: a bug of this project, never a fault of the input."""


def publish_dataset(
    gathered: Gathered, plan: DatasetPlan, job: Job, storage: Storage, files: Sequence[StagedFile] | None = None
) -> Summary:
    """Check the counts, and publish the dataset unless too many rows were rejected.

    files: the shards, when another sink than the planned writer made them. Raises ConservationError when rows are
    missing or doubled.
    """
    gathered = in_order(gathered)
    config = job.config
    staged = staged_files(gathered.shards, config.output.output) if files is None else files
    check_conservation(gathered, staged, plan)
    shards = name_shards(staged, config.shards.compression)
    with one_publication(config.output.output, storage):
        if not is_published(shards, config.output.output, storage):  # else this step ran before, to its end
            _publish(gathered, shards, plan, job, storage)
        summary = read_summary(config.output.output, storage)
    if job.lease is not None:  # last of all, and by a step that is run again too: where it is gone, all is done
        job.lease.end_of_job(storage)
    return summary


def _publish(gathered: Gathered, shards: Sequence[NamedShard], plan: DatasetPlan, job: Job, storage: Storage) -> None:
    """Decide whether the dataset is published, and do so or keep what tells of it."""
    config = job.config
    output = config.output.output
    rejects = read_findings(gathered.shards, "rejects", output, storage)
    warnings = read_findings(gathered.shards, "warnings", output, storage)
    copies = find_copies(gathered.shards, output, storage)
    surprises = [*(surprise for told in plan.inputs for surprise in told.surprises), *plan.unmatched]
    file_of = final_names(gathered.shards, shards, output)
    insights = Insights()
    if config.insight.insight != "off":
        insights = find_insights(gathered.shards, output, storage, file_of, gathered.classes)
    warnings = sorted([*warnings, *copies, *surprises, *insights.findings], key=finding_key)
    status = decide(
        rows=plan.rows_left,
        rejected=len(rejects),
        written=gathered.num_records,
        limit=config.output.max_rejects,
    )
    told = {
        **told_statistics(gathered.statistics, file_of),
        **({"insight": insights.told} if insights.told else {}),
    }
    description = describe(gathered, shards, plan, job, warnings, status, told)
    findings = {
        REJECTS_FILE: "".join(map(finding_line, rejects)).encode("utf-8", "surrogateescape"),
        WARNINGS_FILE: "".join(map(finding_line, warnings)).encode("utf-8", "surrogateescape"),
    }
    metadata = {**dataset_files(description), **findings}
    if status == PUBLISHED:
        publish_files(shards, metadata, config, storage, lambda: job.confirm(storage))
    else:
        job.confirm(storage)
        keep_files(metadata, staging_folder(config.output.output), storage)


def keep_files(files: Mapping[str, bytes], staging: str, storage: Storage) -> None:
    """Write what tells of a conversion that is not published, its report included, beside its staged shards."""
    for name in (CONVERSION, STATISTICS, REJECTS_FILE, WARNINGS_FILE):
        storage.write_bytes(f"{staging}/{name}", files[name])
    storage.delete([f"{staging}/{REPORT}"])  # one of an earlier run would tell of that
    write_report(staging, storage)


def check_conservation(gathered: Gathered, files: Sequence[StagedFile], plan: DatasetPlan) -> None:
    """rows read == records written + rejects + rows chosen away, for every input and in total; and every record lies in
    a file."""
    if gathered.unbalanced:
        raise ConservationError(gathered.unbalanced[0])
    in_files = sum(file.num_records for file in files)
    encoded = gathered.num_records
    if in_files != encoded:
        raise ConservationError(f"{encoded} records were made, {in_files} lie in the files")
    expected = {number: rows for number, rows in plan.survey.rows_by_input.items() if rows}
    if dict(gathered.rows_by_input) != expected:
        raise ConservationError(
            f"rows by input: {expected} were read, {dict(gathered.rows_by_input)} came to the shards"
        )
    objects = gathered.objects
    # An animated image that is taken apart has its objects once in each frame.
    if sum(objects.values()) != plan.survey.objects and not plan.schema.is_sequence:
        raise ConservationError(f"{plan.survey.objects} objects were read; what became of them: {objects}")


def decide(rows: int, rejected: int, written: int, limit: int | float) -> str:
    """Whether the dataset may be published. rows: those that were not chosen away."""
    if written == 0:
        return EMPTY
    allowed = limit * rows if isinstance(limit, float) else limit
    return WITHHELD if rejected > allowed else PUBLISHED


def finding_key(finding: Finding) -> tuple[Any, ...]:
    """Findings in the order of the input."""
    return natural_key(finding.origin), finding.code, finding.message


def read_findings(shards: Iterable[WrittenShard], kind: str, output: str, storage: Storage) -> list[Finding]:
    """The rejects or warnings of all shards, in the order of the input."""
    uris = [
        staged_of(output, shard).of(kind)
        for shard in shards
        if (shard.has_rejects if kind == "rejects" else shard.has_warnings)
    ]
    found = side_by_side(lambda uri: list(read_finding_lines(read_lines(storage, uri), uri)), uris, output, storage)
    return sorted(itertools.chain.from_iterable(found), key=finding_key)


def describe(
    gathered: Gathered,
    shards: Sequence[NamedShard],
    plan: DatasetPlan,
    job: Job,
    warnings: Sequence[Finding],
    status: str,
    statistics: Mapping[str, Any],
) -> DatasetDescription:
    """Everything that the metadata tells."""
    splits: dict[str, list[PublishedShard]] = {}
    for shard in shards:
        file = shard.staged
        splits.setdefault(file.split, []).append(
            PublishedShard(shard.file, file.num_records, file.num_bytes, file.payload_bytes, file.crc32c)
        )
    staging = f"{staging_folder(job.config.output.output)}/"
    return DatasetDescription(
        name=dataset_name(job.config),
        schema=plan.schema,
        specs=tuple(record_specs(plan.schema, gathered.formats, gathered.exceptions)),
        splits={split: tuple(splits[split]) for split in sorted(splits)},
        compression=job.config.shards.compression,
        rows=gathered.num_rows,
        source_rows=gathered.source_rows,
        ignored=plan.survey.ignored,
        rejected=gathered.rejected,
        excluded=gathered.excluded,
        unmatched=[f"{found.origin}: {found.message}" for found in plan.unmatched],
        objects={"found": plan.survey.objects, **gathered.objects} if plan.survey.objects else {},
        changed=gathered.changed,
        warnings=dict(sorted(Counter(warning.code for warning in warnings).items())),
        classes={split: gathered.classes.get(split, {}) for split in sorted(splits)},
        formats=gathered.formats,
        rows_by_input={
            public_uri(source.uri): plan.survey.rows_by_input.get(number, 0)
            for number, source in enumerate(job.sources)
        },
        inputs=[told.to_json() for told in _inputs_with_spellings(gathered, plan)],
        options=public_options(job.config),
        status=status,
        has_array_record=job.config.output.array_record,
        statistics=statistics,
        staged={} if status == PUBLISHED else {shard.file: shard.staged.path.removeprefix(staging) for shard in shards},
    )


def _inputs_with_spellings(gathered: Gathered, plan: DatasetPlan) -> list[InputAccount]:
    """The accounts of the inputs; what was told of names when the files were read is a decision as well."""
    return [
        replace(told, decisions=(*told.decisions, *spelling_decisions(gathered.spellings.get(number, {}))))
        for number, told in enumerate(plan.inputs)
    ]


def public_options(config: ConvertConfig) -> dict[str, Any]:
    """The options as they may be shown: without the queries of signed urls."""
    options = config.to_json()
    options["input"] = [{**place, "uri": public_uri(place["uri"])} for place in options["input"]]
    return options


def dataset_name(config: ConvertConfig) -> str:
    """The name given, else that of the output folder."""
    return config.output.name or name_of(config.output.output) or "dataset"
