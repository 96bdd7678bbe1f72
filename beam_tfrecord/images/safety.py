"""How images are opened: which exceptions mean bad data, and limits that hold whatever the process does elsewhere.

Pillow is set once, here: its own bomb limits are off because ``--max_pixels`` is checked from the header before any
pixel is decoded, and its leniency towards cut files is off because a cut image is a reject. Limits of its text chunks
stay.
"""

from __future__ import annotations

import struct
import warnings
import zlib

from PIL import Image, ImageFile, UnidentifiedImageError

from beam_tfrecord.errors import ImageError

Image.MAX_IMAGE_PIXELS = None
ImageFile.LOAD_TRUNCATED_IMAGES = False

# What Pillow remarks about damaged metadata. Nothing depends on it: metadata that matters is judged by this package,
# and catching warnings would not be safe with several threads.
warnings.filterwarnings("ignore", module=r"PIL\.")

# What Pillow and the codecs raise on damaged data, found by feeding them hundreds of thousands of mutants. All of them
# mean the data; anything else is a bug and must be seen.
DECODE_ERRORS: tuple[type[Exception], ...] = (
    OSError,  # the documented one; UnidentifiedImageError is a subclass
    SyntaxError,  # plugins: a header that is not of their format after all
    ValueError,  # sizes, modes and counts that cannot be
    EOFError,  # frames and chunks that are not there
    struct.error,  # fields that reach past the end
    zlib.error,  # deflate streams in PNG chunks and TIFF strips
    OverflowError,  # sizes that do not fit a C integer
    IndexError,  # tables of ICO, TIFF and GIF that are shorter than they say
    KeyError,  # TIFF tags that must be there, compression codes that do not exist
    TypeError,  # TIFF tags of another type than they must have
    AttributeError,  # tags that are None where a number must be
    ZeroDivisionError,  # rationals and tile sizes of 0
    RuntimeError,  # the AVIF decoder
    SystemError,  # Pillow's decoders in C: tiles that reach outside of the image
    Image.DecompressionBombError,  # when the program around us set Pillow's limit again
)


class DamagedFileError(ValueError):
    """What the structure of a file says cannot be. ``cut``: it ends too early."""

    def __init__(self, message: str, cut: bool = False) -> None:
        super().__init__(message)
        self.cut = cut

    def told(self, what: str) -> ImageError:
        """The ImageError for it. what: ``a damaged PNG`` ..."""
        code = "truncated_image" if self.cut else "corrupt_image"
        return ImageError(code, f"{what}: {self}; fetch or export the file again")


# Sides and areas beyond which TensorFlow's decoders refuse: libpng's limit of a side (PNG_USER_WIDTH_MAX), the largest
# JPEG that libjpeg handles (JPEG_MAX_DIMENSION), and 2**29 pixels of a PNG or samples of a JPEG.
_PNG_MAX_SIDE = 1_000_000
_JPEG_MAX_SIDE = 65_500
_MAX_AREA = 2**29


def check_pixels(width: int, height: int, max_pixels: int) -> None:
    """Raises ImageError ``too_many_pixels`` or ``corrupt_image`` for a size that is not to be decoded."""
    if width < 1 or height < 1:
        raise ImageError("corrupt_image", f"its header says {width}x{height} pixels: it has none")
    if width * height > max_pixels:
        raise ImageError(
            "too_many_pixels",
            f"{width}x{height} are {width * height:,} pixels, more than --max_pixels {max_pixels} allows; "
            f"raise --max_pixels if the image is wanted",
        )


def check_storable(format: str, width: int, height: int, channels: int) -> None:
    """Raises ImageError ``too_many_pixels`` for a size that TensorFlow would refuse to decode from this format."""
    if format == "jpeg":
        fits = width <= _JPEG_MAX_SIDE and height <= _JPEG_MAX_SIDE and width * height * channels < _MAX_AREA
    elif format == "png":
        fits = width <= _PNG_MAX_SIDE and height <= _PNG_MAX_SIDE and width * height < _MAX_AREA
    else:
        fits = True
    if not fits:
        raise ImageError(
            "too_many_pixels",
            f"TensorFlow does not decode a {format} of {width}x{height} pixels; make it smaller with --resize, "
            f"or store pixels with --image_format raw",
        )


def damaged(error: BaseException, what: str = "it") -> ImageError:
    """The ImageError for what a decoder raised of ``what``: it is cut, of a kind that is not decoded, or corrupt."""
    error = _cause(error)
    message = reason(error)
    lower = message.lower()
    if isinstance(error, IndexError | struct.error) or any(word in lower for word in _CUT):
        return ImageError("truncated_image", f"{what} ends too early: {message}; fetch or export the file again")
    if any(word in lower for word in _UNSUPPORTED):
        return ImageError(
            "unsupported_format", f"a variant that is not decoded here: {message}; convert it to PNG or JPEG"
        )
    return ImageError("corrupt_image", f"{what} does not decode: {message}; fetch or export the file again")


# Words in the messages of Pillow and its codecs.
_CUT = ("truncated", "premature", "end of file", "incomplete", "unexpected eof", "not enough")
_UNSUPPORTED = (
    "unsupported",
    "samples per pixel",
    "unimplemented",
    "not supported",
    "unknown pixel",
    "unknown data organization",
)


def _cause(error: BaseException) -> BaseException:
    """What went wrong really: plugins wrap it into a SyntaxError."""
    cause = error.__cause__
    return cause if isinstance(error, SyntaxError) and isinstance(cause, DECODE_ERRORS) else error


def reason(error: BaseException) -> str:
    """What a decoder says, the same on every run: Pillow puts the address of the file object into one message."""
    if isinstance(error, UnidentifiedImageError):
        return "its header is damaged"
    if isinstance(error, IndexError | struct.error):
        return "something that it points to lies behind its end"
    if isinstance(error, KeyError):
        return f"what it must say under {error} is missing"
    return str(error).rstrip(". ") or type(error).__name__
