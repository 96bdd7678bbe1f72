"""How many altered copies the fingerprints find, and how many look-alikes they take for copies.

``python -m benchmarks.near_duplicates [--pictures N] [--photos FOLDER]`` prints the table of docs/insight.md. Pictures
are drawn here, the same on every run: scenes; bursts (one scene, with another object in each picture); handwritten-like
digits; shapes. Photos of a folder are added to the scenes. Every picture is altered in each way by itself, all are laid
together, and the pairs that come out are compared with what was done.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFont

from beam_tfrecord.images.jpeg import read_header
from beam_tfrecord.images.small import small_jpeg
from beam_tfrecord.insight.fingerprints import fingerprints_of
from beam_tfrecord.insight.grids import Grids, grid_of
from beam_tfrecord.insight.likeness import has_contrast, thumbnails_of
from beam_tfrecord.insight.neighbours import NEAR_BITS, Pairs, alike, near_pairs

Change = Callable[[Image.Image], bytes]


def scene(seed: int, width: int = 320, height: int = 240) -> Image.Image:
    """Clouds of several sizes with some things in front: as busy as a photo."""
    random = np.random.default_rng(seed)
    clouds = np.zeros((height, width, 3))
    for power in range(2, 8):
        size = (2**power, max(2, 2**power * height // width))
        layer = Image.fromarray(random.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))
        clouds += np.asarray(layer.resize((width, height), Image.Resampling.BICUBIC)) / 1.7**power
    clouds -= clouds.min()
    picture = Image.fromarray((clouds / clouds.max() * 255).astype(np.uint8))
    for _ in range(random.integers(2, 7)):
        thing(picture, random)
    return picture


def thing(picture: Image.Image, random: np.random.Generator) -> None:
    """One thing at a random place."""
    width, height = picture.size
    x, y = random.uniform(0, width), random.uniform(0, height)
    a, b = random.uniform(width / 16, width / 5, 2)
    colour = tuple(random.integers(0, 256, 3).tolist())
    draw = ImageDraw.Draw(picture)
    (draw.ellipse if random.uniform() < 0.5 else draw.rectangle)((x - a, y - b, x + a, y + b), fill=colour)


def burst(seed: int) -> list[Image.Image]:
    """The same place seen twice, with another object in the middle of each picture."""
    found = []
    for number in range(2):
        picture = scene(seed)
        random = np.random.default_rng([seed, number])
        width, height = picture.size
        a, b = random.uniform(height / 6, height / 3, 2)
        x, y = width * random.uniform(0.3, 0.7), height * random.uniform(0.3, 0.7)
        draw = ImageDraw.Draw(picture)
        shape = (draw.ellipse, draw.rectangle)[number]
        shape((x - a, y - b, x + a, y + b), fill=tuple(random.integers(0, 256, 3).tolist()))
        found.append(picture)
    return found


def digit(seed: int) -> Image.Image:
    """A digit of 28 by 28 pixels, turned, moved and sized as hands do."""
    random = np.random.default_rng(seed)
    large = Image.new("L", (112, 112))
    font = ImageFont.load_default(size=float(random.uniform(70, 95)))
    place = (56 + random.uniform(-8, 8), 56 + random.uniform(-8, 8))
    ImageDraw.Draw(large).text(
        place, str(seed % 10), fill=255, font=font, anchor="mm", stroke_width=int(random.integers(0, 5))
    )
    turned = large.rotate(random.uniform(-20, 20), Image.Resampling.BICUBIC)
    return turned.resize((28, 28), Image.Resampling.LANCZOS).convert("RGB")


def shape(seed: int) -> Image.Image:
    """One of three shapes on a plain ground."""
    random = np.random.default_rng(seed)
    light, dark = random.integers(150, 256, 3).tolist(), random.integers(0, 110, 3).tolist()
    picture = Image.new("RGB", (128, 128), tuple(light))
    radius = random.uniform(20, 50)
    x, y = random.uniform(radius, 128 - radius, 2)
    ImageDraw.Draw(picture).regular_polygon(
        (x, y, radius), (3, 4, 40)[seed % 3], rotation=random.uniform(0, 120), fill=tuple(dark)
    )
    return picture


def jpeg(picture: Image.Image, quality: int = 90) -> bytes:
    out = io.BytesIO()
    picture.convert("RGB").save(out, "JPEG", quality=quality)
    return out.getvalue()


def resized(share: float, down: float | None = None) -> Change:
    """Scaled, with another share for the height when one is given."""

    def change(picture: Image.Image) -> bytes:
        width, height = picture.size
        size = max(1, round(width * share)), max(1, round(height * (down or share)))
        return jpeg(picture.resize(size, Image.Resampling.LANCZOS))

    return change


def cropped(share: float) -> Change:
    """A border is cut off on all sides, so that ``share`` of each side is left."""

    def change(picture: Image.Image) -> bytes:
        width, height = picture.size
        x, y = width * (1 - share) / 2, height * (1 - share) / 2
        return jpeg(picture.crop((round(x), round(y), round(width - x), round(height - y))))

    return change


def shifted(share: float) -> Change:
    def change(picture: Image.Image) -> bytes:
        return jpeg(picture.transform(picture.size, Image.Transform.AFFINE, (1, 0, picture.width * share, 0, 1, 0)))

    return change


CHANGES: Mapping[str, Change] = {
    "encoded anew, quality 30": lambda picture: jpeg(picture, 30),
    "encoded anew, quality 50": lambda picture: jpeg(picture, 50),
    "encoded anew, quality 75": lambda picture: jpeg(picture, 75),
    "encoded anew, quality 95": lambda picture: jpeg(picture, 95),
    "three quarters of the size": resized(0.75),
    "half the size": resized(0.5),
    "one and a half the size": resized(1.5),
    "90 % of the height": resized(1, 0.9),
    "brightness + 20 %": lambda picture: jpeg(ImageEnhance.Brightness(picture).enhance(1.2)),
    "brightness - 30 %": lambda picture: jpeg(ImageEnhance.Brightness(picture).enhance(0.7)),
    "contrast + 30 %": lambda picture: jpeg(ImageEnhance.Contrast(picture).enhance(1.3)),
    "contrast - 40 %": lambda picture: jpeg(ImageEnhance.Contrast(picture).enhance(0.6)),
    "grey": lambda picture: jpeg(picture.convert("L")),
    "mirrored": lambda picture: jpeg(picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)),
    "cropped to 98 %": cropped(0.98),
    "cropped to 95 %": cropped(0.95),
    "cropped to 90 %": cropped(0.90),
    "shifted by 1 %": shifted(0.01),
    "shifted by 2 %": shifted(0.02),
}


def measured(families: Mapping[str, list[Image.Image]]) -> dict[tuple[str, str], tuple[int, int, int]]:
    """(copies found, copies there are, wrong pairs) by family and change.

    For each change all pictures of all families and their altered copies lie together. A pair is wrong when it is not
    of a picture and its own copy; it counts for the family of its first picture.
    """
    names = np.array([name for name, pictures in families.items() for _ in pictures])
    pictures = [picture for own in families.values() for picture in own]
    plain = grids([jpeg(picture) for picture in pictures])
    found: dict[tuple[str, str], tuple[int, int, int]] = {}
    for change, make in CHANGES.items():
        pairs = near_pictures(np.concatenate((plain, grids([make(picture) for picture in pictures]))))
        is_right = pairs.second - pairs.first == len(pictures)
        for name in families:
            own = names[pairs.first % len(pictures)] == name
            found[name, change] = int((own & is_right).sum()), int((names == name).sum()), int((own & ~is_right).sum())
    return found


def near_pictures(grids: Grids) -> Pairs:
    """What a conversion takes for near-duplicates."""
    thumbnails = thumbnails_of(grids)
    pairs = near_pairs(fingerprints_of(grids), np.flatnonzero(has_contrast(thumbnails)), NEAR_BITS)
    return pairs.of(alike(pairs, thumbnails))


def grids(encoded: Iterable[bytes]) -> Grids:
    """Of JPEGs, as a conversion takes them."""
    made = []
    for data in encoded:
        header = read_header(data)
        small = small_jpeg(data, header.height, header.width)
        made.append(grid_of(small.array, small.span, small.step))
    return np.array(made)


def drawn(count: int) -> dict[str, list[Image.Image]]:
    """The families, each of so many pictures."""
    return {
        "scenes": [scene(seed) for seed in range(count)],
        "bursts": [picture for seed in range(count // 2) for picture in burst(100_000 + seed)],
        "digits": [digit(seed) for seed in range(count)],
        "shapes": [shape(seed) for seed in range(count)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.near_duplicates", description=__doc__)
    parser.add_argument("--pictures", type=int, default=400, help="of each family")
    parser.add_argument("--photos", type=Path, help="a folder of further pictures")
    chosen = parser.parse_args()
    families = drawn(chosen.pictures)
    if chosen.photos:
        paths = sorted(path for path in chosen.photos.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
        unique = {path.read_bytes(): path for path in paths}.values()
        families["photos"] = [Image.open(path).convert("RGB") for path in unique]
    table = measured(families)
    print("| altered copy | " + " | ".join(families) + " |")
    print("| --- |" + " --- |" * len(families))
    for change in CHANGES:
        cells = []
        for name in families:
            found, there, wrong = table[name, change]
            cells.append(f"{found / there:.3f} / {found / max(1, found + wrong):.3f}")
        print(f"| {change} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
