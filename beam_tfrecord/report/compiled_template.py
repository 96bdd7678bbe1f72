"""The template of the page, compiled once for each installation.

Compiling it takes longer than filling it in. Where Python keeps what it has compiled (``__pycache__``) the template is
kept as well: under the same conditions, and a place that cannot be written to only means that it is compiled again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import sys
import uuid
from importlib import resources

import jinja2
from jinja2.bccache import Bucket

_DIGEST_SIZE = hashlib.sha256().digest_size


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


class _Cache(jinja2.BytecodeCache):
    """One file: a SHA-256, and what it is of. A damaged one counts for none, as does a place where nothing can be
    written."""

    def __init__(self, path: str) -> None:
        self._path = path

    def load_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError), open(self._path, "rb") as file:
            digest, code = file.read(_DIGEST_SIZE), file.read()
            if hashlib.sha256(code).digest() == digest:
                bucket.bytecode_from_string(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        code = bucket.bytecode_to_string()
        temporary = f"{self._path}.{uuid.uuid4().hex}.tmp"  # several processes may do this at the same time
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            try:
                with open(temporary, "xb") as file:
                    file.write(hashlib.sha256(code).digest() + code)
                os.replace(temporary, self._path)
            except OSError:
                os.unlink(temporary)


def _cache(name: str) -> _Cache | None:
    """Where Python would keep it; None where it keeps nothing, or the package lies in no folder."""
    path = str(resources.files("beam_tfrecord") / "templates" / name)
    if sys.dont_write_bytecode or not os.path.isfile(path):
        return None
    # What Jinja compiles is for its own version; for which template and which Python stands in what it writes.
    return _Cache(f"{importlib.util.cache_from_source(path)}.jinja2-{jinja2.__version__}.cache")
