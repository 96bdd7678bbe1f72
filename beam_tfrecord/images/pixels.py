"""Decoded pixels: numpy arrays (height, width, channels) of uint8 or uint16, in the raster of their file.

Channels in this order: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA. Alpha is straight (not multiplied into the colours).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images.stored import Notes

Pixels = NDArray[Any]  # uint8 or uint16

# Pillow modes that another one holds without loss.
_PLAIN_MODES = {"1": "L", "La": "LA", "RGBa": "RGBA", "RGBX": "RGB", "YCbCr": "RGB", "HSV": "RGB"}


class Picture(NamedTuple):
    """Pixels, and a colour profile that was not applied to them yet (only for uint16: the engine takes 8 bits)."""

    pixels: Pixels
    profile: bytes | None = None


def as_image(pixels: Pixels) -> Image.Image:
    """A Pillow image of uint8 pixels."""
    return Image.fromarray(np.ascontiguousarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels))


def without_palette(image: Image.Image, notes: Notes) -> Image.Image:
    """A palette image as RGB, or RGBA when it declares transparency; any other image as it is."""
    if image.mode not in ("P", "PA"):
        return image
    notes.change("palette_expanded")
    return image.convert("RGBA" if image.mode == "PA" or "transparency" in image.info else "RGB")


def from_image(image: Image.Image, notes: Notes) -> Pixels:
    """Pixels of a decoded Pillow image of any mode; notes what had to be changed.

    Whole numbers of 32 bits must lie in 0 to 65535, and floating point values in 0.0 to 1.0 (scaled to 16 bits): any
    other scale would be a guess. Raises ImageError ``unsupported_format`` for them and for modes that cannot be stored.
    """
    image = without_palette(image, notes)
    mode = image.mode
    if mode == "CMYK":
        notes.change("cmyk_to_rgb")
        image = image.convert("RGB")
    elif mode == "LAB":
        notes.change("profile_converted")
        image = _lab_to_rgb(image)
    elif mode in _PLAIN_MODES:
        image = image.convert(_PLAIN_MODES[mode])
    elif mode.startswith("I;16"):
        return np.asarray(image).astype(np.uint16, copy=False)[:, :, None]
    elif mode == "I":
        return storable(np.asarray(image))[:, :, None]
    elif mode == "F":
        notes.change("depth_scaled")
        return _fractions(np.asarray(image))
    elif mode not in ("L", "LA", "RGB", "RGBA"):
        raise ImageError("unsupported_format", f"pixels of mode {mode} cannot be stored; convert the file")
    pixels: Pixels = np.asarray(image)
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


def _lab_to_rgb(image: Image.Image) -> Image.Image:
    converted = ImageCms.profileToProfile(
        image, ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB"), outputMode="RGB"
    )
    assert converted is not None  # only an image changed in place gives None
    return converted


def storable(values: NDArray[np.integer]) -> NDArray[np.uint16]:
    """Whole numbers as 16 bits. Raises ImageError for values that cannot be stored without a scale that is a guess."""
    low, high = int(values.min()), int(values.max())
    if low < 0 or high > 65535:
        raise ImageError(
            "unsupported_format",
            f"its values run from {low} to {high}, and only 0 to 65535 can be stored; scale them as you need and save "
            f"16 bits",
        )
    return values.astype(np.uint16)


def _fractions(values: NDArray[np.float32]) -> Pixels:
    low, high = float(values.min()), float(values.max())
    if not (low >= 0 and high <= 1):  # also when one of them is no number
        raise ImageError(
            "unsupported_format",
            f"its floating point values run from {low:g} to {high:g}, and only 0 to 1 has a scale that is no guess; "
            f"scale them as you need and save 16 bits",
        )
    scaled: Pixels = np.rint(values * np.float32(65535)).astype(np.uint16)
    return scaled[:, :, None]
