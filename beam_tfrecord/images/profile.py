"""Colour profiles: pixels that are encoded anew are stored in sRGB, because nobody looks at a profile in training.

Colours go through LittleCMS with relative colorimetric intent and black point compensation.
"""

from __future__ import annotations

import io

from PIL import Image, ImageCms

from beam_tfrecord.images.notes import Notes
from beam_tfrecord.images.pixels import without_palette

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
