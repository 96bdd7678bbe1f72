"""Small XML files from strangers: elements with their lines, entities refused, size and depth bounded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO
from xml.parsers import expat

from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.text.lines import decode_text, encoding_of
from beam_tfrecord.options.values import AUTO_ENCODING

_DECLARED = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")
# Names that files declare when they mean a larger set of characters, as browsers read them (encoding.spec.whatwg.org).
_SUPERSETS = {
    **dict.fromkeys(("gb2312", "gb-2312", "gbk", "cp936"), "gb18030"),
    **dict.fromkeys(("shift-jis", "sjis", "x-sjis", "shiftjis"), "cp932"),
    **dict.fromkeys(("euc-kr", "ks-c-5601-1987"), "cp949"),
    **dict.fromkeys(("iso-8859-1", "latin-1", "latin1"), "cp1252"),
}
MAX_BYTES = 16 * 2**20
MAX_DEPTH = 100
_CHUNK = 2**18


@dataclass(slots=True)
class Element:
    """One element: its name, text, children in order, attributes, and the line on which it starts."""

    name: str
    line: int
    text: str = ""
    children: list[Element] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)

    def find(self, name: str) -> Element | None:
        """The first child of that name; grandchildren do not count."""
        return next((child for child in self.children if child.name == name), None)

    def only(self, name: str) -> Element | None:
        """The child of that name, where there must be no more than one. Raises ValueError when there are two."""
        found = self.all(name)
        if len(found) > 1:
            raise ValueError(f"line {found[1].line}: <{self.name}> has <{name}> twice, take one of them out")
        return found[0] if found else None

    def all(self, name: str) -> list[Element]:
        """The children of that name."""
        return [child for child in self.children if child.name == name]

    def text_of(self, name: str) -> str | None:
        """Text of the child of that name, without white space around it; None when there is no such child.

        Raises ValueError when there are two.
        """
        child = self.only(name)
        return None if child is None else child.text.strip()


class XmlEncodingError(ValueError):
    """The bytes are not in the encoding that the file declares."""


def parse_xml(data: bytes, encoding: str = AUTO_ENCODING) -> Element:
    """The outer element. Raises ValueError that names the line of what is wrong.

    The file is read in the encoding that it declares (UTF-8 when it declares none); when it is not in that one, in the
    one that is given. Entity declarations are refused, so nothing can be made to grow or be read from elsewhere.
    """
    if len(data) > MAX_BYTES:
        raise ValueError(f"the file has {len(data)} bytes, more than an annotation of {MAX_BYTES} bytes may have")
    builder = _Builder()
    try:
        builder.parser.Parse(_as_utf8(data, encoding), True)
    except expat.ExpatError as error:
        raise ValueError(f"line {error.lineno}: {expat.ErrorString(error.code)}") from None
    assert builder.root is not None
    return builder.root


def iterate_children(stream: BinaryIO, name: str, root: str) -> Iterator[Element]:
    """The children of the outer element of a file (UTF-8) of any size, one after the other.

    name: of the file, for messages. root: what the outer element must be called. Raises ManifestError with the line of
    what is wrong; entity declarations are refused.
    """
    builder = _Streamed()
    is_open = True
    while is_open:
        data = stream.read(_CHUNK)
        is_open = bool(data)
        try:
            builder.parser.Parse(data, not is_open)
        except expat.ExpatError as error:
            raise ManifestError(f"{name}, line {error.lineno}: {expat.ErrorString(error.code)}") from None
        except ValueError as error:
            raise ManifestError(f"{name}, {error}") from None
        if builder.root is not None and builder.root.name != root:
            raise ManifestError(f"{name}: its outer element is <{builder.root.name}>, not <{root}>")
        yield from builder.done
        builder.done = []


def _as_utf8(data: bytes, encoding: str) -> bytes:
    """The same XML in UTF-8. Raises XmlEncodingError with the line of the first byte that is wrong."""
    declared = "utf-8" if encoding_of(data) == "utf-8" else ""
    if declared:
        found = _DECLARED.match(data)
        declared = found[1].decode() if found else declared
        declared = _SUPERSETS.get(declared.lower().replace("_", "-"), declared)
        if declared.lower().startswith(("utf-16", "utf-32", "ucs-")):  # then nobody could read where it says so
            declared = "utf-8"
    try:
        return decode_text(data, declared or AUTO_ENCODING).encode()
    except ValueError as error:
        told = str(error)
    except LookupError:
        told = f"unknown encoding {declared!r}: name it with --encoding, or save the file as UTF-8"
    if encoding != AUTO_ENCODING:
        try:
            return decode_text(data, encoding).encode()
        except ValueError as error:
            told = str(error)
    raise XmlEncodingError(told)


class _Builder:
    def __init__(self) -> None:
        self.root: Element | None = None
        self._open: list[Element] = []
        self.parser = parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._data
        parser.EntityDeclHandler = self._refuse

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise ValueError(f"line {self.parser.CurrentLineNumber}: elements are nested more than {MAX_DEPTH} deep")
        element = Element(name, self.parser.CurrentLineNumber, attributes=attributes)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def _end(self, name: str) -> None:
        self._open.pop()

    def _data(self, text: str) -> None:
        self._open[-1].text += text

    def _refuse(self, name: str, *details: object) -> None:
        raise ValueError(f"line {self.parser.CurrentLineNumber}: the entity {name!r} is declared, which is not allowed")


class _Streamed(_Builder):
    """Gives the children of the outer element away as soon as they are whole. done: those that were not taken yet."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[Element] = []

    def _end(self, name: str) -> None:
        super()._end(name)
        if len(self._open) == 1:
            self.done.append(self._open[0].children.pop())

    def _data(self, text: str) -> None:
        if len(self._open) > 1:
            super()._data(text)
