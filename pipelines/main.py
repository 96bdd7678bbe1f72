"""``beam-tfrecord``: one command with a subcommand for each job."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from beam_tfrecord.errors import nearest
from pipelines.exits import DONE, USAGE, end_of_process
from pipelines.terminal import fail

COMMANDS = {
    "convert": "convert labelled images or a table to a TFRecord dataset",
    "verify": "check every record of a dataset against its checksums and metadata",
    "inspect": "tell what stands out in the pictures of a dataset, or of a source before it is converted",
    "show": "print records, or draw a sheet of their pictures",
    "extract": "write the images and a manifest that convert to the same records again",
    "reshard": "write a dataset anew with other shards, compression or names of splits",
    "merge": "write several datasets as one",
    "index": "write an index file beside each shard, for random access",
    "report": "write report.html for a dataset",
    "pack": "one archive of a dataset, or how large it would be",
    "unpack": "the dataset of an archive, checked",
}


EXAMPLES = """examples:
  beam-tfrecord convert --input photos/ --output out/
  beam-tfrecord verify out/
  beam-tfrecord show out/ --sheet sheet.png
  beam-tfrecord report out/"""


def usage() -> str:
    """The text of --help."""
    lines = ["usage: beam-tfrecord COMMAND ...", "", "commands:"]
    lines += [f"  {name:10} {text}" for name, text in COMMANDS.items()]
    lines += ["", EXAMPLES, "", "beam-tfrecord COMMAND --help tells of a command, --version of the version."]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the subcommand that the first argument names."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["help"] and given[1:]:
        given = [given[1], "--help", *given[2:]]
    if not given or given[0] in ("-h", "--help", "help"):
        print(usage())
        return DONE if given else USAGE
    if given[0] == "--version":
        from beam_tfrecord._version import __version__

        print(f"beam-tfrecord {__version__}")
        return DONE
    name, rest = given[0], given[1:]
    if name not in COMMANDS:
        fail(f"there is no command {name!r}{nearest(name, COMMANDS)}; there are {', '.join(COMMANDS)}")
        return USAGE
    command = importlib.import_module(f"pipelines.{name}")
    status: int = command.main(rest)
    return end_of_process(status) if arguments is None else status


if __name__ == "__main__":
    sys.exit(main())
