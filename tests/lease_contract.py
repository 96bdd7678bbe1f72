"""What a lease promises, on every kind of storage. A subclass gives the fixtures ``storage`` and ``root``."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from beam_tfrecord.errors import StorageError
from beam_tfrecord.storage import Storage, lease
from beam_tfrecord.storage.lease import LeaseKey, check_free, hold, lease_uri, take, take_for_job
from tests.waiting import PATIENCE, wait_until


def rewritten(storage: Storage, uri: str, **changes: Any) -> None:
    """Change what a lease file says, as if somebody else had written it."""
    values = json.loads(storage.read(uri))
    storage.write_bytes(uri, json.dumps({**values, **changes}).encode())


def ended_process() -> tuple[int, str]:
    """(pid, start time) of a process of this machine that runs no more."""
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        started = lease._started(process.pid)
    assert started
    return process.pid, started


class LeaseContract:
    """Tests of all that a lease does; ``root`` is the uri of an empty folder."""

    def test_a_small_file_is_written_only_under_its_condition(self, storage: Storage, root: str) -> None:
        uri = f"{root}/x.json"
        assert not storage.write_if(uri, b"0", "1")
        assert not storage.is_file(uri)
        assert storage.write_if(uri, b"1", None)
        data, version = storage.read_versioned(uri)
        assert data == b"1"
        assert storage.write_if(uri, b"2", version)
        assert not storage.write_if(uri, b"3", version)
        data, newer = storage.read_versioned(uri)
        assert (data, newer == version) == (b"2", False)
        storage.delete_if(uri, version)
        assert storage.is_file(uri)
        storage.delete_if(uri, newer)
        assert not storage.is_file(uri)
        storage.delete_if(uri, newer)
        with pytest.raises(FileNotFoundError):
            storage.read_versioned(uri)

    def test_whoever_comes_second_is_told_in_one_line(self, storage: Storage, root: str) -> None:
        with hold(f"{root}/out", storage, "beam-tfrecord convert"):
            for attempt in (lambda: take(f"{root}/out", storage, "x"), lambda: check_free(f"{root}/out", storage)):
                with pytest.raises(StorageError) as told:
                    attempt()
                line = str(told.value)
                assert "\n" not in line
                for word in ("beam-tfrecord convert", f"process {os.getpid()} on ", "since 20", "delete", "wait"):
                    assert word in line
            with hold(f"{root}/other", storage, "x"), hold(f"{root}/out", storage, "x", is_file=True):
                pass
        check_free(f"{root}/out", storage)
        assert list(storage.walk(root)) == []

    def test_nothing_is_left_after_success_or_failure(self, storage: Storage, root: str) -> None:
        def fail() -> None:
            with hold(f"{root}/a/b/out", storage, "x"):
                assert [info.uri for info in storage.walk(root)] == [f"{root}/a/b/out/.lease.json"]
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert not storage.is_folder(f"{root}/a")
        with hold(f"{root}/a/b/out.tar", storage, "x", is_file=True):
            storage.write_bytes(f"{root}/a/b/out.tar", b"x")
        assert [info.uri for info in storage.walk(root)] == [f"{root}/a/b/out.tar"]

    def test_a_lease_that_expired_is_taken_over_by_one(self, storage: Storage, root: str) -> None:
        first = take(f"{root}/out", storage, "x")
        rewritten(storage, first.key.uri, machine="another", renewed=time.time() - lease.LIFETIME + 60)
        with pytest.raises(StorageError, match="last sign of life 2"):
            take(f"{root}/out", storage, "x")
        rewritten(storage, first.key.uri, machine="another", renewed=time.time() - lease.LIFETIME - 1)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda number: _taken(f"{root}/out", storage, number), range(8)))
        (own,) = filter(None, found)
        own.confirm(storage)
        with pytest.raises(StorageError, match=r"process .* publishes nothing"):
            first.confirm()

    def test_the_lease_of_a_process_that_is_gone_is_taken_over_at_once(self, storage: Storage, root: str) -> None:
        pid, started = ended_process()
        first = take(f"{root}/out", storage, "x")
        rewritten(storage, first.key.uri, pid=pid, started=started, machine="another boot")
        with pytest.raises(StorageError, match=f"process {pid} on "):
            take(f"{root}/out", storage, "x")
        rewritten(storage, first.key.uri, machine=lease._machine())
        second = take(f"{root}/out", storage, "x")
        rewritten(storage, second.key.uri, pid=os.getpid(), started=started + "0")  # the number was used again
        take(f"{root}/out", storage, "x").release()
        assert not storage.is_file(first.key.uri)

    def test_of_several_at_once_one_gets_it(self, storage: Storage, root: str) -> None:
        for number in range(3):
            with ThreadPoolExecutor(8) as pool:
                found = list(pool.map(lambda n, out=f"{root}/out{number}": _taken(out, storage, n), range(8)))
            assert sum(key is not None for key in found) == 1

    def test_a_holder_whose_lease_is_gone_or_another_s_is_told_so(
        self, storage: Storage, root: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for spoil in (lambda uri: storage.delete([uri]), lambda uri: rewritten(storage, uri, id="another")):
            taken = take(f"{root}/out", storage, "x")
            taken.confirm()
            spoil(taken.key.uri)
            with pytest.raises(StorageError, match="publishes nothing"):
                taken.key.confirm(storage)
            storage.delete([taken.key.uri])
            with monkeypatch.context() as patched:
                patched.setattr(lease, "RENEWAL", 0.05)
                with hold(f"{root}/out", storage, "x") as held:
                    held.watch()
                    deadline = time.monotonic() + PATIENCE
                    while not held._lost and time.monotonic() < deadline:
                        with contextlib.suppress(FileNotFoundError):
                            spoil(held.key.uri)  # again where a renewal came between, on a store without conditions
                        time.sleep(0.01)
                    with pytest.raises(StorageError, match="publishes nothing"):
                        held.watch()
            storage.delete([held.key.uri])

    def test_a_lease_that_is_another_s_is_not_released(self, storage: Storage, root: str) -> None:
        with hold(f"{root}/out", storage, "x") as held:
            rewritten(storage, held.key.uri, id="another")
        assert storage.is_file(held.key.uri)

    def test_a_holder_renews(self, storage: Storage, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lease, "RENEWAL", 0.05)
        with hold(f"{root}/out", storage, "x") as held:
            before = _renewed(storage, held.key)
            wait_until(lambda: _renewed(storage, held.key) != before)
            assert _renewed(storage, held.key) > before

    def test_a_lease_that_was_left_to_a_job_is_ended_by_it_alone(self, storage: Storage, root: str) -> None:
        keys = []

        def stop() -> None:
            with hold(f"{root}/out", storage, "x") as held:
                keys.append(held.key)
                held.key.end_of_job(storage)
                assert storage.is_file(held.key.uri)
                raise lease.NoLongerWatching

        with pytest.raises(KeyboardInterrupt):
            stop()
        with pytest.raises(StorageError, match="a job that was submitted by"):
            take(f"{root}/out", storage, "x")
        keys[0].confirm(storage)
        keys[0].end_of_job(storage)
        check_free(f"{root}/out", storage)

    def test_who_prepares_twice_takes_it_from_the_first_job(self, storage: Storage, root: str) -> None:
        first = take_for_job(f"{root}/out", storage, "x")
        second = take_for_job(f"{root}/out", storage, "x")
        second.confirm(storage)
        with pytest.raises(StorageError, match="publishes nothing"):
            first.confirm(storage)
        check_free(f"{root}/out", storage)
        second.end_of_job(storage)
        assert not storage.is_file(lease_uri(f"{root}/out"))

    def test_who_prepared_a_job_that_ended_is_told_of_the_next_holder(self, storage: Storage, root: str) -> None:
        take_for_job(f"{root}/out", storage, "x").end_of_job(storage)
        with hold(f"{root}/out", storage, "y"), pytest.raises(StorageError, match="another run writes there: y"):
            check_free(f"{root}/out", storage)

    def test_what_is_no_lease_is_never_taken_over(self, storage: Storage, root: str) -> None:
        for data in (b"", b"{}", b"[1]", b'{"id": 3'):
            storage.write_bytes(lease_uri(f"{root}/out"), data)
            with pytest.raises(StorageError, match="delete it"):
                take(f"{root}/out", storage, "x")
            assert storage.read(lease_uri(f"{root}/out")) == data


def _taken(place: str, storage: Storage, number: int) -> LeaseKey | None:
    try:
        return take(place, storage, f"x{number}").key
    except StorageError:
        return None


def _renewed(storage: Storage, key: LeaseKey) -> float:
    return float(json.loads(storage.read(key.uri))["renewed"])
