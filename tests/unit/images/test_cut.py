"""Files that were cut and then ended by an end marker are refused as truncated, and no whole file is."""

from __future__ import annotations

import base64
import io
import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import convert_image
from beam_tfrecord.images.jpeg import read_header
from beam_tfrecord.images.jpeg_scans import is_one_whole_scan, missing_scans, read_scans
from beam_tfrecord.images.quick_look import size_beyond_doubt
from beam_tfrecord.options.config import ImagePolicy
from tests import image_samples as samples
from tests import odd_images
from tests.fuzz_images import END_OF_JPEG, closed_cuts
from tests.image_judge import by_tensorflow, code_of, warnings_of

KEEP = ImagePolicy()
HEADER = ImagePolicy(validate="header")
POLICIES = [KEEP, ImagePolicy(image_format="png"), ImagePolicy(resize=20), ImagePolicy(validate="strict")]

# "cjpeg -arithmetic -quality 30" of samples.gradient(32, 160, 1).
ARITHMETIC = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqm"
    "x5moq6T/yQALCACgACABAREA/8wABgAQEAX/2gAIAQEAAD8A/m+siK6HaWLFKzn7KbF9tRIEcbsbko9wq14+DwPxWJixiXoTwDshs44JUbR1DuMm"
    "GMQoxczJP/8ARGVWIhJIG6OUJ65pztWiGGU3qlF74JOQG4HZ+5gnfcZ5njPWmR2AnDNW7Qet1eTpD7FOxKKJ+pyCpTtYNpGvjPsMEdhBE9PAZ5yR"
    "AbpZ5pM85IgDOywPmeckP804jv2A/wBXhRJLzwSA/9k="
)


def noisy(width: int = 72, height: int = 56, channels: int = 3) -> samples.Array:
    """A picture with something in every block."""
    noise = np.random.default_rng(0).integers(-30, 30, (height, width, channels))
    return np.clip(samples.gradient(width, height, channels).astype(int) + noise, 0, 255).astype(np.uint8)


def jpeg(channels: int = 3, **options: Any) -> bytes:
    return samples.save(noisy(channels=channels), "JPEG", quality=60, **options)


def taller(data: bytes, height: int) -> bytes:
    """The JPEG with a header that promises another height."""
    frame = next(re.finditer(rb"\xff[\xc0\xc1\xc2\xc9]\0", data)).start()
    return data[: frame + 5] + height.to_bytes(2, "big") + data[frame + 7 :]


def scan_starts(data: bytes) -> list[int]:
    return [match.start() for match in re.finditer(rb"\xff\xda", data)]


KINDS: dict[str, bytes] = {
    "4:2:0": jpeg(subsampling=2),
    "4:4:4": jpeg(subsampling=0),
    "4:2:2, optimised": jpeg(subsampling=1, optimize=True),
    "grey": jpeg(channels=1),
    "cmyk": samples.save(Image.fromarray(noisy()).convert("CMYK"), "JPEG"),
    "restarts": jpeg(restart_marker_blocks=3),
    "restarts of rows": jpeg(restart_marker_rows=1),
    "progressive": jpeg(progressive=True),
    "progressive grey": jpeg(channels=1, progressive=True),
    "progressive, 4:4:4": jpeg(progressive=True, subsampling=0),
    "progressive with restarts": jpeg(progressive=True, restart_marker_blocks=3),
    "a scan for each component": odd_images.jpeg_of_scans((0, 1, 2), 64),
    "rare sampling": odd_images.sampled_jpeg((0x31, 0x11, 0x11), 64),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_jpeg_cut_anywhere_and_ended_by_an_end_marker_is_truncated(name: str) -> None:
    for cut in closed_cuts(KINDS[name], step=37):
        for policy in POLICIES[:3]:
            assert code_of(cut, policy) == "truncated_image"
        assert size_beyond_doubt(cut, 10**6) is None


@pytest.mark.parametrize("name", [name for name in KINDS if "progressive" in name or "each" in name])
def test_a_jpeg_cut_before_its_last_scan_is_truncated_by_its_header_alone(name: str) -> None:
    data = KINDS[name]
    assert len(scan_starts(data)) > 2
    for start in scan_starts(data)[1:]:
        assert code_of(data[:start] + END_OF_JPEG, HEADER) == "truncated_image"


def test_a_progressive_jpeg_that_lacks_any_one_scan_is_truncated() -> None:
    data = KINDS["progressive"]
    starts = [*scan_starts(data), len(data) - 2]
    ends = [
        data.rindex(b"\xff\xc4", start, end) if b"\xff\xc4" in data[start:end] else end
        for start, end in itertools.pairwise(starts)
    ]
    for start, end in zip(starts, ends, strict=False):
        assert code_of(data[:start] + data[end:]) in ("truncated_image", "corrupt_image")


@pytest.mark.parametrize("name", [name for name in KINDS if "restarts" in name])
def test_a_jpeg_that_lacks_restart_intervals_is_truncated_by_its_header_alone(name: str) -> None:
    data = KINDS[name]
    restarts = [match.start() for match in re.finditer(rb"\xff[\xd0-\xd7]", data)]
    assert len(restarts) > 2
    for start in restarts:
        for length in (start, start + 1):
            assert code_of(data[:length] + END_OF_JPEG, HEADER) == "truncated_image"
    for start, end in itertools.pairwise(restarts):
        assert code_of(data[:start] + data[end:]) == "truncated_image"


@pytest.mark.parametrize("name", KINDS)
def test_a_header_that_promises_more_rows_than_there_are_is_truncated(name: str) -> None:
    for height in (128, 700):
        for policy in POLICIES:
            assert code_of(taller(KINDS[name], height), policy) == "truncated_image"
        if "restarts" in name:
            assert code_of(taller(KINDS[name], height), HEADER) == "truncated_image"


def test_a_cut_that_comes_after_another_remark_of_the_decoder_is_truncated() -> None:
    """libjpeg tells only the first thing that it has to remark; this one is about the header."""
    for data in (jpeg(), jpeg(progressive=True), jpeg(restart_marker_blocks=3)):
        odd = data.replace(b"\xff\xdb", b"more\xff\xdb", 1)
        assert warnings_of(convert_image(odd, KEEP)) == ["decoder_warning"]
        for cut in (odd[: len(odd) * 2 // 3], odd[:-9], odd[:-3]):
            assert code_of(cut + END_OF_JPEG) == "truncated_image"


def test_arithmetic_coding_that_was_cut_is_truncated() -> None:
    whole = convert_image(ARITHMETIC, KEEP)
    assert (whole.height, whole.width, whole.changed) == (160, 32, ("transcoded",))
    for part in (0.5, 0.6, 0.7):
        assert code_of(ARITHMETIC[: int(len(ARITHMETIC) * part)] + END_OF_JPEG) == "truncated_image"


def test_what_a_jpeg_that_was_cut_lacks_is_told_by_component() -> None:
    data = KINDS["progressive"]
    first = data[: scan_starts(data)[1]] + END_OF_JPEG
    header = read_header(first)
    told = missing_scans(read_scans(first, header), header)
    assert told == "components 1 and 2 and 3 lack its last bits or frequencies"


# ---------------------------------------------------------------------------------------------------------------------
# Whole files: what encoders write under all their options is kept by every policy.


def whole_jpegs() -> Iterator[bytes]:
    import tensorflow as tf

    for size, channels, progressive, optimize, quality in itertools.product(
        ((1, 1), (7, 9), (72, 56)), (1, 3), (False, True), (False, True), (5, 75, 100)
    ):
        pixels = noisy(*size, channels)
        for more in ({}, {"restart_marker_blocks": 1}, {"restart_marker_rows": 2}):
            yield samples.save(pixels, "JPEG", progressive=progressive, optimize=optimize, quality=quality, **more)
        for subsampling in (0, 1, 2) if channels == 3 else ():
            yield samples.save(pixels, "JPEG", progressive=progressive, quality=quality, subsampling=subsampling)
        for downsampled in (False, True):
            options = {"progressive": progressive, "optimize_size": optimize, "chroma_downsampling": downsampled}
            yield tf.io.encode_jpeg(pixels, quality=quality, **options).numpy()
        colorspace = "GRAY" if channels == 1 else "RGB"
        for sampling in ("444", "422", "420", "440", "411") if channels == 3 else ("Gray",):
            yield bytes(simplejpeg.encode_jpeg(pixels, quality, colorspace, sampling))


@pytest.mark.parametrize("policy", [KEEP, HEADER, ImagePolicy(validate="strict")], ids=["full", "header", "strict"])
def test_whatever_encoders_write_is_kept_without_a_remark(policy: ImagePolicy) -> None:
    for number, data in enumerate(whole_jpegs()):
        stored = convert_image(data, policy)
        assert stored.data is data, number
        assert stored.warnings == ()


def test_flat_pictures_of_few_bytes_are_whole() -> None:
    """A scan may have next to no data where nothing changes."""
    for progressive, value in itertools.product((False, True), (0, 128, 255)):
        flat = np.full((300, 400, 3), value, np.uint8)
        data = samples.save(flat, "JPEG", progressive=progressive, optimize=True, restart_marker_rows=int(value == 128))
        assert convert_image(data, KEEP).data is data
        assert convert_image(data, HEADER).data is data


# ---------------------------------------------------------------------------------------------------------------------
# Other formats.


@pytest.mark.parametrize("interlaced", [False, True])
def test_a_png_of_too_little_pixel_data_is_truncated_whatever_its_chunks_say(interlaced: bool) -> None:
    data = samples.png(noisy(), 8, 2, interlaced=interlaced)
    body = data[41:-16]
    for length in range(0, len(body) - 12, 211):
        cut = data[:33] + samples.png_chunk(b"IDAT", body[:length]) + samples.PNG_END
        assert code_of(cut) == "truncated_image"


# ---------------------------------------------------------------------------------------------------------------------
# Two pictures in one file.


@pytest.mark.parametrize("policy", [KEEP, HEADER], ids=["full", "header"])
@pytest.mark.parametrize("first", ["JPEG", "PNG"])
@pytest.mark.parametrize("second", ["JPEG", "PNG", "GIF", "WEBP", "TIFF"])
def test_another_picture_behind_the_end_is_told_and_the_first_is_stored(
    first: str, second: str, policy: ImagePolicy
) -> None:
    data = samples.save(noisy(), first) + samples.save(noisy(40, 24), second)
    stored = convert_image(data, policy)
    assert (stored.height, stored.width) == by_tensorflow(data).shape[:2] == (56, 72)
    assert warnings_of(stored) == ["trailing_data"]
    assert "another picture" in stored.warnings[0][1]
    assert size_beyond_doubt(data, 10**6) is None


def test_a_preview_inside_of_a_jpeg_is_not_another_picture() -> None:
    preview = samples.save(noisy(16, 16), "JPEG")
    data = samples.with_segment(jpeg(), 0xE1, b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0" + preview)
    stored = convert_image(data, KEEP)
    assert stored.data is data
    assert stored.warnings == ()
    assert Image.open(io.BytesIO(data)).size == (72, 56)


@pytest.mark.parametrize("format", ["GIF", "WEBP", "BMP", "AVIF"])
@pytest.mark.parametrize("second", ["PNG", "JPEG", "same"])
def test_another_picture_behind_one_that_is_encoded_anew_is_told(format: str, second: str) -> None:
    picture = Image.fromarray(noisy()).quantize(16) if format == "GIF" else noisy()
    whole = samples.save(picture, format)
    assert convert_image(whole, KEEP).warnings == ()
    assert convert_image(whole + bytes(2), KEEP).warnings == ()
    stored = convert_image(whole + (whole if second == "same" else samples.save(noisy(9, 9), second)), KEEP)
    assert (stored.height, stored.width) == (56, 72)
    assert warnings_of(stored) == ["trailing_data"]
    assert "another picture" in stored.warnings[0][1]


@pytest.mark.parametrize("format", ["WEBP", "AVIF", "QOI", "BMP", "GIF", "TIFF", "PPM"])
def test_a_file_of_another_format_that_was_cut_is_truncated(format: str) -> None:
    whole = samples.save(noisy(), format)
    for part in (0.3, 0.6, 0.9):
        assert code_of(whole[: int(len(whole) * part)]) == "truncated_image"


@pytest.mark.parametrize(
    ("head", "told"),
    [
        (b"FUJIFILMCCD-RAW 0201", "a camera raw file"),
        (b"IIU\0\x18\0\0\0", "a camera raw file"),
        (b"\0\0\0\x18ftypcrx \0\0\0\1crx isom", "a camera raw file"),
        (b"\0\0\0\x14ftypjxl \0\0\0\0jxl ", "JPEG XL"),
        (b"BPG\xfb", "BPG"),
    ],
)
def test_what_no_decoder_takes_is_called_what_it_is(head: bytes, told: str) -> None:
    with pytest.raises(ImageError) as caught:
        convert_image(head + bytes(300), KEEP)
    assert caught.value.code == "unsupported_format"
    assert told in caught.value.message
    assert "JPEG" in caught.value.message


@pytest.mark.parametrize("count", [100, 40_000, 40_001, 70_000])
def test_the_first_end_marker_tells_whether_more_follows(count: int) -> None:
    """Wherever it stands, in short files and in long ones."""
    plain = samples.save(samples.gradient(64, 64), "JPEG")
    header = read_header(plain)
    body = header.scan + 14
    for place in {*range(body, body + 5), *range(body + count - 4, body + count + 1), body + count // 2}:
        for end in (b"", b"\xff\xd9"):
            filled = bytearray(plain[:body] + bytes(count) + b"\xff\xd9")
            filled[place : place + 2] = b"\xff\xd9"
            data = bytes(filled) + end
            assert is_one_whole_scan(data, header) == (data.find(b"\xff\xd9", body) == len(data) - 2)
