"""Serialized records to tensors, as the stored spec says. Runs inside of a tf.data graph.

What a feature becomes, by the shape of its spec (``n`` is any number of values, ``t`` the steps of a sequence):

==========  ============  ================  ============================
spec        record        batch of records  feature list of a sequence
==========  ============  ================  ============================
``()``      ``[]``        ``[b]``           ``[t]``
``(3,)``    ``[3]``       ``[b, 3]``        ``[t, 3]``
``(None,)`` ``[n]``       ``[b, n]``        ``[t, n]``
``(n, 4)``  ``[n, 4]``    ``[b, n, 4]``     ``[t, n, 4]``
==========  ============  ================  ============================

A dimension ``n`` behind another one makes a RaggedTensor. dtype is int64, float32 or string.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from beam_tfrecord.annotations.base import FeatureSpec
from beam_tfrecord.reading.tensorflow_import import import_tensorflow

Tensors = dict[str, Any]


def example_parser(specs: Sequence[FeatureSpec], *, is_batch: bool) -> Callable[[Any], Tensors]:
    """Parses a serialized tf.train.Example (a scalar string), or a batch of them, to tensors by key."""
    tf = import_tensorflow()
    features = {spec.key: _feature(tf, spec) for spec in specs}

    def parse(serialized: Any) -> Tensors:
        parse_any = tf.io.parse_example if is_batch else tf.io.parse_single_example
        parsed = parse_any(serialized, features)
        return {spec.key: _in_rows(tf, parsed[spec.key], spec) for spec in specs}

    return parse


def sequence_parser(specs: Sequence[FeatureSpec]) -> Callable[[Any], Tensors]:
    """Parses a serialized tf.train.SequenceExample: context and feature lists together, by key."""
    tf = import_tensorflow()
    context = {spec.key: _feature(tf, spec) for spec in specs if not spec.in_sequence}
    steps = {spec.key: _step(tf, spec) for spec in specs if spec.in_sequence}

    def parse(serialized: Any) -> Tensors:
        found, found_steps = tf.io.parse_single_sequence_example(serialized, context, steps)
        parsed = {**found, **found_steps}
        return {spec.key: _in_rows(tf, parsed[spec.key], spec) for spec in specs}

    return parse


def _dtype(tf: Any, spec: FeatureSpec) -> Any:
    return {"int64": tf.int64, "float": tf.float32, "bytes": tf.string}[spec.dtype]


def _feature(tf: Any, spec: FeatureSpec) -> Any:
    if None in spec.shape:
        return tf.io.RaggedFeature(_dtype(tf, spec), row_splits_dtype=tf.int64)
    return tf.io.FixedLenFeature(spec.shape, _dtype(tf, spec))


def _step(tf: Any, spec: FeatureSpec) -> Any:
    if None in spec.shape:
        return tf.io.RaggedFeature(_dtype(tf, spec), row_splits_dtype=tf.int64)
    return tf.io.FixedLenSequenceFeature(spec.shape, _dtype(tf, spec))


def _in_rows(tf: Any, values: Any, spec: FeatureSpec) -> Any:
    """The values of a list of rows, which lie one after another in a record, as rows."""
    if len(spec.shape) != 2 or spec.shape[1] is None or spec.shape[0] is not None:
        return values
    width = spec.shape[1]
    if not isinstance(values, tf.RaggedTensor):
        return tf.reshape(values, [-1, width])
    rows = tf.reshape(values.flat_values, [-1, width])
    return tf.RaggedTensor.from_row_splits(rows, values.row_splits // width, validate=False)
