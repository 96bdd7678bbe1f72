"""Damaged images by the thousand: nothing crashes, hangs, or is stored that TensorFlow does not decode as stated.

``python -m tests.fuzz_images --count 50000 --seed 0`` runs it at length (``make fuzz``); the suite runs a few thousand.
A finding is written to ``--keep DIR`` with the options that it was found under.
"""

from __future__ import annotations

import faulthandler
import io
import random
import re
import resource
import struct
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from beam_tfrecord.annotations.mask_images import read_mask
from beam_tfrecord.core.geometry import PixelFrame
from beam_tfrecord.errors import ElementError
from beam_tfrecord.images import StoredImage, convert_frames, convert_image
from beam_tfrecord.images.quick_look import size_beyond_doubt
from beam_tfrecord.options.config import ImagePolicy
from tests import image_samples as samples
from tests.annotation_tools import make_placement
from tests.fuzzing import Found, fuzz

# Small enough that a mutated header cannot ask for much, large enough for all seeds.
MAX_PIXELS = 2_000_000
SLOW_SECONDS = 5.0
MORE_MEMORY = 600 * 2**20

POLICIES: tuple[ImagePolicy, ...] = (
    ImagePolicy(max_pixels=MAX_PIXELS),
    ImagePolicy(max_pixels=MAX_PIXELS, validate="header"),
    ImagePolicy(max_pixels=MAX_PIXELS, image_format="png"),
    ImagePolicy(max_pixels=MAX_PIXELS, image_format="jpeg", background="black"),
    ImagePolicy(max_pixels=MAX_PIXELS, image_format="raw", color="rgb"),
    ImagePolicy(max_pixels=MAX_PIXELS, color="gray", resize=9, resize_mode="longest"),
    ImagePolicy(max_pixels=MAX_PIXELS, resize="12x10", resize_mode="crop", orientation="ignore"),
    ImagePolicy(max_pixels=MAX_PIXELS, resize="40x30", resize_mode="pad", color="rgb"),
)


def seeds() -> dict[str, bytes]:
    """Some thirty small files, one of each kind that decoders treat differently."""
    rgb, gray, rgba = (samples.gradient(33, 25, channels) for channels in (3, 1, 4))
    deep = samples.gradient(19, 11, 3, "uint16")
    image = samples.as_image(rgb)
    palette = image.quantize(16)
    frames = [samples.gradient(21, 17, 3, seed=seed) for seed in range(3)]
    return {
        "jpeg 4:2:0": samples.save(rgb, "JPEG", quality=80),
        "jpeg 4:4:4": samples.save(rgb, "JPEG", quality=95, subsampling=0),
        "jpeg of some size": samples.save(samples.gradient(90, 70), "JPEG", quality=50),
        "jpeg progressive": samples.save(rgb, "JPEG", progressive=True),
        "jpeg grey": samples.save(gray, "JPEG"),
        "jpeg cmyk": samples.save(image.convert("CMYK"), "JPEG"),
        "jpeg restarts": samples.save(rgb, "JPEG", restart_marker_blocks=2),
        "jpeg turned": samples.save(rgb, "JPEG", exif=samples.exif(6), icc_profile=samples.swapped_profile()),
        "mpo": samples.mpo([rgb, rgb]),
        "png rgb": samples.png(rgb, 8, 2),
        "png grey 1": samples.png(gray >> 7, 1, 0),
        "png grey 16": samples.png(samples.gradient(20, 10, 1, "uint16"), 16, 0, transparency=b"\0\1"),
        "png rgb 16": samples.png(deep, 16, 2, interlaced=True),
        "png rgba": samples.png(rgba, 8, 6, before=samples.png_chunk(b"eXIf", samples.exif(3).tobytes()[6:])),
        "png grey alpha": samples.png(rgba[:, :, 2:], 8, 4),
        "png palette": samples.png(gray >> 4, 4, 3, palette=bytes(range(48)), transparency=b"\0\x80"),
        "png interlaced": samples.png(gray >> 4, 8, 3, palette=bytes(range(48)), interlaced=True),
        "apng": samples.apng(frames),
        "gif": samples.save(palette, "GIF", transparency=3),
        "gif animated": samples.save(
            samples.as_image(frames[0]), "GIF", save_all=True, append_images=list(map(samples.as_image, frames[1:]))
        ),
        "webp lossy": samples.save(rgb, "WEBP", exif=samples.exif(6)),
        "webp lossless": samples.save(rgba, "WEBP", lossless=True),
        "webp animated": samples.save(
            samples.as_image(frames[0]), "WEBP", save_all=True, append_images=list(map(samples.as_image, frames[1:]))
        ),
        "bmp": samples.save(rgb, "BMP"),
        "bmp palette": samples.save(palette, "BMP"),
        "tiff": samples.tiff(rgb),
        "tiff 16": samples.tiff(deep, compression=8),
        "tiff tiles": samples.tiff(rgb, tile=(16, 16), order=">", planar=True),
        "tiff lzw": samples.save(rgb, "TIFF", compression="tiff_lzw", exif=samples.exif(5)),
        "tiff jpeg": samples.save(rgb, "TIFF", compression="jpeg"),
        "tiff g4": samples.save(image.convert("1"), "TIFF", compression="group4"),
        "avif": samples.save(rgb, "AVIF", quality=50),
        "jpeg 2000": samples.save(rgb, "JPEG2000"),
        "ppm": samples.save(rgb, "PPM"),
        "ico": samples.save(rgba, "ICO", sizes=[(16, 16), (24, 24)]),
        "qoi": samples.save(rgb, "QOI"),
        "tga": samples.save(rgba, "TGA", rle=True),
    }


# ---------------------------------------------------------------------------------------------------------------------
# Mutations. Each takes (data, random, another seed) to damaged data.

Mutation = Callable[[bytes, random.Random, bytes], bytes]


def flip_bits(data: bytes, rng: random.Random, other: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def flip_early(data: bytes, rng: random.Random, other: bytes) -> bytes:
    out = bytearray(data)
    out[rng.randrange(min(len(out), 200))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(out)


def cut(data: bytes, rng: random.Random, other: bytes) -> bytes:
    return data[: rng.choice((rng.randrange(1, len(data)), len(data) - rng.randrange(1, min(20, len(data)))))]


def cut_and_close(data: bytes, rng: random.Random, other: bytes) -> bytes:
    tail = 2 if data.startswith(b"\xff\xd8") else 12
    return data[: rng.randrange(1, len(data))] + data[-tail:]


def take_out(data: bytes, rng: random.Random, other: bytes) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.choice((1, 2, rng.randrange(1, 64))) :]


def insert(data: bytes, rng: random.Random, other: bytes) -> bytes:
    start = rng.randrange(len(data))
    return (
        data[:start]
        + rng.choice((rng.randbytes(rng.randrange(1, 20)), b"\xff\xd9", b"\xff\xda", b"\0" * 9))
        + data[start:]
    )


def splice(data: bytes, rng: random.Random, other: bytes) -> bytes:
    return data[: rng.randrange(1, len(data))] + other[rng.randrange(len(other)) :]


def append(data: bytes, rng: random.Random, other: bytes) -> bytes:
    return data + rng.choice((b"\0", rng.randbytes(30), other, b"\xff\xd9"))


def number(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """A number of two or four bytes, somewhere near the start, becomes extreme."""
    out = bytearray(data)
    position = rng.randrange(min(len(out), 400))
    value = rng.choice((0, 1, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x10000, rng.randrange(70000)))
    packed = struct.pack(rng.choice("<>") + "I", value)
    packed = rng.choice((packed, packed[:2], packed[2:]))
    out[position : position + len(packed)] = packed
    return bytes(out)


def rewrite_chunk(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """A chunk of a PNG is damaged, moved, copied or left out, with checksums that fit."""
    if not data.startswith(samples.PNG_SIGNATURE):
        return flip_bits(data, rng, other)
    chunks = list(_png_chunks(data))
    if not chunks:  # damaged already
        return flip_bits(data, rng, other)
    index = rng.randrange(len(chunks))
    kind, content = chunks[index]
    step = rng.randrange(6)
    if step == 0 and content:
        content = flip_bits(content, rng, other)
    elif step == 1:
        chunks.insert(rng.randrange(len(chunks) + 1), (kind, content))
    elif step == 2:
        kind = (
            bytes(kind[:3]) + bytes([kind[3] ^ 0x20]) if rng.random() < 0.5 else rng.choice((b"tRNS", b"PLTE", b"IDAT"))
        )
    elif step == 3:
        content = content[: rng.randrange(len(content) + 1)]
    elif step == 4:
        content += rng.randbytes(rng.randrange(1, 9))
    if step != 1:
        chunks[index : index + 1] = [] if step == 5 else [(kind, content)]
    return samples.PNG_SIGNATURE + b"".join(samples.png_chunk(*chunk) for chunk in chunks)


def smaller_window(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """A zlib stream that promises any window; its header is a multiple of 31, as it must be."""
    first, level = rng.randrange(8) << 4 | 8, data[1] & 0xE0
    return bytes((first, level + -(first << 8 | level) % 31)) + data[2:]


def rewrite_pixels(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """The pixel data of a PNG is damaged before it is compressed, or its stream after, with checksums that fit."""
    if not data.startswith(samples.PNG_SIGNATURE):
        return number(data, rng, other)
    chunks = list(_png_chunks(data))
    bodies = [index for index, (kind, _) in enumerate(chunks) if kind == b"IDAT"]
    if not bodies:
        return flip_bits(data, rng, other)
    try:
        pixels = zlib.decompress(b"".join(chunks[index][1] for index in bodies))
    except zlib.error:  # damaged already
        return flip_bits(data, rng, other)
    damage = rng.choice((flip_bits, cut, take_out, append, lambda d, *_: d))
    stream = zlib.compress(damage(pixels, rng, other)[:5000])
    if rng.random() < 0.3:
        stream = rng.choice((flip_bits, cut, append, smaller_window))(stream, rng, other)
    middle = rng.randrange(len(stream) + 1)
    new = [(b"IDAT", stream[:middle]), (b"IDAT", stream[middle:])]
    chunks[bodies[0] : bodies[-1] + 1] = new
    return samples.PNG_SIGNATURE + b"".join(samples.png_chunk(*chunk) for chunk in chunks)


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    position = 8
    while position + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, position)
        yield data[position + 4 : position + 8], data[position + 8 : position + 8 + length]
        position += 12 + length


MUTATIONS: tuple[Mutation, ...] = (
    flip_bits,
    flip_bits,
    flip_early,
    cut,
    cut_and_close,
    take_out,
    insert,
    splice,
    append,
    number,
    rewrite_chunk,
    rewrite_pixels,
)


END_OF_JPEG = b"\xff\xd9"


def closed_cuts(data: bytes, step: int) -> Iterator[bytes]:
    """A JPEG cut at every marker behind the start of its first scan, in the middle of each, and after every ``step``
    bytes, ended by an end marker: pixels are missing in all of them."""
    first = data.index(b"\xff\xda") + 14
    markers = [match.start() for match in re.finditer(rb"\xff[^\0]", data[:-2]) if match.start() > first]
    places = {*markers, *(place + 1 for place in markers), *range(first, len(data) - 2, step), len(data) - 3}
    for place in sorted(places):
        yield data[:place] + END_OF_JPEG


def cut_faults(count: int, seed: int) -> list[str]:
    """What is stored of ``count`` JPEGs of random kinds that were cut and ended by an end marker."""
    rng = random.Random(seed)
    faults: list[str] = []
    left = count
    while left > 0:
        pixels = samples.gradient(
            rng.randrange(8, 90), rng.randrange(8, 90), rng.choice((1, 3)), seed=rng.randrange(99)
        )
        noise = np.random.default_rng(rng.randrange(2**32)).integers(-25, 25, pixels.shape)
        pixels = np.clip(pixels.astype(int) + noise, 0, 255).astype(np.uint8)
        options = {
            "quality": rng.randrange(5, 100),
            "progressive": rng.random() < 0.5,
            "optimize": rng.random() < 0.5,
            "subsampling": rng.randrange(3),
            "restart_marker_blocks": rng.choice((0, 0, 1, 2, 7)),
        }
        cuts = list(closed_cuts(samples.save(pixels, "JPEG", **options), rng.randrange(20, 200)))[:left]
        left -= len(cuts)
        for cut_file in cuts:
            end, _ = outcome(cut_file, rng.choice(POLICIES[:1] + POLICIES[2:]), 1)
            if end != "truncated_image":
                faults.append(f"a JPEG of {pixels.shape} {options} cut to {len(cut_file) - 2} bytes: {end}")
    return faults


@dataclass(frozen=True)
class Mutant:
    """One damaged file, and how it came about."""

    seed_name: str
    mutation: str
    data: bytes


def mutants(count: int, seed: int) -> Iterator[Mutant]:
    """Damaged files, the same for the same seed."""
    rng = random.Random(seed)
    pool = seeds()
    names = list(pool)
    for _ in range(count):
        # JPEG and PNG are what is kept byte for byte: half of all mutants are of them.
        name = rng.choice([n for n in names if n.startswith(("jpeg", "png"))] if rng.random() < 0.5 else names)
        mutation = rng.choice(MUTATIONS)
        data = mutation(pool[name], rng, pool[rng.choice(names)])
        if rng.random() < 0.15 and data:
            data = rng.choice(MUTATIONS)(data, rng, pool[rng.choice(names)]) if len(data) > 1 else data
        yield Mutant(name, mutation.__name__, data)


# ---------------------------------------------------------------------------------------------------------------------
# The judge.


def fault_of(stored: StoredImage, may_be_damaged: bool = False) -> str | None:
    """What is wrong with a stored image, by TensorFlow; None when it is what it says.

    may_be_damaged: only its header was looked at, so that it may turn out not to decode.
    """
    import tensorflow as tf

    stated = (stored.height, stored.width, stored.channels)
    if stored.format == "raw":
        size = int(np.prod(stated)) * np.dtype(stored.dtype).itemsize
        return None if len(stored.data) == size else f"{len(stored.data)} bytes for {stated} {stored.dtype}"
    try:
        shape = tuple(tf.io.decode_image(stored.data).shape)
    except tf.errors.InvalidArgumentError as error:
        return None if may_be_damaged else f"TensorFlow refuses it: {error.message[-200:]}"
    return None if shape == stated else f"TensorFlow decodes {shape}, stated are {stated}"


def doubtless_fault(data: bytes) -> str | None:
    """What is wrong with the size that a file has beyond doubt; None when it has none, or the one that TensorFlow
    decodes."""
    import tensorflow as tf

    size = size_beyond_doubt(data, MAX_PIXELS)
    if size is None:
        return None
    try:
        shape = tuple(tf.io.decode_image(data).shape)
    except tf.errors.InvalidArgumentError as error:
        return f"beyond doubt {size}, but TensorFlow refuses it: {error.message[-200:]}"
    return None if shape == size else f"beyond doubt {size}, but TensorFlow decodes {shape}"


def run(count: int, seed: int, keep: Path | None = None) -> Found:
    """(faults, how many ended how) of ``count`` mutants, each under one of the policies (the default one every other
    time).

    keep: a folder for the mutants that show a fault, and for the one under way, should the process die of it.
    """
    rng = random.Random(seed + 1)
    faults: list[str] = []
    ends: Counter[str] = Counter()
    outcome(seeds()["jpeg 4:2:0"], POLICIES[0], 0)  # imports TensorFlow, which is no mutant's doing
    for index, mutant in enumerate(mutants(count, seed)):
        policy = POLICIES[0] if rng.random() < 0.5 else rng.choice(POLICIES)
        if keep:
            (keep / "under-way.bin").write_bytes(mutant.data)
        started = time.thread_time()  # others may use the machine
        end, fault = outcome(mutant.data, policy, index)
        seconds = time.thread_time() - started
        ends[end] += 1
        if seconds > SLOW_SECONDS:
            fault = f"took {seconds:.1f} s of the processor"
        if fault:
            faults.append(f"mutant {index} ({mutant.mutation} of {mutant.seed_name}) under {policy.to_json()}: {fault}")
            if keep:
                (keep / f"{seed}-{index}.bin").write_bytes(mutant.data)
    return faults, ends


def outcome(data: bytes, policy: ImagePolicy, index: int) -> tuple[str, str | None]:
    """("stored" or the code of the reject, what is wrong or None) of one mutant; some are also read as frames and
    mask."""
    try:
        stored = [convert_image(data, policy)]
        if index % 4 == 0:
            stored.extend(convert_frames(data, policy))
        if index % 5 == 0:
            read_as_mask(data)
    except ElementError as error:
        fault = doubtless_fault(data)
        if fault:
            return error.code, fault
        return error.code, f"an address in the message: {error.message}" if " at 0x" in error.message else None
    except Exception as error:
        return "exception", f"{type(error).__name__}: {error}"
    faults = [fault_of(image, may_be_damaged=policy.validate == "header") for image in stored]
    return "stored", next(filter(None, (doubtless_fault(data), *faults)), None)


def read_as_mask(data: bytes) -> None:
    """As the mask of an image that has the size which its header says."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            width, height = image.size
    except Exception:
        width = height = 1
    if width * height <= MAX_PIXELS:
        read_mask(data, "m.png", make_placement(PixelFrame(width, height, width, height)))


def run_at_length(count: int, seed: int, keep: Path | None) -> Found:
    """The same with cuts, and with what memory it took; the process ends when a decoder does not."""
    faulthandler.dump_traceback_later(60 + count // 20, exit=True)
    fault_of(convert_image(seeds()["png rgb"], POLICIES[0]))  # loads TensorFlow, whose memory does not count
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    faults, ends = run(count, seed, keep)
    faults += cut_faults(count, seed)
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    print(f"{more / 2**20:.0f} MiB more memory")
    if more > MORE_MEMORY:
        faults.append("took too much memory")
    return faults, ends


if __name__ == "__main__":
    sys.exit(fuzz(__doc__, "mutants and closed cuts", 20_000, run_at_length))
