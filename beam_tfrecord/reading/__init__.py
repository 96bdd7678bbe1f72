"""Finished datasets read back: for training with TensorFlow, as plain values without it, and by TensorFlow's decoder."""

from __future__ import annotations

from beam_tfrecord.reading.reader import Reader, read
from beam_tfrecord.reading.tensorflow_decoder import decode_with_tensorflow
from beam_tfrecord.reading.tensorflow_import import has_tensorflow, tensorflow_version

__all__ = ["Reader", "decode_with_tensorflow", "has_tensorflow", "read", "tensorflow_version"]
