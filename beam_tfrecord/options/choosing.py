"""The options that choose what of the inputs is taken: rows, labels and objects.

They are applied in the order in which they are declared, whatever the order on the command line.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from beam_tfrecord.errors import REJECT_CODES, WARNING_CODES, ConfigError, nearest
from beam_tfrecord.options.declaring import ConfigSection, option
from beam_tfrecord.options.places import parse_place
from beam_tfrecord.options.values import parse_flag, parse_limit

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
_CONDITION = re.compile(r"\s*(.+?)\s*(==|!=|<=|>=|=|<|>)\s*(.*?)\s*", re.DOTALL)
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(px|%)?\s*", re.IGNORECASE)
_CODES = re.compile(r"(.+\.jsonl):([a-z_]+(?:,[a-z_]+)*)", re.DOTALL)


class Condition(NamedTuple):
    """What a row must satisfy: its cell of a column beside a value."""

    column: str
    operator: str
    value: str

    def __str__(self) -> str:
        return " ".join(self).rstrip()


class MinBox(NamedTuple):
    """The least side of a box: in pixels, or in percent of the side of the picture. unit: ``px`` or ``%``."""

    size: float
    unit: str

    def __str__(self) -> str:
        return f"{self.size:g}{self.unit}"


class ExcludeFile(NamedTuple):
    """A file that names rows. codes: of the findings in it that count; all of them when it is empty."""

    uri: str
    codes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.uri + (f":{','.join(self.codes)}" if self.codes else "")


def parse_conditions(value: Any) -> tuple[Condition, ...]:
    """``COLUMN OP VALUE``, or several of them, all of which must hold."""
    values = [value] if isinstance(value, str | Condition) else list(value)
    return tuple(item if isinstance(item, Condition) else _condition(str(item)) for item in values)


def _condition(text: str) -> Condition:
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise ValueError(f"must be COLUMN OP VALUE with an OP of {' '.join(OPERATORS)}, such as 'score >= 0.5'")
    column, operator, told = found.groups()
    if len(told) >= 2 and told[0] == told[-1] and told[0] in "\"'":
        told = told[1:-1]
    return Condition(column, "=" if operator == "==" else operator, told)


def parse_names(value: Any) -> tuple[str, ...]:
    """Names of labels: between commas in a text (quoted where a name has a comma in it), or a sequence of them."""
    names = stripped(_cells(value)) if isinstance(value, str) else [str(name) for name in value]
    if not names or not all(names):
        raise ValueError("must be names of labels separated by commas")
    return tuple(dict.fromkeys(names))


def _cells(text: str) -> list[str]:
    try:
        return next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        raise ValueError(f"has quotes that do not match ({error})") from None


def parse_label_names(value: Any) -> str | tuple[tuple[str, str], ...]:
    """``old=new,...``, a mapping, or the file that tells them; which of them a text is, is seen where files are."""
    if isinstance(value, str) or hasattr(value, "__fspath__"):
        text = str(value)
        return text if isinstance(value, str) and "=" in text else parse_place(value)
    pairs: list[Any] = list(value.items() if isinstance(value, Mapping) else value)
    wrong = next(((old, new) for old, new in pairs if not isinstance(new, str | None)), None)
    if wrong is not None:
        raise ValueError(f"{wrong[0]!r} becomes {wrong[1]!r}, which is no name (None or '' drops a label)")
    return checked_pairs((str(old), new or "") for old, new in pairs)


def pairs_of_text(text: str) -> tuple[tuple[str, str], ...]:
    """The pairs of ``old=new,...``. Raises ValueError."""
    cells = [cell for cell in _cells(text) if cell.strip()]
    wrong = next((cell for cell in cells if "=" not in cell), None)
    if wrong is not None:
        raise ValueError(f"{wrong!r} is not of the form old=new")
    return checked_pairs(stripped(cell.split("=", 1)) for cell in cells)


def stripped(cells: Iterable[str]) -> list[str]:
    """Cells of a text without the white space around them."""
    return [cell.strip() for cell in cells]


def checked_pairs(pairs: Iterable[Iterable[str]]) -> tuple[tuple[str, str], ...]:
    """The pairs of an old and a new name. Raises ValueError for an empty old name, and for one with two new ones."""
    found: dict[str, str] = {}
    for old, new in pairs:
        if not old:
            raise ValueError(f"a label without a name cannot become {new!r}")
        if found.get(old, new) != new:
            raise ValueError(f"{old!r} would become {found[old]!r} and {new!r}")
        found[old] = new
    if not found:
        raise ValueError("names no labels")
    return tuple(found.items())


def parse_min_box(value: Any) -> MinBox:
    """``8``, ``8px`` or ``1.5%``."""
    if isinstance(value, MinBox):
        return value
    found = _SIZE.fullmatch(str(value))
    if found is None or not float(found[1]) > 0:
        raise ValueError("must be a number of pixels (8 or 8px), or of percent of the picture's side (2%)")
    size, unit = float(found[1]), (found[2] or "px").lower()
    if unit == "%" and size > 100:
        raise ValueError("must be 100% or less")
    return MinBox(size, unit)


def parse_excludes(value: Any) -> tuple[ExcludeFile, ...]:
    """A file of names, one a line; or one of findings, with the codes that count behind a colon."""
    is_one = isinstance(value, str | ExcludeFile) or hasattr(value, "__fspath__")
    return tuple(item if isinstance(item, ExcludeFile) else _exclude(item) for item in ([value] if is_one else value))


def _exclude(value: Any) -> ExcludeFile:
    place = parse_place(value)
    found = _CODES.fullmatch(place)
    if found is None:
        return ExcludeFile(place)
    codes = tuple(dict.fromkeys(found[2].split(",")))
    known = {*REJECT_CODES, *WARNING_CODES}
    wrong = next((code for code in codes if code not in known), None)
    if wrong is not None:
        raise ValueError(f"there is no code {wrong!r}{nearest(wrong, known)}")
    return ExcludeFile(found[1], codes)


def parse_sample(value: Any) -> int | float:
    """A number of rows (an int), or a share of them (a float above 0, to 1)."""
    try:
        limit = parse_limit(value)
    except ValueError:
        raise ValueError("must be a number of rows (1000) or a percentage of them (5%)") from None
    if not limit:
        raise ValueError("must be more than nothing")
    return limit


@dataclass(frozen=True)
class ChoosingConfig(ConfigSection):
    """What of the inputs is taken. In this order: each option sees what those before it have left."""

    exclude: tuple[ExcludeFile, ...] = option(
        (),
        "leave out the rows that a file names: ids or paths, one a line, or a rejects.jsonl or warnings.jsonl (with "
        ":CODE,... behind it only those codes); may be repeated",
        parse=parse_excludes,
        metavar="FILE[:CODE,...]",
        repeated=True,
    )
    where: tuple[Condition, ...] = option(
        (),
        "take only rows whose cell satisfies this, as in 'score >= 0.5'; OP is one of = != < <= > >=; may be repeated, "
        "and then all must hold",
        parse=parse_conditions,
        metavar="'COLUMN OP VALUE'",
        repeated=True,
    )
    map_labels: str | tuple[tuple[str, str], ...] | None = option(
        None,
        "other names for labels, as in cat=animal,dog=animal,unsure= (an empty name drops the label), or a file of "
        "such lines, a CSV file or a JSON object",
        parse=parse_label_names,
        metavar="FILE|OLD=NEW,...",
    )
    keep_labels: tuple[str, ...] = option((), "drop all labels but these", parse=parse_names, metavar="NAME,...")
    drop_labels: tuple[str, ...] = option((), "drop these labels", parse=parse_names, metavar="NAME,...")
    min_box: MinBox | None = option(  # noqa: RUF009
        None,
        "drop objects whose box is less wide or high than this: in pixels of the picture before any --resize, or in "
        "percent of its width or height",
        parse=parse_min_box,
        metavar="N[px|%]",
    )
    drop_unlabelled: bool = option(
        False, "leave out the rows that have no label, object, mask or caption (any more)", parse=parse_flag
    )
    near_duplicates: str = option(
        "keep",
        "what becomes of pictures that are the same, or nearly so: kept; left out but for one of them; kept in one of "
        "the --splits. All but keep look at every picture in a pass of their own",
        choices=("keep", "drop", "group"),
    )
    limit: int | float | None = option(
        None,
        "take a sample of so many rows, or of so many percent, the same in every run; with --stratify each class keeps "
        "its share",
        parse=parse_sample,
        metavar="N[%]",
    )

    def check(self) -> None:
        both = [name for name in self.drop_labels if name in self.keep_labels]
        if both:
            raise ConfigError(f"--keep_labels and --drop_labels both name {both[0]!r}: take it out of one of them")

    @property
    def chooses_labels(self) -> bool:
        """Whether labels may change their names or be dropped."""
        return bool(self.map_labels or self.keep_labels or self.drop_labels)

    @property
    def asked_columns(self) -> tuple[str, ...]:
        """The columns that --where looks at, each once."""
        return tuple(dict.fromkeys(condition.column for condition in self.where))
