"""Pictures of a record for Pillow."""

from __future__ import annotations

import io
from typing import Any

from PIL import Image

from beam_tfrecord.errors import DatasetError
from beam_tfrecord.images import safety


def open_picture(data: bytes) -> Image.Image:
    """The encoded picture, decoded. Raises DatasetError when it does not decode."""
    try:
        image = Image.open(io.BytesIO(data), formats=("JPEG", "PNG"))
        image.load()
    except safety.DECODE_ERRORS as error:
        raise DatasetError(f"the picture does not decode: {error}") from None
    return image


def picture_of_pixels(data: bytes, height: int, width: int, channels: int, dtype: str) -> Image.Image:
    """The picture of raw pixels: row-major HWC, little-endian, ``uint8`` or ``uint16``.

    Pillow has 16 bits for grey only; of other pixels it gets the upper 8 bits, as it takes them from a PNG.
    Raises DatasetError when the number of bytes does not fit.
    """
    import numpy as np

    size = height * width * channels * np.dtype(dtype).itemsize
    if len(data) != size:
        raise DatasetError(
            f"the picture has {len(data):,} bytes, but {height} x {width} x {channels} {dtype} are {size:,}"
        )
    pixels: Any = np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).reshape(height, width, channels)
    if channels == 1:
        pixels = pixels[:, :, 0]
    elif dtype == "uint16":
        pixels = (pixels >> 8).astype(np.uint8)
    return Image.fromarray(pixels)
