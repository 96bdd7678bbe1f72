"""Masks move exactly as their image does. That values are kept is in tests/unit/annotations/test_mask_files.py."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.images import convert_image, place_mask
from beam_tfrecord.images.resize import plan_frame
from beam_tfrecord.options.config import ImagePolicy
from tests import image_samples as samples
from tests.image_judge import pixels_of

VALUES = np.random.default_rng(3).integers(0, 16, (17, 23, 1), dtype=np.uint8)
HOW = ("upright", "ignore")


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_mask_is_turned_with_its_image(orientation: int) -> None:
    raster = samples.raster_of(VALUES, orientation)[:, :, 0]
    applied, ignored = (plan_frame(*raster.shape[::-1], orientation, ImagePolicy(orientation=how)) for how in HOW)
    assert np.array_equal(place_mask(raster, applied), VALUES[:, :, 0])
    assert np.array_equal(place_mask(raster, ignored), raster)


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
        raster = samples.raster_of(mask, orientation)[:, :, 0]
        for mode in ("crop", "pad", "shortest"):
            policy = ImagePolicy(resize="45x45", resize_mode=mode, background="black")
            stored = convert_image(image, policy)
            bright = pixels_of(stored)[:, :, 0] > 127
            marked = place_mask(raster, stored.frame)
            assert set(np.unique(marked)) == {0, 5}
            assert (bright != (marked == 5)).mean() < 0.04
