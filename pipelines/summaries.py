"""A plan and a result in words and as JSON values."""

from __future__ import annotations

from typing import Any

from beam_tfrecord.conversion.job import Job
from beam_tfrecord.conversion.planning.accounts import InputAccount
from beam_tfrecord.conversion.planning.blocks import REJECTS
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan
from beam_tfrecord.conversion.writing.staging import staging_folder
from beam_tfrecord.core.elements import Finding
from beam_tfrecord.datasets.published import EMPTY, PUBLISHED, REJECTS_FILE, WITHHELD
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.publishing.summary import Summary
from beam_tfrecord.storage import public_uri
from pipelines.terminal import counted, plural

SHOWN_LABELS = 12


def plan_values(plan: DatasetPlan, job: Job) -> dict[str, Any]:
    """What --plan --json prints."""
    return {
        "rows": plan.survey.rows,
        "rejected": plan.rejected,
        "excluded": sum(plan.excluded.values()),
        "excluded_by_option": dict(sorted(plan.excluded.items())),
        "unmatched": [f"{found.origin}: {found.message}" for found in plan.unmatched],
        "ignored": plan.survey.ignored,
        "keys": plan.schema.preset,
        "labels": list(plan.schema.vocabulary.names),
        "splits": {
            name: {"records": split.num_entries, "shards": split.num_shards}
            for name, split in plan.splits.items()
            if name != REJECTS
        },
        "record_bytes": round(plan.record_bytes),
        "problems": [{"origin": p.origin, "code": p.code, "message": p.message} for p in plan.survey.problems],
        "inputs": [told.to_json() for told in plan.inputs],
    }


def plan_lines(plan: DatasetPlan, job: Job) -> list[str]:
    """What --plan prints for a person."""
    survey = plan.survey
    lines = [line for told in plan.inputs for line in input_lines(told)]
    lines.append(
        f"rows     {survey.rows:,}, of which {plan.rejected:,} cannot be used; {survey.ignored:,} files ignored"
    )
    if plan.excluded:
        lines.append(f"excluded {plural(sum(plan.excluded.values()), 'row')}: {counted(plan.excluded)}")
    lines += [f"warning  {found.origin}: {found.code}: {found.message}" for found in plan.unmatched]
    names = plan.schema.vocabulary.names
    more = f", ... ({len(names):,})" if len(names) > SHOWN_LABELS else ""
    lines.append(f"labels   {', '.join(names[:SHOWN_LABELS]) or 'none'}{more}")
    lines.append(f"keys     {plan.schema.preset}")
    for name, split in plan.splits.items():
        if name != REJECTS:
            size = split.num_entries * plan.record_bytes / 1e6
            lines.append(
                f"split    {name}: {plural(split.num_entries, 'record')} in {plural(split.num_shards, 'shard')}, "
                f"about {size:,.1f} MB"
            )
    if job.config.splits.splits and survey.own_splits:
        flags = "--splits and --group_column leave" if job.config.manifest.group_column else "--splits leaves"
        lines.append(
            f"note     {plural(survey.own_splits, 'row')} of {survey.rows:,} name a split, which {flags} as it is"
        )
    lines += [f"problem  {p.origin}: {p.code}: {p.message}" for p in survey.problems]
    opened = "not opened"
    if job.config.choosing.near_duplicates != "keep":
        opened = "looked at for --near_duplicates"
    elif job.config.choosing.min_box:
        opened = "read only where --min_box needs their size"
    lines.append(f"nothing was written (--plan); images were {opened}")
    return lines


def input_lines(told: InputAccount) -> list[str]:
    """The account of one input for a person: what was found, used and not used, and what was decided."""
    lines = [f"input    {told.uri} ({told.format})"]
    account = told.account
    for kind, found in sorted(account.found.items()):
        used = [f"{count:,} {use}" for use, count in sorted(account.used.get(kind, {}).items())]
        named = [
            f"{unused.count:,} {reason} (such as {unused.example})"
            for reason, unused in sorted(account.named.get(kind, {}).items())
        ]
        parts = "; ".join(filter(None, [", ".join(used), "not used: " + ", ".join(named) if named else ""]))
        lines.append(f"         {kind}: {found:,}{f': {parts}' if parts else ''}")
    lines += [f"         {decided.what}: {decided.value} (from {decided.why})" for decided in told.decisions]
    lines += [f"warning  {found.origin}: {found.code}: {found.message}" for found in told.surprises]
    return lines


def summary_values(summary: Summary, seconds: float) -> dict[str, Any]:
    """What --json prints at the end."""
    return {
        "rows": summary.rows,
        "written": summary.written,
        "rejected": sum(summary.rejected.values()),
        "excluded": sum(summary.excluded.values()),
        "shards": summary.shards,
        "seconds": round(seconds, 3),
        "published": summary.status == PUBLISHED,
        "output": summary.output,
        "report": summary.report,
        "ignored": summary.ignored,
        "rejected_by_code": dict(summary.rejected),
        "excluded_by_option": dict(summary.excluded),
        "warnings": dict(summary.warnings),
        "changed": dict(summary.changed),
        "splits": dict(summary.splits),
    }


def summary_text(summary: Summary, seconds: float) -> str:
    """The last line for a person."""
    excluded = sum(summary.excluded.values())
    return (
        f"{plural(summary.rows, 'row')}, {summary.written:,} written, {sum(summary.rejected.values()):,} rejected, "
        f"{f'{excluded:,} excluded, ' if excluded else ''}{plural(summary.shards, 'shard')}, {seconds:.1f} s"
    )


def summary_lines(summary: Summary, config: ConvertConfig) -> list[str]:
    """What became of the rows, before the last line."""
    lines = []
    if summary.rejected:
        lines.append(f"rejected: {counted(summary.rejected)}")
        lines += [f"  {_place_of(finding)}: {finding.code}: {finding.message}" for finding in summary.examples]
        further = sum(summary.rejected.values()) - len(summary.examples)
        if further > 0:
            lines.append(f"  ... and {further:,} more")
    if summary.excluded:
        lines.append(f"excluded: {counted(summary.excluded)}")
    if summary.warnings:
        lines.append(f"warnings: {counted(summary.warnings)}")
        lines += [f"  {line}" for line in summary.surprises]
    if summary.changed:
        lines.append(f"changed:  {counted(summary.changed)}")
    if summary.ignored:
        lines.append(f"ignored:  {plural(summary.ignored, 'file')} beside the images")
    if summary.status == PUBLISHED:
        splits = ", ".join(f"{name} {records:,}" for name, records in summary.splits.items())
        lines.append(f"published {summary.output}: {splits}")
        told = f"none could be made: beam-tfrecord report {summary.output} tells why"
        lines.append(f"report    {summary.report or told}")
    elif summary.status == WITHHELD:
        limit = config.output.max_rejects
        allowed = f"{limit:.0%}" if isinstance(limit, float) else f"{limit:,}"
        flag = "" if config.output.writer == "beam" else "--resume "
        lines.append(
            f"not published: {sum(summary.rejected.values()):,} of {plural(summary.rows, 'row')} were rejected, "
            f"more than --max_rejects {allowed}. See {_told_in(summary)}; to publish it all the same, run the same "
            f"command with {flag}--max_rejects 100%"
        )
    elif summary.status == EMPTY:
        lines.append(
            f"error: nothing was written: 0 of {plural(summary.rows, 'row')} could be converted. "
            f"See {_told_in(summary)}"
        )
    return lines


def _told_in(summary: Summary) -> str:
    """Where the rejects of a conversion that is not published are told: on a page for a person, and line by line."""
    rejects = f"{staging_folder(summary.output)}/{REJECTS_FILE}"
    return f"{summary.report} (and {rejects})" if summary.report else rejects


def _place_of(finding: Finding) -> str:
    """Where a row is, and the image where the place does not name it."""
    name = public_uri(finding.uri).rpartition("/")[2]
    return finding.origin if not name or name in finding.origin else f"{finding.origin} ({name})"
