"""Names of files, as text only: schemes, joining, globs, and what of a name may be shown.

Names are literal. Nothing here unquotes anything, and outside of :class:`Glob` the characters ``*``, ``?``, ``[``,
``#`` and ``%`` mean themselves. The one exception is the web: there a name is a URL, so a path that is joined to one
is quoted first.
"""

from __future__ import annotations

import re
from functools import cached_property
from posixpath import normpath
from urllib.parse import quote

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
WEB_SCHEMES = ("http", "https")
OBJECT_SCHEMES = ("gs", "s3", "az", "azfs")
"""Of stores without folders, in which a file shows when it is complete, and not at all when writing it failed."""
ACCOUNT_SCHEMES = ("az", "azfs")
"""Of those in which two parts of a name lead to the objects: an account, and a container in it."""


def scheme_of(uri: str) -> str:
    """``gs``, ``https`` ...; ``""`` for a path of this machine (also when it is written ``file://``)."""
    if "://" not in uri:  # nearly all names; much faster than to look for more
        return ""
    found = _SCHEME.match(uri)
    scheme = found[1].lower() if found else ""
    return "" if scheme == "file" else scheme


def is_absolute(path: str) -> bool:
    """Whether a path says by itself where it is: it starts with ``/`` or has a scheme."""
    return path.startswith("/") or ("://" in path and _SCHEME.match(path) is not None)


def join(base: str, path: str) -> str:
    """``path`` below the folder ``base``; an absolute path or a uri with a scheme stays as it is.

    Object stores and the web know no ``.`` and ``..``, so these are resolved there when ``path`` has them; the local
    file system resolves them itself (through symbolic links). Raises ValueError when ``..`` leads out of a bucket.
    """
    if is_absolute(path) or not base:
        return path
    scheme = scheme_of(base)
    if not scheme:
        return (base if base.endswith("/") else base + "/") + path
    if scheme in WEB_SCHEMES:
        base, path = base.partition("?")[0], quote(path, safe="/~")
    whole = base.rstrip("/") + "/" + path
    if not any(segment in (".", "..") for segment in path.split("/")):
        return whole
    root, name = split_root(whole)
    resolved = normpath(name)
    if resolved == ".." or resolved.startswith("../"):
        raise ValueError(f"{path!r} leads out of {root}")
    return root + (resolved if resolved != "." else "") + ("/" if path.endswith("/") and resolved != "." else "")


def split_root(uri: str) -> tuple[str, str]:
    """(``gs://bucket/``, ``name``): the bucket, host or container with its scheme, and the rest, both as spelled."""
    found = _SCHEME.match(uri)
    if found is None:
        return "", uri
    depth = 2 if found[1].lower() in ACCOUNT_SCHEMES else 1
    parts = uri[found.end() :].split("/", depth)
    name = parts.pop() if len(parts) > depth else ""
    return uri[: found.end()] + "/".join(parts) + "/", name


def bucket_and_name(uri: str) -> tuple[str, str]:
    """(``bucket``, ``name``) of ``scheme://bucket/name``; of ``az://account/container/name`` the first two are the
    bucket. Raises ValueError when there is none."""
    root, name = split_root(uri)
    scheme, _, bucket = root.rstrip("/").partition("://")
    if scheme.lower() in ACCOUNT_SCHEMES and ("/" not in bucket or bucket[0] == "/"):
        raise ValueError(f"{uri!r} names no container; it must look like {scheme}://account/container/name")
    if not bucket:
        raise ValueError(f"{uri!r} names no bucket; it must look like {scheme_of(uri) or 'gs'}://bucket/name")
    return bucket, name


def parent(uri: str) -> str:
    """The folder that holds a file, without a slash at its end (``gs://bucket`` for an object at the top)."""
    if scheme_of(uri) in WEB_SCHEMES:
        uri = uri.partition("?")[0]
    root, name = split_root(uri)
    folder = name.rstrip("/").rpartition("/")[0]
    if root:
        return (root + folder).rstrip("/")
    return folder or ("/" if name.startswith("/") else ".")


def name_of(uri: str) -> str:
    """The last part of a name."""
    if scheme_of(uri) in WEB_SCHEMES:
        uri = uri.partition("?")[0]
    return split_root(uri)[1].rstrip("/").rpartition("/")[2]


def public_uri(uri: str) -> str:
    """A uri as it may be shown: without the query of a signed URL, and without a user name and password.

    Only web addresses have a query: in every other name ``?`` is a character like any other.
    """
    if "://" not in uri:
        return uri
    found = _SCHEME.match(uri)
    if found is None:
        return uri
    rest = uri[found.end() :]
    if found[1].lower() in WEB_SCHEMES:
        rest = rest.partition("?")[0]
    host, slash, name = rest.partition("/")
    if scheme_of(uri) not in OBJECT_SCHEMES:
        host = host.rpartition("@")[2]
    return uri[: found.end()] + host + slash + name


def has_glob(uri: str) -> bool:
    """Whether a name has ``*``, ``?`` or ``[`` in it (in a web address they never mean anything)."""
    return scheme_of(uri) not in WEB_SCHEMES and any(character in uri for character in "*?[")


def escape_glob(uri: str) -> str:
    """The pattern that matches exactly this name."""
    return re.sub(r"([*?[])", r"[\1]", uri)


class Glob:
    """A pattern over the whole of a name.

    ``*`` and ``?`` stay within one folder, ``**`` crosses folders (``a/**/b`` matches ``a/b`` too), ``[abc]``,
    ``[a-z]`` and ``[!a]`` are one character. A leading dot is no exception: what is hidden is for the caller to tell.
    ``[*]``, ``[?]`` and ``[[]`` are the characters themselves.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile(_translate(self.pattern), re.DOTALL)

    def matches(self, name: str) -> bool:
        """Whether the whole of ``name`` fits."""
        return self._regex.fullmatch(name) is not None

    @property
    def is_literal(self) -> bool:
        """Whether nothing in the pattern is special."""
        return not any(character in self.pattern for character in "*?[")

    @property
    def literal_prefix(self) -> str:
        """The part before the first special character."""
        found = re.search(r"[*?[]", self.pattern)
        return self.pattern[: found.start()] if found else self.pattern


def _translate(pattern: str) -> str:
    """The regular expression of a glob."""
    parts = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if pattern.startswith("**", at):
            at += 2
            if pattern.startswith("/", at) and (at == 2 or pattern[at - 3] == "/"):
                at += 1
                parts.append("(?:.*/)?")
            else:
                parts.append(".*")
            continue
        at += 1
        if character == "*":
            parts.append("[^/]*")
        elif character == "?":
            parts.append("[^/]")
        elif character == "[" and (end := _class_end(pattern, at)) > 0:
            parts.append(_translate_class(pattern[at:end]))
            at = end + 1
        else:
            parts.append(re.escape(character))
    return "".join(parts)


def _class_end(pattern: str, start: int) -> int:
    """Index of the ``]`` that closes a class whose content begins at ``start``; -1 when it is never closed."""
    first = start + 1 if pattern.startswith("!", start) else start
    return pattern.find("]", first + 1)


def _translate_class(content: str) -> str:
    negated = content.startswith("!")
    members = re.sub(r"([\\\[\]^&~|])", r"\\\1", content[negated:])
    members = re.sub(r"-(?=-)", r"\\-", members)
    try:
        re.compile(f"[{members}]")
    except re.error:  # a range that runs backwards, [z-a], matches nothing
        return "(?!)"
    return f"(?!/)[{'^' if negated else ''}{members}]"
