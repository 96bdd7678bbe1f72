"""TIFF: what its pages say of their samples, and what Pillow does not open as it is.

Pillow opens grey samples of many kinds, but not all of them (signed or white-is-zero ones, 32 bits in the byte order
of Motorola), and takes some for others (8 bits with a sign, 32 without). Their bits are the same: so such a page is
given a directory that calls them what Pillow opens, and the numbers are read here as what they are. It leaves open also
16-bit colour, samples that it does not decode, and camera raw files. Tag numbers are those of TIFF 6.0 (BigTIFF differs
in the widths of its fields); DNGVersion is of the DNG specification.
"""

from __future__ import annotations

import io
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image, TiffImagePlugin

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images.pixels import Pixels, storable

BITS, COMPRESSION, PHOTOMETRIC, SAMPLES = 258, 259, 262, 277
PLANAR, EXTRA, FORMAT = 284, 338, 339
_DEFAULTS: Mapping[int, tuple[int, ...]] = {BITS: (1,), COMPRESSION: (1,), SAMPLES: (1,), PLANAR: (1,), FORMAT: (1,)}
_WHITE_IS_ZERO = 0
_UNSIGNED, _SIGNED, _FLOAT = 1, 2, 3
_FORMATS = {1: "whole numbers", 2: "whole numbers with a sign", 3: "floating point", 4: "no kind", 5: "complex numbers"}
_PHOTOMETRICS = {
    **{0: "grey (white is zero)", 1: "grey", 2: "RGB", 3: "a palette", 4: "a transparency mask", 5: "CMYK", 6: "YCbCr"},
    **{8: "LAB", 9: "ICC LAB", 10: "ITU LAB", 32803: "a colour filter array", 32844: "LogL", 32845: "LogLuv"},
}
_READ = frozenset({BITS, COMPRESSION, PHOTOMETRIC, SAMPLES, PLANAR, EXTRA, FORMAT})
_MOST_PAGES, _MOST_TAGS = 10_000, 4096


class Page(NamedTuple):
    """The tags of a page that say what its samples are, as far as they are whole numbers."""

    tags: Mapping[int, tuple[int, ...]]

    def values(self, tag: int) -> tuple[int, ...]:
        return self.tags.get(tag) or _DEFAULTS.get(tag, ())

    @property
    def bits(self) -> int:
        return max(self.values(BITS))

    @property
    def is_white_zero(self) -> bool:
        return self.values(PHOTOMETRIC) == (_WHITE_IS_ZERO,)

    @property
    def opens_as(self) -> Mapping[int, int]:
        """The tags with which Pillow opens grey samples that it else does not open, or takes for others."""
        if self.values(SAMPLES) != (1,) or self.values(PHOTOMETRIC) not in ((0,), (1,)):
            return {}
        kind, bits = self.values(FORMAT)[0], self.bits
        is_whole = kind in (_UNSIGNED, _SIGNED) and bits in (8, 16, 32)
        if is_whole and (kind == _SIGNED or bits == 32 or (bits == 16 and self.is_white_zero)):
            return {PHOTOMETRIC: 1, FORMAT: _SIGNED if bits == 32 else _UNSIGNED}
        return {}

    def __str__(self) -> str:
        count = self.values(SAMPLES)[0]
        colours = _PHOTOMETRICS.get((*self.values(PHOTOMETRIC), -1)[0], "unknown colours")
        kind = _FORMATS.get(self.values(FORMAT)[0], "of an unknown kind")
        planes = ", in planes" if self.values(PLANAR) == (2,) else ""
        return f"a TIFF of {colours}, {count} samples a pixel of {self.bits} bits each ({kind}{planes})"


def with_pages_that_open(data: bytes) -> tuple[bytes, tuple[Page, ...]]:
    """A TIFF whose grey pages Pillow opens, and what the pages say really. The same bytes where nothing is to be done.

    Raises struct.error when a directory does not lie inside of the file.
    """
    order = "<" if data[:2] == b"II" else ">"
    is_big = data[2:4] in (b"+\0", b"\0+")
    head, count_code, pointer, width = (8, "Q", "Q", 20) if is_big else (4, "H", "I", 12)
    count_size, pointer_size = struct.calcsize(count_code), struct.calcsize(pointer)
    pages: list[Page] = []
    tables: list[dict[int, bytes]] = []
    (position,) = struct.unpack_from(order + pointer, data, head)
    seen: set[int] = set()
    while position and position not in seen and len(pages) < _MOST_PAGES:
        seen.add(position)
        try:
            (count,) = struct.unpack_from(order + count_code, data, position)
            start = position + count_size
            entries = _entries(data[start : start + width * min(count, _MOST_TAGS)], order, width)
            tags = {
                tag: _numbers(data, entry, order + pointer)
                for tag, entry in entries.items()
                if tag in _READ and entry[2:4] in (b"\3\0", b"\0\3", b"\4\0", b"\0\4")
            }
            (position,) = struct.unpack_from(order + pointer, data, start + width * count)
        except struct.error:
            if not pages:
                raise
            break  # the first page counts
        pages.append(Page(tags))
        tables.append(entries)
    if not any(page.opens_as for page in pages):
        return data, tuple(pages)
    out = bytearray(data + bytes(-len(data) % 8))
    link = head
    for page, entries in zip(pages, tables, strict=True):
        for tag, value in page.opens_as.items():
            entry = struct.pack(f"{order}HH{pointer}H", tag, 3, 1, value)
            entries[tag] = entry.ljust(width, b"\0")
        struct.pack_into(order + pointer, out, link, len(out))
        out += struct.pack(order + count_code, len(entries)) + b"".join(entries[tag] for tag in sorted(entries))
        link = len(out)
        out += bytes(pointer_size + -(len(out) + pointer_size) % 8)
    return bytes(out), tuple(pages)


def _entries(table: bytes, order: str, width: int) -> dict[int, bytes]:
    places = range(0, len(table) - width + 1, width)
    return {struct.unpack_from(order + "H", table, place)[0]: table[place : place + width] for place in places}


def _numbers(data: bytes, entry: bytes, pointer: str) -> tuple[int, ...]:
    """The values of a field of type SHORT or LONG; its first hundred."""
    (count,) = struct.unpack_from(pointer, entry, 4)
    place = 4 + struct.calcsize(pointer)
    code, size = ("H", 2) if 3 in entry[2:4] else ("I", 4)
    if count * size > struct.calcsize(pointer):
        (place,) = struct.unpack_from(pointer, entry, place)
        entry = data
    return struct.unpack_from(f"{pointer[0]}{min(count, 100)}{code}", entry, place)


def grey_values(decoded: Pixels, page: Page) -> Pixels:
    """The samples of a page that was opened as something else: array (height, width, 1) of uint8 or uint16.

    Raises ImageError for values that cannot be stored without a scale that is a guess.
    """
    letter = "u" if page.values(FORMAT)[0] == _UNSIGNED else "i"
    native = decoded.astype(decoded.dtype.newbyteorder("="), copy=False)
    values = native.view(f"{letter}{native.dtype.itemsize}")
    if page.is_white_zero and not (letter == "u" and page.bits == 16):
        raise ImageError(
            "unsupported_format",
            f"{page}: where its black is cannot be told; save it with black as zero, in 16 bits without a sign",
        )
    stored = storable(values).astype(np.uint8 if page.bits == 8 else np.uint16, copy=False)[:, :, None]
    return 65535 - stored if page.is_white_zero else stored


_NEW_SUBFILE_TYPE = 254
_DNG_VERSION = 50706
_REDUCED_RESOLUTION = 1
_YCBCR = 6
_IN_PLANES = 2
_EXTRA_ASSOCIATED = 1
_NATIVE = {"I;32B": "I;32N", "I;32BS": "I;32NS", "F;32BF": "F;32NF", "F;32F": "F;32NF", "I;32S": "I;32NS"}
# Unpackers of 16-bit colour, without their ending for the byte order, and those that do no arithmetic on the samples.
_COLOUR_MODES = {"RGB": "RGB", "RGBX": "RGBX", "RGBA": "RGBA", "RGBa": "RGBA"}


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
    if tags.get(PLANAR) == _IN_PLANES and sample_bits(image) > 8 and len(image.getbands()) > 1:
        raise ImageError(
            "unsupported_format", "a TIFF of 16-bit colour in planes; save it with all samples of a pixel together"
        )


def check_samples(pages: Sequence[Page]) -> None:
    """Raises ImageError ``unsupported_format`` for samples that Pillow fails to decode with another reason than the
    true one, or takes for what they are not."""
    for page in pages:
        compression = page.values(COMPRESSION)[0]
        if compression not in TiffImagePlugin.COMPRESSION_INFO:
            raise ImageError(
                "unsupported_format",
                f"a TIFF of compression {compression}, which is not decoded here; save it with LZW or Deflate",
            )
        extra, samples = page.values(EXTRA), page.values(SAMPLES)[0]
        colours = page.values(PHOTOMETRIC)
        if page.values(PLANAR) == (_IN_PLANES,) and samples > 1 and (samples == 2 or extra not in ((), (2,))):
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
    return int(max(image.tag_v2.get(BITS, (1,))))


def deep_colour(data: bytes, number: int) -> Pixels | None:
    """The uint16 pixels of RGB or RGBA with 16 bits a sample; None for any other TIFF. Raises what Pillow raises.

    Pillow gives only the high byte of each sample. Its unpackers for big- and little-endian samples differ in the byte
    that they take, so the page is decoded once with each.
    """
    high, low = (_open_page(data, number) for _ in range(2))
    if not (_set_unpacker(high, takes_high=True) and _set_unpacker(low, takes_high=False)):
        return None
    is_premultiplied = _unpacker(high).startswith("RGBA") and _EXTRA_ASSOCIATED in high.tag_v2.get(EXTRA, ())
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
    if kind not in _COLOUR_MODES or order not in ("L", "B", "N"):
        return False
    if not takes_high:
        native = "L" if sys.byteorder == "little" else "B"
        order = {"L": "B", "B": "L"}[native if order == "N" else order]
    tiles = []
    for tile in image.tile:
        args = tile.args if isinstance(tile.args, tuple) else (tile.args,)
        tiles.append(tile._replace(args=(f"{_COLOUR_MODES[kind]};16{order}", *args[1:])))
    image.tile = tiles
    return True


def _straight(pixels: Pixels) -> Pixels:
    """Pixels whose colours were multiplied by alpha, divided by it again."""
    alpha = np.maximum(pixels[:, :, -1:].astype(np.uint32), 1)
    colour = (pixels[:, :, :-1].astype(np.uint32) * 65535 + alpha // 2) // alpha
    return np.concatenate([np.minimum(colour, 65535).astype(np.uint16), pixels[:, :, -1:]], axis=2)
