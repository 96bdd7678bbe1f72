"""s3:// against a scripted server: what the emulator does not do. The emulator itself is in tests/integration."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, unquote, urlsplit

import google_crc32c
import pytest

from beam_tfrecord.errors import ImageError, StorageError
from beam_tfrecord.storage import Storage, StorageOptions
from tests.loopback import QUICK, Answer, Request, Serve, in_place_of_a_store

pytest.importorskip("boto3")
PIXELS = bytes(range(256)) * 100
KEYS = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_SESSION_TOKEN": "a token",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@pytest.fixture
def storage() -> Storage:
    return Storage(StorageOptions(retry=QUICK))


@pytest.fixture
def amazon(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Runs a server in the place of S3."""
    yield from in_place_of_a_store(monkeypatch, lambda url: {"AWS_ENDPOINT_URL": url, **KEYS})


def stated(kind: str, digest: bytes) -> dict[str, str]:
    return {f"x-amz-checksum-{kind}": base64.b64encode(digest).decode()}


def is_signed_url(request: Request) -> bool:
    return "X-Amz-Signature" in parse_qs(urlsplit(request.path).query)


@pytest.mark.parametrize("name", ["a b/#?%20[1]/ü~'\\.jpg", "a//b", "a/../b", "/a", "a/", "+&=;"])
def test_the_name_arrives_literally_in_a_url_that_is_signed_as_requests_are(
    storage: Storage, amazon: Serve, name: str
) -> None:
    with amazon(lambda _: Answer(body=PIXELS)) as server:
        assert storage.read(f"s3://bucket/{name}") == PIXELS
    (request,) = server.seen
    split = urlsplit(request.path)
    assert unquote(split.path) == f"/bucket/{name}"
    query = parse_qs(split.query)
    assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
    assert query["X-Amz-Security-Token"] == ["a token"]
    for header in query["X-Amz-SignedHeaders"][0].split(";"):
        assert header in request.headers


@pytest.mark.parametrize(
    ("kind", "digest"),
    [
        ("crc32", lambda data: zlib.crc32(data).to_bytes(4, "big")),
        ("crc32c", lambda data: google_crc32c.Checksum(data).digest()),
        ("sha1", lambda data: hashlib.sha1(data).digest()),
        ("sha256", lambda data: hashlib.sha256(data).digest()),
    ],
)
def test_a_body_that_does_not_fit_its_checksum_is_read_again(
    storage: Storage, amazon: Serve, kind: str, digest: Callable[[bytes], bytes]
) -> None:
    whole = stated(kind, digest(PIXELS))
    answers = [Answer(body=body, headers=whole) for body in (PIXELS[:-1] + b"x", PIXELS[:-1], PIXELS)]
    answers.append(Answer(body=PIXELS, headers={f"x-amz-checksum-{kind}": "AAAA-3"}))  # one of three parts
    with amazon(lambda _: answers.pop(0)):
        assert storage.read("s3://bucket/x") == PIXELS
        assert storage.counters["read_retries"] == 2
        assert storage.read("s3://bucket/x") == PIXELS
    assert storage.counters["read_retries"] == 2


@pytest.mark.parametrize("status", [301, 307, 400])
def test_a_bucket_elsewhere_is_asked_by_boto3(storage: Storage, amazon: Serve, status: int) -> None:
    def script(request: Request) -> Answer:
        if is_signed_url(request):
            return Answer(status, body=b"<Error><Code>PermanentRedirect</Code></Error>")
        if "range" in request.headers:
            first, last = map(int, request.headers["range"].removeprefix("bytes=").split("-"))
            return Answer(206, body=PIXELS[first : last + 1])
        return Answer(body=PIXELS)

    with amazon(script):
        assert storage.read("s3://bucket/x") == PIXELS
        assert storage.read_range("s3://bucket/x", 5, 10) == PIXELS[5:15]
        with pytest.raises(ImageError, match="more bytes than"):
            storage.read("s3://bucket/x", max_bytes=10)


def test_ranges(storage: Storage, amazon: Serve) -> None:
    answers = [Answer(416), Answer(body=PIXELS)]  # and then as a server that knows none
    with amazon(lambda _: answers.pop(0)):
        assert storage.read_range("s3://bucket/x", 10**6, 5) == b""
        assert storage.read_range("s3://bucket/x", 100, 50) == PIXELS[100:150]


@pytest.mark.parametrize(
    ("status", "code", "error", "words"),
    [
        (404, "NoSuchKey", ImageError, "does not exist"),
        (404, "NoSuchBucket", ImageError, "there is no such bucket"),
        (403, "AccessDenied", StorageError, r"s3:GetObject"),
        (403, "InvalidAccessKeyId", StorageError, "are not accepted"),
        (503, "SlowDown", ImageError, r"failed 4 times.*HTTP 503"),
        (409, "Odd", ImageError, r"answered Odd \(409\)"),
    ],
)
def test_refusals_are_those_of_boto3(
    storage: Storage, amazon: Serve, status: int, code: str, error: type[Exception], words: str
) -> None:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>m</Message></Error>".encode()
    with amazon(lambda _: Answer(status, body=body)), pytest.raises(error, match=words) as caught:
        storage.read("s3://bucket/x")
    assert "Signature" not in str(caught.value)


@pytest.mark.parametrize("version", [None, '"1"'])
def test_a_condition_tells_a_missing_object_from_a_missing_bucket(
    storage: Storage, amazon: Serve, version: str | None
) -> None:
    codes = ["NoSuchKey", "NoSuchKey", "NoSuchBucket"]
    with amazon(lambda _: Answer(404, body=f"<Error><Code>{codes.pop(0)}</Code></Error>".encode())):
        assert not storage.write_if("s3://bucket/x", b"1", version)
        with pytest.raises(StorageError, match="there is no such bucket"):
            storage.write_if("s3://bucket/x", b"1", version)
