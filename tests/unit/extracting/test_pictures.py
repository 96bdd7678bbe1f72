"""The image of a record as a file."""

from __future__ import annotations

import numpy as np
import pytest

from beam_tfrecord.annotations import feature_keys
from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.tools.extracting.pictures import has_picture, picture_of, suffix_of
from beam_tfrecord.tools.extracting.values import UnextractableError

RAW = feature_keys("od", raw=True)


def raw_features(data: bytes, height: int, width: int, channels: int, dtype: str) -> dict[str, Feature]:
    return {
        RAW["raw"]: Feature("bytes", [data]),
        RAW["height"]: Feature("int64", [height]),
        RAW["width"]: Feature("int64", [width]),
        RAW["channels"]: Feature("int64", [channels]),
        RAW["dtype"]: Feature("bytes", [dtype.encode()]),
    }


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_raw_pixels_become_a_png_that_tensorflow_decodes_to_them(channels: int, dtype: str) -> None:
    import tensorflow as tf

    pixels = np.random.default_rng(channels).integers(0, np.iinfo(dtype).max, (5, 7, channels), dtype, endpoint=True)
    data = picture_of(RAW, raw_features(pixels.astype(pixels.dtype.newbyteorder("<")).tobytes(), 5, 7, channels, dtype))
    assert np.array_equal(tf.io.decode_png(data, dtype=getattr(tf, dtype)).numpy(), pixels)
    assert suffix_of(data) == ".png"


@pytest.mark.parametrize(
    "features",
    [
        raw_features(b"123", 2, 2, 1, "uint8"),
        raw_features(b"", 0, 2, 1, "uint8"),
        raw_features(b"12345", 1, 1, 5, "uint8"),
        raw_features(b"1234", 1, 1, 1, "float32"),
        {RAW["raw"]: Feature("bytes", [b"1"])},
    ],
)
def test_pixels_that_cannot_be_are_told(features: dict[str, Feature]) -> None:
    with pytest.raises(UnextractableError) as error:
        picture_of(RAW, features)
    assert error.value.problem.code in ("bad_raw", "wrong_features")


def test_an_encoded_image_stays_what_it_is() -> None:
    keys = feature_keys("od")
    features = {keys["encoded"]: Feature("bytes", [b"\xff\xd8\xff whatever"])}
    assert has_picture(keys, features)
    assert picture_of(keys, features) == b"\xff\xd8\xff whatever"
    assert not has_picture(keys, {})
    assert [suffix_of(data) for data in (b"\xff\xd8\xff", b"GIF89a", b"?")] == [".jpg", ".gif", ""]
