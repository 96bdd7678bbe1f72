"""gs:// and s3:// against emulators on loopback ports, undisturbed and with a tenth of all answers spoiled."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from beam_tfrecord.errors import ImageError, StorageError
from beam_tfrecord.storage import RetryPolicy, Storage, StorageOptions
from tests.emulators import Emulator
from tests.fault_proxy import FAULTS, FaultProxy, fault_proxy
from tests.storage_contract import StorageContract, put

PATIENT = StorageOptions(connections=16, retry=RetryPolicy(attempts=12, first_wait=0.002, longest_wait=0.05))
HASTY = StorageOptions(retry=RetryPolicy(attempts=2, first_wait=0.001, longest_wait=0.002))


@pytest.fixture
def storage() -> Storage:
    return Storage(PATIENT)


@pytest.fixture(params=["gs", "s3"], scope="module")
def server(request: pytest.FixtureRequest) -> Emulator:
    """Each of the emulators."""
    found: Emulator = request.getfixturevalue({"gs": "gcs_server", "s3": "s3_server"}[request.param])
    return found


@pytest.fixture(scope="module")
def one_proxy(server: Emulator) -> Iterator[FaultProxy]:
    with fault_proxy(server.endpoint, seed=7) as proxy:
        yield proxy


@pytest.fixture
def proxy(one_proxy: FaultProxy) -> FaultProxy:
    """A proxy before the server that spoils a tenth of all answers, in every way; a test may change that."""
    one_proxy.begin(0.1)
    return one_proxy


@pytest.fixture
def root(server: Emulator, monkeypatch: pytest.MonkeyPatch) -> str:
    """Uri of a new bucket, used directly."""
    lead_to(server, server.endpoint, monkeypatch)
    return f"{server.scheme}://{server.new_bucket()}"


class TestObjectStores(StorageContract):
    pass


class TestObjectStoresUnderFaults(StorageContract):
    """Everything that holds for a good connection holds for a bad one too."""

    @pytest.fixture
    def root(self, server: Emulator, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> str:
        lead_to(server, proxy.endpoint, monkeypatch)
        return f"{server.scheme}://{server.new_bucket()}"

    @pytest.mark.parametrize("fault", FAULTS)
    def test_each_fault_is_survived_and_counted(
        self, storage: Storage, root: str, proxy: FaultProxy, fault: str
    ) -> None:
        data = {f"{root}/{number}": os.urandom(20_000) for number in range(8)}
        proxy.faults = (fault,)
        proxy.share = 0.4
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(storage.write_bytes, data, data.values()))
            assert list(pool.map(storage.read, [*data] * 4)) == list(data.values()) * 4
        for uri in data:
            storage.rename(uri, uri + ".moved")
        assert storage.sizes(uri + ".moved" for uri in data) == {uri + ".moved": 20_000 for uri in data}
        assert [info.uri for info in storage.walk(root)] == sorted(uri + ".moved" for uri in data)
        storage.delete_tree(root)
        assert list(storage.walk(root)) == []
        assert proxy.spoiled[fault] >= 5
        retries = storage.counters["read_retries"] + storage.counters["write_retries"]
        # An answer to a HEAD or DELETE has no body that could be cut, and one that comes late is good all the same.
        # Google's client also asks about the bucket, aside, and what becomes of that does not matter.
        assert retries >= {"delay": 0, "cut": 3}.get(fault, 0.8 * proxy.spoiled[fault])

    def test_a_large_upload_survives(self, storage: Storage, root: str, proxy: FaultProxy) -> None:
        data = os.urandom(20_000_000)
        proxy.share = 0.3
        with storage.open_write(f"{root}/shard") as stream:
            stream.write(data)
        with storage.open(f"{root}/shard") as stream:
            assert stream.read() == data
        assert [info.uri for info in storage.walk(root)] == [f"{root}/shard"]


def test_one_image_is_one_request(
    server: Emulator, root: str, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch, storage: Storage
) -> None:
    put(storage, root, [str(number) for number in range(10)])
    lead_to(server, proxy.endpoint, monkeypatch)
    proxy.share = 0
    for number in range(10):
        assert Storage(PATIENT).read(f"{root}/{number}") == str(number).encode()
    # Google's client also asks about the bucket, once and aside: that is no request for an image.
    bucket = root.rpartition("/")[2]
    asked = [path for path in proxy.paths if not urlsplit(path).path.endswith(f"/{bucket}")]
    assert len(asked) == 10
    assert len(proxy.paths) <= 11


def test_pages_of_a_listing_are_put_together(
    s3_server: Emulator, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    lead_to(s3_server, s3_server.endpoint, monkeypatch)
    root = f"s3://{s3_server.new_bucket()}"
    names = [f"{number:03}.jpg" for number in range(25)]
    put(storage, root, names)
    store = storage._store(root)
    whole_list = store._list  # type: ignore[attr-defined]
    pages = []

    def short_list(bucket: str, prefix: str, delimiter: str, token: str | None, limit: int | None) -> object:
        pages.append(token)
        return whole_list(bucket, prefix, delimiter, token, 10)

    monkeypatch.setattr(store, "_list", short_list)
    assert [info.uri for info in storage.walk(root)] == [f"{root}/{name}" for name in names]
    assert storage.list_folder(root) == names
    assert len(pages) >= 6


def test_the_empty_objects_that_consoles_make_for_folders_are_no_files(
    server: Emulator, root: str, storage: Storage
) -> None:
    put(storage, root, ["photos/", "photos/cat/", "photos/cat/1.jpg"])
    assert [info.uri for info in storage.walk(root)] == [f"{root}/photos/cat/1.jpg"]
    assert storage.list_folder(f"{root}/photos") == ["cat/"]
    storage.delete_tree(f"{root}/photos")
    assert not storage.is_folder(root)


def test_a_stream_left_by_an_exception_writes_nothing(server: Emulator, root: str, storage: Storage) -> None:
    with pytest.raises(ZeroDivisionError), storage.open_write(f"{root}/half") as stream:
        stream.write(b"half" * (1 // 0))
    dropped = storage.open_write(f"{root}/dropped")
    dropped.write(b"half")
    del dropped
    assert list(storage.walk(root)) == []


def test_an_object_that_changes_while_it_is_read_is_noticed(
    s3_server: Emulator, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    lead_to(s3_server, s3_server.endpoint, monkeypatch)
    root = f"s3://{s3_server.new_bucket()}"
    storage.write_bytes(f"{root}/x", os.urandom(3_000_000))
    with storage.open(f"{root}/x") as stream:
        stream.read(10)
        storage.write_bytes(f"{root}/x", os.urandom(3_000_000))
        stream.seek(2_000_000)
        with pytest.raises(OSError, match="was changed while it was being read"):
            stream.read(10)


def test_a_bucket_that_is_not_there(server: Emulator, root: str, storage: Storage) -> None:
    uri = f"{server.scheme}://no-such-bucket/x.jpg"
    with pytest.raises(ImageError, match="no-such-bucket") as caught:
        storage.read(uri)
    assert caught.value.code == "missing_file"
    assert not storage.is_file(uri)
    for operation in (
        lambda: storage.write_bytes(uri, b"x"),
        lambda: list(storage.walk(f"{server.scheme}://no-such-bucket")),
    ):
        with pytest.raises(StorageError, match="the bucket 'no-such-bucket' does not exist"):
            operation()
    with pytest.raises(ImageError, match="is a bucket, not a file"):
        storage.read(root)
    with pytest.raises(ImageError, match="names no bucket"):
        storage.read(f"{server.scheme}:///x.jpg")


def test_a_server_that_stays_in_trouble(server: Emulator, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy.share, proxy.faults = 1, ("unavailable",)
    lead_to(server, proxy.endpoint, monkeypatch)
    storage = Storage(HASTY)
    with pytest.raises(ImageError, match=r"failed 2 times.*HTTP 503") as caught:
        storage.read(f"{server.scheme}://bucket/x")
    assert caught.value.code == "read_failed"
    with pytest.raises(StorageError, match=r"cannot write .*failed 2 times"):
        storage.write_bytes(f"{server.scheme}://bucket/x", b"x")
    assert storage.counters.snapshot() == {"read_retries": 1, "write_retries": 1}


def test_a_server_that_is_not_there(server: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    lead_to(server, "http://127.0.0.1:1", monkeypatch)
    with pytest.raises(ImageError, match=r"failed 2 times.*server (refused the connection|cannot be reached)"):
        Storage(HASTY).read(f"{server.scheme}://bucket/x")


def lead_to(server: Emulator, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in server.environment(endpoint).items():
        monkeypatch.setenv(name, value)
