"""A contact sheet: many pictures on one page, with labels under them and annotations on them."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

from beam_tfrecord.tools.showing.drawing import Colour, draw_annotations, draw_text, fitted, numbered_colour, text_width
from beam_tfrecord.tools.showing.pictures import DrawnPicture

MAX_SIDE, SMALL_SIDE = 640, 256  # of pictures that wait to be placed: of a few, and of many

_PAGE_WIDTH = 1800
_MARGIN = 32
_GAP = 18
_MIN_CELL, _MAX_CELL = 150, 460
_SHOWN_CLASSES = 14

_PAGE: Colour = (255, 255, 255)
_CELL: Colour = (241, 243, 246)
_INK: Colour = (24, 28, 34)
_FAINT: Colour = (108, 117, 128)
_RULE: Colour = (222, 226, 231)
_WARNING: Colour = (176, 42, 48)


@dataclass(frozen=True)
class Layout:
    """Where things go, in pixels. cell: side of a picture's place. title_size, subtitle_size: of the lines below it."""

    columns: int
    cell: int

    @property
    def title_size(self) -> int:
        return max(12, min(18, self.cell // 15))

    @property
    def subtitle_size(self) -> int:
        return max(10, self.title_size - 3)

    @property
    def caption(self) -> int:
        """Height of the lines below a picture."""
        return self.title_size + self.subtitle_size + 16

    @property
    def width(self) -> int:
        return 2 * _MARGIN + self.columns * self.cell + (self.columns - 1) * _GAP


def plan_layout(count: int, columns: int | None = None) -> Layout:
    """A layout for ``count`` pictures: as large as a page allows, and never too small to be made out."""
    if columns is None:
        columns = count if count <= 3 else math.ceil(math.sqrt(count * 1.35))
    columns = max(1, min(columns, count))
    cell = (_PAGE_WIDTH - 2 * _MARGIN - (columns - 1) * _GAP) // columns
    return Layout(columns, max(_MIN_CELL, min(_MAX_CELL, cell)))


def draw_sheet(pictures: Sequence[DrawnPicture], heading: str, remark: str, columns: int | None = None) -> Image.Image:
    """The page, in RGB. heading: what the pictures are of; remark: how many of how many, at the right.

    Raises ValueError when there is no picture.
    """
    if not pictures:
        raise ValueError("there is no picture to draw")
    layout = plan_layout(len(pictures), columns)
    legend = _legend(pictures)
    colours = {number: numbered_colour(place) for place, (number, _) in enumerate(legend)}
    for number in sorted({item.number for picture in pictures for item in picture.objects} - set(colours)):
        colours[number] = numbered_colour(len(colours))
    cells = [_drawn_cell(picture, layout, colours) for picture in pictures]
    rows = [cells[start : start + layout.columns] for start in range(0, len(cells), layout.columns)]
    heights = [max(cell.height for cell in row) for row in rows]
    top = _MARGIN + 44 + (30 if legend else 0)
    bottom = top + sum(heights) + len(rows) * (layout.caption + _GAP) - _GAP + _MARGIN
    width = max(layout.width, 2 * _MARGIN + 360)
    page = Image.new("RGB", (width, bottom), _PAGE)
    _draw_header(page, heading, remark, legend, colours)
    y = top
    for number, (row, height) in enumerate(zip(rows, heights, strict=True)):
        for column, cell in enumerate(row):
            x = _MARGIN + column * (layout.cell + _GAP)
            picture = pictures[number * layout.columns + column]
            _draw_place(page, cell, picture, layout, (x, y), height)
        y += height + layout.caption + _GAP
    return page


def png_bytes(image: Image.Image) -> bytes:
    """The page as PNG."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


# ---------------------------------------------------------------------------------------------------------------------
# Cells


def _drawn_cell(picture: DrawnPicture, layout: Layout, colours: Mapping[int, Colour]) -> Image.Image:
    """The picture at its final size, annotations drawn on it."""
    if picture.image is None:
        return _missing(picture.trouble, layout)
    width, height = picture.image.size
    scale = min(layout.cell / width, layout.cell / height)
    if scale > 1:  # small pictures are enlarged by whole pixels as far as they can be, so that they stay what they are
        scale = min(scale, 8)
        how = Image.Resampling.NEAREST if scale >= 3 else Image.Resampling.BICUBIC
    else:
        how = Image.Resampling.LANCZOS
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return draw_annotations(picture.image.resize(size, how), picture, colours)


def _missing(trouble: str, layout: Layout) -> Image.Image:
    """What stands for a picture that does not decode."""
    cell = Image.new("RGB", (layout.cell, layout.cell * 3 // 4), (250, 236, 236))
    draw = ImageDraw.Draw(cell)
    draw.rectangle((0, 0, cell.width - 1, cell.height - 1), outline=(230, 190, 190))
    middle = cell.width / 2, cell.height / 2
    size = layout.title_size
    draw_text(cell, (middle[0], middle[1] - size), "does not decode", size, _WARNING, "mm")
    told = fitted(trouble, cell.width - 16, layout.subtitle_size)
    draw_text(cell, (middle[0], middle[1] + 6), told, layout.subtitle_size, _FAINT, "mm")
    return cell


def _draw_place(
    page: Image.Image, cell: Image.Image, picture: DrawnPicture, layout: Layout, place: tuple[int, int], height: int
) -> None:
    x, y = place
    draw = ImageDraw.Draw(page)
    draw.rectangle((x, y, x + layout.cell - 1, y + height - 1), fill=_CELL)
    page.paste(cell, (x + (layout.cell - cell.width) // 2, y + (height - cell.height) // 2))
    title = fitted(picture.title, layout.cell, layout.title_size)
    draw_text(page, (x, y + height + 6), title, layout.title_size, _INK)
    line = y + height + 6 + layout.title_size + 4
    size = f"{picture.size[0]}x{picture.size[1]}" if picture.image is not None else ""
    room = text_width(size, layout.subtitle_size) + 8 if size else 0
    subtitle = fitted(picture.subtitle, layout.cell - room, layout.subtitle_size)
    draw_text(page, (x, line), subtitle, layout.subtitle_size, _FAINT)
    draw_text(page, (x + layout.cell - 1, line), size, layout.subtitle_size, _FAINT, "ra")


# ---------------------------------------------------------------------------------------------------------------------
# Header


def _legend(pictures: Sequence[DrawnPicture]) -> list[tuple[int, str]]:
    """(id, name) of the classes of objects, the most frequent first."""
    counts = Counter((item.number, item.name) for picture in pictures for item in picture.objects if item.name)
    return [one for one, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def _draw_header(
    page: Image.Image, heading: str, remark: str, legend: Sequence[tuple[int, str]], colours: Mapping[int, Colour]
) -> None:
    draw = ImageDraw.Draw(page)
    room = page.width - 2 * _MARGIN
    used = text_width(remark, 15)
    draw_text(page, (page.width - _MARGIN, _MARGIN + 3), fitted(remark, room, 15), 15, _FAINT, "ra")
    draw_text(page, (_MARGIN, _MARGIN - 4), fitted(heading, room - used - 24, 23), 23, _INK)
    draw.line((_MARGIN, _MARGIN + 30, page.width - _MARGIN, _MARGIN + 30), fill=_RULE)
    x = float(_MARGIN)
    for place, (number, name) in enumerate(legend):
        text = fitted(name, 220, 14)
        width = 18 + text_width(text, 14) + 20
        if place == _SHOWN_CLASSES or x + width > page.width - _MARGIN - 60:
            draw_text(page, (x, _MARGIN + 41), f"+{len(legend) - place} more", 14, _FAINT)
            break
        draw.rounded_rectangle((x, _MARGIN + 43, x + 12, _MARGIN + 55), radius=3, fill=colours[number])
        draw_text(page, (x + 18, _MARGIN + 41), text, 14, _INK)
        x += width
