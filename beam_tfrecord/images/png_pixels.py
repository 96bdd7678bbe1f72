"""A complete check of the pixel data of a PNG, without making pixels.

The data is whole exactly when its IDAT chunks inflate to as many bytes as the header promises, with a known filter type
before each row (W3C PNG 9.2) and the right Adler-32 at the end. Inflating runs in C and releases the GIL. libpng
refuses what fails here, while Pillow lets some of it pass (missing rows of interlaced images, missing checksums).
"""

from __future__ import annotations

import zlib

from beam_tfrecord.images.png import SAMPLES, PngError, PngFile

# Adam7: first column and row of each pass, and the steps between columns and rows.
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_INFLATE_STEP = 4 * 2**20
_INPUT_STEP = 8192  # of libpng
_LARGEST_WINDOW = 2**15
# Pixel data may go on behind the last row, as some encoders have it; more than this is made to keep decoders busy.
_MAX_EXTRA = 2**20


def check_pixel_data(png: PngFile) -> list[str]:
    """Inflates the pixel data and throws it away. Gives what is odd but harmless: nothing when every byte is right.

    Raises PngError when pixels are missing or damaged. Holds 4 MiB at a time, whatever the size of the image.
    """
    filters = _FilterCheck(png)
    inflater = zlib.decompressobj()
    try:
        for part in png.data:
            while not inflater.eof and filters.extra <= _MAX_EXTRA:
                inflated = inflater.decompress(part, _INFLATE_STEP)
                filters.feed(inflated)
                part = inflater.unconsumed_tail
                if not part and len(inflated) < _INFLATE_STEP:
                    break
    except zlib.error as error:
        raise PngError(f"its pixel data does not inflate: {error}") from None
    if filters.extra > _MAX_EXTRA:
        raise PngError("far more pixel data than pixels")
    if not inflater.eof:
        raise PngError("its pixel data ends too early", cut=filters.missing > 0)
    if filters.missing:
        raise PngError(f"{filters.missing} bytes of its pixels are missing", cut=True)
    return ["more pixel data than pixels"] if filters.extra or inflater.unused_data else []


def has_wide_window(png: PngFile) -> bool:
    """Whether the window that the compressed data promises (CINFO of RFC 1950) is as large as this image can need.

    libpng takes no larger one, and fails where the data reach further back than was promised. Other decoders always
    take the largest. Data that do not begin as compressed data must promise nothing: they are judged elsewhere.
    """
    if not _has_header(png):
        return True
    return 1 << _window_bits(png) >= min(_LARGEST_WINDOW, _FilterCheck(png).missing)


def fits_window(png: PngFile) -> bool:
    """Whether whole pixel data inflate with the window that they promise, row by row as libpng does it. Slow."""
    inflater = zlib.decompressobj(_window_bits(png))
    row = _row_bytes(png.width, png.depth, png.colour_type) + 1
    data = b"".join(png.data)
    try:
        for start in range(0, len(data), _INPUT_STEP):
            piece = data[start : start + _INPUT_STEP]
            while piece:
                inflater.decompress(piece, row)
                piece = inflater.unconsumed_tail
    except zlib.error:
        return False
    return True


def _has_header(png: PngFile) -> bool:
    """Whether the data begin with the two bytes of RFC 1950, 2.2: a method that exists, and a multiple of 31."""
    header = b"".join(part[:2] for part in png.data)[:2]
    return len(header) == 2 and header[0] & 15 == 8 and int.from_bytes(header, "big") % 31 == 0


def _window_bits(png: PngFile) -> int:
    return 8 + (next((part[0] for part in png.data if part), 0) >> 4)


def _row_bytes(width: int, depth: int, colour_type: int) -> int:
    """Bytes of a row of ``width`` pixels, without its filter type."""
    return (width * SAMPLES[colour_type] * depth + 7) // 8


class _FilterCheck:
    """Counts the inflated bytes and looks at the filter type before each row."""

    def __init__(self, png: PngFile) -> None:
        self.extra = 0
        passes = _PASSES if png.interlaced else ((0, 0, 1, 1),)
        self._blocks: list[list[int]] = []  # [bytes of a row with its filter type, bytes that are to come]
        for column, row, step_x, step_y in passes:
            columns = (png.width - column + step_x - 1) // step_x
            rows = (png.height - row + step_y - 1) // step_y
            if columns > 0 and rows > 0:
                stride = _row_bytes(columns, png.depth, png.colour_type) + 1
                self._blocks.append([stride, stride * rows])
        self._blocks.reverse()

    @property
    def missing(self) -> int:
        return sum(left for _, left in self._blocks)

    def feed(self, data: bytes) -> None:
        while data:
            if not self._blocks:
                self.extra += len(data)
                return
            block = self._blocks[-1]
            stride, left = block
            taken = data[:left] if len(data) > left else data
            # The filter types lie every `stride` bytes, the first where the row that is under way ends.
            filters = taken[left % stride :: stride]
            if filters.translate(None, b"\0\1\2\3\4"):
                raise PngError("a row has an unknown filter type")
            block[1] = left - len(taken)
            if not block[1]:
                self._blocks.pop()
            data = data[len(taken) :]
