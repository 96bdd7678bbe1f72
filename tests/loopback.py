"""A scripted HTTP server on a loopback port."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import socketserver
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from beam_tfrecord.storage import RetryPolicy
from beam_tfrecord.storage.clients import forget_clients


@dataclass
class Answer:
    """What the server sends. length: of the Content-Length header, when it is not that of the body; None: no header.

    drip: seconds between single bytes. is_reset: the connection is reset instead.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = -1
    drip: float = 0.0
    wait: float = 0.0
    is_reset: bool = False


@dataclass
class Request:
    """What a client sent. path: exactly as it stood in the request line."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Script = Callable[[Request], Answer]
Serve = Callable[[Script], AbstractContextManager["Server"]]
QUICK = RetryPolicy(attempts=4, first_wait=0.001, longest_wait=0.01)


class Server(ThreadingHTTPServer):
    """The server; it remembers every request."""

    daemon_threads = True

    def __init__(self, script: Script, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.seen: list[Request] = []
        self.stopping = threading.Event()
        self.scheme = "http"
        if context is not None:
            self.scheme = "https"
            self.socket = context.wrap_socket(self.socket, server_side=True)

    @property
    def url(self) -> str:
        """Address without a slash at its end."""
        return f"{self.scheme}://localhost:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients may go away in the middle; nothing to report."""


@contextmanager
def serving(script: Script, context: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A running server."""
    server = Server(script, context)
    with running(server, server.stopping):
        yield server


@contextmanager
def running(server: socketserver.BaseServer, stopping: threading.Event) -> Iterator[None]:
    """A server answers in a thread of its own. stopping: set at the end, for answers that wait."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()


def self_signed(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server context for localhost, and the file that makes a client trust it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    alternatives = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "server.pem").write_bytes(private + pem)
    (folder / "authority.pem").write_bytes(pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    return context, folder / "authority.pem"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = Request(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body)
        self.server.seen.append(request)
        answer = self.server.script(request)
        self.server.stopping.wait(answer.wait)
        if answer.is_reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.length is None:
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(len(answer.body) if answer.length < 0 else answer.length))
        self.end_headers()
        if self.command != "HEAD":
            self._send_body(answer)
        if answer.length is None or answer.length > len(answer.body):  # the client shall see the end
            self.close_connection = True

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815 - the base class names them

    def _send_body(self, answer: Answer) -> None:
        if not answer.drip:
            self.wfile.write(answer.body)
            return
        for byte in answer.body:
            if self.server.stopping.wait(answer.drip):
                return
            self.wfile.write(bytes([byte]))

    def log_message(self, format: str, *args: object) -> None:
        """No log on stderr."""


def in_place_of_a_store(
    monkeypatch: pytest.MonkeyPatch, variables: Callable[[str], Mapping[str, str]]
) -> Iterator[Serve]:
    """For a fixture: runs a server to which the variables, made of its URL, lead the client of a store."""

    @contextmanager
    def run(script: Script) -> Iterator[Server]:
        with serving(script) as server:
            for name, value in {**variables(server.url), "NO_PROXY": "localhost"}.items():
                monkeypatch.setenv(name, value)
            yield server

    yield run
    forget_clients()
