"""The kind of a file is told from its bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import sniff
from beam_tfrecord.images.convert import image_kind
from beam_tfrecord.images.sniff import NOT_IMAGES, describe
from tests import image_kinds as kinds
from tests import image_samples as samples


@pytest.mark.parametrize(
    ("format", "kind"),
    [
        ("JPEG", "jpeg"),
        ("PNG", "png"),
        ("GIF", "gif"),
        ("WEBP", "webp"),
        ("BMP", "bmp"),
        ("TIFF", "tiff"),
        ("AVIF", "avif"),
        ("JPEG2000", "jpeg2000"),
        ("PPM", "netpbm"),
        ("ICO", "ico"),
        ("ICNS", "icns"),
        ("QOI", "qoi"),
        ("SGI", "sgi"),
        ("PCX", "pcx"),
        ("TGA", "tga"),
        ("DDS", "dds"),
        ("EPS", "eps"),
        ("PDF", "pdf"),
    ],
)
def test_what_pillow_writes_is_recognised(format: str, kind: str) -> None:
    assert sniff(samples.save(samples.gradient(64, 64), format)) == kind


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "unknown"),
        (b"x", "text"),
        (bytes(5000), "zeros"),
        (b"\xef\xbb\xbf<!DOCTYPE html>", "html"),
        (b"\n\n <HTML><BODY>", "html"),
        (b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', "xml"),
        (b'<?xml version="1.0"?>\n<!-- x -->\n<svg width="1"/>', "svg"),
        (b"<svg/>", "svg"),
        (b' {"error": "not found"}', "json"),
        ("Grüße, 世界".encode(), "text"),
        ("Grüße".encode("utf-16"), "text"),
        (b"PK\3\4" + bytes(30), "zip"),
        (b"\x1f\x8b\x08" + bytes(30), "gzip"),
        (bytes(257) + b"ustar", "tar"),
        (b"%PDF-1.4", "pdf"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "git-lfs"),
        (b"\0\0\0\x1cftypmp42" + bytes(20), "video"),
        (b"\0\0\0\x1cftypavif\0\0\0\0mif1miaf", "avif"),
        (b"\0\0\0\x1cftypmif1\0\0\0\0avifmiaf", "avif"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "heic"),
        (b"\0\0\0\x18ftypmif1\0\0\0\0heicmiaf", "heic"),
        (b"RIFF\0\0\0\0WAVEfmt ", "unknown"),
        (b"RIFF\0\0\0\0AVI LIST", "video"),
        (b"BM, the car maker", "text"),
        (b"P6 is a name", "text"),
        (b"P6\n1 1\n255\n\0\0\0", "netpbm"),
        (bytes(range(256)), "unknown"),
        (b"\0\0\1\0", "unknown"),
    ],
)
def test_other_bytes_are_told_apart(data: bytes, kind: str) -> None:
    assert sniff(data) == kind


def test_what_is_no_image_is_described_in_words() -> None:
    for name in ("HTML, text, JSON, archive, video, PDF, zeros", "no bytes"):
        for make in (kinds.KINDS[name], *kinds.ALSO.get(name, ())):
            kind = sniff(make())
            assert kind in NOT_IMAGES
            assert describe(kind)[0].islower() or kind == "json"
            with pytest.raises(ImageError) as caught:
                image_kind(make())
            assert caught.value.code in ("not_an_image", "empty_file")


@given(st.binary(max_size=600))
def test_any_bytes_have_a_kind(data: bytes) -> None:
    assert describe(sniff(data))
