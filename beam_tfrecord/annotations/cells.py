"""Cells of a manifest as values: what counts as empty, and how text, whole and other numbers are read.

Cells are text in CSV and the like, and typed in JSON, Parquet and data frames. numpy scalars count as the Python values
that they hold.
"""

from __future__ import annotations

import math
import re
import reprlib
from typing import Any

from beam_tfrecord.core.public_text import is_utf8

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
FLOAT32_MAX = 3.4028235677973366e38  # from here on a number rounds to infinity as float32
_SHOWN = reprlib.Repr()
_SHOWN.maxlevel, _SHOWN.maxlist, _SHOWN.maxdict, _SHOWN.maxtuple = 4, 8, 4, 8
_SHOWN.maxstring = _SHOWN.maxlong = _SHOWN.maxother = 80
_WHOLE = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE)


def plain(cell: Any) -> Any:
    """A numpy scalar or array as Python values; anything else as it is."""
    return cell.tolist() if hasattr(cell, "tolist") else cell


def is_blank(cell: Any) -> bool:
    """Whether a cell holds nothing: None, white space, or the NaN that data frames put into gaps."""
    cell = plain(cell)
    if isinstance(cell, str):
        return not cell.strip()
    return cell is None or (isinstance(cell, float) and math.isnan(cell)) or _is_missing_value(cell)


def _is_missing_value(cell: Any) -> bool:
    """pandas.NA and pandas.NaT, which do not equal themselves."""
    return type(cell).__module__.startswith("pandas.") and type(cell).__name__ in ("NAType", "NaTType")


def text_of(cell: Any) -> str | None:
    """A cell as text; None when it has no spelling of its own (lists, mappings).

    Numbers are spelled as short as they can be read back; a whole float without a fraction, because tables with gaps
    turn whole numbers into floats. True and False as in JSON.
    """
    cell = plain(cell)
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "surrogateescape")
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, int):
        return str(cell)
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    return str(cell) if type(cell).__module__ in ("datetime", "decimal", "uuid") else None


def shown(cell: Any) -> str:
    """A cell as messages show it: as Python spells it, shortened whatever its size and depth."""
    return _SHOWN.repr(cell)


def utf8_text(cell: Any) -> str:
    """A cell as text that a record can hold. Raises ValueError that says what is wrong.

    JSON can spell half of a surrogate pair, which is no character. The halves that Python makes of bytes that are no
    UTF-8, in names of files, become those bytes again.
    """
    text = text_of(cell)
    if text is None:
        raise ValueError("is no text")
    if not is_utf8(text):
        raise ValueError("holds half of a surrogate pair, which is no character")
    return text


def name_text(cell: Any) -> str:
    """A cell as the name of a class, which metadata tell too: there are no bytes in it that are no UTF-8.

    Raises ValueError that says what is wrong.
    """
    text = utf8_text(cell)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("is not valid UTF-8") from None
    return text


def whole_number(cell: Any) -> int:
    """A cell as an int of 64 bits. Text must be digits; a typed float must be whole; True is 1.

    Raises ValueError that says what is wrong.
    """
    cell = plain(cell)
    if isinstance(cell, str):
        text = cell.strip()
        if not _WHOLE.fullmatch(text):
            raise ValueError("is no whole number")
        if len(text) > 20:
            raise ValueError("does not fit into 64 bits")
        number = int(text)
    elif isinstance(cell, int) or (isinstance(cell, float) and cell.is_integer() and abs(cell) <= 2**53):
        number = int(cell)
    else:
        raise ValueError("is no whole number")
    if not INT64_MIN <= number <= INT64_MAX:
        raise ValueError("does not fit into 64 bits")
    return number


def real_number(cell: Any) -> float:
    """A cell as a float, NaN and infinities included when they are spelled so.

    Raises ValueError that says what is wrong.
    """
    cell = plain(cell)
    if isinstance(cell, str):
        text = cell.strip()
        if not _REAL.fullmatch(text):
            raise ValueError("is no number")
        return float(text)
    if isinstance(cell, int | float):
        try:
            return float(cell)
        except OverflowError:
            raise ValueError("is too large") from None
    if type(cell).__module__ == "decimal":
        return float(cell)
    raise ValueError("is no number")


def is_number(cell: Any) -> bool:
    """Whether a cell is a number to :func:`real_number`."""
    try:
        real_number(cell)
    except ValueError:
        return False
    return True


def float32_number(cell: Any) -> float:
    """As :func:`real_number`, but a finite number must stay finite as float32."""
    number = real_number(cell)
    if math.isfinite(number) and abs(number) >= FLOAT32_MAX:
        raise ValueError("is too large for 32-bit floating point")
    return number
