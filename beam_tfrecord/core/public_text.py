"""Texts as they may be shown and kept: without what gives access."""

from __future__ import annotations

import re

# An address in a text, up to a blank or a quote; blanks and apostrophes belong to it where a query follows. What stands
# behind it stays: the number of a line, and marks of the sentence.
_ADDRESS = re.compile(
    r"""(\b[A-Za-z][A-Za-z0-9+.-]*://)([^\s/@'"]*@)?([^\s?'"]*(?:[^?"\n]*(?=\?[\w%]))?)"""
    r"""(\?[^\s'"]*?)?(?=(?::\d+)?[:,;.)]*(?:[\s'"]|$))"""
)
_CONSOLE = re.compile(r"console\.cloud\.google\.com/[^?]*\?project=[\w:.-]+")  # a page for people who have logged in


def is_utf8(text: str) -> bool:
    """Whether a text can be written as UTF-8, bytes of names that are none (PEP 383) being given back as they were.

    False for half of a surrogate pair, which JSON can spell.
    """
    if text.isascii():
        return True
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def writable_text(text: str) -> str:
    """The text itself, or, where it holds half of a surrogate pair, with that escaped."""
    return text if is_utf8(text) else text.encode("utf-8", "backslashreplace").decode("utf-8")


def public_text(text: str) -> str:
    """A text whose addresses have no user, no password and, on the web, no query: signed URLs are cut at the ``?``."""
    return _ADDRESS.sub(_cut, text) if "://" in text else text


def _cut(found: re.Match[str]) -> str:
    scheme, user, place, query = found.groups(default="")
    is_web = scheme.lower() in ("http://", "https://")
    is_bucket = scheme.lower() in ("gs://", "s3://")  # where @ and ? are characters like any other
    is_kept = not is_web or _CONSOLE.fullmatch(place + query) is not None
    return scheme + (user if is_bucket else "") + place + (query if is_kept else "")
