"""``beam-tfrecord inspect``: what stands out in the pictures of a dataset, or of a source before any conversion."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from beam_tfrecord.conversion.job import Job
from beam_tfrecord.errors import REJECT_CODES, WARNING_CODES, ConfigError, nearest
from beam_tfrecord.options.config import SECTIONS
from beam_tfrecord.options.run_config import RunConfig
from beam_tfrecord.storage import Storage, join
from beam_tfrecord.tools.inspecting import (
    Found,
    Inspection,
    dataset_options,
    find_dataset,
    inspection_from_json,
    job_for_dataset,
    job_for_source,
)
from beam_tfrecord.tools.showing.printable import printable
from pipelines.exits import DONE, FAILED, end_of_process, main_of
from pipelines.options import add_config_flags, add_terminal_flags, config_from, split_beam_flags
from pipelines.parsers import ArgumentParser, command_parser, count_of, place_to_write
from pipelines.places import parse_places_and_beam_flags
from pipelines.running import Shown, load_beam, run_shown
from pipelines.terminal import counted, last_line, plural, say

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

DESCRIPTION = """Tell what stands out in the pictures: near-duplicates, leaks between splits, labels that contradict one
another, ruined pictures, doubtful boxes; the worst first. Of a finished dataset, or with --input of a source before any
conversion, read and looked at as convert does with the same options. Nothing is written but what --output asks for."""
EXAMPLES = """examples:
  beam-tfrecord inspect out/
  beam-tfrecord inspect --input labels.csv --splits train=0.8,test=0.2 --output findings.jsonl
  beam-tfrecord inspect out/ --json --fail_on split_leak,near_leak

The exit status is 0 where something stands out, too; with --fail_on it is 1 where a finding has one of those codes.

Flags that are not listed go to Beam (--runner, --direct_num_workers, --project ...)."""
OPTIONS = tuple(name for name in SECTIONS if name not in ("shards", "insight", "output"))
ALL = "all"
SHOWN = 20


def make_parser(prog: str = "beam-tfrecord inspect") -> ArgumentParser:
    """The parser of the command, but for the folder."""
    parser = command_parser(prog, "DIR | --input PLACE [options]", DESCRIPTION, EXAMPLES)
    add_config_flags(parser, OPTIONS, without=("near_duplicates",))
    group = parser.add_topic("findings", "findings")
    group.add_argument(
        "--max_findings",
        type=count_of,
        default=SHOWN,
        metavar="N",
        help=f"print at most so many findings of one code, the worst (default: {SHOWN}; 0 for all); --json and "
        "--output have all",
    )
    group.add_argument(
        "--output",
        dest="findings_file",
        type=place_to_write,
        metavar="FILE",
        help="write all findings there, as lines of JSON that convert --exclude takes",
    )
    group.add_argument(
        "--fail_on",
        type=_codes,
        default=(),
        metavar="CODE,...",
        help=f"end with status 1 where there is a finding of one of these codes; {ALL} for any",
    )
    parser.common -= {"columns", "labels", "image_format", "resize", "keys"}  # which seldom change what is found
    parser.common |= {"max_findings", "findings_file", "fail_on"}
    add_terminal_flags(parser)
    return parser


def _codes(text: str) -> tuple[str, ...]:
    codes = tuple(code.strip() for code in text.split(","))
    known = {*REJECT_CODES, *WARNING_CODES, ALL}
    wrong = next((code for code in codes if code not in known), None)
    if wrong is not None:
        raise argparse.ArgumentTypeError(f"there is no code {wrong!r}{nearest(wrong, known)}")
    return codes


def inspect(arguments: Sequence[str]) -> int:
    """Parse, look and tell. Raises the errors of :mod:`beam_tfrecord.errors`."""
    started = time.monotonic()
    flags, place, beam_flags = parse(arguments)
    inspection = look(flags, place, beam_flags)
    if flags.findings_file:
        storage = Storage.for_run(RunConfig(gcs_user_project=flags.gcs_user_project))
        storage.write_bytes(flags.findings_file, inspection.lines())
    if not flags.json:
        for line in finding_lines(inspection, flags.max_findings):
            print(printable(line))
    if not flags.quiet:
        for note in inspection.notes:
            say(printable(f"note: {note}"))
    seconds = time.monotonic() - started
    last_line({**inspection.to_json(), "seconds": round(seconds, 3)}, text(inspection, seconds), as_json=flags.json)
    is_failed = any(code == ALL or inspection.found.get(code) for code in flags.fail_on)
    return FAILED if is_failed and inspection.found else DONE


def parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, str, list[str]]:
    """(our flags, the dataset or '', Beam's flags)."""
    parser = make_parser()
    if any(argument.partition("=")[0] == "--input" for argument in arguments):
        flags, beam_flags = split_beam_flags(parser, arguments)
        return flags, "", beam_flags
    if not any(not argument.startswith("-") for argument in arguments):
        parser.parse_known_args(list(arguments))  # --help, or a flag that is wrong
        raise ConfigError("name the folder of a dataset, or a source with --input; see --help")
    flags, places, beam_flags = parse_places_and_beam_flags(parser, arguments)
    if len(places) > 1:
        raise ConfigError(f"one dataset is inspected at a time: {places[1]!r} is one place too many")
    return flags, places[0], beam_flags


def look(flags: argparse.Namespace, place: str, beam_flags: Sequence[str]) -> Inspection:
    """What the pipeline finds, on the runner that the flags name. place: of a dataset, '' for the inputs."""
    with tempfile.TemporaryDirectory(prefix="beam-tfrecord-") as folder:
        asked = Storage.for_run(RunConfig(gcs_user_project=flags.gcs_user_project))
        found = find_dataset(place, asked) if place else None
        options, notes = ({}, ()) if found is None else dataset_options(place, found)
        config = config_from(flags, output=folder, **options)
        storage = Storage.for_run(config.run)
        job = job_for_source(config, storage) if found is None else job_for_dataset(config, found, storage)
        beam = load_beam(beam_flags, [config.manifest.images or "", *(source.uri for source in job.sources)])
        from beam_tfrecord.transforms import engines

        engines.check_engine(engines.find_engine(beam), beam, config)
        with staging(beam, folder, storage) as staged:
            job = replace(job, config=replace(config, output=replace(config.output, output=staged)))
            inspection = run(job, beam, storage, quiet=flags.quiet, is_dataset=bool(place))
    return replace(inspection, notes=(*notes, *inspection.notes))


@contextlib.contextmanager
def staging(beam: PipelineOptions, folder: str, storage: Storage) -> Iterator[str]:
    """Where looks are kept until they are compared: in a folder of this machine, or one that all workers can reach."""
    from beam_tfrecord.transforms.running import is_local

    if is_local(beam):
        yield folder
        return
    shared = beam.get_all_options().get("temp_location")
    if not shared:
        raise ConfigError(
            "on this runner, name with --temp_location a folder that its workers and this machine can reach"
        )
    staged = join(shared, os.path.basename(folder))
    try:
        yield staged
    finally:
        storage.delete_tree(staged)


def run(job: Job, beam: PipelineOptions, storage: Storage, *, quiet: bool, is_dataset: bool) -> Inspection:
    """What the pipeline tells at its end."""
    from beam_tfrecord.transforms.looking import InspectPictures

    results = f"{job.config.output.output}/inspection.json"
    transform = InspectPictures(job, results, storage, is_dataset=is_dataset)
    run_shown(transform, beam, Shown(quiet), job.config)
    with storage.open(results) as file:
        return inspection_from_json(file.read())


def finding_lines(inspection: Inspection, most: int) -> Iterator[str]:
    """The findings for a person, code by code; of each so many, or all for 0."""
    for code, count in inspection.found.items():
        explanation = WARNING_CODES.get(code) or REJECT_CODES[code]
        yield f"{code} {count:,}: {explanation.meaning}"
        own = [found for found in inspection.findings if found.finding.code == code]
        shown = own[: most or None]
        yield from map(finding_line, shown)
        if count > len(shown):
            yield f"  ... and {count - len(shown):,} more"


def finding_line(found: Found) -> str:
    """One finding for a person: its score, id and place, and what is told."""
    finding = found.finding
    score = "" if finding.score is None else f"{finding.score:.4g}"
    place = finding.origin if not found.id or found.id == finding.origin else f"{found.id} ({finding.origin})"
    message = finding.message.replace(finding.other, found.other_id, 1) if found.other_id else finding.message
    return f"  {score:>6}  {place}: {message}"


def text(inspection: Inspection, seconds: float) -> str:
    """The last line for a person."""
    total = sum(inspection.found.values())
    found = f"{plural(total, 'finding')} ({counted(inspection.found)})" if total else "nothing stands out"
    unseen = inspection.pictures - inspection.looked_at
    pixels = f", {unseen:,} of them not by their pixels" if unseen else ""
    return (
        f"{plural(inspection.rows, 'row')}, {plural(inspection.pictures, 'picture')}{pixels}: {found}, {seconds:.1f} s"
    )


main = main_of(inspect, "the job has ended; nothing was written")


if __name__ == "__main__":
    sys.exit(end_of_process(main()))
