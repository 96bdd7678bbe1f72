"""One small file of every kind of input that ``docs/images.md`` has a row for, by the name of that row."""

from __future__ import annotations

import base64
import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from PIL import Image, ImageCms

from tests import image_samples as samples

WIDTH, HEIGHT = 24, 16
PALETTE = bytes(np.linspace(0, 255, 48).astype(np.uint8))

# Pillow and libjpeg-turbo's Python packages write no arithmetic coding: four coloured blocks by "cjpeg -arithmetic".
ARITHMETIC = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAgGBgcGBQgHBwcJCQgKDBQNDAsLDBkSEw8UHRofHh0aHBwgJC4nICIsIxwcKDcpLDAxNDQ0Hyc5PTgy"
    "PC4zNDL/2wBDAQkJCQwLDBgNDRgyIRwhMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjL/yQARCAAQABgD"
    "AREAAhEBAxEB/8wACgAQEAUBEBEF/9oADAMBAAIRAxEAPwD/AHYmHX4wsW9sasiZVdpM/wAX1W4dAXKed9SVT3DsZT0aB4ONt3bmelVWC1tytmAy"
    "DGGZgpKQ/9k="
)


def rgb(dtype: str = "uint8") -> samples.Array:
    return samples.gradient(WIDTH, HEIGHT, 3, dtype)


def gray(dtype: str = "uint8") -> samples.Array:
    return samples.gradient(WIDTH, HEIGHT, 1, dtype)


def rgba(dtype: str = "uint8") -> samples.Array:
    """Transparent at the left, opaque at the right."""
    pixels = samples.gradient(WIDTH, HEIGHT, 4, dtype)
    pixels[:, :, 3] = np.linspace(0, np.iinfo(dtype).max, WIDTH).astype(dtype)
    return pixels


def gray_alpha(dtype: str = "uint8") -> samples.Array:
    return rgba(dtype)[:, :, [0, 3]]


def _image(pixels: samples.Array) -> Image.Image:
    return samples.as_image(pixels)


def _indexed() -> Image.Image:
    image = Image.fromarray(gray()[:, :, 0] >> 4)
    image.putpalette(PALETTE)
    return image


def _frames() -> list[Image.Image]:
    return [_image(samples.gradient(WIDTH, HEIGHT, 3, seed=10 * seed)) for seed in range(3)]


def _animated(format: str, **options: object) -> bytes:
    first, *rest = _frames()
    return samples.save(first, format, save_all=True, append_images=rest, **options)


def _jpeg(**options: object) -> bytes:
    return samples.save(rgb(), "JPEG", quality=90, **options)


def _overfull_jpeg() -> bytes:
    """Bytes too many in the coded data: the decoder notices, and has all pixels all the same."""
    return _jpeg(subsampling=0, restart_marker_blocks=2).replace(b"\xff\xd1", b"more\xff\xd1")


def _damaged_png() -> bytes:
    data = bytearray(samples.png(rgb(), 8, 2))
    data[60] ^= 1
    return bytes(data)


def _colour_palette(interlaced: bool = False, transparency: bytes | None = None) -> bytes:
    return samples.png(gray() >> 4, 8, 3, palette=PALETTE, interlaced=interlaced, transparency=transparency)


def _lab_tiff() -> bytes:
    lab = ImageCms.profileToProfile(
        _image(rgb()), ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), outputMode="LAB"
    )
    assert lab is not None
    return samples.save(lab, "TIFF")


def _bitmap_icon() -> bytes:
    return samples.save(_image(rgba()).resize((16, 16)), "ICO", sizes=[(16, 16)], bitmap_format="bmp")


def _psd() -> bytes:
    """A Photoshop file of one uncompressed picture and no layers (Adobe Photoshop File Formats Specification)."""
    head = struct.pack(">4sH6xHIIHH", b"8BPS", 1, 3, HEIGHT, WIDTH, 8, 3)
    return head + struct.pack(">III", 0, 0, 0) + struct.pack(">H", 0) + rgb().transpose(2, 0, 1).tobytes()


def _ppm_16() -> bytes:
    return f"P6 {WIDTH} {HEIGHT} 65535\n".encode() + rgb("uint16").astype(">u2").tobytes()


def _zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.txt", "text")
    return out.getvalue()


KINDS: Mapping[str, Callable[[], bytes]] = MappingProxyType(
    {
        # JPEG
        "JPEG, colour (any subsampling, baseline)": lambda: _jpeg(subsampling=2),
        "JPEG, progressive": lambda: _jpeg(progressive=True),
        "JPEG, grey": lambda: samples.save(gray(), "JPEG"),
        "JPEG, CMYK": lambda: samples.save(_image(rgb()).convert("CMYK"), "JPEG"),
        "JPEG, YCCK": lambda: samples.ycck((120, 90, 200, 250), WIDTH, HEIGHT),
        "JPEG, arithmetic coding": lambda: ARITHMETIC,
        "JPEG, EXIF orientation 2 to 8": lambda: _jpeg(exif=samples.exif(6)),
        "JPEG, EXIF damaged": lambda: _jpeg(exif=b"Exif\0\0II*\0\xff\xff\xff\xff"),
        "JPEG, ICC profile": lambda: _jpeg(icc_profile=samples.swapped_profile()),
        "JPEG, ICC profile damaged": lambda: _jpeg(icc_profile=b"no profile at all"),
        "JPEG, several pictures (MPO)": lambda: samples.mpo([rgb(), gray().repeat(3, axis=2)]),
        "JPEG, data behind its end": lambda: _jpeg() + b"\0some more",
        "JPEG, decoder complains": _overfull_jpeg,
        "JPEG, lacks only its end marker": lambda: _jpeg()[:-2],
        "JPEG, cut": lambda: _jpeg()[:-60],
        # PNG
        "PNG, grey of 1, 2, 4 bits": lambda: samples.png(gray() >> 6, 2, 0),
        "PNG, grey of 8 bits": lambda: samples.png(gray(), 8, 0),
        "PNG, grey of 16 bits": lambda: samples.png(gray("uint16"), 16, 0),
        "PNG, grey with transparent colour": lambda: samples.png(gray(), 8, 0, transparency=b"\0\x50"),
        "PNG, grey with alpha": lambda: samples.png(gray_alpha(), 8, 4),
        "PNG, grey with alpha of 16 bits": lambda: samples.png(gray_alpha("uint16"), 16, 4),
        "PNG, RGB": lambda: samples.png(rgb(), 8, 2),
        "PNG, RGB of 16 bits": lambda: samples.png(rgb("uint16"), 16, 2),
        "PNG, RGB with transparent colour": lambda: samples.png(rgb(), 8, 2, transparency=b"\0\1\0\2\0\3"),
        "PNG, RGBA": lambda: samples.png(rgba(), 8, 6),
        "PNG, RGBA of 16 bits": lambda: samples.png(rgba("uint16"), 16, 6),
        "PNG, palette of 1 to 8 bits": _colour_palette,
        "PNG, palette with transparency": lambda: _colour_palette(transparency=b"\0\x80"),
        "PNG, interlaced": lambda: _colour_palette(interlaced=True),
        "PNG, animated (APNG)": lambda: samples.apng([rgb(), rgb()[::-1].copy()]),
        "PNG, EXIF orientation 2 to 8": lambda: samples.png(
            rgb(), 8, 2, before=samples.png_chunk(b"eXIf", samples.exif(8).tobytes().removeprefix(b"Exif\0\0"))
        ),
        "PNG, ICC profile": lambda: samples.save(rgb(), "PNG", icc_profile=samples.swapped_profile()),
        "PNG, data behind its end": lambda: samples.png(rgb(), 8, 2) + b"more",
        "PNG, damaged text or other extra chunk": lambda: samples.png(
            rgb(), 8, 2, after=samples.png_chunk(b"tEXt", b"a\0b")[:-1] + b"!"
        ),
        "PNG, lacks only its end chunk": lambda: samples.png(rgb(), 8, 2)[:-12],
        "PNG, cut": lambda: samples.png(rgb(), 8, 2)[:-40],
        "PNG, pixels damaged": _damaged_png,
        # Formats that TensorFlow does not decode to three dimensions.
        "GIF": lambda: samples.save(_indexed(), "GIF"),
        "GIF, BMP with the plain ramp of greys as palette": lambda: samples.save(gray(), "GIF", optimize=False),
        "GIF, transparent": lambda: samples.save(_indexed(), "GIF", transparency=3),
        "GIF, animated": lambda: _animated("GIF"),
        "WebP, lossy": lambda: samples.save(rgb(), "WEBP"),
        "WebP, lossy with alpha": lambda: samples.save(rgba(), "WEBP"),
        "WebP, lossless": lambda: samples.save(rgb(), "WEBP", lossless=True),
        "WebP, lossless with alpha": lambda: samples.save(rgba(), "WEBP", lossless=True),
        "WebP, animated": lambda: _animated("WEBP"),
        "WebP, EXIF orientation 2 to 8": lambda: samples.save(rgb(), "WEBP", exif=samples.exif(6)),
        "BMP": lambda: samples.save(rgb(), "BMP"),
        "BMP, palette": lambda: samples.save(_indexed(), "BMP"),
        "TIFF, RGB in strips or tiles": lambda: samples.tiff(rgb(), tile=(16, 16)),
        "TIFF, black and white (fax)": lambda: samples.save(_image(gray()).convert("1"), "TIFF", compression="group4"),
        "TIFF, grey of 16 bits": lambda: samples.tiff(gray("uint16")),
        "TIFF, RGB of 16 bits": lambda: samples.tiff(rgb("uint16"), compression=8),
        "TIFF, whole numbers of 32 bits, 0 to 65535": lambda: samples.tiff(gray("uint16").astype(np.int32)),
        "TIFF, whole numbers of 32 bits, others": lambda: samples.tiff(gray("uint16").astype(np.int32) - 40000),
        "TIFF, floating point, 0 to 1": lambda: samples.tiff(gray().astype(np.float32) / 255),
        "TIFF, floating point, others": lambda: samples.tiff(gray().astype(np.float32)),
        "TIFF, CMYK": lambda: samples.save(_image(rgb()).convert("CMYK"), "TIFF"),
        "TIFF, LAB": _lab_tiff,
        "TIFF, JPEG compression": lambda: samples.save(rgb(), "TIFF", compression="jpeg"),
        "TIFF, several pages": lambda: samples.tiff(rgb(), pages=2),
        "TIFF, orientation 2 to 8": lambda: samples.tiff(rgb(), tags={274: ("H", [6])}),
        "TIFF, camera raw": lambda: samples.tiff(rgb(), tags={254: ("I", [1]), 50706: ("B", [1, 4, 0, 0])}),
        "AVIF": lambda: samples.save(rgb(), "AVIF"),
        "AVIF, alpha": lambda: samples.save(rgba(), "AVIF"),
        "AVIF, animated": lambda: _animated("AVIF"),
        "JPEG 2000, reversible": lambda: samples.save(rgb(), "JPEG2000"),
        "JPEG 2000, irreversible": lambda: samples.save(rgb(), "JPEG2000", irreversible=True),
        "JPEG 2000, grey of 16 bits": lambda: samples.save(gray("uint16"), "JPEG2000"),
        "PBM": lambda: samples.save(_image(gray()).convert("1"), "PPM"),
        "PGM": lambda: samples.save(gray(), "PPM"),
        "PPM": lambda: samples.save(rgb(), "PPM"),
        "PPM of 16 bits": _ppm_16,
        "ICO, CUR": _bitmap_icon,
        "ICO of PNGs": lambda: samples.ico(
            [(24, 16, samples.png(rgba(), 8, 6)), (1, 1, samples.png(gray()[:1, :1], 8, 0))]
        ),
        "PSD": _psd,
        "QOI, SGI, PCX, TGA, DDS": lambda: samples.save(rgb(), "QOI"),
        # What is not stored.
        "HEIC (pillow-heif not installed)": lambda: b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(100),
        "JPEG XL, JPEG XR, EXR, HDR, FITS, DICOM, PSB, XCF, DjVu": lambda: b"\xff\x0a" + bytes(100),
        "SVG, EPS, WMF, EMF": lambda: b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>',
        "HTML, text, JSON, archive, video, PDF, zeros": lambda: b"<!DOCTYPE html><html><body>Not found</body></html>",
        "no bytes": lambda: b"",
    }
)

# Further kinds that a row stands for as well.
ALSO: Mapping[str, tuple[Callable[[], bytes], ...]] = MappingProxyType(
    {
        "JPEG, colour (any subsampling, baseline)": (
            lambda: _jpeg(subsampling=0),
            lambda: _jpeg(subsampling=1),
            lambda: _jpeg(keep_rgb=True),
            lambda: _jpeg(restart_marker_blocks=1),
        ),
        "PNG, grey of 1, 2, 4 bits": (
            lambda: samples.png(gray() >> 7, 1, 0),
            lambda: samples.png(gray() >> 4, 4, 0, interlaced=True),
        ),
        "PNG, palette of 1 to 8 bits": (
            lambda: samples.png(gray() >> 7, 1, 3, palette=PALETTE[:6]),
            lambda: samples.png(gray() >> 6, 2, 3, palette=PALETTE[:12]),
            lambda: samples.png(gray() >> 4, 4, 3, palette=PALETTE),
        ),
        "TIFF, RGB in strips or tiles": (
            lambda: samples.tiff(rgb()),
            lambda: samples.tiff(rgb(), order=">", planar=True),
            lambda: samples.tiff(rgb(), compression=8, tile=(16, 16)),
            lambda: samples.save(rgb(), "TIFF", compression="tiff_lzw"),
            lambda: samples.save(rgb(), "TIFF", compression="packbits"),
        ),
        "TIFF, RGB of 16 bits": (
            lambda: samples.tiff(rgb("uint16")),
            lambda: samples.tiff(rgb("uint16"), order=">"),
            lambda: samples.tiff(rgb("uint16"), order=">", compression=8, tile=(16, 16)),
        ),
        "GIF, BMP with the plain ramp of greys as palette": (lambda: samples.save(gray(), "BMP"),),
        "QOI, SGI, PCX, TGA, DDS": tuple(
            (lambda format=format: samples.save(rgb(), format)) for format in ("SGI", "PCX", "TGA", "DDS")
        ),
        "HTML, text, JSON, archive, video, PDF, zeros": (
            lambda: b"no image here\n",
            lambda: b'{"error": 404}',
            _zip,
            lambda: zlib.compress(b"x") + bytes(range(256)),
            lambda: b"\0\0\0\x18ftypisom\0\0\0\0isomiso2" + bytes(100),
            lambda: b"%PDF-1.7\n",
            lambda: bytes(1000),
        ),
        "JPEG XL, JPEG XR, EXR, HDR, FITS, DICOM, PSB, XCF, DjVu": (
            lambda: b"\0\0\0\x0cJXL \r\n\x87\n" + bytes(50),
            lambda: b"II\xbc\x01" + bytes(50),
            lambda: b"\x76\x2f\x31\1" + bytes(50),
            lambda: b"#?RADIANCE\n",
            lambda: b"SIMPLE  =                    T",
            lambda: bytes(128) + b"DICM" + bytes(50),
            lambda: b"8BPS\0\2" + bytes(50),
            lambda: b"gimp xcf file\0",
            lambda: b"AT&TFORM" + bytes(50),
        ),
        "SVG, EPS, WMF, EMF": (
            lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n",
            lambda: b"\xd7\xcd\xc6\x9a" + bytes(50),
            lambda: bytes(40) + b" EMF" + bytes(50),
        ),
    }
)
