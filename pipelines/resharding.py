"""What ``reshard`` and ``merge`` share: flags to options, the run, and the telling."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from beam_tfrecord.conversion.job import owned_folder
from beam_tfrecord.datasets.published import read_conversion
from beam_tfrecord.errors import ConfigError
from beam_tfrecord.options.run_config import RunConfig
from beam_tfrecord.storage import Storage, name_of
from beam_tfrecord.tfrecord import parse_shard_name
from beam_tfrecord.tools.resharding.job import ReshardJob, ReshardOptions, prepare_job
from beam_tfrecord.tools.resharding.sources import notes_about
from beam_tfrecord.tools.showing.printable import printable
from pipelines.exits import DONE
from pipelines.options import add_option, add_terminal_flags
from pipelines.parsers import ArgumentParser, command_parser
from pipelines.places import parse_places_and_beam_flags
from pipelines.running import Shown, load_beam, run_shown
from pipelines.terminal import counted, last_line, plural, say

if TYPE_CHECKING:
    from apache_beam.runners.runner import PipelineResult

BEAM_FLAGS = "Flags that are not listed go to Beam (--runner, --direct_num_workers, --project ...)."
WHEN_STOPPED = "the job has ended; nothing was published; run the same command again"


def make_parser(prog: str, description: str, epilog: str, usage: str) -> ArgumentParser:
    """The parser of a command, but for the places: a flag for every option of ReshardOptions."""
    parser = command_parser(prog, f"{usage} --output DIR [options]", description, f"{epilog}\n\n{BEAM_FLAGS}")
    group = parser.add_argument_group("the new dataset")
    for field in dataclasses.fields(ReshardOptions):
        if field.name != "input":
            add_option(group, field)
    add_terminal_flags(parser)
    return parser


def run_command(parser: ArgumentParser, arguments: Sequence[str], *, several: bool) -> int:
    """Parse, check, run and tell. several: whether two inputs or more are needed, or exactly one.

    Raises the errors of :mod:`beam_tfrecord.errors`.
    """
    flags, places, beam_flags = parse_places_and_beam_flags(parser, arguments)
    if several and len(places) < 2:
        raise ConfigError(f"merge needs two datasets or more, and {places[0]!r} is one; reshard writes one anew")
    if not several and len(places) > 1:
        raise ConfigError(f"reshard takes one place, and {places[1]!r} is one too many; merge joins datasets")
    names = {field.name for field in dataclasses.fields(ReshardOptions)}
    given = {name: value for name, value in vars(flags).items() if name in names}
    options = ReshardOptions.from_options({**given, "input": places})
    started = time.monotonic()
    if beam_flags:
        load_beam(beam_flags, ())  # the inputs may lie where only these say how to get in
    storage = Storage.for_run(RunConfig(gcs_user_project=options.gcs_user_project))
    job = prepare_job(options, storage)
    with owned_folder(options.publication, storage, parser.prog) as lease:
        result = run(job.of_lease(lease.key), beam_flags, storage, quiet=flags.quiet, watch=lease.watch)
        told = told_values(job, result, storage)
    told["seconds"] = round(time.monotonic() - started, 3)
    if not flags.quiet:
        for source in job.sources:
            for note in notes_about(source.name, source.account):
                say(printable(f"note: {note}"))
        for line in further_lines(told):
            say(line)
    text = f"{plural(told['records'], 'record')}, {plural(told['shards'], 'shard')}, {told['seconds']:.1f} s"
    last_line(told, text, as_json=flags.json)
    return DONE


def run(
    job: ReshardJob, beam_flags: Sequence[str], storage: Storage, *, quiet: bool, watch: Callable[[], None]
) -> PipelineResult:
    """Run on the runner that the flags name. watch: called now and then; what it raises ends the run."""
    options = load_beam(beam_flags, [job.options.output, *(file.uri for file in job.files)])
    from beam_tfrecord.transforms.resharding import ReshardDataset

    total = sum(file.records for file in job.files) if job.is_counted else None
    return run_shown(ReshardDataset(job, storage), options, Shown(quiet, "records", "damaged", total), watch=watch)


def told_values(job: ReshardJob, result: PipelineResult, storage: Storage) -> dict[str, Any]:
    """What --json prints, but for the time."""
    folder = job.options.folder
    if job.has_metadata:
        conversion = read_conversion(folder, storage)
        records = {split: own["records"] for split, own in conversion["splits"].items()}
        shards = sum(len(own["shards"]) for own in conversion["splits"].values())
        warnings = conversion["warnings"]
    else:
        records = _published_records(result)
        shards = sum(parse_shard_name(name_of(name)) is not None for name in storage.list_folder(folder))
        warnings = {}
    return {
        "records": sum(records.values()),
        "shards": shards,
        "published": True,
        "output": folder,
        "compression": job.compression,
        "splits": records,
        "warnings": warnings,
        "metadata": job.has_metadata,
    }


def _published_records(result: PipelineResult) -> dict[str, int]:
    """Records by split, from the job's counters."""
    from beam_tfrecord.transforms.resharding import PUBLISHED

    found = {}
    for counter in result.metrics().query()["counters"]:
        name = counter.key.metric.name
        if name.startswith(PUBLISHED):
            found[name.removeprefix(PUBLISHED)] = counter.result
    return dict(sorted(found.items()))


def further_lines(told: dict[str, Any]) -> list[str]:
    """What there is to tell before the last line."""
    lines = []
    if told["warnings"]:
        lines.append(f"warnings: {counted(told['warnings'])}")
    if not told["metadata"]:
        lines.append("note: no conversion.json tells of the input: shards were written, and no metadata")
    splits = ", ".join(f"{name} {records:,}" for name, records in told["splits"].items())
    lines.append(f"published {told['output']}: {splits}")
    return lines
