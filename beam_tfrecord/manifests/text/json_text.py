"""JSON of strangers: no key stands twice unnoticed, nothing is nested without end, members have the types they must.

Files that are too large to be held in memory are read one element of the outer object or array at a time.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from beam_tfrecord.annotations.cells import shown, utf8_text, whole_number
from beam_tfrecord.errors import ManifestError, RowError

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


def members_of(item: JsonItem, where: str) -> Members:
    """The members of an element of a document. Raises RowError (``bad_row``), also where it has a key twice."""
    if item.repeated:
        raise RowError("bad_row", f"{where} has the key {item.repeated!r} twice")
    return Members(item.value, where, "bad_row")


class Members:
    """One object, and its place in the document, such as ``annotations[3]``.

    A member that is absent or null counts as not given. One of another type than is asked for is never taken for
    something: a RowError tells its place and what stands there.
    """

    def __init__(self, value: Any, where: str, code: str = "bad_annotation") -> None:
        """code: of the errors. Raises RowError when the value is no object."""
        self.where = where
        self._code = code
        if not isinstance(value, Mapping):
            raise self._error(where, value, "an object")
        self.value = value

    def raw(self, key: str) -> Any:
        """A member as it stands."""
        return self.value.get(key)

    def text(self, key: str) -> str:
        """A text; '' when it is not given."""
        value = self.value.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self._error(self.path(key), value, "a text")
        try:
            return utf8_text(value)
        except ValueError as error:
            raise RowError(self._code, f"{self.path(key)} {shown(value)} {error}") from None

    def name(self, key: str) -> str:
        """A text, or a whole number as text; without white space around it, '' when it is not given."""
        value = self.value.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return self.text(key).strip()

    def whole(self, key: str) -> int | None:
        """A whole number of 64 bits, also as 5.0 or "5"."""
        value = self.value.get(key)
        if value is None:
            return None
        try:
            return whole_number(None if isinstance(value, bool) else value)
        except ValueError as error:
            raise RowError(self._code, f"{self.path(key)} is {shown(value)}: it {error}") from None

    def objects(self, key: str) -> list[Members] | None:
        """A list of objects; None when it is not given."""
        value = self.value.get(key)
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise self._error(self.path(key), value, "a list of objects")
        return [Members(item, f"{self.path(key)}[{place}]", self._code) for place, item in enumerate(value)]

    def listed(self, key: str) -> list[Members]:
        """A list of objects that must be there, as only an empty one says that there are none. Raises RowError."""
        found = self.objects(key)
        if found is None:
            raise RowError("bad_annotation", f"{self.path(key)} is missing: an empty list says that there are none")
        return found

    def object(self, key: str) -> Members | None:
        """An object; None when it is not given."""
        value = self.value.get(key)
        return None if value is None else Members(value, self.path(key), self._code)

    def below(self, key: str) -> Mapping[str, Any]:
        """The members of an object; none when it is not given."""
        found = self.object(key)
        return found.value if found is not None else {}

    def path(self, key: str) -> str:
        """The place of a member."""
        return f"{self.where}.{key}" if self.where else key

    def _error(self, path: str, value: Any, wanted: str) -> RowError:
        return RowError(self._code, f"{path} is {shown(value)}, not {wanted}")
