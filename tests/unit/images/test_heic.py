"""HEIC, where pillow-heif is installed, is handled as AVIF is."""

from __future__ import annotations

import io

import pytest

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import convert_image, sniff
from beam_tfrecord.options.config import ImagePolicy
from tests import image_kinds as kinds
from tests import image_samples as samples
from tests.image_judge import by_pillow, pixels_of, psnr

pytestmark = pytest.mark.usefixtures("heif")


def test_an_opaque_heic_becomes_jpeg_and_one_with_alpha_png() -> None:
    opaque, transparent = samples.save(kinds.rgb(), "HEIF"), samples.save(kinds.rgba(), "HEIF")
    assert sniff(opaque) == "heic"
    stored = convert_image(opaque, ImagePolicy())
    assert (stored.format, stored.channels, stored.changed) == ("jpeg", 3, ("transcoded",))
    assert psnr(pixels_of(stored), by_pillow(opaque, "RGB")) > 33
    stored = convert_image(transparent, ImagePolicy())
    assert (stored.format, stored.channels) == ("png", 4)
    assert (pixels_of(stored) == by_pillow(transparent, "RGBA")).all()


def test_a_turned_heic_comes_upright_once() -> None:
    """The decoder turns it, and says so by an orientation of 1."""
    upright = samples.blocks(32, 16)
    data = samples.save(samples.raster_of(upright, 6), "HEIF", exif=samples.exif(6), quality=95)
    stored = convert_image(data, ImagePolicy())
    assert psnr(pixels_of(stored), by_pillow(data, "RGB")) > 30


def test_a_heic_of_more_than_8_bits_says_that_its_depth_was_scaled() -> None:
    pillow_heif = pytest.importorskip("pillow_heif")
    deep = (samples.gradient(64, 48).astype("<u2") * 257).tobytes()
    data = io.BytesIO()
    pillow_heif.from_bytes(mode="RGB;16", size=(64, 48), data=deep).save(data)
    assert convert_image(data.getvalue(), ImagePolicy()).changed == ("depth_scaled", "transcoded")
    assert convert_image(samples.save(kinds.rgb(), "HEIF"), ImagePolicy()).changed == ("transcoded",)


def test_a_cut_heic_is_a_reject() -> None:
    data = samples.save(kinds.rgb(), "HEIF")
    for length in (20, 60, len(data) // 2, len(data) - 20):
        with pytest.raises(ImageError) as caught:
            convert_image(data[:length], ImagePolicy())
        assert caught.value.code in ("truncated_image", "corrupt_image")


def test_max_pixels_holds() -> None:
    with pytest.raises(ImageError) as caught:
        convert_image(samples.save(kinds.rgb(), "HEIF"), ImagePolicy(max_pixels=100))
    assert caught.value.code == "too_many_pixels"
