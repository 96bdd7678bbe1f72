"""The same files, however many threads make them and however they share the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord import convert
from beam_tfrecord.conversion.writing import shards
from beam_tfrecord.conversion.writing.progress import PROGRESS
from beam_tfrecord.errors import ManifestError
from tests.end_to_end.datasets import converted, shard_bytes
from tests.engines import COLLECTIONS, converted_on, differing
from tests.samples import class_folders, write_files, write_table


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Fills with how images were prepared: ahead, by the pool in order; or shared with it. Tasks are of two items."""
    used: set[str] = set()

    def noted(name: str, function: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            used.add(name)
            return function(*arguments, **options)

        return call

    for name in ("ordered_map", "ordered_shared_map"):
        monkeypatch.setattr(shards, name, noted(name, getattr(shards, name)))
    monkeypatch.setattr(shards, "MAX_TASK_ITEMS", 2)
    return used


@pytest.mark.parametrize("kind", COLLECTIONS)
@pytest.mark.parametrize("validate", ["full", "header"])
def test_threads_make_the_files_that_one_makes(
    tmp_path: Path, ways: set[str], kind: str, validate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(threads: int) -> dict[str, bytes]:
        files = converted_on(None, tmp_path, kind, read_threads=threads, num_shards=1, validate=validate)
        del files["conversion.json"], files["report.html"]  # which tell the number of threads
        return files

    monkeypatch.setattr(shards, "SLOW_READ", 10**12)
    alone = made(1)
    assert not ways
    shared = made(3)
    is_quick = validate == "header" and kind in ("shapes", "gzip")
    assert ways == (set() if is_quick else {"ordered_shared_map"})
    monkeypatch.setattr(shards, "SLOW_READ", 0)
    monkeypatch.setattr(shards, "WAITING_SHARE", 0)
    ahead = made(1)
    assert "ordered_map" in ways
    assert differing(shared, alone) == []
    assert differing(ahead, alone) == []


def test_reads_from_a_store_are_done_ahead(tmp_path: Path, ways: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    source, options = COLLECTIONS["shapes"](tmp_path / "in")
    converted(source, tmp_path / "quick", read_threads=1, **options)
    monkeypatch.setattr(shards, "has_latency", lambda plan: True)
    converted(source, tmp_path / "slow", **options)
    assert ways == {"ordered_map"}
    assert shard_bytes(tmp_path / "slow") == shard_bytes(tmp_path / "quick")


@pytest.mark.parametrize("threads", [1, 3])
def test_every_row_is_told_to_the_progress(tmp_path: Path, threads: int, ways: set[str]) -> None:
    source, options = COLLECTIONS["shapes"](tmp_path / "in")
    PROGRESS.reset()
    converted(source, tmp_path / "out", read_threads=threads, **options)
    assert (PROGRESS.records, PROGRESS.rejects) == (21, 4)


def test_a_mistake_that_is_found_while_shards_are_written_is_told_as_one(tmp_path: Path) -> None:
    rows = [("image", "label"), *[(f"{number % 20}.jpg", "a") for number in range(40)]]
    write_files(tmp_path, {f"{number}.jpg": b"" for number in range(20)})
    with pytest.raises(ManifestError, match=r"the id '\d+\.jpg' is used by .*rows\.csv:\d+ and by .*rows\.csv:\d+"):
        convert(write_table(tmp_path / "rows.csv", rows), tmp_path / "out", duplicates="fail", num_shards=20)


def test_relative_places_are_those_of_the_folder_that_each_conversion_starts_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {}
    for shift, folder in enumerate((tmp_path / "one", tmp_path / "two")):
        files = list(class_folders(4).values())
        write_files(folder / "photos/a", {f"{n}.jpg": files[n + shift] for n in range(len(files) - 1)})
        monkeypatch.chdir(folder)
        converted("photos", folder / "out", num_shards=4)
        made[folder.name] = shard_bytes(folder / "out")
    assert made["one"] != made["two"]
