"""Colours of pixels: profile, channels, transparency and depth.

Pixels that are encoded anew are stored in sRGB, because nobody looks at a profile in training: colours go through
LittleCMS with relative colorimetric intent and black point compensation. All else takes uint8 and uint16, computes in
whole numbers, on images in strips of rows, so that the wider integers of a step never take more than a few megabytes.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
from PIL import Image, ImageCms

from beam_tfrecord.images.pixels import Pixels, without_palette
from beam_tfrecord.images.stored import Notes

# What damaged profiles raise, and those of another kind of colour than the pixels.
PROFILE_ERRORS = (ImageCms.PyCMSError, OSError, ValueError, TypeError)

_SRGB_NAMES = ("srgb", "c2")  # the second is a tiny sRGB that some web sites embed


def in_srgb(image: Image.Image, profile: bytes | None, notes: Notes) -> Image.Image:
    """An 8-bit image with its profile applied; as it is where there is none, or where it cannot be applied."""
    if not profile or image.mode in ("1", "LAB"):  # no colours, and colours that need none
        return image
    image = without_palette(image, notes)
    if image.mode not in ("L", "LA", "RGB", "RGBA", "CMYK"):
        notes.warn("profile_ignored", f"the colour profile is not applied to pixels of mode {image.mode}")
        return image
    try:
        converted = to_srgb(image, profile)
    except PROFILE_ERRORS as error:
        notes.warn("icc_damaged", f"the colour profile cannot be applied ({error}); the pixels are taken as sRGB")
        return image
    if converted is None:
        return image
    notes.change("profile_converted")
    if image.mode == "CMYK":
        notes.change("cmyk_to_rgb")
    return converted


def to_srgb(image: Image.Image, profile: bytes) -> Image.Image | None:
    """An image of mode L, LA, RGB, RGBA or CMYK in sRGB; None when the profile says that it is sRGB already.

    Grey stays grey, alpha stays as it is, CMYK becomes RGB. Raises one of PROFILE_ERRORS.
    """
    source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    name = (source.profile.profile_description or "").strip().lower()
    if image.mode in ("RGB", "RGBA") and (name.startswith(_SRGB_NAMES[0]) or name == _SRGB_NAMES[1]):
        return None
    alpha = image.getchannel("A") if image.mode in ("LA", "RGBA") else None
    plain = image if alpha is None else image.convert(image.mode[:-1])
    converted = ImageCms.profileToProfile(
        plain,
        source,
        ImageCms.createProfile("sRGB"),
        renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
        outputMode="RGB",
        flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )
    assert converted is not None  # only an image changed in place gives None
    if plain.mode == "L":
        converted = converted.getchannel(0)
    if alpha is not None:
        converted.putalpha(alpha)
    return converted


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
