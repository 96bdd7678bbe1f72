"""The one place where TensorFlow is imported: when it is first used, never before."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from beam_tfrecord.errors import ConfigError


class TensorFlowMissingError(ConfigError, ImportError):
    """What was asked for needs TensorFlow, and it is not installed."""


def has_tensorflow() -> bool:
    """Whether TensorFlow is installed. It is not imported."""
    return importlib.util.find_spec("tensorflow") is not None


def tensorflow_version() -> str:
    """The version of TensorFlow, which is imported for it."""
    version: str = import_tensorflow().__version__
    return version


_IMPORT_LOCK = threading.Lock()
_SURROUNDINGS: list[Callable[[], AbstractContextManager[None]]] = [contextlib.nullcontext]  # the last one holds


@contextlib.contextmanager
def surrounded_import(surroundings: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """Within it, what TensorFlow is imported in, should this process come to it: for a program with a word to say then.

    The surroundings are entered once at most, in the thread that needs TensorFlow first, while others that need it
    wait. They are over when this is.
    """
    _SURROUNDINGS.append(surroundings)
    try:
        yield
    finally:
        with _IMPORT_LOCK:
            _SURROUNDINGS.pop()


@functools.cache
def import_tensorflow() -> Any:
    """The module. Raises TensorFlowMissingError, which is a ConfigError and an ImportError."""
    with _IMPORT_LOCK:
        is_there = "tensorflow" in sys.modules
        try:
            with contextlib.nullcontext() if is_there else _SURROUNDINGS[-1]():
                import tensorflow
        except ModuleNotFoundError as error:
            if error.name != "tensorflow":
                raise
            raise TensorFlowMissingError(
                "TensorFlow is not installed: pip install 'beam-tfrecord[tensorflow]' (beam_tfrecord.read needs none)"
            ) from None
        return tensorflow
