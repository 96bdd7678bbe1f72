"""``beam-tfrecord merge``: several datasets as one."""

from __future__ import annotations

import sys

from pipelines import resharding
from pipelines.exits import end_of_process, main_of
from pipelines.parsers import ArgumentParser

DESCRIPTION = """Write several datasets as one. Their features and labels must be the same; where they are not, the
first difference is told, and how to mend it. Splits of one name are joined: the records of the first input come first.
Ids that two inputs share, and images that lie in different splits, are kept and warned of."""
EXAMPLES = """examples:
  beam-tfrecord merge spring/ summer/ --output year/
  beam-tfrecord merge train=spring/ validation=summer/ --output year/ --num_shards train=16,validation=2"""


def make_parser(prog: str = "beam-tfrecord merge") -> ArgumentParser:
    """The parser of the command, but for the places."""
    return resharding.make_parser(prog, DESCRIPTION, EXAMPLES, "[SPLIT=]DIR [SPLIT=]DIR...")


main = main_of(lambda given: resharding.run_command(make_parser(), given, several=True), resharding.WHEN_STOPPED)


if __name__ == "__main__":
    sys.exit(end_of_process(main()))
