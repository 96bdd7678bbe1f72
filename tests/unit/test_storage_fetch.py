"""Requests by libcurl against servers of our own: what the stores above rely on."""

from __future__ import annotations

import gc
import io
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from beam_tfrecord.storage import fetch
from beam_tfrecord.storage.faults import UnreadableFileError
from beam_tfrecord.storage.fetch import Fetcher, FetchError, Limit
from tests.conftest import ROOT
from tests.loopback import Answer, Request, serving

PIXELS = bytes(range(256)) * 200


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy of the machine comes between."""
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")


@contextmanager
def talking(*turns: bytes | None) -> Iterator[tuple[str, list[bytes]]]:
    """A server that takes one connection after the other and answers each request on it with the next turn.

    None: it closes the connection instead. Gives its address and the requests that it got.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    seen: list[bytes] = []
    left = list(turns)

    def run() -> None:
        while left:
            connection, _ = listener.accept()
            with connection:
                while left:
                    request = connection.recv(65536)
                    if not request:
                        break
                    seen.append(request)
                    turn = left.pop(0)
                    if turn is None:
                        break
                    connection.sendall(turn)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", seen
    finally:
        left.clear()
        with socket.create_connection(listener.getsockname()):
            pass
        thread.join()
        listener.close()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def test_a_kept_connection_that_is_lost_is_no_second_request_of_its_own() -> None:
    fetcher = Fetcher()
    with talking(OK, None, OK) as (url, seen):
        assert fetcher.send(f"{url}/1", {}).body == b"ok"
        with pytest.raises(FetchError, match="the connection was lost") as caught:
            fetcher.send(f"{url}/2", {})
        assert not caught.value.is_permanent
        assert [request.split()[1] for request in seen] == [b"/1", b"/2"]
        assert fetcher.send(f"{url}/3", {}).body == b"ok"


@pytest.mark.parametrize(
    "path", ["/a//b", "/a/../b", "/a/./b", "/..", "//a", "/a/", "/%2E%2E/x", "/a?b=/../c", "/~a+b"]
)
def test_a_path_is_sent_as_it_stands(path: str) -> None:
    with talking(OK) as (url, seen):
        assert Fetcher().send(url + path, {}).body == b"ok"
    assert [request.split()[1].decode() for request in seen] == [path]


def test_a_request_has_nothing_of_the_one_before_it() -> None:
    fetcher = Fetcher()
    with serving(lambda _: Answer(body=PIXELS)) as server:
        fetcher.send(
            server.url + "/a", {"Range": "bytes=0-1", "X-First": "1"}, method="POST", body=io.BytesIO(b"abc"), size=3
        )
        fetcher.send(server.url + "/a", {}, method="DELETE")
        fetcher.send(server.url + "/a", {}, method="HEAD")
        fetcher.send(server.url + "/a", {})
        assert len(server.seen) == 4
    assert [(request.method, request.body) for request in server.seen] == [
        *(("POST", b"abc"), ("DELETE", b""), ("HEAD", b""), ("GET", b""))
    ]
    for request in server.seen[1:]:
        assert not {"range", "x-first", "content-length", "content-type", "cookie", "expect"} & set(request.headers)


def test_a_large_body_goes_out_whole_and_in_one_request() -> None:
    data = os.urandom(3_000_000)
    with serving(lambda _: Answer(201, body=b"{}")) as server:
        answer = Fetcher().send(
            server.url, {"Content-Type": "x/y"}, method="POST", body=io.BytesIO(data), size=len(data)
        )
    assert (answer.status, answer.body) == (201, b"{}")
    assert [request.body == data for request in server.seen] == [True]
    assert server.seen[0].headers["content-type"] == "x/y"


def test_headers_are_those_of_the_last_answer() -> None:
    first = b"HTTP/1.1 100 Continue\r\nX-Old: 1\r\n\r\n"
    with talking(first + b"HTTP/1.1 203 Fine\r\nA: 1\r\na: 2\r\nContent-Length: 0\r\n\r\n") as (url, _):
        answer = Fetcher().send(url, {})
    assert (answer.status, answer.headers) == (203, {"a": "1, 2", "content-length": "0"})


def test_a_body_is_not_kept_by_the_connection() -> None:
    class Sink(io.BytesIO):
        pass

    sink = Sink()
    gone = weakref.ref(sink)
    fetcher = Fetcher()
    with serving(lambda _: Answer(body=b"x")) as server:
        fetcher.send(server.url, {}, method="POST", body=sink)
        del sink
        gc.collect()
        assert gone() is None


@pytest.mark.parametrize("status", [200, 206])
@pytest.mark.parametrize("length", [-1, None])
def test_only_good_answers_are_limited(status: int, length: int | None) -> None:
    limit = Limit(10, "the file")
    with serving(lambda request: Answer(int(request.path[1:]), body=bytes(11), length=length)) as server:
        with pytest.raises(UnreadableFileError, match=r"the file has .* than the 10"):
            Fetcher().send(f"{server.url}/{status}", {}, limit=limit)
        assert len(Fetcher().send(f"{server.url}/404", {}, limit=limit).body) == 11


def test_what_a_writer_raises_comes_out() -> None:
    def full(_: bytes) -> None:
        raise OSError(28, "no space")

    fetcher = Fetcher()
    with serving(lambda _: Answer(body=PIXELS)) as server:
        with pytest.raises(OSError, match="no space"):
            fetcher.send(server.url, {}, write=full)
        assert fetcher.send(server.url, {}).body == PIXELS


def test_connections_to_many_hosts_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_MOST_HOSTS", 2)
    fetcher = Fetcher()
    with ExitStack() as stack:
        for server in [stack.enter_context(serving(lambda _: Answer(body=PIXELS))) for _ in range(3)] * 2:
            assert fetcher.send(server.url, {}).body == PIXELS
        assert len(fetcher._idle) <= 3


WAITING = """
import sys
from beam_tfrecord.storage.fetch import Fetcher
print("asking", flush=True)
try:
    Fetcher().send(sys.argv[1], {})
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_the_wait_for_a_server_that_is_silent() -> None:
    asked = threading.Event()

    def silent(_: Request) -> Answer:
        asked.set()
        return Answer(wait=600)

    with serving(silent) as server:
        command = [sys.executable, "-c", WAITING, server.url]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert asked.wait(120)
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=120)
    assert said == "asking\ninterrupted\n"


@pytest.mark.parametrize(
    "order",
    [
        ("tensorflow", "beam_tfrecord.storage.fetch"),
        pytest.param(("beam_tfrecord.storage.fetch", "tensorflow"), marks=pytest.mark.slow),
    ],
)
def test_tensorflow_in_the_same_process_changes_nothing(order: tuple[str, str]) -> None:
    """Its library has another libcurl inside, and shows it to what is loaded later."""
    read = "from beam_tfrecord.storage import Storage; import sys; sys.stdout.buffer.write(Storage().read(sys.argv[1]))"
    code = f"import {order[0]}, {order[1]}; {read}"
    with serving(lambda _: Answer(body=PIXELS)) as server:
        command = [sys.executable, "-c", code, f"{server.url}/a.jpg"]
        done = subprocess.run(command, capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, PIXELS), done.stderr.decode()
