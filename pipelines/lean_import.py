"""Apache Beam imported without what it would load only in case: a second or more of every start.

Beam looks for optional packages while it is imported (pandas, pyarrow, Google's cloud clients, MongoDB ...) and loads
all that are installed. A job that reads and writes local files uses none of them. While Beam is imported here they look
as if they were not installed, which Beam provides for; afterwards they can be imported as ever.
"""

from __future__ import annotations

import gc
import importlib
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

GARBAGE_THRESHOLD = 20_000  # objects between two looks for cycles of them: records are freed without the collector
OPTIONAL_OF_BEAM = (
    "IPython",
    "apache_beam.io.gcp.bigquery",  # which Beam does without where Google's clients are missing
    "apitools",
    "azure",
    "boto3",
    "dask",
    "distributed",
    "envoy_data_plane",
    "google.api_core",
    "google.auth",
    "google.cloud",
    "hdfs",
    "oracledb",
    "pandas",
    "pyarrow",
    "pymongo",
    "redis",
    "sqlalchemy",
    "tensorflow",
    "torch",
    "tornado",
)


LOCAL_JOB = (
    "apache_beam",
    "apache_beam.runners.portability.fn_api_runner.fn_runner",
    "beam_tfrecord.transforms.dataset",
    "beam_tfrecord.report.dataset",
    "beam_tfrecord.report.page",
)


class _NotInstalled(MetaPathFinder):
    """Says of some packages that they are not there."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        parts = fullname.split(".")
        if any(".".join(parts[:length]) in self._names for length in range(1, len(parts) + 1)):
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


@contextmanager
def looking_uninstalled(names: Sequence[str]) -> Iterator[None]:
    """Packages that are not loaded yet cannot be imported inside of the block."""
    finder, threshold = _NotInstalled(names), logging.root.manager.disable
    logging.disable(logging.WARNING)  # those who look for a package say so when they do not find it
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        logging.disable(threshold)


def import_beam_lean() -> None:
    """Import what a local job needs, Beam first of all. Does nothing when Beam is loaded already."""
    if "apache_beam" in sys.modules:
        return
    with looking_uninstalled(OPTIONAL_OF_BEAM), collection_paused():
        for name in LOCAL_JOB:
            importlib.import_module(name)


@contextmanager
def collection_paused() -> Iterator[None]:
    """No garbage collection inside of the block, and none ever of what it leaves: modules are no garbage.

    Importing makes objects by the hundred thousand, and the collector would look at all of them again and again.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(GARBAGE_THRESHOLD)
        if was_enabled:
            gc.enable()
