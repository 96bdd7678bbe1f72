"""How a CSV is written, and its rows: delimiter, spaces and header are found from the first lines.

A stray quote takes in rows: a quoted cell may hold line ends, and one that is not closed holds rows. A cell with line
ends is right as long as what stands on its lines is no row. A line is one when it, and the line with the quote, have as
many cells as the header and, in the column of the images, the name of one.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from beam_tfrecord.annotations.cells import is_number
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.filenames import is_image_name
from beam_tfrecord.manifests.split_names import is_split_word
from beam_tfrecord.manifests.text.lines import TextLines
from beam_tfrecord.manifests.text.roles import known_names
from beam_tfrecord.options.config import ManifestConfig

DELIMITERS = ",;\t|"
LONGEST_CELL = 16 * 2**20  # characters; a longer one is taken for a quote that is never closed
_SAMPLE_ROWS = 100
_RETINANET = ("image", "xmin", "ymin", "xmax", "ymax", "class")
_EXCEL_HINT = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a table is written.

    skip_spaces: spaces between a delimiter and its cell are no part of the cell. header: names of the columns.
    has_header: they stand in the first row; otherwise they were told from what the columns hold. preamble: lines before
    the first row (Excel's ``sep=;``). first_row: the first row as it stands, for messages.
    """

    delimiter: str
    skip_spaces: bool
    header: tuple[str, ...]
    has_header: bool
    preamble: int = 0
    first_row: str = ""

    def to_details(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def sniff_dialect(sample: str, is_whole: bool, config: ManifestConfig, preferred: str = DELIMITERS) -> Dialect:
    """The dialect of a table that begins with ``sample``, which is not blank.

    preferred: the delimiters that may be, the more likely ones first.
    """
    hint = _EXCEL_HINT.match(sample)
    if hint:
        sample, preferred = sample[hint.end() :], hint[1]
    tables = {mark: sample_rows(sample, is_whole, mark) for mark in preferred}
    delimiter = max(preferred, key=lambda mark: (*_fitness(tables[mark], config), -preferred.index(mark)))
    rows = tables[delimiter]
    skip_spaces = len(rows[0]) > 1 and all(cell.startswith(" ") for cell in rows[0][1:])
    if skip_spaces:
        rows = sample_rows(sample, is_whole, delimiter, skip_spaces=True)
    first = first_line(sample)
    told = headerless_names(rows)
    if told is not None:
        return Dialect(delimiter, skip_spaces, told, False, int(bool(hint)), first)
    header = tuple(cell.strip() for cell in rows[0])
    return Dialect(delimiter, skip_spaces, header, True, int(bool(hint)), first)


def sample_rows(sample: str, is_whole: bool, delimiter: str, skip_spaces: bool = False) -> list[list[str]]:
    """The first complete rows, blank ones left out; at least one."""
    first = first_line(sample)
    if not is_whole and "\n" in sample.rstrip("\n"):
        sample = sample[: sample.rindex("\n") + 1]
    newline = "\n" if "\n" in sample else ""
    rows = []
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(io.StringIO(sample, newline=newline or None), delimiter=delimiter, skipinitialspace=skip_spaces)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append(cells)
            if len(rows) > _SAMPLE_ROWS:
                break
    except csv.Error:
        pass
    # The last row of a cut sample may be half of one, with an open quote.
    if not is_whole and len(rows) > 1 and len(rows) <= _SAMPLE_ROWS:
        rows.pop()
    return rows or [[first]]


def first_line(text: str) -> str:
    """The first line that is not blank."""
    return next((line for line in text.splitlines() if line.strip()), "")


def _fitness(rows: Sequence[Sequence[str]], config: ManifestConfig) -> tuple[int, bool, float, int]:
    """How well a delimiter fits: known names in the first row, several columns, rows of its width, its width."""
    width = len(rows[0])
    same = sum(len(row) == width for row in rows) / len(rows)
    return known_names(rows[0], config), width > 1, same, width


def headerless_names(rows: Sequence[Sequence[str]]) -> tuple[str, ...] | None:
    """Names for the columns of a table without a header, when what they hold leaves no doubt; else None.

    There are one to three columns: one holds names of images in every row, one may hold names of splits in every row,
    and at most one other is the label. Or there are six, as github.com/fizyr/keras-retinanet has them: the image, four
    numbers and the class, of which all but the first are empty for an image without objects.
    """
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        return None
    if width == len(_RETINANET):
        return _RETINANET if all(map(_is_retinanet, rows)) and any(row[1] for row in rows) else None
    if not 1 <= width <= 3:
        return None
    columns = list(zip(*rows, strict=True))
    names = ["image" if all(map(is_image_name, column)) else "" for column in columns]
    if names.count("image") != 1:
        return None
    splits = [place for place, column in enumerate(columns) if not names[place] and all(map(is_split_word, column))]
    if len(splits) > 1:
        return None
    for place in splits:
        names[place] = "split"
    if names.count("") > 1:
        return None
    return tuple(name or "label" for name in names)


def _is_retinanet(cells: Sequence[str]) -> bool:
    image, *sides, name = cells
    if not is_image_name(image):
        return False
    return all(map(is_number, sides)) and bool(name.strip()) if any(sides) else not name


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


def csv_rows(lines: TextLines) -> Iterator[tuple[int, list[str] | str]]:
    """(line on which it begins, its cells) of each row that is not blank; for one that is none, why it is none.

    Cells of such files have no line ends: a row over several lines is one whose quote was not closed. Raises
    ManifestError for it.
    """
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(iter(lines), strict=True)
    while True:
        start = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if reader.line_num > start:
                raise swallowed(lines.uri, start, start + 1) from None
            yield start, f"the line is no CSV: {error}"
            continue
        if reader.line_num > start:
            raise swallowed(lines.uri, start, start + 1)
        if lines.had_nul:
            lines.had_nul = False
            yield start, "the row holds NUL characters: the file is damaged at this place"
        elif any(cell.strip() for cell in cells):
            yield start, cells


def sample_cells(lines: list[str]) -> list[list[str]]:
    """The cells of the first lines of a file as far as they can be read."""
    csv.field_size_limit(LONGEST_CELL)
    rows = []
    try:
        for cells in csv.reader(lines):
            rows.append(cells)
    except csv.Error:
        pass  # told when the rows are read
    return rows
