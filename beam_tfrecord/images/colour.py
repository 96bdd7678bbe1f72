"""Channels, transparency and depth of pixels. Every function takes uint8 and uint16 and computes in whole numbers.

Images are worked on in strips of rows, so that the wider integers of a step never take more than a few megabytes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from beam_tfrecord.images.pixels import Pixels

# ITU-R BT.601 luma in 16-bit fixed point, the numbers of Pillow's convert("L"), so that both give the same grey.
_LUMA = (19595, 38470, 7471)
_STRIP_SAMPLES = 1 << 20


def composite(pixels: Pixels, background: tuple[int, int, int]) -> Pixels:
    """Pixels laid on a background (8-bit RGB): the alpha channel goes. Grey on a coloured background becomes RGB."""
    channels = pixels.shape[2]
    if channels in (1, 3):
        return pixels
    top = int(np.iinfo(pixels.dtype).max)
    is_gray = channels == 2 and len(set(background)) == 1
    ground = np.array(background[:1] if is_gray else background, np.uint64) * (top // 255)
    out = np.empty((*pixels.shape[:2], 1 if is_gray else 3), pixels.dtype)
    for rows in _strips(pixels):
        alpha = pixels[rows, :, -1:].astype(np.uint64)
        colour = pixels[rows, :, :-1].astype(np.uint64)
        out[rows] = (colour * alpha + ground * (top - alpha) + top // 2) // top
    return out


def to_gray(pixels: Pixels) -> Pixels:
    """RGB to grey: ITU-R BT.601 luma, rounded. Grey passes as it is."""
    if pixels.shape[2] == 1:
        return pixels
    out = np.empty((*pixels.shape[:2], 1), pixels.dtype)
    for rows in _strips(pixels):
        red, green, blue = (pixels[rows, :, channel].astype(np.uint64) for channel in range(3))
        out[rows, :, 0] = (red * _LUMA[0] + green * _LUMA[1] + blue * _LUMA[2] + 0x8000) >> 16
    return out


def to_rgb(pixels: Pixels) -> Pixels:
    """Grey to three equal channels. RGB passes as it is."""
    return np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels


def to_8_bit(pixels: Pixels) -> Pixels:
    """uint16 to uint8: value / 257, rounded, so that 65535 becomes 255 and nothing is clipped. uint8 passes as it
    is."""
    if pixels.dtype == np.uint8:
        return pixels
    out = np.empty(pixels.shape, np.uint8)
    for rows in _strips(pixels):
        out[rows] = (pixels[rows].astype(np.uint32) + 128) // 257
    return out


def fill(background: tuple[int, int, int], pixels: Pixels) -> tuple[int, ...]:
    """The background as one value per channel of ``pixels``, in the range of their dtype; opaque where there is
    alpha."""
    top = int(np.iinfo(pixels.dtype).max)
    colour: Pixels = np.array([[background]], np.uint8)
    if pixels.shape[2] < 3:
        colour = to_gray(colour)
    values = tuple(int(value) * (top // 255) for value in colour[0, 0])
    return (*values, top) if pixels.shape[2] in (2, 4) else values


def _strips(pixels: Pixels) -> Iterator[slice]:
    height, width, channels = pixels.shape
    step = max(1, _STRIP_SAMPLES // (width * channels))
    return (slice(start, start + step) for start in range(0, height, step))
