"""TIFF of every kind of sample is stored with the right pixels, or refused with the true reason."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import convert_frames, convert_image
from beam_tfrecord.options.config import ImagePolicy
from tests import image_samples as samples
from tests.image_judge import pixels_of

KEEP = ImagePolicy()
RAMP = np.arange(24 * 32).reshape(24, 32, 1)


def message_of(data: bytes) -> str:
    with pytest.raises(ImageError) as caught:
        convert_image(data, KEEP)
    assert caught.value.code == "unsupported_format"
    return caught.value.message


def stored_pixels(data: bytes) -> Any:
    return pixels_of(convert_image(data, KEEP))


def packed(bits: int, **options: Any) -> tuple[bytes, Any]:
    """A grey TIFF of 1, 2 or 4 bits a sample, and its values."""
    values = (RAMP % (1 << bits)).astype(np.uint8)
    rows = np.frombuffer(b"".join(samples.packed_rows(values, bits)), np.uint8).reshape(24, -1, 1)
    return samples.tiff(rows, tags={256: ("I", [32]), 258: ("H", [bits])}, **options), values


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("white_is_zero", [False, True])
@pytest.mark.parametrize("compression", [1, 8])
class TestGrey:
    def test_unsigned_samples(self, order: str, white_is_zero: bool, compression: int) -> None:
        for dtype, top in (("uint8", 255), ("uint16", 65535)):
            values = (RAMP * 85 % (top + 1)).astype(dtype)
            data = samples.tiff(values, order=order, photometric=int(not white_is_zero), compression=compression)
            assert np.array_equal(stored_pixels(data), top - values if white_is_zero else values)

    def test_few_bits(self, order: str, white_is_zero: bool, compression: int) -> None:
        for bits in (1, 2, 4):
            data, values = packed(bits, order=order, photometric=int(not white_is_zero), compression=compression)
            scaled = values.astype(int) * 255 // ((1 << bits) - 1)
            assert np.array_equal(stored_pixels(data), 255 - scaled if white_is_zero else scaled)

    def test_floating_point(self, order: str, white_is_zero: bool, compression: int) -> None:
        values = (RAMP / 767).astype(np.float32)
        data = samples.tiff(values, order=order, photometric=int(not white_is_zero), compression=compression)
        expected = np.rint((1 - values.astype(float) if white_is_zero else values) * 65535)
        assert np.abs(stored_pixels(data).astype(float) - expected).max() <= 1

    def test_signed_samples_and_32_bits(self, order: str, white_is_zero: bool, compression: int) -> None:
        for dtype, top in (("int8", 127), ("int16", 32767), ("int32", 65535), ("uint32", 65535)):
            values = (RAMP * 85 % (top + 1)).astype(dtype)
            data = samples.tiff(values, order=order, photometric=int(not white_is_zero), compression=compression)
            if white_is_zero:
                assert "white is zero" in message_of(data)
            else:
                assert np.array_equal(stored_pixels(data), values)

    def test_values_that_have_no_scale_are_told_as_they_are(
        self, order: str, white_is_zero: bool, compression: int
    ) -> None:
        for dtype, shift in (
            ("int8", -100),
            ("int16", -300),
            ("int32", -300),
            ("int32", 10**6),
            ("uint32", 2**32 - 768),
        ):
            values = (RAMP.astype(np.int64) % 200 + shift).astype(dtype)
            data = samples.tiff(values, order=order, photometric=int(not white_is_zero), compression=compression)
            told = message_of(data)
            assert "white is zero" in told if white_is_zero else f"from {values.min()} to {values.max()}" in told


def test_each_page_has_its_own_kind_of_sample() -> None:
    pages = samples.tiff((RAMP % 100).astype(np.int16), order=">", pages=3)
    frames = convert_frames(pages, ImagePolicy(animated="sequence"))
    assert len(frames) == 3
    for frame in frames:
        assert np.array_equal(pixels_of(frame), RAMP % 100)


def test_a_big_tiff_of_signed_samples_is_read() -> None:
    out = io.BytesIO()
    Image.fromarray((RAMP[:, :, 0] * 80).astype(np.int32)).save(out, "TIFF", big_tiff=True)
    assert np.array_equal(stored_pixels(out.getvalue())[:, :, 0], RAMP[:, :, 0] * 80)


RGB = samples.gradient(32, 24)
FOUR = np.concatenate([RGB, RGB[:, :, :1]], axis=2)
REFUSED: dict[str, tuple[bytes, str]] = {
    "planes and a further sample": (samples.tiff(FOUR, planar=True, photometric=2, extra=(0,)), "in planes"),
    "planes and premultiplied alpha": (samples.tiff(FOUR, planar=True, photometric=2, extra=(1,)), "in planes"),
    "grey and alpha in planes": (samples.tiff(RGB[:, :, :2], planar=True, photometric=1, extra=(2,)), "in planes"),
    "16 bits in planes": (samples.tiff(samples.gradient(32, 24, 3, "uint16"), planar=True), "in planes"),
    "YCbCr": (samples.tiff(RGB, photometric=6), "YCbCr"),
    "RGB of floating point": (samples.tiff(RGB.astype(np.float32)), "32 bits each (floating point)"),
    "RGB with signs": (samples.tiff(RGB.astype(np.int16)), "with a sign"),
    "64 bits": (samples.tiff(RAMP.astype(np.float64)), "64 bits"),
    "a mosaic": (samples.tiff(RGB[:, :, :1], photometric=32803), "colour filter array"),
    "JPEG 2000 inside": (samples.tiff(RGB, tags={259: ("H", [33005])}), "compression 33005"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_kind_that_is_not_decoded_is_refused_with_the_true_reason(name: str) -> None:
    data, told = REFUSED[name]
    message = message_of(data)
    assert told in message
    assert "save it" in message


def test_what_is_not_an_error_of_python_is_told() -> None:
    for data in (samples.tiff(RGB)[:900], samples.tiff(RGB[:, :, :1], photometric=3)):
        with pytest.raises(ImageError) as caught:
            convert_image(data, KEEP)
        assert "index" not in caught.value.message
        assert "unpack" not in caught.value.message
        assert caught.value.message.count(" ") > 8
