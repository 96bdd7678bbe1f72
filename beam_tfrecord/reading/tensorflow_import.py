"""The one place where TensorFlow is imported: when it is first used, never before."""

from __future__ import annotations

import functools
import importlib.util
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


@functools.cache
def import_tensorflow() -> Any:
    """The module. Raises TensorFlowMissingError, which is a ConfigError and an ImportError."""
    try:
        import tensorflow
    except ModuleNotFoundError as error:
        if error.name != "tensorflow":
            raise
        raise TensorFlowMissingError(
            "TensorFlow is not installed: pip install 'beam-tfrecord[tensorflow]' (beam_tfrecord.read needs none)"
        ) from None
    return tensorflow
