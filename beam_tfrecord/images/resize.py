"""Where the pixels of the upright picture go (:func:`plan_frame`), and the resampling that takes them there.

Reduction is antialiased: Lanczos with three lobes, its support widened by the reduction, as in Pillow. ``uint16``
samples are resampled in floating point; colour is weighted by alpha, so that invisible pixels do not bleed.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from beam_tfrecord.core.geometry import PixelFrame
from beam_tfrecord.images.orientation import mirrors
from beam_tfrecord.images.pixels import Pixels, as_image
from beam_tfrecord.options.config import ImagePolicy


class Region(NamedTuple):
    """A rectangle (left, top, right, bottom), in pixels; sides may lie between pixels."""

    left: float
    top: float
    right: float
    bottom: float


def plan_frame(width: int, height: int, orientation: int, policy: ImagePolicy) -> PixelFrame:
    """The way from a raster of ``width`` x ``height`` to the stored image under ``policy``.

    orientation: the EXIF orientation of the file, which the policy applies or ignores (1: none). No side is enlarged
    unless ``policy.enlarge``; ``pad`` then centres the smaller picture, ``crop`` takes what is there, ``exact`` shrinks
    only the sides that are too long.
    """
    if policy.resize is None and orientation == 1:
        return _whole_frame(width, height)
    applied, ignored = (orientation, 1) if policy.orientation == "upright" else (1, orientation)
    upright_width, upright_height = (height, width) if applied >= 5 else (width, height)
    if policy.resize is None:
        return PixelFrame(width, height, upright_width, upright_height, applied, ignored=ignored)
    side_x, side_y = policy.resize if isinstance(policy.resize, tuple) else (policy.resize, policy.resize)
    limit = math.inf if policy.enlarge else 1.0
    scale_x, scale_y = min(limit, side_x / upright_width), min(limit, side_y / upright_height)
    if policy.resize_mode in ("longest", "pad"):
        scale_x = scale_y = min(scale_x, scale_y)
    elif policy.resize_mode in ("shortest", "crop"):
        scale_x = scale_y = min(limit, max(side_x / upright_width, side_y / upright_height))
    side_of = {"crop": _cropped, "pad": _padded}.get(policy.resize_mode, _fitted)
    stored_width, scale_x, offset_x = side_of(upright_width, scale_x, side_x)
    stored_height, scale_y, offset_y = side_of(upright_height, scale_y, side_y)
    return PixelFrame(
        width, height, stored_width, stored_height, applied, scale_x, scale_y, offset_x, offset_y, ignored
    )


@functools.lru_cache(maxsize=1024)
def _whole_frame(width: int, height: int) -> PixelFrame:
    """The frame of a picture that is stored as it is."""
    return PixelFrame(width, height, width, height)


def _fitted(length: int, scale: float, side: int) -> tuple[int, float, float]:
    """(stored length, exact scale, offset) of one side that is scaled as a whole."""
    stored = max(1, _round(length * scale))
    return stored, stored / length, 0.0


def _cropped(length: int, scale: float, side: int) -> tuple[int, float, float]:
    """The same for a side of which the middle is taken where it is longer than ``side``."""
    if _round(length * scale) <= side:
        return _fitted(length, scale, side)
    offset = (side - length * scale) / 2
    # Without a scale no pixel is resampled: the crop starts between two pixels of the source.
    return side, scale, float(math.ceil(offset)) if scale == 1 else offset


def _padded(length: int, scale: float, side: int) -> tuple[int, float, float]:
    """The same for a side that is padded to ``side`` where it is shorter."""
    stored, scale, _ = _fitted(length, scale, side)
    return side, scale, float((side - stored) // 2)


def is_unchanged(frame: PixelFrame) -> bool:
    """Whether the stored image is the raster of the file, pixel for pixel."""
    turn_and_scale = frame[4:9]
    return turn_and_scale == (1, 1.0, 1.0, 0.0, 0.0) and frame[0:2] == frame[2:4]


def is_resized(frame: PixelFrame) -> bool:
    """Whether more than a turn happens: a scale, a crop or padding."""
    return (
        (frame.width, frame.height) != frame.upright_size
        or frame.scale_x != 1
        or frame.scale_y != 1
        or frame.offset_x != 0
        or frame.offset_y != 0
    )


def drawn_region(frame: PixelFrame) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) of the part of the stored image that holds picture; the rest is padding."""
    width, height = frame.upright_size
    left, top = max(0, _round(frame.offset_x)), max(0, _round(frame.offset_y))
    right = min(frame.width, _round(frame.offset_x + width * frame.scale_x))
    bottom = min(frame.height, _round(frame.offset_y + height * frame.scale_y))
    return left, top, max(right, left + 1), max(bottom, top + 1)


def resample(pixels: Pixels, frame: PixelFrame, background: tuple[int, ...]) -> Pixels:
    """Upright pixels (height, width, channels) in the stored frame.

    pixels may be a reduced decode of the upright picture: its size then stands for the whole of ``frame.upright_size``.
    background: one value per channel, in the range of the dtype, for padding.
    """
    left, top, right, bottom = drawn_region(frame)
    width, height = frame.upright_size
    mirror_x, mirror_y = mirrors(frame.orientation)
    start_x, end_x = _source_span(left, right, frame.offset_x, frame.scale_x, width, pixels.shape[1], mirror_x)
    start_y, end_y = _source_span(top, bottom, frame.offset_y, frame.scale_y, height, pixels.shape[0], mirror_y)
    region = Region(start_x, start_y, end_x, end_y)
    drawn = _resize(pixels, (right - left, bottom - top), region)
    if (right - left, bottom - top) == (frame.width, frame.height):
        return drawn
    canvas = np.empty((frame.height, frame.width, pixels.shape[2]), pixels.dtype)
    canvas[:] = np.array(background, pixels.dtype)
    canvas[top:bottom, left:right] = drawn
    return canvas


def _source_span(
    start: int, stop: int, offset: float, scale: float, length: int, decoded: int, is_mirrored: bool
) -> tuple[float, float]:
    """Where a stretch of a stored side comes from, along a decoded side that stands for ``length`` pixels.

    A JPEG decoded at n eighths of its size has a last row and column that stand for a part of a pixel only; after a
    turn that mirrors they are the first ones.
    """
    shrink = next((n / 8 for n in range(1, 8) if -(-length * n // 8) == decoded), 1.0) if decoded < length else 1.0
    margin = decoded - length * shrink if is_mirrored else 0.0
    low, high = ((position - offset) / scale * shrink for position in (start, stop))
    return margin + max(0.0, low), margin + min(length * shrink, high)


def _resize(pixels: Pixels, size: tuple[int, int], region: Region) -> Pixels:
    whole = tuple(int(side) for side in region)
    if region == whole and size == (whole[2] - whole[0], whole[3] - whole[1]):
        return pixels[whole[1] : whole[3], whole[0] : whole[2]]
    if pixels.dtype == np.uint8:
        return _resize_bytes(pixels, size, region)
    return _resize_deep(pixels, size, region)


def _resize_bytes(pixels: Pixels, size: tuple[int, int], region: Region) -> Pixels:
    # Pillow multiplies by alpha before it resamples LA and RGBA, and divides after.
    resized: Pixels = np.asarray(as_image(pixels).resize(size, Image.Resampling.LANCZOS, box=region))
    return resized.reshape(size[1], size[0], pixels.shape[2])


def _resize_deep(pixels: Pixels, size: tuple[int, int], region: Region) -> Pixels:
    channels = pixels.shape[2]
    out = np.empty((size[1], size[0], channels), np.uint16)
    colours = channels
    alpha = weight = None
    if channels in (2, 4):
        colours -= 1
        alpha = pixels[:, :, -1].astype(np.float32) / np.float32(65535)
        weight = np.maximum(_resize_plane(alpha, size, region), np.float32(1e-6))
        out[:, :, -1] = _whole(weight * np.float32(65535))
    for channel in range(colours):
        plane = pixels[:, :, channel].astype(np.float32)
        if alpha is not None:
            plane *= alpha
        resized = _resize_plane(plane, size, region)
        if weight is not None:
            resized /= weight
        out[:, :, channel] = _whole(resized)
    return out


def _whole(values: NDArray[Any]) -> NDArray[Any]:
    np.rint(values, out=values)
    return np.clip(values, 0, 65535, out=values)


def _resize_plane(plane: NDArray[Any], size: tuple[int, int], region: Region) -> NDArray[Any]:
    image = Image.fromarray(plane).resize(size, Image.Resampling.LANCZOS, box=region)
    return np.array(image)


def _round(value: float) -> int:
    """The nearest whole number, a half upwards."""
    return math.floor(value + 0.5)
