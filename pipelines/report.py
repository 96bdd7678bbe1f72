"""``beam-tfrecord report``: one page about a dataset for a person."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from beam_tfrecord.datasets.published import REPORT
from beam_tfrecord.errors import ConfigError
from beam_tfrecord.report import build_report
from beam_tfrecord.storage import Storage
from beam_tfrecord.storage.lease import hold
from pipelines.exits import DONE, main_of
from pipelines.options import add_terminal_flags
from pipelines.parsers import ArgumentParser, command_parser, place_to_write
from pipelines.places import dataset_folder, parse_places
from pipelines.terminal import last_line

DESCRIPTION = """Write report.html into the folder of a dataset: totals and what became of every row, class balance,
sizes and formats, boxes, changed and rejected images with examples, sample pictures, shards, options. The page is one
file that needs no network. convert writes it at its end; this command makes it anew, also for TFRecord files from
elsewhere, of which a bounded part is read."""
EXAMPLES = """examples:
  beam-tfrecord report out/
  beam-tfrecord report gs://bucket/out --output out.html"""


def make_parser(prog: str = "beam-tfrecord report") -> ArgumentParser:
    """The parser of the command, but for the folder."""
    parser = command_parser(prog, "DIR [options]", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "--output",
        type=place_to_write,
        metavar="FILE",
        help=f"where the page is written (default: {REPORT} in the folder)",
    )
    add_terminal_flags(parser)
    return parser


def report(arguments: Sequence[str]) -> int:
    """Write the page and tell where it is. Raises the errors of :mod:`beam_tfrecord.errors`."""
    started = time.monotonic()
    namespace, places = parse_places(make_parser(), arguments)
    if len(places) > 1:
        raise ConfigError(f"a report is about one dataset: {places[1]!r} is one place too many")
    storage = Storage()
    folder = dataset_folder(places[0], storage)
    output = namespace.output or f"{folder}/{REPORT}"
    is_file = bool(namespace.output)
    with hold(output if is_file else folder, storage, "beam-tfrecord report", is_file=is_file) as lease:
        page = build_report(folder, storage)
        lease.confirm()
        storage.write_bytes(output, page)
    seconds = time.monotonic() - started
    values = {"report": output, "bytes": len(page), "seconds": round(seconds, 3)}
    last_line(values, f"{output}: {len(page) / 1e6:.1f} MB, {seconds:.1f} s", as_json=namespace.json)
    return DONE


main = main_of(report, "nothing was written")


if __name__ == "__main__":
    sys.exit(main())
