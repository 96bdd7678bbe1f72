"""Uris and paths as text. Names are literal: nothing is unquoted or resolved."""

from __future__ import annotations

import re

WEB_SCHEMES = ("http", "https")
_ROOT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*/?|/")


def name_of(uri: str) -> str:
    """The last part of a uri, without the query of a web address."""
    return _without_query(uri).rstrip("/").rpartition("/")[2]


def folder_of(uri: str) -> str:
    """The folder that holds a file or folder, without a slash at its end; empty for a bare name."""
    uri = _without_query(uri)
    found = _ROOT.match(uri)
    root = found[0] if found else ""
    folder = uri[len(root) :].rstrip("/").rpartition("/")[0]
    if root in ("", "/"):
        return root + folder
    return f"{root.rstrip('/')}/{folder}".rstrip("/")


def without_slash(uri: str) -> str:
    """A folder without slashes at its end; the root stays."""
    return uri.rstrip("/") or uri[:1]


def with_slash(uri: str) -> str:
    """What the uris of everything below a folder start with."""
    return uri if uri.endswith("/") else uri + "/"


def has_glob(uri: str) -> bool:
    """Whether a name has a character in it that a glob gives a meaning."""
    return any(character in uri for character in "*?[")


def literal_folder(pattern: str) -> str:
    """The deepest folder that a glob names without special characters; empty when there is none."""
    found = re.search(r"[*?[]", pattern)
    folder, slash, _ = (pattern[: found.start()] if found else pattern).rpartition("/")
    return folder or slash


def scheme_of(uri: str) -> str:
    """``gs``, ``https`` ...; empty for a path."""
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", uri)
    return found[1].lower() if found else ""


def _without_query(uri: str) -> str:
    return uri.partition("?")[0] if "?" in uri and scheme_of(uri) in WEB_SCHEMES else uri
