"""Small XML files from strangers: elements with their lines, entities refused, size and depth bounded."""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

MAX_BYTES = 16 * 2**20
MAX_DEPTH = 100


@dataclass(slots=True)
class Element:
    """One element: its name, text, children in order, and the line on which it starts."""

    name: str
    line: int
    text: str = ""
    children: list[Element] = field(default_factory=list)

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


def parse_xml(data: bytes) -> Element:
    """The outer element. Raises ValueError that names the line of what is wrong.

    Entity declarations are refused, so nothing can be made to grow or be read from elsewhere.
    """
    if len(data) > MAX_BYTES:
        raise ValueError(f"the file has {len(data)} bytes, more than an annotation of {MAX_BYTES} bytes may have")
    builder = _Builder()
    try:
        builder.parser.Parse(data, True)
    except expat.ExpatError as error:
        raise ValueError(f"line {error.lineno}: {expat.ErrorString(error.code)}") from None
    except (UnicodeError, LookupError) as error:
        raise ValueError(f"line {builder.parser.CurrentLineNumber}: {error}") from None
    assert builder.root is not None
    return builder.root


class _Builder:
    def __init__(self) -> None:
        self.root: Element | None = None
        self._open: list[Element] = []
        self.parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._data
        parser.EntityDeclHandler = self._refuse

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise ValueError(f"line {self.parser.CurrentLineNumber}: elements are nested more than {MAX_DEPTH} deep")
        element = Element(name, self.parser.CurrentLineNumber)
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
