"""Netpbm colour images of more than 8 bits a sample (PPM, ``P6`` with a maximum above 255), which Pillow cuts to 8."""

from __future__ import annotations

import re

import numpy as np

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images.pixels import Pixels

# Fields are separated by white space, and comments run from # to the end of a line (netpbm's ppm(5)).
_GAP = rb"(?:\s|#[^\r\n]*[\r\n])+"
_HEADER = re.compile(rb"P6" + _GAP + rb"(\d{1,9})" + _GAP + rb"(\d{1,9})" + _GAP + rb"(\d{1,5})\s")


def deep_size(data: bytes) -> tuple[int, int] | None:
    """(width, height) of a binary colour image with 16-bit samples; None for any other."""
    match = _HEADER.match(data)
    if match is None or not 255 < int(match[3]) < 65536:
        return None
    return int(match[1]), int(match[2])


def deep_pixels(data: bytes) -> Pixels:
    """The uint16 pixels of such an image, scaled so that its maximum becomes 65535. Raises ImageError."""
    match = _HEADER.match(data)
    assert match is not None  # deep_size() was asked first
    width, height, maximum = (int(number) for number in match.groups())
    count = width * height * 3
    if len(data) < match.end() + 2 * count:
        raise ImageError("truncated_image", "a PPM that ends before its last pixel; fetch or export the file again")
    samples = np.frombuffer(data, ">u2", count, match.end())
    if maximum == 65535:
        scaled = samples.astype(np.uint16)
    else:
        scaled = np.minimum(samples.astype(np.uint32) * 65535 // maximum, 65535).astype(np.uint16)
    return scaled.reshape(height, width, 3)
