"""Rows of a table that a stray quote takes in: a quoted cell may hold line ends, and one that is not closed holds rows.

A cell with line ends is right as long as what stands on its lines is no row. A line is one when it, and
the line with the quote, have as many cells as the header and, in the column of the images, the name of one.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from beam_tfrecord.annotations.cells import is_number
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.filenames import is_image_name
from beam_tfrecord.manifests.text.dialect import Dialect

_DIGITS = re.compile(r"[0-9]+")
_LETTERS = re.compile(r"[^\W\d_]+")


def line_within(cells: Sequence[str], dialect: Dialect, image: int | None, newline: str = "\n") -> int:
    """Which line of a row over several lines looks like a row of its own, the first being 1; 0 for none.

    cells: of the row. image: place of the column of the images. newline: what ends the lines of the file.
    """
    line = 1
    for place, cell in enumerate(cells):
        first, *others = cell.split(newline)
        own = [*cells[:place], *_cells(first, dialect)] if others else []
        for number, text in enumerate(others, start=1):
            inner = _cells(text, dialect)
            if number == len(others):
                inner = [*inner, *cells[place + 1 :]]
            if _is_row(inner, own, image, len(dialect.header)):
                return line + number
        line += len(others)
    return 0


def line_among(lines: Sequence[str], dialect: Dialect, image: int | None) -> int:
    """The same for a row whose cells could not be told. lines: those that it takes up."""
    own, *others = (_cells(line, dialect) for line in lines)
    width = len(dialect.header)
    return next((number for number, inner in enumerate(others, 2) if _is_row(inner, own, image, width)), 0)


def swallowed(uri: str, start: int, line: int) -> ManifestError:
    """The error for a row that begins on line ``start`` and takes in line ``line``."""
    return ManifestError(
        f"{uri}:{start}: a quote opens in this row, and its cell takes in line {line}, which looks like a row of its "
        f"own. Close the quote on its line, double it if it is part of the text, or take it out"
    )


def _cells(line: str, dialect: Dialect) -> list[str]:
    """The cells of a line that may be none of a CSV; none where they cannot be told."""
    text = line.rstrip("\r\n").replace("\r", " ")  # outside of quotes the reader takes no carriage return
    try:
        return next(csv.reader([text], delimiter=dialect.delimiter, skipinitialspace=dialect.skip_spaces), [])
    except csv.Error:
        return []  # longer than any cell may be


def _is_row(cells: Sequence[str], own: Sequence[str], image: int | None, width: int) -> bool:
    if len(cells) != width or len(own) != width:
        return False
    if image is not None:
        names = cells[image].strip(), own[image].strip()
        return all(map(is_image_name, names)) or (all(names) and _shape(names[0]) == _shape(names[1]))
    # A table without images: numbers where the row that takes it in has numbers.
    numbers = [place for place, cell in enumerate(own) if is_number(cell)]
    return bool(numbers) and all(is_number(cells[place]) for place in numbers)


def _shape(name: str) -> str:
    """A name with its letters and digits blurred, when it is more than one word."""
    blurred = _LETTERS.sub("a", _DIGITS.sub("0", name))
    return blurred if len(blurred) > 1 else name
