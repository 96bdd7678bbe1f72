"""HTTP requests by libcurl: what every image in an object store or on the web is read with.

One request takes 0.2 ms of processor time, most of it while other threads of Python run; urllib3 takes 0.5, the client
libraries 1 to 3. A URL is sent as it stands, so that names like ``a//b`` and ``a/../b`` stay what they are (obstore, as
quick, refuses them, reads ``b`` where ``/b`` is asked for, and does not show the checksum that Cloud Storage states).
libcurl's own second try, on a new connection when a kept one was lost, is prevented: tries are ours, and counted.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from math import inf
from typing import Any, BinaryIO
from urllib.request import getproxies, proxy_bypass

import certifi

from beam_tfrecord.storage.faults import UnreadableFileError
from beam_tfrecord.storage.stores import too_large


@contextmanager
def _own_names_first() -> Iterator[None]:
    """TensorFlow's library has a libcurl inside, an older one, and shows its names to every library that is loaded
    later: after ``import tensorflow`` pycurl would call that one, and refuses to be imported. Where the loader can look
    into a library's own dependencies first, it is told to (dlopen(3), RTLD_DEEPBIND)."""
    before = sys.getdlopenflags()
    own_first = getattr(os, "RTLD_DEEPBIND", None)  # of Linux with glibc
    sys.setdlopenflags(before if own_first is None else os.RTLD_NOW | own_first)
    try:
        yield
    finally:
        sys.setdlopenflags(before)


with _own_names_first():
    import pycurl

CONNECT_SECONDS = 10
SILENT_SECONDS = 60
"""How long a connection may take to be made, and how long no byte may come, in seconds."""

_MOST_HOSTS = 64  # with connections kept
_MOST_OF_A_REFUSAL = 1024 * 1024  # bytes of an answer that is no success
_BUFFER = 128 * 1024
_NO_TRUST = frozenset(
    {pycurl.E_PEER_FAILED_VERIFICATION, pycurl.E_SSL_CACERT_BADFILE, pycurl.E_SSL_CERTPROBLEM, pycurl.E_SSL_CIPHER}
)
_REASONS = {
    pycurl.E_COULDNT_RESOLVE_HOST: "the name of the server is not known",
    pycurl.E_COULDNT_RESOLVE_PROXY: "the name of the proxy is not known",
    pycurl.E_COULDNT_CONNECT: "the server cannot be reached",
    pycurl.E_SSL_CONNECT_ERROR: "TLS with the server failed",
    pycurl.E_PARTIAL_FILE: "the answer was cut short",
    pycurl.E_BAD_CONTENT_ENCODING: "the answer cannot be unpacked",
}
_NO_URL = {
    pycurl.E_URL_MALFORMAT: "this is no URL that can be read",
    pycurl.E_UNSUPPORTED_PROTOCOL: "the server speaks no HTTP",
}


class FetchError(Exception):
    """No whole answer came. reason: in words that never show a URL, which may be signed. is_permanent: another try
    would fail in the same way."""

    def __init__(self, reason: str, *, is_permanent: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_permanent = is_permanent


@dataclass(frozen=True)
class Answer:
    """headers: by name in lower case. body: empty when it went elsewhere."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Limit:
    """Up to how many bytes the body of a good answer is taken. shown: name of the file for the message beyond that."""

    max_bytes: int
    shown: str


class Fetcher:
    """Sends requests over connections that are kept. Safe to use from many threads; one for each process.

    Proxies and certificates are those of the environment (HTTPS_PROXY, NO_PROXY, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE).
    encoding: of bodies that is asked for; one that comes packed is unpacked then. None: bodies come as they are stored.
    uses_netrc: passwords are taken from ``~/.netrc``. certificates: path of those that are trusted, in place of the
    environment's; False: any.
    """

    def __init__(
        self, *, encoding: str | None = None, uses_netrc: bool = False, certificates: str | bool | None = None
    ) -> None:
        self._encoding = encoding
        self._certificates = certificates
        self._netrc = os.environ.get("NETRC") or os.path.expanduser("~/.netrc") if uses_netrc else ""
        self._idle: dict[str, list[Any]] = {}
        self._lock = threading.Lock()

    def send(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        method: str = "GET",
        body: BinaryIO | None = None,
        size: int = 0,
        limit: Limit | None = None,
        write: Callable[[bytes], object] | None = None,
        seconds: float = 0,
        is_head_enough: bool = False,
    ) -> Answer:
        """The answer to one request, redirects included.

        body, size: what is sent, and how many bytes of it. write: takes the body of a good answer (200) piece by piece.
        seconds: that it may take as a whole; 0: any time in which bytes go on to come. is_head_enough: the body is not
        waited for. Raises FetchError, and UnreadableFileError beyond the limit.
        """
        got = _Getting(limit, write, is_head_enough)
        with self._curl(url) as curl:
            curl.setopt(curl.URL, url)
            # The first one: no question before a large body. An empty list would leave the headers of the last time.
            curl.setopt(curl.HTTPHEADER, ["Expect:", *(f"{name}: {value}" for name, value in headers.items())])
            curl.setopt(curl.TIMEOUT_MS, round(seconds * 1000))
            if url.startswith("https"):
                _trust(curl, self._certificates)
            _set_method(curl, method, body, size)
            curl.setopt(curl.PREREQFUNCTION, got.begin)
            curl.setopt(curl.HEADERFUNCTION, got.lines.append)
            curl.setopt(curl.WRITEFUNCTION, got.take)
            try:
                curl.perform()
            except pycurl.error as error:
                if got.error is not None:
                    raise got.error from None
                if not (error.args[0] == pycurl.E_WRITE_ERROR and got.is_enough):
                    raise _fetch_error(error.args[0], curl, got, seconds) from None
            finally:
                if body is not None:
                    curl.unsetopt(curl.READFUNCTION)  # the handle stays, and would keep it
        if got.too_many is not None:
            raise UnreadableFileError(got.too_many)
        return Answer(*got.head, got.whole_body())

    @contextmanager
    def _curl(self, url: str) -> Iterator[Any]:
        """A handle of libcurl for one request; its connection is kept with it."""
        host = "/".join(url.split("/", 3)[:3])
        with self._lock:
            idle = self._idle.setdefault(host, [])
            curl = idle.pop() if idle else None
            forgotten = [] if len(self._idle) <= _MOST_HOSTS else self._idle.pop(next(iter(self._idle)))
        for other in forgotten:
            other.close()
        curl = curl or self._new_curl(host)
        try:
            yield curl
        finally:
            with self._lock:
                self._idle.setdefault(host, []).append(curl)

    def _new_curl(self, host: str) -> Any:
        curl = pycurl.Curl()
        for option, value in (
            (curl.NOSIGNAL, 1),  # which is for one thread only
            (curl.PATH_AS_IS, 1),
            (curl.PROTOCOLS, curl.PROTO_HTTP | curl.PROTO_HTTPS),
            (curl.HTTP_VERSION, curl.CURL_HTTP_VERSION_1_1),
            (curl.USERAGENT, "beam-tfrecord"),
            (curl.BUFFERSIZE, _BUFFER),
            (curl.TCP_KEEPALIVE, 1),
            (curl.CONNECTTIMEOUT, CONNECT_SECONDS),
            (curl.LOW_SPEED_LIMIT, 1),  # bytes a second, over ...
            (curl.LOW_SPEED_TIME, SILENT_SECONDS),
            (curl.PROXY, _proxy(host)),
            (curl.NOPROGRESS, 0),
            (curl.XFERINFOFUNCTION, _let_signals_come),
        ):
            curl.setopt(option, value)
        if self._encoding:
            curl.setopt(curl.ACCEPT_ENCODING, self._encoding)
        if self._netrc and os.path.exists(self._netrc):
            curl.setopt(curl.NETRC, curl.NETRC_OPTIONAL)
            curl.setopt(curl.NETRC_FILE, self._netrc)
        return curl


class _Getting:
    """What has come of one answer."""

    def __init__(self, limit: Limit | None, write: Callable[[bytes], object] | None, is_head_enough: bool) -> None:
        self.lines: list[bytes] = []
        self.requests = 0
        self.too_many: str | None = None
        self.error: BaseException | None = None
        self._limit = limit
        self._write = write
        self._is_head_enough = is_head_enough
        self._parts: list[bytes] = []
        self._count = 0

    @cached_property
    def head(self) -> tuple[int, dict[str, str]]:
        """Status and headers of the last answer: a proxy may have sent one of its own before it."""
        text = b"".join(self.lines).decode("latin-1")
        first, *lines = text[text.rfind("\nHTTP/") + 1 :].split("\r\n")
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if colon:
                key, value = name.strip().lower(), value.strip()
                headers[key] = f"{headers[key]}, {value}" if key in headers else value
        return int(first.split()[1]) if text else 0, headers

    @cached_property
    def _most(self) -> float:
        """How many bytes of the body are taken."""
        status = self.head[0]
        if self._is_head_enough:
            return 0
        if status not in (200, 206):
            return _MOST_OF_A_REFUSAL
        return self._limit.max_bytes if self._limit else inf

    @property
    def is_enough(self) -> bool:
        """Whether more came than is taken."""
        return self._count > self._most

    def begin(self, *_: object) -> int:
        """Called before a request is sent. The second one of a call would be libcurl's own try."""
        self.requests += 1
        return int(pycurl.PREREQFUNC_OK if self.requests == 1 else pycurl.PREREQFUNC_ABORT)

    def take(self, data: bytes) -> int | None:
        """Called with a piece of the body; 0: no more of it."""
        status, headers = self.head
        stated = headers.get("content-length", "")
        is_known = not self._count and stated.isdigit()
        self._count += len(data)
        if self._count > self._most or (is_known and int(stated) > self._most):
            self._count = int(stated) if is_known else self._count
            if self._limit and status in (200, 206) and not self._is_head_enough:
                known = int(stated) if is_known else None
                self.too_many = too_large(self._limit.shown, known, self._limit.max_bytes)
            return 0
        if self._write is not None and status == 200:
            try:
                self._write(data)
            except BaseException as error:  # raised again by send(): nothing comes through libcurl
                self.error = error
                return 0
        else:
            self._parts.append(data)
        return None

    def whole_body(self) -> bytes:
        """The body, which is let go of here: the handle stays, and would keep it."""
        body = b"".join(self._parts)
        self._parts.clear()
        return body


def _let_signals_come(*_: object) -> None:
    """Called at least once a second: Python looks for Ctrl-C before it calls anything."""


def _proxy(host: str) -> str:
    """The proxy for a host, '' for none. NO_PROXY is looked at by libcurl too, which knows networks (10.0.0.0/8)."""
    scheme, _, name = host.partition("://")
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all") or ""
    return "" if not proxy or proxy_bypass(name.rpartition("@")[2]) else proxy


def _trust(curl: Any, certificates: str | bool | None) -> None:
    if certificates is False:
        curl.setopt(curl.SSL_VERIFYPEER, 0)
        curl.setopt(curl.SSL_VERIFYHOST, 0)
        return
    given = certificates if isinstance(certificates, str) else ""
    place = given or os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE") or _own_certificates()
    curl.setopt(curl.CAPATH if os.path.isdir(place) else curl.CAINFO, place)


@cache
def _own_certificates() -> str:
    return certifi.where()


def _set_method(curl: Any, method: str, body: BinaryIO | None, size: int) -> None:
    curl.unsetopt(curl.CUSTOMREQUEST)
    curl.setopt(curl.HTTPGET, 1)
    if method == "HEAD":
        curl.setopt(curl.NOBODY, 1)
        return
    if body is not None:
        curl.setopt(curl.POST, 1)
        curl.setopt(curl.POSTFIELDSIZE_LARGE, size)
        curl.setopt(curl.READFUNCTION, body.read)
    if method not in ("GET", "POST"):
        curl.setopt(curl.CUSTOMREQUEST, method)


def _fetch_error(code: int, curl: Any, got: _Getting, seconds: float) -> FetchError:
    if code in _NO_TRUST:
        reason = "the certificate of the server is not trusted, or its TLS does not fit"
        return FetchError(reason, is_permanent=True)
    if code in _NO_URL:
        return FetchError(_NO_URL[code], is_permanent=True)
    if code == pycurl.E_OPERATION_TIMEDOUT:
        if not got.requests:
            return FetchError(f"no connection within {CONNECT_SECONDS} s")
        if seconds and curl.getinfo(curl.TOTAL_TIME) > 0.99 * seconds:
            return FetchError(f"the answer took longer than {seconds:g} s")
        return FetchError(f"no answer within {SILENT_SECONDS} s")
    return FetchError(_REASONS.get(code, "the connection was lost"))
