"""Files on which decoders differ, each drawn here so that only one thing about it is odd."""

from __future__ import annotations

import itertools
import random
import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from tests import image_samples as samples

# Kinds of chunks (W3C PNG, third edition, and its registered extensions) that do not touch the pixels.
EXTRA_CHUNKS = (
    *(b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"sBIT", b"bKGD", b"hIST", b"pHYs", b"sPLT", b"tIME", b"oFFs", b"pCAL"),
    *(b"sCAL", b"eXIf", b"cICP", b"mDCV", b"cLLI", b"acTL", b"fcTL", b"fdAT", b"zTXt", b"iTXt", b"tEXt", b"tRNS"),
)


def sampled_jpeg(samplings: Sequence[int], size: int = 48) -> bytes:
    """A JPEG of middle grey whose components have these samplings, as the frame header has them (0x21: two across, one
    down).

    The tables are those that Pillow writes for a grey picture. A difference of 0 is 00 in them, an end of block 1010.
    """
    tables = samples.save(np.zeros((8, 8, 1), np.uint8), "JPEG")
    head, _, rest = tables.partition(b"\xff\xc0")
    huffman = rest[rest.index(b"\xff\xc4") : rest.index(b"\xff\xda")]
    count = len(samplings)
    parts = b"".join(bytes((number + 1, sampling, 0)) for number, sampling in enumerate(samplings))
    frame = bytes((0xFF, 0xC0, 0, 8 + 3 * count, 8, 0, size, 0, size, count)) + parts
    across, down = max(sampling >> 4 for sampling in samplings), max(sampling & 15 for sampling in samplings)
    units = -(-size // (8 * across)) * -(-size // (8 * down))
    blocks = units * sum((sampling >> 4) * (sampling & 15) for sampling in samplings)
    return head + frame + huffman + _scan(range(count), blocks) + b"\xff\xd9"


def jpeg_of_scans(components: Sequence[int], size: int = 16) -> bytes:
    """A JPEG of three components with a scan of its own for each of ``components``, which may be fewer than three."""
    whole = sampled_jpeg((0x11,) * 3, size)
    scans = b"".join(_scan([number], (size // 8) ** 2) for number in components)
    return whole[: whole.index(b"\xff\xda")] + scans + b"\xff\xd9"


def _scan(components: Sequence[int], blocks: int) -> bytes:
    bits = "001010" * blocks
    body = int(bits + "1" * (-len(bits) % 8), 2).to_bytes((len(bits) + 7) // 8, "big").replace(b"\xff", b"\xff\0")
    chosen = b"".join(bytes((number + 1, 0)) for number in components)
    return bytes((0xFF, 0xDA, 0, 6 + 2 * len(components), len(components))) + chosen + b"\0\x3f\0" + body


def all_samplings() -> Iterator[tuple[int, ...]]:
    """Samplings of three components, even and uneven ones; the standard allows ten blocks in a unit."""
    for chosen in itertools.product((0x11, 0x12, 0x21, 0x22, 0x31, 0x13, 0x41), repeat=3):
        if sum((sampling >> 4) * (sampling & 15) for sampling in chosen) <= 10:
            yield chosen


def png_with_window(bits: int, width: int = 3000, height: int = 12, interlaced: bool = False) -> bytes:
    """A PNG whose rows are all the same noise, so that its data reach back by a row, and whose zlib header (RFC 1950)
    promises a window of ``256 << bits`` bytes."""
    row = np.random.default_rng(0).integers(0, 256, (1, width, 1), np.uint8)
    data = samples.png(row.repeat(height, axis=0), 8, 0, interlaced=interlaced)
    rows = zlib.decompress(data[41:-16])
    packed = zlib.compress(rows, 9)
    flags = packed[1] & 0xE0
    first = bits << 4 | 8
    flags += -(first << 8 | flags) % 31
    return data[:33] + samples.png_chunk(b"IDAT", bytes((first, flags)) + packed[2:]) + samples.PNG_END


def chunked_pngs(count: int, seed: int = 0) -> Iterator[bytes]:
    """PNGs with further chunks of any content, lengths near those that their kinds must have, once or twice."""
    rng = random.Random(seed)
    colour, grey, deep = samples.gradient(9, 7), samples.gradient(9, 7, 1), samples.gradient(9, 7, 4, "uint16")
    for _ in range(count):
        length = rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 24, 26, 32, 40, 100))
        chunk = samples.png_chunk(rng.choice(EXTRA_CHUNKS), rng.randbytes(length)) * rng.choice((1, 1, 2))
        place = {rng.choice(("before", "after")): chunk}
        yield rng.choice(
            (
                lambda place=place: samples.png(colour, 8, 2, **place),
                lambda place=place: samples.png(grey, 8, 0, **place),
                lambda place=place: samples.png(grey >> 4, 4, 3, palette=bytes(range(48)), **place),
                lambda place=place: samples.png(deep, 16, 6, **place),
            )
        )()
