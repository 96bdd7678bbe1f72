"""Finished datasets read back: for training with TensorFlow, and as plain values without it."""

from __future__ import annotations

from beam_tfrecord.reading.loader import load
from beam_tfrecord.reading.options import LoadOptions
from beam_tfrecord.reading.reader import Reader, read
from beam_tfrecord.reading.tensorflow_import import (
    decode_with_tensorflow,
    has_tensorflow,
    surrounded_import,
    tensorflow_version,
)

__all__ = [
    "LoadOptions",
    "Reader",
    "decode_with_tensorflow",
    "has_tensorflow",
    "load",
    "read",
    "surrounded_import",
    "tensorflow_version",
]
