"""gs:// against a scripted server: what the emulator does not do. The emulator itself is in tests/integration."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import google_crc32c
import pytest

from beam_tfrecord.errors import ImageError, StorageError
from beam_tfrecord.storage import Storage, StorageOptions
from beam_tfrecord.storage.answers import Place
from beam_tfrecord.storage.fetch import Fetcher
from beam_tfrecord.storage.gcs_login import Login, NoMetadataServerError, _probing_request, connect, login_faults
from tests.emulators import free_port
from tests.loopback import QUICK, Answer, Request, Serve, Server, in_place_of_a_store, serving

PIXELS = bytes(range(256)) * 100


@pytest.fixture
def storage() -> Storage:
    return Storage(StorageOptions(retry=QUICK))


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Runs a server in the place of Cloud Storage."""
    yield from in_place_of_a_store(monkeypatch, lambda url: {"STORAGE_EMULATOR_HOST": url})


def hashed(data: bytes) -> dict[str, str]:
    """The header in which Cloud Storage states the checksum of what it stores."""
    return {"x-goog-hash": f"crc32c={base64.b64encode(google_crc32c.Checksum(data).digest()).decode()},md5=AAAA"}


def about_objects(server: Server) -> list[Request]:
    """Without what Google's client asks about the bucket, aside."""
    return [request for request in server.seen if "/o" in urlsplit(request.path).path.partition("/b/")[2]]


def query_of(request: Request) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(request.path).query).items()}


def test_the_name_arrives_literally_and_bytes_are_checked(storage: Storage, google: Serve) -> None:
    name = "a b/#?%20[1]/ü~'\\.jpg"
    with google(lambda _: Answer(body=PIXELS, headers=hashed(PIXELS))) as server:
        assert storage.read(f"gs://bucket/{name}") == PIXELS
    (request,) = server.seen
    path = urlsplit(request.path).path
    assert path.split("/")[:6] == ["", "download", "storage", "v1", "b", "bucket"]
    assert unquote(path.partition("/o/")[2]) == name
    assert "/" not in path.partition("/o/")[2]
    assert query_of(request) == {"alt": "media"}


def test_a_body_that_does_not_fit_its_checksum_is_read_again(storage: Storage, google: Serve) -> None:
    spoiled = bytes([PIXELS[0] ^ 1]) + PIXELS[1:]
    bodies = [spoiled, PIXELS[:-1], spoiled, PIXELS]
    with google(lambda _: Answer(body=bodies.pop(0), headers=hashed(PIXELS))):
        assert storage.read("gs://bucket/x") == PIXELS
    assert storage.counters["read_retries"] == 3
    with google(lambda _: Answer(body=spoiled, headers=hashed(PIXELS))), pytest.raises(ImageError, match="checksum"):
        storage.read("gs://bucket/x")


def test_objects_that_are_stored_packed_are_unpacked(storage: Storage, google: Serve) -> None:
    packed = gzip.compress(PIXELS)
    answer = Answer(body=packed, headers={**hashed(packed), "Content-Encoding": "gzip"})
    with google(lambda _: answer) as server:
        assert storage.read("gs://bucket/x") == PIXELS
        with pytest.raises(ImageError, match="more bytes than"):
            storage.read("gs://bucket/x", max_bytes=len(PIXELS) - 1)
    assert server.seen[0].headers["accept-encoding"] == "gzip"
    broken = Answer(body=b"nothing", headers={"Content-Encoding": "gzip"})
    with google(lambda _: broken), pytest.raises(ImageError, match="is no gzip"):
        storage.read("gs://bucket/x")


def test_a_refused_body_does_not_spoil_the_next_request(storage: Storage, google: Serve) -> None:
    with google(lambda _: Answer(body=PIXELS)):
        for _ in range(5):
            with pytest.raises(ImageError, match="more than"):
                storage.read("gs://bucket/x", max_bytes=10)
            assert storage.read("gs://bucket/x") == PIXELS


@pytest.mark.parametrize("reason", ["rateLimitExceeded", "userRateLimitExceeded"])
def test_a_rate_limit_is_no_lack_of_permission(storage: Storage, google: Serve, reason: str) -> None:
    answers = [Answer(403, body=reason.encode()), Answer(429, headers={"Retry-After": "0"}), Answer(body=PIXELS)]
    with google(lambda _: answers.pop(0)):
        assert storage.read("gs://bucket/x") == PIXELS
    assert storage.counters["read_retries"] == 2


def test_ranges_are_pinned_to_one_version_of_the_object(storage: Storage, google: Serve) -> None:
    metadata = {"name": "x", "size": str(len(PIXELS)), "generation": "77"}

    def script(request: Request) -> Answer:
        if not request.path.startswith("/download"):
            return Answer(body=json.dumps(metadata).encode(), headers={"Content-Type": "application/json"})
        if query_of(request)["ifGenerationMatch"] != "77" or changed:
            return Answer(412)
        first, last = map(int, request.headers["range"].removeprefix("bytes=").split("-"))
        return Answer(206, body=PIXELS[first : last + 1])

    changed: list[bool] = []
    with google(script) as server, storage.open("gs://bucket/x") as stream:
        assert stream.read() == PIXELS
        assert len(about_objects(server)) == 2
        changed.append(True)
        stream.seek(0)
        with pytest.raises(OSError, match="was changed while it was being read"):
            stream.read(1)


def test_a_server_that_knows_no_ranges(storage: Storage, google: Serve) -> None:
    with google(lambda _: Answer(body=PIXELS)):
        assert storage.read_range("gs://bucket/x", 100, 50) == PIXELS[100:150]


def test_pages_are_asked_for_one_after_the_other(storage: Storage, google: Serve) -> None:
    pages = {
        None: {"items": [{"name": "a/1", "size": "3"}, {"name": "a/b/2", "size": "4"}], "nextPageToken": "second"},
        "second": {"nextPageToken": "third"},
        "third": {"items": [{"name": "a/é", "size": "5"}], "nextPageToken": ""},
    }

    def script(request: Request) -> Answer:
        assert query_of(request).get("prefix") in ("a/", None)
        return Answer(
            body=json.dumps(pages[query_of(request).get("pageToken")]).encode(),
            headers={"Content-Type": "application/json"},
        )

    with google(script) as server:
        assert [(info.uri, info.size) for info in storage.walk("gs://bucket/a")] == [
            ("gs://bucket/a/1", 3),
            ("gs://bucket/a/b/2", 4),
            ("gs://bucket/a/é", 5),
        ]
    assert len(about_objects(server)) == 3


@pytest.mark.parametrize("last", [None, ""])
def test_a_large_copy_goes_on_until_it_is_done(storage: Storage, google: Serve, last: str | None) -> None:
    deleted = []

    def script(request: Request) -> Answer:
        if request.method == "DELETE":
            deleted.append(unquote(urlsplit(request.path).path.rpartition("/")[2]))
            return Answer(204)
        if "rewriteTo" not in request.path:
            return Answer(body=b"{}", headers={"Content-Type": "application/json"})
        token = query_of(request).get("rewriteToken")
        state = {None: ("one", 10), "one": ("two", 20), "two": (last, 30)}[token]
        body = {"done": state[0] == last, "rewriteToken": state[0], "totalBytesRewritten": str(state[1])}
        body |= {"objectSize": "30", "resource": {"name": "new", "size": "30"}}
        answer = {name: value for name, value in body.items() if value is not None}
        return Answer(body=json.dumps(answer).encode(), headers={"Content-Type": "application/json"})

    with google(script) as server:
        storage.rename("gs://bucket/old", "gs://bucket/new")
    assert sum("rewriteTo" in request.path for request in server.seen) == 3
    assert deleted == ["old"]


def test_the_project_that_pays_is_named_in_every_request(google: Serve) -> None:
    def script(request: Request) -> Answer:
        if query_of(request).get("userProject") != "payer":
            text = "Bucket is a requester pays bucket but no user project provided."
            return Answer(400, body=json.dumps({"error": {"code": 400, "message": text}}).encode())
        if request.path.startswith("/download"):
            return Answer(body=PIXELS)
        return Answer(
            body=json.dumps({"name": "x", "size": "3", "generation": "1"}).encode(),
            headers={"Content-Type": "application/json"},
        )

    with google(script):
        paying = Storage(StorageOptions(gcs_user_project="payer", retry=QUICK))
        assert paying.read("gs://bucket/x") == PIXELS
        assert paying.size("gs://bucket/x") == 3
        assert list(paying.walk("gs://bucket")) == []
        paying.write_bytes("gs://bucket/x", b"x")
        for operation in (lambda s: s.read("gs://bucket/x"), lambda s: list(s.walk("gs://bucket"))):
            with pytest.raises(StorageError, match=r"requester pays.*--gcs_user_project"):
                operation(Storage(StorageOptions(retry=QUICK)))


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_ends_the_job_at_once(storage: Storage, google: Serve, status: int) -> None:
    body = json.dumps({"error": {"code": status, "message": "does not have storage.objects.get access"}}).encode()
    with google(lambda _: Answer(status, body=body, headers={"Content-Type": "application/json"})) as server:
        for operation in (
            lambda: storage.read("gs://private/x"),
            lambda: storage.size("gs://private/x"),
            lambda: list(storage.walk("gs://private/x")),
            lambda: storage.write_bytes("gs://private/x", b"x"),
            lambda: storage.rename("gs://private/x", "gs://private/y"),
            lambda: storage.delete(["gs://private/x"]),
        ):
            with pytest.raises(StorageError, match=r"gs://private: .*gcloud auth application-default login"):
                operation()
    assert storage.counters.snapshot() == {}
    assert len(about_objects(server)) == 6


def test_a_refusal_names_the_account_and_what_it_lacks(
    storage: Storage, google: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Robot:
        def before_request(self, request: object, method: str, url: str, headers: dict[str, str]) -> None:
            """Without a token."""

    with google(lambda _: Answer(403, body=b"denied")) as server:
        login = Login(Fetcher(), server.url, Robot(), None, account="robot@p.iam.gserviceaccount.com")
        monkeypatch.setattr("beam_tfrecord.storage.gcs.connect", lambda emulator: login)
        with pytest.raises(StorageError) as caught:
            storage.read("gs://private/x")
    for words in ("robot@p.iam.gserviceaccount.com", "'private'", "Storage Object Viewer", "storage.objects.get"):
        assert words in str(caught.value)


def test_credentials_that_expired_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from google.auth.exceptions import RefreshError

    login = Login(Fetcher(), "", object(), None, account="")
    told = r"not accepted any more; log in with `gcloud"
    with pytest.raises(StorageError, match=told), login_faults(login, Place("gs", "b", "x")):
        raise RefreshError("invalid_grant: https://oauth2.googleapis.com/token?secret")


def test_a_token_that_is_refused_is_renewed_once(
    storage: Storage, google: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Tokens:
        """Credentials whose first token was taken back."""

        token = "old"

        def before_request(self, request: object, method: str, url: str, headers: dict[str, str]) -> None:
            headers["authorization"] = f"Bearer {self.token}"

        def refresh(self, request: object) -> None:
            self.token = "new"

    def script(request: Request) -> Answer:
        return Answer(body=PIXELS) if request.headers["authorization"] == "Bearer new" else Answer(401)

    with google(script) as server:
        login = dataclasses.replace(connect(server.url), credentials=Tokens())
        monkeypatch.setattr("beam_tfrecord.storage.gcs.connect", lambda emulator: login)
        assert storage.read("gs://bucket/x") == PIXELS
        assert storage.read("gs://bucket/x") == PIXELS
    assert [request.headers["authorization"][-3:] for request in server.seen] == ["old", "new", "new"]


LOOK = """
import sys
from beam_tfrecord.errors import BeamTfrecordError
from beam_tfrecord.storage import Storage
import google.auth.compute_engine
try:
    Storage().read("gs://some-bucket/x.jpg")
except BeamTfrecordError as error:
    print(type(error).__name__, str(error).replace(chr(10), "|"))
"""


@pytest.mark.parametrize("key", ["", "nothing.json", "damaged.json"])
def test_missing_credentials_are_one_clear_line_and_no_wait(tmp_path: Path, key: str) -> None:
    """Neither the network nor a metadata server is there: the latter is a port that takes connections and is silent."""
    (tmp_path / "damaged.json").write_text("{", encoding="utf-8")
    with serving(lambda _: Answer(wait=600)) as silent:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "CLOUDSDK_CONFIG": str(tmp_path),
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "GCE_METADATA_IP": f"127.0.0.1:{silent.server_address[1]}",
            "HTTPS_PROXY": f"http://127.0.0.1:{free_port()}",
            **({"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / key)} if key else {}),
        }
        done = subprocess.run(
            [sys.executable, "-c", LOOK], env=environment, capture_output=True, text=True, timeout=300, check=True
        )
    (error,) = done.stdout.splitlines()
    assert error.startswith("StorageError ")
    assert "gcloud auth application-default login" in error
    assert "GOOGLE_APPLICATION_CREDENTIALS" in error
    assert "|" not in error
    assert len(silent.seen) <= 1  # it is asked once, and not waited for
    if not key:
        assert "gs://some-bucket/x.jpg: there are no Google Cloud credentials" in error


def test_damaged_credentials_of_gcloud_are_not_called_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    (tmp_path / "application_default_credentials.json").write_text('{"type": "authorized_us')
    with pytest.raises(StorageError, match=r"credentials cannot be used: .*application_default_credentials\.json"):
        connect("")


@pytest.mark.parametrize("body", [b"<html>log in</html>", b"[]", b'{"items": [{"size": "3"}], "size": "many"}', b""])
def test_an_answer_of_something_else_than_cloud_storage_is_told(storage: Storage, google: Serve, body: bytes) -> None:
    with google(lambda _: Answer(body=body)):
        for ask in (
            lambda: storage.size("gs://bucket/x"),
            lambda: list(storage.walk("gs://bucket/folder")),
            lambda: storage.rename("gs://bucket/x", "gs://bucket/y"),
        ):
            with pytest.raises(StorageError, match="is its address right"):
                ask()
    assert storage.counters.snapshot() == {}


def test_the_search_for_a_metadata_server_is_short() -> None:
    from google.auth.exceptions import TransportError

    timeouts = []

    def unreachable(url: str, *args: object, timeout: float, **kwargs: object) -> None:
        timeouts.append(timeout)
        raise TransportError("no route")

    request = _probing_request(unreachable)
    with pytest.raises(NoMetadataServerError):
        request(url="http://169.254.169.254", method="GET", timeout=3)
    with pytest.raises(TransportError):
        request(url="https://sts.googleapis.com/v1/token", method="POST", timeout=30)
    assert timeouts == [1, 30]


def test_a_storage_is_made_without_looking_for_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        pytest.fail("looked for credentials")

    monkeypatch.setattr("beam_tfrecord.storage.gcs_login.find_credentials", never)
    Storage()._store("gs://bucket/x")
