"""Masks as image files and arrays: reading palette indices, moving them into the stored image, writing PNG."""

from __future__ import annotations

import io
import re
import struct
import zlib
from typing import TYPE_CHECKING, Any

from beam_tfrecord.annotations.base import Placement
from beam_tfrecord.core.geometry import INVERSE, PixelFrame
from beam_tfrecord.errors import AnnotationError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.generic]

HEAD = 26  # bytes of a PNG up to its depth and kind of colour
_PNG = b"\x89PNG\r\n\x1a\n"
_READABLE = ("PNG", "GIF", "BMP", "TIFF", "PPM")  # formats that keep values
_LOSSY_TIFF = ("jpeg", "tiff_jpeg", "webp")
# Of the others of its kind (netpbm(5)) Pillow stretches the values, or turns them round.
_KEPT_PGM = re.compile(rb"P[2356](?:(?:\s|#[^\r\n]*[\r\n])+\d+){2}(?:\s|#[^\r\n]*[\r\n])+(?:255|65535)\s")
_BITS, _PHOTOMETRIC, _WHITE_IS_ZERO = 258, 262, 0  # tags of TIFF 6.0
# What Pillow raises for damaged files of these formats.
_DAMAGED = (
    *(OSError, ValueError, SyntaxError, EOFError, OverflowError, struct.error, zlib.error),
    *(IndexError, KeyError, TypeError, AttributeError, ZeroDivisionError, RuntimeError, SystemError),
)


def is_identity(frame: PixelFrame) -> bool:
    """Whether the stored image has every pixel of the file in its place."""
    return frame == PixelFrame(frame.source_width, frame.source_height, frame.source_width, frame.source_height)


def upright_frame(frame: PixelFrame) -> PixelFrame:
    """The same frame for what is given in the turned picture: without the turn, or turned back where the image is left
    as it lies in the file."""
    width, height = frame.turned_size
    back = INVERSE[frame.ignored]
    return frame._replace(source_width=width, source_height=height, orientation=back, ignored=1)


def place_array(array: Any, placement: Placement) -> Any:
    """A mask of shape (height, width) or (height, width, channels) moved into the stored image by nearest neighbour.

    The shape tells whether it belongs to the raster of the file or to the turned picture; where both have one shape,
    the placement does. Raises AnnotationError (``bad_mask``) when it fits neither.
    """
    import numpy as np

    frame = frame_of_size((array.shape[1], array.shape[0]), placement)
    if is_identity(frame):
        return array
    if placement.place_mask is None:
        raise ValueError("a mask must be moved, and the placement says not how")
    if array.ndim == 2:
        return placement.place_mask(array, frame)
    return np.stack([placement.place_mask(array[..., band], frame) for band in range(array.shape[2])], axis=-1)


def frame_of_size(size: tuple[int, int], placement: Placement) -> PixelFrame:
    """The frame that moves a mask of a size (width, height). Raises AnnotationError (``bad_mask``) when none does."""
    frame = placement.frame
    fits_source, fits_upright = size == frame.source_size, size == frame.turned_size
    if not fits_source and not fits_upright:
        width, height = frame.source_size
        raise AnnotationError(
            "bad_mask", f"the mask has {size[0]}x{size[1]} pixels, the image {width}x{height}: they must agree"
        )
    use_upright = placement.is_upright if fits_source and fits_upright else fits_upright
    return upright_frame(frame) if use_upright else frame._replace(ignored=1)


def read_mask(data: bytes, what: str, placement: Placement) -> Any:
    """The indices or colours of a mask file.

    Palette and grey images give their indices, shape (height, width), uint8 or uint16; colour images give RGB, shape
    (height, width, 3). The size is compared with the image's by the header, before any pixel is decoded.
    Raises AnnotationError (``bad_mask``) when the file is no mask or does not fit.
    """
    import numpy as np
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as image:
            frame_of_size(image.size, placement)
            _check_kind(image, data, what)
            mode, depth = image.mode, _grey_bits(image, data)
            array = np.asarray(_with_values(image))
    except UnidentifiedImageError:
        raise AnnotationError("bad_mask", f"the mask {what} is no image that can be read") from None
    except (*_DAMAGED, Image.DecompressionBombError) as error:
        raise AnnotationError(
            "bad_mask", f"the mask {what} does not decode: {str(error) or type(error).__name__}"
        ) from None
    if mode == "1":
        return array.astype(np.uint8)
    if depth in (2, 4):
        return array // (255 // ((1 << depth) - 1))
    return _as_indices(array, what)


def is_deep_head(head: bytes) -> bool | None:
    """Whether the first :data:`HEAD` bytes are of a PNG of 16 bits; None when they are of no PNG."""
    if not head.startswith(_PNG) or len(head) < HEAD:
        return None
    return head[24] == 16


def is_deep(data: bytes) -> bool:
    """Whether a mask file has values of more than 8 bits. False for what is no mask that can be read."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as image:
            return image.mode.startswith("I")
    except (*_DAMAGED, Image.DecompressionBombError):
        return False


def _check_kind(image: Any, data: bytes, what: str) -> None:
    """Raises AnnotationError (``bad_mask``) for a file of which Pillow gives other values than lie in it, or one part
    of several."""
    is_lossy = image.format not in _READABLE or image.info.get("compression") in _LOSSY_TIFF
    is_turned = image.format == "TIFF" and image.tag_v2.get(_PHOTOMETRIC) == _WHITE_IS_ZERO
    if is_lossy or is_turned or (image.format == "PPM" and not _KEPT_PGM.match(data)):
        kind = f"{image.format} in which white is zero" if is_turned else image.format
        raise AnnotationError("bad_mask", f"the mask {what} is {kind}, which does not keep values: save it as PNG")
    frames = getattr(image, "n_frames", 1)
    if frames > 1:
        raise AnnotationError("bad_mask", f"the mask {what} holds {frames} pictures: save the one that is meant as PNG")


def _grey_bits(image: Any, data: bytes) -> int:
    """Bits of a sample of a grey PNG or TIFF, of which Pillow stretches 2 and 4 to the range of 8; 0 for any other
    file."""
    if image.format == "TIFF":
        return int(max(image.tag_v2.get(_BITS, (1,)))) if image.mode == "L" else 0
    return data[24] if data.startswith(_PNG) and data[25:26] == b"\0" else 0


def _as_indices(array: Any, what: str) -> Any:
    """Values as uint8 or uint16."""
    import numpy as np

    if array.dtype == np.uint8:
        return array
    if array.dtype.kind not in "iu":
        raise AnnotationError("bad_mask", f"the mask {what} has values of type {array.dtype}: whole numbers are needed")
    if array.size and (array.min() < 0 or array.max() > 0xFFFF):
        raise AnnotationError("bad_mask", f"the mask {what} has values beyond 16 bits")
    return array.astype(np.uint16)


def _with_values(image: Any) -> Any:
    """An image whose array holds indices, grey values or RGB."""
    if image.mode in ("RGBA", "RGBX", "CMYK", "YCbCr", "LAB", "HSV"):
        return image.convert("RGB")
    if image.mode in ("LA", "PA"):
        return image.getchannel(0)
    return image


def encode_png(array: Any) -> bytes:
    """A PNG of an array: (height, width) uint8 or uint16 as grey values, (height, width, 3) uint8 as RGB."""
    import numpy as np
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(array)).save(buffer, "PNG")
    return buffer.getvalue()
