"""Numbers and texts as the page shows them."""

from __future__ import annotations

import re

from beam_tfrecord.core.public_text import public_text

MAX_TEXT = 160  # characters of a text that are shown; the rest is in its tooltip
MAX_TITLE = 400  # characters of a tooltip

_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def clean(text: object) -> str:
    """A text as it may be shown: without the queries of web addresses, and with characters visible that are not.

    These are control characters, those that turn the direction of writing, and halves of characters.
    """
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", public_text(str(text)))


def shorten(text: str, most: int = MAX_TEXT) -> str:
    """A text of at most ``most`` characters: of a longer one the middle is left out."""
    if len(text) <= most:
        return text
    tail = most // 3
    return f"{text[: most - tail - 1]}…{text[-tail:]}"


def number(value: float) -> str:
    """``1,234``; of numbers that are not whole three digits and more are kept: ``0.123``, ``12.3``."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def compact(value: float) -> str:
    """``950``, ``1.2k``, ``35k``, ``1.5M``."""
    for scale, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{_two_digits(value / scale)}{unit}"
    return _two_digits(value)


def _two_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def file_size(value: float) -> str:
    """``950 B``, ``1.2 kB``, ``35 MB``, ``1.5 GB``; decimal units."""
    for scale, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= scale:
            return f"{_three_digits(value / scale)} {unit}"
    return f"{value:.0f} B"


def _three_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def megapixels(value: float) -> str:
    """Pixels as ``0.3 MP``; below 10,000 as ``64 px``."""
    return f"{value:,.0f} px" if value < 10_000 else f"{_three_digits(value / 1e6)} MP"


def pixels(value: float) -> str:
    return f"{value:,.0f} px"


def percent(share: float) -> str:
    """``12 %``, ``1.2 %``, ``0.03 %``; what is there is never ``0 %``."""
    value = 100 * share
    if 0 < value < 0.01:
        return "< 0.01 %"
    if 99.9 < value < 100:
        return "> 99.9 %"
    return f"{value:.0f} %" if value >= 10 or value == 0 else f"{value:.2g} %"


def millionths(value: float) -> str:
    """Millionths as a percentage."""
    return percent(value / 1e6)


def plural(count: int, word: str, more: str = "") -> str:
    """``1 image``, ``2 images``; ``more``: the plural of a word that does not take an s."""
    return f"{count:,} {word if count == 1 else more or word + 's'}"
