from __future__ import annotations

import contextlib
import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beam_tfrecord.annotations.mask_file import InstanceMapKind, MaskFile, SemanticMaskKind
from beam_tfrecord.annotations.mask_images import HEAD, is_deep, is_deep_head
from beam_tfrecord.core.elements import Member
from beam_tfrecord.core.geometry import PixelFrame
from beam_tfrecord.errors import AnnotationError
from tests import image_samples as samples
from tests.annotation_tools import (
    UPRIGHT,
    make_placement,
    make_schema,
    nearest,
    parse,
    pixels,
    png,
    still,
    through_tensorflow,
    turned,
)

KIND = SemanticMaskKind()
INDICES = np.zeros((6, 8), np.uint8)
INDICES[1:4, 2:7] = 15
INDICES[0] = 255


def encoded(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def palette_png(indices: Any = INDICES) -> bytes:
    """As VOC has it: colours that say nothing, indices that do."""
    height, width = indices.shape
    image = Image.frombytes("P", (width, height), indices.tobytes())
    image.putpalette([(37 * place + 11) % 256 for place in range(768)])
    return encoded(image)


def grey_png(bits: int, indices: Any) -> bytes:
    """A grey PNG of few bits per sample, written by hand: Pillow does not write it."""
    height, width = indices.shape
    rows = b""
    for row in indices:
        packed = int("".join(f"{value:0{bits}b}" for value in row).ljust(-(-width * bits // 8) * 8, "0"), 2)
        rows += b"\0" + packed.to_bytes(-(-width * bits // 8), "big")

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, bits, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def place(data: bytes, frame: PixelFrame, **named: Any) -> MaskFile:
    return KIND.place(MaskFile("m.png"), make_placement(frame, files={"m.png": data}, **named))


def stored(value: MaskFile, *facets: str) -> bytes:
    """The PNG of a mask in a record."""
    found = KIND.features(value, make_schema(["semantic_mask", *facets]))
    data: bytes = found["image/segmentation/class/encoded"].values[0]
    return data


def test_the_field_is_a_path() -> None:
    assert parse(KIND, {"mask": "masks/a.png"}) == MaskFile("masks/a.png")
    assert parse(InstanceMapKind(), {"mask": "a.png"}) is None
    member = Member("a.zip", ("m.png",))
    assert parse(KIND, {"mask": "m.png", "mask_member": member}) == MaskFile("m.png", member)


def test_palette_indices_are_what_tensorflow_decodes() -> None:
    placed = place(palette_png(), still(8, 6))
    assert np.array_equal(pixels(stored(placed)), INDICES)
    schema = make_schema(["semantic_mask"])
    parsed = through_tensorflow({"semantic_mask": placed}, schema)
    assert parsed == {"image/segmentation/class/encoded": stored(placed), "image/segmentation/class/format": b"png"}


def test_values_of_16_bits_are_kept() -> None:
    import tensorflow as tf

    deep = np.arange(48, dtype=np.uint16).reshape(6, 8) * 1000
    data = stored(place(png(deep), still(8, 6)))
    assert np.array_equal(tf.io.decode_png(data, dtype=tf.uint16).numpy()[..., 0], deep)


def test_among_deep_masks_those_of_8_bits_get_16_and_keep_their_values() -> None:
    import tensorflow as tf

    data = stored(place(palette_png(), still(8, 6)), "semantic_mask/deep")
    assert np.array_equal(tf.io.decode_png(data, dtype=tf.uint16).numpy()[..., 0], INDICES)
    schema = make_schema(["semantic_mask", "semantic_mask/deep"])
    assert KIND.spec(schema)[0].pixel_dtype == "uint16"


def test_among_masks_of_8_bits_only_those_with_greater_values_have_16() -> None:
    narrow, deep = place(png(INDICES.astype(np.uint16)), still(8, 6)), place(png(INDICES * np.uint16(256)), still(8, 6))
    assert np.array_equal(pixels(stored(narrow)), INDICES)
    with Image.open(io.BytesIO(stored(narrow))) as image:
        assert image.mode == "L"
    schema = make_schema(["semantic_mask"])
    assert list(KIND.exceptions(narrow, schema)) == []
    assert list(KIND.exceptions(deep, schema)) == ["semantic_mask/mixed"]
    assert list(KIND.exceptions(deep, make_schema(["semantic_mask", "semantic_mask/deep"]))) == []
    spec = KIND.spec(make_schema(["semantic_mask", "semantic_mask/mixed"]))[0]
    assert (spec.role, spec.dtype) == ("scalar", "bytes")


def test_colours_have_8_bits_whatever_the_others_have() -> None:
    colours = np.arange(144, dtype=np.uint8).reshape(6, 8, 3)
    placed = place(png(colours), still(8, 6))
    assert np.array_equal(pixels(stored(placed, "semantic_mask/deep")), colours)
    assert list(KIND.exceptions(placed, make_schema(["semantic_mask"]))) == []
    assert list(KIND.exceptions(placed, make_schema(["semantic_mask", "semantic_mask/deep"])))


def test_eight_bits_can_be_asked_for() -> None:
    values = INDICES.astype(np.uint16)
    assert np.array_equal(pixels(stored(place(png(values), still(8, 6), mask_bits="8"))), INDICES)
    values[2, 2] = 256
    with pytest.raises(AnnotationError, match="value 256") as caught:
        place(png(values), still(8, 6), mask_bits="8")
    assert caught.value.code == "bad_mask"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (palette_png(), False),
        (png(INDICES), False),
        (png(INDICES.astype(np.uint16)), True),
        (encoded(Image.fromarray(INDICES), "TIFF"), False),
        (encoded(Image.fromarray(INDICES.astype(np.uint16)), "TIFF"), True),
        (encoded(Image.fromarray(INDICES.astype(np.uint16)), "PPM"), True),
        (b"<html>", False),
        (b"", False),
        (png(INDICES.astype(np.uint16))[:20], False),
    ],
)
def test_the_depth_of_a_file_is_told_before_it_is_decoded(data: bytes, expected: bool) -> None:
    assert is_deep(data) == expected
    assert is_deep_head(data[:HEAD]) == (expected if data.startswith(b"\x89PNG") and len(data) > HEAD else None)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (png(INDICES), INDICES),
        (png(np.arange(144, dtype=np.uint8).reshape(6, 8, 3)), np.arange(144).reshape(6, 8, 3)),
        (encoded(Image.fromarray(INDICES > 0)), (INDICES > 0).astype(np.uint8)),
        (encoded(Image.fromarray(INDICES).convert("LA")), INDICES),
        (encoded(Image.fromarray(INDICES), "BMP"), INDICES),
        (encoded(Image.fromarray(INDICES), "TIFF"), INDICES),
        (encoded(Image.merge("RGBA", [Image.fromarray(INDICES)] * 4)), np.stack([INDICES] * 3, axis=-1)),
    ],
)
def test_other_masks_keep_their_values(data: bytes, expected: Any) -> None:
    assert np.array_equal(pixels(stored(place(data, still(8, 6)))), expected)


VALUES = np.random.default_rng(3).integers(0, 16, (17, 23, 1), dtype=np.uint8)
DEEP = VALUES.astype(np.uint16) * 4000
PALETTE = bytes(np.random.default_rng(4).integers(0, 256, 48, dtype=np.uint8))


def few_bits_tiff(bits: int) -> bytes:
    """Grey samples of 2 or 4 bits, the first in the highest bits, each row from a new byte (TIFF 6.0 section 3)."""
    rows = [samples.packed_rows(VALUES & ((1 << bits) - 1), bits)]
    packed = np.frombuffer(b"".join(rows[0]), np.uint8).reshape(17, -1, 1)
    return samples.tiff(packed, tags={256: ("I", [23]), 258: ("H", [bits])})


def indexed(more: int = 0) -> Image.Image:
    image = Image.fromarray(VALUES[:, :, 0] + more)
    image.putpalette(PALETTE)
    return image


MASKS = {
    "palette": (samples.png(VALUES, 8, 3, palette=PALETTE), VALUES),
    "palette of 4 bits": (samples.png(VALUES, 4, 3, palette=PALETTE), VALUES),
    "palette of 2 bits": (samples.png(VALUES & 3, 2, 3, palette=PALETTE[:12]), VALUES & 3),
    "palette of 1 bit": (samples.png(VALUES & 1, 1, 3, palette=PALETTE[:6]), VALUES & 1),
    "palette with transparency": (samples.png(VALUES, 8, 3, palette=PALETTE, transparency=b"\0\1"), VALUES),
    "interlaced palette": (samples.png(VALUES, 4, 3, palette=PALETTE, interlaced=True), VALUES),
    "indices behind the palette": (samples.png(VALUES, 8, 3, palette=PALETTE[:6]), VALUES),
    "grey": (samples.png(VALUES, 8, 0), VALUES),
    "grey of 4 bits": (samples.png(VALUES, 4, 0), VALUES),
    "grey of 2 bits": (samples.png(VALUES & 3, 2, 0), VALUES & 3),
    "grey of 1 bit": (samples.png(VALUES & 1, 1, 0), VALUES & 1),
    "grey with a transparent value": (samples.png(VALUES, 8, 0, transparency=b"\0\0"), VALUES),
    "grey and alpha": (samples.png(np.concatenate([VALUES, VALUES], axis=2), 8, 4), VALUES),
    "16 bits": (samples.png(DEEP, 16, 0), DEEP),
    "bmp with palette": (samples.save(indexed(), "BMP"), VALUES),
    "gif": (samples.save(indexed(), "GIF", optimize=False), VALUES),
    "tiff": (samples.tiff(VALUES), VALUES),
    "tiff of 16 bits": (samples.tiff(DEEP), DEEP),
    "tiff of 4 bits": (few_bits_tiff(4), VALUES),
    "tiff of 2 bits": (few_bits_tiff(2), VALUES & 3),
    "pgm": (b"P5 23 17 255\n" + VALUES.tobytes(), VALUES),
    "pgm of 16 bits": (b"P5\n# grey\n23 17\n65535\n" + DEEP.astype(">u2").tobytes(), DEEP),
    "pgm in digits": (b"P2 23 17 255\n" + b" ".join(b"%d" % value for value in VALUES.ravel()), VALUES),
    "tiff with palette": (samples.save(indexed(), "TIFF"), VALUES),
    "tiff of 1 bit": (samples.save(Image.fromarray(VALUES[:, :, 0] > 7), "TIFF"), VALUES > 7),
}


@pytest.mark.parametrize("name", MASKS)
def test_values_are_kept_as_they_lie_in_the_file(name: str) -> None:
    data, expected = MASKS[name]
    found = place(data, still(23, 17)).values
    assert found.dtype == (np.uint16 if "16 bits" in name else np.uint8)
    assert np.array_equal(found, expected[:, :, 0])


@pytest.mark.parametrize(
    "data",
    [
        b"P5 23 17 15\n" + VALUES.tobytes(),
        b"P2 23 17 15\n" + b" ".join(b"%d" % value for value in VALUES.ravel()),
        b"P5 23 17 4095\n" + VALUES.astype(">u2").tobytes(),
        b"P4 23 17\n" + np.packbits(VALUES[:, :, 0] & 1, axis=1).tobytes(),
        samples.tiff(VALUES, photometric=0),
    ],
    ids=["pgm of 15", "pgm in digits", "pgm of 4095", "pbm", "tiff in which white is zero"],
)
def test_a_file_whose_values_a_decoder_stretches_or_turns_round_is_refused(data: bytes) -> None:
    with Image.open(io.BytesIO(data)) as image:
        assert not np.array_equal(np.asarray(image), VALUES[:, :, 0])
    with pytest.raises(AnnotationError, match="save it as PNG") as caught:
        place(data, still(23, 17))
    assert caught.value.code == "bad_mask"


@pytest.mark.parametrize(
    "data",
    [
        samples.tiff(VALUES, pages=3),
        samples.apng([np.repeat(VALUES, 3, axis=2), np.repeat(VALUES + 1, 3, axis=2), np.repeat(VALUES, 3, axis=2)]),
        encoded(indexed(), "GIF", save_all=True, append_images=[indexed(1), indexed(2)], duration=100),
    ],
    ids=["tiff", "png", "gif"],
)
def test_of_several_pictures_none_is_taken_for_the_mask(data: bytes) -> None:
    with pytest.raises(AnnotationError, match="holds 3 pictures") as caught:
        place(data, still(23, 17))
    assert caught.value.code == "bad_mask"


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_grey_values_of_few_bits_are_not_stretched(bits: int) -> None:
    indices = np.arange(48).reshape(6, 8) % (1 << bits)
    data = grey_png(bits, indices)
    with Image.open(io.BytesIO(data)) as image:
        assert image.size == (8, 6)
    assert np.array_equal(pixels(stored(place(data, still(8, 6)))), indices)


@pytest.mark.parametrize("orientation", range(2, 9))
def test_a_mask_turns_with_its_image(orientation: int) -> None:
    placed = place(palette_png(), turned(orientation, 8, 6))
    expected = Image.fromarray(INDICES).transpose(UPRIGHT[orientation])
    assert np.array_equal(pixels(stored(placed)), np.asarray(expected))


@pytest.mark.parametrize("orientation", [5, 6, 7, 8])
def test_a_mask_of_the_turned_picture_stays_as_it_is(orientation: int) -> None:
    upright = np.ascontiguousarray(INDICES.T)
    assert np.array_equal(pixels(stored(place(palette_png(upright), turned(orientation, 8, 6)))), upright)


@pytest.mark.parametrize("orientation", range(2, 9))
def test_a_mask_of_the_turned_picture_is_turned_back_where_the_turn_is_ignored(orientation: int) -> None:
    upright = np.asarray(Image.fromarray(INDICES).transpose(UPRIGHT[orientation]))
    frame = PixelFrame(8, 6, 8, 6, ignored=orientation)
    assert np.array_equal(pixels(stored(place(png(upright), frame, is_upright=True))), INDICES)
    if orientation >= 5:  # the size tells
        assert np.array_equal(pixels(stored(place(png(upright), frame))), INDICES)
    assert np.array_equal(pixels(stored(place(palette_png(), frame))), INDICES)


def test_where_the_size_does_not_tell_the_frame_of_the_annotation_does() -> None:
    square = np.zeros((8, 8), np.uint8)
    square[1, 2] = 7
    frame = turned(6, 8, 8)
    assert np.array_equal(pixels(stored(place(png(square), frame, is_upright=True))), square)
    assert np.array_equal(pixels(stored(place(png(square), frame))), np.rot90(square, -1))


def test_resizing_takes_the_nearest_value() -> None:
    frame = PixelFrame(8, 6, 16, 12, scale_x=2, scale_y=2)
    found = pixels(stored(place(palette_png(), frame)))
    assert np.array_equal(found, nearest(INDICES, frame))
    assert set(np.unique(found)) == {0, 15, 255}
    colours = np.arange(144, dtype=np.uint8).reshape(6, 8, 3)
    assert np.array_equal(pixels(stored(place(png(colours), frame))), colours.repeat(2, axis=0).repeat(2, axis=1))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"<html>", "no image"),
        (palette_png()[:60], "does not decode"),
        (encoded(Image.fromarray(INDICES), "JPEG"), "save it as PNG"),
        (encoded(Image.fromarray(INDICES), "TIFF", compression="jpeg"), "save it as PNG"),
        (png(INDICES[:, :7]), "7x6 pixels, the image 8x6"),
        (encoded(Image.fromarray(INDICES.astype(np.float32)), "TIFF"), "whole numbers"),
        (encoded(Image.fromarray(INDICES.astype(np.int32) + 70_000), "TIFF"), "beyond 16 bits"),
    ],
)
def test_what_is_no_mask_of_the_image_is_told(data: bytes, told: str) -> None:
    with pytest.raises(AnnotationError) as caught:
        place(data, still(8, 6))
    assert caught.value.code == "bad_mask"
    assert told in caught.value.message


def test_a_huge_mask_is_refused_by_its_header() -> None:
    bomb = encoded(Image.new("1", (20_000, 8_000)))
    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None  # as the package sets it
    try:
        with pytest.raises(AnnotationError, match="20000x8000"):
            place(bomb, still(8, 6))
    finally:
        Image.MAX_IMAGE_PIXELS = limit


@pytest.mark.filterwarnings("ignore")  # Pillow remarks on damage; the package sets these off
@pytest.mark.parametrize("form", ["PNG", "GIF", "BMP", "TIFF", "PPM"])
def test_damaged_masks_are_told_and_never_crash(form: str) -> None:
    data = encoded(Image.fromarray(INDICES), form)
    random = np.random.default_rng(7)
    for _ in range(300):
        mutant = bytearray(data[: random.integers(1, len(data) + 1)])
        for place_of_bit in random.integers(0, len(mutant), 2):
            mutant[place_of_bit] ^= 1 << int(random.integers(0, 8))
        with contextlib.suppress(AnnotationError):
            assert pixels(stored(place(bytes(mutant), still(8, 6)))).shape[:2] == (6, 8)


def test_an_item_without_a_mask_has_an_empty_value_and_the_dataset_says_so() -> None:
    value = parse(KIND, {"mask": ""})
    assert KIND.facets(MaskFile("a.png")) == ("semantic_mask",)
    assert KIND.facets(value) == ("semantic_mask", "semantic_mask/partial")
    schema = make_schema(KIND.facets(value))
    for annotations in ({}, {"semantic_mask": KIND.place(value, make_placement(still(8, 6)))}):
        assert through_tensorflow(annotations, schema) == {
            "image/segmentation/class/encoded": b"",
            "image/segmentation/class/format": b"",
        }
    assert KIND.spec(schema)[0].role == "scalar"
    assert KIND.spec(make_schema(["semantic_mask"]))[0].role == "image"


def test_an_instance_map_has_keys_of_its_own() -> None:
    kind = InstanceMapKind()
    value = kind.place(MaskFile("m.png"), make_placement(still(8, 6), files={"m.png": palette_png()}))
    parsed = through_tensorflow({"instance_map": value}, make_schema(["instance_map"]))
    assert np.array_equal(pixels(parsed["image/segmentation/object/encoded"]), INDICES)
