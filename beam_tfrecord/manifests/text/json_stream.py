"""JSON files that are too large to be held in memory: the members of the outer object, one element at a time."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.text.json_values import JsonDecoder, encoding_of_json

CHUNK = 2**20  # characters that are read at a time
_TELLING_BYTES = 4  # which tell the encoding
_SPACE = re.compile(r"[ \t\n\r]*")


class JsonItem(NamedTuple):
    """A value of the outer object. place: in the array that is the member's value; -1 for any other value.

    repeated: a key that stands twice in an object of the value, '' when there is none.
    """

    key: str
    place: int
    value: Any
    repeated: str = ""


def iterate_members(stream: BinaryIO, name: str) -> Iterator[JsonItem]:
    """The members of the object that a JSON file holds, arrays element by element, in the order of the file.

    The file is UTF-8, UTF-16 or UTF-32. An empty array yields one item of place -1 whose value is an empty list. At
    most one element and a chunk of text are in memory. name: of the file, for messages. Raises ManifestError, with the
    line, when the file is no such JSON, and when the object has one member twice.
    """
    yield from _Reader(stream, name).members()


def iterate_array(stream: BinaryIO, name: str) -> Iterator[JsonItem]:
    """The elements of the array that a JSON file holds, in order, as :func:`iterate_members` reads; no key."""
    yield from _Reader(stream, name).elements()


class _Reader:
    """A window on the text: ``_text[_place:]`` is what was read and not yet used."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream = stream
        self._name = name
        self._bytes_to_text: codecs.IncrementalDecoder | None = None  # which one, the first bytes tell
        self._text = ""
        self._place = 0
        self._line = 1
        self._at_end = False
        self._decoder = JsonDecoder()
        self._names: set[str] = set()

    def members(self) -> Iterator[JsonItem]:
        if self._next() != "{":
            self._fail("it does not begin with {")
        self._place += 1
        if self._next() == "}":
            self._place += 1
        else:
            yield from self._members()
        if self._next():
            self._fail("text follows the end of the object")

    def elements(self) -> Iterator[JsonItem]:
        if self._next() != "[":
            self._fail("it does not begin with [")
        yield from (item for item in self._elements("") if item.place >= 0)
        if self._next():
            self._fail("text follows the end of the array")

    def _members(self) -> Iterator[JsonItem]:
        while True:
            if self._next() != '"':
                self._fail("a name in double quotes is expected")
            key = self._value()
            if key in self._names:
                self._fail(f"{key!r} stands twice in the outer object, so that it is open which one counts")
            self._names.add(key)
            self._skip(":")
            if self._next() == "[":
                yield from self._elements(key)
            else:
                yield JsonItem(key, -1, self._value(), self._decoder.repeated)
            if self._skip(",", "}") == "}":
                return

    def _elements(self, key: str) -> Iterator[JsonItem]:
        self._place += 1
        if self._next() == "]":
            self._place += 1
            yield JsonItem(key, -1, [])
            return
        index = 0
        while True:
            yield JsonItem(key, index, self._value(), self._decoder.repeated)
            index += 1
            if self._skip(",", "]") == "]":
                return

    def _next(self) -> str:
        """The next character that is no white space, not used up; '' at the end of the file."""
        while True:
            found = _SPACE.match(self._text, self._place)
            assert found is not None
            self._place = found.end()
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._more(CHUNK):
                return ""

    def _skip(self, *expected: str) -> str:
        found = self._next()
        if found not in expected:
            self._fail(f"{' or '.join(expected)} is expected, not {found or 'the end of the file'!r}")
        self._place += 1
        return found

    def _value(self) -> Any:
        """The next value whole; more is read, in growing steps, until it is there."""
        self._next()
        step = CHUNK
        while True:
            error: ValueError | None = None
            try:
                value, end = self._decoder.decode_at(self._text, self._place)
                if self._at_end or self._is_whole(value, end):
                    self._place = end
                    return value
            except ValueError as problem:
                error = problem
            if not self._more(step) and error is not None:
                self._fail(str(error))
            step *= 2

    def _is_whole(self, value: Any, end: int) -> bool:
        """Whether a value that was read goes no further: of a number the text may hold only a part, as -0. of -0.5."""
        if end == len(self._text):
            return False
        return not isinstance(value, int | float) or self._text[end] in " \t\r\n,]}"

    def _more(self, size: int) -> bool:
        """Read on; False at the end of the file."""
        if self._at_end:
            return False
        read = ""
        while not read and not self._at_end:
            data = self._stream.read(max(size, _TELLING_BYTES))
            self._at_end = not data
            read = self._decoded(data)
        self._line += self._text.count("\n", 0, self._place)
        self._text = self._text[self._place :] + read
        self._place = 0
        return bool(read)

    def _decoded(self, data: bytes) -> str:
        if self._bytes_to_text is None:
            self._bytes_to_text = codecs.getincrementaldecoder(encoding_of_json(data))()
        try:
            return self._bytes_to_text.decode(data, final=not data)
        except UnicodeDecodeError as error:
            raise ManifestError(
                f"{self._name} is not {error.encoding.upper()} text (byte 0x{error.object[error.start]:02x} is none): "
                "save it as UTF-8, which JSON is, for instance with: iconv -f cp1252 -t utf-8"
            ) from None

    def _fail(self, reason: str) -> None:
        line = self._line + self._text.count("\n", 0, self._place)
        raise ManifestError(f"{self._name} is no valid JSON, near line {line}: {reason}")
