"""Object stores that ``make test-engines`` fetches: what holds for every storage holds for servers in earnest use too.

fake-gcs-server speaks the JSON API of Cloud Storage, with its conditions; versitygw speaks S3, and looks at each
signature; Azurite is Microsoft's emulator of Azure Storage.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from beam_tfrecord.storage import Storage
from tests.emulators import Emulator, free_port, running
from tests.fault_proxy import FaultProxy, fault_proxy
from tests.integration.test_convert_objects import (
    COLLECTIONS,
    FOLDER,
    PATIENT,
    Places,
    check_same,
    convert,
    published,
    test_a_kill_leaves_nothing_behind_once_the_command_ran_again,
)
from tests.integration.test_convert_objects import put as put_files
from tests.integration.test_storage_objects import lead_to
from tests.lease_contract import LeaseContract
from tests.samples import write_files
from tests.storage_contract import StorageContract

FOLDER_OF_SERVERS = os.environ.get("ENGINES", "")
AZURITE = "azurite/node_modules/azurite/dist/src/blob/main.js"
PROGRAMS = {"az": AZURITE, "gs": "fake-gcs-server", "s3": "versitygw"}
pytestmark = pytest.mark.engines
__all__ = ["test_a_kill_leaves_nothing_behind_once_the_command_ran_again"]  # on these servers too


def gcs_command(program: str, port: int, place: Path) -> list[str]:
    address = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-public-host", f"127.0.0.1:{port}"]
    return [program, "-backend", "memory", *address, "-log-level", "error"]


def s3_command(program: str, port: int, place: Path) -> list[str]:
    keys = ["--access", "test", "--secret", "test"]
    return [program, *keys, "--port", f"127.0.0.1:{port}", "--keep-alive", "--quiet", "posix", str(place)]


def azure_command(program: str, port: int, place: Path) -> list[str]:
    address = ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
    return [
        "node",
        program,
        *address,
        "--inMemoryPersistence",
        "--skipApiVersionCheck",
        "--disableTelemetry",
        "--silent",
    ]


COMMANDS = {"az": azure_command, "gs": gcs_command, "s3": s3_command}


class RealServer(Emulator):
    """A server whose requests must be signed."""

    def new_bucket(self) -> str:
        if self.scheme != "s3":
            return super().new_bucket()
        import boto3

        name = f"bucket-{next(self._numbers)}"
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
        boto3.session.Session().client("s3", endpoint_url=self.endpoint, **keys).create_bucket(Bucket=name)
        return name


@pytest.fixture(params=sorted(PROGRAMS), scope="module")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    if not FOLDER_OF_SERVERS:
        pytest.skip("real servers are tested by make test-engines, which fetches them")
    program = Path(FOLDER_OF_SERVERS) / PROGRAMS[request.param]
    if not program.exists():
        pytest.skip(
            f"{PROGRAMS[request.param].partition('/')[0]} could not be fetched; see the output of make test-engines"
        )
    port = free_port()
    command = COMMANDS[request.param](str(program), port, tmp_path_factory.mktemp("objects"))
    with running(command, port, is_python=False):
        yield RealServer(request.param, f"http://127.0.0.1:{port}")


@pytest.fixture(scope="module")
def one_proxy(server: RealServer) -> Iterator[FaultProxy]:
    with fault_proxy(server.endpoint, seed=17) as proxy:
        yield proxy


@pytest.fixture(params=[0.0, 0.1], ids=["undisturbed", "under faults"])
def proxy(request: pytest.FixtureRequest, one_proxy: FaultProxy) -> FaultProxy:
    """Spoils no answer, or a tenth of all in every way."""
    one_proxy.begin(request.param)
    return one_proxy


@pytest.fixture
def storage() -> Storage:
    return Storage(PATIENT)


@pytest.fixture
def root(server: RealServer, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> str:
    lead_to(server, proxy.endpoint if proxy.share else server.endpoint, monkeypatch)
    return f"{server.scheme}://{server.new_bucket()}"


class TestRealStores(StorageContract):
    @pytest.mark.parametrize("name", ["a//b", "a/../b", "a/./b", "/a", "..a/.b"])
    def test_names_that_look_like_paths_are_names(self, storage: Storage, root: str, name: str) -> None:
        if root.startswith("s3"):
            pytest.skip("versitygw keeps objects as files")
        storage.write_bytes(f"{root}/{name}", name.encode())
        storage.write_bytes(f"{root}/b", b"another")
        assert storage.read(f"{root}/{name}") == name.encode()
        assert storage.size(f"{root}/{name}") == len(name)
        storage.rename(f"{root}/{name}", f"{root}/{name}.moved")
        assert [info.uri for info in storage.walk(root)] == sorted([f"{root}/b", f"{root}/{name}.moved"])
        assert storage.read(f"{root}/{name}.moved") == name.encode()
        assert storage.read(f"{root}/b") == b"another"

    def test_names_are_sorted_by_code_point(self, storage: Storage, root: str) -> None:
        names = ["\U0001f34e.jpg", "\uffee.jpg", "z.jpg", "a-b.jpg", "a/1.jpg"]
        for name in names:
            storage.write_bytes(f"{root}/{name}", b"")
        assert [info.uri for info in storage.walk(root)] == sorted(f"{root}/{name}" for name in names)
        assert [info.uri for info in storage.match(f"{root}/*.jpg")] == sorted(
            f"{root}/{name}" for name in names if "/" not in name
        )


class TestLeasesInRealStores(LeaseContract):
    def test_conditions_are_kept(self, storage: Storage, root: str, proxy: FaultProxy) -> None:
        assert storage.write_if(f"{root}/x", b"1", None)
        assert not storage.write_if(f"{root}/x", b"2", None)
        assert storage.keeps_conditions(f"{root}/x", b"3")
        data, version = storage.read_versioned(f"{root}/x")
        assert data == b"1"
        assert not storage.write_if(f"{root}/x", b"4", f"{version}1" if root.startswith("gs") else '"another"')
        assert storage.write_if(f"{root}/x", b"5", version)
        assert storage.read(f"{root}/x") == b"5"


def test_a_tenth_of_all_answers_is_spoiled_and_the_bytes_are_those_of_a_local_run(
    server: RealServer, one_proxy: FaultProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = COLLECTIONS["csv"][0]()
    write_files(tmp_path / FOLDER, files)
    local = Places(f"{tmp_path}/{FOLDER}", f"{tmp_path}/{FOLDER}", f"{tmp_path}/shapes")
    convert(local, "csv")
    lead_to(server, one_proxy.endpoint, monkeypatch)
    one_proxy.begin(0.1)
    root = f"{server.scheme}://{server.new_bucket()}"
    folder = put_files(Storage(PATIENT), root, files)
    places = Places(folder, folder, f"{root}/shapes")
    counters = convert(places, "csv")
    assert sum(one_proxy.spoiled.values()) >= 5
    assert counters["read_retries"] + counters["write_retries"] > 0
    one_proxy.share = 0
    check_same(published(Storage(PATIENT), places), published(Storage(), local))
