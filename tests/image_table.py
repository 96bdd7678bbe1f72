"""The table of ``docs/images.md``, and what the code makes of its rows: the cells of the two must be equal.

``python -m tests.image_table`` prints the rows as the code has them now.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import convert_image
from beam_tfrecord.options.config import ImagePolicy
from tests.image_kinds import KINDS

PAGE = Path(__file__).parents[1] / "docs" / "images.md"

# The column's title -> its options.
COLUMNS: Mapping[str, ImagePolicy] = MappingProxyType(
    {
        "default": ImagePolicy(),
        "`--image_format jpeg`": ImagePolicy(image_format="jpeg"),
        "`png`": ImagePolicy(image_format="png"),
        "`raw`": ImagePolicy(image_format="raw"),
        "`--color rgb`": ImagePolicy(color="rgb"),
        "`gray`": ImagePolicy(color="gray"),
        "`--resize`": ImagePolicy(resize=8),
    }
)
# What a row of the column "differs with" may name.
OTHERS: Mapping[str, ImagePolicy] = MappingProxyType(
    {
        "ignore": ImagePolicy(orientation="ignore"),
        "reject": ImagePolicy(animated="reject"),
        "strict": ImagePolicy(validate="strict"),
    }
)


class Row(NamedTuple):
    """A row: the cells of COLUMNS in their order, those of OTHERS by name where they differ, and what is counted."""

    name: str
    cells: tuple[str, ...]
    differs: str
    counted: str


def documented() -> Iterator[Row]:
    """The rows of the page. Raises AssertionError when the table has other columns."""
    page = PAGE.read_text("utf-8").splitlines()
    start = next(number for number, line in enumerate(page) if line.startswith("|"))
    lines = list(itertools.takewhile(lambda line: line.startswith("|"), page[start:]))
    titles = tuple(cell.strip() for cell in lines[0].strip("|").split("|"))
    assert titles == ("what comes in", *COLUMNS, "differs with", "counted by default")
    for line in lines[2:]:
        name, *cells, differs, counted = (cell.strip() for cell in line.strip().strip("|").split("|"))
        if not name.startswith("**"):  # a heading inside of the table
            yield Row(name, tuple(cells), differs, counted)


def actual(name: str, data: bytes) -> Row:
    """The row that the code gives for a file."""
    default = cell_of(data, ImagePolicy())
    differing = {option: cell_of(data, policy) for option, policy in OTHERS.items()}
    differs = ", ".join(f"`{option}`: {cell}" for option, cell in differing.items() if cell != default)
    return Row(name, tuple(cell_of(data, policy) for policy in COLUMNS.values()), differs, counted_for(data))


def cell_of(data: bytes, policy: ImagePolicy) -> str:
    """What is stored for a file, in the words of the table."""
    try:
        stored = convert_image(data, policy)
    except ImageError as error:
        return f"✗ {error.code}"
    how = stored.format
    if stored.data is data:
        how = "kept"
    elif stored.format != "raw" and stored.changed == ("repaired",):
        how = "repaired"
    elif stored.changed == ("first_frame",) and stored.format == stored.source_format:
        how = "cut out"
    return f"{how} {stored.channels}" + (" (16 bit)" if stored.dtype == "uint16" else "")


def counted_for(data: bytes) -> str:
    """Changes, and warnings in parentheses."""
    try:
        stored = convert_image(data, ImagePolicy())
    except ImageError:
        return ""
    return ", ".join([*stored.changed, *(f"({code})" for code, _ in stored.warnings)])


def printed(row: Row) -> str:
    """A row as the page has it."""
    return re.sub(r" +", " ", f"| {row.name} | {' | '.join(row.cells)} | {row.differs} | {row.counted} |")


if __name__ == "__main__":
    print("\n".join(printed(actual(name, make())) for name, make in KINDS.items()))
