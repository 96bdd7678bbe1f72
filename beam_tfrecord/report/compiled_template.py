"""The template of the page, compiled once for each installation.

Compiling it takes longer than filling it in. Where Python keeps what it has compiled (``__pycache__``) the template is
kept as well: under the same conditions, and a place that cannot be written to only means that it is compiled again.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import pickle
import sys
from importlib import resources

import jinja2
from jinja2.bccache import Bucket, FileSystemBytecodeCache


def read_part(name: str) -> str:
    """A file of the page, as text."""
    return (resources.files("beam_tfrecord") / "templates" / name).read_text(encoding="utf-8")


@functools.cache
def load_template(name: str) -> jinja2.Template:
    """A template of the package; values are escaped, and one that is missing is an error."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(read_part),
        bytecode_cache=_cache(name),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


class _Cache(FileSystemBytecodeCache):
    """Does without where nothing can be written, and where what was written is damaged."""

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            super().load_bytecode(bucket)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            os.makedirs(self.directory, exist_ok=True)
            super().dump_bytecode(bucket)


def _cache(name: str) -> _Cache | None:
    """Where Python would keep it; None where it keeps nothing, or the package lies in no folder."""
    path = str(resources.files("beam_tfrecord") / "templates" / name)
    if sys.dont_write_bytecode or not os.path.isfile(path):
        return None
    folder = os.path.dirname(importlib.util.cache_from_source(path))
    # What Jinja compiles is for its own version; for which Python stands in the file.
    return _Cache(folder, f"%s.jinja2-{jinja2.__version__}.cache")
