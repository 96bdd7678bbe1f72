"""What Pillow leaves open about TIFF: 16-bit colour, samples that it does not decode, and camera raw files.

Tag numbers are those of TIFF 6.0; DNGVersion is of the DNG specification.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

import numpy as np
from PIL import Image, TiffImagePlugin

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import tiff_pages
from beam_tfrecord.images.pixels import Pixels
from beam_tfrecord.images.tiff_pages import Page

_NEW_SUBFILE_TYPE = 254
_DNG_VERSION = 50706
_REDUCED_RESOLUTION = 1
_YCBCR = 6
_PLANAR_CONFIGURATION = 284
_IN_PLANES = 2
_BITS_PER_SAMPLE = 258
_EXTRA_SAMPLES = 338
_EXTRA_ASSOCIATED = 1
_NATIVE = {"I;32B": "I;32N", "I;32BS": "I;32NS", "F;32BF": "F;32NF", "F;32F": "F;32NF", "I;32S": "I;32NS"}
# Unpackers of 16-bit colour, without their ending for the byte order, and those that do no arithmetic on the samples.
_COLOURS = {"RGB": "RGB", "RGBX": "RGBX", "RGBA": "RGBA", "RGBa": "RGBA"}


def check(image: Image.Image, data: bytes) -> None:
    """Raises ImageError ``unsupported_format`` for TIFF that Pillow would decode to something else than the picture.

    That is the preview in a camera raw file, and 16-bit colour in planes, whose samples Pillow mixes up.
    """
    tags = image.tag_v2 if isinstance(image, TiffImagePlugin.TiffImageFile) else {}
    is_preview = tags.get(_NEW_SUBFILE_TYPE, 0) == _REDUCED_RESOLUTION
    if data[8:10] == b"CR" or _DNG_VERSION in tags or is_preview:
        raise ImageError(
            "unsupported_format",
            "a camera raw file (or another TIFF whose first picture is a preview); develop it to JPEG, PNG or TIFF",
        )
    if tags.get(_PLANAR_CONFIGURATION) == _IN_PLANES and sample_bits(image) > 8 and len(image.getbands()) > 1:
        raise ImageError(
            "unsupported_format", "a TIFF of 16-bit colour in planes; save it with all samples of a pixel together"
        )


def check_samples(pages: Sequence[Page]) -> None:
    """Raises ImageError ``unsupported_format`` for samples that Pillow fails to decode with another reason than the
    true one, or takes for what they are not."""
    for page in pages:
        compression = page.values(tiff_pages.COMPRESSION)[0]
        if compression not in TiffImagePlugin.COMPRESSION_INFO:
            raise ImageError(
                "unsupported_format",
                f"a TIFF of compression {compression}, which is not decoded here; save it with LZW or Deflate",
            )
        extra, samples = page.values(tiff_pages.EXTRA), page.values(tiff_pages.SAMPLES)[0]
        colours = page.values(tiff_pages.PHOTOMETRIC)
        if (
            page.values(tiff_pages.PLANAR) == (_IN_PLANES,)
            and samples > 1
            and (samples == 2 or extra not in ((), (2,)))
        ):
            raise ImageError(
                "unsupported_format",
                f"{page} with samples beside the colours; save it with all samples of a pixel together",
            )
        if colours == (_YCBCR,) and compression == 1:
            raise ImageError("unsupported_format", f"{page} that are not compressed; save it as RGB")


def read_natively(image: Image.Image) -> None:
    """Makes Pillow take 32-bit samples from libtiff in the byte order of the machine, in which libtiff gives them: it
    takes them in that of the file, and so reads compressed files of the other order wrongly."""
    if isinstance(image, TiffImagePlugin.TiffImageFile) and image.tile and image.tile[0].codec_name == "libtiff":
        name = _unpacker(image)
        image.tile = [
            tile._replace(args=(_NATIVE.get(name, name), *tile.args[1:])) if isinstance(tile.args, tuple) else tile
            for tile in image.tile
        ]


def sample_bits(image: Image.Image) -> int:
    """Bits of the deepest sample of a TIFF; 8 for any other image."""
    if not isinstance(image, TiffImagePlugin.TiffImageFile):
        return 8
    return int(max(image.tag_v2.get(_BITS_PER_SAMPLE, (1,))))


def deep_colour(data: bytes, number: int) -> Pixels | None:
    """The uint16 pixels of RGB or RGBA with 16 bits a sample; None for any other TIFF. Raises what Pillow raises.

    Pillow gives only the high byte of each sample. Its unpackers for big- and little-endian samples differ in the byte
    that they take, so the page is decoded once with each.
    """
    high, low = (_open_page(data, number) for _ in range(2))
    if not (_set_unpacker(high, takes_high=True) and _set_unpacker(low, takes_high=False)):
        return None
    is_premultiplied = _unpacker(high).startswith("RGBA") and _EXTRA_ASSOCIATED in high.tag_v2.get(_EXTRA_SAMPLES, ())
    pixels = np.asarray(high).astype(np.uint16)
    pixels <<= 8
    pixels |= np.asarray(low)
    return _straight(pixels) if is_premultiplied else pixels


def _open_page(data: bytes, number: int) -> TiffImagePlugin.TiffImageFile:
    image = TiffImagePlugin.TiffImageFile(io.BytesIO(data))
    image.seek(number)
    return image


def _unpacker(image: TiffImagePlugin.TiffImageFile) -> str:
    """The name of the unpacker for the first tile ("RGB;16L"), or '' when it has none of a kind that is known here."""
    args = image.tile[0].args if image.tile else ""
    name = args[0] if isinstance(args, tuple) else args
    return name if isinstance(name, str) else ""


def _set_unpacker(image: TiffImagePlugin.TiffImageFile, takes_high: bool) -> bool:
    kind, _, order = _unpacker(image).partition(";16")
    if kind not in _COLOURS or order not in ("L", "B", "N"):
        return False
    if not takes_high:
        native = "L" if sys.byteorder == "little" else "B"
        order = {"L": "B", "B": "L"}[native if order == "N" else order]
    tiles = []
    for tile in image.tile:
        args = tile.args if isinstance(tile.args, tuple) else (tile.args,)
        tiles.append(tile._replace(args=(f"{_COLOURS[kind]};16{order}", *args[1:])))
    image.tile = tiles
    return True


def _straight(pixels: Pixels) -> Pixels:
    """Pixels whose colours were multiplied by alpha, divided by it again."""
    alpha = np.maximum(pixels[:, :, -1:].astype(np.uint32), 1)
    colour = (pixels[:, :, :-1].astype(np.uint32) * 65535 + alpha // 2) // alpha
    return np.concatenate([np.minimum(colour, 65535).astype(np.uint16), pixels[:, :, -1:]], axis=2)
