"""Text from data, made fit for a terminal: nothing in it moves the cursor, changes colours or turns the line."""

from __future__ import annotations

SHORT_TEXT = 120


def printable(text: str) -> str:
    """The text with every character escaped that is not printable: control, format, surrogate, private.

    Lines stay one line: a line break is escaped as well. Escapes are those of Python (``\\n``, ``\\x1b``, ``\\u202e``).
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def shortened(text: str, length: int = SHORT_TEXT) -> str:
    """The text, cut with an ellipsis when it has more than ``length`` characters."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def text_or_none(data: bytes) -> str | None:
    """The text in UTF-8 bytes, or None when they are none."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def shown_bytes(data: bytes) -> str:
    """Bytes for a person: text as printable text, anything else as a Python bytes literal; shortened."""
    text = text_or_none(data)
    return shortened(printable(text) if text is not None else repr(data[:SHORT_TEXT]))
