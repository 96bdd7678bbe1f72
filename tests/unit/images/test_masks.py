"""Masks keep their values, and move exactly as their image does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from beam_tfrecord.core.geometry import PixelFrame
from beam_tfrecord.errors import AnnotationError, ElementError, ImageError
from beam_tfrecord.images import convert_image, convert_mask, encode_mask, place_mask, read_mask
from beam_tfrecord.images.resize import plan_frame
from beam_tfrecord.options.config import ImagePolicy
from tests import image_samples as samples
from tests.image_judge import by_tensorflow, pixels_of

VALUES = np.random.default_rng(3).integers(0, 16, (17, 23, 1), dtype=np.uint8)
PALETTE = bytes(np.random.default_rng(4).integers(0, 256, 48, dtype=np.uint8))
STILL = PixelFrame(23, 17, 23, 17)


def code_of(call: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(ElementError) as caught:
        call(*arguments, **options)
    return caught.value.code


def indexed() -> Image.Image:
    image = Image.fromarray(VALUES[:, :, 0])
    image.putpalette(PALETTE)
    return image


MASKS = {
    "palette": (samples.png(VALUES, 8, 3, palette=PALETTE), VALUES),
    "palette of 4 bits": (samples.png(VALUES, 4, 3, palette=PALETTE), VALUES),
    "palette of 2 bits": (samples.png(VALUES & 3, 2, 3, palette=PALETTE[:12]), VALUES & 3),
    "palette of 1 bit": (samples.png(VALUES & 1, 1, 3, palette=PALETTE[:6]), VALUES & 1),
    "palette with transparency": (samples.png(VALUES, 8, 3, palette=PALETTE, transparency=b"\0\1"), VALUES),
    "interlaced palette": (samples.png(VALUES, 4, 3, palette=PALETTE, interlaced=True), VALUES),
    "indices behind the palette": (samples.png(VALUES, 8, 3, palette=PALETTE[:6]), VALUES),
    "grey": (samples.png(VALUES, 8, 0), VALUES),
    "grey of 4 bits": (samples.png(VALUES, 4, 0), VALUES),
    "grey of 2 bits": (samples.png(VALUES & 3, 2, 0), VALUES & 3),
    "grey of 1 bit": (samples.png(VALUES & 1, 1, 0), VALUES & 1),
    "grey with a transparent value": (samples.png(VALUES, 8, 0, transparency=b"\0\0"), VALUES),
    "grey and alpha": (samples.png(np.concatenate([VALUES, VALUES], axis=2), 8, 4), VALUES),
    "equal channels": (samples.png(np.repeat(VALUES, 3, axis=2), 8, 2), VALUES),
    "16 bits": (samples.png(VALUES.astype(np.uint16) * 4000, 16, 0), VALUES.astype(np.uint16) * 4000),
    "bmp with palette": (samples.save(indexed(), "BMP"), VALUES),
    "gif": (samples.save(indexed(), "GIF", optimize=False), VALUES),
    "tiff": (samples.tiff(VALUES), VALUES),
    "tiff of 16 bits": (samples.tiff(VALUES.astype(np.uint16) * 4000), VALUES.astype(np.uint16) * 4000),
    "tiff with palette": (samples.save(indexed(), "TIFF"), VALUES),
    "tiff of 1 bit": (samples.save(Image.fromarray(VALUES[:, :, 0] > 7), "TIFF"), VALUES > 7),
}


@pytest.mark.parametrize("name", MASKS)
def test_values_are_kept_as_they_lie_in_the_file(name: str) -> None:
    data, expected = MASKS[name]
    mask = read_mask(data)
    assert mask.dtype == (np.uint16 if "16 bits" in name else np.uint8)
    assert np.array_equal(mask, expected[:, :, 0])
    stored = convert_mask(data, STILL)
    decoded = by_tensorflow(stored, str(mask.dtype))
    assert decoded.shape == (17, 23, 1)
    assert np.array_equal(decoded, expected)


def test_masks_that_hold_no_ids_are_refused_with_a_cure() -> None:
    colours = samples.gradient(23, 17)
    assert code_of(read_mask, samples.png(colours, 8, 2)) == "bad_mask"
    assert code_of(read_mask, samples.save(colours, "JPEG")) == "bad_mask"
    assert code_of(read_mask, samples.save(colours[:, :, :1], "WEBP")) == "bad_mask"
    assert code_of(read_mask, samples.save(colours, "TIFF", compression="jpeg")) == "bad_mask"
    with pytest.raises(AnnotationError, match="save masks as PNG"):
        read_mask(samples.save(colours, "JPEG"))


def test_damaged_masks_have_the_codes_of_images() -> None:
    data = MASKS["palette"][0]
    assert code_of(read_mask, b"") == "empty_file"
    assert code_of(read_mask, b"<html>") == "not_an_image"
    assert code_of(read_mask, data[:-30]) == "truncated_image"
    assert code_of(read_mask, data[:60] + b"?" + data[61:]) == "corrupt_image"
    assert code_of(read_mask, data, 100) == "too_many_pixels"
    with pytest.raises(ImageError):
        convert_mask(data[:-30], STILL)


def test_a_mask_of_another_size_than_its_image_is_refused() -> None:
    mask = VALUES[:, :, 0]
    assert code_of(place_mask, mask, PixelFrame(22, 17, 22, 17)) == "bad_mask"
    turned = PixelFrame(17, 23, 23, 17, 6)
    assert code_of(place_mask, mask, turned) == "bad_mask"
    assert np.array_equal(place_mask(mask, turned, is_upright=True), mask)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_mask_is_turned_with_its_image(orientation: int) -> None:
    raster = samples.raster_of(VALUES, orientation)
    data = samples.png(raster, 8, 3, palette=PALETTE)
    frame = plan_frame(raster.shape[1], raster.shape[0], orientation, ImagePolicy())
    assert np.array_equal(by_tensorflow(convert_mask(data, frame)), VALUES)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_mask_of_the_turned_picture_is_turned_back_where_the_turn_is_ignored(orientation: int) -> None:
    raster = samples.raster_of(VALUES, orientation)[:, :, 0]
    frame = plan_frame(raster.shape[1], raster.shape[0], orientation, ImagePolicy(orientation="ignore"))
    assert np.array_equal(place_mask(VALUES[:, :, 0], frame, is_upright=True), raster)
    assert np.array_equal(place_mask(raster, frame), raster)


@given(
    width=st.integers(1, 40),
    height=st.integers(1, 40),
    resize=st.tuples(st.integers(1, 60), st.integers(1, 60)),
    mode=st.sampled_from(["shortest", "longest", "exact", "crop", "pad"]),
    enlarge=st.booleans(),
    orientation=st.integers(1, 8),
    dtype=st.sampled_from([np.uint8, np.uint16, np.int32]),
)
def test_each_stored_pixel_has_the_value_under_its_centre(
    width: int, height: int, resize: tuple[int, int], mode: str, enlarge: bool, orientation: int, dtype: type
) -> None:
    policy = ImagePolicy(resize=resize, resize_mode=mode, enlarge=enlarge)
    frame = plan_frame(width, height, orientation, policy)
    mask = np.arange(1, width * height + 1).reshape(height, width).astype(dtype)
    placed = place_mask(mask, frame)
    assert placed.shape == (frame.height, frame.width)
    assert placed.dtype == dtype
    upright_width, upright_height = frame.upright_size
    upright = samples.raster_of(mask, {6: 8, 8: 6}.get(orientation, orientation))
    assert upright.shape == (upright_height, upright_width)
    for row in range(frame.height):
        for column in range(frame.width):
            x = (column + 0.5 - frame.offset_x) / frame.scale_x
            y = (row + 0.5 - frame.offset_y) / frame.scale_y
            inside = 0 <= x < upright_width and 0 <= y < upright_height
            expected = upright[int(y), int(x)] if inside else 0
            if min(x % 1, y % 1) > 1e-9 and max(x % 1, y % 1) < 1 - 1e-9:
                assert placed[row, column] == expected


def test_a_mask_lies_on_its_image_after_crop_pad_and_turn() -> None:
    """The image has a bright box, and the mask marks it: afterwards the bright pixels are the marked ones."""
    upright = np.zeros((60, 90, 3), np.uint8)
    upright[20:44, 30:70] = 255
    mask = (upright[:, :, :1] > 0).astype(np.uint8) * 5
    for orientation in (1, 3, 6, 7):
        image = samples.png(
            samples.raster_of(upright, orientation),
            8,
            2,
            before=samples.png_chunk(b"eXIf", samples.exif(orientation).tobytes().removeprefix(b"Exif\0\0")),
        )
        mask_file = samples.png(samples.raster_of(mask, orientation), 8, 3, palette=PALETTE)
        for mode in ("crop", "pad", "shortest"):
            policy = ImagePolicy(resize="45x45", resize_mode=mode, background="black")
            stored = convert_image(image, policy)
            bright = pixels_of(stored)[:, :, 0] > 127
            marked = by_tensorflow(convert_mask(mask_file, stored.frame))[:, :, 0]
            assert set(np.unique(marked)) == {0, 5}
            assert (bright != (marked == 5)).mean() < 0.04


def test_encoding_takes_ids_that_fit_and_refuses_others() -> None:
    for mask, depth in (
        (np.array([[True, False]]), "uint8"),
        (np.array([[0, 255]], np.uint8), "uint8"),
        (np.array([[0, 255]], np.int64), "uint16"),
        (np.array([[0, 65535]], np.int32), "uint16"),
    ):
        assert np.array_equal(by_tensorflow(encode_mask(mask), depth)[:, :, 0], mask)
    for bad in (np.array([[65536]]), np.array([[-1]])):
        assert code_of(encode_mask, bad) == "bad_mask"
