"""Images on the web: ``https://`` and ``http://``, reading only.

A name is a URL here: ``?`` begins a query and ``#`` a fragment, and characters that a URL cannot have are quoted, while
what is quoted already stays as it is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any, BinaryIO, cast
from urllib.parse import urljoin

import requests
from requests.adapters import HTTPAdapter

from beam_tfrecord.errors import StorageError
from beam_tfrecord.manifests.base import FileInfo
from beam_tfrecord.storage.clients import shared_client
from beam_tfrecord.storage.faults import MissingFileError, TransientError, UnreadableFileError
from beam_tfrecord.storage.stores import Store, too_large
from beam_tfrecord.storage.uris import public_uri, scheme_of
from beam_tfrecord.storage.web_faults import (
    MISSING_STATUS,
    NETWORK_ERRORS,
    REFUSED_STATUS,
    TIMEOUTS,
    TRANSIENT_STATUS,
    is_permanent,
    network_reason,
    transient_status,
)

MAX_BYTES = 512 * 1024 * 1024
"""The most that is read from one URL, in bytes."""
MAX_REDIRECTS = 5
"""How many redirects are followed, one after the other."""
MAX_SECONDS = 300.0
"""How long one attempt may take as a whole, in seconds, also when bytes keep dripping in."""

_CHUNK = 256 * 1024
_HEADERS = {"User-Agent": "beam-tfrecord", "Accept": "image/*,*/*;q=0.8", "Accept-Encoding": "identity"}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class WebStore(Store):
    """Files behind URLs. Each try connects within 10 s, waits 60 s for bytes and takes :data:`MAX_SECONDS` at most.

    At most :data:`MAX_BYTES` are read and :data:`MAX_REDIRECTS` redirects followed, only to http and https, and never
    from https to http. Proxies and certificates are taken from the environment (HTTPS_PROXY, NO_PROXY,
    REQUESTS_CA_BUNDLE). A refusal (401, 403) concerns one file only: unlike a bucket, the web has no owner to ask.
    """

    def read(self, uri: str, max_bytes: int | None) -> bytes:
        limit = MAX_BYTES if max_bytes is None else min(max_bytes, MAX_BYTES)
        return self.reading(uri, lambda: b"".join(self._chunks(uri, limit)))

    def read_range(self, uri: str, start: int, length: int) -> bytes:
        # Many servers do not know ranges: this is for completeness, not for speed.
        with self.open(uri) as stream:
            stream.seek(start)
            return stream.read(length)

    def open(self, uri: str) -> BinaryIO:
        def attempt() -> BinaryIO:
            spool = tempfile.SpooledTemporaryFile(max_size=16 * 1024 * 1024)  # noqa: SIM115 - the caller closes it
            try:
                spool.writelines(self._chunks(uri, MAX_BYTES))
            except BaseException:
                spool.close()
                raise
            spool.seek(0)
            return cast(BinaryIO, spool)

        return self.reading(uri, attempt)

    def size(self, uri: str) -> int:
        def attempt(method: str) -> int | None:
            with _faults(uri), self._answer(method, uri) as answer:
                length = answer.headers.get("Content-Length", "")
                return int(length) if length.isdigit() else None

        try:
            size = self.reading(uri, lambda: attempt("HEAD"))
        except UnreadableFileError:  # some servers know GET only
            size = self.reading(uri, lambda: attempt("GET"))
        if size is not None:
            return size
        with self.open(uri) as stream:
            return stream.seek(0, 2)

    def is_file(self, uri: str) -> bool:
        def attempt() -> bool:
            with _faults(uri), self._answer("GET", uri):
                return True

        try:
            return self.reading(uri, attempt)
        except MissingFileError:
            return False

    def is_folder(self, uri: str) -> bool:
        return False

    def walk(self, uri: str) -> Iterator[FileInfo]:
        raise StorageError(f"{public_uri(uri)}: a web server cannot list its files; give a manifest that names them")

    def match(self, pattern: str) -> Iterator[FileInfo]:
        if self.is_file(pattern):
            yield FileInfo(pattern, self.size(pattern))

    def list_folder(self, uri: str) -> list[str]:
        raise StorageError(f"{public_uri(uri)}: a web server cannot list its files; give a manifest that names them")

    def open_write(self, uri: str) -> BinaryIO:
        raise _read_only(uri)

    def write_bytes(self, uri: str, data: bytes) -> None:
        raise _read_only(uri)

    def write_if(self, uri: str, data: bytes, version: str | None) -> bool:
        raise _read_only(uri)

    def rename(self, old: str, new: str) -> None:
        raise _read_only(new)

    def delete(self, uris: Sequence[str]) -> None:
        raise _read_only(uris[0])

    def delete_tree(self, uri: str) -> None:
        raise _read_only(uri)

    def make_folder(self, uri: str) -> None:
        raise _read_only(uri)

    def _chunks(self, uri: str, limit: int) -> Iterator[bytes]:
        """The body of a good answer, checked for size and time while it comes."""
        deadline = monotonic() + MAX_SECONDS
        with _faults(uri), self._answer("GET", uri) as answer:
            length = answer.headers.get("Content-Length", "")
            if length.isdigit() and int(length) > limit:
                raise UnreadableFileError(too_large(public_uri(uri), int(length), limit))
            count = 0
            # read1 gives what has come so far, so that the clock is looked at also while bytes come singly.
            while chunk := answer.raw.read1(_CHUNK, decode_content=True):
                count += len(chunk)
                if count > limit:
                    raise UnreadableFileError(too_large(public_uri(uri), None, limit))
                if monotonic() > deadline:
                    raise TransientError(f"the answer took longer than {MAX_SECONDS:g} s")
                yield chunk

    @contextmanager
    def _answer(self, method: str, uri: str) -> Iterator[requests.Response]:
        """The first answer that is no redirect, checked; closed in the end."""
        url = uri
        for _ in range(MAX_REDIRECTS + 1):
            answer = self._session().request(
                method, url, headers=_HEADERS, timeout=TIMEOUTS, allow_redirects=False, stream=True
            )
            with answer:
                target = answer.headers.get("Location") if answer.status_code in _REDIRECTS else None
                if target is None:
                    _check(answer, uri)
                    yield answer
                    return
            url = _redirected(url, target, uri)
        raise UnreadableFileError(f"{public_uri(uri)}: more than {MAX_REDIRECTS} redirects")

    def _session(self) -> requests.Session:
        connections = self.options.connections
        return shared_client(("web", connections), lambda: _connect(connections))


def _connect(connections: int) -> requests.Session:
    session = requests.Session()
    session.cookies.set_policy(_NoCookies())
    for scheme in ("https://", "http://"):
        session.mount(scheme, HTTPAdapter(pool_connections=64, pool_maxsize=connections, max_retries=0))
    return session


def _redirected(url: str, target: str, uri: str) -> str:
    """Where a redirect leads. Raises UnreadableFileError when it leaves the web, or steps down to plain http."""
    to = urljoin(url, target)
    scheme = scheme_of(to)
    if scheme not in ("http", "https"):
        raise UnreadableFileError(f"{public_uri(uri)}: redirects to {to.partition(':')[0]}:, which is not followed")
    if scheme == "http" and scheme_of(url) == "https":
        raise UnreadableFileError(f"{public_uri(uri)}: redirects from https to http, which is not followed")
    return to


def _check(answer: requests.Response, uri: str) -> None:
    status = answer.status_code
    shown = public_uri(uri)
    if status == 200:
        return
    if status in MISSING_STATUS:
        raise MissingFileError(f"{shown} does not exist (HTTP {status})")
    if status in TRANSIENT_STATUS:
        raise transient_status(status, answer.headers.get("Retry-After"))
    if status in REFUSED_STATUS:
        raise UnreadableFileError(f"{shown}: the server refuses access (HTTP {status}); has a signed URL expired?")
    raise UnreadableFileError(f"{shown}: the server answered HTTP {status}")


@contextmanager
def _faults(uri: str) -> Iterator[None]:
    try:
        yield
    except (MissingFileError, UnreadableFileError):
        raise
    except NETWORK_ERRORS as error:
        reason = network_reason(error)
        if is_permanent(error):
            raise UnreadableFileError(f"{public_uri(uri)}: {reason}") from None
        raise TransientError(reason) from None
    except ValueError as error:  # a host name that cannot be one, a port out of range
        raise UnreadableFileError(f"{public_uri(uri)} is no URL that can be read ({type(error).__name__})") from None


def _read_only(uri: str) -> StorageError:
    return StorageError(f"{public_uri(uri)}: nothing can be written to the web; give a folder, gs:// or s3://")


class _NoCookies(requests.cookies.cookielib.DefaultCookiePolicy):  # type: ignore[name-defined]
    """Requests share a session, and must not depend on one another."""

    def set_ok(self, cookie: Any, request: Any) -> bool:
        return False
