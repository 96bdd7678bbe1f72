"""What has a size beyond doubt is decoded by TensorFlow to that size, and kept by a conversion without a remark.

The right sizes are those of ``tf.io.decode_image`` itself, asked for the whole picture.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import convert_image
from beam_tfrecord.images.quick_look import size_beyond_doubt
from beam_tfrecord.options.config import ImagePolicy
from tests import image_samples as samples
from tests import odd_images
from tests.fuzz_images import mutants
from tests.image_judge import by_tensorflow
from tests.image_kinds import ALSO, KINDS

MAX_PIXELS = 2_000_000
POLICY = ImagePolicy(orientation="ignore", max_pixels=MAX_PIXELS)
RGB = samples.gradient(61, 43)
FILES = {
    **{name: make() for name, make in KINDS.items()},
    **{f"{name} {number}": make() for name, makes in ALSO.items() for number, make in enumerate(makes)},
}


def size_by_tensorflow(data: bytes) -> tuple[int, ...] | None:
    import tensorflow as tf

    try:
        return by_tensorflow(data).shape
    except tf.errors.InvalidArgumentError:
        return None


def is_kept_without_remark(data: bytes) -> bool:
    try:
        stored = convert_image(data, POLICY)
    except ImageError:
        return False
    return stored.data is data and not stored.changed and not stored.warnings


def judge(files: Iterable[bytes]) -> tuple[int, int]:
    """(files with a size beyond doubt, others), after asserting that the sizes are right."""
    sure = doubtful = 0
    for number, data in enumerate(files):
        size = size_beyond_doubt(data, MAX_PIXELS)
        if size is None:
            doubtful += 1
            continue
        sure += 1
        assert size == size_by_tensorflow(data), number
        assert is_kept_without_remark(data), number
    return sure, doubtful


def test_every_kind_of_file_has_the_size_that_tensorflow_decodes_or_is_in_doubt() -> None:
    sure, doubtful = judge(FILES.values())
    assert sure > 20
    assert doubtful > 40


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith(("JPEG,", "PNG,"))])
def test_a_jpeg_or_png_that_is_kept_without_a_remark_is_not_in_doubt(name: str) -> None:
    """Else TensorFlow would be loaded for nothing."""
    assert (size_beyond_doubt(FILES[name], MAX_PIXELS) is not None) == is_kept_without_remark(FILES[name])


def test_damaged_files_have_the_size_that_tensorflow_decodes_or_are_in_doubt() -> None:
    sure, doubtful = judge(mutant.data for mutant in mutants(2500, seed=11))
    assert sure > 100
    assert doubtful > 1000


def test_pngs_with_any_further_chunks_have_the_size_that_tensorflow_decodes_or_are_in_doubt() -> None:
    sure, doubtful = judge(odd_images.chunked_pngs(600))
    assert sure > 300
    assert doubtful > 10


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("bits", range(8))
def test_a_png_that_reaches_further_back_than_its_window_is_in_doubt(bits: int, interlaced: bool) -> None:
    """zlib always takes the largest window, libpng the one that the data promise."""
    data = odd_images.png_with_window(bits, interlaced=interlaced)
    assert (size_beyond_doubt(data, MAX_PIXELS) is not None) == (bits == 7)
    judge([data])
    if bits < 4 and not interlaced:
        assert size_by_tensorflow(data) is None


@pytest.mark.parametrize(("bits", "width"), [(0, 24), (1, 50), (3, 200), (6, 2000)])
def test_a_small_window_is_enough_for_a_small_png(bits: int, width: int) -> None:
    data = odd_images.png_with_window(bits, width, 8)
    assert size_beyond_doubt(data, MAX_PIXELS) == size_by_tensorflow(data) == (8, width, 1)


def test_a_jpeg_of_rare_sampling_is_in_doubt() -> None:
    files = {samplings: odd_images.sampled_jpeg(samplings) for samplings in odd_images.all_samplings()}
    judge(files.values())
    refused = {samplings for samplings, data in files.items() if size_by_tensorflow(data) is None}
    assert (0x31, 0x21, 0x11) in refused
    sure = {samplings for samplings, data in files.items() if size_beyond_doubt(data, MAX_PIXELS) is not None}
    assert {(0x11, 0x11, 0x11), (0x21, 0x11, 0x11), (0x22, 0x11, 0x11), (0x41, 0x11, 0x11)} <= sure
    assert (0x31, 0x11, 0x11) not in sure


@pytest.mark.parametrize("components", [(0, 1, 2), (2, 1, 0), (0, 1), (0,), (1, 2), (0, 0, 1, 2)])
def test_a_jpeg_of_several_scans_has_the_size_that_tensorflow_decodes_or_is_in_doubt(components: list[int]) -> None:
    judge([odd_images.jpeg_of_scans(components)])


def test_a_progressive_jpeg_without_some_scans_has_the_size_that_tensorflow_decodes_or_is_in_doubt() -> None:
    whole = samples.save(RGB, "JPEG", progressive=True)
    starts = [position for position in range(len(whole)) if whole[position : position + 2] == b"\xff\xda"]
    assert len(starts) > 4
    judge(whole[:start] + b"\xff\xd9" for start in starts)
    judge(whole[:start] + whole[end:] for start, end in pairwise(starts))


def test_a_marker_before_the_end_is_looked_at() -> None:
    """A table that cannot be, behind the last pixel: who stops there does not see it, TensorFlow refuses it."""
    whole = samples.save(RGB, "JPEG")
    for segment in (
        samples.jpeg_segment(0xC4, b"\0" + b"\xff" * 16),
        samples.jpeg_segment(0xDB, b"\x0f" + bytes(64)),
        b"\xff\xd8",
        whole[whole.index(b"\xff\xda") : -2],
    ):
        data = whole[:-2] + segment + whole[-2:]
        assert size_by_tensorflow(data) is None
        assert size_beyond_doubt(data, MAX_PIXELS) is None


def test_what_does_not_fit_the_limits_is_in_doubt() -> None:
    for data in (samples.save(RGB, "JPEG"), samples.png(RGB, 8, 2)):
        assert size_beyond_doubt(data, 61 * 43) == (43, 61, 3)
        assert size_beyond_doubt(data, 61 * 43 - 1) is None
    wide = samples.png_header(1_000_001, 1, 1, 0)
    wide += samples.png_chunk(b"IDAT", samples.compressed(bytes(1 + 1_000_001 // 8 + 1))) + samples.PNG_END
    assert size_by_tensorflow(wide) is None
    assert size_beyond_doubt(wide, MAX_PIXELS) is None


def test_a_progressive_jpeg_with_thousands_of_scans_is_in_doubt() -> None:
    data = samples.save(RGB, "JPEG", progressive=True)
    start = data.rindex(b"\xff\xda")
    assert size_beyond_doubt(data[:-2] + data[start:-2] * 600 + b"\xff\xd9", MAX_PIXELS) is None
