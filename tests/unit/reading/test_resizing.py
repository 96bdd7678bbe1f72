"""Resizing by turns against ``tf.image.resize``, and rounding against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from beam_tfrecord.reading.picture_tensors import resized, rounded

tf = pytest.importorskip("tensorflow")

SIDES = st.integers(1, 70)


def pixels(height: int, width: int, channels: int, dtype: Any, seed: int = 0) -> Any:
    most = np.iinfo(dtype).max
    return np.random.default_rng(seed).integers(0, most + 1, (height, width, channels)).astype(dtype)


def by_tensorflow(image: Any, size: tuple[int, int]) -> Any:
    return tf.image.resize(image, size, method="bilinear", antialias=True).numpy()


def as_float(values: Any) -> Any:
    return tf.cast(values, tf.float32)


@settings(max_examples=60, deadline=None)
@given(SIDES, SIDES, SIDES, SIDES, st.integers(1, 4), st.sampled_from([np.uint8, np.uint16]), st.integers(0, 9))
@example(256, 256, 224, 224, 3, np.uint8, 0)
@example(40, 60, 40, 60, 3, np.uint8, 0)
@example(40, 60, 40, 7, 3, np.uint16, 0)
@example(1, 1, 9, 5, 1, np.uint8, 0)
@example(70, 50, 1, 1, 2, np.uint16, 0)
def test_every_bit_is_that_of_tensorflow(
    height: int, width: int, new_height: int, new_width: int, channels: int, dtype: Any, seed: int
) -> None:
    image = pixels(height, width, channels, dtype, seed)
    expected = by_tensorflow(image, (new_height, new_width))
    assert np.array_equal(resized(tf.constant(image), (new_height, new_width), as_float).numpy(), expected)
    whole = resized(tf.constant(image), (new_height, new_width), lambda values: rounded(as_float(values), image.dtype))
    assert whole.dtype == dtype
    assert np.array_equal(whole.numpy(), np.rint(expected).astype(dtype))


def test_sizes_may_be_known_only_when_it_runs() -> None:
    numbers = tf.TensorSpec([], tf.int32)

    @tf.function(input_signature=[tf.TensorSpec([None, None, 3], tf.uint8), numbers, numbers])
    def in_graph(image: Any, height: Any, width: Any) -> Any:
        return resized(image, (height, width), as_float)

    for size in ((12, 30), (40, 17), (21, 37)):
        image = pixels(21, 37, 3, np.uint8)
        assert np.array_equal(in_graph(image, *size).numpy(), by_tensorflow(image, size))


def test_a_picture_that_has_the_size_is_not_weighed() -> None:
    image = tf.constant(pixels(5, 7, 3, np.uint8))
    assert resized(image, (5, 7), lambda values: values) is image


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_halves_are_rounded_to_the_even_neighbour_and_nothing_overflows(dtype: Any) -> None:
    most = np.iinfo(dtype).max
    halves = np.arange(0, most + 0.5, 0.5, dtype=np.float32)
    for values in (halves, np.nextafter(halves, np.float32(0)), np.nextafter(halves, np.float32(most))):
        assert np.array_equal(rounded(tf.constant(values), dtype).numpy(), np.rint(values).astype(dtype))
    above = tf.constant(np.array([most + 0.4, most + 0.6, most + 3], np.float32))
    assert rounded(above, dtype).numpy().tolist() == [most] * 3


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_white_stays_white_however_many_pixels_become_one(dtype: Any) -> None:
    most = np.iinfo(dtype).max
    image = tf.fill([6000, 2, 3], tf.constant(most, dtype))
    assert rounded(resized(image, (1, 1), as_float), dtype).numpy().tolist() == [[[most] * 3]]
