"""What cannot be stored as it is, or is to be changed: pixels are those that Pillow sees, every change is counted."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image, ImageCms

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import convert_image
from beam_tfrecord.options.config import ImagePolicy
from tests import image_kinds as kinds
from tests import image_samples as samples
from tests.image_judge import by_pillow, by_tensorflow, code_of, pixels_of, psnr, warnings_of

KEEP = ImagePolicy()
PNG = ImagePolicy(image_format="png")
RAW = ImagePolicy(image_format="raw")
RGB, GRAY, RGBA = kinds.rgb(), kinds.gray(), kinds.rgba()
DEEP, DEEP_GRAY, DEEP_RGBA = kinds.rgb("uint16"), kinds.gray("uint16"), kinds.rgba("uint16")


# ---------------------------------------------------------------------------------------------------------------------
# Lossless ways: equal to the last bit.

LOSSLESS = {
    "gif": (kinds.KINDS["GIF"](), "RGB"),
    "gif with transparency": (kinds.KINDS["GIF, transparent"](), "RGBA"),
    "gif grey": (samples.save(GRAY, "GIF", optimize=False), "L"),
    "webp lossless": (samples.save(RGB, "WEBP", lossless=True), "RGB"),
    "webp lossless with alpha": (samples.save(RGBA, "WEBP", lossless=True, exact=True), "RGBA"),
    "webp lossy with alpha": (samples.save(RGBA, "WEBP"), "RGBA"),
    "bmp": (samples.save(RGB, "BMP"), "RGB"),
    "bmp with palette": (kinds.KINDS["BMP, palette"](), "RGB"),
    "bmp black and white": (samples.save(samples.as_image(GRAY).convert("1"), "BMP"), "L"),
    "tiff": (samples.tiff(RGB), "RGB"),
    "tiff in tiles": (samples.tiff(RGB, tile=(16, 16)), "RGB"),
    "tiff big-endian in planes": (samples.tiff(RGB, order=">", planar=True), "RGB"),
    "tiff deflate in tiles": (samples.tiff(RGB, compression=8, tile=(16, 16)), "RGB"),
    "tiff lzw": (samples.save(RGB, "TIFF", compression="tiff_lzw"), "RGB"),
    "tiff grey": (samples.tiff(GRAY), "L"),
    "tiff grey, white is zero": (samples.tiff(GRAY, photometric=0), "L"),
    "tiff grey and alpha": (samples.save(kinds.gray_alpha(), "TIFF"), "LA"),
    "tiff rgba": (samples.tiff(RGBA, extra=[2]), "RGBA"),
    "tiff with palette": (samples.save(samples.as_image(RGB).quantize(16), "TIFF"), "RGB"),
    "tiff fax": (kinds.KINDS["TIFF, black and white (fax)"](), "L"),
    "jpeg 2000": (samples.save(RGB, "JPEG2000"), "RGB"),
    "jpeg 2000 rgba": (samples.save(RGBA, "JPEG2000"), "RGBA"),
    "pbm": (kinds.KINDS["PBM"](), "L"),
    "pgm": (samples.save(GRAY, "PPM"), "L"),
    "ppm": (samples.save(RGB, "PPM"), "RGB"),
    "qoi": (samples.save(RGBA, "QOI"), "RGBA"),
    "sgi": (samples.save(RGB, "SGI"), "RGB"),
    "pcx": (samples.save(RGB, "PCX"), "RGB"),
    "tga": (samples.save(RGBA, "TGA"), "RGBA"),
    "dds": (samples.save(RGB, "DDS"), "RGB"),
    "avif with alpha": (samples.save(RGBA, "AVIF"), "RGBA"),
}


@pytest.mark.parametrize("name", LOSSLESS)
def test_lossless_ways_give_exactly_the_pixels_that_pillow_sees(name: str) -> None:
    data, mode = LOSSLESS[name]
    stored = convert_image(data, KEEP)
    assert (stored.format, stored.dtype) == ("png", "uint8")
    assert "transcoded" in stored.changed
    assert ("palette_expanded" in stored.changed) == ("palette" in name or name.startswith("gif with") or name == "gif")
    assert np.array_equal(pixels_of(stored), by_pillow(data, mode))
    assert np.array_equal(pixels_of(convert_image(data, RAW)), by_pillow(data, mode))


JPEGS = {
    "4:2:0": samples.save(RGB, "JPEG", quality=90),
    "4:4:4": samples.save(RGB, "JPEG", quality=90, subsampling=0),
    "4:2:2": samples.save(RGB, "JPEG", quality=90, subsampling=1),
    "progressive": samples.save(RGB, "JPEG", quality=90, progressive=True),
    "grey": samples.save(GRAY, "JPEG", quality=90),
    "stored as RGB": samples.save(RGB, "JPEG", keep_rgb=True),
    "complained of": samples.save(RGB, "JPEG", quality=95)[:-120] + samples.save(RGB, "JPEG", quality=95)[-80:],
}


@pytest.mark.parametrize("name", JPEGS)
def test_a_jpeg_as_png_or_raw_has_exactly_the_pixels_that_pillow_sees(name: str) -> None:
    mode = "L" if name == "grey" else "RGB"
    expected = by_pillow(JPEGS[name], mode)
    as_png, as_raw = convert_image(JPEGS[name], PNG), convert_image(JPEGS[name], RAW)
    assert (as_png.format, as_png.changed) == ("png", ("transcoded",))
    assert (as_raw.format, as_raw.changed) == ("raw", ("decoded_to_raw",))
    assert np.array_equal(pixels_of(as_png), expected)
    assert np.array_equal(pixels_of(as_raw), expected)


DEEP_LOSSLESS = {
    "png grey": (samples.png(DEEP_GRAY, 16, 0), DEEP_GRAY),
    "png grey and alpha": (samples.png(DEEP_RGBA[:, :, [0, 3]], 16, 4), DEEP_RGBA[:, :, [0, 3]]),
    "png rgb": (samples.png(DEEP, 16, 2), DEEP),
    "png rgba": (samples.png(DEEP_RGBA, 16, 6), DEEP_RGBA),
    "png rgb interlaced": (samples.png(DEEP, 16, 2, interlaced=True), DEEP),
    "png rgba interlaced": (samples.png(DEEP_RGBA, 16, 6, interlaced=True), DEEP_RGBA),
    "png grey and alpha interlaced": (
        samples.png(DEEP_RGBA[:, :, [0, 3]], 16, 4, interlaced=True),
        DEEP_RGBA[:, :, [0, 3]],
    ),
    "tiff grey": (samples.tiff(DEEP_GRAY), DEEP_GRAY),
    "tiff grey big-endian": (samples.tiff(DEEP_GRAY, order=">"), DEEP_GRAY),
    "tiff grey deflate big-endian": (samples.tiff(DEEP_GRAY, order=">", compression=8), DEEP_GRAY),
    "tiff grey, white is zero": (samples.tiff(DEEP_GRAY, photometric=0), 65535 - DEEP_GRAY),
    "tiff grey of 32 bits": (samples.tiff(DEEP_GRAY.astype(np.int32)), DEEP_GRAY),
    "tiff rgb": (samples.tiff(DEEP), DEEP),
    "tiff rgb big-endian": (samples.tiff(DEEP, order=">"), DEEP),
    "tiff rgb deflate": (samples.tiff(DEEP, compression=8), DEEP),
    "tiff rgb deflate big-endian": (samples.tiff(DEEP, compression=8, order=">"), DEEP),
    "tiff rgb in tiles": (samples.tiff(DEEP, tile=(16, 16)), DEEP),
    "tiff rgb deflate in tiles": (samples.tiff(DEEP, tile=(16, 16), compression=8), DEEP),
    "tiff rgba": (samples.tiff(DEEP_RGBA, extra=[2]), DEEP_RGBA),
    "tiff rgbx": (samples.tiff(DEEP_RGBA, extra=[0]), DEEP_RGBA[:, :, :3]),
    "jpeg 2000 grey": (samples.save(DEEP_GRAY, "JPEG2000"), DEEP_GRAY),
    "ppm": (kinds.KINDS["PPM of 16 bits"](), DEEP),
    "pgm": (b"P5 24 16 65535\n" + DEEP_GRAY.astype(">u2").tobytes(), DEEP_GRAY),
}


@pytest.mark.parametrize("name", DEEP_LOSSLESS)
def test_16_bits_are_kept_to_the_last(name: str) -> None:
    data, expected = DEEP_LOSSLESS[name]
    kept, raw = convert_image(data, KEEP), convert_image(data, RAW)
    assert (kept.format, kept.dtype, raw.dtype) == ("png", "uint16", "uint16")
    assert np.array_equal(pixels_of(kept), expected)
    assert np.array_equal(pixels_of(raw), expected)
    assert raw.data == expected.astype("<u2").tobytes()
    assert "depth_scaled" not in kept.changed


def test_premultiplied_16_bit_colour_is_divided_by_its_alpha() -> None:
    alpha = DEEP_RGBA[:, :, 3:].astype(np.uint64)
    multiplied = np.concatenate([DEEP_RGBA[:, :, :3] * alpha // 65535, alpha], axis=2).astype(np.uint16)
    pixels = pixels_of(convert_image(samples.tiff(multiplied, extra=[1]), KEEP))
    assert np.array_equal(pixels[:, :, 3], DEEP_RGBA[:, :, 3])
    solid = DEEP_RGBA[:, :, 3] > 20_000
    assert np.abs(pixels[solid].astype(int) - DEEP_RGBA[solid]).max() <= 4


@pytest.mark.parametrize("name", [name for name, (_, pixels) in DEEP_LOSSLESS.items() if pixels.shape[2] in (1, 3)])
def test_16_bits_are_scaled_and_not_clipped_when_8_are_asked_for(name: str) -> None:
    data, expected = DEEP_LOSSLESS[name]
    stored = convert_image(data, ImagePolicy(image_format="jpeg", quality=100))
    assert (stored.format, stored.dtype, stored.changed) == ("jpeg", "uint8", ("depth_scaled", "transcoded"))
    assert psnr(pixels_of(stored), expected / 257) > 33


def test_a_ppm_with_an_odd_maximum_is_stretched_to_16_bits() -> None:
    data = b"P6 # a comment\n1 2\n#another\n1000\n" + np.array([0, 1000, 500, 1, 999, 250], ">u2").tobytes()
    pixels = pixels_of(convert_image(data, KEEP))
    assert pixels.reshape(-1).tolist() == [0, 65535, 32767, 65, 65469, 16383]
    assert code_of(data[:-1]) == "truncated_image"


# ---------------------------------------------------------------------------------------------------------------------
# Lossy ways: close.

LOSSY = {
    "webp": samples.save(RGB, "WEBP", quality=90),
    "avif": samples.save(RGB, "AVIF", quality=90),
    "tiff with jpeg": samples.save(RGB, "TIFF", compression="jpeg", quality=95),
    "jpeg 2000": samples.save(RGB, "JPEG2000", irreversible=True),
    "arithmetic jpeg": kinds.ARITHMETIC,
}


@pytest.mark.parametrize("name", LOSSY)
def test_what_is_lossy_already_becomes_jpeg_of_good_quality(name: str) -> None:
    stored = convert_image(LOSSY[name], KEEP)
    assert (stored.format, stored.channels, stored.changed) == ("jpeg", 3, ("transcoded",))
    assert psnr(pixels_of(stored), by_pillow(LOSSY[name], "RGB")) > 33
    exact = convert_image(LOSSY[name], PNG)
    assert np.array_equal(pixels_of(exact), by_pillow(LOSSY[name], "RGB"))


def test_quality_is_the_quality_of_what_is_encoded() -> None:
    data = samples.save(samples.gradient(200, 150), "PPM")
    sizes = [len(convert_image(data, ImagePolicy(image_format="jpeg", quality=q)).data) for q in (20, 60, 95, 100)]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 3 * sizes[0]


@pytest.mark.parametrize(
    ("data", "sampling"),
    [
        (samples.save(RGB, "JPEG", subsampling=0), 0),
        (samples.save(RGB, "JPEG", subsampling=1), 0),
        (samples.save(RGB, "JPEG", subsampling=2), 2),
        (samples.save(RGB, "WEBP"), 2),
        (samples.save(RGB, "AVIF"), 0),
        (samples.save(RGB, "PPM"), 0),
    ],
)
def test_colour_is_subsampled_only_where_the_source_was(data: bytes, sampling: int) -> None:
    from PIL import JpegImagePlugin

    stored = convert_image(data, ImagePolicy(image_format="jpeg", resize=12))
    with Image.open(io.BytesIO(stored.data)) as image:
        assert JpegImagePlugin.get_sampling(image) == sampling


# ---------------------------------------------------------------------------------------------------------------------
# CMYK.


def test_cmyk_and_ycck_have_the_colours_that_people_see() -> None:
    red = Image.new("CMYK", (24, 16), (0, 255, 255, 0))
    y, cb, cr = Image.new("RGB", (1, 1), (0, 255, 255)).convert("YCbCr").getpixel((0, 0))  # type: ignore[misc]
    for data in (samples.save(red, "JPEG"), samples.ycck((y, cb, cr, 255)), samples.save(red, "TIFF")):
        stored = convert_image(data, KEEP)
        assert stored.channels == 3
        assert "cmyk_to_rgb" in stored.changed
        pixel = pixels_of(stored)[8, 12].astype(int)
        assert np.abs(pixel - (255, 0, 0)).max() < 12
        with Image.open(io.BytesIO(stored.data)) as image:
            assert image.mode == "RGB"


def test_cmyk_is_as_pillow_sees_it() -> None:
    data = samples.save(samples.as_image(RGB).convert("CMYK"), "JPEG", quality=95)
    assert np.array_equal(pixels_of(convert_image(data, PNG)), by_pillow(data, "RGB"))
    assert psnr(pixels_of(convert_image(data, KEEP)), RGB) > 36


def test_cmyk_kept_as_jpeg_is_not_told_to_be_transcoded() -> None:
    data = samples.save(samples.as_image(RGB).convert("CMYK"), "JPEG")
    assert convert_image(data, KEEP).changed == ("cmyk_to_rgb",)


# ---------------------------------------------------------------------------------------------------------------------
# Colour and transparency.


@pytest.mark.parametrize("format", ["keep", "png", "raw"])
def test_gray_is_the_gray_of_pillow(format: str) -> None:
    policy = ImagePolicy(color="gray", image_format=format)
    stored = convert_image(samples.save(RGB, "PNG"), policy)
    assert stored.channels == 1
    assert stored.changed[0] == "color_converted"
    assert np.array_equal(pixels_of(stored), by_pillow(samples.save(RGB, "PNG"), "L"))


def test_gray_of_16_bits_stays_16_bits() -> None:
    pixels = pixels_of(convert_image(samples.png(DEEP, 16, 2), ImagePolicy(color="gray")))
    assert pixels.dtype == np.uint16
    exact = DEEP @ np.array([0.299, 0.587, 0.114])
    assert np.abs(pixels[:, :, 0] - exact).max() < 2


def test_rgb_of_gray_has_three_equal_channels() -> None:
    for data in (samples.png(GRAY, 8, 0), samples.png(DEEP_GRAY, 16, 0)):
        pixels = pixels_of(convert_image(data, ImagePolicy(color="rgb")))
        source = pixels_of(convert_image(data, KEEP))
        assert np.array_equal(pixels, np.repeat(source, 3, axis=2))


@pytest.mark.parametrize("background", [(255, 255, 255), (0, 0, 0), (200, 10, 90)])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_transparency_is_laid_on_the_background_when_it_must_go(background: tuple[int, int, int], dtype: str) -> None:
    rgba = kinds.rgba(dtype)
    top = np.iinfo(dtype).max
    alpha = rgba[:, :, 3:] / top
    expected = rgba[:, :, :3] * alpha + np.array(background) / 255 * top * (1 - alpha)
    data = samples.png(rgba, 8 if dtype == "uint8" else 16, 6)
    stored = convert_image(data, ImagePolicy(color="rgb", background=background))
    assert stored.changed == ("transparency_composited",)
    assert np.abs(pixels_of(stored) - expected).max() <= 0.5 + 1e-6
    as_jpeg = convert_image(data, ImagePolicy(image_format="jpeg", background=background, quality=100))
    assert psnr(pixels_of(as_jpeg), expected * 255 / top) > 38
    gray = convert_image(data, ImagePolicy(color="gray", background=background))
    assert gray.changed == ("transparency_composited", "color_converted")
    assert np.abs(pixels_of(gray)[:, :, 0] - expected @ np.array([0.299, 0.587, 0.114])).max() < 2


def test_gray_with_alpha_stays_gray_on_a_gray_background_and_becomes_colour_on_a_coloured_one() -> None:
    data = samples.png(kinds.gray_alpha(), 8, 4)
    assert convert_image(data, ImagePolicy(image_format="jpeg")).channels == 1
    assert convert_image(data, ImagePolicy(image_format="jpeg", background="#ff0000")).channels == 3


@pytest.mark.parametrize("depth", [1, 2, 4, 8, 16])
def test_a_transparent_colour_shows_the_background_when_transparency_must_go(depth: int) -> None:
    values = np.arange(8).reshape(2, 4, 1) % (1 << depth) if depth < 16 else np.arange(8).reshape(2, 4, 1) * 900
    key = int(values[0, 1, 0])
    data = samples.png(values, depth, 0, transparency=key.to_bytes(2, "big"))
    kept = pixels_of(convert_image(data, KEEP))
    stored = convert_image(data, ImagePolicy(color="rgb", background=(9, 99, 199)))
    pixels = pixels_of(stored)
    scale = 257 if depth == 16 else 1
    is_key = values[:, :, 0] == key
    assert (pixels[is_key] == np.array((9, 99, 199)) * scale).all()
    assert np.array_equal(pixels[~is_key], np.repeat(kept[~is_key], 3, axis=1))


def test_a_transparent_rgb_colour_shows_the_background_too() -> None:
    for depth, pixels in ((8, RGB), (16, DEEP)):
        key = pixels[3, 5]
        data = samples.png(pixels, depth, 2, transparency=key.astype(">u2").tobytes())
        stored = pixels_of(convert_image(data, ImagePolicy(color="rgb", background="black")))
        is_key = (pixels == key).all(axis=2)
        assert (stored[is_key] == 0).all()
        assert np.array_equal(stored[~is_key], pixels[~is_key])
        assert convert_image(data, KEEP).data is data


# ---------------------------------------------------------------------------------------------------------------------
# Colour profiles.

SWAPPED = samples.swapped_profile()


def in_srgb(image: Image.Image, profile: bytes) -> samples.Array:
    converted = ImageCms.profileToProfile(
        image,
        ImageCms.ImageCmsProfile(io.BytesIO(profile)),
        ImageCms.createProfile("sRGB"),
        renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC,
        outputMode="RGB",
        flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )
    assert converted is not None
    return np.asarray(converted)


def test_a_profile_is_kept_with_the_bytes_and_applied_when_pixels_are_encoded_anew() -> None:
    data = samples.save(RGB, "PNG", icc_profile=SWAPPED)
    assert convert_image(data, KEEP).data is data
    stored = convert_image(data, RAW)
    assert stored.changed == ("profile_converted", "decoded_to_raw")
    pixels = pixels_of(stored)
    assert np.array_equal(pixels, in_srgb(samples.as_image(RGB), SWAPPED))
    assert psnr(pixels, RGB) < 30, "the profile of this test changes nothing"
    assert psnr(pixels, RGB[:, :, ::-1]) > 40, "red and blue are swapped by the profile"
    jpeg = samples.save(RGB, "JPEG", quality=100, subsampling=0, icc_profile=SWAPPED)
    assert psnr(pixels_of(convert_image(jpeg, PNG)), RGB[:, :, ::-1]) > 35
    for format in ("WEBP", "TIFF", "AVIF"):
        other = samples.save(RGB, format, icc_profile=SWAPPED)
        assert "profile_converted" in convert_image(other, KEEP).changed


def test_alpha_is_not_touched_by_a_profile() -> None:
    stored = pixels_of(convert_image(samples.save(RGBA, "PNG", icc_profile=SWAPPED), ImagePolicy(image_format="raw")))
    assert np.array_equal(stored[:, :, 3], RGBA[:, :, 3])
    assert np.array_equal(stored[:, :, :3], in_srgb(samples.as_image(RGBA[:, :, :3].copy()), SWAPPED))


def test_srgb_is_not_converted_to_itself() -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    stored = convert_image(samples.save(RGB, "PNG", icc_profile=profile), RAW)
    assert stored.changed == ("decoded_to_raw",)
    assert np.array_equal(pixels_of(stored), RGB)


@pytest.mark.parametrize("profile", [b"no profile", bytes(200), SWAPPED[:150], SWAPPED[:-200]])
def test_a_bad_profile_only_warns(profile: bytes) -> None:
    for data in (samples.save(RGB, "PNG", icc_profile=profile), samples.save(RGB, "JPEG", icc_profile=profile)):
        assert convert_image(data, KEEP).data is data
        stored = convert_image(data, RAW)
        assert warnings_of(stored) == ["icc_damaged"]
        assert np.array_equal(pixels_of(stored), by_pillow(data, "RGB"))


def test_a_profile_of_a_tiff_that_cannot_be_used_warns() -> None:
    numbers = samples.tiff(RGB, tags={34675: ("H", [1, 2, 3, 4])})
    for policy in (KEEP, RAW):
        assert warnings_of(convert_image(numbers, policy)) == ["icc_damaged"]
    # Of 8 bits with a sign, which Pillow opens as others.
    signed = samples.tiff((GRAY >> 1).astype(np.int8), tags={34675: ("B", list(SWAPPED))})
    stored = convert_image(signed, KEEP)
    assert warnings_of(stored) == ["icc_damaged"]
    assert np.array_equal(pixels_of(stored), GRAY >> 1)


def test_a_profile_for_other_colours_than_the_image_has_only_warns() -> None:
    stored = convert_image(samples.save(GRAY, "JPEG", icc_profile=SWAPPED), RAW)
    assert warnings_of(stored) == ["icc_damaged"]


def test_a_profile_of_16_bit_pixels_is_embedded_or_applied_at_8_bits_or_told() -> None:
    iccp = samples.png_chunk(b"iCCP", b"x\0\0" + samples.compressed(SWAPPED))
    data = samples.png(DEEP, 16, 2, before=iccp)
    turned = convert_image(data, ImagePolicy(resize=10))
    with Image.open(io.BytesIO(turned.data)) as image:
        assert image.info["icc_profile"] == SWAPPED
    assert "profile_converted" not in turned.changed
    jpeg = convert_image(data, ImagePolicy(image_format="jpeg", quality=100))
    assert jpeg.changed == ("depth_scaled", "profile_converted", "transcoded")
    assert psnr(pixels_of(jpeg), DEEP[:, :, ::-1] / 257) > 35
    assert warnings_of(convert_image(data, RAW)) == ["profile_ignored"]
    assert warnings_of(convert_image(data, ImagePolicy(color="gray"))) == ["profile_ignored"]


def test_lab_becomes_srgb() -> None:
    stored = convert_image(kinds.KINDS["TIFF, LAB"](), KEEP)
    assert stored.changed == ("profile_converted", "transcoded")
    assert not stored.warnings
    assert psnr(pixels_of(stored), RGB) > 35


# ---------------------------------------------------------------------------------------------------------------------
# Values without a scale.


def test_floating_point_of_0_to_1_is_scaled_and_any_other_refused_with_a_cure() -> None:
    values = np.linspace(0, 1, 24 * 16, dtype=np.float32).reshape(16, 24, 1)
    stored = convert_image(samples.tiff(values), KEEP)
    assert "depth_scaled" in stored.changed
    assert np.array_equal(pixels_of(stored), np.rint(values * 65535))
    for bad in (values * 1.01, values - 0.01, np.where(values > 0.5, np.nan, values), np.where(values, values, np.inf)):
        with pytest.raises(ImageError, match="scale") as caught:
            convert_image(samples.tiff(bad.astype(np.float32)), KEEP)
        assert caught.value.code == "unsupported_format"


def test_whole_numbers_of_32_bits_are_kept_where_16_hold_them() -> None:
    values = DEEP_GRAY.astype(np.int32)
    assert np.array_equal(pixels_of(convert_image(samples.tiff(values), KEEP)), values)
    for shift in (65536 - int(values.max()), -1 - int(values.min())):
        with pytest.raises(ImageError, match="65535") as caught:
            convert_image(samples.tiff(values + np.int32(shift)), KEEP)
        assert caught.value.code == "unsupported_format"


def test_signed_16_bit_values_below_zero_are_refused() -> None:
    assert code_of(samples.tiff(np.full((4, 4, 1), -5, np.int16))) == "unsupported_format"


def test_16_bit_colour_in_planes_which_pillow_mixes_up_is_refused() -> None:
    for compression in (1, 8):
        assert code_of(samples.tiff(DEEP, planar=True, compression=compression)) == "unsupported_format"


def test_pixels_that_pillow_has_no_mode_for_are_called_unsupported_and_not_corrupt() -> None:
    for pixels in (samples.gradient(9, 9, 3).astype(np.float32), samples.gradient(9, 9, 7)):
        assert code_of(samples.tiff(pixels)) == "unsupported_format"
    psd = bytearray(kinds.KINDS["PSD"]())
    psd[23] = 16
    assert code_of(bytes(psd)) == "unsupported_format"


# ---------------------------------------------------------------------------------------------------------------------
# Icons, camera raw, and what is no image.


def test_of_an_icon_the_largest_picture_is_stored() -> None:
    small, large = samples.gradient(8, 8, 4), samples.gradient(24, 16, 4)
    data = samples.ico([(8, 8, samples.png(small, 8, 6)), (24, 16, samples.png(large, 8, 6)), (8, 8, b"junk")])
    stored = convert_image(data, KEEP)
    assert stored.source_format == "ico"
    assert np.array_equal(pixels_of(stored), large)


def test_an_icon_that_was_cut_before_its_largest_picture_is_not_a_smaller_one() -> None:
    small, large = samples.png(samples.gradient(8, 8, 4), 8, 6), samples.png(samples.gradient(24, 16, 4), 8, 6)
    data = samples.ico([(8, 8, small), (24, 16, large)])
    assert code_of(data[: data.index(large) + 20]) == "truncated_image"
    data = samples.ico([(24, 16, large), (8, 8, small)])
    assert np.array_equal(pixels_of(convert_image(data[: data.index(small)], KEEP)), samples.gradient(24, 16, 4))


def test_a_bitmap_icon_is_as_pillow_sees_it() -> None:
    data = kinds.KINDS["ICO, CUR"]()
    assert np.array_equal(pixels_of(convert_image(data, KEEP)), by_pillow(data, "RGBA"))
    cursor = bytearray(data)
    cursor[2] = 2
    stored = convert_image(bytes(cursor), KEEP)
    assert stored.source_format == "cur"
    assert np.array_equal(pixels_of(stored), by_pillow(data, "RGBA"))


def test_the_preview_in_a_camera_raw_file_is_not_taken_for_the_picture() -> None:
    for tags in ({254: ("I", [1])}, {50706: ("B", [1, 4, 0, 0])}):
        with pytest.raises(ImageError, match="camera raw") as caught:
            convert_image(samples.tiff(RGB, tags=tags), KEEP)
        assert caught.value.code == "unsupported_format"


@pytest.mark.parametrize("name", ["HEIC (pillow-heif not installed)", "SVG, EPS, WMF, EMF"])
def test_an_undecodable_format_is_named_with_its_cure(name: str) -> None:
    with pytest.raises(ImageError) as caught:
        convert_image(kinds.KINDS[name](), KEEP)
    assert caught.value.code == "unsupported_format"
    assert ("pillow-heif" in caught.value.message) == name.startswith("HEIC")
    assert ("draw it to PNG" in caught.value.message) == name.startswith("SVG")


def test_an_error_page_is_called_one() -> None:
    with pytest.raises(ImageError, match="HTML page") as caught:
        convert_image(b"<!DOCTYPE html><html><title>404</title></html>", KEEP)
    assert caught.value.code == "not_an_image"
    assert code_of(b"") == "empty_file"


def test_messages_are_the_same_on_every_run() -> None:
    for data in (b"GIF89a" + bytes(20), samples.tiff(RGB)[:50], b"RIFF\0\0\0\0WEBPVP8 " + bytes(30)):
        messages = set()
        for _ in range(3):
            with pytest.raises(ImageError) as caught:
                convert_image(data, KEEP)
            messages.add(caught.value.message)
        assert len(messages) == 1
        assert "0x" not in messages.pop()


def test_tensorflow_decodes_what_the_16_bit_encoder_writes_for_every_channel_count() -> None:
    for channels in (1, 2, 3, 4):
        pixels = samples.gradient(7, 5, channels, "uint16")
        data = samples.png(pixels, 16, {1: 0, 2: 4, 3: 2, 4: 6}[channels])
        stored = convert_image(data, ImagePolicy(resize="7x4", resize_mode="crop"))
        assert stored.data is not data
        assert np.array_equal(by_tensorflow(stored.data, "uint16"), pixels[0:4] if stored.height == 4 else pixels)
