"""Files that are neither JPEG nor PNG, opened and decoded by Pillow one frame at a time."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageFile

from beam_tfrecord.core.geometry import INVERSE
from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import codecs, formats, tiff, webp
from beam_tfrecord.images.exif import ORIENTATION_TAG
from beam_tfrecord.images.notes import Notes
from beam_tfrecord.images.orientation import turn
from beam_tfrecord.images.pixels import Picture, from_image
from beam_tfrecord.images.profile import in_srgb
from beam_tfrecord.images.render import Origin
from beam_tfrecord.images.safety import DECODE_ERRORS, check_pixels, damaged, reason
from beam_tfrecord.images.sniff import describe
from beam_tfrecord.images.tiff_pages import Page, grey_values, with_pages_that_open

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
            is_deep = tiff.sample_bits(image) > 8 if kind == "tiff" else codecs.is_deep(self.data, kind)
            has_colour = image.mode in ("RGB", "RGBA")
            pixels = tiff.deep_colour(self.data, number) if kind == "tiff" and is_deep and has_colour else None
            if pixels is None:
                tiff.read_natively(image)
                image.load()
        except DECODE_ERRORS as error:
            raise damaged(error) from error
        profile = image.info.get("icc_profile")
        profile = profile if isinstance(profile, bytes) else None
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
    opener = formats.opener(kind)
    if opener is None:
        raise ImageError(
            "unsupported_format", f"the bytes are {describe(kind)}, which is not decoded here; {formats.cure(kind)}"
        )
    if kind == "psd" and codecs.is_deep(data, kind):
        raise ImageError("unsupported_format", "a Photoshop file of more than 8 bits; save it as 16-bit PNG or TIFF")
    is_lossy = codecs.is_lossy(data, kind)
    if kind == "webp":
        header = webp.read_header(data)
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
