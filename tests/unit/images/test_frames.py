"""Frames of animated files and pages of TIFF."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageSequence

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import convert_frames, convert_image
from beam_tfrecord.options.config import ImagePolicy
from tests import image_samples as samples
from tests.image_judge import pixels_of, psnr

SEQUENCE = ImagePolicy(animated="sequence")
FRAMES = [samples.gradient(30, 20, seed=20 * number) for number in range(4)]


def animated(format: str, **options: Any) -> bytes:
    first, *rest = [samples.as_image(pixels) for pixels in FRAMES]
    return samples.save(first, format, save_all=True, append_images=rest, **options)


def seen_by_pillow(data: bytes) -> list[samples.Array]:
    with Image.open(io.BytesIO(data)) as image:
        return [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(image)]


@pytest.mark.parametrize(
    ("format", "options"),
    [("GIF", {}), ("PNG", {}), ("WEBP", {"lossless": True}), ("TIFF", {}), ("AVIF", {"quality": 95})],
)
def test_every_frame_is_stored_as_it_is_seen(format: str, options: dict[str, Any]) -> None:
    data = animated(format, **options)
    frames = convert_frames(data, SEQUENCE)
    expected = seen_by_pillow(data)
    assert len(frames) == len(expected) == 4
    for stored, pixels in zip(frames, expected, strict=True):
        assert "first_frame" not in stored.changed
        assert psnr(pixels_of(stored), pixels) > (33 if stored.format == "jpeg" else 200)
    first = convert_image(data, SEQUENCE)
    assert np.array_equal(pixels_of(first), pixels_of(frames[0]))


def test_frames_go_through_the_policy_one_by_one() -> None:
    policy = ImagePolicy(animated="sequence", resize=10, color="gray", image_format="raw")
    frames = convert_frames(animated("GIF"), policy)
    assert {(stored.height, stored.width, stored.channels) for stored in frames} == {(10, 15, 1)}
    assert all("resized" in stored.changed for stored in frames)


@pytest.mark.parametrize("format", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP", "AVIF"])
def test_a_still_image_is_a_sequence_of_one(format: str) -> None:
    data = samples.save(FRAMES[0], format)
    assert convert_frames(data, SEQUENCE) == (convert_image(data, SEQUENCE),)


def test_the_further_pictures_of_an_mpo_are_no_frames() -> None:
    assert len(convert_frames(samples.mpo(FRAMES), SEQUENCE)) == 1


def test_a_default_image_that_is_no_frame_is_left_out() -> None:
    first, *rest = [samples.as_image(pixels) for pixels in FRAMES]
    data = samples.save(first, "PNG", save_all=True, append_images=rest, default_image=True)
    frames = convert_frames(data, SEQUENCE)
    assert len(frames) == 3
    assert np.array_equal(pixels_of(frames[0]), FRAMES[1])


def test_pages_of_different_sizes_keep_their_sizes() -> None:
    pages = [samples.as_image(samples.gradient(width, 10)) for width in (10, 20, 15)]
    data = samples.save(pages[0], "TIFF", save_all=True, append_images=pages[1:])
    assert [stored.width for stored in convert_frames(data, SEQUENCE)] == [10, 20, 15]


def test_pages_of_16_bits_stay_16_bits() -> None:
    data = samples.tiff(samples.gradient(12, 9, 3, "uint16"), pages=3, compression=8)
    frames = convert_frames(data, SEQUENCE)
    assert [stored.dtype for stored in frames] == ["uint16"] * 3
    assert all(np.array_equal(pixels_of(stored), samples.gradient(12, 9, 3, "uint16")) for stored in frames)


def test_all_frames_together_may_have_max_pixels() -> None:
    data = animated("GIF")
    convert_frames(data, ImagePolicy(animated="sequence", max_pixels=4 * 600))
    with pytest.raises(ImageError, match="4 frames") as caught:
        convert_frames(data, ImagePolicy(animated="sequence", max_pixels=4 * 600 - 1))
    assert caught.value.code == "too_many_pixels"
    convert_image(data, ImagePolicy(max_pixels=600))


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG"])
def test_a_damaged_later_frame_is_a_reject_of_the_sequence_and_not_of_its_first_frame(format: str) -> None:
    data = animated(format, **({"lossless": True} if format == "WEBP" else {}))
    cut = data[: int(len(data) * 0.8)]
    with pytest.raises(ImageError) as caught:
        convert_frames(cut, SEQUENCE)
    assert caught.value.code in ("truncated_image", "corrupt_image")
    if format == "GIF":
        assert convert_image(cut, ImagePolicy()).width == 30


def test_a_gif_that_lacks_only_its_trailer_is_whole() -> None:
    data = animated("GIF")
    assert data.endswith(b"\0;")
    assert len(convert_frames(data[:-1], SEQUENCE)) == 4
    with pytest.raises(ImageError):
        convert_frames(data[:-2], SEQUENCE)


def test_a_page_that_is_damaged_is_a_reject_of_the_sequence_and_not_of_its_first_page() -> None:
    data = bytearray(samples.tiff(samples.gradient(12, 9), pages=3))
    last = data.rindex(struct.pack("<HHI", 256, 4, 1))
    data[last : last + 12] = bytes(12)  # the third page has no width any more
    with pytest.raises(ImageError):
        convert_frames(bytes(data), SEQUENCE)
    assert convert_image(bytes(data), ImagePolicy()).width == 12


def test_a_damaged_second_page_changes_nothing_about_the_first() -> None:
    upright = samples.blocks(20, 12)
    for orientation in (1, 5, 6):
        raster = samples.raster_of(upright, orientation)
        data = samples.tiff(raster, tags={274: ("H", [orientation])}, pages=2, compression=8)
        second = data.rindex(struct.pack("<HHI", 256, 4, 1))
        for damaged in (data[:second], data[: second - 1], data[:second] + bytes(12) + data[second + 12 :]):
            stored = convert_image(damaged, ImagePolicy())
            assert np.array_equal(pixels_of(stored), upright)


def test_a_later_frame_that_is_larger_than_the_screen_takes_no_memory() -> None:
    data = bytearray(animated("GIF"))
    control = b"\x21\xf9\x04"  # stands before each frame
    second = data.index(control, data.index(control) + 1) + 8
    assert data[second] == 0x2C
    data[second + 1 : second + 9] = struct.pack("<HHHH", 0, 0, 65_535, 65_535)
    with pytest.raises(ImageError) as caught:
        convert_frames(bytes(data), SEQUENCE)
    assert caught.value.code == "too_many_pixels"
    assert convert_image(bytes(data), ImagePolicy()).width == 30
