"""Names of the shards of Hugging Face's datasets: ``SPLIT-00000-of-00002.parquet``, also with a fingerprint behind."""

from __future__ import annotations

import re

SHARD = re.compile(r"(?:(?P<split>[\w.-]+?)-)?(?P<number>\d{5})-of-(?P<count>\d{5})(?:-[0-9a-f]+)?\.parquet")
SPLIT_OF_NAME = "\0split"  # the column of the splits that names of shards tell


def split_of_shard(name: str) -> str:
    """The split that the name of a file tells; '' for none."""
    found = SHARD.fullmatch(name)
    return (found["split"] or "") if found is not None else ""
