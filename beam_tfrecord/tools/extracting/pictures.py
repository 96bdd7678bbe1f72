"""The image of a record as the bytes of a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

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
    raw = raw_pixels(keys, features)
    pixels = np.frombuffer(raw.data, raw.dtype).reshape(raw.shape)
    if raw.order == CHW:
        pixels = pixels.transpose(1, 2, 0)
    return encode_png(np.ascontiguousarray(pixels.astype(raw.dtype.newbyteorder("="))))


HWC, CHW = "hwc", "chw"
_CHANNELS = (1, 3, 4)


class RawPixels(NamedTuple):
    """Samples as they lie in a record. order: ``hwc`` or ``chw``, that of the shape and of the samples."""

    data: bytes
    order: str
    shape: tuple[int, int, int]
    dtype: np.dtype[Any]


def raw_pixels(keys: Mapping[str, str], features: Features) -> RawPixels:
    """The pixels of a record without an encoded image. Raises UnextractableError.

    Their shape is that of height, width and channels, or of one feature of three numbers, as StyleGAN's
    ``dataset_tool.py`` writes it: channels first.
    """
    data: bytes = needed(features, keys["raw"], "bytes", 1)[0]
    if all(name in keys for name in _SIZES):
        height, width, channels = (int(needed(features, keys[name], "int64", 1)[0]) for name in _SIZES)
        shape, order = (height, width, channels), HWC
    elif "shape" in keys:
        first, second, third = (int(number) for number in needed(features, keys["shape"], "int64", 3))
        shape = (first, second, third)
        orders = [order for order, count in ((HWC, third), (CHW, first)) if count in _CHANNELS]
        if len(orders) != 1:
            told = "in two ways" if orders else "in no way"
            raise UnextractableError("bad_raw", f"pixels of the shape {list(shape)} can be read {told}")
        (order,) = orders
    else:
        raise UnextractableError("bad_raw", "the pixels cannot be read without height, width and channels")
    dtype = np.dtype("<u1")
    if "dtype" in keys:
        try:
            dtype = np.dtype(_DTYPES[needed(features, keys["dtype"], "bytes", 1)[0]])
        except KeyError as error:
            raise UnextractableError("bad_raw", f"the pixels cannot be read without {error}") from None
    channels = shape[2] if order == HWC else shape[0]
    if min(shape) < 1 or channels > 4 or len(data) != shape[0] * shape[1] * shape[2] * dtype.itemsize:
        told = "x".join(map(str, shape))
        raise UnextractableError("bad_raw", f"{len(data)} bytes are no pixels of {told} ({dtype.name})")
    return RawPixels(data, order, shape, dtype)


_SIZES = ("height", "width", "channels")


def suffix_of(data: bytes) -> str:
    """The usual ending of a file with such an image; '' for one of no usual kind."""
    return _SUFFIXES.get(sniff(data), "")
