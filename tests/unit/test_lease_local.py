"""Leases on the local disk."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from beam_tfrecord.storage import Storage, lease
from tests.lease_contract import LeaseContract


@pytest.fixture
def storage() -> Storage:
    return Storage()


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path)


class TestDisks(LeaseContract):
    pass


class TestDisksWithoutHardLinks(LeaseContract):
    """FAT, and some that are mounted over a network."""

    @pytest.fixture(autouse=True)
    def no_links(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*told: str) -> None:
            raise OSError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "link", refuse)


class TestFileUris(LeaseContract):
    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}"


def test_a_turn_begins_when_the_one_before_has_ended(tmp_path: Path) -> None:
    place, storage, order = str(tmp_path / "publication"), Storage(), []
    entered, leave = threading.Event(), threading.Event()

    def first() -> None:
        with lease.turn(place, storage, "the first"):
            entered.set()
            leave.wait(60)
            order.append("first")

    def second() -> None:
        with lease.turn(place, storage, "the second"):
            order.append("second")

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert entered.wait(60)
    with pytest.raises(lease.LeaseTakenError, match="the first"):
        lease.take(place, storage, "another", is_file=True)
    threads[1].start()
    leave.set()
    for thread in threads:
        thread.join(60)
    assert order == ["first", "second"]
    assert list(tmp_path.iterdir()) == []


def test_a_turn_ends_when_its_step_fails(tmp_path: Path) -> None:
    place, storage = str(tmp_path / "publication"), Storage()
    with pytest.raises(KeyError), lease.turn(place, storage, "one that fails"):
        raise KeyError
    with lease.turn(place, storage, "the next"):
        assert [path.name for path in tmp_path.iterdir()] == [".publication.lease.json"]
