"""No file takes more memory or time than its pixels may, and nothing depends on the process around."""

from __future__ import annotations

import concurrent.futures
import struct
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFile

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import convert_frames, convert_image, keep_large_buffers
from beam_tfrecord.images.convert import decode_png
from beam_tfrecord.images.safety import check_pixels, check_storable
from beam_tfrecord.options.config import ImagePolicy
from tests import image_kinds as kinds
from tests import image_samples as samples


def bomb_png(width: int, height: int, depth: int = 1) -> bytes:
    """A black PNG, made without ever holding its pixels."""
    packer = zlib.compressobj(9)
    line = bytes(1 + (width * depth + 7) // 8)
    body = b"".join(packer.compress(line) for _ in range(height)) + packer.flush()
    return samples.png_header(width, height, depth, 0) + samples.png_chunk(b"IDAT", body) + samples.PNG_END


def jpeg_that_says(width: int, height: int) -> bytes:
    data = bytearray(samples.save(samples.gradient(16, 16), "JPEG"))
    frame = data.index(b"\xff\xc0")
    data[frame + 5 : frame + 9] = struct.pack(">HH", height, width)
    return bytes(data)


def webp_that_says(width: int, height: int) -> bytes:
    data = bytearray(samples.save(samples.gradient(16, 16, 4), "WEBP", lossless=True))
    data[21:25] = ((width - 1) | (height - 1) << 14 | 1 << 28).to_bytes(4, "little")
    return bytes(data)


def icon_of(picture: bytes) -> bytes:
    return samples.ico([(16, 16, picture)])


def bitmap_icon_that_says(width: int, height: int) -> bytes:
    data = bytearray(kinds.KINDS["ICO, CUR"]())
    data[26:34] = struct.pack("<ii", width, height * 2)
    return bytes(data)


BOMBS: dict[str, Callable[[], bytes]] = {
    "png of 1 bit": lambda: bomb_png(20_000, 20_000),
    "jpeg": lambda: jpeg_that_says(65_500, 65_500),
    "gif": lambda: b"GIF89a" + struct.pack("<HH", 65_535, 65_535) + samples.save(samples.gradient(9, 9), "GIF")[10:],
    "webp": lambda: webp_that_says(16_383, 16_383),
    "bmp": lambda: (
        samples.save(samples.gradient(9, 9), "BMP")[:18]
        + struct.pack("<ii", 60_000, 60_000)
        + samples.save(samples.gradient(9, 9), "BMP")[26:]
    ),
    "tiff": lambda: samples.tiff(samples.gradient(9, 9), tags={256: ("I", [60_000]), 257: ("I", [60_000])}),
    "ppm": lambda: b"P6 60000 60000 255\n" + bytes(100),
    "ppm of 16 bits": lambda: b"P6 60000 60000 65535\n" + bytes(100),
    "qoi": lambda: b"qoif" + struct.pack(">IIBB", 60_000, 60_000, 4, 0) + bytes(50),
    "icon of a large png": lambda: icon_of(bomb_png(20_000, 20_000)),
    "icon of a large bitmap": lambda: bitmap_icon_that_says(30_000, 30_000),
    "psd": lambda: struct.pack(">4sH6xHIIHH", b"8BPS", 1, 3, 30_000, 30_000, 8, 3) + bytes(50),
    "jpeg 2000": lambda: _jpeg2000_that_says(60_000),
}


def _jpeg2000_that_says(side: int) -> bytes:
    data = bytearray(samples.save(samples.gradient(16, 16), "JPEG2000", no_jp2=True))
    size = data.index(b"\xff\x51")
    data[size + 6 : size + 14] = struct.pack(">II", side, side)
    return bytes(data)


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_by_its_header_without_taking_memory(name: str) -> None:
    data = BOMBS[name]()
    convert_image(samples.save(samples.gradient(9, 9), "PNG"), ImagePolicy(image_format="raw"))
    before = _peak()
    for policy in (ImagePolicy(), ImagePolicy(validate="header"), ImagePolicy(resize=100)):
        with pytest.raises(ImageError) as caught:
            convert_image(data, policy)
        assert caught.value.code == "too_many_pixels"
        assert "--max_pixels" in caught.value.message
    with pytest.raises(ImageError):
        convert_frames(data, ImagePolicy())
    assert _peak() - before < 64 * 2**20


def _peak() -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def test_the_default_lets_a_photograph_of_100_megapixels_through() -> None:
    data = bomb_png(12_000, 9_000)
    assert convert_image(data, ImagePolicy()).width == 12_000
    check_pixels(12_288, 8_192, ImagePolicy().max_pixels)


def test_max_pixels_is_exact() -> None:
    data = samples.save(samples.gradient(20, 10), "PNG")
    assert convert_image(data, ImagePolicy(max_pixels=200)).width == 20
    with pytest.raises(ImageError):
        convert_image(data, ImagePolicy(max_pixels=199))


def test_limits_that_the_program_around_sets_for_pillow_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    data = samples.save(samples.gradient(20, 10), "GIF")
    expected = convert_image(data, ImagePolicy())
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    assert convert_image(data, ImagePolicy()) == expected
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    for kind in ("JPEG, cut", "PNG, cut"):
        with pytest.raises(ImageError) as caught:
            convert_image(kinds.KINDS[kind](), ImagePolicy())
        assert caught.value.code == "truncated_image"


def test_what_tensorflow_would_refuse_for_its_size_is_refused() -> None:
    check_storable("jpeg", 13_000, 13_700, 3)
    check_storable("png", 20_000, 20_000, 4)
    check_storable("raw", 10**6, 10**6, 4)
    for format, width, height, channels in (
        ("jpeg", 13_400, 13_400, 3),
        ("jpeg", 65_501, 1, 3),
        ("png", 1_000_001, 1, 1),
        ("png", 2**15, 2**14, 1),
    ):
        with pytest.raises(ImageError) as caught:
            check_storable(format, width, height, channels)
        assert caught.value.code == "too_many_pixels"
        assert "--resize" in caught.value.message


def test_memory_of_python_objects_stays_within_the_documented_bytes_per_pixel() -> None:
    """tracemalloc sees numpy's arrays and bytes; Pillow's own buffers (4 bytes a pixel) come on top."""
    pixels = np.tile(samples.gradient(50, 40, 4), (30, 30, 1))
    count = pixels.shape[0] * pixels.shape[1]
    deep = np.tile(samples.gradient(50, 40, 4, "uint16"), (30, 30, 1))
    cases: list[tuple[bytes, dict[str, object], int]] = [
        (samples.save(pixels[:, :, :3], "JPEG"), {}, 1),
        (samples.save(pixels, "PNG"), {}, 1),
        (samples.save(pixels[:, :, :3], "JPEG"), {"image_format": "png"}, 12),
        (samples.save(pixels, "PNG"), {"color": "rgb"}, 16),
        (samples.save(pixels, "PNG"), {"resize": 1000}, 16),
        (samples.tiff(deep, extra=[2]), {"color": "rgb"}, 40),
        (samples.tiff(deep, extra=[2]), {"resize": 1000}, 40),
    ]
    for data, options, bytes_per_pixel in cases:
        policy = ImagePolicy(**options)
        convert_image(data, policy)
        tracemalloc.start()
        convert_image(data, policy)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < bytes_per_pixel * count + 12 * 2**20, f"{peak / count:.1f} bytes a pixel under {options}"


def test_many_threads_at_once_give_what_one_gives() -> None:
    policies = [ImagePolicy(), ImagePolicy(image_format="png", color="rgb"), ImagePolicy(resize=9, color="gray")]
    jobs = [(make(), policy) for make in kinds.KINDS.values() for policy in policies]

    def outcome(job: tuple[bytes, ImagePolicy]) -> object:
        try:
            return convert_image(*job)
        except ImageError as error:
            return error.code, error.message

    alone = [outcome(job) for job in jobs]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        together = list(pool.map(outcome, jobs * 2))
    assert together == alone * 2


def test_another_process_gives_the_same_bytes() -> None:
    """No random numbers, hashes of objects or addresses decide anything."""
    code = (
        "import hashlib, sys\n"
        "from beam_tfrecord.options.config import ImagePolicy\n"
        "from beam_tfrecord.errors import ImageError\n"
        "from beam_tfrecord.images import convert_image\n"
        "from tests.image_kinds import KINDS\n"
        "digest = hashlib.sha256()\n"
        "for name, make in KINDS.items():\n"
        "    for options in ({}, {'image_format': 'jpeg', 'resize': 10}):\n"
        "        try:\n"
        "            text = repr(convert_image(make(), ImagePolicy(**options)))\n"
        "        except ImageError as error:\n"
        "            text = error.code + error.message\n"
        "        digest.update(text.encode())\n"
        "print(digest.hexdigest())\n"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(path for path in sys.path if path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


class Counted(bytes):
    """Bytes that know how many of them were copied out."""

    copied = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        self.copied += len(found) if isinstance(found, bytes) else 1
        return found


def test_an_icon_whose_table_names_the_whole_file_thousands_of_times_is_copied_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = samples.png(samples.gradient(16, 16, 4), 8, 6) + bytes(2_000_000)
    count = 60_000
    table = struct.pack("<BBBBHHII", 16, 16, 0, 0, 1, 32, len(content), 6 + 16 * count) * count
    icon = Counted(struct.pack("<HHH", 0, 1, count) + table + content)
    decoded = []
    monkeypatch.setattr(
        "beam_tfrecord.images.convert.decode_png",
        lambda file, notes: decoded.append(file) or decode_png(file, notes),
    )
    assert convert_image(icon, ImagePolicy()).width == 16
    assert len(decoded) == 1
    assert len(content) <= icon.copied <= len(content) + 100


def test_keeping_buffers_says_whether_it_did() -> None:
    import platform

    assert keep_large_buffers() == (platform.system() == "Linux" and platform.libc_ver()[0] == "glibc")
    assert keep_large_buffers() == keep_large_buffers()
