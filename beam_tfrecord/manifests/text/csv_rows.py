"""CSV files of a fixed layout, row by row: one that is damaged is told with its line, and the next ones are read on."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from beam_tfrecord.manifests.text.dialect import LONGEST_CELL
from beam_tfrecord.manifests.text.lines import TextLines
from beam_tfrecord.manifests.text.swallowed import swallowed


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
