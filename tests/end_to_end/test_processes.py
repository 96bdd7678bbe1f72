"""The same files, however many processes of this machine make them."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord import convert, register_kind
from beam_tfrecord.annotations import _KINDS
from beam_tfrecord.annotations.captions import CaptionsKind
from beam_tfrecord.conversion import helpers, shared_work
from beam_tfrecord.conversion.planning.head_start import HEAD_ITEMS
from beam_tfrecord.conversion.planning.helped_reading import HELPED_ITEMS
from beam_tfrecord.conversion.writing import shards
from beam_tfrecord.conversion.writing.progress import PROGRESS
from beam_tfrecord.errors import ManifestError
from pipelines.convert import main
from tests.end_to_end.datasets import converted, shard_bytes
from tests.engines import COLLECTIONS, Files, converted_on, differing
from tests.samples import class_folders, write_files, write_table


@pytest.fixture(autouse=True)
def no_helper_is_left() -> Iterator[None]:
    yield
    helpers.close_all()


@pytest.fixture
def helped(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fills with what helpers are asked to do."""
    asked: list[str] = []
    ask = helpers.Helper.ask

    def noted(self: helpers.Helper, arguments: Any) -> None:
        asked.append(type(arguments[0]).__name__)
        ask(self, arguments)

    monkeypatch.setattr(helpers.Helper, "ask", noted)
    return asked


def without_option(files: Files) -> Files:
    """The files, but for the line that tells the number of processes."""
    told = json.loads(files["conversion.json"])
    told["options"].pop("processes")
    return {**files, "conversion.json": json.dumps(told).encode(), "report.html": b""}


@pytest.mark.parametrize("kind", COLLECTIONS)
def test_helpers_make_the_files_that_one_process_makes(
    tmp_path: Path, helped: list[str], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So little is to do that all of it would be done here before a helper takes anything.
    monkeypatch.setattr(shared_work.Crew, "_waiting_task", lambda crew: None)
    monkeypatch.setattr("beam_tfrecord.conversion.writing.crew.is_even", lambda plan, processes: True)
    shards = {} if kind == "shapes" else {"num_shards": 4}
    alone = converted_on(None, tmp_path, kind, processes=1, **shards)
    assert not helped
    together = converted_on(None, tmp_path, kind, processes=3, **shards)
    assert "ShardTask" in helped
    assert differing(without_option(together), without_option(alone)) == []


@pytest.mark.parametrize("kind", COLLECTIONS)
def test_helpers_make_records_of_a_single_shard(tmp_path: Path, helped: list[str], kind: str) -> None:
    alone = converted_on(None, tmp_path, kind, processes=1, num_shards=1)
    assert not helped
    together = converted_on(None, tmp_path, kind, processes=3, num_shards=1)
    assert "list" in helped  # of items
    assert "ShardTask" not in helped
    assert differing(without_option(together), without_option(alone)) == []


def test_a_long_table_is_read_by_helpers_too(tmp_path: Path, helped: list[str]) -> None:
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "name", "split"])
        for number in range(3 * HELPED_ITEMS):
            writer.writerow(
                [number if number % 1000 else "old", f"name {number % 7}", "test" if number % 5 else "train"]
            )
    options = {"columns": "age:int64,name:string", "num_shards": "train=2,test=3"}
    alone = converted(tmp_path / "rows.csv", tmp_path / "one", processes=1, **options)
    together = converted(tmp_path / "rows.csv", tmp_path / "three", processes=3, **options)
    assert {"ItemBatch", "ShardTask"} <= set(helped)
    assert (together.written, together.rejected) == (alone.written, alone.rejected)
    assert sum(alone.rejected.values()) == 13  # of 12,288 rows every thousandth, the first one included
    assert shard_bytes(tmp_path / "three") == shard_bytes(tmp_path / "one")
    assert (tmp_path / "three/rejects.jsonl").read_bytes() == (tmp_path / "one/rejects.jsonl").read_bytes()


def test_the_command_has_the_first_rows_read_in_advance(tmp_path: Path, helped: list[str]) -> None:
    rows = HEAD_ITEMS + 1_000
    lines = ["name,age", *(f"name {number % 7},{number}" for number in range(rows))]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    for processes in ("1", "2"):
        options = ["--columns", "age:int64,name:string", "--processes", processes, "--num_shards", "3"]
        command = ["--input", str(tmp_path / "rows.csv"), "--output", str(tmp_path / processes), *options]
        assert main([*command, "--quiet"]) == 0
        assert helped[:1] == ([] if processes == "1" else ["int"])  # the number of the input
    assert shard_bytes(tmp_path / "1") == shard_bytes(tmp_path / "2")
    stated = json.loads((tmp_path / "2/conversion.json").read_bytes())
    assert stated["rows"] == rows


@pytest.mark.parametrize("whole", [True, False])
def test_every_row_is_told_to_the_progress_wherever_it_is_written(
    tmp_path: Path, helped: list[str], whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_work.Crew, "_waiting_task", lambda crew: None)  # as above
    monkeypatch.setattr("beam_tfrecord.conversion.writing.crew.is_even", lambda plan, processes: whole)
    source, options = COLLECTIONS["shapes"](tmp_path / "in")
    PROGRESS.reset()
    converted(source, tmp_path / "out", processes=2, **options)
    assert helped[-1] == ("ShardTask" if whole else "list")
    assert (PROGRESS.records, PROGRESS.rejects) == (21, 4)


def test_a_mistake_that_a_helper_finds_is_told_as_one(tmp_path: Path) -> None:
    rows = [("image", "label"), *[(f"{number % 20}.jpg", "a") for number in range(40)]]
    write_files(tmp_path, {f"{number}.jpg": b"" for number in range(20)})
    with pytest.raises(ManifestError, match=r"the id '\d+\.jpg' is used by .*rows\.csv:\d+ and by .*rows\.csv:\d+"):
        convert(
            write_table(tmp_path / "rows.csv", rows), tmp_path / "out", duplicates="fail", num_shards=20, processes=2
        )


def test_where_reads_wait_they_are_done_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, options = COLLECTIONS["shapes"](tmp_path / "in")
    converted(source, tmp_path / "quick", processes=2, **options)
    ahead = []
    do_ahead = shards.ShardWriter._ahead

    def noted(self: shards.ShardWriter, run: Any, tasks: Any) -> Any:
        ahead.append(os.getpid())
        return do_ahead(self, run, tasks)

    monkeypatch.setattr(shards.ShardWriter, "_ahead", noted)
    monkeypatch.setattr(shards, "SLOW_READ", 0)
    converted(source, tmp_path / "slow", processes=2, **options)
    assert ahead
    assert shard_bytes(tmp_path / "slow") == shard_bytes(tmp_path / "quick")


def test_a_kind_that_only_this_process_knows_is_not_given_to_helpers(tmp_path: Path, helped: list[str]) -> None:
    class Remark(CaptionsKind):
        name = "remark"

    source, options = COLLECTIONS["shapes"](tmp_path / "in")
    register_kind(Remark())
    try:
        converted(source, tmp_path / "out", processes=3, **options)
    finally:
        del _KINDS["remark"]
    assert not helped


def test_relative_places_are_those_of_the_folder_that_each_conversion_starts_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {}
    for shift, folder in enumerate((tmp_path / "one", tmp_path / "two")):
        files = list(class_folders(4).values())
        write_files(folder / "photos/a", {f"{n}.jpg": files[n + shift] for n in range(len(files) - 1)})
        monkeypatch.chdir(folder)
        for processes in (3, 1):
            converted("photos", folder / f"out{processes}", processes=processes, num_shards=4)
            made[folder.name, processes] = shard_bytes(folder / f"out{processes}")
    assert made["one", 3] == made["one", 1] != made["two", 1]
    assert made["two", 3] == made["two", 1]
