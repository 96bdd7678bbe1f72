"""``beam-tfrecord pack``: a dataset as one archive, or how large it would be."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from beam_tfrecord.datasets.facts import DatasetFacts, facts_from
from beam_tfrecord.datasets.published import read_conversion
from beam_tfrecord.errors import ConfigError
from beam_tfrecord.options.values import parse_bytes
from beam_tfrecord.storage import Storage
from beam_tfrecord.tools.packing.measuring import SAMPLE_BYTES, CodecSize, Sample, measure, take_sample
from beam_tfrecord.tools.packing.members import compression_for
from beam_tfrecord.tools.packing.pack import check_target, pack_dataset
from beam_tfrecord.tools.showing.printable import printable
from pipelines.exits import DONE, main_of
from pipelines.options import add_terminal_flags
from pipelines.parsers import ArgumentParser, command_parser, place_to_write
from pipelines.places import dataset_folder, parse_places
from pipelines.terminal import file_progress, last_line, plural, say

DESCRIPTION = """Write a dataset into one archive: its metadata and its shards, the sizes and checksums of which are
compared with conversion.json on the way. The same dataset gives the same archive. A table tells what the records take
without compression and with gzip, zlib and xz, measured on a sample."""
EXAMPLES = """examples:
  beam-tfrecord pack out/ --output out.tar.xz          # also .tar, .tar.gz
  beam-tfrecord pack gs://bucket/out --output gs://bucket/out.tar
  beam-tfrecord pack out/ --sizes                      # the table, and no archive"""


def make_parser(prog: str = "beam-tfrecord pack") -> ArgumentParser:
    """The parser of the command, but for the folder."""
    parser = command_parser(prog, "DIR --output FILE [options]", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "--output", type=place_to_write, metavar="FILE", help="the archive; its ending says how it is compressed"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the file that is there")
    parser.add_argument("--sizes", action="store_true", help="print the table of sizes and write nothing")
    parser.add_argument(
        "--sample",
        metavar="SIZE",
        default=str(SAMPLE_BYTES),
        help=f"how much the table is measured on at most (default: {SAMPLE_BYTES // 2**20}MiB)",
    )
    add_terminal_flags(parser)
    return parser


def pack(arguments: Sequence[str]) -> int:
    """Measure, pack and tell. Raises the errors of :mod:`beam_tfrecord.errors`."""
    started = time.monotonic()
    flags, places = parse_places(make_parser(), arguments)
    if len(places) > 1:
        raise ConfigError(f"an archive holds one dataset: {places[1]!r} is one place too many")
    if bool(flags.output) == flags.sizes:
        raise ConfigError("give --output FILE for an archive, or --sizes for the table alone")
    try:
        limit = parse_bytes(flags.sample)
    except ValueError as error:
        raise ConfigError(f"--sample {flags.sample}: {error}") from None
    storage = Storage()
    folder = dataset_folder(places[0], storage)
    facts = facts_from(read_conversion(folder, storage))
    if flags.sizes:
        return show_sizes(folder, facts, storage, limit, as_json=flags.json)
    compression_for(flags.output)
    check_target(flags.output, storage, overwrite=flags.overwrite)
    values: dict[str, Any] = {}
    if not flags.quiet:
        sample = take_sample(folder, facts, storage, limit)
        sizes = measure(sample)
        values = size_values(sample, sizes)
        for line in size_lines(sample, sizes):
            say(line)
    with file_progress(quiet=flags.quiet) as progress:
        packed = pack_dataset(folder, facts, flags.output, storage, overwrite=flags.overwrite, progress=progress)
    seconds = time.monotonic() - started
    told = {
        "output": packed.output,
        "files": packed.files,
        "bytes": packed.num_bytes,
        "packed_bytes": packed.packed_bytes,
        "seconds": round(seconds, 3),
        **values,
    }
    text = f"{printable(packed.output)}: {plural(packed.files, 'file')}, {megabytes(packed.num_bytes)} in "
    last_line(told, f"{text}{megabytes(packed.packed_bytes)}, {seconds:.1f} s", as_json=flags.json)
    return DONE


def show_sizes(folder: str, facts: DatasetFacts, storage: Storage, limit: int, *, as_json: bool) -> int:
    """The table alone, on stdout."""
    sample = take_sample(folder, facts, storage, limit)
    sizes = measure(sample)
    last_line(size_values(sample, sizes), "\n".join(size_lines(sample, sizes)), as_json=as_json)
    return DONE


def size_values(sample: Sample, sizes: Sequence[CodecSize]) -> dict[str, Any]:
    """The table as values: bytes, and bytes a second."""
    return {
        "sample": {
            "records": sample.records,
            "bytes": len(sample.data),
            "of_records": sample.total_records,
            "of_bytes": sample.total_bytes,
            "is_all": sample.is_all,
        },
        "sizes": {
            size.codec: {
                "sample_bytes": size.packed_bytes,
                "ratio": round(size.ratio, 4),
                "estimated_bytes": size.estimate,
                "pack_bytes_per_second": round(size.pack_speed),
                "unpack_bytes_per_second": round(size.unpack_speed),
            }
            for size in sizes
        },
    }


def size_lines(sample: Sample, sizes: Sequence[CodecSize]) -> list[str]:
    """The table for a person."""
    of_what = f"all {plural(sample.records, 'record')}"
    if not sample.is_all:
        of_what = f"a sample of {sample.records:,} of {plural(sample.total_records, 'record')}"
    about = "" if sample.is_all else "about "
    lines = [f"records   {'size':>14}   share      packing    unpacking   (measured on {of_what})"]
    for size in sizes:
        speeds = f"{size.pack_speed / 1e6:>7,.0f} MB/s {size.unpack_speed / 1e6:>7,.0f} MB/s"
        whole = f"{about if size.codec != 'none' else ''}{megabytes(size.estimate)}"
        lines.append(f"  {size.codec:7} {whole:>14} {size.ratio:>7.1%} {speeds}")
    return lines


def megabytes(size: int) -> str:
    """A number of bytes for a person."""
    return f"{size / 1e6:,.1f} MB"


main = main_of(pack, "no archive was written")


if __name__ == "__main__":
    sys.exit(main())
