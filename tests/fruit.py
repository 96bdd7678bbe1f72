"""Drawn still lifes: fruit on tables, with the box and the outline of each piece, the same on every run.

For what people look at: the pictures of the README, and the inputs that the examples of the documentation name.
"""

from __future__ import annotations

import functools
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from tests.samples import HTML_ERROR_PAGE, jpeg, truncated, turned_jpeg

Colour = tuple[int, int, int]
Points = list[tuple[float, float]]

SCALE = 3  # drawn larger and scaled down, for smooth edges
STEPS = 72
WOOD = ((214, 176, 128), (196, 152, 104), (226, 196, 156), (142, 104, 74))
WALLS = ((236, 232, 222), (214, 224, 228), (232, 220, 214), (206, 216, 200))


@dataclass(frozen=True)
class Piece:
    """One fruit in a picture. outline: pixels of the picture. box: (xmin, ymin, xmax, ymax) of the outline."""

    name: str
    outline: Points
    box: tuple[float, float, float, float]


@dataclass(frozen=True)
class StillLife:
    """A picture and what lies in it."""

    image: Image.Image
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class _Kind:
    """How a fruit looks: its outline around (0, 0) with radius 1, and its colours."""

    outline: Callable[[], Points]
    colours: tuple[Colour, ...]
    stem: tuple[float, float, float, float] | None = None
    leaf: bool = False


def _polar(radius: Callable[[float], float], wide: float = 1.0) -> Points:
    angles = [2 * math.pi * step / STEPS for step in range(STEPS)]
    return [(wide * radius(a) * math.sin(a), -radius(a) * math.cos(a)) for a in angles]


def _apple() -> Points:
    def radius(angle: float) -> float:
        from_top = min(angle, 2 * math.pi - angle)
        return 0.96 - 0.2 * math.exp(-((from_top / 0.36) ** 2)) + 0.03 * math.cos(5 * angle)

    return _polar(radius, 1.06)


def _plum() -> Points:
    return _polar(lambda a: 0.92 + 0.015 * math.cos(3 * a))


def _pear() -> Points:
    def half_width(y: float) -> float:
        return 0.66 + 0.24 * y - 0.13 * math.exp(-(((y + 0.42) / 0.3) ** 2))

    angles = [2 * math.pi * step / STEPS for step in range(STEPS)]
    return [(math.sin(a) * half_width(-math.cos(a)), -math.cos(a)) for a in angles]


def _lemon() -> Points:
    return [(y * 1.25, -x * 0.72) for x, y in _polar(lambda a: 0.9 + 0.17 * abs(math.sin(a)) ** 14)]


def _banana() -> Points:
    def arc(radius: float, thin: float, turn: int) -> Points:
        steps = range(STEPS // 2 + 1)
        angles = [math.pi * (0.12 + 0.76 * step / (STEPS // 2)) for step in steps][::turn]
        bulge = [math.sin((a / math.pi - 0.12) / 0.76 * math.pi) ** 0.6 for a in angles]
        return [
            ((radius + thin * b) * math.cos(a) * 1.1, (radius + thin * b) * math.sin(a) - 0.75)
            for a, b in zip(angles, bulge, strict=True)
        ]

    return [*arc(1.06, 0.26, 1), *arc(1.0, -0.22, -1)]


KINDS = {
    "apple": _Kind(_apple, ((198, 40, 44), (176, 30, 52), (134, 176, 56)), (0.0, -0.72, 0.1, -1.12), True),
    "banana": _Kind(_banana, ((244, 208, 63), (236, 196, 48)), None),
    "lemon": _Kind(_lemon, ((250, 228, 74), (244, 220, 60)), None),
    "plum": _Kind(_plum, ((104, 62, 140), (82, 66, 148)), (0.0, -0.84, 0.03, -1.0), True),
    "pear": _Kind(_pear, ((172, 190, 70), (206, 186, 84)), (0.0, -0.9, 0.12, -1.28), False),
}


def still_life(names: Sequence[str], seed: int, width: int = 320, height: int = 240) -> StillLife:
    """The named fruits on a table; places, sizes, turns and colours follow from the seed."""
    return _still_life(tuple(names), seed, width, height)


@functools.cache
def _still_life(names: tuple[str, ...], seed: int, width: int, height: int) -> StillLife:
    random = np.random.default_rng([seed, *map(ord, "".join(names))])
    image = _table(width * SCALE, height * SCALE, random)
    columns = len(names) if len(names) < 3 and width > height else min(2, len(names))
    if len(names) == 2 and height > width:
        columns = 1
    rows = math.ceil(len(names) / columns)
    pieces = []
    for number, name in enumerate(names):
        row, column = divmod(number, columns)
        in_row = min(columns, len(names) - row * columns)  # a last row that is not full is centred
        cell_width, cell_height = width / in_row, height / rows
        radius = min(width / columns, cell_height) * random.uniform(0.3, 0.38)
        x = cell_width * (column + 0.5) + random.uniform(-0.06, 0.06) * cell_width
        y = cell_height * (row + 0.54) + random.uniform(-0.04, 0.04) * cell_height
        pieces.append(_draw(image, name, (x, y), radius, random))
    small = image.resize((width, height), Image.Resampling.LANCZOS)
    return StillLife(small, tuple(pieces))


def _table(width: int, height: int, random: np.random.Generator) -> Image.Image:
    """A wall, and a table in front of it, both lit from one side."""
    wall = np.array(WALLS[random.integers(len(WALLS))], dtype=float)
    wood = np.array(WOOD[random.integers(len(WOOD))], dtype=float)
    edge = int(height * random.uniform(0.14, 0.24))
    down, across = np.mgrid[0:height, 0:width]
    light = (1.04 - 0.22 * across / width)[..., None]
    grain = 1 + 0.035 * np.sin(down / (height * 0.012) + 3 * np.sin(across / (width * 0.21) + random.uniform(0, 6)))
    near = (0.82 + 0.26 * (down - edge) / (height - edge))[..., None]
    pixels = np.where((down < edge)[..., None], wall * light, wood * light * near * grain[..., None])
    pixels += random.normal(0, 3, (height, width, 1))
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def _draw(
    image: Image.Image, name: str, centre: tuple[float, float], radius: float, random: np.random.Generator
) -> Piece:
    kind = KINDS[name]
    turn = random.uniform(-0.5, 0.5) if name in ("banana", "lemon") else random.uniform(-0.22, 0.22)
    x, y = centre

    def place(points: Points, scale: float = 1.0) -> Points:
        sine, cosine = math.sin(turn), math.cos(turn)
        return [
            (scale * (x + radius * (px * cosine - py * sine)), scale * (y + radius * (px * sine + py * cosine)))
            for px, py in points
        ]

    size = image.size
    outline = place(kind.outline())
    shape = Image.new("L", size)
    ImageDraw.Draw(shape).polygon([(SCALE * px, SCALE * py) for px, py in outline], fill=255)

    shadow = ImageChops.offset(shape, int(0.22 * radius * SCALE), int(0.16 * radius * SCALE))
    shadow = shadow.filter(ImageFilter.GaussianBlur(0.12 * radius * SCALE)).point(lambda value: value * 0.42)
    image.paste((52, 36, 26), mask=shadow)

    pen = ImageDraw.Draw(image)
    if kind.stem is not None:
        stem = place([kind.stem[:2], kind.stem[2:]], SCALE)
        pen.line(stem, fill=(86, 62, 36), width=max(2, int(0.09 * radius * SCALE)))
        if kind.leaf:
            leaf = [(0.04, -0.86), (0.22, -1.1), (0.5, -1.12), (0.36, -0.92)]
            pen.polygon(place(leaf, SCALE), fill=(84, 132, 62))

    colour = np.array(kind.colours[random.integers(len(kind.colours))], dtype=float)
    down, across = np.mgrid[0 : size[1], 0 : size[0]].astype(np.float32)
    light = np.hypot(across - SCALE * (x - 0.38 * radius), down - SCALE * (y - 0.42 * radius)) / (SCALE * radius)
    shade = np.clip(1.16 - 0.34 * light**1.3, 0.45, 1.2)[..., None]
    shine = np.exp(-((light / 0.26) ** 2))[..., None]
    pixels = colour * shade * (1 - 0.5 * shine) + 255 * 0.5 * shine
    pixels += random.normal(0, 5 if name == "lemon" else 2, (*size[::-1], 1))
    image.paste(Image.fromarray(pixels.clip(0, 255).astype(np.uint8)), mask=shape)
    if name == "banana":
        ends = place([kind.outline()[0], kind.outline()[STEPS // 2]], SCALE)
        for px, py in ends:
            dot = 0.07 * radius * SCALE
            pen.ellipse((px - dot, py - dot, px + dot, py + dot), fill=(92, 70, 38))

    xs, ys = [px for px, _ in outline], [py for _, py in outline]
    return Piece(name, outline, (min(xs), min(ys), max(xs), max(ys)))


# ---------------------------------------------------------------------------------------------------------------------
# Collections.


def fruit_folders(per_class: int = 6, width: int = 96, height: int = 72) -> dict[str, bytes]:
    """One fruit in each picture, in class folders: ``apple/apple_00.jpg`` ..."""
    return {
        f"{name}/{name}_{number:02}.jpg": jpeg(still_life([name], number, width, height).image)
        for name in KINDS
        for number in range(per_class)
    }


def fruit_table(count: int = 60) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Pictures of one to four fruits, and their COCO annotations: what people have, with some files that are damaged.

    Two pictures are cut, one is an error page, one is not there, one lies on its side, and two are the same, of which
    the second has the annotations of another.
    """
    random = np.random.default_rng(11)
    files: dict[str, bytes] = {}
    document: dict[str, Any] = {
        "images": [],
        "annotations": [],
        "categories": [{"id": number, "name": name} for number, name in enumerate(KINDS, start=1)],
    }
    ids = {name: number for number, name in enumerate(KINDS, start=1)}
    weights = np.array([0.34, 0.22, 0.1, 0.14, 0.2])
    for number in range(count):
        width, height = ((320, 240), (300, 225), (240, 300), (360, 240))[int(random.integers(4))]
        names = [str(name) for name in random.choice(list(KINDS), size=int(random.integers(1, 5)), p=weights)]
        scene = still_life(names, number, width, height)
        name = f"table_{number:03}.jpg"
        files[name] = jpeg(scene.image)
        document["images"].append({"id": number + 1, "file_name": name, "width": width, "height": height})
        for piece in scene.pieces:
            xmin, ymin, xmax, ymax = (round(side, 1) for side in piece.box)
            outline = [round(value, 1) for point in piece.outline for value in point]
            annotation = {
                "id": len(document["annotations"]) + 1,
                "image_id": number + 1,
                "category_id": ids[piece.name],
                "bbox": [xmin, ymin, round(xmax - xmin, 1), round(ymax - ymin, 1)],
                "area": round(0.8 * (xmax - xmin) * (ymax - ymin), 1),
                "iscrowd": 0,
                "segmentation": [outline],
            }
            document["annotations"].append(annotation)
    files["table_007.jpg"] = truncated(files["table_007.jpg"])
    files["table_023.jpg"] = truncated(files["table_023.jpg"], 0.3)
    files["table_031.jpg"] = HTML_ERROR_PAGE
    files["table_038.jpg"] = turned_jpeg(Image.open(io.BytesIO(files["table_038.jpg"])), 6)
    files["table_045.jpg"] = files["table_044.jpg"]
    del files["table_052.jpg"]
    return files, document


def as_json(document: dict[str, Any]) -> bytes:
    """A document as the bytes of a file."""
    return json.dumps(document).encode()
