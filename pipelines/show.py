"""``beam-tfrecord show``: records in words, as JSON, or as a sheet of their pictures."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence

from beam_tfrecord.datasets.shard_files import FoundFiles, find_files, stated_records
from beam_tfrecord.errors import ConfigError, DatasetError
from beam_tfrecord.storage import Storage, name_of, public_uri
from beam_tfrecord.tools.showing.describe import describe_record, record_values
from beam_tfrecord.tools.showing.printable import printable
from beam_tfrecord.tools.showing.selection import (
    PickedRecord,
    Selection,
    parse_condition,
    select_records,
)
from pipelines.exits import DONE, FAILED, guarded
from pipelines.options import add_terminal_flags
from pipelines.parsers import ArgumentParser, command_parser, count_of, place_to_write
from pipelines.places import PLACE_HELP, parse_places
from pipelines.terminal import last_line, plural, say

DESCRIPTION = """Show records for a person: keys, types, shapes and short values; or as JSON, one object for each
record; or as a picture sheet with labels, boxes, masks and keypoints. Any TFRecord file of tf.train.Example or
SequenceExample will do, compressed or not, with or without the metadata of a dataset beside it."""
EXAMPLES = f"""places:
  {PLACE_HELP}

examples:
  beam-tfrecord show out/
  beam-tfrecord show out/ --index 17
  beam-tfrecord show out/ --split validation --where label=cat --limit 20 --json
  beam-tfrecord show out/ --sheet sheet.png --limit 100
  beam-tfrecord show 'elsewhere/train*.tfrecord.gz'"""
LIMIT, SHEET_LIMIT = 5, 48
MANY, MAX_PICTURES = 100, 1000  # on a sheet


def make_parser(prog: str = "beam-tfrecord show") -> ArgumentParser:
    """The parser of the command, but for the places."""
    parser = command_parser(prog, "PLACE... [options]", DESCRIPTION, EXAMPLES)
    add = parser.add_argument
    add(
        "--index",
        type=_numbers,
        action="append",
        metavar="N",
        help="the record with this number, from 0; 3,7,9 are three",
    )
    add("--where", action="append", default=[], metavar="KEY=VALUE", help="records with this value, as in label=cat")
    add(
        "--limit",
        type=count_of,
        metavar="N",
        help=f"how many (default: {LIMIT}, or {SHEET_LIMIT} with --sheet; 0: all)",
    )
    add("--split", metavar="NAME", help="of this split only")
    add(
        "--sheet",
        type=place_to_write,
        metavar="FILE.png",
        help="draw the pictures on a sheet instead of printing records",
    )
    add("--columns", type=_positive, metavar="N", help="pictures side by side on the sheet")
    add_terminal_flags(parser)
    return parser


def _numbers(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of a record; records are numbered from 0")
    return [int(part) for part in parts]


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} must be 1 or more")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    status = guarded(lambda: show(given), when_stopped="nothing was changed")
    _settle_stdout()
    return status


def _settle_stdout() -> None:
    """When the reader of a pipe has gone (``| head``), let Python end without a word about it."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show(arguments: Sequence[str]) -> int:
    """Parse, pick and tell. Raises the errors of :mod:`beam_tfrecord.errors`."""
    flags, places = parse_places(make_parser(), arguments)
    storage = Storage()
    found = find_files(places, storage)
    files = found.of_split(flags.split)
    numbers = tuple(number for group in flags.index or () for number in group)
    default = SHEET_LIMIT if flags.sheet else LIMIT
    limit = flags.limit if flags.limit is not None else 0 if numbers else default
    selection = Selection(numbers, tuple(map(parse_condition, flags.where)), limit)
    faults: list[str] = []
    for mixed in found.faults:
        if mixed.code == "mixed_datasets":
            say(printable(f"warning: {mixed.file}: {mixed.cause}"))

    def tell(fault: str) -> None:
        faults.append(fault)
        say(printable(fault))

    picked = select_records(files, found.facts, selection, storage, tell)
    if flags.sheet:
        write_sheet(picked, found, flags, storage)
    else:
        print_records(picked, found, flags)
    return FAILED if faults else DONE


def print_records(picked: Iterator[PickedRecord], found: FoundFiles, flags: argparse.Namespace) -> None:
    """Each record in words, or as one JSON object on a line of its own."""
    shown = 0
    for record in picked:
        if flags.json:
            print(json.dumps(record_values(record), ensure_ascii=True, allow_nan=False))
        else:
            print("\n".join([*([""] if shown else []), *describe_record(record, found.facts)]))
        shown += 1
    if not flags.quiet:
        total = stated_records(found.of_split(flags.split))
        of_all = f" of {total:,}" if total is not None else ""
        say(f"{plural(shown, 'record')}{of_all} shown" if shown else "no record fits")


def write_sheet(picked: Iterator[PickedRecord], found: FoundFiles, flags: argparse.Namespace, storage: Storage) -> None:
    """Draw the pictures and write the sheet."""
    from beam_tfrecord.tools.showing.pictures import DrawnPicture, drawn_pictures
    from beam_tfrecord.tools.showing.sheet import MAX_SIDE, SMALL_SIDE, draw_sheet, png_bytes

    if not flags.sheet.lower().endswith(".png"):
        raise ConfigError(f"--sheet {flags.sheet}: a sheet is a PNG; name it .png")
    started = time.monotonic()
    names = found.facts.label_names if found.facts is not None else {}
    pictures: list[DrawnPicture] = []
    records = 0
    for record in picked:
        records += 1
        pictures += drawn_pictures(record, names, MAX_SIDE if len(pictures) < MANY else SMALL_SIDE)
        if len(pictures) >= MAX_PICTURES:
            say(f"a sheet holds {MAX_PICTURES:,} pictures; the others are left out")
            break
    if not pictures:
        raise DatasetError("there is no picture to draw: " + ("no record fits" if not records else "records have none"))
    total = stated_records(found.of_split(flags.split))
    of_all = f" of {total:,}" if total is not None else ""
    remark = f"{plural(len(pictures), 'picture')}, {plural(records, 'record')}{of_all}"
    sheet = draw_sheet(pictures, heading(found, flags), remark, flags.columns)
    storage.write_bytes(flags.sheet, png_bytes(sheet))
    values = {
        "sheet": flags.sheet,
        "pictures": len(pictures),
        "records": records,
        "width": sheet.width,
        "height": sheet.height,
        "seconds": round(time.monotonic() - started, 3),
    }
    text = f"{printable(flags.sheet)}: {plural(len(pictures), 'picture')} of {plural(records, 'record')}"
    last_line(values, f"{text}, {sheet.width} × {sheet.height} pixels", as_json=flags.json)


def heading(found: FoundFiles, flags: argparse.Namespace) -> str:
    """What the sheet is of."""
    if found.facts is not None:
        name = str(found.facts.conversion.get("name") or "dataset")
    else:
        name = name_of(public_uri(found.folder or found.files[0].uri))
    parts = [name, *([flags.split] if flags.split else []), *flags.where]
    return printable(" · ".join(parts))


if __name__ == "__main__":
    sys.exit(main())
