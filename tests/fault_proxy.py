"""A loopback HTTP proxy that spoils a share of all answers, for tests of what happens then.

It stands before one server and passes requests on. Which request is spoiled, and how, comes from a seeded generator.
"""

from __future__ import annotations

import http.client
import json
import random
import re
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from tests.loopback import running
from tests.waiting import PATIENCE

FAULTS = ("unavailable", "too_many", "reset", "lost", "cut", "delay")
"""unavailable: 503 at once. too_many: 429 at once. reset: the connection is reset before the request is passed on.
lost: the request is passed on, and then the connection reset, so that a write has happened and nobody knows. cut: the
answer ends in the middle of its body. delay: it comes late."""

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "content-length"}

_FORBIDDEN = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


class FaultProxy(ThreadingHTTPServer):
    """The proxy. share: of answers that are spoiled. forbidden: buckets that nobody has a permission for (403).

    spoiled: how many answers were, by fault. paths: what was asked; spoiled_paths: what was asked in vain.
    is_held: of the name of an object that is to be written, whether it is held back; ``holding`` is set when the first
    one is. None of them is ever passed on.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, upstream: str, seed: int, share: float, faults: tuple[str, ...] = FAULTS) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = urlsplit(upstream)
        self.share = share
        self.faults = faults
        self.spoiled: Counter[str] = Counter()
        self.forbidden: set[str] = set()
        self.paths: list[str] = []
        self.spoiled_paths: list[str] = []
        self.is_held: Callable[[str], bool] = lambda name: False
        self.holding = threading.Event()
        self.let_go = threading.Event()
        self._seed = seed
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def begin(self, share: float) -> None:
        """What a proxy that has just been made does, whatever it was used for before."""
        self.share, self.faults = share, FAULTS
        self.spoiled.clear()
        self.paths.clear()
        self.spoiled_paths.clear()
        self._random.seed(self._seed)

    @property
    def endpoint(self) -> str:
        """Its http:// address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def holds(self, name: str) -> bool:
        """Whether the writing of an object is held back."""
        with self._lock:
            if not self.is_held(name):
                return False
            self.holding.set()
            return True

    def next_fate(self, path: str) -> str:
        """What becomes of the next request: one of the faults, ``forbidden`` or ``""``."""
        with self._lock:
            self.paths.append(path)
            if self.forbidden.intersection(urlsplit(path).path.split("/")):
                return "forbidden"
            if self._random.random() >= self.share:
                return ""
            fate = self._random.choice(self.faults)
            self.spoiled[fate] += 1
            self.spoiled_paths.append(path)
            return fate

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients go away in the middle all the time here; nothing to report."""


@contextmanager
def fault_proxy(
    upstream: str, seed: int = 0, share: float = 0.1, faults: tuple[str, ...] = FAULTS
) -> Iterator[FaultProxy]:
    """A running proxy before ``upstream``."""
    proxy = FaultProxy(upstream, seed, share, faults)
    with running(proxy, proxy.let_go):
        yield proxy


def _written(path: str, body: bytes) -> str:
    """Name of the object that a request writes. Google's has it in the body, and behind the source of a copy."""
    if path.startswith("/upload/"):
        found = re.search(rb'"name": ("(?:[^"\\]|\\.)*")', body[:1000])
        return str(json.loads(found[1])) if found else ""
    return unquote(urlsplit(path).path.rpartition("/rewriteTo/")[2])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body go out one after the other, and nobody waits 40 ms for the second
    server: FaultProxy

    def _pass_on(self) -> None:
        body = self._body()
        if self.command in ("PUT", "POST") and self.server.holds(_written(self.path, body)):
            self.server.let_go.wait(PATIENCE)
            self._reset()
            return
        fate = self.server.next_fate(self.path)
        if fate in ("unavailable", "too_many"):
            self._answer(503 if fate == "unavailable" else 429, [("Retry-After", "0")], b"spoiled")
        elif fate == "forbidden":
            self._answer(403, [("Content-Type", "application/xml")], _FORBIDDEN)
        elif fate == "reset":
            self._reset()
        else:
            if fate == "delay":
                time.sleep(0.1)
            status, headers, answer = self._ask(body)
            if fate == "lost":
                self._reset()
            else:
                self._answer(status, headers, answer, cut=fate == "cut")

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = _pass_on  # noqa: N815 - the base class names them

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self.server.upstream.netloc, timeout=60)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in _HOP_BY_HOP and name.lower() != "expect":
                    connection.putheader(name, value)
            if body or self.command in ("PUT", "POST", "PATCH"):
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            headers = [(n, v) for n, v in response.getheaders() if n.lower() not in _HOP_BY_HOP]
            if self.command == "HEAD":
                headers.append(("Content-Length", response.headers.get("Content-Length", "0")))
            return response.status, headers, response.read()
        finally:
            connection.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes, cut: bool = False) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        has_body = self.command != "HEAD" and status not in (204, 304)
        if has_body:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if cut and has_body and body:
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        elif has_body:
            self.wfile.write(body)

    def _reset(self) -> None:
        """Close with RST instead of FIN."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """No log on stderr."""
