"""az:// against a scripted server: what Azurite does not do. Azurite itself is in tests/cluster."""

from __future__ import annotations

import base64
import hashlib
import logging
import os
import sys
from collections.abc import Iterator
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from beam_tfrecord.errors import ConfigError, ImageError, StorageError
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage, StorageOptions
from beam_tfrecord.storage.clients import forget_clients
from tests.emulators import AZURE_KEY, free_port
from tests.loopback import QUICK, Answer, Request, Serve, in_place_of_a_store, serving

pytest.importorskip("azure.identity")
from azure.core.exceptions import ClientAuthenticationError

from beam_tfrecord.storage import azure
from beam_tfrecord.storage.answers import Place
from beam_tfrecord.storage.azure import Way, find_way

PIXELS = bytes(range(256)) * 100
BOX = "az://account/box"
ACCOUNT = f"AccountName=account;AccountKey={AZURE_KEY};BlobEndpoint="


@pytest.fixture
def storage() -> Storage:
    return Storage(StorageOptions(retry=QUICK))


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Runs a server in the place of Azure Storage."""
    yield from in_place_of_a_store(monkeypatch, lambda url: {"AZURE_STORAGE_CONNECTION_STRING": ACCOUNT + url})


def md5(data: bytes) -> str:
    return base64.b64encode(hashlib.md5(data).digest()).decode()


@pytest.mark.parametrize("name", ["a b/#?%20[1]/ü~'.jpg", "a//b", "a/../b", "/a", "a/", "+&=;"])
def test_the_name_arrives_literally_in_a_url_that_is_signed(storage: Storage, service: Serve, name: str) -> None:
    with service(lambda _: Answer(body=PIXELS, headers={"Content-MD5": md5(PIXELS)})) as server:
        assert storage.read(f"{BOX}/{name}") == PIXELS
        assert storage.read(f"azfs://account/box/{name}") == PIXELS
    assert len(server.seen) == 2
    for request in server.seen:
        split = urlsplit(request.path)
        assert unquote(split.path) == f"/box/{name}"
        assert parse_qs(split.query)["srt"] == ["co"]
        assert "sig" in parse_qs(split.query)


def test_a_body_that_does_not_fit_its_checksum_is_read_again(storage: Storage, service: Serve) -> None:
    bodies = [PIXELS[:-1] + b"x", PIXELS[:-1], PIXELS]
    with service(lambda _: Answer(body=bodies.pop(0), headers={"Content-MD5": md5(PIXELS)})):
        assert storage.read(f"{BOX}/x") == PIXELS
    assert storage.counters["read_retries"] == 2


def test_what_is_written_carries_its_checksum(storage: Storage, service: Serve) -> None:
    answers = [Answer(400, headers={"x-ms-error-code": "Md5Mismatch"}), Answer(201)]
    with service(lambda _: answers.pop(0)) as server:
        storage.write_bytes(f"{BOX}/x", PIXELS)
    assert [request.headers["content-md5"] for request in server.seen] == [md5(PIXELS)] * 2
    assert [request.body for request in server.seen] == [PIXELS] * 2
    assert storage.counters["write_retries"] == 1


def test_what_is_larger_than_one_request_takes_goes_in_blocks(
    storage: Storage, service: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(azure, "_LARGEST_PUT", 10_000)
    with service(lambda _: Answer(201)) as server:
        storage.write_bytes(f"{BOX}/x", PIXELS)
    *blocks, names = server.seen
    assert [request.body for request in blocks] == [PIXELS[at : at + 10_000] for at in range(0, len(PIXELS), 10_000)]
    ids = [parse_qs(urlsplit(request.path).query)["blockid"][0] for request in blocks]
    assert b"".join(b"<Latest>%s</Latest>" % one.encode() for one in ids) in names.body
    assert parse_qs(urlsplit(names.path).query)["comp"] == ["blocklist"]


def test_folders_of_a_hierarchical_namespace_are_no_files(storage: Storage, service: Serve) -> None:
    listing = (
        "<?xml version='1.0'?><EnumerationResults><Blobs>"
        "<Blob><Name>a</Name><Properties><Content-Length>0</Content-Length><ResourceType>directory</ResourceType>"
        "</Properties></Blob><Blob><Name>a/1</Name><Properties><Content-Length>3</Content-Length></Properties></Blob>"
        "<Blob><Name Encoded='true'>a%07-b</Name><Properties><Content-Length>4</Content-Length></Properties></Blob>"
        "</Blobs><NextMarker/></EnumerationResults>"
    )

    def script(request: Request) -> Answer:
        if "comp=list" in request.path:
            return Answer(body=b"\xef\xbb\xbf" + listing.encode())
        return Answer(headers={"x-ms-meta-hdi_isfolder": "true", "ETag": '"1"'})

    with service(script):
        assert [(info.uri, info.size) for info in storage.walk(BOX)] == [(f"{BOX}/a\x07-b", 4), (f"{BOX}/a/1", 3)]
        assert not storage.is_file(f"{BOX}/a")
        with pytest.raises(ImageError, match="is a folder, not a file") as caught:
            storage.read(f"{BOX}/a")
    assert caught.value.code == "missing_file"


@pytest.mark.parametrize(
    "body",
    [
        b"<html>log in",
        b"<html/>",
        b"",
        b"<EnumerationResults><Blobs><Blob><Properties/></Blob></Blobs></EnumerationResults>",
    ],
)
def test_an_answer_of_something_else_than_azure_storage_is_told(storage: Storage, service: Serve, body: bytes) -> None:
    with service(lambda _: Answer(body=body)):
        for ask in (lambda: storage.size(f"{BOX}/x"), lambda: list(storage.walk(BOX))):
            with pytest.raises(StorageError, match="is its address right"):
                ask()
    assert storage.counters.snapshot() == {}


def test_a_copy_of_which_the_server_does_not_say_that_it_is_done_is_none(storage: Storage, service: Serve) -> None:
    with (
        service(lambda _: Answer(202)) as server,
        pytest.raises(StorageError, match="in a state that is not told"),
    ):
        storage.rename(f"{BOX}/x", f"{BOX}/y")
    assert {request.method for request in server.seen} == {"PUT"}


def test_a_copy_that_goes_on_is_waited_for(storage: Storage, service: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(azure, "_COPY_TURN", 0.001)
    states = ["pending", "pending", "success"]

    def script(request: Request) -> Answer:
        if request.method == "DELETE":
            return Answer(202)
        return Answer(200 if request.method == "HEAD" else 202, headers={"x-ms-copy-status": states.pop(0)})

    with service(script) as server:
        storage.rename(f"{BOX}/x", f"{BOX}/y")
    assert [request.method for request in server.seen] == ["PUT", "HEAD", "HEAD", "DELETE"]
    assert urlsplit(server.seen[0].headers["x-ms-copy-source"]).path == "/box/x"


def test_no_name_has_a_backslash(storage: Storage, service: Serve) -> None:
    """Azure takes it for a slash, so that another file would be read, or replaced."""
    with service(lambda _: Answer(body=PIXELS)) as server:
        with pytest.raises(ImageError, match="backslash") as caught:
            storage.read(f"{BOX}/a\\b.jpg")
        assert caught.value.code == "missing_file"
        with pytest.raises(StorageError, match="backslash"):
            storage.write_bytes(f"{BOX}/a\\b.jpg", PIXELS)
    assert server.seen == []


@pytest.mark.parametrize(
    ("status", "code", "error", "words"),
    [
        (404, "BlobNotFound", ImageError, "x does not exist$"),
        (404, "ContainerNotFound", ImageError, "there is no such container"),
        (403, "AuthorizationPermissionMismatch", StorageError, "Storage Blob Data Reader"),
        (403, "AuthenticationFailed", StorageError, "are not accepted.*az login"),
        (503, "ServerBusy", ImageError, r"failed 4 times.*HTTP 503"),
        (409, "BlobArchived", ImageError, r"answered BlobArchived \(409\)"),
    ],
)
def test_refusals_are_told_apart_and_show_no_signature(
    storage: Storage, service: Serve, status: int, code: str, error: type[Exception], words: str
) -> None:
    with (
        service(lambda _: Answer(status, headers={"x-ms-error-code": code})),
        pytest.raises(error, match=words) as told,
    ):
        storage.read(f"{BOX}/x")
    assert "sig" not in str(told.value)
    assert AZURE_KEY not in str(told.value)


def test_a_container_that_is_not_there_to_be_listed_or_written_ends_the_job(storage: Storage, service: Serve) -> None:
    with service(lambda _: Answer(404, headers={"x-ms-error-code": "ContainerNotFound"})):
        with pytest.raises(StorageError, match="the container 'account/box' does not exist"):
            list(storage.walk(BOX))
        with pytest.raises(StorageError, match="there is no such container"):
            storage.write_bytes(f"{BOX}/x", b"")
        with pytest.raises(StorageError, match="there is no such container"):
            storage.write_if(f"{BOX}/x", b"", None)


def test_without_credentials_the_cure_is_named(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda _: Answer(404, headers={"x-ms-error-code": "ResourceNotFound"})) as server:
        told = f"AccountName=account;BlobEndpoint={server.url}"
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", told)
        monkeypatch.setenv("NO_PROXY", "localhost")
        with pytest.raises(
            StorageError, match="there are no Azure credentials for its account; log in with `az login`"
        ):
            storage.read(f"{BOX}/x")
    forget_clients()


def test_an_account_that_cannot_be_reached_without_credentials_is_one_line(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def nobody() -> str:
        logging.getLogger("azure.identity._credentials.chained").warning("a page of names")
        raise ClientAuthenticationError("nothing was found")

    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(azure, "get_bearer_token_provider", lambda *_: nobody)
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{free_port()}")
    with pytest.raises(StorageError, match=r"there are no Azure credentials for this account.*az login") as told:
        storage.read(f"{BOX}/x")
    forget_clients()
    assert "\n" not in str(told.value)
    assert caplog.records == []
    assert storage.counters.snapshot() == {}


def test_where_an_account_is_served_and_with_what(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tokens:
        def __init__(self, managed_identity_client_id: str | None) -> None:
            self.client = managed_identity_client_id

    monkeypatch.setattr(azure, "DefaultAzureCredential", Tokens)
    monkeypatch.setattr(azure, "get_bearer_token_provider", lambda found, scope: lambda: f"{found.client} {scope}")
    public = "https://mine.blob.core.windows.net"
    string = (
        f"DefaultEndpointsProtocol=https;AccountName=mine;AccountKey={AZURE_KEY};EndpointSuffix=core.chinacloudapi.cn"
    )
    by_string = find_way("mine", {"connection_string": string}, {})
    assert (by_string.endpoint, by_string.key) == ("https://mine.blob.core.chinacloudapi.cn", AZURE_KEY)
    of_another = find_way("other", {"connection_string": string, "client_id": "me"}, {})
    assert (of_another.endpoint, of_another.key) == ("https://other.blob.core.windows.net", "")
    assert of_another.headers()["Authorization"] == "Bearer me https://storage.azure.com/.default"
    signed = find_way("mine", {}, {"AZURE_STORAGE_SAS_TOKEN": "?sv=1&sig=2"})
    assert signed.url(Place("az", "mine/box", "a b"), {}) == f"{public}/box/a%20b?sv=1&sig=2"
    assert find_way("mine", {}, {"AZURE_STORAGE_ACCOUNT": "mine", "AZURE_STORAGE_KEY": "k"}).key == "k"
    assert find_way("mine", {}, {"AZURE_STORAGE_ACCOUNT": "other", "AZURE_STORAGE_KEY": "k"}).key == ""
    # A token is not sent in the clear.
    assert find_way("mine", {"endpoint": "http://127.0.0.1:1/mine"}, {}).is_anonymous


def test_credentials_of_another_account_are_not_used_and_told(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(azure, "get_bearer_token_provider", lambda *_: _nobody)
    of_theirs = "BlobEndpoint=https://theirs.blob.core.windows.net/;SharedAccessSignature=sv=1&sig=2"
    for string in (of_theirs, f"AccountName=theirs;AccountKey={AZURE_KEY}"):
        way = find_way("mine", {"connection_string": string}, {})
        assert (way.endpoint, way.is_anonymous) == ("https://mine.blob.core.windows.net", True)
        assert way.passed_over == " (those that are given are of theirs)"
    assert find_way("theirs", {"connection_string": of_theirs}, {}).sas == "sv=1&sig=2"
    variables = {"AZURE_STORAGE_ACCOUNT": "hers", "AZURE_STORAGE_KEY": "k"}
    assert find_way("mine", {}, variables).passed_over == " (those that are given are of hers)"
    assert find_way("mine", {}, {"AZURE_STORAGE_ACCOUNT": "hers"}).passed_over == ""
    with serving(lambda _: Answer(403)) as server:
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", f"AccountName=account;BlobEndpoint={server.url}")
        monkeypatch.setenv("NO_PROXY", "localhost")
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(StorageError, match=r"no Azure credentials for its account \(those .* are of hers\)"):
            storage.read(f"{BOX}/x")
    forget_clients()


def _nobody() -> str:
    raise ClientAuthenticationError("nothing was found")


def test_credentials_that_are_damaged_are_told(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StorageError, match="has no NAME=VALUE in it"):
        find_way("mine", {"connection_string": "DefaultEndpointsProtocol"}, {})
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=account;AccountKey=of-no-base64")
    with pytest.raises(StorageError, match="the key of the account is damaged") as told:
        storage.read(f"{BOX}/x")
    forget_clients()
    assert "of-no-base64" not in str(told.value)


def test_a_signature_is_made_anew_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    way = Way("account", "https://x", key=AZURE_KEY)
    place = Place("az", "account/box", "x")
    first = way.url(place, {})
    assert way.url(place, {}) == first
    now = azure.time.time()
    monkeypatch.setattr(azure.time, "time", lambda: now + 13 * 3600)
    made = []
    monkeypatch.setattr(azure, "generate_account_sas", lambda *_, **about: made.append(about["expiry"]) or "sig=new")
    assert way.url(place, {}).endswith("?sig=new")
    assert len(made) == 1


def test_the_sink_of_beam_knows_another_scheme() -> None:
    with pytest.raises(ConfigError, match="azfs://"):
        ConvertConfig.from_options({"input": "in", "output": f"{BOX}/out", "writer": "beam"})
    assert ConvertConfig.from_options({"input": "in", "output": "azfs://account/box/out", "writer": "beam"})


def test_without_the_packages_the_extra_is_named(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    monkeypatch.delitem(sys.modules, "beam_tfrecord.storage.azure", raising=False)
    for scheme in ("az", "azfs"):
        with pytest.raises(StorageError, match=r"needs the package azure.*pip install 'beam_tfrecord\[azure\]'"):
            storage.read(f"{scheme}://account/box/x.jpg")
