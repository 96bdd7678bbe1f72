"""Masks: images whose values are ids, not brightness. They are moved with their image, and never blended.

Values are kept as they lie in the file: the index of a palette image, the sample of a grey one (0 and 1 of a 1-bit PNG,
not 0 and 255). Only the nearest source pixel is ever taken, so that no id appears that was not there.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import PngImagePlugin

from beam_tfrecord.core.geometry import INVERSE, PixelFrame
from beam_tfrecord.errors import AnnotationError, ImageError
from beam_tfrecord.images import png, tiff
from beam_tfrecord.images.encode import encode_png
from beam_tfrecord.images.opened import open_file
from beam_tfrecord.images.orientation import turn
from beam_tfrecord.images.pixels import Pixels, from_image
from beam_tfrecord.images.png import check_pixel_data
from beam_tfrecord.images.safety import DECODE_ERRORS, check_pixels, damaged
from beam_tfrecord.images.sniff import NOT_IMAGES, describe, sniff
from beam_tfrecord.images.stored import Notes

PADDING = 0
DEFAULT_MAX_PIXELS = 150_000_000

# Formats that keep values; the others blend neighbours or lose indices.
_OTHER_KINDS = frozenset({"bmp", "gif", "tiff"})


def convert_mask(
    data: bytes, frame: PixelFrame, *, is_upright: bool = False, max_pixels: int = DEFAULT_MAX_PIXELS
) -> bytes:
    """A mask file in the frame of the stored image, as a grey PNG of 8 or 16 bits (as deep as the file).

    The three steps :func:`read_mask`, :func:`place_mask` and :func:`encode_mask`; see there for arguments and errors.
    """
    return encode_mask(place_mask(read_mask(data, max_pixels), frame, is_upright=is_upright))


def read_mask(data: bytes, max_pixels: int = DEFAULT_MAX_PIXELS) -> NDArray[Any]:
    """The ids in a mask file: (height, width), uint8 or uint16. EXIF data of the mask itself is not followed.

    Palette and grey images, and colour images whose channels are equal. Raises ImageError as convert_image() does, and
    AnnotationError ``bad_mask`` for files that hold colours, or that went through a compression that changes values.
    """
    kind = sniff(data)
    if not data:
        raise ImageError("empty_file", "the mask file has no bytes; fetch or export it again")
    if kind in NOT_IMAGES:
        raise ImageError("not_an_image", f"the bytes of the mask are {describe(kind)}")
    if kind == "png":
        return _single_channel(_png_values(data, max_pixels))
    if kind not in _OTHER_KINDS:
        raise AnnotationError(
            "bad_mask", f"a mask saved as {describe(kind)}, which does not keep values; save masks as PNG"
        )
    file = open_file(data, kind, max_pixels)
    if file.origin.is_lossy:
        raise AnnotationError("bad_mask", "a mask with JPEG compression, which changes values; save masks as PNG")
    image = file.image
    if image.mode not in ("P", "1"):
        values = _single_channel(file.picture(0, Notes()).pixels)
        bits = tiff.sample_bits(image)
        return values // (255 // ((1 << bits) - 1)) if bits < 8 else values
    try:
        return np.asarray(image).astype(np.uint8)
    except DECODE_ERRORS as error:
        raise damaged(error) from error


def place_mask(mask: NDArray[Any], frame: PixelFrame, *, is_upright: bool = False) -> NDArray[Any]:
    """A mask (height, width) of any dtype in the frame of the stored image; what no source pixel falls on is 0.

    is_upright: the mask was drawn on the picture that the file's orientation makes, not on its raster. Each stored
    pixel takes the source pixel that its centre lies in. Raises AnnotationError ``bad_mask`` when the mask is not
    of the size of the image.
    """
    width, height = frame.turned_size if is_upright else frame.source_size
    if mask.shape != (height, width):
        raise AnnotationError(
            "bad_mask",
            f"the mask has {mask.shape[1]}x{mask.shape[0]} pixels and the image {width}x{height}; they must be equal",
        )
    mask = turn(mask, INVERSE[frame.ignored] if is_upright else frame.orientation)
    rows, has_row = _sources(frame.height, mask.shape[0], frame.scale_y, frame.offset_y)
    columns, has_column = _sources(frame.width, mask.shape[1], frame.scale_x, frame.offset_x)
    placed = mask[rows[:, None], columns[None, :]]
    placed[~has_row] = PADDING
    placed[:, ~has_column] = PADDING
    return placed


def encode_mask(mask: NDArray[Any]) -> bytes:
    """A grey PNG of ids (height, width): 8 bits for uint8 and bool, 16 bits for any other whole numbers up to 65535.

    Raises AnnotationError ``bad_mask`` for ids that do not fit.
    """
    if mask.dtype in (np.uint8, np.bool_):
        return encode_png(mask.astype(np.uint8)[:, :, None])
    if mask.size and not (mask.min() >= 0 and mask.max() <= 65535):
        raise AnnotationError("bad_mask", f"ids run from {mask.min()} to {mask.max()}; a mask holds 0 to 65535")
    return encode_png(mask.astype(np.uint16)[:, :, None])


def _sources(stored: int, length: int, scale: float, offset: float) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """For each stored coordinate the source coordinate that its centre lies in, and whether there is one."""
    positions = np.floor((np.arange(stored) + 0.5 - offset) / scale).astype(np.intp)
    return np.clip(positions, 0, length - 1), (positions >= 0) & (positions < length)


def _png_values(data: bytes, max_pixels: int) -> Pixels:
    try:
        check_pixels(*png.read_size(data), max_pixels)
        file = png.read_chunks(data)
        check_pixel_data(file)
    except png.PngError as error:
        code = "truncated_image" if error.cut else "corrupt_image"
        raise ImageError(code, f"a damaged PNG: {error}; fetch or export the file again") from None
    if file.colour_type == png.PALETTE:
        # The same samples as grey ones: what the palette says does not matter.
        file = file._replace(colour_type=png.GRAY, palette=b"")
    file = file._replace(transparency=None)
    try:
        image = PngImagePlugin.PngImageFile(io.BytesIO(png.pixels_only(file)))
        pixels = from_image(image, Notes())
    except DECODE_ERRORS as error:
        raise damaged(error) from error
    # Samples of fewer than 8 bits were stretched to 0 to 255.
    return pixels // (255 // ((1 << file.depth) - 1)) if file.depth < 8 else pixels


def _single_channel(pixels: Pixels) -> NDArray[Any]:
    colour = pixels[:, :, :-1] if pixels.shape[2] in (2, 4) else pixels
    if colour.shape[2] == 3 and not (
        np.array_equal(colour[:, :, 0], colour[:, :, 1]) and np.array_equal(colour[:, :, 0], colour[:, :, 2])
    ):
        raise AnnotationError(
            "bad_mask",
            "a mask of colours: its values are no ids; save it as a palette or grey PNG whose values are ids",
        )
    return np.ascontiguousarray(colour[:, :, 0])
