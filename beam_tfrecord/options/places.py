"""Places as they are spelled in options and arguments: what a shell left undone, and what can be no place at all.

Text only: whether anything is there is asked elsewhere. Every place that a command or a function of the package takes
goes through :func:`parse_place`, or :func:`parse_target` where something is to be written.
"""

from __future__ import annotations

import os
import re
from typing import Any

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
# Schemes that nobody would take for the start of a file's name, with less than two slashes behind them.
_FEW_SLASHES = re.compile(
    r"(gs|gcs|s3|s3a|s3n|hdfs|webhdfs|az|azfs|abfss?|wasbs?|https?|ftp|file):(?!//)/?(.*)", re.IGNORECASE | re.DOTALL
)
_BUCKETS = ("gs", "s3")
_WEB = ("http", "https")
_EXAMPLES = dict.fromkeys(("az", "azfs"), "ACCOUNT/CONTAINER/NAME")
# Of Azure ("Naming and referencing containers"; "Storage account overview"): an account has small letters and digits, a
# container hyphens too; three are the system's ($root, $web, $logs).
_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_CONTAINER = re.compile(r"[a-z0-9](?:-?[a-z0-9]){2,62}|\$(?:root|web|logs)")
# Of both stores: letters, digits, - _ . and a letter or digit at either end (Cloud Storage, "Bucket name requirements";
# S3, "General purpose bucket naming rules"); an access point of S3 is named by its ARN.
_BUCKET_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|arn:[^/]*")


def parse_place(value: Any) -> str:
    """A place to read. ``~`` and ``~user`` at its start are home folders, as in a shell, which leaves them alone behind
    an equals sign and within quotes; of a user that is not known they stay as they are.

    Raises ValueError for an empty place, a store without a bucket, and a scheme with a slash too few.
    """
    place = os.fspath(value) if hasattr(value, "__fspath__") else str(value)
    if place.startswith("~"):
        place = os.path.expanduser(place)
    check_place(place)
    return place


def parse_target(value: Any) -> str:
    """A place to write: :func:`parse_place`, and no address on the web and no home of an unknown user."""
    place = parse_place(value)
    found = _SCHEME.match(place)
    if found is not None and found[1].lower() in _WEB:
        raise ValueError("nothing can be written to the web: name a local place, or one in a store (gs://, s3:// ...)")
    if place.startswith("~"):
        raise ValueError(
            f"there is no user {place[1:].partition('/')[0]!r}; if that is a name in this folder, write ./{place}"
        )
    return place


def expand_flag(argument: str) -> str:
    """A flag of another parser, ``~/`` at the start of its value (or of a value by itself) being the home folder."""
    flag, equals, value = argument.partition("=") if argument.startswith("-") else ("", "", argument)
    return flag + equals + (os.path.expanduser(value) if value.startswith("~/") else value)


def check_place(place: str) -> None:
    """Raise ValueError for what can be no place, whatever lies there."""
    if not place:
        raise ValueError("it is empty (a variable of the shell that is not set?): name a place")
    few = _FEW_SLASHES.match(place)
    if few is not None:
        scheme, rest = few[1].lower(), few[2]
        meant = (
            f"/{rest.lstrip('/')}" if scheme == "file" else f"{scheme}://{rest or _EXAMPLES.get(scheme, 'BUCKET/NAME')}"
        )
        raise ValueError(f"{scheme}: needs two slashes behind it; write {meant}, or ./{place} for a local name")
    found = _SCHEME.match(place)
    if found is None:
        return
    scheme, rest = found[1].lower(), place[found.end() :]
    host = rest.partition("/")[0]
    if scheme in _BUCKETS:
        if not host:
            raise ValueError(f"it names no bucket (a variable of the shell that is not set?): {scheme}://BUCKET/NAME")
        if not _BUCKET_NAME.fullmatch(host):
            raise ValueError(f"{host!r} cannot be the name of a bucket: {scheme}://BUCKET/NAME")
    elif scheme in _EXAMPLES:
        container = rest.partition("/")[2].partition("/")[0]
        if not host or not container:
            told = "account" if not host else "container"
            raise ValueError(
                f"it names no {told} (a variable of the shell that is not set?): {scheme}://{_EXAMPLES[scheme]}"
            )
        for kind, name, pattern in (("an account", host, _ACCOUNT), ("a container", container, _CONTAINER)):
            if not pattern.fullmatch(name):
                raise ValueError(f"{name!r} cannot be the name of {kind}: {scheme}://{_EXAMPLES[scheme]}")
    elif scheme in _WEB and not host:
        raise ValueError(f"it names no host: {scheme}://HOST/NAME")
    elif not rest.strip("/"):
        raise ValueError(f"nothing follows {scheme}:// (a variable of the shell that is not set?)")
