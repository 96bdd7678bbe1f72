"""Looks that are taken together, and the pictures whose channels are summed."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from beam_tfrecord.conversion.writing.looking import SUMMED_BYTES, SUMMED_PICTURES, SUMMED_SHARE, looking_for
from beam_tfrecord.images.convert import convert_image
from beam_tfrecord.images.stored import StoredImage
from beam_tfrecord.insight.grids import LEVEL
from beam_tfrecord.options.config import ConvertConfig, ImagePolicy
from benchmarks.near_duplicates import scene
from tests.samples import jpeg, png

CONFIG = ConvertConfig.from_options({"input": "in", "output": "out"})
SIZES = [(256, 256), (259, 300), (40, 40), (256, 256), (640, 90), (259, 300)]


def stored() -> list[tuple[StoredImage, str]]:
    files = [encode(scene(seed, *size)) for seed, size in enumerate(SIZES) for encode in (jpeg, png)]
    images = [convert_image(data, ImagePolicy()) for data in files]
    return [(image, hashlib.sha256(image.data).hexdigest()) for image in images]


def test_looks_that_are_taken_together_are_those_of_each_picture() -> None:
    looking = looking_for(CONFIG)
    images = stored()
    together = looking.at_all(images)
    assert together == [looking.at(*own) for own in images]
    assert all(seen.grid and seen.sums for seen in together)


@pytest.mark.parametrize(
    ("pictures", "bytes_of_one", "share"),
    [
        (10, 1e9, 1),  # few
        (1_000, 1_000, 1),  # small
        (10_000, SUMMED_BYTES / 100, 100 / 10_000),
        (300, 600_000, SUMMED_PICTURES / 300),
        (10**7, 100_000, SUMMED_SHARE),
    ],
)
def test_the_share_that_is_summed_is_all_of_few_and_a_sample_of_many(
    pictures: int, bytes_of_one: float, share: float
) -> None:
    assert looking_for(CONFIG, pictures, bytes_of_one).share / 2**32 == pytest.approx(share, rel=1e-6)
    exact = ConvertConfig.from_options({"input": "in", "output": "out", "insight": "exact"})
    assert looking_for(exact, pictures, bytes_of_one).share == 2**32


def test_the_sample_is_chosen_by_the_hash_of_the_content() -> None:
    looking = looking_for(CONFIG, 10**6, 10**6)
    ((image, _),) = stored()[:1]
    hashes = [f"{(2**32 * number) // 1024:08x}" + "0" * 56 for number in range(1024)]
    summed = [seen.sums is not None for seen in looking.at_all([(image, sha256) for sha256 in hashes])]
    assert summed == [number < 1024 * SUMMED_SHARE for number in range(1024)]


@pytest.mark.parametrize("marker", [b"\xff\xdb", b"\xff\xda"])
def test_a_jpeg_that_the_decoder_complains_of_is_looked_at_as_it_would_be_without(marker: bytes) -> None:
    """Bytes that belong to nothing, before a table and before the scan."""
    whole = jpeg(scene(1, 256, 256))
    place = whole.index(marker)
    odd = convert_image(whole[:place] + b"\0\1\2\3" + whole[place:], ImagePolicy())
    assert [code for code, _ in odd.warnings] == ["decoder_warning"]
    looking = looking_for(CONFIG)
    seen, plain = (looking.at(image, "0" * 64) for image in (odd, convert_image(whole, ImagePolicy())))
    assert seen.grid
    assert plain.grid
    apart = np.abs(np.frombuffer(seen.grid, np.int16) - np.frombuffer(plain.grid, np.int16))
    assert apart.max() <= 2 * LEVEL  # means of pixels, and pixels of an eighth
    assert seen.sums == plain.sums
