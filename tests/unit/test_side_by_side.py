from __future__ import annotations

import threading
import time

import pytest

from beam_tfrecord.publishing.final_names import publish_moves, side_by_side
from beam_tfrecord.storage import Storage
from beam_tfrecord.storage.stores import StorageOptions
from tests.waiting import PATIENCE


def test_requests_to_an_object_store_run_side_by_side_and_answers_keep_their_order() -> None:
    together = threading.Barrier(4, timeout=PATIENCE)  # broken unless four of them wait at the same time

    def ask(number: int) -> int:
        together.wait()
        time.sleep(0.001 * (4 - number % 4))
        return number

    found = side_by_side(ask, range(40), "gs://bucket/out", Storage(StorageOptions(connections=4)))
    assert list(found) == list(range(40))


@pytest.mark.parametrize("place", ["/data/out", "file:///data/out"])
def test_a_disk_is_asked_one_after_the_other_by_the_caller(place: str) -> None:
    threads = list(side_by_side(lambda number: threading.get_ident(), range(5), place, Storage()))
    assert set(threads) == {threading.get_ident()}


def test_a_failure_is_told_where_its_answer_would_have_been() -> None:
    def ask(number: int) -> int:
        if number == 3:
            raise OSError("broken")
        return number

    answers = side_by_side(ask, range(9), "s3://bucket/out", Storage(StorageOptions(connections=2)))
    assert [next(answers) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(OSError, match="broken"):
        next(answers)


class ListedStorage(Storage):
    """A store of names, which moves two at a time."""

    def __init__(self) -> None:
        super().__init__(StorageOptions(connections=8))
        self.done: list[str] = []
        self.two = threading.Barrier(2, timeout=PATIENCE)  # broken unless two of them move at the same time

    def is_file(self, uri: str) -> bool:
        return False

    def is_folder(self, uri: str) -> bool:
        return False

    def rename(self, old: str, new: str) -> None:
        self.two.wait()
        self.done.append(new)

    def write_bytes(self, uri: str, data: bytes) -> None:
        self.done.append(uri)

    def delete(self, uris: object) -> None:
        pass

    def delete_tree(self, uri: str) -> None:
        pass


def test_all_shards_have_their_names_before_any_metadata_is_written() -> None:
    storage = ListedStorage()
    moved = [(f"gs://b/out/.staging/{number}", f"train-{number}") for number in range(24)]
    files = {"dataset_info.json": b"{}", "features.json": b"{}"}
    publish_moves(moved, files, "token", "gs://b/out", storage, has_report=True)
    note, *done = storage.done
    assert note == "gs://b/out/.staging/publishing.json"
    assert sorted(done[:24]) == sorted(f"gs://b/out/train-{number}" for number in range(24))
    assert done[24:] == ["gs://b/out/features.json", "gs://b/out/dataset_info.json"]
