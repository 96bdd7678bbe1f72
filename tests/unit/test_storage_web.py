"""http:// and https:// against a server of our own on a loopback port."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from beam_tfrecord.errors import ImageError, StorageError
from beam_tfrecord.storage import RetryPolicy, Storage, StorageOptions, answers, fetch, web
from beam_tfrecord.storage.clients import forget_clients
from tests.loopback import Answer, Request, Server, self_signed, serving

PIXELS = bytes(range(256)) * 200


class Flaky:
    """Answers from a list, one after the other, and then with a good one."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.lock = threading.Lock()

    def __call__(self, request: Request) -> Answer:
        with self.lock:
            return self.answers.pop(0) if self.answers else Answer(body=PIXELS)


@pytest.fixture
def storage() -> Storage:
    return Storage(StorageOptions(retry=RetryPolicy(attempts=5, first_wait=0.001, longest_wait=0.01)))


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Flaky()) as server:
        yield server


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No proxy of the machine comes between, and no connection outlives its server."""
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")
    yield
    forget_clients()


def test_an_image_is_one_request(storage: Storage, server: Server) -> None:
    assert storage.read(f"{server.url}/a.jpg") == PIXELS
    assert [(request.method, request.path) for request in server.seen] == [("GET", "/a.jpg")]
    assert server.seen[0].headers["accept-encoding"] == "identity"
    assert storage.counters.snapshot() == {}


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("a b.jpg", "a%20b.jpg"),
        ("a%20b.jpg", "a%20b.jpg"),
        ("a%2Fb.jpg", "a%2Fb.jpg"),
        ("ü.jpg", "%C3%BC.jpg"),
        ("a[1].jpg", "a%5B1%5D.jpg"),
        ("a+b&c=d;e.jpg", "a+b&c=d;e.jpg"),
        ("a.jpg?sig=a%2Bb&x=/", "a.jpg?sig=a%2Bb&x=/"),
        ("a.jpg#part", "a.jpg"),
        ("100%.jpg", "100%25.jpg"),
    ],
)
def test_names_are_urls(storage: Storage, server: Server, name: str, sent: str) -> None:
    assert storage.read(f"{server.url}/{name}") == PIXELS
    assert server.seen[0].path == "/" + sent


@pytest.mark.parametrize("name", ["a b.jpg", "a#1.jpg", "what?.jpg", "100%20.jpg", "[1].jpg", "日本.jpg"])
def test_names_in_a_manifest_on_the_web_are_literal(storage: Storage, server: Server, name: str) -> None:
    from urllib.parse import unquote

    assert storage.read(storage.join(f"{server.url}/photos", name)) == PIXELS
    assert unquote(server.seen[0].path) == f"/photos/{name}"
    assert "?" not in server.seen[0].path


@pytest.mark.parametrize(
    "fault",
    [
        Answer(429, headers={"Retry-After": "0"}),
        Answer(500),
        Answer(502),
        Answer(503),
        Answer(504),
        Answer(408),
        Answer(is_reset=True),
        Answer(body=PIXELS[:1000], length=len(PIXELS)),
        Answer(body=b"", length=10),
    ],
    ids=lambda fault: f"{fault.status}-{len(fault.body)}-{fault.is_reset}",
)
def test_passing_faults_are_tried_again_and_counted(storage: Storage, fault: Answer) -> None:
    with serving(Flaky(fault, fault, fault)) as server:
        assert storage.read(f"{server.url}/a.jpg") == PIXELS
    assert storage.counters.snapshot() == {"read_retries": 3}
    assert len(server.seen) == 4


def test_a_server_that_stays_in_trouble_rejects_the_image(storage: Storage) -> None:
    with serving(lambda _: Answer(503)) as server, pytest.raises(ImageError) as caught:
        storage.read(f"{server.url}/a.jpg?sig=secret")
    assert caught.value.code == "read_failed"
    assert "failed 5 times, the last time with: the server is in trouble (HTTP 503)" in caught.value.message
    assert "secret" not in caught.value.message
    assert len(server.seen) == 5


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (404, "missing_file", "does not exist"),
        (410, "missing_file", "does not exist"),
        (401, "read_failed", "refuses access"),
        (403, "read_failed", "refuses access"),
        (400, "read_failed", "HTTP 400"),
        (416, "read_failed", "HTTP 416"),
        (204, "read_failed", "HTTP 204"),
        (304, "read_failed", "HTTP 304"),
    ],
)
def test_lasting_faults_reject_the_image_at_once(storage: Storage, status: int, code: str, words: str) -> None:
    with serving(lambda _: Answer(status)) as server:
        uri = f"http://me:password@localhost:{server.server_address[1]}/a.jpg?sig=secret"
        with pytest.raises(ImageError, match=words) as caught:
            storage.read(uri)
        assert storage.is_file(f"{server.url}/a.jpg") is False if code == "missing_file" else True
    assert caught.value.code == code
    assert not {"secret", "password"} & set(caught.value.message.replace("/", " ").split())
    assert "secret" not in caught.value.message
    assert "password" not in caught.value.message
    assert storage.counters.snapshot() == {}


def test_redirects_are_followed_up_to_a_bound(storage: Storage) -> None:
    def script(request: Request) -> Answer:
        number = int(request.path.strip("/"))
        return Answer(302, headers={"Location": f"/{number - 1}"}) if number else Answer(body=PIXELS)

    with serving(script) as server:
        assert storage.read(f"{server.url}/{web.MAX_REDIRECTS}") == PIXELS
        with pytest.raises(ImageError, match="more than 5 redirects") as caught:
            storage.read(f"{server.url}/{web.MAX_REDIRECTS + 1}")
    assert caught.value.code == "read_failed"


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "FILE:/etc/passwd", "ftp://localhost/x", "data:,x", "gs://b/x"]
)
def test_redirects_never_leave_the_web(storage: Storage, target: str) -> None:
    with (
        serving(lambda _: Answer(301, headers={"Location": target})) as server,
        pytest.raises(ImageError, match=r"redirects to .*not followed") as caught,
    ):
        storage.read(f"{server.url}/a.jpg")
    assert caught.value.code == "read_failed"
    assert len(server.seen) == 1


@pytest.mark.parametrize("length", [-1, None])
def test_too_many_bytes_are_refused_with_and_without_their_number(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, length: int | None
) -> None:
    monkeypatch.setattr(web, "MAX_BYTES", 100_000)
    with serving(lambda request: Answer(body=bytes(int(request.path[1:])), length=length)) as server:
        assert storage.read(f"{server.url}/100000") == bytes(100_000)
        assert storage.read(f"{server.url}/500", max_bytes=500) == bytes(500)
        for number, limit in ((100_001, None), (501, 500)):
            with pytest.raises(ImageError, match=r"more .*than the") as caught:
                storage.read(f"{server.url}/{number}", max_bytes=limit)
            assert caught.value.code == "read_failed"


def test_bodies_come_packed_and_in_chunks_too(storage: Storage) -> None:
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (PIXELS[:7], PIXELS[7:40_000], PIXELS[40_000:]))
    bodies = {
        "/packed": Answer(body=gzip.compress(PIXELS), headers={"Content-Encoding": "gzip"}),
        "/chunked": Answer(body=chunked + b"0\r\n\r\n", headers={"Transfer-Encoding": "chunked"}, length=None),
    }
    with serving(lambda request: bodies[request.path]) as server:
        assert storage.read(f"{server.url}/packed") == PIXELS
        assert storage.read(f"{server.url}/chunked") == PIXELS


def test_a_packed_body_is_limited_unpacked(storage: Storage) -> None:
    bomb = Answer(body=gzip.compress(bytes(10_000_000)), headers={"Content-Encoding": "gzip"})
    with serving(lambda _: bomb) as server, pytest.raises(ImageError, match="more bytes than"):
        storage.read(f"{server.url}/a.jpg", max_bytes=1_000_000)


def test_a_server_that_is_silent_is_left(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "SILENT_SECONDS", 1)
    with serving(Flaky(Answer(wait=600), Answer(wait=600))) as server:
        assert storage.read(f"{server.url}/a.jpg") == PIXELS
    assert storage.counters["read_retries"] >= 2  # a machine under load may be silent once more


def test_a_server_that_drips_is_left(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "MAX_SECONDS", 1.0)

    def drip_once(request: Request) -> Answer:
        if web.MAX_SECONDS > 1:
            return Answer(body=PIXELS)
        monkeypatch.setattr(web, "MAX_SECONDS", 300.0)
        return Answer(body=PIXELS, drip=0.02)

    with serving(drip_once) as server:
        assert storage.read(f"{server.url}/a.jpg") == PIXELS
    assert storage.counters.snapshot() == {"read_retries": 1}


@pytest.mark.parametrize(
    "uri",
    [
        "http://localhost:1/a.jpg",
        "https://",
        "https:///a.jpg",
        "http://localhost:99999/a.jpg",
        "http://[::1/a.jpg",
        "https://\udcff/a.jpg",
    ],
)
def test_addresses_where_nothing_is_reject_the_image(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, uri: str
) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    with pytest.raises(ImageError) as caught:
        storage.read(uri)
    assert caught.value.code == "read_failed"


def test_cookies_do_not_wander_from_one_image_to_the_next(storage: Storage) -> None:
    with serving(lambda _: Answer(body=PIXELS, headers={"Set-Cookie": "a=b"})) as server:
        storage.read(f"{server.url}/a.jpg")
        storage.read(f"{server.url}/b.jpg")
    assert "cookie" not in server.seen[1].headers


def test_a_file_on_the_web_can_be_opened_and_measured(storage: Storage, server: Server) -> None:
    uri = f"{server.url}/a.jpg"
    with storage.open(uri) as stream:
        stream.seek(-10, 2)
        assert stream.read() == PIXELS[-10:]
    assert storage.size(uri) == len(PIXELS)
    assert storage.sizes([uri]) == {uri: len(PIXELS)}
    assert storage.is_file(uri)
    assert not storage.is_folder(server.url)
    assert [info.uri for info in storage.match(uri + "?x=[*]")] == [uri + "?x=[*]"]
    assert storage.read_range(uri, 5, 10) == PIXELS[5:15]


def test_the_size_is_found_where_head_is_not_known(storage: Storage) -> None:
    with serving(lambda r: Answer(405) if r.method == "HEAD" else Answer(body=PIXELS)) as server:
        assert storage.size(f"{server.url}/a.jpg") == len(PIXELS)
    with serving(lambda _: Answer(body=PIXELS, length=None)) as server:
        assert storage.size(f"{server.url}/a.jpg") == len(PIXELS)


def test_the_web_is_neither_listed_nor_written(storage: Storage) -> None:
    uri = "https://localhost:1/folder?sig=secret"
    for operation in (
        lambda: list(storage.walk(uri)),
        lambda: storage.list_folder(uri),
        lambda: storage.write_bytes(uri, b""),
        lambda: storage.open_write(uri),
        lambda: storage.rename(uri, uri + "2"),
        lambda: storage.delete([uri]),
        lambda: storage.delete_tree(uri),
        lambda: storage.make_folder(uri),
    ):
        with pytest.raises(StorageError, match="web") as caught:
            operation()
        assert "secret" not in str(caught.value)


def test_certificates_are_checked(storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, authority = self_signed(tmp_path)
    with serving(Flaky(), context) as server:
        with pytest.raises(ImageError, match="certificate") as caught:
            storage.read(f"{server.url}/a.jpg")
        assert caught.value.code == "read_failed"
        assert storage.counters.snapshot() == {}
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority))
        assert storage.read(f"{server.url}/a.jpg") == PIXELS


def test_https_is_never_left_for_http(storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, authority = self_signed(tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority))
    with serving(Flaky()) as plain:
        to_plain = Answer(302, headers={"Location": f"{plain.url}/a.jpg"})
        with serving(lambda _: to_plain, context) as server, pytest.raises(ImageError, match="from https to http"):
            storage.read(f"{server.url}/a.jpg")
        assert plain.seen == []


def test_reasons_never_show_an_address() -> None:
    import requests

    error = requests.ConnectionError("Max retries exceeded with url: /a.jpg?sig=secret (Caused by X: refused)")
    assert answers.network_reason(error) == "the server refused the connection"
    unknown = requests.ConnectionError("NameResolutionError(\"Failed to resolve 'h' ([Errno -2])\")")
    assert answers.network_reason(unknown) == "the name of the server is not known"
    for kind in (requests.ConnectTimeout, requests.ReadTimeout, requests.TooManyRedirects, ConnectionResetError):
        assert "secret" not in answers.network_reason(kind("https://h/a.jpg?sig=secret"))
