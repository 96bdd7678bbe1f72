"""From a serialized record to an element of the loaded dataset. Runs inside of a tf.data graph.

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
from beam_tfrecord.reading.element_plan import ElementPlan, Target
from beam_tfrecord.reading.names import BOXES
from beam_tfrecord.reading.picture_tensors import fit, over_all, padded_place, picture_decoder, raw_decoder
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
    context, steps = (
        {spec.key: _feature(tf, spec) for spec in specs if spec.in_sequence == in_steps} for in_steps in (False, True)
    )

    def parse(serialized: Any) -> Tensors:
        found, found_steps = tf.io.parse_single_sequence_example(serialized, context, steps)
        parsed = {**found, **found_steps}
        return {spec.key: _in_rows(tf, parsed[spec.key], spec) for spec in specs}

    return parse


def _feature(tf: Any, spec: FeatureSpec) -> Any:
    dtype = {"int64": tf.int64, "float": tf.float32, "bytes": tf.string}[spec.dtype]
    if None in spec.shape:
        return tf.io.RaggedFeature(dtype, row_splits_dtype=tf.int64)
    kind = tf.io.FixedLenSequenceFeature if spec.in_sequence else tf.io.FixedLenFeature
    return kind(spec.shape, dtype)


def _in_rows(tf: Any, values: Any, spec: FeatureSpec) -> Any:
    """The values of a list of rows, which lie one after another in a record, as rows."""
    if len(spec.shape) != 2 or spec.shape[1] is None or spec.shape[0] is not None:
        return values
    width = spec.shape[1]
    if not isinstance(values, tf.RaggedTensor):
        return tf.reshape(values, [-1, width])
    rows = tf.reshape(values.flat_values, [-1, width])
    return tf.RaggedTensor.from_row_splits(rows, values.row_splits // width, validate=False)


def element_function(plan: ElementPlan, *, is_batch: bool = False) -> Callable[[Any], Any]:
    """The function that makes an element of a serialized record, or of a batch of records when the plan is plain."""
    tf = import_tensorflow()
    parse = sequence_parser(plan.specs) if plan.is_sequence else example_parser(plan.specs, is_batch=is_batch)

    def element(serialized: Any) -> Any:
        tensors = parse(serialized)
        place = _decode(tensors, plan)
        if place is not None:
            _move(tensors, plan, place)
        if plan.normal is not None and plan.image in tensors:
            mean, std = (tf.constant(values, tf.float32) for values in plan.normal)
            tensors[plan.image] = (tf.cast(tensors[plan.image], tf.float32) - mean) / std
        return _given_out(tensors, plan)

    # It branches with tf.cond only. To look for Python branches in it would take seconds.
    return tf.autograph.experimental.do_not_convert(element)  # type: ignore[no-any-return]


def _decode(tensors: Tensors, plan: ElementPlan) -> Any:
    """Puts pixels in the place of encoded pictures. Returns where in the padding the image lies, if that matters."""
    place = None
    for key, pixels in plan.pixels.items():
        is_image = key == plan.image
        columns = (tensors[key], *(tensors[name] for name in plan.raw)) if is_image else (tensors[key],)
        make = raw_decoder if is_image and plan.raw else picture_decoder
        if is_image and plan.moved:
            image = make(pixels, Target())(*columns)
            place = padded_place(image, plan.target.size or (1, 1))
            tensors[key] = fit(image, plan.target, is_mask=False)
        elif columns[0].shape.rank == 0:
            tensors[key] = make(pixels, plan.target)(*columns)
        else:
            tensors[key] = over_all(make(pixels, plan.target), columns, plan.target, pixels)
    return place


def _move(tensors: Tensors, plan: ElementPlan, place: Any) -> None:
    """Moves coordinates, which are fractions of the image, as padding moves the image."""
    tf = import_tensorflow()
    assert plan.target.size is not None
    inner, offset = tf.cast(place[:2], tf.float32), tf.cast(place[2:], tf.float32)
    size = tf.constant(plan.target.size, tf.float32)
    for key, axis in plan.moved.items():
        if axis < 0:
            ratio, shift = tf.tile(inner / size, [2]), tf.tile(offset / size, [2])
        else:
            ratio, shift = inner[axis] / size[axis], offset[axis] / size[axis]
        tensors[key] = tensors[key] * ratio + shift


def _given_out(tensors: Tensors, plan: ElementPlan) -> Any:
    """A dict by name, or (input, target)."""
    if plan.supervised is None:
        return _named(tensors, plan, list(plan.names))
    target: Any = _named(tensors, plan, list(plan.supervised))
    if not plan.is_dict_target:
        (target,) = target.values()
    if plan.label_ids:
        target = _one_hot(target, plan.label_ids, is_list=plan.has_label_list)
    if plan.image and set(plan.names) == {plan.image, *plan.supervised}:
        return tensors[plan.image], target
    return _named(tensors, plan, [key for key in plan.names if key not in plan.supervised]), target


def _named(tensors: Tensors, plan: ElementPlan, keys: list[str]) -> Tensors:
    tf = import_tensorflow()
    named = {plan.names[key]: tensors[key] for key in keys if key not in plan.sides}
    if plan.sides and set(plan.sides) <= set(keys):
        named[BOXES] = tf.stack([tensors[side] for side in plan.sides], axis=-1)
    return named


def _one_hot(label: Any, ids: tuple[int, ...], *, is_list: bool) -> Any:
    """Ones for the labels that are there: ``[labels]``, in a batch ``[b, labels]``."""
    tf = import_tensorflow()
    equal = tf.expand_dims(label, -1) == tf.constant(ids, tf.int64)
    return tf.cast(tf.reduce_any(equal, axis=-2) if is_list else equal, tf.float32)
