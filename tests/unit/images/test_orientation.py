"""Pixels are turned upright as EXIF says, in every format, and the frame says what was done."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from beam_tfrecord.core.geometry import INVERSE
from beam_tfrecord.images import convert_image
from beam_tfrecord.images.orientation import ExifDamagedError, exif_orientation, turn, xmp_orientation
from beam_tfrecord.options.config import ImagePolicy
from tests import image_samples as samples
from tests.image_judge import by_pillow, pixels_of, psnr

UPRIGHT = samples.blocks(32, 16)
ORIENTATIONS = range(1, 9)


def exif_block(orientation: int) -> bytes:
    return samples.exif(orientation).tobytes().removeprefix(b"Exif\0\0")


def file_of(format: str, orientation: int) -> bytes:
    raster = samples.raster_of(UPRIGHT, orientation)
    if format == "PNG":
        return samples.png(raster, 8, 2, before=samples.png_chunk(b"eXIf", exif_block(orientation)))
    if format == "PNG by ImageMagick":
        block = b"Exif\0\0" + exif_block(orientation)
        text = b"\nexif\n%8d\n" % len(block) + b"\n".join(
            block.hex().encode()[at : at + 72] for at in range(0, 2 * len(block), 72)
        )
        return samples.png(raster, 8, 2, before=samples.png_chunk(b"tEXt", b"Raw profile type exif\0" + text + b"\n"))
    if format == "PNG with XMP":
        packet = b'<x:xmpmeta><rdf:Description tiff:Orientation="%d"/></x:xmpmeta>' % orientation
        return samples.png(raster, 8, 2, before=samples.png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + packet))
    if format == "JPEG with XMP":
        packet = b"<tiff:Orientation>%d</tiff:Orientation>" % orientation
        plain = samples.save(raster, "JPEG", quality=95, subsampling=0)
        return samples.with_segment(plain, 0xE1, b"http://ns.adobe.com/xap/1.0/\0" + packet)
    if format == "TIFF":
        return samples.tiff(raster, tags={274: ("H", [orientation])})
    if format == "TIFF of 16 bits":
        return samples.tiff(raster.astype(np.uint16) * 257, compression=8, tags={274: ("H", [orientation])})
    options = {"JPEG": {"quality": 95, "subsampling": 0}, "WEBP": {"lossless": True}, "AVIF": {"quality": 95}}
    return samples.save(raster, format, exif=samples.exif(orientation), **options.get(format, {}))


FORMATS = (
    "JPEG",
    "JPEG with XMP",
    "PNG",
    "PNG by ImageMagick",
    "PNG with XMP",
    "WEBP",
    "AVIF",
    "TIFF",
    "TIFF of 16 bits",
)


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize("format", FORMATS)
def test_pixels_are_turned_upright(format: str, orientation: int) -> None:
    data = file_of(format, orientation)
    stored = convert_image(data, ImagePolicy())
    assert ("rotated" in stored.changed) == (orientation > 1)
    assert (stored.width, stored.height) == (32, 16)
    pixels = pixels_of(stored)
    scale = 257 if stored.dtype == "uint16" else 1
    assert psnr(pixels / scale, UPRIGHT) > 25
    height, width = samples.raster_of(UPRIGHT, orientation).shape[:2]
    assert (stored.frame.orientation, stored.frame.source_size) == (orientation, (width, height))
    assert (stored.frame.width, stored.frame.height) == (32, 16)
    with Image.open(io.BytesIO(stored.data)) as image:
        assert image.getexif().get(0x0112, 1) == 1
    if format != "TIFF of 16 bits":
        assert psnr(pixels, by_pillow(data, "RGB")) > 25
    if format in ("JPEG", "PNG") and orientation == 1:
        assert stored.data is data


@pytest.mark.parametrize(
    ("kind", "content", "told"),
    [
        (b"tEXt", b"Raw profile type exif\0\nexif\n 4\nno digits", "Raw profile type exif"),
        (b"zTXt", b"Raw profile type exif\0\0no stream", "Raw profile type exif"),
        (b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0no stream", "XML:com.adobe.xmp"),
    ],
)
def test_a_text_of_a_png_that_may_turn_it_and_cannot_be_read_is_told(kind: bytes, content: bytes, told: str) -> None:
    data = samples.png(UPRIGHT, 8, 2, before=samples.png_chunk(kind, content))
    stored = convert_image(data, ImagePolicy())
    assert stored.data is data
    ((code, message),) = stored.warnings
    assert code == "decoder_warning"
    assert repr(told) in message


@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize("format", FORMATS)
def test_with_ignore_the_raster_stays_as_it_lies_in_the_file(format: str, orientation: int) -> None:
    data = file_of(format, orientation)
    raster = samples.raster_of(UPRIGHT, orientation)
    stored = convert_image(data, ImagePolicy(orientation="ignore"))
    assert "rotated" not in stored.changed
    assert (stored.height, stored.width) == raster.shape[:2]
    assert stored.frame.orientation == 1
    pixels = pixels_of(stored)
    assert psnr(pixels / (257 if stored.dtype == "uint16" else 1), raster) > 25
    if format.startswith(("JPEG", "PNG")):
        assert stored.data is data


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_the_frame_takes_a_point_of_the_file_to_the_same_colour_in_the_stored_image(orientation: int) -> None:
    """The red quarter is found where the frame says that it went, through a turn, a crop and a change of size."""
    for options in ({}, {"resize": "16x16", "resize_mode": "crop"}, {"resize": "40x40", "resize_mode": "pad"}):
        stored = convert_image(file_of("PNG", orientation), ImagePolicy(image_format="raw", **options))
        raster, pixels = samples.raster_of(UPRIGHT, orientation), pixels_of(stored)
        for row in range(1, raster.shape[0], 3):
            for column in range(1, raster.shape[1], 3):
                x, y = stored.frame.place_point(column + 0.5, row + 0.5)
                if not (1 <= x < stored.width - 1 and 1 <= y < stored.height - 1):
                    continue
                around = raster[max(row - 3, 0) : row + 4, max(column - 3, 0) : column + 4].reshape(-1, 3)
                if (around == around[0]).all():
                    assert np.abs(pixels[int(y), int(x)].astype(int) - around[0]).max() <= 12


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_turns_are_those_of_exif(orientation: int) -> None:
    raster = samples.raster_of(UPRIGHT, orientation)
    assert np.array_equal(turn(raster, orientation), UPRIGHT)
    assert np.array_equal(turn(UPRIGHT, INVERSE[orientation]), raster)
    assert np.shares_memory(turn(raster, orientation), raster)


def test_turned_jpeg_are_encoded_at_the_quality_asked_for() -> None:
    data = file_of("JPEG", 6)
    sizes = [len(convert_image(data, ImagePolicy(quality=quality)).data) for quality in (10, 95)]
    assert sizes[0] < sizes[1]


# ---------------------------------------------------------------------------------------------------------------------
# Reading the orientation.


def block(order: str, entries: list[tuple[int, int, int, int]]) -> bytes:
    """EXIF data of (tag, type, count, value) entries."""
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IH", 8, len(entries))
    out = [head]
    for tag, kind, count, value in entries:
        content = struct.pack(order + {1: "B", 3: "H", 4: "I"}.get(kind, "I"), value).ljust(4, b"\0")
        out.append(struct.pack(order + "HHI", tag, kind, count) + content)
    return b"".join(out) + bytes(4)


@given(
    order=st.sampled_from("<>"),
    value=st.integers(0, 9),
    kind=st.sampled_from([3, 4]),
    before=st.lists(st.integers(0x100, 0x111), max_size=4),
    after=st.lists(st.integers(0x113, 0x200), max_size=4),
)
def test_the_orientation_is_the_one_that_pillow_reads(
    order: str, value: int, kind: int, before: list[int], after: list[int]
) -> None:
    entries = [(tag, 3, 1, 7) for tag in before] + [(0x0112, kind, 1, value)] + [(tag, 4, 1, 9) for tag in after]
    data = block(order, entries)
    pillow = Image.Exif()
    pillow.load(b"Exif\0\0" + data)
    assert exif_orientation(data) == (pillow[0x0112] if 1 <= pillow[0x0112] <= 8 else None)


@given(st.binary(max_size=80))
def test_any_exif_gives_an_orientation_or_says_that_it_is_damaged(tail: bytes) -> None:
    for data in (tail, b"II*\0" + tail, b"MM\0*\0\0\0\x08" + tail):
        try:
            orientation = exif_orientation(data)
        except ExifDamagedError:
            continue
        assert orientation is None or 1 <= orientation <= 8


def test_an_orientation_of_another_type_or_count_is_none() -> None:
    assert exif_orientation(block("<", [(0x0112, 2, 1, 6)])) is None
    assert exif_orientation(block("<", [(0x0112, 3, 2, 6)])) is None
    assert exif_orientation(block("<", [])) is None
    assert exif_orientation(block("<", [(0x0112, 1, 1, 6)])) == 6


def test_exif_wins_over_xmp() -> None:
    assert xmp_orientation(b'<a tiff:Orientation="0"/>') is None
    assert xmp_orientation(b"nothing") is None
    packet = b'http://ns.adobe.com/xap/1.0/\0<x tiff:Orientation="6"/>'
    plain = samples.save(UPRIGHT, "JPEG", exif=samples.exif(3))
    assert convert_image(samples.with_segment(plain, 0xE1, packet), ImagePolicy()).frame.orientation == 3


def test_a_second_exif_segment_has_no_effect() -> None:
    plain = samples.save(UPRIGHT, "JPEG", exif=samples.exif(3))
    data = samples.with_segment(plain, 0xE1, b"Exif\0\0" + exif_block(6))
    assert convert_image(data, ImagePolicy()).frame.orientation == 6
