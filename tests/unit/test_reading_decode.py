"""The check with TensorFlow's decoder gives what tf.io.decode_image gives, for good and for damaged images."""

from __future__ import annotations

import io
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beam_tfrecord.errors import ImageError
from beam_tfrecord.reading import decode_with_tensorflow
from tests.samples import noise

Size = tuple[int, int, int]


def encoded(image: Image.Image, form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def expected(data: bytes) -> Size | None:
    import tensorflow as tf

    try:
        return tuple(tf.io.decode_image(data).shape[-3:])
    except tf.errors.OpError:
        return None


def found(data: bytes) -> Size | None:
    try:
        return decode_with_tensorflow(data)
    except ImageError:
        return None


COLOUR, GREY = Image.fromarray(noise(37, 21)), Image.fromarray(noise(37, 21, channels=1)[:, :, 0])
IMAGES = {
    "jpeg": encoded(COLOUR, "JPEG", quality=85),
    "jpeg 4:4:4": encoded(COLOUR, "JPEG", subsampling=0),
    "progressive jpeg": encoded(COLOUR, "JPEG", progressive=True),
    "grey jpeg": encoded(GREY, "JPEG"),
    "restart markers": encoded(COLOUR, "JPEG", restart_marker_blocks=2),
    "cmyk jpeg": encoded(Image.fromarray(noise(21, 37, channels=4), "CMYK"), "JPEG"),
    "png": encoded(COLOUR, "PNG"),
    "grey png": encoded(GREY, "PNG"),
    "rgba png": encoded(Image.fromarray(noise(21, 37, channels=4)), "PNG"),
    "16-bit png": encoded(Image.fromarray(np.arange(700, dtype=np.uint16).reshape(20, 35) * 90), "PNG"),
    "palette png": encoded(COLOUR.quantize(16), "PNG"),
    "one-bit png": encoded(GREY.convert("1"), "PNG"),
    "gif": encoded(COLOUR.quantize(16), "GIF"),
    "bmp": encoded(COLOUR, "BMP"),
}


@pytest.mark.parametrize("kind", IMAGES)
def test_good_images_have_the_size_that_tensorflow_gives(kind: str) -> None:
    assert found(IMAGES[kind]) == expected(IMAGES[kind]) is not None


@pytest.mark.parametrize("kind", [kind for kind in IMAGES if "jpeg" in kind or "restart" in kind])
def test_damaged_jpegs_are_judged_as_a_full_decode_judges_them(kind: str) -> None:
    chance = random.Random(kind)
    outcomes = set()
    for _ in range(60):
        data = bytearray(IMAGES[kind])
        for _ in range(chance.choice([1, 1, 2])):
            place = chance.randrange(2, len(data))
            if chance.random() < 0.7:
                data[place] ^= 1 << chance.randrange(8)
            else:
                del data[place : place + chance.choice([1, 40, 4000])]
                break
        assert found(bytes(data)) == expected(bytes(data))
        outcomes.add(found(bytes(data)) is None)
    assert outcomes == {True, False}


@pytest.mark.parametrize("data", [b"", b"\xff\xd8\xff", b"text", IMAGES["png"][:-20], IMAGES["jpeg"][:-2]])
def test_what_tensorflow_refuses_is_an_image_error(data: bytes) -> None:
    assert expected(data) is None
    with pytest.raises(ImageError) as caught:
        decode_with_tensorflow(data)
    assert caught.value.code == "corrupt_image"
    assert "TensorFlow" in caught.value.message
    assert "function_node" not in caught.value.message


def test_many_threads_may_decode_at_once() -> None:
    with ThreadPoolExecutor(8) as pool:
        sizes = list(pool.map(decode_with_tensorflow, list(IMAGES.values()) * 10))
    assert sizes == [expected(data) for data in IMAGES.values()] * 10
