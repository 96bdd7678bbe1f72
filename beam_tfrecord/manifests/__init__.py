"""What people have, as rows: one module per format, one line for each in :mod:`beam_tfrecord.manifests.registry`."""

from __future__ import annotations

from beam_tfrecord.manifests.formats.memory import describe_rows
from beam_tfrecord.manifests.inputs import describe_inputs, missing
from beam_tfrecord.manifests.registry import FORMATS, detect_format, register_format

__all__ = ["FORMATS", "describe_inputs", "describe_rows", "detect_format", "missing", "register_format"]
