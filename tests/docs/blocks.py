"""The fenced blocks of the documentation, and the commands in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

PAGES = ("README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")))
_FENCE = re.compile(r"^( *)(`{3,})([^\n`]*)\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'\btitle="([^"]*)"')
_ASSIGNMENT = re.compile(r"([A-Z_]+)=(\S*)")


@dataclass(frozen=True)
class Block:
    """A fenced block. line: of its first line of content. title: name of the file that it shows the content of."""

    page: str
    line: int
    language: str
    title: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: str) -> list[Block]:
    """All blocks of a page, in order. page: path from the root of the project."""
    text = (ROOT / page).read_text("utf-8")
    found = []
    for fence in _FENCE.finditer(text):
        indent, _, info, content = fence.groups()
        language, _, rest = info.strip().partition(" ")
        title = _TITLE.search(rest)
        lines = [line.removeprefix(indent) for line in content.splitlines(keepends=True)]
        number = text.count("\n", 0, fence.start(4)) + 1
        found.append(Block(page, number, language, title[1] if title else "", "".join(lines)))
    return found


def commands(text: str, variables: dict[str, str] | None = None) -> Iterator[list[str]]:
    """The commands of a shell block as words: lines joined, variables put in, comments and ``&`` left out.

    variables: of the shell, by name; those that the block assigns are added.
    """
    known = {} if variables is None else variables
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(_with_values(line, known), comments=True)
        while words and (assigned := _ASSIGNMENT.fullmatch(words[0])):
            known[assigned[1]] = _with_values(assigned[2], known)
            words = words[1:]
        if words and words[-1] == "&":
            words = words[:-1]
        if words:
            yield words


def _with_values(text: str, variables: Mapping[str, str]) -> str:
    return re.sub(r"\$([A-Z_]+)", lambda found: variables.get(found[1], found[0]), text)


def headings(page: str) -> set[str]:
    """The anchors that GitHub makes of the headings of a page."""
    text = _FENCE.sub("", Path(ROOT / page).read_text("utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


def put_between(text: str, start: str, content: str, end: str) -> str:
    """A page with other content between two marks."""
    before, _, rest = text.partition(start)
    _, _, after = rest.partition(end)
    return f"{before}{start}{content}{end}{after}"
