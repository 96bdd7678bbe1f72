"""WebP headers (RFC 9649), read before libwebp sees the file: its decoder takes memory for the whole canvas at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class WebpHeader(NamedTuple):
    """Size of the canvas in pixels, and whether the first picture was compressed without loss."""

    width: int
    height: int
    is_lossless: bool


def read_header(data: bytes) -> WebpHeader | None:
    """The header of a WebP file; None when it is damaged."""
    size: tuple[int, int] | None = None
    for kind, start, stop in _chunks(data, 12, len(data)):
        if kind == b"VP8X" and stop - start >= 10:
            size = _uint24(data, start + 4) + 1, _uint24(data, start + 7) + 1
        elif kind == b"ANMF" and size:
            kinds = [inner for inner, _, _ in _chunks(data, start + 16, stop)]
            return WebpHeader(*size, b"VP8L" in kinds)
        elif kind == b"VP8L" and stop - start >= 5:
            bits = int.from_bytes(data[start + 1 : start + 5], "little")
            return WebpHeader(*(size or ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)), True)
        elif kind == b"VP8 " and stop - start >= 10:
            width, height = (int.from_bytes(data[start + at : start + at + 2], "little") & 0x3FFF for at in (6, 8))
            return WebpHeader(*(size or (width, height)), False)
    return None


def is_animated(data: bytes) -> bool:
    """Whether the file says of itself that it is an animation (flag A of the VP8X chunk, which is the first then)."""
    return data[:4] == b"RIFF" and data[8:16] == b"WEBPVP8X" and bool(data[20:21]) and bool(data[20] & 2)


def _chunks(data: bytes, position: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """(name, start, stop) of the RIFF chunks between two offsets; a chunk that is cut ends where the data ends."""
    while position + 8 <= end:
        length = int.from_bytes(data[position + 4 : position + 8], "little")
        yield data[position : position + 4], position + 8, min(position + 8 + length, end)
        position += 8 + length + (length & 1)


def _uint24(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 3], "little")
