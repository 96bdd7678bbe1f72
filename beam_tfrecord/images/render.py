"""Decoded pixels to what is stored: the steps that the policy asks for, in a fixed order.

Depth, colour profile, transparency, channels, turn, size, encoding. Each step that does something is noted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from beam_tfrecord.core.geometry import PixelFrame
from beam_tfrecord.images import colour
from beam_tfrecord.images.colour import in_srgb
from beam_tfrecord.images.encode import encode_jpeg, encode_png, encode_raw
from beam_tfrecord.images.orientation import turn
from beam_tfrecord.images.pixels import Picture, as_image, from_image
from beam_tfrecord.images.resize import is_resized, resample
from beam_tfrecord.images.safety import check_pixels, check_storable
from beam_tfrecord.images.stored import Notes, StoredImage
from beam_tfrecord.options.config import ImagePolicy

# Channels that --color allows.
CHANNELS = {"keep": (1, 2, 3, 4), "rgb": (3,), "gray": (1,)}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where pixels come from. kind: as sniff() names it. is_lossy: the source has lost detail already. is_subsampled:
    its colour has half the resolution of its brightness, both ways."""

    kind: str
    is_lossy: bool = False
    is_subsampled: bool = False


def render(picture: Picture, frame: PixelFrame, policy: ImagePolicy, notes: Notes, origin: Origin) -> StoredImage:
    """The stored image of decoded pixels. Raises ImageError when the result could not be read back.

    picture: in the raster of the file; may be a reduced decode when ``frame`` resizes.
    """
    check_pixels(frame.width, frame.height, policy.max_pixels)
    pixels, profile = picture
    format = stored_format(picture, policy, origin)
    if format == "jpeg" and pixels.dtype != np.uint8:
        notes.change("depth_scaled")
        pixels = colour.to_8_bit(pixels)
    if profile and pixels.dtype == np.uint8:
        pixels, profile = from_image(in_srgb(as_image(pixels), profile, notes), notes), None
    channels = pixels.shape[2]
    if channels in (2, 4) and (format == "jpeg" or policy.color != "keep"):
        notes.change("transparency_composited")
        pixels = colour.composite(pixels, policy.background)
    if pixels.shape[2] not in CHANNELS[policy.color]:
        notes.change("color_converted")
        pixels = colour.to_gray(pixels) if policy.color == "gray" else colour.to_rgb(pixels)
    if profile and (format == "raw" or (pixels.shape[2] < 3) != (channels < 3)):
        notes.warn("profile_ignored", "the colour profile of 16-bit pixels is neither applied nor kept")
        profile = None
    check_storable(format, frame.width, frame.height, pixels.shape[2])
    if frame.orientation != 1:
        notes.change("rotated")
        pixels = turn(pixels, frame.orientation)
    if is_resized(frame):
        notes.change("resized")
        pixels = resample(pixels, frame, colour.fill(policy.background, pixels))
    height, width, channels = pixels.shape
    if format == "raw":
        notes.change("decoded_to_raw")
        data = encode_raw(pixels)
    elif format == "jpeg":
        data = encode_jpeg(pixels, policy.quality, origin.is_subsampled)
    else:
        data = encode_png(pixels, profile)
    if format not in ("raw", origin.kind):
        notes.change("transcoded")
    return StoredImage(
        data,
        format,
        height,
        width,
        channels,
        str(pixels.dtype),
        frame,
        origin.kind,
        tuple(notes.changes),
        tuple(notes.warnings),
    )


def stored_format(picture: Picture, policy: ImagePolicy, origin: Origin) -> str:
    """``jpeg``, ``png`` or ``raw``: what is asked for, else what the file was, else JPEG for what is lossy, opaque and
    of 8 bits, and PNG for everything else."""
    if policy.image_format != "keep":
        return policy.image_format
    if origin.kind in ("jpeg", "png"):
        return origin.kind
    pixels = picture.pixels
    return "jpeg" if origin.is_lossy and pixels.shape[2] in (1, 3) and pixels.dtype == np.uint8 else "png"
