"""Names of files that are there under another spelling than the one a manifest gives them.

A name is first taken as it is spelled. Only where no file is called so, others are looked for that mean the same on the
machine where the manifest was written: Windows separates folders with backslashes and knows no case of letters, macOS
takes letters with marks apart (Unicode's NFD, where others write NFC), tools of the web write ``%20`` for a blank, and
cells of a table may have blanks around them.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from beam_tfrecord.core.account import Decision
from beam_tfrecord.errors import ImageError, RowError
from beam_tfrecord.manifests.filenames import USUAL_ENDINGS, is_image_name
from beam_tfrecord.manifests.text.uri_text import WEB_SCHEMES, scheme_of

BLANKS, SEPARATORS, UNICODE = "without blanks at the ends", "with / for \\", "in another form of Unicode"
PERCENT, CASE, ENDING = "without percent-encoding", "in another case of letters", "with the ending of an image"
_ROOT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*/|/*")
_BLANKS_BESIDE_SLASH = re.compile(r"\s*/\s*")


class Spelled(NamedTuple):
    """A file that is there. how: what its name is beside the name that was asked for."""

    uri: str
    how: str


Find = Callable[[str], Spelled | None]


def as_spelled(uri: str) -> Spelled | None:
    """For those that look for no other spelling."""
    return None


def plain_form(path: str) -> str:
    """One text for all spellings of a path: forward slashes, no blanks beside them, NFC, nothing percent-encoded.

    The case of letters stays as it is.
    """
    if path.isascii() and not any(mark in path for mark in "\\ %"):
        return path
    path = _unquoted(path)
    return unicodedata.normalize("NFC", _BLANKS_BESIDE_SLASH.sub("/", path.strip().replace("\\", "/")))


def _unquoted(path: str) -> str:
    """A path without percent-encoding, as it is where that would make no text or other folders."""
    try:
        text = unquote(path, errors="strict") if "%" in path else path
    except UnicodeDecodeError:
        return path
    return text if text.count("/") == path.count("/") and text.isprintable() else path


def other_spellings(uri: str) -> dict[str, str]:
    """What else the file of a uri may be called, and how that differs; the folders in front stay as they are spelled
    from nowhere, or from some place on.
    """
    root = _ROOT.match(uri)
    assert root is not None  # it matches nothing as well
    start, name = root[0], uri[root.end() :]
    if scheme_of(uri) in WEB_SCHEMES or (plain_form(name) == name and name.isascii()):
        return {}
    parts = name.split("/")
    found: dict[str, str] = {}
    for place, part in enumerate(parts):
        if plain_form(part) == part and part.isascii():
            continue  # the same spellings as from the next part on
        head = start + "".join(f"{folder}/" for folder in parts[:place])
        for tail, how in _spellings("/".join(parts[place:])).items():
            spelled = head + tail
            if scheme_of(uri) and any(step in (".", "..") for step in tail.split("/")):
                spelled = start + posixpath.normpath(spelled[len(start) :])
            found.setdefault(spelled, how)
    found.pop(uri, None)
    return found


def _spellings(name: str) -> dict[str, str]:
    """The other spellings of one name, and how they differ from it."""
    spelled: dict[str, tuple[str, ...]] = {name: ()}
    changes: tuple[tuple[str, Callable[[str], str]], ...] = (
        (PERCENT, _unquoted),
        (BLANKS, str.strip),
        (SEPARATORS, lambda text: text.replace("\\", "/")),
        (UNICODE, lambda text: unicodedata.normalize("NFC", text)),
        (UNICODE, lambda text: unicodedata.normalize("NFD", text)),
    )
    for how, change in changes:
        for text, before in list(spelled.items()):
            if how not in before:
                spelled.setdefault(change(text), (*before, how))
    return {text: " and ".join(how) for text, how in spelled.items() if how and text}


def find_other(uri: str, is_file: Callable[[str], bool], *, is_image: bool = False) -> Spelled | None:
    """The file under another spelling where exactly one is there; None where none is.

    is_image: its name may be in another case of letters, or the ending of an image may be missing. Raises ImageError
    (``missing_file``) where two are there, which names them.
    """
    others = other_spellings(uri)
    there = [Spelled(other, how) for other, how in others.items() if is_file(other)]
    if not there and is_image and scheme_of(uri) not in WEB_SCHEMES:
        named = {uri: "", **others}
        cases = {case: _with(how, CASE) for other, how in named.items() for case in other_cases(other)}
        there = [Spelled(case, how) for case, how in cases.items() if is_file(case)]
        for change in (str.lower, str.upper) if not is_image_name(uri) else ():
            if not there:
                ended = {name + change(end): _with(how, ENDING) for name, how in named.items() for end in USUAL_ENDINGS}
                there = [Spelled(other, how) for other, how in ended.items() if is_file(other)]
    if len(there) > 1:
        raise ImageError("missing_file", _several(uri, sorted(found.uri for found in there)))
    return there[0] if there else None


def other_cases(uri: str) -> list[str]:
    """The usual ways to write the name of a file in another case of letters; folders stay as they are."""
    folder, slash, name = uri.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    endings = (f"{stem}{dot}{ending.lower()}", f"{stem}{dot}{ending.upper()}")
    names = dict.fromkeys((*endings, name.lower(), name.upper(), name[:1].swapcase() + name[1:]))
    return [folder + slash + other for other in names if other != name]


def _with(how: str, more: str) -> str:
    return f"{how} and {more}" if how else more


def _several(name: str, found: Sequence[str]) -> str:
    names = " and ".join(map(ascii, found))  # which may look alike
    return f"{name!r} is not there, and {names} may both be meant: spell it as one of them is"


class Spellings:
    """Values by name, found by the name as it is spelled, or else by another spelling of it."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._names: Mapping[str, Sequence[str]] | None = None  # by their plain form

    def find(self, name: str) -> str | None:
        """The value, None where no name is meant. Raises RowError (``missing_file``) where several may be."""
        if name in self._values:
            return self._values[name]
        if self._names is None:
            names: dict[str, list[str]] = {}
            for known in sorted(self._values):
                names.setdefault(plain_form(known), []).append(known)
            self._names = names
        found = self._names.get(plain_form(name), ())
        if len(found) > 1:
            raise RowError("missing_file", _several(name, found))
        return self._values[found[0]] if found else None


def spelling_decisions(counts: Mapping[str, int]) -> tuple[Decision, ...]:
    """What is told of the files of an input that were found under another spelling, by how they differ."""
    return tuple(
        Decision("spelling of names", how, f"{count:,} file{'s are' if count > 1 else ' is'} there so, not as named")
        for how, count in sorted(counts.items())
    )
