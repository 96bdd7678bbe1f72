"""JPEG and PNG that TensorFlow decodes as they stand are stored byte for byte; what is damaged is told."""

from __future__ import annotations

import contextlib
import io
import struct
from itertools import pairwise

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from beam_tfrecord.core.geometry import PixelFrame
from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import StoredImage, convert_image
from beam_tfrecord.images.quick_look import size_beyond_doubt
from beam_tfrecord.options.config import ImagePolicy
from tests import image_samples as samples
from tests import odd_images
from tests.image_judge import by_pillow, by_tensorflow, code_of, pixels_of, warnings_of

KEEP = ImagePolicy()
HEADER = ImagePolicy(validate="header")
STRICT = ImagePolicy(validate="strict")
RGB = samples.gradient(61, 43)


@pytest.mark.parametrize("policy", [KEEP, HEADER, STRICT], ids=["full", "header", "strict"])
@pytest.mark.parametrize(
    "data",
    [
        samples.save(RGB, "JPEG", subsampling=0),
        samples.save(RGB, "JPEG", subsampling=1),
        samples.save(RGB, "JPEG", subsampling=2),
        samples.save(RGB, "JPEG", keep_rgb=True),
        samples.save(RGB, "JPEG", progressive=True, quality=30),
        samples.save(RGB, "JPEG", optimize=True, comment=b"by hand", exif=samples.exif(1)),
        samples.save(RGB, "JPEG", restart_marker_rows=1),
        samples.save(RGB[:, :, :1], "JPEG"),
        samples.save(RGB[:1, :1], "JPEG"),
        samples.save(RGB, "JPEG", icc_profile=samples.swapped_profile() + bytes(70_000)),
    ],
)
def test_a_whole_jpeg_is_kept_as_the_very_same_object(data: bytes, policy: ImagePolicy) -> None:
    stored = convert_image(data, policy)
    assert stored.data is data
    height, width, channels = by_tensorflow(data).shape
    frame = PixelFrame(width, height, width, height)
    assert stored == StoredImage(data, "jpeg", height, width, channels, "uint8", frame, "jpeg")


PNG_KINDS = [(0, depth, 1, 1) for depth in (1, 2, 4, 8, 16)]
PNG_KINDS += [(2, 8, 3, 3), (2, 16, 3, 3), (4, 8, 2, 2), (4, 16, 2, 2), (6, 8, 4, 4), (6, 16, 4, 4)]
PNG_KINDS += [(3, depth, 1, 3) for depth in (1, 2, 4, 8)]


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize(
    ("colour_type", "depth", "samples_per_pixel", "channels", "has_transparency"),
    [(*kind, has) for kind in PNG_KINDS for has in (False, True) if not (has and kind[0] in (4, 6))],
)
def test_every_kind_of_png_is_kept_with_the_channels_that_tensorflow_gives(
    colour_type: int, depth: int, samples_per_pixel: int, channels: int, has_transparency: bool, interlaced: bool
) -> None:
    dtype = "uint16" if depth == 16 else "uint8"
    values = samples.gradient(21, 13, samples_per_pixel, dtype) >> (max(8, depth) - depth)
    palette = bytes(np.random.default_rng(1).integers(0, 256, 3 << depth, dtype=np.uint8)) if colour_type == 3 else b""
    transparency = {0: b"\0\1", 2: b"\0\1\0\2\0\3", 3: b"\0\x80"}[colour_type] if has_transparency else None
    data = samples.png(values, depth, colour_type, palette=palette, transparency=transparency, interlaced=interlaced)
    stored = convert_image(data, KEEP)
    assert stored.data is data
    assert stored.channels == (4 if colour_type == 3 and has_transparency else channels)
    assert stored.dtype == dtype
    assert not stored.changed
    assert not stored.warnings
    decoded = pixels_of(stored)
    if colour_type != 3 and depth >= 8:
        assert np.array_equal(decoded, values)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("height", [1, 3, 5, 9])
def test_small_interlaced_png_with_empty_passes_are_kept(width: int, height: int) -> None:
    data = samples.png(samples.gradient(width, height), 8, 2, interlaced=True)
    assert convert_image(data, KEEP).data is data
    assert np.array_equal(by_tensorflow(data), samples.gradient(width, height))


# ---------------------------------------------------------------------------------------------------------------------
# JPEG that are not quite right.


@pytest.mark.parametrize("policy", [KEEP, HEADER, STRICT], ids=["full", "header", "strict"])
@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"restart_marker_blocks": 3}])
def test_a_missing_end_marker_is_added_when_every_pixel_is_there(
    options: dict[str, object], policy: ImagePolicy
) -> None:
    whole = samples.save(RGB, "JPEG", **options)
    for cut in (1, 2):
        stored = convert_image(whole[:-cut], policy)
        assert stored.changed == ("repaired",)
        assert np.array_equal(pixels_of(stored), by_tensorflow(whole))


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"restart_marker_blocks": 3}])
@pytest.mark.parametrize("policy", [KEEP, HEADER], ids=["full", "header"])
def test_a_jpeg_cut_anywhere_before_its_last_byte_of_data_is_truncated(
    options: dict[str, object], policy: ImagePolicy
) -> None:
    whole = samples.save(samples.gradient(24, 16), "JPEG", **options)
    for length in range(4, len(whole) - 6):
        assert code_of(whole[:length], policy) == "truncated_image"


def test_a_progressive_jpeg_cut_between_two_scans_is_truncated() -> None:
    whole = samples.save(RGB, "JPEG", progressive=True)
    scans = [position for position in range(len(whole)) if whole[position : position + 2] == b"\xff\xda"]
    assert len(scans) > 4
    tables = [whole.rindex(b"\xff\xc4", 0, scan) for scan in scans[1:] if b"\xff\xc4" in whole[scan - 200 : scan]]
    for position in {*scans[1:], *tables}:
        assert code_of(whole[:position]) == "truncated_image"


def test_bytes_behind_the_end_are_kept_and_told() -> None:
    for tail in (b"\0", b"some text", bytes(5000), b"\xff\xd8\xff\xe0 not a whole picture"):
        data = samples.save(RGB, "JPEG") + tail
        stored = convert_image(data, KEEP)
        assert stored.data is data
        assert warnings_of(stored) == ["trailing_data"]
        assert f"{len(tail):,} bytes" in stored.warnings[0][1]
        assert pixels_of(stored).shape == RGB.shape


def damaged() -> bytes:
    """A JPEG with bytes too many: the decoder complains, Pillow and TensorFlow decode it all the same."""
    data = samples.save(RGB, "JPEG", quality=90, restart_marker_blocks=3)
    return data.replace(b"\xff\xd2", b"more\xff\xd2")


def test_an_image_that_the_decoder_complains_of_is_kept_with_a_warning_unless_validation_is_strict() -> None:
    data = damaged()
    Image.open(io.BytesIO(data)).load()
    stored = convert_image(data, KEEP)
    assert stored.data is data
    assert warnings_of(stored) == ["decoder_warning"]
    assert "Corrupt JPEG data" in stored.warnings[0][1]
    assert pixels_of(stored).shape == RGB.shape
    assert code_of(data, STRICT) == "corrupt_image"
    for policy in (ImagePolicy(image_format="png"), ImagePolicy(resize=20)):
        assert warnings_of(convert_image(data, policy)) == ["decoder_warning"]
    assert code_of(data, ImagePolicy(image_format="png", validate="strict")) == "corrupt_image"


def test_a_marker_that_swallows_the_end_is_not_stored() -> None:
    """Pillow decodes this; TensorFlow reads on to the end marker and fails."""
    whole = samples.save(RGB, "JPEG")
    data = whole[:-300] + b"\xff\xe8\x48\xce" + whole[-300:]
    Image.open(io.BytesIO(data)).load()
    assert code_of(data) == "truncated_image"


def test_a_subsampling_that_the_quick_look_does_not_know_is_no_complaint() -> None:
    """Three samples of brightness to one of colour, side by side: 12 blocks of one grey each, all zero bits."""
    tables = samples.save(RGB[:, :, :1], "JPEG")
    head, _, rest = tables.partition(b"\xff\xc0")
    huffman = rest[rest.index(b"\xff\xc4") : rest.index(b"\xff\xda")]
    frame = bytes((0xFF, 0xC0, 0, 17, 8, 0, 8, 0, 48, 3, 1, 0x31, 0, 2, 0x11, 0, 3, 0x11, 0))
    scan = bytes((0xFF, 0xDA, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0))
    # A difference of 0 is 00 and an end of block 1010 in the tables that Pillow writes; two units of five blocks.
    bits = ("00" + "1010") * 10
    body = int(bits.ljust(64, "1"), 2).to_bytes(8, "big")
    data = head + frame + huffman + scan + body + b"\xff\xd9"
    stored = convert_image(data, STRICT)
    assert stored.data is data
    assert not stored.warnings
    assert np.array_equal(pixels_of(stored), np.full((8, 48, 3), 128))


@pytest.mark.parametrize(
    "block", [b"", b"II*\0", b"II*\0\xff\xff\xff\xff", b"no TIFF at all", b"MM\0*\0\0\0\x08\0\xff" + bytes(20)]
)
def test_damaged_exif_is_told_and_the_image_taken_as_upright(block: bytes) -> None:
    data = samples.with_segment(samples.save(RGB, "JPEG"), 0xE1, b"Exif\0\0" + block)
    stored = convert_image(data, KEEP)
    assert stored.data is data
    assert warnings_of(stored) == ["exif_damaged"]


def test_a_progressive_jpeg_with_thousands_of_scans_is_refused_at_once() -> None:
    data = samples.save(RGB, "JPEG", progressive=True)
    start = data.rindex(b"\xff\xda")
    assert code_of(data[:-2] + data[start:-2] * 600 + b"\xff\xd9") == "corrupt_image"


def test_headers_that_cannot_be_are_refused() -> None:
    whole = samples.save(RGB, "JPEG")
    frame = whole.index(b"\xff\xc0")
    no_height = whole[: frame + 5] + b"\0\0" + whole[frame + 7 :]
    assert code_of(no_height) == "corrupt_image"
    assert code_of(whole[:frame] + whole[frame + 19 :]) == "corrupt_image"  # no frame at all
    assert code_of(whole[: frame + 19] + whole[frame:]) == "corrupt_image"  # two of them
    assert code_of(b"\xff\xd8\xff\xe0") == "truncated_image"
    assert code_of(b"\xff\xd8\xff\xd9") == "truncated_image"
    assert code_of(b"\xff\xd8\xff\xe0\0\1") == "corrupt_image"
    assert code_of(b"\xff\xd8\xff" + bytes(1000)) in ("corrupt_image", "truncated_image")


def test_fill_bytes_between_segments_are_no_fault() -> None:
    whole = samples.save(RGB, "JPEG")
    frame = whole.index(b"\xff\xc0")
    data = whole[:frame] + b"\xff\xff\xff" + whole[frame:]
    stored = convert_image(data, KEEP)
    assert stored.data is data
    assert not stored.warnings
    assert pixels_of(stored).shape == RGB.shape


def test_garbage_between_segments_is_told() -> None:
    whole = samples.save(RGB, "JPEG")
    frame = whole.index(b"\xff\xc0")
    stored = convert_image(whole[:frame] + b"garbage" + whole[frame:], KEEP)
    assert warnings_of(stored) == ["decoder_warning"]
    assert pixels_of(stored).shape == RGB.shape


# ---------------------------------------------------------------------------------------------------------------------
# Several pictures in one file.


def test_of_a_multi_picture_file_the_first_is_cut_out_without_loss() -> None:
    first, second = samples.save(RGB, "JPEG"), samples.gradient(30, 20, seed=9)
    data = samples.mpo([RGB, second, second])
    stored = convert_image(data, KEEP)
    assert stored.changed == ("first_frame",)
    assert not stored.warnings
    assert np.array_equal(pixels_of(stored), by_tensorflow(first))
    with Image.open(io.BytesIO(stored.data)) as image:
        assert (image.format, getattr(image, "n_frames", 1)) == ("JPEG", 1)
        assert np.array_equal(np.asarray(image), by_pillow(first, "RGB"))
    assert stored.data.endswith(b"\xff\xd9")
    assert len(stored.data) < len(data) - 500
    assert convert_image(stored.data, KEEP).data is stored.data


def test_the_further_pictures_of_a_multi_picture_file_are_no_animation() -> None:
    assert convert_image(samples.mpo([RGB, RGB]), ImagePolicy(animated="reject")).changed == ("first_frame",)


def test_a_multi_picture_file_whose_other_pictures_are_gone_is_kept() -> None:
    data = samples.mpo([RGB, RGB])
    first = data[: data.index(b"\xff\xd9\xff\xd8") + 2]
    assert convert_image(first, KEEP).data is first


# ---------------------------------------------------------------------------------------------------------------------
# PNG that are not quite right. libpng's view of each was found by trying.

PNG = samples.png(RGB, 8, 2)
BODY = PNG[33:-12]
PALETTE = bytes(range(48))


def bad_sum(kind: bytes, content: bytes) -> bytes:
    chunk = samples.png_chunk(kind, content)
    return chunk[:-1] + bytes([chunk[-1] ^ 1])


ODD_BUT_KEPT = {
    "text with a wrong checksum": samples.png(RGB, 8, 2, before=bad_sum(b"tEXt", b"a\0b")),
    "text behind the pixels with a wrong checksum": samples.png(RGB, 8, 2, after=bad_sum(b"tEXt", b"a\0b")),
    "profile with a wrong checksum": samples.png(RGB, 8, 2, before=bad_sum(b"iCCP", b"x\0\0junk")),
    "transparency behind the pixels": samples.png(RGB, 8, 2, after=samples.png_chunk(b"tRNS", bytes(6))),
    "transparency of the wrong length": samples.png(RGB, 8, 2, transparency=b"\0\1"),
    "transparency twice": samples.png(RGB, 8, 2, transparency=bytes(6), before=samples.png_chunk(b"tRNS", bytes(6))),
    "transparency beside an alpha channel": samples.png(samples.gradient(9, 9, 4), 8, 6, transparency=b"\0\1"),
    "suggested palette of the wrong length": samples.png(RGB, 8, 2, before=samples.png_chunk(b"PLTE", bytes(4))),
    "suggested palette behind the pixels": samples.png(RGB, 8, 2, after=samples.png_chunk(b"PLTE", bytes(6))),
    "palette of a grey image": samples.png(RGB[:, :, :1], 8, 0, before=samples.png_chunk(b"PLTE", bytes(6))),
    "pixels behind other chunks": samples.png(RGB, 8, 2, after=samples.png_chunk(b"tEXt", b"a\0b") + BODY),
}
FINE = {
    "unknown extra chunk": samples.png(RGB, 8, 2, before=samples.png_chunk(b"abCd", b"x")),
    "a text of 9 MB": samples.png(RGB, 8, 2, before=samples.png_chunk(b"tEXt", b"a\0" + b"b" * 9_000_000)),
    "a text bomb": samples.png(
        RGB, 8, 2, before=samples.png_chunk(b"zTXt", b"XML:com.adobe.xmp\0\0" + samples.zeros_compressed(100_000_000))
    ),
    "3000 texts": samples.png(RGB, 8, 2, before=samples.png_chunk(b"tEXt", b"a\0b") * 3000),
    "an end chunk with content": PNG[:-12] + samples.png_chunk(b"IEND", b"abc"),
}
DAMAGED = {
    "pixels with a wrong checksum": PNG[:-13] + bytes([PNG[-13] ^ 1]) + PNG[-12:],
    "an end with a wrong checksum": PNG[:-1] + b"\0",
    "an unknown critical chunk": samples.png(RGB, 8, 2, before=samples.png_chunk(b"ABCD", b"x")),
    "an impossible chunk name": samples.png(RGB, 8, 2, before=samples.png_chunk(b"a1Cd", b"x")),
    "a text before the header": PNG[:8] + samples.png_chunk(b"tEXt", b"a\0b") + PNG[8:],
    "two headers": PNG[:33] + PNG[8:],
    "no palette": samples.png(RGB[:, :, :1] >> 4, 8, 3),
    "a palette of 31 bytes": samples.png(RGB[:, :, :1] >> 4, 8, 3, palette=PALETTE[:31]),
    "a palette with a wrong checksum": samples.png(RGB[:, :, :1] >> 4, 8, 3, before=bad_sum(b"PLTE", PALETTE)),
    "two palettes": samples.png(RGB[:, :, :1] >> 4, 8, 3, palette=PALETTE, before=samples.png_chunk(b"PLTE", PALETTE)),
    "17 bits": samples.png_header(9, 9, 17, 0) + BODY + samples.PNG_END,
    "colour type 5": samples.png_header(9, 9, 8, 5) + BODY + samples.PNG_END,
    "interlace method 2": samples.png_header(9, 9, 8, 2, 2) + BODY + samples.PNG_END,
    "no width": samples.png_header(0, 9, 8, 2) + BODY + samples.PNG_END,
    "line ends converted": PNG.replace(b"\r\n", b"\n", 1),
}


@pytest.mark.parametrize("name", ODD_BUT_KEPT)
def test_an_odd_png_with_all_its_pixels_is_kept_with_a_warning(name: str) -> None:
    data = ODD_BUT_KEPT[name]
    stored = convert_image(data, KEEP)
    assert stored.data is data
    assert warnings_of(stored) == ["decoder_warning"]
    pixels_of(stored)
    assert code_of(data, STRICT) == "corrupt_image"


@pytest.mark.parametrize("name", FINE)
def test_unusual_chunks_are_no_fault(name: str) -> None:
    stored = convert_image(FINE[name], STRICT)
    assert stored.data is FINE[name]
    assert not stored.warnings
    pixels_of(stored)


@pytest.mark.parametrize("name", DAMAGED)
def test_a_png_that_libpng_refuses_is_refused(name: str) -> None:
    import tensorflow as tf

    code = "not_an_image" if name == "line ends converted" else "corrupt_image"
    assert code_of(DAMAGED[name]) == code
    with pytest.raises(tf.errors.InvalidArgumentError):
        by_tensorflow(DAMAGED[name])


def repacked(rows: bytes, spoil: bytes = b"") -> bytes:
    """A PNG of the size of RGB with these rows, its compressed data ended by ``spoil`` in place of a checksum."""
    body = samples.compressed(rows)
    return (
        samples.png_header(61, 43, 8, 2)
        + samples.png_chunk(b"IDAT", body[:-4] + (spoil or body[-4:]))
        + samples.PNG_END
    )


ROWS = b"".join(b"\0" + row.tobytes() for row in RGB.reshape(43, -1))


def test_pixel_data_is_checked_to_its_last_byte() -> None:
    assert convert_image(repacked(ROWS), STRICT).warnings == ()
    assert code_of(repacked(ROWS, b"abcd")) == "corrupt_image"
    assert code_of(repacked(ROWS[:-1])) == "truncated_image"
    assert code_of(repacked(b"\5" + ROWS[1:])) == "corrupt_image"
    assert code_of(repacked(ROWS[: 42 * 184] + b"\x80" + ROWS[42 * 184 + 1 :])) == "corrupt_image"
    longer = repacked(ROWS + bytes(1000))
    assert convert_image(longer, KEEP).data is longer
    assert warnings_of(convert_image(longer, KEEP)) == ["decoder_warning"]
    pixels_of(convert_image(longer, KEEP))
    assert code_of(repacked(ROWS + bytes(1000), b"abcd")) == "corrupt_image"
    assert code_of(repacked(ROWS + bytes(3_000_000))) == "corrupt_image"


def test_rows_may_lie_in_many_chunks_of_any_size() -> None:
    body = samples.compressed(ROWS)
    parts = [body[:1], b"", body[1:7], *(body[position : position + 50] for position in range(7, len(body), 50))]
    data = (
        samples.png_header(61, 43, 8, 2)
        + b"".join(samples.png_chunk(b"IDAT", part) for part in parts)
        + samples.PNG_END
    )
    assert convert_image(data, STRICT).data is data
    assert np.array_equal(by_tensorflow(data), RGB)


def test_a_missing_end_chunk_is_added() -> None:
    text = samples.png_chunk(b"tEXt", b"a\0b")
    for data in (PNG[:-12], PNG[:-3], PNG[:-12] + text[:9], samples.png(RGB, 8, 2, after=text)[:-1]):
        stored = convert_image(data, KEEP)
        assert stored.changed == ("repaired",)
        assert stored.data.endswith(samples.PNG_END)
        assert np.array_equal(pixels_of(stored), RGB)


@pytest.mark.parametrize("policy", [KEEP, HEADER, STRICT], ids=["full", "header", "strict"])
@pytest.mark.parametrize("bits", range(8))
def test_a_png_that_promises_too_small_a_window_is_given_the_largest(bits: int, policy: ImagePolicy) -> None:
    """libpng fails where data reach further back than promised; Pillow does not look at the promise."""
    data = odd_images.png_with_window(bits)
    stored = convert_image(data, policy)
    if bits == 7:
        assert stored.data is data
        assert not stored.changed
    else:
        assert stored.changed == ("repaired",)
        assert stored.data == odd_images.png_with_window(7)
    assert np.array_equal(pixels_of(stored), by_pillow(data, "L"))


@pytest.mark.parametrize("cuts", [(1,), (0, 0, 1, 1, 2), (2,), (0, 3)])
def test_a_window_is_set_right_wherever_its_two_bytes_lie(cuts: tuple[int, ...]) -> None:
    data = odd_images.png_with_window(2)
    body = data[41:-16]
    parts = [body[start:end] for start, end in pairwise((0, *cuts, len(body)))]
    text = samples.png_chunk(b"tEXt", b"a\0b")
    split = data[:33] + text + b"".join(samples.png_chunk(b"IDAT", part) for part in parts) + samples.PNG_END
    stored = convert_image(split, STRICT)
    assert stored.changed == ("repaired",)
    assert len(stored.data) == len(split)
    assert np.array_equal(pixels_of(stored), by_pillow(data, "L"))


def test_a_png_cut_in_its_pixels_is_truncated() -> None:
    for length in range(8, len(PNG) - 12, 97):
        assert code_of(PNG[:length]) == "truncated_image"
        assert code_of(PNG[:length], HEADER) == "truncated_image"


def test_bytes_behind_a_png_are_kept_and_told() -> None:
    data = PNG + b"abc"
    assert convert_image(data, KEEP).data is data
    assert warnings_of(convert_image(data, KEEP)) == ["trailing_data"]
    pixels_of(convert_image(data, KEEP))


def test_transparency_that_libpng_drops_gives_three_channels() -> None:
    values = RGB[:, :, :1] >> 4
    for transparency in (bytes(20), b""):
        data = samples.png(values, 8, 3, palette=PALETTE, transparency=transparency)
        stored = convert_image(data, KEEP)
        assert stored.channels == 3
        pixels_of(stored)


def test_an_animated_png_is_kept_and_refused_on_request() -> None:
    data = samples.apng([RGB, RGB[::-1].copy()])
    stored = convert_image(data, KEEP)
    assert stored.data is data
    assert np.array_equal(pixels_of(stored), RGB)
    assert code_of(data, ImagePolicy(animated="reject")) == "animated_image"
    assert convert_image(data, ImagePolicy(image_format="raw")).changed == ("first_frame", "decoded_to_raw")


def test_sides_that_libpng_refuses_are_refused() -> None:
    for width, height in ((1_000_001, 1), (1, 1_000_001)):
        rows = b"\0" * height * (1 + (width + 7) // 8)
        data = (
            samples.png_header(width, height, 1, 0)
            + samples.png_chunk(b"IDAT", samples.compressed(rows))
            + samples.PNG_END
        )
        assert code_of(data) == "too_many_pixels"
        assert convert_image(data, ImagePolicy(image_format="raw")).height == height


@pytest.mark.parametrize("content", [b"", b"\x08", b"\x08\x00\x00\x00", b"no zlib", b"\x09\x9a12345"])
@pytest.mark.parametrize("ending", [samples.PNG_END, b"", samples.PNG_END + b"more"])
def test_a_png_without_compressed_data_has_no_window_to_set_right(content: bytes, ending: bytes) -> None:
    """Its data are not looked at with ``header``, and are at fault otherwise."""
    head = samples.png_chunk(b"IHDR", struct.pack(">IIBBBBB", 200, 200, 8, 2, 0, 0, 0))
    data = PNG[:8] + head + samples.png_chunk(b"IDAT", content) + ending
    with contextlib.suppress(ImageError):
        stored = convert_image(data, ImagePolicy(validate="header"))
        assert stored.data.startswith(data[: len(data) - len(ending)])
    with pytest.raises(ImageError):
        convert_image(data, ImagePolicy())
    assert size_beyond_doubt(data, 10**8) is None


@pytest.mark.parametrize("policy", [KEEP, HEADER, STRICT], ids=["full", "header", "strict"])
def test_colour_of_a_quarter_of_the_rows_is_no_bug_of_the_decoder(policy: ImagePolicy) -> None:
    """4:4:1, which the binding of libjpeg-turbo has no name for: 4:1:1 whose frame header says 1x4 in place of 4x1."""
    data = bytearray(simplejpeg.encode_jpeg(samples.gradient(32, 32), 90, "RGB", "411"))
    sampling = data.index(b"\xff\xc0") + 11
    assert data[sampling] == 0x41
    data[sampling] = 0x14
    stored = convert_image(bytes(data), policy)
    assert (stored.data, stored.changed, stored.warnings) == (bytes(data), (), ())
    assert by_tensorflow(stored.data).shape == (32, 32, 3)
