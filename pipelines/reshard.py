"""``beam-tfrecord reshard``: a dataset with other shards, compression or names of splits."""

from __future__ import annotations

import sys

from pipelines import resharding
from pipelines.exits import end_of_process, main_of
from pipelines.parsers import ArgumentParser

DESCRIPTION = """Write a dataset anew with another number of shards, another compression or other names of splits. The
records stay as they are, byte for byte and in their order, and every checksum is looked at on the way. What is not
asked for stays as well. TFRecord files from elsewhere become shards without metadata."""
EXAMPLES = """examples:
  beam-tfrecord reshard out/ --output out8/ --num_shards train=8,validation=1
  beam-tfrecord reshard out/ --output packed/ --compression gzip
  beam-tfrecord reshard out/ --output renamed/ --rename_splits train=training,val=validation
  beam-tfrecord reshard 'elsewhere/train*' --output train/ --num_shards 16 --index"""


def make_parser(prog: str = "beam-tfrecord reshard") -> ArgumentParser:
    """The parser of the command, but for the place."""
    return resharding.make_parser(prog, DESCRIPTION, EXAMPLES, "[SPLIT=]DIR")


main = main_of(lambda given: resharding.run_command(make_parser(), given, several=False), resharding.WHEN_STOPPED)


if __name__ == "__main__":
    sys.exit(end_of_process(main()))
