"""Boxes, masks and keypoints drawn on a picture of its final size, and colours that tell classes apart."""

from __future__ import annotations

import colorsys
import functools
import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from beam_tfrecord.tools.showing.pictures import DrawnObject, DrawnPicture

# ---------------------------------------------------------------------------------------------------------------------
# Letters on a sheet: Pillow's own font, which every machine has, and for other scripts a font of the machine.
#
# Pillow's font has little more than ASCII. A text with other letters is set in the first font of a list that has them
# all; without one, letters lose their accents, and what is left without a shape becomes ``?``.


Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

# Looked for where the system keeps its fonts. Those with many scripts come last: they are large.
_CANDIDATES = (
    "DejaVuSans.ttf",
    "NotoSans-Regular.ttf",
    "LiberationSans-Regular.ttf",
    "Arial.ttf",
    "Arial Unicode.ttf",
    "NotoSansCJK-Regular.ttc",
    "NotoSansCJKsc-Regular.otf",
    "DroidSansFallbackFull.ttf",
    "WenQuanYiMicroHei.ttf",
    "wqy-microhei.ttc",
    "PingFang.ttc",
    "msyh.ttc",
    "unifont.otf",
)
_NO_LETTER = "\U0010fffd"  # private use, of which fonts show what they show for every letter that they lack
_PROBE_SIZE = 16


@functools.lru_cache(maxsize=256)
def own_font(size: int) -> Font:
    """Pillow's own font."""
    return ImageFont.load_default(size)


@functools.lru_cache(maxsize=256)
def _system_font(name: str, size: int) -> Font | None:
    try:
        return ImageFont.truetype(name, size)
    except OSError:
        return None


@functools.lru_cache(maxsize=4096)
def set_text(text: str, size: int) -> tuple[str, Font]:
    """The text as it can be drawn, and the font to draw it with, ``size`` pixels high."""
    if text.isascii():
        return text, own_font(size)
    for name in ("", *_CANDIDATES):
        if all(_has(name, letter) for letter in set(text)):
            font = own_font(size) if not name else _system_font(name, size)
            if font is not None:
                return text, font
    return "".join(_nearest(letter) for letter in text), own_font(size)


def _nearest(letter: str) -> str:
    """The letter, or what is left of it without its accents, or ``?``."""
    if _has("", letter):
        return letter
    plain = "".join(part for part in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(part))
    return plain if plain and all(_has("", part) for part in plain) else "?"


@functools.lru_cache(maxsize=8192)
def _has(name: str, letter: str) -> bool:
    """Whether a font ('' for Pillow's own) has a shape of its own for a letter."""
    font = own_font(_PROBE_SIZE) if not name else _system_font(name, _PROBE_SIZE)
    if font is None:
        return False
    return letter.isspace() or letter.isascii() or _shape(font, letter) != _shape(font, _NO_LETTER)


def _shape(font: Font, letter: str) -> tuple[object, bytes]:
    mask = font.getmask(letter)
    return mask.size, bytes(mask)


# ---------------------------------------------------------------------------------------------------------------------
# Colours and texts


Colour = tuple[int, int, int]
Point = tuple[float, float]
Area = tuple[float, float, float, float]

# Told apart by people with any colour vision as far as that goes, bright enough on dark pictures.
_COLOURS: tuple[Colour, ...] = (
    (230, 57, 70),
    (29, 132, 215),
    (46, 160, 67),
    (255, 159, 28),
    (142, 68, 202),
    (0, 168, 150),
    (236, 72, 153),
    (140, 98, 57),
    (120, 190, 33),
    (88, 86, 214),
    (214, 178, 0),
    (0, 121, 107),
    (191, 54, 12),
    (3, 169, 214),
    (173, 20, 87),
    (104, 130, 158),
)
_GOLDEN = 0.618033988749895
_VOID = 255  # of masks of the whole image: no class
_FILL = 0.42  # opacity of masks
_WHITE: Colour = (255, 255, 255)
_INK: Colour = (24, 28, 34)
_MAX_TAGS = 14


def numbered_colour(number: int) -> Colour:
    """One of a row of colours, of which the first are easy to tell apart."""
    if 0 <= number < len(_COLOURS):
        return _COLOURS[number]
    red, green, blue = colorsys.hsv_to_rgb((number * _GOLDEN) % 1, 0.72, 0.88)
    return round(red * 255), round(green * 255), round(blue * 255)


def text_colour(background: Colour) -> Colour:
    """Black or white, whichever can be read on a colour."""
    red, green, blue = background
    return _INK if 0.299 * red + 0.587 * green + 0.114 * blue > 150 else _WHITE


def text_width(text: str, size: int) -> float:
    """Width of a text in pixels."""
    shown, font = set_text(text, size)
    return font.getlength(shown)


def fitted(text: str, width: float, size: int) -> str:
    """The text, cut with an ellipsis so that it is not wider than ``width`` pixels."""
    if text_width(text, size) <= width:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if text_width(text[:middle].rstrip() + "…", size) <= width:
            low = middle
        else:
            high = middle - 1
    return text[:low].rstrip() + "…"


def draw_text(image: Image.Image, place: Point, text: str, size: int, colour: Colour, anchor: str = "la") -> None:
    """Write one line. place: of the anchor, as Pillow names anchors."""
    shown, font = set_text(text, size)
    ImageDraw.Draw(image).text(place, shown, fill=colour, font=font, anchor=anchor)


def draw_annotations(image: Image.Image, picture: DrawnPicture, colours: Mapping[int, Colour]) -> Image.Image:
    """A copy of an RGB image, of the size at which it is seen, with all that is annotated on it.

    colours: of each class of objects, by its number.
    """
    canvas = image.copy()
    if picture.classes is not None:
        canvas = _draw_classes(canvas, picture.classes, len(colours))
    for item in picture.objects:
        if item.mask is not None:
            canvas = _draw_mask(canvas, item.mask, colours[item.number])
    for item in sorted(picture.objects, key=_area, reverse=True):
        if item.box is not None:
            _draw_box(canvas, item.box, colours[item.number])
    for item in picture.objects:
        _draw_points(canvas, item, colours[item.number])
    _draw_tags(canvas, picture.objects, colours)
    return canvas


def _area(item: DrawnObject) -> float:
    if item.box is None:
        return 0.0
    ymin, xmin, ymax, xmax = item.box
    return (ymax - ymin) * (xmax - xmin)


# ---------------------------------------------------------------------------------------------------------------------
# Masks


def _draw_mask(canvas: Image.Image, mask: Image.Image, colour: Colour) -> Image.Image:
    full = mask.convert("L").point(lambda value: 255 if value else 0)
    full = full.resize(canvas.size, Image.Resampling.BILINEAR)
    return _painted(canvas, full, Image.new("RGB", canvas.size, colour))


def _draw_classes(canvas: Image.Image, classes: Image.Image, used: int) -> Image.Image:
    """A mask of the whole image: each value in its colour, 0 and void left as they are, edges between them drawn.

    used: colours that mean a class of objects; the values of the mask are something else.
    """
    values = np.asarray(classes.resize(canvas.size, Image.Resampling.NEAREST))
    table = np.array([numbered_colour(used + value - 1) for value in range(256)], np.uint8)
    covered = ((values != 0) & (values != _VOID)).astype(np.uint8) * 255
    painted = _painted(canvas, Image.fromarray(covered), Image.fromarray(table[values]), outline=False)
    edges = np.zeros(values.shape, bool)
    edges[:, 1:] |= values[:, 1:] != values[:, :-1]
    edges[1:] |= values[1:] != values[:-1]
    painted.paste(_WHITE, mask=Image.fromarray(edges.astype(np.uint8) * 190))
    return painted


def _painted(canvas: Image.Image, mask: Image.Image, colours: Image.Image, *, outline: bool = True) -> Image.Image:
    """The canvas with translucent colours where the mask is, and their full strength along its edge."""
    strength = mask.point(lambda value: round(value * _FILL))
    canvas = Image.composite(colours, canvas, strength)
    if outline and min(canvas.size) > 2:
        solid = mask.point(lambda value: 255 if value > 127 else 0)
        inner = solid.filter(ImageFilter.MinFilter(3))
        edge = Image.fromarray(np.asarray(solid) - np.asarray(inner))
        canvas = Image.composite(colours, canvas, edge)
    return canvas


# ---------------------------------------------------------------------------------------------------------------------
# Boxes and their names


def _pixels(box: Sequence[float], size: tuple[int, int]) -> Area:
    ymin, xmin, ymax, xmax = box
    width, height = size[0] - 1, size[1] - 1
    sides = (xmin * width, ymin * height, xmax * width, ymax * height)
    left, top, right, bottom = (side if side == side else 0.0 for side in sides)  # NaN is nowhere
    return min(left, right), min(top, bottom), max(left, right), max(top, bottom)


def _line_width(size: tuple[int, int]) -> int:
    return max(2, round(min(size) / 140))


def _draw_box(canvas: Image.Image, box: Sequence[float], colour: Colour) -> None:
    draw = ImageDraw.Draw(canvas)
    left, top, right, bottom = (round(side) for side in _pixels(box, canvas.size))
    width = _line_width(canvas.size)
    shadow = tuple(part // 3 for part in colour)
    draw.rectangle((left - 1, top - 1, right + 1, bottom + 1), outline=shadow)
    draw.rectangle((left, top, right, bottom), outline=colour, width=width)


def _draw_tags(canvas: Image.Image, objects: Sequence[DrawnObject], colours: Mapping[int, Colour]) -> None:
    """Names of the largest objects, each where it covers no other name."""
    size = max(10, min(15, round(min(canvas.size) / 17)))
    named = sorted((item for item in objects if item.name and item.box is not None), key=_area, reverse=True)
    taken: list[Area] = []
    draw = ImageDraw.Draw(canvas)
    for item in named[:_MAX_TAGS]:
        place = _tag_place(canvas.size, item, size, taken)
        if place is None:
            continue
        taken.append(place)
        colour = colours[item.number]
        draw.rounded_rectangle(place, radius=2, fill=colour)
        text = fitted(item.name, place[2] - place[0] - 4, size)
        middle = ((place[0] + place[2]) / 2, (place[1] + place[3]) / 2)
        draw_text(canvas, middle, text, size, text_colour(colour), "mm")


def _tag_place(canvas: tuple[int, int], item: DrawnObject, size: int, taken: Sequence[Area]) -> Area | None:
    """Where a name fits: above its box, inside of it, or below; None when all are taken."""
    assert item.box is not None
    left, top, _, bottom = _pixels(item.box, canvas)
    width = min(text_width(item.name, size) + 8, canvas[0] - 2)
    height = size + 5
    left = max(0.0, min(left, canvas[0] - width - 1))
    for y in (top - height, top + 1, bottom - height, bottom + 1):
        area = (left, y, left + width, y + height)
        if y >= 0 and y + height < canvas[1] and not any(_overlap(area, other) for other in taken):
            return area
    return None


def _overlap(one: Area, other: Area) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


# ---------------------------------------------------------------------------------------------------------------------
# Keypoints


def _draw_points(canvas: Image.Image, item: DrawnObject, colour: Colour) -> None:
    radius = max(3.0, min(canvas.size) / 75)
    for x, y, visibility in item.points:
        if visibility > 0 and 0 <= x <= 1 and 0 <= y <= 1:
            dot = _dot(radius, colour, visibility > 1)
            place = (round(x * (canvas.width - 1) - dot.width / 2), round(y * (canvas.height - 1) - dot.height / 2))
            canvas.paste(dot, place, dot.getchannel("A"))


@functools.lru_cache(maxsize=128)
def _dot(radius: float, colour: Colour, is_filled: bool) -> Image.Image:
    """A smooth dot with a white rim; a hidden point is a ring."""
    scale = 4
    side = round((2 * radius + 3) * scale)
    dot = Image.new("RGBA", (side, side), (*_WHITE, 0))
    draw = ImageDraw.Draw(dot)
    draw.ellipse((0, 0, side - 1, side - 1), fill=(*_WHITE, 255))
    rim = round(1.2 * scale)
    draw.ellipse((rim, rim, side - 1 - rim, side - 1 - rim), fill=(*colour, 255))
    if not is_filled:
        hole = round(side / 2 - 0.6 * radius * scale)
        draw.ellipse((hole, hole, side - 1 - hole, side - 1 - hole), fill=(*_WHITE, 255))
    return dot.resize((side // scale, side // scale), Image.Resampling.LANCZOS)
