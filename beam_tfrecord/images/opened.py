"""Files that are neither JPEG nor PNG, and animated PNG: which Pillow plugin opens them, what to do with those that
none opens, and their frames, decoded one at a time.
"""

from __future__ import annotations

import functools
import importlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import BinaryIO

import numpy as np
from PIL import Image, ImageFile, PngImagePlugin

from beam_tfrecord.core.geometry import INVERSE
from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import headers, png, tiff
from beam_tfrecord.images.colour import in_srgb
from beam_tfrecord.images.orientation import ORIENTATION_TAG, turn
from beam_tfrecord.images.pixels import Picture, from_image
from beam_tfrecord.images.render import Origin
from beam_tfrecord.images.safety import DECODE_ERRORS, check_pixels, damaged, reason
from beam_tfrecord.images.sniff import describe, sniff
from beam_tfrecord.images.stored import Notes
from beam_tfrecord.images.tiff import Page, grey_values, with_pages_that_open

# Kind as sniff() names it -> module and class of the Pillow plugin. JPEG and PNG have ways of their own. The classes
# are used directly: Image.open() hides what they find wrong, and loads all other plugins when they refuse.
_PLUGINS = MappingProxyType(
    {
        "gif": ("PIL.GifImagePlugin", "GifImageFile"),
        "webp": ("PIL.WebPImagePlugin", "WebPImageFile"),
        "tiff": ("PIL.TiffImagePlugin", "TiffImageFile"),
        "bmp": ("PIL.BmpImagePlugin", "BmpImageFile"),
        "netpbm": ("PIL.PpmImagePlugin", "PpmImageFile"),
        "avif": ("PIL.AvifImagePlugin", "AvifImageFile"),
        "heic": ("pillow_heif", "HeifImageFile"),
        "jpeg2000": ("PIL.Jpeg2KImagePlugin", "Jpeg2KImageFile"),
        "ico": ("PIL.IcoImagePlugin", "IcoImageFile"),
        "psd": ("PIL.PsdImagePlugin", "PsdImageFile"),
        "qoi": ("PIL.QoiImagePlugin", "QoiImageFile"),
        "sgi": ("PIL.SgiImagePlugin", "SgiImageFile"),
        "dds": ("PIL.DdsImagePlugin", "DdsImageFile"),
        "pcx": ("PIL.PcxImagePlugin", "PcxImageFile"),
        "tga": ("PIL.TgaImagePlugin", "TgaImageFile"),
    }
)

_CURES = MappingProxyType(
    {
        "heic": "install pillow-heif (pip install pillow-heif), or convert it to JPEG or PNG",
        "avif": "install a Pillow with AVIF (11.3 or newer), or convert it to JPEG or PNG",
        "raw": "develop it to JPEG, PNG or TIFF",
        "svg": "draw it to PNG at the size you need",
        "eps": "draw it to PNG at the size you need",
        "wmf": "draw it to PNG at the size you need",
        "emf": "draw it to PNG at the size you need",
        "dicom": "export the pixels to 16-bit PNG or TIFF with a window of your choice",
        "openexr": "convert it to 16-bit PNG or TIFF with a scale of your choice",
        "hdr": "convert it to 16-bit PNG or TIFF with a scale of your choice",
        "fits": "convert it to 16-bit PNG or TIFF with a scale of your choice",
    }
)
_USUAL_CURE = "convert it to JPEG or PNG"


@functools.cache
def plugin(kind: str) -> Callable[[BinaryIO], ImageFile.ImageFile] | None:
    """What opens a file of ``kind``: reads its header, decodes nothing. None when no decoder is installed."""
    module, name = _PLUGINS.get(kind, ("", ""))
    if not module:
        return None
    try:
        plugin = importlib.import_module(module)
    except ImportError:
        return None
    if not getattr(plugin, "SUPPORTED", True):  # WebP and AVIF, in a Pillow that was built without them
        return None
    found: Callable[[BinaryIO], ImageFile.ImageFile] = getattr(plugin, name)
    return found


def cure(kind: str) -> str:
    """What a person does about a file of a kind that is not decoded here."""
    return _CURES.get(kind, _USUAL_CURE)


# Kinds whose further frames are frames, not layers or sizes of one picture.
_WITH_FRAMES = frozenset({"gif", "webp", "tiff", "avif"})


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file whose header was read. Nothing is decoded until :meth:`picture` is called.

    frames: how many there are (1 for kinds without frames). pages: of a TIFF. Not to be used from two threads at once.
    """

    data: bytes
    image: Image.Image
    origin: Origin
    frames: int
    pages: tuple[Page, ...] = ()

    def size(self, number: int) -> tuple[int, int]:
        """(width, height) of the raster of a frame. Raises ImageError."""
        self._seek(number)
        width, height = self.image.size
        try:
            is_swapped = self.origin.kind == "tiff" and self._stated_orientation() >= 5
        except DECODE_ERRORS as error:
            raise damaged(error) from error
        return (height, width) if is_swapped else (width, height)

    def orientation(self, notes: Notes) -> int:
        """The orientation that EXIF or XMP data states, 1 to 8; of the frame that was asked for last."""
        try:
            return self._stated_orientation()
        except DECODE_ERRORS as error:
            notes.warn("exif_damaged", f"the EXIF data cannot be read ({reason(error)}); the image is taken as upright")
            return 1

    def picture(self, number: int, notes: Notes) -> Picture:
        """The pixels of a frame, in the raster of the file. Raises ImageError."""
        self._seek(number)
        image = self.image
        kind = self.origin.kind
        try:
            orientation = self._stated_orientation() if kind == "tiff" else 1
            page = self.pages[number] if number < len(self.pages) else None
            is_deep = tiff.sample_bits(image) > 8 if kind == "tiff" else headers.is_deep(self.data, kind)
            has_colour = image.mode in ("RGB", "RGBA")
            pixels = tiff.deep_colour(self.data, number) if kind == "tiff" and is_deep and has_colour else None
            if pixels is None:
                tiff.read_natively(image)
                image.load()
        except DECODE_ERRORS as error:
            raise damaged(error) from error
        profile = image.info.get("icc_profile")
        if profile is not None and not isinstance(profile, bytes):  # numbers, in a TIFF
            notes.warn("icc_damaged", "the colour profile is of no bytes; the pixels are taken as sRGB")
            profile = None
        if pixels is None and page is not None and page.opens_as:
            pixels = grey_values(np.asarray(image), page)
        elif pixels is None and image.mode.startswith("I"):
            pixels = from_image(image, notes)
        elif pixels is None:
            pixels, profile = from_image(in_srgb(image, profile, notes), notes), None
            if is_deep and pixels.dtype == np.uint8:
                notes.change("depth_scaled")
        if page is not None and page.is_white_zero and image.mode == "F":
            pixels = 65535 - pixels
        # Pillow turns TIFF as it is loaded.
        return Picture(turn(pixels, INVERSE[orientation]), profile)

    def _seek(self, number: int) -> None:
        try:
            if self.frames > 1 and self.image.tell() != number:
                self.image.seek(number)
        except DECODE_ERRORS as error:
            raise damaged(error) from error

    def _stated_orientation(self) -> int:
        value = self.image.getexif().get(ORIENTATION_TAG, 1)
        return value if isinstance(value, int) and 1 <= value <= 8 else 1


def open_file(data: bytes, kind: str, max_pixels: int, all_frames: bool = False) -> OpenedFile:
    """Reads the header of a file of ``kind``, as sniff() names it; decodes nothing, takes no memory for pixels.

    all_frames: damage behind the first frame is an error, too.

    Raises ImageError: ``unsupported_format`` when no decoder is installed, ``too_many_pixels``, ``corrupt_image``.
    """
    opener = plugin(kind)
    if opener is None:
        raise ImageError(
            "unsupported_format", f"the bytes are {describe(kind)}, which is not decoded here; {cure(kind)}"
        )
    if kind == "psd" and headers.is_deep(data, kind):
        raise ImageError("unsupported_format", "a Photoshop file of more than 8 bits; save it as 16-bit PNG or TIFF")
    is_lossy = headers.is_lossy(data, kind)
    if kind == "webp":
        header = headers.webp_header(data)
        if header is None:
            raise ImageError("corrupt_image", "a WebP without a picture; fetch or export the file again")
        check_pixels(header.width, header.height, max_pixels)
        is_lossy = not header.is_lossless
    pages: tuple[Page, ...] = ()
    try:
        if kind == "tiff":
            data, pages = with_pages_that_open(data)
            tiff.check_samples(pages)
        image = opener(io.BytesIO(data))
        frames = _count_frames(image, kind)
        if frames is None:
            # What follows the first frame is damaged, and looking for it has left the image in between.
            if all_frames:
                raise ImageError("corrupt_image", f"{describe(kind)} with a damaged later frame; fetch the file again")
            image, frames = opener(io.BytesIO(data)), 1
        if kind == "tiff":
            tiff.check(image, data)
            is_lossy = image.info.get("compression") in ("jpeg", "tiff_jpeg")
    except DECODE_ERRORS as error:
        if pages and "unknown pixel mode" in str(error):
            told = f"{pages[0]}, which is not decoded here; save it as RGB or grey of 8 or 16 bits"
            raise ImageError("unsupported_format", told) from error
        raise damaged(error, describe(kind)) from error
    check_pixels(*image.size, max_pixels)
    return OpenedFile(data, image, Origin(kind, is_lossy, is_subsampled=is_lossy and kind == "webp"), frames, pages)


def _count_frames(image: ImageFile.ImageFile, kind: str) -> int | None:
    """How many frames there are; None when they cannot be counted."""
    if kind not in _WITH_FRAMES:
        return 1
    try:
        return int(getattr(image, "n_frames", 1))
    except DECODE_ERRORS:
        return None


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
        opened = open_file(data, kind, max_pixels, all_frames=True) if kind in _WITH_FRAMES else None
        numbers = range(opened.frames if opened else 0)
    if opened is None or opened.frames == 1:
        return None
    if kind == "gif":
        blocks = headers.gif_blocks(data)
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
