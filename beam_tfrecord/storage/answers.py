"""What an answer of a server means that is no success, and what it means when none came: for every store, in words that
never show a URL, which may be signed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import time
from typing import NoReturn
from xml.etree import ElementTree

from beam_tfrecord.errors import StorageError
from beam_tfrecord.storage.faults import (
    ChangedFileError,
    MissingFileError,
    NoBucketError,
    TransientError,
    UnreadableFileError,
)
from beam_tfrecord.storage.fetch import CONNECT_SECONDS, SILENT_SECONDS, FetchError

TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524})
MISSING_STATUS = frozenset({404, 410})
REFUSED_STATUS = frozenset({401, 403})


@dataclass(frozen=True)
class Words:
    """What a store says beside the status, by what it means: parts of its codes or texts, in any case.

    kind: what its users call the thing that holds the objects. no_bucket: where that is what is missing.
    """

    kind: str = "bucket"
    transient: tuple[str, ...] = ()
    no_bucket: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


@dataclass(frozen=True)
class Place:
    """What a request was about: an object, or all that a bucket holds (None)."""

    scheme: str
    bucket: str
    name: str | None

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.name or ''}"


@dataclass(frozen=True)
class Refusal:
    """An answer that is no success. told: by the server; it is searched for words. code: what of that may be shown."""

    status: int
    told: str = ""
    code: str = ""
    retry_after: str | None = None

    def says(self, words: tuple[str, ...]) -> bool:
        """Whether one of the words stands in what was told."""
        return any(word.lower() in self.told.lower() for word in words)


def raise_for(refusal: Refusal, place: Place, words: Words, needs: str) -> NoReturn:
    """The fault that an answer is for the stores' contract. needs: what is missing where access was refused."""
    status = refusal.status
    if status in MISSING_STATUS:
        if place.name is None:
            raise StorageError(f"{place}: the {words.kind} {place.bucket!r} does not exist")
        if refusal.says(words.no_bucket):
            raise NoBucketError(f"{place} does not exist: there is no such {words.kind}")
        raise MissingFileError(f"{place} does not exist")
    if status in TRANSIENT_STATUS or refusal.says(words.transient):
        raise transient_status(status, refusal.retry_after)
    if status == 412 or refusal.says(words.changed):
        raise ChangedFileError(f"{place} was changed while it was being read")
    if status in REFUSED_STATUS or refusal.says(words.refused):
        raise StorageError(f"{place.scheme}://{place.bucket}: {needs}")
    said = f"{refusal.code} ({status})" if refusal.code else f"HTTP {status}"
    raise UnreadableFileError(f"{place}: the server answered {said}")


@contextmanager
def network_faults(place: Place | str, permanent: type[Exception] = StorageError) -> Iterator[None]:
    """What it means that no whole answer came. permanent: is raised where another try would fail in the same way."""
    try:
        yield
    except FetchError as error:
        if error.is_permanent:
            raise permanent(f"{place}: {error.reason}") from None
        raise TransientError(error.reason) from None


@contextmanager
def strange_answers(place: Place) -> Iterator[None]:
    """What it means that an answer is a good one by its status, and does not tell what was asked."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, ElementTree.ParseError) as error:
        raise StorageError(
            f"{place}: the server answered what this kind of storage does not ({type(error).__name__}: {error}); is "
            "its address right, and is no proxy or login page in between?"
        ) from None


def network_reason(error: BaseException) -> str:
    """Why a request of another library got no whole answer, from the names of its errors: it may be any of many."""
    text = repr(error)
    if "SSLError" in text:
        return "the certificate of the server is not trusted, or its TLS does not fit"
    if "ConnectTimeout" in text:
        return f"no connection within {CONNECT_SECONDS} s"
    if isinstance(error, TimeoutError) or "timed out" in text or "ReadTimeout" in text:
        return f"no answer within {SILENT_SECONDS} s"
    if "NameResolution" in text or "getaddrinfo" in text:
        return "the name of the server is not known"
    if "refused" in text:
        return "the server refused the connection"
    if "EndpointConnection" in text:
        return "the server cannot be reached"
    if "IncompleteRead" in text:
        return "the answer was cut short"
    return "the connection was lost"


def retry_after_seconds(value: str | None) -> float:
    """Seconds of a Retry-After header (RFC 9110, 10.2.3: a number or a date); 0 when it is absent or senseless."""
    if not value:
        return 0.0
    if value.strip().isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time())
    except (ValueError, TypeError):
        return 0.0


def transient_status(status: int, retry_after: str | None = None) -> TransientError:
    """The fault for an answer that asks to come back later."""
    words = {429: "too many requests", 408: "the server waited too long"}
    said = f" (HTTP {status})" if status else ""
    return TransientError(words.get(status, "the server is in trouble") + said, retry_after_seconds(retry_after))
