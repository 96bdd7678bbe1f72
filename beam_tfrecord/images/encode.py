"""Pixels to the bytes that are stored: JPEG, PNG or raw. Equal pixels give equal bytes with the same library
versions."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import simplejpeg

from beam_tfrecord.images.pixels import Pixels, as_image
from beam_tfrecord.images.png import END, SIGNATURE, chunk

_DEEP_COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
_PNG_LEVEL = 6


def encode_jpeg(pixels: Pixels, quality: int, subsampled: bool) -> bytes:
    """A baseline JPEG of uint8 pixels (height, width, 1 or 3).

    subsampled: 4:2:0, for sources whose colour was subsampled already; else 4:4:4.
    """
    colorspace = "GRAY" if pixels.shape[2] == 1 else "RGB"
    subsampling = "Gray" if colorspace == "GRAY" else "420" if subsampled else "444"
    encoded = simplejpeg.encode_jpeg(np.ascontiguousarray(pixels), quality, colorspace, subsampling, fastdct=False)
    return bytes(encoded)


def encode_png(pixels: Pixels, profile: bytes | None = None) -> bytes:
    """A PNG of uint8 or uint16 pixels (height, width, 1 to 4): grey, grey and alpha, RGB, or RGBA.

    profile: a colour profile to embed, for uint16 only.
    """
    if pixels.dtype == np.uint16:
        return _encode_deep_png(pixels, profile)
    out = io.BytesIO()
    as_image(pixels).save(out, "PNG", compress_level=_PNG_LEVEL)
    return out.getvalue()


def encode_raw(pixels: Pixels) -> bytes:
    """The samples row by row, pixel by pixel, channel by channel; uint16 as little-endian."""
    return np.ascontiguousarray(pixels, dtype=pixels.dtype.newbyteorder("<")).tobytes()


def _encode_deep_png(pixels: Pixels, profile: bytes | None) -> bytes:
    """16 bits a sample, which Pillow writes for grey only. Each row is stored as its difference to the row above
    (Up)."""
    height, width, channels = pixels.shape
    rows = np.ascontiguousarray(pixels, dtype=">u2").view(np.uint8).reshape(height, -1)
    filtered = np.full((height, rows.shape[1] + 1), 2, np.uint8)
    filtered[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=filtered[1:, 1:])
    head = struct.pack(">IIBBBBB", width, height, 16, _DEEP_COLOUR_TYPES[channels], 0, 0, 0)
    body = zlib.compress(filtered.data, _PNG_LEVEL)
    extra = chunk(b"iCCP", b"ICC\0\0" + zlib.compress(profile, _PNG_LEVEL)) if profile else b""
    return b"".join((SIGNATURE, chunk(b"IHDR", head), extra, chunk(b"IDAT", body), END))
