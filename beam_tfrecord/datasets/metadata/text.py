"""Bytes of text and JSON files, the same for the same content.

Names of files and labels may hold bytes that are no UTF-8, which Python keeps as lone surrogates. The files here stay
valid UTF-8: such a character is written as its escape ``\\udcxx``, which in JSON reads back as the character.
"""

from __future__ import annotations

import json
from typing import Any


def utf8(text: str) -> bytes:
    """The text in UTF-8, lone surrogates escaped."""
    return text.encode("utf-8", "backslashreplace")


def json_file(value: Any) -> bytes:
    """A JSON file: indented by 2, in UTF-8, with a newline at its end. Keys stay in the order of the mapping."""
    return utf8(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def json_line(value: Any) -> str:
    """One line of a JSON lines file, with its newline; encodes to UTF-8 without error."""
    return utf8(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n").decode()
