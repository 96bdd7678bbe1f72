"""``beam-tfrecord convert``: labelled images to a TFRecord dataset."""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from beam_tfrecord.conversion.job import Job, check_folder, owned_folder, plan_job, prepare_job
from beam_tfrecord.conversion.writing.staging import INFO_SUFFIX, shards_folder
from beam_tfrecord.core.public_text import public_text
from beam_tfrecord.errors import BeamTfrecordError, ConfigError, JobError, StorageError
from beam_tfrecord.manifests import missing
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.options.places import parse_place
from beam_tfrecord.publishing.near_rows import with_near_rows
from beam_tfrecord.storage import Storage, public_uri
from beam_tfrecord.storage.lease import Lease, owner_of
from pipelines.exits import DONE, FAILED, WITHHELD, end_of_process, main_of
from pipelines.options import (
    TerminalOptions,
    add_config_flags,
    add_terminal_flags,
    config_from,
    split_beam_flags,
)
from pipelines.parsers import ArgumentParser, command_parser
from pipelines.running import Shown, load_beam, run_shown
from pipelines.summaries import plan_lines, plan_values, summary_lines, summary_text, summary_values
from pipelines.terminal import last_line, say

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.runner import PipelineResult

DESCRIPTION = "Convert labelled images (or a table) to TFRecords that are complete, reproducible and self-describing."
EXAMPLES = """examples:
  beam-tfrecord convert --input photos/ --output out/
  beam-tfrecord convert --input labels.csv --output out/ --splits train=0.8,validation=0.1,test=0.1
  beam-tfrecord convert --input train=instances_train.json --images train2017/ --output out/
  beam-tfrecord convert @extracted/convert.args --output out/        # flags from a file, first of all
  beam-tfrecord convert --input gs://bucket/labels.csv --output gs://bucket/out --runner DataflowRunner ...

Flags that are not listed go to Beam (--runner, --direct_num_workers, --project ...)."""

STAGING_KEPT = "what is finished stays in the staging place, and --resume goes on from there"
NOTHING_WRITTEN = "the job has ended; nothing was published; run the same command again"


def make_parser(prog: str = "beam-tfrecord convert") -> ArgumentParser:
    """The parser of the command; all flags of the config are there."""
    parser = command_parser(prog, "--input PLACE --output DIR [options]", DESCRIPTION, EXAMPLES)
    add_config_flags(parser)
    terminal = add_terminal_flags(parser)
    terminal.add_argument("--plan", action="store_true", help="print what would happen and write nothing")
    terminal.add_argument(
        "--no_wait", action="store_true", help="end when the job is submitted to an engine that goes on without us"
    )
    parser.common.add("plan")
    return parser


def convert(arguments: Sequence[str]) -> int:
    """Parse, check, run and tell. Raises the errors of :mod:`beam_tfrecord.errors`."""
    namespace, beam_flags = split_beam_flags(make_parser(), with_arguments_of_file(arguments))
    terminal = TerminalOptions(namespace.plan, namespace.quiet, namespace.json, namespace.no_wait)
    config = config_from(namespace)
    if beam_flags or terminal.no_wait:
        check_engine(beam_flags, config, terminal)
    storage = Storage.for_run(config.run)
    job = prepare_job(config, storage)
    if terminal.plan:
        return show_plan(job, storage, terminal)
    if is_dry_run(beam_flags):
        check_folder(job.config.output, storage)
        return run(job, beam_flags, terminal)
    with owned_folder(job.config.output, storage, "beam-tfrecord convert") as lease, resume_told(job, storage):
        return run(replace(job, lease=lease.key), beam_flags, terminal, lease)


@contextlib.contextmanager
def resume_told(job: Job, storage: Storage) -> Iterator[None]:
    """Where finished shards are left when the job ends early, say behind the reason what ``--resume`` makes of them."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if str(stop) or not has_finished_shards(job, storage):
            raise
        raise KeyboardInterrupt(f"stopped; the job has ended; {STAGING_KEPT}") from None
    except (StorageError, JobError) as error:
        if "--resume" in str(error) or not has_finished_shards(job, storage):
            raise
        raise type(error)(f"{error}; {STAGING_KEPT}") from error


def has_finished_shards(job: Job, storage: Storage) -> bool:
    """Whether a run with ``--resume`` would find anything to go on from."""
    output = job.config.output
    if output.writer == "beam":  # which does not resume
        return False
    with contextlib.suppress(OSError, BeamTfrecordError):  # the place may be what the job failed of
        return any(name.endswith(INFO_SUFFIX) for name in storage.list_folder(shards_folder(output.output)))
    return False


def with_arguments_of_file(arguments: Sequence[str]) -> list[str]:
    """``@FILE`` as the first argument replaced by the flags in that file, which are quoted as in a shell.

    Only there: anywhere else it could be the value of a flag.
    """
    if not arguments or not arguments[0].startswith("@"):
        return list(arguments)
    uri, storage = arguments[0][1:], Storage()
    try:
        uri = parse_place(uri)
    except ValueError as error:
        raise ConfigError(f"@{uri}: {error}") from None
    try:
        with storage.open(uri) as file:
            text = file.read().decode("utf-8", "surrogateescape")
        return [*shlex.split(text, comments=True), *arguments[1:]]
    except FileNotFoundError:
        raise ConfigError(f"@{uri}: no file of flags is there: {missing(storage, uri)}") from None
    except ValueError as error:
        raise ConfigError(f"@{uri}: its flags must be quoted as in a shell: {error}") from None


def is_dry_run(beam_flags: Sequence[str]) -> bool:
    """Whether the graph is only translated for the engine: nothing is touched then."""
    if not beam_flags:  # most runs: what is wrong with the output is told before Beam is imported
        return False
    from beam_tfrecord.transforms import dataflow, running

    return dataflow.is_dry_run(running.make_options(beam_flags))


def check_engine(beam_flags: Sequence[str], config: ConvertConfig, terminal: TerminalOptions) -> None:
    """Raise ConfigError when the engine that Beam's flags name could not run the job; before anything is looked at."""
    from beam_tfrecord.transforms import engines, running

    options = running.make_options(beam_flags)  # the inputs may lie where only these say how to get in
    engines.check_engine(engines.find_engine(options), options, config)
    if terminal.no_wait:
        running.check_no_wait(options)


def show_plan(job: Job, storage: Storage, terminal: TerminalOptions) -> int:
    """Print what would happen."""
    job = with_near_rows(job, storage)
    plan = plan_job(job, storage)
    lines = plan_lines(plan, job)
    if not terminal.json:
        print(public_text("\n".join(lines)))
    else:
        last_line(plan_values(plan, job), "", as_json=True)
    return DONE


def run(job: Job, beam_flags: Sequence[str], terminal: TerminalOptions, lease: Lease | None = None) -> int:
    """Run the conversion on the runner that the flags name, and tell how it ended. lease: of the output folder."""
    config, manifest = job.config, job.config.manifest
    places = [config.output.output, manifest.images or "", *(source.uri for source in job.sources)]
    options = load_beam(beam_flags, places)
    from beam_tfrecord.conversion.writing.processes import helpers_ended
    from beam_tfrecord.publishing.summary import read_summary
    from beam_tfrecord.transforms.dataflow import runs_nothing
    from beam_tfrecord.transforms.dataset import ConvertDataset
    from beam_tfrecord.transforms.engines import is_alone
    from beam_tfrecord.transforms.running import make_pipeline, submit

    started = time.monotonic()
    if runs_nothing(options):
        job = replace(job, lease=None)  # what a template starts one day is no run of this process
    elif terminal.no_wait and lease is not None:
        lease.leave_to_job()
    if runs_nothing(options) or terminal.no_wait:
        pipeline = make_pipeline(options, config)
        _ = pipeline | "ConvertDataset" >> ConvertDataset(job)
        result = submit(pipeline)
        if runs_nothing(options):
            return tell_prepared(options, job, terminal)
        return tell_submitted(result, options, job, terminal)
    watch = lease.watch if lease else lambda: None
    convert_dataset = ConvertDataset(job, is_alone=is_alone(options))
    with helpers_ended(owner_of(job.lease)):
        run_shown(convert_dataset, options, Shown(terminal.quiet), config, watch=watch)
    summary = read_summary(job.config.output.output, Storage.for_run(config.run))
    seconds = time.monotonic() - started
    if not terminal.quiet:
        for line in summary_lines(summary, config):
            say(line)
    last_line(summary_values(summary, seconds), summary_text(summary, seconds), as_json=terminal.json)
    return {"published": DONE, "withheld": WITHHELD, "empty": FAILED}[summary.status]


def tell_submitted(result: PipelineResult, options: PipelineOptions, job: Job, terminal: TerminalOptions) -> int:
    """Say where the job can be watched, and where the dataset will be."""
    from beam_tfrecord.transforms.running import job_link

    link, output = job_link(result, options), public_uri(job.config.output.output)
    last_line(
        {"submitted": True, "job": link, "output": output},
        f"submitted{f': {link}' if link else ''}; the dataset is complete when {output}/dataset_info.json is there",
        as_json=terminal.json,
    )
    return DONE


def tell_prepared(options: PipelineOptions, job: Job, terminal: TerminalOptions) -> int:
    """Say what was made in place of a job, and that none was submitted."""
    from beam_tfrecord.transforms.dataflow import is_dry_run, template_of

    template = "" if is_dry_run(options) else template_of(options)
    done = f"the template {template} was written" if template else "the whole graph was translated for Dataflow"
    last_line(
        {"submitted": False, "template": template or None, "output": public_uri(job.config.output.output)},
        f"{done}; nothing was submitted",
        as_json=terminal.json,
    )
    return DONE


main = main_of(convert, NOTHING_WRITTEN)


if __name__ == "__main__":
    sys.exit(end_of_process(main()))
