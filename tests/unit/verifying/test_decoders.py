"""The checks that ask TensorFlow seldom or never come to its sizes, and refuse what it refuses."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beam_tfrecord.errors import ConfigError, ImageError
from beam_tfrecord.tfrecord.example import encode_example
from beam_tfrecord.tools.verifying.decoders import Decode, choose_decoder, make_decoder, stated_max_pixels
from beam_tfrecord.tools.verifying.records import RecordRules
from tests import odd_images
from tests.fuzz_images import mutants
from tests.handmade import texts, whole
from tests.image_kinds import ALSO, KINDS
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


def tensorflow_size(data: bytes) -> tuple[int, ...] | None:
    import tensorflow as tf

    if data[8:16] == b"WEBPVP8X" and data[20:21] and data[20] & 2:  # an animation: it would crash
        return None
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


@pytest.mark.parametrize("width", [90, 900, 3000])
@pytest.mark.parametrize("bits", range(8))
def test_a_png_that_tensorflow_refuses_for_its_window_is_refused_without_it(bits: int, width: int) -> None:
    data = odd_images.png_with_window(bits, width)
    if tensorflow_size(data) is not None:
        assert make_decoder("pillow")(data) == (12, width, 1)
        return
    with pytest.raises(ImageError, match="window"):
        make_decoder("pillow")(data)


def verdicts(data: bytes) -> list[tuple[int, int, int] | None]:
    """What the default comes to, what TensorFlow comes to when asked for every image, and the right answer."""
    return [*(verdict(make_decoder(choose_decoder(name)), data) for name in ("auto", "tensorflow")), by_all_of_it(data)]


def verdict(decode: Decode, data: bytes) -> tuple[int, int, int] | None:
    try:
        return decode(data)
    except ImageError:
        return None


def by_all_of_it(data: bytes) -> tuple[int, int, int] | None:
    """Height, width and channels when TensorFlow decodes the whole picture; of an animation those of a frame."""
    size = tensorflow_size(data)
    return None if size is None else size[-3:]


ODD_FILES = {
    "kinds": lambda: [*(make() for make in KINDS.values()), *(make() for makes in ALSO.values() for make in makes)],
    "samplings": lambda: map(odd_images.sampled_jpeg, odd_images.all_samplings()),
    "scans": lambda: [odd_images.jpeg_of_scans(scans) for scans in ((0, 1, 2), (0, 1), (2,), (1, 1, 0, 2))],
    "windows": lambda: [odd_images.png_with_window(bits, width) for bits in range(8) for width in (90, 900, 3000)],
    "chunks": lambda: odd_images.chunked_pngs(300, seed=1),
    "mutants": lambda: (mutant.data for mutant in mutants(2000, seed=12)),
}


@pytest.mark.parametrize("files", ODD_FILES)
def test_the_default_finds_what_tensorflow_finds_when_it_decodes_everything(files: str) -> None:
    found = Counter()
    for number, data in enumerate(ODD_FILES[files]()):
        by_default, by_tensorflow, right = verdicts(data)
        assert by_default == by_tensorflow == right, number
        found[right is None] += 1
    assert found[False]
    assert found[True] or files in ("scans", "chunks")


def test_records_have_the_same_faults_whatever_decodes() -> None:
    """Also where the record states something else than the image is."""
    rules = [RecordRules(None, make_decoder(choose_decoder(name))) for name in ("auto", "tensorflow")]
    codes = Counter()
    for number, mutant in enumerate(mutants(600, seed=13)):
        stated = {"image/height": whole(25 + number % 2), "image/width": whole(33), "image/channels": whole(3)}
        data = encode_example({**stated, "image/encoded": texts(mutant.data), "image/format": texts(b"jpeg")})
        by_default, by_tensorflow = (own.check(data).problems for own in rules)
        assert by_default == by_tensorflow, number
        codes.update(problem.code for problem in by_default)
    assert min(codes["bad_image"], codes["wrong_image_facts"]) > 50


def test_the_limit_of_pixels_is_that_of_the_conversion_when_it_is_larger() -> None:
    assert stated_max_pixels({"options": {"max_pixels": 10**9}}) == 10**9
    assert stated_max_pixels({"options": {"max_pixels": 10}}) == stated_max_pixels({}) == 150_000_000
    with pytest.raises(ImageError) as caught:
        make_decoder("pillow", 700)(IMAGES["png"])
    assert caught.value.code == "too_many_pixels"


def test_tensorflow_has_the_last_word_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_decoder("auto") == "libjpeg-turbo and zlib, tensorflow in doubt"
    assert choose_decoder("tensorflow") == "tensorflow"
    assert choose_decoder("pillow") == "pillow"
    monkeypatch.setattr("beam_tfrecord.tools.verifying.decoders.has_tensorflow", lambda: False)
    assert choose_decoder("auto") == "pillow"
    with pytest.raises(ConfigError, match="--decoder pillow"):
        choose_decoder("tensorflow")


@pytest.mark.parametrize("name", ["auto", "tensorflow"])
def test_an_animated_webp_is_told_of_and_not_decoded(name: str) -> None:
    """TensorFlow would write beyond its buffer: in this process, which would end."""
    frames = [Image.fromarray(noise(37, 21, seed=seed)) for seed in range(3)]
    animated = encoded(frames[0], "WEBP", save_all=True, append_images=frames[1:])
    still = encoded(Image.fromarray(noise(37, 21, channels=4)), "WEBP", exif=TURNED)
    decode = make_decoder(choose_decoder(name))
    with pytest.raises(ImageError, match="an animated WebP"):
        decode(animated)
    assert still[12:16] == animated[12:16] == b"VP8X"
    assert decode(still) == (21, 37, 4)
