"""The frames of files that have several."""

from __future__ import annotations

import io

from PIL import PngImagePlugin

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import gif, png
from beam_tfrecord.images.opened import OpenedFile, open_file
from beam_tfrecord.images.render import Origin
from beam_tfrecord.images.safety import DECODE_ERRORS, check_pixels, damaged
from beam_tfrecord.images.sniff import describe, sniff

_KINDS = frozenset({"gif", "webp", "tiff", "avif"})


def open_frames(data: bytes, max_pixels: int) -> tuple[OpenedFile, range] | None:
    """An opened file and the numbers of its frames; None when it has only one.

    Raises ImageError: ``too_many_pixels`` when all frames together have more than ``max_pixels``, or what open_file()
    raises.
    """
    kind = sniff(data)
    if kind == "png":
        opened = _open_animated_png(data, max_pixels)
        numbers = range(int(bool(opened and opened.image.info.get("default_image"))), opened.frames if opened else 0)
    else:
        opened = open_file(data, kind, max_pixels, all_frames=True) if kind in _KINDS else None
        numbers = range(opened.frames if opened else 0)
    if opened is None or opened.frames == 1:
        return None
    if kind == "gif":
        blocks = gif.read_blocks(data)
        check_pixels(blocks.width, blocks.height, max_pixels)
        if blocks.is_cut:
            raise ImageError("truncated_image", "an animated GIF that ends inside of a frame; fetch the file again")
    width, height = opened.image.size
    if len(numbers) * width * height > max_pixels:
        raise ImageError(
            "too_many_pixels",
            f"{describe(kind)} of {len(numbers)} frames of {width}x{height} pixels, together more than "
            f"--max_pixels {max_pixels} allows",
        )
    return opened, numbers


def _open_animated_png(data: bytes, max_pixels: int) -> OpenedFile | None:
    """An animated PNG, its texts and profile left out (frames are taken as sRGB); None for a still one."""
    try:
        file = png.read_chunks(data)
    except png.PngError:
        return None  # convert_image() tells what is wrong
    if not file.is_animated:
        return None
    check_pixels(file.width, file.height, max_pixels)
    plain = png.frames_only(data)
    try:
        image = PngImagePlugin.PngImageFile(io.BytesIO(plain))
        frames = int(getattr(image, "n_frames", 1))
    except DECODE_ERRORS as error:
        raise damaged(error) from error
    return OpenedFile(plain, image, Origin("png"), frames)
