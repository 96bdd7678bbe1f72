"""``beam-tfrecord index``: an index file beside each shard, for readers that jump to a record."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Sequence

from beam_tfrecord.datasets.indexing import write_index_file
from beam_tfrecord.datasets.shard_files import find_files
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.storage import Storage, parent
from beam_tfrecord.storage.lease import hold
from beam_tfrecord.tools.showing.printable import printable
from pipelines.exits import DONE, FAILED, main_of
from pipelines.options import add_terminal_flags
from pipelines.parsers import ArgumentParser, command_parser
from pipelines.places import PLACE_HELP, parse_places
from pipelines.terminal import fail, last_line, plural, say

DESCRIPTION = """Write FILE.idx beside each TFRecord file: a line "offset size" for each record, as NVIDIA DALI and
other readers want it. The show command and the readers of this package use it to jump to a record. Compressed files
cannot be indexed."""
EXAMPLES = f"""places:
  {PLACE_HELP}

examples:
  beam-tfrecord index out/
  beam-tfrecord index 'elsewhere/train*.tfrecord'"""


def make_parser(prog: str = "beam-tfrecord index") -> ArgumentParser:
    """The parser of the command, but for the places."""
    parser = command_parser(prog, "PLACE... [options]", DESCRIPTION, EXAMPLES)
    add_terminal_flags(parser)
    return parser


def index(arguments: Sequence[str]) -> int:
    """Write the index files and tell. A file that cannot be indexed is told, and the others are done all the same."""
    flags, places = parse_places(make_parser(), arguments)
    started = time.monotonic()
    storage = Storage()
    files = find_files(places, storage).files
    records = written = 0
    with contextlib.ExitStack() as held:
        leases = {
            folder: held.enter_context(hold(folder, storage, "beam-tfrecord index"))
            for folder in sorted({parent(file.uri) for file in files})
        }
        for file in files:
            confirm = leases[parent(file.uri)].confirm
            try:
                count = write_index_file(file.uri, file.name, storage, confirm, may_be_empty=file.may_be_empty)
            except DatasetError as error:
                fail(printable(str(error)))
                continue
            records += count
            written += 1
            if not flags.quiet:
                say(f"{printable(file.name)}: {plural(count, 'record')}")
    seconds = time.monotonic() - started
    values = {"records": records, "indexes": written, "failed": len(files) - written, "seconds": round(seconds, 3)}
    failed = f", {plural(len(files) - written, 'file')} failed" if written < len(files) else ""
    noun = "index file" if written == 1 else "index files"
    last_line(values, f"{plural(records, 'record')}, {written:,} {noun}{failed}, {seconds:.1f} s", as_json=flags.json)
    return DONE if written == len(files) else FAILED


main = main_of(index, "index files that were finished stay")


if __name__ == "__main__":
    sys.exit(main())
