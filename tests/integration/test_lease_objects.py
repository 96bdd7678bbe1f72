"""Leases in object stores: those that keep conditions, and one that ignores them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from beam_tfrecord.storage import Storage
from tests.emulators import Emulator
from tests.fault_proxy import fault_proxy
from tests.integration.test_storage_objects import PATIENT, lead_to
from tests.lease_contract import LeaseContract


@pytest.fixture
def storage() -> Storage:
    return Storage(PATIENT)


class TestStoresThatKeepConditions(LeaseContract):
    @pytest.fixture(params=["conditional_gcs_server", "s3_server"])
    def root(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
        server: Emulator = request.getfixturevalue(request.param)
        lead_to(server, server.endpoint, monkeypatch)
        return f"{server.scheme}://{server.new_bucket()}"

    def test_that_they_do_is_found_out(self, storage: Storage, root: str) -> None:
        assert storage.write_if(f"{root}/x", b"1", None)
        assert storage.keeps_conditions(f"{root}/x", b"2")
        assert storage.read(f"{root}/x") == b"1"


class TestStoresThatKeepConditionsUnderFaults(LeaseContract):
    """A tenth of all answers is spoiled: a request that was done may be told as one that failed."""

    @pytest.fixture(params=["conditional_gcs_server", "s3_server"])
    def root(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
        server: Emulator = request.getfixturevalue(request.param)
        with fault_proxy(server.endpoint, seed=3, share=0.1) as proxy:
            lead_to(server, proxy.endpoint, monkeypatch)
            yield f"{server.scheme}://{server.new_bucket()}"


@pytest.mark.slow  # each lease waits two seconds there
class TestAStoreThatIgnoresConditions(LeaseContract):
    @pytest.fixture
    def root(self, gcs_server: Emulator, monkeypatch: pytest.MonkeyPatch) -> str:
        lead_to(gcs_server, gcs_server.endpoint, monkeypatch)
        return f"gs://{gcs_server.new_bucket()}"

    def test_a_small_file_is_written_only_under_its_condition(self, storage: Storage, root: str) -> None:
        assert storage.write_if(f"{root}/x", b"1", None)
        assert storage.write_if(f"{root}/x", b"2", None)
        assert not storage.keeps_conditions(f"{root}/x", b"3")
