"""The options that decide how fast a job is."""

from __future__ import annotations

from dataclasses import dataclass

from beam_tfrecord.options.declaring import ConfigSection, option
from beam_tfrecord.options.values import parse_bytes, parse_positive


@dataclass(frozen=True)
class RunConfig(ConfigSection):
    """How fast, never what: nothing here changes a byte of the result."""

    processes: int | None = option(
        None,
        "processes that write shards on this machine (default: one per core for 50,000 small local images or more)",
        parse=parse_positive,
        metavar="N",
        decides_bytes=False,
    )
    read_threads: int | None = option(
        None,
        "images read at a time in each worker process (default: one per core; 48 where they lie in an object store)",
        parse=parse_positive,
        metavar="N",
        decides_bytes=False,
    )
    read_ahead: int = option(
        64 * 2**20,
        "bytes of images that a shard may hold in advance",
        parse=parse_bytes,
        metavar="SIZE",
        decides_bytes=False,
    )
    gcs_user_project: str | None = option(
        None,
        "project that pays for requests to Cloud Storage buckets that are set to requester pays",
        metavar="PROJECT",
        decides_bytes=False,
    )
