"""The check without TensorFlow comes to TensorFlow's sizes, and refuses what TensorFlow refuses."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beam_tfrecord.errors import ConfigError, ImageError
from beam_tfrecord.verifying.decoders import choose_decoder, make_decoder, stated_max_pixels
from tests.samples import noise


def encoded(image: Image.Image, form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


COLOUR, GREY = Image.fromarray(noise(37, 21)), Image.fromarray(noise(37, 21, channels=1)[:, :, 0])
TURNED = Image.Exif()
TURNED[0x0112] = 6
IMAGES = {
    "jpeg": encoded(COLOUR, "JPEG"),
    "turned jpeg": encoded(COLOUR, "JPEG", exif=TURNED),
    "progressive jpeg": encoded(COLOUR, "JPEG", progressive=True),
    "grey jpeg": encoded(GREY, "JPEG"),
    "cmyk jpeg": encoded(Image.fromarray(noise(37, 21, channels=4), "CMYK"), "JPEG"),
    "png": encoded(COLOUR, "PNG"),
    "grey png": encoded(GREY, "PNG"),
    "one-bit png": encoded(GREY.convert("1"), "PNG"),
    "grey and alpha png": encoded(Image.fromarray(noise(37, 21, channels=2), "LA"), "PNG"),
    "rgba png": encoded(Image.fromarray(noise(37, 21, channels=4)), "PNG"),
    "palette png": encoded(COLOUR.quantize(16), "PNG"),
    "16-bit png": encoded(Image.fromarray(np.arange(777, dtype=np.uint16).reshape(21, 37)), "PNG"),
}


def tensorflow_size(data: bytes) -> tuple[int, int, int] | None:
    import tensorflow as tf

    try:
        return tuple(tf.io.decode_image(data).shape)
    except tf.errors.OpError:
        return None


@pytest.mark.parametrize("kind", IMAGES)
def test_sizes_are_those_that_tensorflow_gives(kind: str) -> None:
    assert make_decoder("pillow")(IMAGES[kind]) == tensorflow_size(IMAGES[kind])


@pytest.mark.parametrize("kind", IMAGES)
@pytest.mark.parametrize("lost", [2, 20, 200])
def test_cut_images_are_refused_as_tensorflow_refuses_them(kind: str, lost: int) -> None:
    data = IMAGES[kind][:-lost]
    if tensorflow_size(data) is None:
        with pytest.raises(ImageError):
            make_decoder("pillow")(data)
    else:  # libpng does without the end of a PNG; a file that readers differ on is one to be told of
        assert kind.endswith("png")


def test_the_limit_of_pixels_is_that_of_the_conversion_when_it_is_larger() -> None:
    assert stated_max_pixels({"options": {"max_pixels": 10**9}}) == 10**9
    assert stated_max_pixels({"options": {"max_pixels": 10}}) == stated_max_pixels({}) == 150_000_000
    with pytest.raises(ImageError) as caught:
        make_decoder("pillow", 700)(IMAGES["png"])
    assert caught.value.code == "too_many_pixels"


def test_tensorflow_decodes_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_decoder("auto") == "tensorflow"
    assert choose_decoder("pillow") == "pillow"
    monkeypatch.setattr("beam_tfrecord.verifying.decoders.has_tensorflow", lambda: False)
    assert choose_decoder("auto") == "pillow"
    with pytest.raises(ConfigError, match="--decoder pillow"):
        choose_decoder("tensorflow")
