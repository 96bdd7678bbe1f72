"""Small grey pictures of stored images: what fingerprints and measures of pixels are taken from."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt
import simplejpeg
from PIL import Image

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images.decode import load_jpeg
from beam_tfrecord.images.jpeg import is_limit, read_header
from beam_tfrecord.images.safety import DECODE_ERRORS
from beam_tfrecord.images.stored import SeenImage, SmallPicture, StoredImage

LEAST_SIDE = 32  # pixels that a side of a small picture has at least, where the picture has as many
MOST_PIXELS = 16_000_000  # of what is no JPEG, which is decoded as a whole
_ENOUGH = 64  # pixels of the shorter side of what is no JPEG
_EIGHTHS = 8  # libjpeg-turbo decodes at so many scales


def small_jpeg(data: bytes, height: int, width: int, *, strict: bool = True) -> SmallPicture:
    """The grey of a JPEG of that size, decoded to no more pixels than are needed: at the least of eight scales at which
    both sides have :data:`LEAST_SIDE`. Every coded bit is looked at all the same. Raises ValueError."""
    # A side that is asked for and not there would make the decoder enlarge.
    least = min(LEAST_SIDE, height), min(LEAST_SIDE, width)
    decoded = simplejpeg.decode_jpeg(data, "GRAY", min_height=least[0], min_width=least[1], strict=strict)
    rows, columns, _ = decoded.shape
    scale = 1
    while -(-height * scale // _EIGHTHS) != rows or -(-width * scale // _EIGHTHS) != columns:
        scale += 1
    span = height * scale, width * scale
    if _EIGHTHS % scale == 0:
        return SmallPicture(rows, columns, decoded.tobytes(), (height, width), _EIGHTHS // scale)
    return SmallPicture(rows, columns, decoded.tobytes(), span, _EIGHTHS)


def look_at_jpeg(data: bytes, height: int, width: int) -> tuple[str | None, SmallPicture | None]:
    """What libjpeg-turbo has against the scans, as :func:`beam_tfrecord.images.jpeg.complaint` tells it, and the small
    picture that it made on the way; None where there is a complaint."""
    try:
        return None, small_jpeg(data, height, width)
    except ValueError as error:
        message = str(error)
        return "" if is_limit(message) else message, None


def small_of(image: StoredImage) -> SmallPicture | None:
    """The small picture of a stored image; None when it does not decode, or is a PNG too large to be decoded for it."""
    if isinstance(image, SeenImage) and image.small is not None:
        return image.small
    height, width = image.height, image.width
    try:
        if image.format == "jpeg":
            return _of_jpeg(image.data, height, width)
        if height * width > MOST_PIXELS:
            return None
        if image.format == "png":
            with Image.open(io.BytesIO(image.data), formats=["PNG"]) as file:
                file.load()
                return _reduced(_of_8_bits(np.asarray(file)) if file.mode.startswith("I") else file.convert("L"))
        pixels = np.frombuffer(image.data, np.dtype(image.dtype).newbyteorder("<"))
        return _reduced(_of_8_bits(pixels.reshape(height, width, image.channels)))
    except DECODE_ERRORS:
        return None


def _of_jpeg(data: bytes, height: int, width: int) -> SmallPicture | None:
    try:
        return small_jpeg(data, height, width, strict=False)
    except ValueError:  # stored with a decoder_warning: it complains of some headers even when it is not strict
        try:
            return _reduced(load_jpeg(data, read_header(data)).convert("L"))
        except ImageError:
            return None


def _of_8_bits(pixels: npt.NDArray[Any]) -> Image.Image:
    """The grey of pixels of 8 or 16 bits; what is transparent is seen as it would be without."""
    if pixels.dtype != np.uint8:
        pixels = (pixels >> 8).astype(np.uint8)
    if pixels.ndim == 3:
        pixels = pixels[:, :, 0] if pixels.shape[2] < 3 else pixels[:, :, :3]
    return Image.fromarray(np.ascontiguousarray(pixels)).convert("L")


def _reduced(grey: Image.Image) -> SmallPicture:
    step = max(1, min(grey.size) // _ENOUGH)
    small = grey.reduce(step) if step > 1 else grey
    return SmallPicture(small.height, small.width, small.tobytes(), (grey.height, grey.width), step)
