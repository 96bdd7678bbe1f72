"""JSON of strangers as Python values: keys that stand twice are told, and nothing is nested without end."""

from __future__ import annotations

import json
import re
from typing import Any

MAX_DEPTH = 100
OBJECT, OBJECTS = "{", "[{"


def encoding_of_json(head: bytes) -> str:
    """The encoding that the first bytes of a JSON text tell: by a byte order mark, else by the zeros among them."""
    return json.detect_encoding(head) if head else "utf-8"


def as_utf8(head: bytes) -> bytes:
    """The first bytes of a file, those of a JSON text in UTF-16 or UTF-32 as UTF-8."""
    encoding = encoding_of_json(head)
    if encoding.startswith("utf-8"):
        return head
    text = head.decode(encoding, "ignore")
    return text.encode("utf-8", "ignore") if text.lstrip()[:1] in ("{", "[") else head


def start_of_json(head: bytes) -> str:
    """What begins in a file with these first bytes: :data:`OBJECT`, :data:`OBJECTS` (an array of them), or ''."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"["):
        return OBJECTS if start[1:].lstrip().startswith(b"{") else ""
    return OBJECT if start.startswith(b"{") else ""


def holds(head: bytes, *patterns: re.Pattern[bytes]) -> bool:
    """Whether all patterns are found in the first bytes of a file."""
    return all(pattern.search(head) for pattern in patterns)


class JsonDecoder:
    """Decodes one value at a time.

    repeated: a key that stands twice in one object of the value that was decoded last, '' when there is none. The last
    one wins, as everywhere in Python, so the value must not be used as if nothing were wrong.
    """

    def __init__(self) -> None:
        self.repeated = ""
        self._decoder = json.JSONDecoder(object_pairs_hook=self._object)

    def decode_at(self, text: str, place: int) -> tuple[Any, int]:
        """(value, end) of what begins at a place. Raises ValueError when it is no JSON, cut, or nested too deeply."""
        self.repeated = ""
        try:
            value, end = self._decoder.raw_decode(text, place)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        _check_depth(value, text.count("[", place, end) + text.count("{", place, end))
        return value, end

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            self.repeated = _first_repeated(pairs)
        return found


def decode_json(text: str) -> Any:
    """The one value that a text holds.

    Raises ValueError when it is no JSON, nested too deeply, or has a key twice in one object.
    """
    try:
        value = _WHOLE.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _check_depth(value, text.count("[") + text.count("{"))
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"the key {_first_repeated(pairs)!r} stands twice in one object")
    return found


_WHOLE = json.JSONDecoder(object_pairs_hook=_object)


def _first_repeated(pairs: list[tuple[str, Any]]) -> str:
    names = [name for name, _ in pairs]
    return next(name for name in names if names.count(name) > 1)


def _check_depth(value: Any, brackets: int) -> None:
    """brackets: how many the text has: they are counted in no time, and few texts have so many that it matters."""
    if brackets > MAX_DEPTH and _is_deep(value):
        raise ValueError(f"it is nested more than {MAX_DEPTH} deep")


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [child for children in inner for child in children if isinstance(child, dict | list)]
        if not level:
            return False
    return True
