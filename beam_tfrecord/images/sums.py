"""Sums of the values of stored pictures, for the mean and the standard deviation of their channels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import simplejpeg

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import png
from beam_tfrecord.images.decode import decode_png
from beam_tfrecord.images.notes import Notes
from beam_tfrecord.images.stored import StoredImage


class ChannelSums(NamedTuple):
    """Of one picture. dtype: ``uint8`` or ``uint16``. sums, squares: of the values of each channel."""

    dtype: str
    pixels: int
    sums: tuple[int, ...]
    squares: tuple[int, ...]


def channel_sums(image: StoredImage) -> ChannelSums | None:
    """The sums of all values of a stored picture, decoded in full; None when it does not decode."""
    try:
        pixels = _pixels_of(image)
    except (ImageError, png.PngError, ValueError):
        return None
    flat = pixels.reshape(-1, pixels.shape[2])
    values = np.arange(256 if pixels.dtype == np.uint8 else 65_536, dtype=np.uint64)
    counts = [
        np.bincount(flat[:, channel], minlength=len(values)).astype(np.uint64) for channel in range(flat.shape[1])
    ]
    sums = tuple(int((own * values).sum()) for own in counts)
    squares = tuple(int((own * values * values).sum()) for own in counts)
    return ChannelSums(str(pixels.dtype.newbyteorder("=")), len(flat), sums, squares)


def _pixels_of(image: StoredImage) -> npt.NDArray[np.integer]:
    if image.format == "jpeg":
        colorspace = "GRAY" if image.channels == 1 else "RGB"
        decoded: npt.NDArray[np.uint8] = simplejpeg.decode_jpeg(image.data, colorspace, strict=False)
        return decoded
    if image.format == "png":
        return decode_png(png.read_chunks(image.data), Notes()).pixels
    raw = np.frombuffer(image.data, np.dtype(image.dtype).newbyteorder("<"))
    return raw.reshape(image.height, image.width, image.channels)
