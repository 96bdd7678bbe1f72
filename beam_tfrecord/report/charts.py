"""Charts as inline SVG: no script, colours from the style sheet of the page, words for those who cannot see them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from beam_tfrecord.conversion.writing.digest import Bar, Digest, bars
from beam_tfrecord.report.text import compact, number, percent

WIDTH, HEIGHT = 360, 176
_LEFT, _RIGHT, _TOP, _BOTTOM = 38, 10, 10, 22
MAX_BARS = 24
_INNER_HEIGHT = HEIGHT - _TOP - _BOTTOM
_TICK_SPACE = 52  # pixels from a label of the axis to the next, or more where they are long
_CHARACTER = 6.5  # pixels of a character
_GAP = 9  # pixels between two labels
_MAX_COLUMN = 52

Format = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a bar. style: class of the style sheet. title: what the tooltip says."""

    value: float
    style: str
    title: str = ""


def stacked_bar(parts: Sequence[Part], total: float, label: str = "", thickness: int = 10) -> Markup:
    """A horizontal bar made of parts; as wide as where it stands.

    total: what the whole width means. label: what it shows, in words; without it the numbers stand beside the bar.
    """
    drawn = []
    x = 0.0
    for part in parts:
        width = 100 * part.value / total if total else 0
        if width > 0:
            shown = max(width, 0.4)  # what is there can be seen
            drawn.append(
                f'<rect x="{_n(min(x, 100 - shown))}" y="0" width="{_n(shown)}" height="{thickness}" '
                f'class="{escape(part.style)}">{_title(part.title)}</rect>'
            )
            x += width
    told = f'role="img" aria-label="{escape(label)}"' if label else 'aria-hidden="true"'
    return Markup(
        f'<svg class="hbar" viewBox="0 0 100 {thickness}" preserveAspectRatio="none" {told}>{"".join(drawn)}</svg>'
    )


def histogram(
    digest: Digest, name: str, unit: Format, things: str = "images", tick_unit: Format | None = None
) -> Markup:
    """The histogram of a digest.

    name: what is counted. unit: how its values are written; tick_unit: below the axis. things: what has them.
    """
    drawn = bars(digest, MAX_BARS)
    summary = (
        f"{name}: {number(digest.count)} {things}, from {unit(digest.least)} to {unit(digest.greatest)}, "
        f"half of them up to about {unit(digest.quantile(0.5))}"
    )
    columns = [Part(bar.count, "bar", _bar_title(bar, unit, digest, things)) for bar in drawn]
    ticks = _value_ticks(drawn, tick_unit or unit)
    return _column_chart(columns, ticks, compact, summary)


def column_chart(columns: Sequence[Part], label: str, unit: Format, ticks: Sequence[tuple[float, str]] = ()) -> Markup:
    """Vertical bars side by side. ticks: (place, text) below the axis; the middle of a bar is its number + 0.5."""
    return _column_chart(columns, ticks, unit, label)


def _bar_title(bar: Bar, unit: Format, digest: Digest, things: str) -> str:
    low, high = max(bar.low, digest.least), min(bar.high - 1, digest.greatest)
    span = unit(low) if unit(low) == unit(high) else f"{unit(low)} to {unit(high)}"
    return f"{span}: {bar.count:,} {things} ({percent(bar.count / digest.count)})"


def _column_chart(columns: Sequence[Part], ticks: Sequence[tuple[float, str]], unit: Format, label: str) -> Markup:
    top = nice_top(max((column.value for column in columns), default=0))
    levels = [(unit(top * share), _TOP + _INNER_HEIGHT * (1 - share)) for share in (0, 0.5, 1)]
    left = max(_LEFT, 12 + _CHARACTER * max(len(text) for text, _ in levels))
    step = column_width(len(columns), left)
    shapes = []
    for text, y in levels:
        shapes.append(f'<line class="rule" x1="{_n(left)}" x2="{WIDTH - _RIGHT}" y1="{_n(y)}" y2="{_n(y)}"/>')
        shapes.append(f'<text class="axis" x="{_n(left - 5)}" y="{_n(y + 4)}" text-anchor="end">{escape(text)}</text>')
    shapes += [_column(column, left + place * step, step, top) for place, column in enumerate(columns) if column.value]
    for place, text in ticks:
        x = _n(left + place * step)
        shapes.append(
            f'<line class="tick" x1="{x}" x2="{x}" y1="{HEIGHT - _BOTTOM}" y2="{HEIGHT - _BOTTOM + 4}"/>'
            f'<text class="axis" x="{x}" y="{HEIGHT - 6}" text-anchor="middle">{escape(text)}</text>'
        )
    return Markup(
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">'
        f"{''.join(shapes)}</svg>"
    )


def _column(column: Part, x: float, step: float, top: float) -> str:
    gap = 1 if step < 6 else 2
    height = max(_INNER_HEIGHT * column.value / top, 1.0)  # what is there can be seen
    return (
        f'<rect class="{escape(column.style)}" x="{_n(x + gap / 2)}" y="{_n(_TOP + _INNER_HEIGHT - height)}" '
        f'width="{_n(max(step - gap, 0.6))}" height="{_n(height)}" rx="{1 if step > 6 else 0}">'
        f"{_title(column.title)}</rect>"
    )


def column_width(number: int, left: float = _LEFT) -> float:
    """Width of a column and the gap beside it, where there are so many from ``left`` on."""
    return min(_MAX_COLUMN, (WIDTH - left - _RIGHT) / max(1, number))


def nice_top(greatest: float) -> float:
    """The end of an axis: a round number at or above the greatest value whose half is round too."""
    if greatest <= 0:
        return 1
    scale = 10.0 ** math.floor(math.log10(greatest))
    steps = (2, 4, 6, 8, 10) if scale == 1 else (1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10)
    return next(step * scale for step in steps if step * scale >= greatest * 0.9999)


# ---------------------------------------------------------------------------------------------------------------------
# Labels below the axis


def _value_ticks(drawn: Sequence[Bar], unit: Format) -> list[tuple[float, str]]:
    """Labels at round values, as many as have room."""
    if not drawn:
        return []
    step = column_width(len(drawn))
    if all(bar.high - bar.low == 1 for bar in drawn):
        longest = max(_width(unit(bar.low)) for bar in drawn)
        every = math.ceil(max(_TICK_SPACE / 2, longest + _GAP) / step)
        return [(place + 0.5, unit(bar.low)) for place, bar in enumerate(drawn) if place % every == 0]
    ticks: list[tuple[float, str]] = []
    free = -math.inf  # where the next label may begin, in pixels
    for value in _round_values(drawn[0].low, drawn[-1].high):
        place, label = _place_of(value, drawn), unit(value)
        middle, half = place * step, _width(label) / 2
        far = not ticks or middle - ticks[-1][0] * step >= _TICK_SPACE
        if far and free <= middle - half and middle + half <= step * len(drawn) + _RIGHT:
            ticks.append((place, label))
            free = middle + half + _GAP
    return ticks


def _width(label: str) -> float:
    return _CHARACTER * len(label)


def _round_values(low: int, high: int) -> list[int]:
    """Round numbers between two: at least two of them if there can be."""
    for steps in ((1,), (1, 3), (1, 2, 5), (10, 12, 15, 20, 25, 30, 40, 50, 60, 80), range(10, 100)):
        values = [
            step * 10**power // (10 if len(steps) > 3 else 1)
            for power in range(19)
            for step in steps
            if low <= step * 10**power / (10 if len(steps) > 3 else 1) <= high
        ]
        if len(values) >= 3:
            return values
    return [low, high]


def _place_of(value: int, drawn: Sequence[Bar]) -> float:
    """Where a value lies on the axis, in bars; within a bar on a logarithmic scale where the bars are."""
    for place, bar in enumerate(drawn):
        if value < bar.high or place == len(drawn) - 1:
            if bar.low > 0 and bar.high - bar.low > 1:
                share = math.log(max(value, bar.low) / bar.low) / math.log(bar.high / bar.low)
            else:
                share = (value - bar.low) / (bar.high - bar.low)
            return place + min(max(share, 0.0), 1.0)
    return 0.0


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>" if text else ""


def _n(value: float) -> str:
    """A coordinate in few characters."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
