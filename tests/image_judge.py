"""What TensorFlow and Pillow say about stored images, for tests to compare with."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageOps

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import StoredImage, convert_image
from beam_tfrecord.options.config import ImagePolicy

Array = NDArray[Any]


def code_of(data: bytes, policy: ImagePolicy = ImagePolicy()) -> str:  # noqa: B008  (it is frozen)
    """The code with which a file is refused."""
    with pytest.raises(ImageError) as caught:
        convert_image(data, policy)
    return caught.value.code


def warnings_of(stored: StoredImage) -> list[str]:
    """The codes of what was noticed about an image."""
    return [code for code, _ in stored.warnings]


def by_tensorflow(data: bytes, dtype: str = "uint8") -> Array:
    """The pixels (height, width, channels) that TensorFlow decodes. Raises its error when it refuses."""
    import tensorflow as tf

    pixels: Array = tf.io.decode_image(data, dtype=tf.dtypes.as_dtype(dtype)).numpy()
    return pixels


def pixels_of(stored: StoredImage) -> Array:
    """The stored pixels, and an assertion that they have the stated shape: TensorFlow decodes what is encoded."""
    shape = (stored.height, stored.width, stored.channels)
    if stored.format == "raw":
        pixels: Array = np.frombuffer(stored.data, np.dtype(stored.dtype).newbyteorder("<")).reshape(shape)
    else:
        pixels = by_tensorflow(stored.data, stored.dtype)
    assert pixels.shape == shape
    return pixels


def by_pillow(data: bytes, mode: str, upright: bool = True) -> Array:
    """The pixels (height, width, channels) of a file as Pillow sees them in a mode of 8 bits."""
    image: Any = Image.open(io.BytesIO(data))
    if upright:
        image = ImageOps.exif_transpose(image)
    pixels = np.asarray(image.convert(mode))
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


def psnr(first: Array, second: Array) -> float:
    """Peak signal to noise ratio of 8-bit pixels, in dB; infinite when they are equal."""
    error = float(np.mean((first.astype(float) - second.astype(float)) ** 2))
    return float("inf") if error == 0 else 10 * float(np.log10(255**2 / error))
