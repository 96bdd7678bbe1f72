from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from beam_tfrecord.core.geometry import PixelFrame


def turned(orientation: int, width: int, height: int) -> PixelFrame:
    swapped = (height, width) if orientation >= 5 else (width, height)
    return PixelFrame(width, height, *swapped, orientation=orientation)


@pytest.mark.parametrize("orientation", range(1, 9))
@given(left=st.integers(0, 8), top=st.integers(0, 5), wide=st.integers(1, 3), high=st.integers(1, 3))
def test_a_box_follows_the_pixels_that_pillow_turns(
    orientation: int, left: int, top: int, wide: int, high: int
) -> None:
    raster = np.zeros((8, 11), np.uint8)
    raster[top : top + high, left : left + wide] = 255
    image = Image.fromarray(raster)
    exif = image.getexif()
    exif[0x0112] = orientation
    upright = np.asarray(ImageOps.exif_transpose(image))
    rows, columns = np.nonzero(upright)
    expected = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    frame = turned(orientation, 11, 8)
    assert frame.upright_size == (upright.shape[1], upright.shape[0])
    assert frame.place_box(left, top, left + wide, top + high) == expected


@pytest.mark.parametrize("orientation", range(1, 9))
@given(left=st.integers(0, 8), top=st.integers(0, 5), wide=st.integers(1, 3), high=st.integers(1, 3))
def test_a_box_of_the_turned_picture_is_turned_back_where_the_turn_is_ignored(
    orientation: int, left: int, top: int, wide: int, high: int
) -> None:
    raster = np.zeros((8, 11), np.uint8)
    raster[top : top + high, left : left + wide] = 255
    image = Image.fromarray(raster)
    image.getexif()[0x0112] = orientation
    upright = np.asarray(ImageOps.exif_transpose(image))
    rows, columns = np.nonzero(upright)
    drawn = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    frame = PixelFrame(11, 8, 22, 24, scale_x=2, scale_y=3, ignored=orientation)
    assert frame.turned_size == (upright.shape[1], upright.shape[0])
    expected = (2 * left, 3 * top, 2 * (left + wide), 3 * (top + high))
    assert frame.place_box(*drawn, is_upright=True) == expected
    assert frame.place_box(left, top, left + wide, top + high) == expected


@pytest.mark.parametrize("orientation", range(1, 9))
def test_an_inverted_box_stays_inverted(orientation: int) -> None:
    left, top, right, bottom = turned(orientation, 11, 8).place_box(6, 5, 2, 1)
    assert left > right
    assert top > bottom
    ignored = PixelFrame(11, 8, 11, 8, ignored=orientation)
    left, top, right, bottom = ignored.place_box(6, 5, 2, 1, is_upright=True)
    assert left > right
    assert top > bottom


def test_a_box_of_the_upright_picture_is_only_scaled_and_shifted() -> None:
    frame = PixelFrame(40, 20, 10, 20, orientation=6, scale_x=0.5, scale_y=0.5, offset_x=3, offset_y=-1)
    assert frame.place_box(4, 8, 16, 24, is_upright=True) == (5, 3, 11, 11)
