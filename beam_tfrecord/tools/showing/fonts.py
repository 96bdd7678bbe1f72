"""Letters on a sheet: Pillow's own font, which every machine has, and for other scripts a font of the machine.

Pillow's font has little more than ASCII. A text with other letters is set in the first font of a list that has them
all; without one, letters lose their accents, and what is left without a shape becomes ``?``.
"""

from __future__ import annotations

import functools
import unicodedata

from PIL import ImageFont

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
