"""What the pages of a TIFF say of their samples, and grey samples that Pillow does not open as they are.

Pillow opens grey samples of many kinds, but not all of them (signed or white-is-zero ones, 32 bits in the byte order
of Motorola), and takes some for others (8 bits with a sign, 32 without). Their bits are the same: so such a page is
given a directory that calls them what Pillow opens, and the numbers are read here as what they are. Tag numbers are
those of TIFF 6.0; BigTIFF differs in the widths of its fields.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images.pixels import Pixels

BITS, COMPRESSION, PHOTOMETRIC, SAMPLES = 258, 259, 262, 277
PLANAR, EXTRA, FORMAT = 284, 338, 339
_DEFAULTS: Mapping[int, tuple[int, ...]] = {BITS: (1,), COMPRESSION: (1,), SAMPLES: (1,), PLANAR: (1,), FORMAT: (1,)}
_WHITE_IS_ZERO = 0
_UNSIGNED, _SIGNED, _FLOAT = 1, 2, 3
_FORMATS = {1: "whole numbers", 2: "whole numbers with a sign", 3: "floating point", 4: "no kind", 5: "complex numbers"}
_COLOURS = {
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
        colours = _COLOURS.get((*self.values(PHOTOMETRIC), -1)[0], "unknown colours")
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
    low, high = int(values.min()), int(values.max())
    if page.is_white_zero and not (letter == "u" and page.bits == 16):
        raise ImageError(
            "unsupported_format",
            f"{page}: where its black is cannot be told; save it with black as zero, in 16 bits without a sign",
        )
    if low < 0 or high > 65535:
        raise ImageError(
            "unsupported_format",
            f"its values run from {low} to {high}, and only 0 to 65535 can be stored; scale them as you need and save "
            f"16 bits",
        )
    stored = values.astype(np.uint8 if page.bits == 8 else np.uint16)[:, :, None]
    return 65535 - stored if page.is_white_zero else stored
