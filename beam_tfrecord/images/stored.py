"""An image as it goes into a record, and what happened to it on its way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beam_tfrecord.core.geometry import PixelFrame


@dataclass(slots=True)
class Notes:
    """Collects the changes (each once, in order of first mention) and the warnings of one image."""

    changes: dict[str, None] = field(default_factory=dict)
    warnings: list[tuple[str, str]] = field(default_factory=list)

    def change(self, reason: str) -> None:
        """reason: one of errors.CHANGE_REASONS."""
        self.changes[reason] = None

    def warn(self, code: str, message: str) -> None:
        """code: one of errors.WARNING_CODES."""
        self.warnings.append((code, message))


class SmallPicture(NamedTuple):
    """A grey picture of 8 bits, row by row.

    span: height and width of the picture that it is made of, in units of which each of its pixels takes ``step`` both
    ways; those at the far edges may take less.
    """

    height: int
    width: int
    pixels: bytes
    span: tuple[int, int]
    step: int

    @property
    def array(self) -> npt.NDArray[np.uint8]:
        """uint8 of shape (height, width)."""
        return np.frombuffer(self.pixels, np.uint8).reshape(self.height, self.width)


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


class SeenImage(StoredImage):
    """A stored image with the small picture that its check made on the way; that is no part of it, and not compared."""

    small: SmallPicture | None = None


def seen_image(image: StoredImage, small: SmallPicture | None) -> StoredImage:
    """The image with its small picture, when there is one."""
    if small is None:
        return image
    seen = SeenImage._make(image)
    seen.small = small
    return seen
