"""``beam-tfrecord unpack``: the dataset of an archive that pack made."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Sequence

from beam_tfrecord.errors import ConfigError
from beam_tfrecord.storage import Storage
from beam_tfrecord.tools.packing.unpack import unpack_dataset
from beam_tfrecord.tools.showing.printable import printable
from pipelines.exits import DONE, main_of
from pipelines.options import add_terminal_flags
from pipelines.parsers import ArgumentParser, command_parser, place_to_write
from pipelines.places import parse_places
from pipelines.terminal import file_progress, last_line, plural

DESCRIPTION = """Unpack an archive that pack made into a folder. Sizes and checksums are compared with the
conversion.json in it; files get their names when all of them are there and right. How the archive is compressed is
told by its first bytes."""
EXAMPLES = """examples:
  beam-tfrecord unpack out.tar.xz --output out/
  beam-tfrecord unpack gs://bucket/out.tar --output gs://other/out"""


def make_parser(prog: str = "beam-tfrecord unpack") -> ArgumentParser:
    """The parser of the command, but for the archive."""
    parser = command_parser(prog, "ARCHIVE --output DIR [options]", DESCRIPTION, EXAMPLES)
    parser.add_argument("--output", type=place_to_write, metavar="DIR", help="folder of the dataset")
    parser.add_argument("--overwrite", action="store_true", help="replace the dataset that is there")
    add_terminal_flags(parser)
    return parser


def unpack(arguments: Sequence[str]) -> int:
    """Unpack and tell. Raises the errors of :mod:`beam_tfrecord.errors`."""
    started = time.monotonic()
    flags, places = parse_places(make_parser(), arguments)
    if len(places) > 1:
        raise ConfigError(f"a folder holds one dataset: {places[1]!r} is one archive too many")
    if not flags.output:
        raise ConfigError("--output is needed: the folder of the dataset")
    with file_progress(quiet=flags.quiet) as progress:
        unpacked = unpack_dataset(places[0], flags.output, Storage(), overwrite=flags.overwrite, progress=progress)
    seconds = time.monotonic() - started
    values = {**dataclasses.asdict(unpacked), "seconds": round(seconds, 3)}
    values["bytes"] = values.pop("num_bytes")
    text = f"{printable(unpacked.output)}: {plural(unpacked.records, 'record')}, {plural(unpacked.shards, 'shard')}"
    last_line(values, f"{text}, {seconds:.1f} s", as_json=flags.json)
    return DONE


main = main_of(unpack, "nothing was published; run the same command again")


if __name__ == "__main__":
    sys.exit(main())
