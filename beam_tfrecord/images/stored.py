"""An image as it goes into a record."""

from __future__ import annotations

from typing import NamedTuple

from beam_tfrecord.core.geometry import PixelFrame


class StoredImage(NamedTuple):
    """A checked image.

    data: encoded bytes, or raw pixels (row-major HWC, little-endian). format: ``jpeg``, ``png`` or ``raw``. height,
    width, channels: of what TensorFlow decodes from ``data``. dtype: ``uint8`` or ``uint16``. frame: from the pixels of
    the file to those stored. source_format: what the bytes were (``jpeg``, ``webp``, ``tiff`` ...). changed: names from
    errors.CHANGE_REASONS, each once. warnings: (code, message) with codes from errors.WARNING_CODES.
    """

    data: bytes
    format: str
    height: int
    width: int
    channels: int
    dtype: str
    frame: PixelFrame
    source_format: str
    changed: tuple[str, ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()
