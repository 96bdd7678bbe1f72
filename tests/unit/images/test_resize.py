"""Resizing: sizes, quality, and frames that say exactly what happened."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import convert_image
from beam_tfrecord.images.resize import is_unchanged, plan_frame
from beam_tfrecord.options.config import ImagePolicy
from tests import image_samples as samples
from tests.image_judge import by_pillow, pixels_of, psnr


def size_for(width: int, height: int, **options: Any) -> tuple[int, int]:
    frame = plan_frame(width, height, 1, ImagePolicy(**options))
    return frame.width, frame.height


@pytest.mark.parametrize(
    ("options", "wide", "tall", "small"),
    [
        ({"resize": 100}, (200, 100), (100, 150), (40, 30)),
        ({"resize": 100, "resize_mode": "longest"}, (100, 50), (67, 100), (40, 30)),
        ({"resize": "100x80"}, (100, 80), (100, 80), (40, 30)),
        ({"resize": "100x80", "resize_mode": "shortest"}, (160, 80), (100, 150), (40, 30)),
        ({"resize": "100x80", "resize_mode": "longest"}, (100, 50), (53, 80), (40, 30)),
        ({"resize": 100, "resize_mode": "exact"}, (100, 100), (100, 100), (40, 30)),
        ({"resize": "100x80", "resize_mode": "crop"}, (100, 80), (100, 80), (40, 30)),
        ({"resize": "100x80", "resize_mode": "pad"}, (100, 80), (100, 80), (100, 80)),
        ({"resize": 100, "enlarge": True}, (200, 100), (100, 150), (133, 100)),
        ({"resize": "100x80", "enlarge": True}, (100, 80), (100, 80), (100, 80)),
        ({"resize": "100x80", "enlarge": True, "resize_mode": "crop"}, (100, 80), (100, 80), (100, 80)),
        ({"resize": "100x80", "enlarge": True, "resize_mode": "longest"}, (100, 50), (53, 80), (100, 75)),
    ],
)
def test_sizes(options: dict[str, Any], wide: tuple[int, int], tall: tuple[int, int], small: tuple[int, int]) -> None:
    assert size_for(400, 200, **options) == wide
    assert size_for(200, 300, **options) == tall
    assert size_for(40, 30, **options) == small


MODES = ("shortest", "longest", "exact", "crop", "pad")


@given(
    width=st.integers(1, 5000),
    height=st.integers(1, 5000),
    side_x=st.integers(1, 600),
    side_y=st.integers(1, 600),
    mode=st.sampled_from(MODES),
    enlarge=st.booleans(),
    orientation=st.integers(1, 8),
)
def test_frames_are_consistent(
    width: int, height: int, side_x: int, side_y: int, mode: str, enlarge: bool, orientation: int
) -> None:
    policy = ImagePolicy(resize=(side_x, side_y), resize_mode=mode, enlarge=enlarge)
    frame = plan_frame(width, height, orientation, policy)
    upright_x, upright_y = frame.upright_size
    assert frame.source_size == (width, height)
    assert frame.orientation == orientation
    assert frame.width >= 1
    assert frame.height >= 1
    left, top = frame.place_point(0, 0, is_upright=True)
    right, bottom = frame.place_point(upright_x, upright_y, is_upright=True)
    if not enlarge:
        assert frame.scale_x <= 1 + 1e-9 or frame.width == 1
        assert frame.scale_y <= 1 + 1e-9 or frame.height == 1
        assert mode == "pad" or (frame.width <= upright_x and frame.height <= upright_y)
    if mode == "pad":
        assert (frame.width, frame.height) == (side_x, side_y)
        assert min(left, top) >= 0
        assert right <= side_x + 1e-6
        assert bottom <= side_y + 1e-6
        assert abs(left - (side_x - right)) <= 1
    elif mode == "crop":
        assert frame.width <= side_x
        assert frame.height <= side_y
        assert max(left, top) <= 1e-9
        assert right >= frame.width - 1e-6
        assert bottom >= frame.height - 1e-6
        assert abs(-left - (right - frame.width)) <= 1 + 1e-6
    else:
        assert (left, top) == (0, 0)
        assert math.isclose(right, frame.width)
        assert math.isclose(bottom, frame.height)
    if mode in ("longest", "exact"):
        assert frame.width <= side_x
        assert frame.height <= side_y


def test_an_image_that_has_the_size_already_is_kept() -> None:
    data = samples.save(samples.gradient(64, 48), "JPEG")
    for options in (
        {"resize": 48},
        {"resize": 64, "resize_mode": "longest"},
        {"resize": "64x48"},
        {"resize": "64x48", "resize_mode": "crop"},
        {"resize": "64x48", "resize_mode": "pad"},
        {"resize": 100},
        {"resize": "100x100", "resize_mode": "crop"},
    ):
        assert convert_image(data, ImagePolicy(**options)).data is data
    assert is_unchanged(plan_frame(64, 48, 1, ImagePolicy()))
    assert not is_unchanged(plan_frame(64, 48, 2, ImagePolicy()))


def detailed(width: int, height: int) -> samples.Array:
    """A picture with edges at many angles, soft shades and fine texture, as a photograph has them."""
    y, x = np.mgrid[0:height, 0:width]
    shade = 110 + 70 * np.sin(x / 37) * np.cos(y / 53)
    rings = 45 * np.sign(np.sin(np.hypot(x - width / 3, y - height / 2) / 11))
    grain = np.random.default_rng(5).normal(0, 6, (height, width))
    planes = [shade + rings * (1 - 0.3 * c) + grain + 12 * c for c in range(3)]
    return np.clip(np.stack(planes, axis=2), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("orientation", [1, 3, 6])
@pytest.mark.parametrize("options", [{"resize": 60}, {"resize": 113}, {"resize": 224}, {"resize": "150x97"}])
def test_scaled_decoding_of_jpeg_is_as_good_as_lanczos_from_all_pixels(
    options: dict[str, Any], orientation: int
) -> None:
    upright = detailed(701, 463)
    raster = samples.raster_of(upright, orientation)
    data = samples.save(raster, "JPEG", quality=90, exif=samples.exif(orientation))
    stored = convert_image(data, ImagePolicy(image_format="raw", **options))
    decoded = Image.fromarray(by_pillow(data, "RGB"))
    reference = np.asarray(decoded.resize((stored.width, stored.height), Image.Resampling.LANCZOS))
    assert psnr(pixels_of(stored), reference) >= 44


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_other_formats_are_exactly_lanczos(mode: str, channels: int) -> None:
    pixels = samples.gradient(90, 60, channels)
    data = samples.save(pixels, "PNG")
    stored = convert_image(data, ImagePolicy(resize="40x30", resize_mode=mode, background="black"))
    assert stored.changed == ("resized",)
    frame = stored.frame
    image = samples.as_image(pixels)
    if mode == "crop":  # 60 rows make 30, 80 of 90 columns make 40
        box = (-frame.offset_x / frame.scale_x, 0, (40 - frame.offset_x) / frame.scale_x, 60)
        assert box[0] == pytest.approx(5)
        expected = np.asarray(image.resize((40, 30), Image.Resampling.LANCZOS, box=box))
    elif mode == "pad":  # 40x27 in the middle of 40x30
        expected = np.zeros((30, 40, channels), np.uint8)
        if channels in (2, 4):
            expected[:, :, -1] = 255
        expected[1:28] = np.asarray(image.resize((40, 27), Image.Resampling.LANCZOS)).reshape(27, 40, channels)
    else:
        expected = np.asarray(image.resize((stored.width, stored.height), Image.Resampling.LANCZOS))
    assert np.array_equal(pixels_of(stored), expected.reshape(stored.height, stored.width, channels))


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_16_bit_pixels_are_resampled_as_finely_as_they_are(channels: int) -> None:
    deep = samples.gradient(90, 60, channels, "uint16")
    colour_type = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    policy = ImagePolicy(resize=30, image_format="raw")
    stored = convert_image(samples.png(deep, 16, colour_type), policy)
    assert stored.dtype == "uint16"
    coarse = convert_image(samples.png((deep // 257).astype(np.uint8), 8, colour_type), policy)
    pixels = pixels_of(stored)
    visible = pixels[:, :, -1:] > 30_000 if channels in (2, 4) else np.ones_like(pixels, bool)
    difference = np.abs(pixels / 257 - pixels_of(coarse)) * visible
    assert difference.max() < 5
    assert len(np.unique(pixels)) > len(np.unique(pixels_of(coarse)))


def test_invisible_colours_do_not_bleed() -> None:
    """A white square on fully transparent red: no red at its edge."""
    for dtype in ("uint8", "uint16"):
        top = np.iinfo(dtype).max
        pixels = np.zeros((64, 64, 4), dtype)
        pixels[:, :, 0] = top
        pixels[16:48, 16:48] = top
        data = samples.png(pixels, np.dtype(dtype).itemsize * 8, 6)
        result = pixels_of(convert_image(data, ImagePolicy(resize=21)))
        seen = result[result[:, :, 3] > top // 50]
        assert seen[:, 1].min() > 0.97 * top


def test_16_bit_padding_is_the_background_in_16_bits() -> None:
    data = samples.png(samples.gradient(30, 10, 3, "uint16"), 16, 2)
    stored = convert_image(data, ImagePolicy(resize="20x20", resize_mode="pad", background="#ff8000"))
    assert pixels_of(stored)[0, 0].tolist() == [65535, 128 * 257, 0]


def test_enlarging_is_lanczos_too() -> None:
    pixels = samples.gradient(20, 10)
    stored = convert_image(samples.save(pixels, "PNG"), ImagePolicy(resize=40, enlarge=True))
    expected = samples.as_image(pixels).resize((80, 40), Image.Resampling.LANCZOS)
    assert np.array_equal(pixels_of(stored), np.asarray(expected))


def test_a_jpeg_is_not_enlarged_by_its_decoder() -> None:
    pixels = detailed(100, 80)
    data = samples.save(pixels, "JPEG", quality=95, subsampling=0)
    for side in (79, 60, 200):
        stored = convert_image(data, ImagePolicy(resize=side, enlarge=True, image_format="raw"))
        decoded = Image.fromarray(by_pillow(data, "RGB"))
        reference = np.asarray(decoded.resize((stored.width, stored.height), Image.Resampling.LANCZOS))
        assert psnr(pixels_of(stored), reference) > 44


def test_an_enormous_result_is_refused_before_it_is_made() -> None:
    data = samples.save(samples.gradient(4, 4), "PNG")
    with pytest.raises(ImageError) as caught:
        convert_image(data, ImagePolicy(resize=50_000, enlarge=True))
    assert caught.value.code == "too_many_pixels"


@pytest.mark.parametrize(("width", "height"), list(itertools.product((1, 2, 3, 65, 1000), repeat=2)))
def test_extreme_shapes_become_images_of_at_least_one_pixel(width: int, height: int) -> None:
    pixels = np.full((height, width, 3), 77, np.uint8)
    for data in (samples.save(pixels, "PNG"), samples.save(pixels, "JPEG")):
        for mode in MODES:
            stored = convert_image(data, ImagePolicy(resize="5x4", resize_mode=mode, background=(77, 77, 77)))
            assert np.abs(pixels_of(stored).astype(int) - 77).max() <= 1
