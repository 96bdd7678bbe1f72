"""The image of a record as the bytes of a file."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from beam_tfrecord.images.encode import encode_png
from beam_tfrecord.images.sniff import sniff
from beam_tfrecord.tools.extracting.values import Features, UnextractableError, needed

_SUFFIXES: Mapping[str, str] = {"jpeg": ".jpg", "png": ".png", "gif": ".gif", "webp": ".webp", "bmp": ".bmp"}
_DTYPES = {b"uint8": "<u1", b"uint16": "<u2"}


def has_picture(keys: Mapping[str, str], features: Features) -> bool:
    """Whether there is an image in some features. keys: logical name -> key."""
    return any(keys.get(name) in features for name in ("encoded", "raw"))


def picture_of(keys: Mapping[str, str], features: Features) -> bytes:
    """The encoded image as it is stored, or raw pixels as PNG. Raises UnextractableError."""
    if keys.get("encoded") in features:
        data: bytes = needed(features, keys["encoded"], "bytes", 1)[0]
        return data
    return _png_of_raw(keys, features)


def _png_of_raw(keys: Mapping[str, str], features: Features) -> bytes:
    data = needed(features, keys["raw"], "bytes", 1)[0]
    try:
        height, width, channels = (int(needed(features, keys[name], "int64", 1)[0]) for name in _SIZES)
        dtype = np.dtype(_DTYPES[needed(features, keys["dtype"], "bytes", 1)[0]])
    except KeyError as error:
        raise UnextractableError("bad_raw", f"the pixels cannot be read without {error}") from None
    if min(height, width, channels) < 1 or channels > 4 or len(data) != height * width * channels * dtype.itemsize:
        raise UnextractableError(
            "bad_raw", f"{len(data)} bytes are no pixels of {height}x{width}x{channels} ({dtype.name})"
        )
    pixels = np.frombuffer(data, dtype).reshape(height, width, channels)
    return encode_png(pixels.astype(dtype.newbyteorder("=")))


_SIZES = ("height", "width", "channels")


def suffix_of(data: bytes) -> str:
    """The usual ending of a file with such an image; '' for one of no usual kind."""
    return _SUFFIXES.get(sniff(data), "")
