"""``beam-tfrecord extract``: the images of a dataset, and a manifest that converts to the same records again."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

from beam_tfrecord.datasets.shard_files import FoundFiles, find_files, stated_records
from beam_tfrecord.storage import Storage
from beam_tfrecord.storage.lease import hold
from beam_tfrecord.tools.extracting.command import command_line
from beam_tfrecord.tools.extracting.dataset import (
    Extraction,
    check_output,
    clear_output,
    known_layout,
    read_result,
    shards_to_extract,
)
from beam_tfrecord.tools.showing.printable import printable
from pipelines.exits import DONE, FAILED, end_of_process, main_of
from pipelines.options import add_terminal_flags
from pipelines.parsers import ArgumentParser, command_parser, place_to_write
from pipelines.places import PLACE_HELP, parse_places_and_beam_flags
from pipelines.running import Shown, load_beam, run_shown
from pipelines.terminal import counted, last_line, plural, say

DESCRIPTION = """Write the images of a dataset as files, and a manifest with all that its records tell of them, from
which convert makes the same records again: FOLDER/images/, FOLDER/masks/, FOLDER/manifest.jsonl, FOLDER/labels.txt and
FOLDER/convert.args. Of files from elsewhere it extracts what their keys tell. A damaged record is named and left out;
the exit status is 1 then."""
EXAMPLES = f"""places:
  {PLACE_HELP}

examples:
  beam-tfrecord extract out/ --output folder/
  beam-tfrecord convert @folder/convert.args --output again/
  beam-tfrecord extract gs://bucket/out --output gs://bucket/folder --runner DataflowRunner ...

Flags that are not listed go to Beam (--runner, --direct_num_workers, --project ...)."""


def make_parser(prog: str = "beam-tfrecord extract") -> ArgumentParser:
    """The parser of the command, but for the places."""
    parser = command_parser(prog, "PLACE... --output FOLDER [options]", DESCRIPTION, EXAMPLES)
    parser.add_argument("--output", type=place_to_write, metavar="FOLDER", help="folder of the images and the manifest")
    parser.add_argument("--split", metavar="NAME", help="extract this split only")
    parser.add_argument("--overwrite", action="store_true", help="replace what was extracted to the folder before")
    add_terminal_flags(parser)
    return parser


def extract(arguments: Sequence[str]) -> int:
    """Parse, run and tell. Raises the errors of :mod:`beam_tfrecord.errors`."""
    flags, places, beam_flags = parse_places_and_beam_flags(make_parser(), arguments)
    started = time.monotonic()
    storage = Storage()
    found = find_files(places, storage)
    output = (flags.output or "").rstrip("/") or flags.output or ""
    extraction = run(found, output, flags, beam_flags, storage)
    seconds = time.monotonic() - started
    if not flags.json:
        for fault in extraction.faults:
            print(printable(str(fault)))
    for line in extraction.account["unaccounted"]:
        say(f"error: {line}: this is a bug of the command, please report it")
    if not flags.quiet:
        for line in further_lines(extraction):
            say(printable(line))
    if not flags.json:
        print(printable(command_line(extraction.flags)))
    last_line(values(extraction, output, seconds), text(extraction, output, seconds), as_json=flags.json)
    is_whole = extraction.records and not extraction.num_faults and not extraction.account["unaccounted"]
    return DONE if is_whole else FAILED


def run(
    found: FoundFiles, output: str, flags: argparse.Namespace, beam_flags: Sequence[str], storage: Storage
) -> Extraction:
    """What the pipeline extracts, on the runner that the flags name."""
    options = load_beam(beam_flags, [output, *(file.uri for file in found.files)])
    from beam_tfrecord.transforms.extracting import ExtractDataset

    shards = shards_to_extract(found, flags.split)
    check_output(output, found, storage, overwrite=flags.overwrite)
    total = stated_records(shard.file for shard in shards)
    with hold(output, storage, "beam-tfrecord extract") as lease:
        clear_output(output, found, storage, overwrite=flags.overwrite)
        transform = ExtractDataset(
            shards, known_layout(found), found.facts, output, storage, found.label_names, found.faults, lease.key
        )
        run_shown(transform, options, Shown(flags.quiet, "records", "faulty", total), watch=lease.watch)
        return read_result(output, storage)


def further_lines(extraction: Extraction) -> list[str]:
    """What there is to tell beside the faults."""
    lines = [f"note: {note}" for note in extraction.notes]
    reasons = extraction.account.get("named", {}).get("features", {})
    told = ", ".join(f"{why} {own['count']:,} ({own['example']})" for why, own in reasons.items())
    if told:
        lines.append(f"features not taken over: {told}")
    if extraction.unlisted:
        lines.append(f"not named above: {counted(extraction.unlisted)}")
    lines.append("to convert it again:")
    return lines


def values(extraction: Extraction, output: str, seconds: float) -> dict[str, Any]:
    """What --json prints."""
    return {
        "records": extraction.records,
        "shards": extraction.shards,
        "faults": extraction.num_faults,
        "seconds": round(seconds, 3),
        "output": output,
        "by_code": extraction.by_code,
        "details": [str(fault) for fault in extraction.faults],
        "notes": list(extraction.notes),
        "account": dict(extraction.account),
        "command": command_line(extraction.flags),
        "flags": list(extraction.flags),
    }


def text(extraction: Extraction, output: str, seconds: float) -> str:
    """The last line for a person."""
    faults = plural(extraction.num_faults, "fault") if extraction.num_faults else "no faults"
    return (
        f"{plural(extraction.records, 'record')} from {plural(extraction.shards, 'shard')} to {output}, {faults}, "
        f"{seconds:.1f} s"
    )


main = main_of(extract, "the job has ended; the folder has no manifest.jsonl; --overwrite starts anew")


if __name__ == "__main__":
    sys.exit(end_of_process(main()))
