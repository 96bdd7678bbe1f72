"""Images on the web: ``https://`` and ``http://``, reading only.

A name is a URL here: ``?`` begins a query and ``#`` a fragment, and characters that a URL cannot have are quoted, while
what is quoted already stays as it is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast
from urllib.parse import urljoin

from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from beam_tfrecord.errors import StorageError
from beam_tfrecord.manifests.base import FileInfo
from beam_tfrecord.storage.answers import (
    MISSING_STATUS,
    REFUSED_STATUS,
    TRANSIENT_STATUS,
    network_faults,
    transient_status,
)
from beam_tfrecord.storage.clients import shared_client
from beam_tfrecord.storage.faults import MissingFileError, UnreadableFileError
from beam_tfrecord.storage.fetch import Answer, Fetcher, Limit
from beam_tfrecord.storage.stores import Store
from beam_tfrecord.storage.uris import public_uri, scheme_of

MAX_BYTES = 512 * 1024 * 1024
"""The most that is read from one URL, in bytes."""
MAX_REDIRECTS = 5
"""How many redirects are followed, one after the other."""
MAX_SECONDS = 300.0
"""How long one attempt may take as a whole, in seconds, also when bytes keep dripping in."""

_HEADERS = {"Accept": "image/*,*/*;q=0.8"}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class WebStore(Store):
    """Files behind URLs. Each try connects within 10 s, waits 60 s for bytes and takes :data:`MAX_SECONDS` at most.

    At most :data:`MAX_BYTES` are read and :data:`MAX_REDIRECTS` redirects followed, only to http and https, and never
    from https to http. Proxies and certificates are taken from the environment (HTTPS_PROXY, NO_PROXY,
    REQUESTS_CA_BUNDLE). A refusal (401, 403) concerns one file only: unlike a bucket, the web has no owner to ask.
    """

    def read(self, uri: str, max_bytes: int | None) -> bytes:
        limit = MAX_BYTES if max_bytes is None else min(max_bytes, MAX_BYTES)
        return self.reading(uri, lambda: self._answer(uri, limit=limit).body)

    def read_range(self, uri: str, start: int, length: int) -> bytes:
        # Many servers do not know ranges: this is for completeness, not for speed.
        with self.open(uri) as stream:
            stream.seek(start)
            return stream.read(length)

    def open(self, uri: str) -> BinaryIO:
        def attempt() -> BinaryIO:
            spool = tempfile.SpooledTemporaryFile(max_size=16 * 1024 * 1024)  # noqa: SIM115 - the caller closes it
            try:
                self._answer(uri, limit=MAX_BYTES, write=spool.write)
            except BaseException:
                spool.close()
                raise
            spool.seek(0)
            return cast(BinaryIO, spool)

        return self.reading(uri, attempt)

    def size(self, uri: str) -> int:
        def attempt(method: str) -> int | None:
            length = self._answer(uri, method=method, is_head_enough=True).headers.get("content-length", "")
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
        try:
            self.reading(uri, lambda: self._answer(uri, is_head_enough=True))
        except MissingFileError:
            return False
        return True

    def is_folder(self, uri: str) -> bool:
        return False

    def list_folder(self, uri: str) -> Any:
        raise StorageError(f"{public_uri(uri)}: a web server cannot list its files; give a manifest that names them")

    walk = list_folder

    def match(self, pattern: str) -> Iterator[FileInfo]:
        if self.is_file(pattern):
            yield FileInfo(pattern, self.size(pattern))

    def _read_only(self, uri: Any, *_: Any) -> Any:
        shown = public_uri(uri if isinstance(uri, str) else uri[0])
        raise StorageError(f"{shown}: nothing can be written to the web; give a folder, gs:// or s3://")

    _refused: Any = _read_only
    open_write = write_bytes = write_if = rename = delete = delete_tree = make_folder = _refused

    def _answer(
        self,
        uri: str,
        *,
        method: str = "GET",
        limit: int = MAX_BYTES,
        write: Callable[[bytes], object] | None = None,
        is_head_enough: bool = False,
    ) -> Answer:
        """The first answer that is no redirect, checked."""
        fetcher = shared_client(("web",), lambda: Fetcher(encoding="identity", uses_netrc=True))
        url = _url(uri, uri)
        for _ in range(MAX_REDIRECTS + 1):
            with network_faults(public_uri(uri), UnreadableFileError):
                answer = fetcher.send(
                    url,
                    _HEADERS,
                    method=method,
                    limit=Limit(limit, public_uri(uri)),
                    write=write,
                    seconds=MAX_SECONDS,
                    is_head_enough=is_head_enough,
                )
            target = answer.headers.get("location") if answer.status in _REDIRECTS else None
            if target is None:
                _check(answer, uri)
                return answer
            url = _url(_redirected(url, target, uri), uri)
        raise UnreadableFileError(f"{public_uri(uri)}: more than {MAX_REDIRECTS} redirects")


def _url(url: str, uri: str) -> str:
    """A URL as it is sent: what it cannot have is quoted. Raises UnreadableFileError when it cannot be one."""
    try:
        found = parse_url(url)
    except (LocationParseError, ValueError) as error:  # a host name that cannot be one, a port out of range
        raise UnreadableFileError(f"{public_uri(uri)} is no URL that can be read ({type(error).__name__})") from None
    if not found.host:
        raise UnreadableFileError(f"{public_uri(uri)} is no URL that can be read (it names no server)")
    return found._replace(path=found.path or "/", fragment=None).url


def _redirected(url: str, target: str, uri: str) -> str:
    """Where a redirect leads. Raises UnreadableFileError when it leaves the web, or steps down to plain http."""
    to = urljoin(url, target)
    scheme = scheme_of(to)
    if scheme not in ("http", "https"):
        raise UnreadableFileError(f"{public_uri(uri)}: redirects to {to.partition(':')[0]}:, which is not followed")
    if scheme == "http" and scheme_of(url) == "https":
        raise UnreadableFileError(f"{public_uri(uri)}: redirects from https to http, which is not followed")
    return to


def _check(answer: Answer, uri: str) -> None:
    status = answer.status
    shown = public_uri(uri)
    if status == 200:
        return
    if status in MISSING_STATUS:
        raise MissingFileError(f"{shown} does not exist (HTTP {status})")
    if status in TRANSIENT_STATUS:
        raise transient_status(status, answer.headers.get("retry-after"))
    if status in REFUSED_STATUS:
        raise UnreadableFileError(f"{shown}: the server refuses access (HTTP {status}); has a signed URL expired?")
    raise UnreadableFileError(f"{shown}: the server answered HTTP {status}")
