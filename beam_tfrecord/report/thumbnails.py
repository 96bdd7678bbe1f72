"""Pictures of records made small enough to lie inside of a page."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from beam_tfrecord.report.views import PictureView

if TYPE_CHECKING:
    from PIL import Image

SIZE = (208, 136)  # pixels that a thumbnail has at most: some more than it is shown with, for fine screens
QUALITY = 70
_MAX_PIXELS = 400_000_000  # larger pictures are not worth the memory


class NoThumbnailError(Exception):
    """The picture cannot be drawn; the message says why."""


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """A small JPEG. width, height: of the whole picture. uri: a data URI."""

    uri: str
    width: int
    height: int


def make_thumbnail(picture: PictureView, size: tuple[int, int] = SIZE) -> Thumbnail:
    """The thumbnail of a picture; deterministic for the same versions of Pillow. Raises NoThumbnailError."""
    from PIL import Image

    from beam_tfrecord.images.safety import DECODE_ERRORS

    try:
        image = _from_pixels(picture) if picture.shape is not None else Image.open(io.BytesIO(picture.data))
        width, height = image.size
        if width * height > _MAX_PIXELS:
            raise NoThumbnailError(f"{width}x{height} pixels are too many to draw")
        if image.mode in ("L", "RGB"):
            image.thumbnail(size)  # decodes a JPEG at a fraction of its size
        else:
            image = _displayable(image)
            image.thumbnail(size)
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=QUALITY, optimize=True)
    except DECODE_ERRORS as error:
        raise NoThumbnailError(f"it does not decode: {error}") from error
    return Thumbnail("data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii"), width, height)


def _from_pixels(picture: PictureView) -> Image.Image:
    """Raw pixels, little-endian HWC. Raises ValueError when their number is wrong."""
    import numpy as np
    from PIL import Image

    assert picture.shape is not None
    height, width, channels = picture.shape
    is_deep = picture.dtype == "uint16"
    pixels = np.frombuffer(picture.data, "<u2" if is_deep else np.uint8).reshape(height, width, channels)
    if is_deep:
        pixels = (pixels >> 8).astype(np.uint8)
    return Image.fromarray(pixels[:, :, 0] if channels == 1 else np.ascontiguousarray(pixels))


def _displayable(image: Image.Image) -> Image.Image:
    """8 bits in grey or RGB; transparency laid on white."""
    import numpy as np
    from PIL import Image

    if image.mode.startswith("I"):
        return Image.fromarray((np.asarray(image).clip(0, 65535) >> 8).astype(np.uint8))
    if image.mode == "F":
        return image.convert("L")
    if not image.has_transparency_data:
        return image.convert("RGB")
    laid = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(laid, image.convert("RGBA")).convert("RGB")
