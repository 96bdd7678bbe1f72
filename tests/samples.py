"""Pictures and collections that the tests and ``make demo`` work on: drawn here, the same on every run.

``python tests/samples.py FOLDER`` makes the collection of ``make demo``.
"""

from __future__ import annotations

import argparse
import colorsys
import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

CLASSES = ("circle", "square", "triangle")
HTML_ERROR_PAGE = b"<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head><body>Not Found</body></html>\n"
ORIENTATION_TAG = 0x0112  # of EXIF
# How an upright picture is laid down so that a viewer who follows the EXIF orientation sees it upright again.
_RASTER_OF_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


# ---------------------------------------------------------------------------------------------------------------------
# Single pictures.


@dataclass(frozen=True)
class Drawing:
    """A picture of one coloured shape. box: (xmin, ymin, xmax, ymax) of the shape in pixels."""

    image: Image.Image
    label: str
    box: tuple[int, int, int, int]


def draw_shape(label: str, seed: int, width: int = 160, height: int = 120) -> Drawing:
    """One shape of ``CLASSES`` on a shaded background; place, size, turn and colours follow from the seed."""
    random = np.random.default_rng([seed, CLASSES.index(label)])
    hue, turn = random.uniform(), random.uniform(-0.5, 0.5)
    radius = min(width, height) * random.uniform(0.22, 0.4)
    x, y = random.uniform(radius, width - radius), random.uniform(radius, height - radius)

    scale = 4  # drawn larger and scaled down, for smooth edges
    mask = Image.new("L", (width * scale, height * scale))
    draw = ImageDraw.Draw(mask)
    corners = {"circle": 90, "square": 4, "triangle": 3}[label]
    angles = [turn + 2 * math.pi * corner / corners for corner in range(corners)]
    draw.polygon(
        [(scale * (x + radius * math.sin(a)), scale * (y - radius * math.cos(a))) for a in angles],
        fill=255,
    )
    mask = mask.resize((width, height), Image.Resampling.BOX)

    background = _shaded(width, height, hue + 0.5, random)
    colour = tuple(round(255 * part) for part in colorsys.hsv_to_rgb(hue, 0.75, 0.9))
    image = Image.composite(Image.new("RGB", (width, height), colour), background, mask)
    box = mask.point(lambda value: 255 if value > 127 else 0).getbbox()
    assert box is not None, "a shape is never empty"
    return Drawing(image, label, box)


def _shaded(width: int, height: int, hue: float, random: np.random.Generator) -> Image.Image:
    """A soft gradient in a random direction, with a little grain as a camera gives it."""
    light = np.array(colorsys.hsv_to_rgb(hue % 1, 0.18, 0.97))
    dark = np.array(colorsys.hsv_to_rgb((hue + 0.08) % 1, 0.45, 0.55))
    angle = random.uniform(0, 2 * math.pi)
    across, down = np.meshgrid(np.linspace(-1, 1, width), np.linspace(-1, 1, height))
    share = ((across * math.cos(angle) + down * math.sin(angle)) / 2.9 + 0.5)[..., None]
    pixels = 255 * (light * (1 - share) + dark * share) + random.normal(0, 4, (height, width, 1))
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def noise(width: int, height: int, seed: int = 0, channels: int = 3) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Pixels that no two places share by accident: uint8 of shape (height, width, channels)."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)


def painted_boxes(
    width: int,
    height: int,
    boxes: Iterable[tuple[int, int, int, int]],
    colours: Sequence[str] = ("red", "blue", "lime"),
) -> Image.Image:
    """A white picture with one filled rectangle per box (xmin, ymin, xmax, ymax; the far edges are outside)."""
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    for number, (xmin, ymin, xmax, ymax) in enumerate(boxes):
        draw.rectangle((xmin, ymin, xmax - 1, ymax - 1), fill=colours[number % len(colours)])
    return image


# ---------------------------------------------------------------------------------------------------------------------
# Bytes of files, good and bad.


def jpeg(image: Image.Image, quality: int = 90, **options: Any) -> bytes:
    """The picture as JPEG; options are those of Pillow's writer."""
    return _encoded(image, "JPEG", quality=quality, **options)


def png(image: Image.Image, **options: Any) -> bytes:
    """The picture as PNG; options are those of Pillow's writer."""
    return _encoded(image, "PNG", **options)


def _encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def turned_jpeg(upright: Image.Image, orientation: int, quality: int = 90) -> bytes:
    """A JPEG whose EXIF orientation (1 to 8) makes a viewer show ``upright``, as a camera held sideways writes it."""
    exif = Image.Exif()
    exif[ORIENTATION_TAG] = orientation
    raster = upright.transpose(_RASTER_OF_UPRIGHT[orientation]) if orientation > 1 else upright
    return jpeg(raster, quality, exif=exif)


def truncated(data: bytes, share: float = 0.6) -> bytes:
    """The first part of a file, as a broken download leaves it."""
    return data[: int(len(data) * share)]


# ---------------------------------------------------------------------------------------------------------------------
# Collections.


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files by relative path, with the folders they need; their full paths in the same order."""
    paths = [folder / name for name in files]
    for path, data in zip(paths, files.values(), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return paths


def class_folders(
    per_class: int = 3, classes: Sequence[str] = CLASSES, width: int = 32, height: int = 24
) -> dict[str, bytes]:
    """A good small collection: ``circle/circle_0.jpg`` and so on, all JPEG, all of one size."""
    return {
        f"{label}/{label}_{number}.jpg": jpeg(draw_shape(label, number, width, height).image)
        for label in classes
        for number in range(per_class)
    }


def write_table(path: Path, rows: Sequence[Sequence[Any]], delimiter: str = ",", encoding: str = "utf-8") -> Path:
    """A CSV or TSV file; the first row is the header."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding=encoding) as file:
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return path


def demo_collection(per_class: int = 24) -> dict[str, bytes]:
    """What people have: pictures of many sizes, a PNG, one turned by its EXIF tag, a cut one and an error page."""
    random = np.random.default_rng(0)
    files = {}
    for number in range(per_class):
        for label in CLASSES:
            long, short = int(random.integers(160, 361)), int(random.integers(120, 241))
            width, height = (long, short) if random.uniform() < 0.7 else (short, long)
            image = draw_shape(label, number, width, height).image
            files[f"{label}/{label}_{number:02}.jpg"] = jpeg(image)
    files["square/square_drawn.png"] = png(draw_shape("square", 100, 200, 200).image)
    files["triangle/triangle_sideways.jpg"] = turned_jpeg(draw_shape("triangle", 101, 180, 240).image, 6)
    files["circle/circle_cut.jpg"] = truncated(jpeg(draw_shape("circle", 102, 240, 180).image))
    files["circle/circle_not_found.jpg"] = HTML_ERROR_PAGE
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the sample collection of `make demo`.")
    parser.add_argument("folder", type=Path, help="where to put it")
    folder = parser.parse_args().folder
    written = write_files(folder, demo_collection())
    print(f"{len(written)} files in {len(CLASSES)} class folders below {folder}, two of them damaged on purpose")


if __name__ == "__main__":
    main()
