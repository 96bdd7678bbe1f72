"""Sums of the values of stored pictures, for the mean and the standard deviation of their channels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import simplejpeg

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import png
from beam_tfrecord.images.decode import decode_png, load_jpeg
from beam_tfrecord.images.jpeg import read_header
from beam_tfrecord.images.pixels import as_image
from beam_tfrecord.images.stored import Notes, StoredImage


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
    values = np.arange(256 if pixels.dtype == np.uint8 else 65_536, dtype=np.uint64)
    counts = _counts(pixels, len(values))[: image.channels]
    sums, squares = (tuple((counts @ powers).tolist()) for powers in (values, values * values))
    return ChannelSums(str(pixels.dtype.newbyteorder("=")), pixels.shape[0] * pixels.shape[1], sums, squares)


def _counts(pixels: npt.NDArray[np.integer], size: int) -> npt.NDArray[np.uint64]:
    """How often each value occurs, by channel."""
    channels = pixels.shape[2]
    if pixels.dtype == np.uint8:  # Pillow counts in half the time
        return np.array(as_image(pixels).histogram(), np.uint64).reshape(channels, size)
    flat = pixels.reshape(-1, channels)
    counts = [np.bincount(flat[:, channel], minlength=size) for channel in range(channels)]
    return np.array(counts, np.uint64)


def _pixels_of(image: StoredImage) -> npt.NDArray[np.integer]:
    """The pixels of all channels, and perhaps of one more that counts for nothing: Pillow takes four octets to a pixel
    as they are, and copies three."""
    if image.format == "jpeg":
        mode, colorspace = ("L", "GRAY") if image.channels == 1 else ("RGB", "RGBX")
        try:
            decoded: npt.NDArray[np.uint8] = simplejpeg.decode_jpeg(image.data, colorspace, strict=False)
        except ValueError:  # stored with a decoder_warning
            loaded = load_jpeg(image.data, read_header(image.data)).convert(mode)
            decoded = np.asarray(loaded).reshape(image.height, image.width, image.channels)
        return decoded
    if image.format == "png":
        return decode_png(png.read_chunks(image.data), Notes()).pixels
    raw = np.frombuffer(image.data, np.dtype(image.dtype).newbyteorder("<"))
    return raw.reshape(image.height, image.width, image.channels)
