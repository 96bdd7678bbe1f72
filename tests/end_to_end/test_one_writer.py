"""One run at a time writes an output, whatever the command."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from beam_tfrecord import ConvertDataset, StorageError, convert, prepare
from beam_tfrecord.conversion.planning.blocks import BlockItem
from beam_tfrecord.conversion.writing import shards
from beam_tfrecord.core.elements import ShardInfo
from beam_tfrecord.storage import Storage
from beam_tfrecord.storage.lease import LeaseKey, hold, lease_uri
from beam_tfrecord.transforms import dataset
from beam_tfrecord.transforms.running import make_options, make_pipeline, run_watched
from pipelines.main import main
from tests.contention import run_trials
from tests.end_to_end.datasets import converted, shard_bytes
from tests.samples import class_folders, write_files


@pytest.mark.slow
def test_of_several_runs_at_once_exactly_one_publishes(tmp_path: Path) -> None:
    counts = run_trials(3, str(tmp_path / "outputs"), tmp_path, seed=5)
    assert counts.faults == []
    assert counts.trials == 3


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_files(folder / "pics", class_folders(2))
    for name in ("one", "two"):
        assert main(["convert", "--input", f"{folder}/pics", "--output", f"{folder}/{name}", "--quiet"]) == 0
    assert main(["pack", f"{folder}/one", "--output", f"{folder}/one.tar", "--quiet"]) == 0
    return folder


# command line, and whether what it writes is a file; OUT is the output.
COMMANDS = {
    "convert": (["convert", "--input=pics", "--output=OUT"], False),
    "reshard": (["reshard", "one", "--output=OUT"], False),
    "merge": (["merge", "one", "two", "--output=OUT"], False),
    "extract": (["extract", "one", "--output=OUT"], False),
    "unpack": (["unpack", "one.tar", "--output=OUT"], False),
    "pack": (["pack", "one", "--output=OUT.tar"], True),
    "report": (["report", "one", "--output=OUT.html"], True),
    "report of its own": (["report", "one"], False),
    "index": (["index", "one"], False),
}


def line_of(command: str, out: Path) -> tuple[list[str], str, bool]:
    """(arguments, place that is written, whether it is a file)."""
    arguments, is_file = COMMANDS[command]
    line = [part.replace("OUT", str(out)) for part in arguments]
    place = line[-1].partition("=")[2] or "one"
    return line, place, is_file


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_writes_is_told_who_writes_there(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.chdir(made)
    line, place, is_file = line_of(command, tmp_path / "out")
    with hold(place, Storage(), "beam-tfrecord something", is_file=is_file):
        assert main([*line, "--quiet"]) == 1
        (said,) = capfd.readouterr().err.splitlines()
        assert "another run writes there: beam-tfrecord something, process " in said
        assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(
            path.name for path in ([] if place == "one" else [Path(lease_uri(place, is_file=is_file))])
        ) + ([] if is_file or place == "one" else ["out"])
    assert main([*line, "--quiet"]) == 0
    assert not [path for path in (*made.rglob("*"), *tmp_path.rglob("*")) if "lease" in path.name]


@pytest.mark.parametrize("command", ["convert", "reshard", "merge", "extract", "unpack", "pack", "report"])
def test_a_run_that_lost_its_place_publishes_nothing(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], command: str
) -> None:
    """The lease becomes another's once the run has it."""
    monkeypatch.chdir(made)
    line, place, is_file = line_of(command, tmp_path / "out")
    uri, write_if = lease_uri(place, is_file=is_file), Storage.write_if

    def lose(self: Storage, uri_written: str, data: bytes, version: str | None) -> bool:
        written = write_if(self, uri_written, data, version)
        if version is None:
            Path(uri).write_text(json.dumps({**json.loads(data), "id": "another", "command": "somebody else"}))
        return written

    monkeypatch.setattr(Storage, "write_if", lose)
    assert main([*line, "--quiet"]) == 1
    (said,) = capfd.readouterr().err.splitlines()
    assert "is held by somebody else, process " in said
    assert "publishes nothing" in said
    found = {path.name for path in tmp_path.rglob("*") if path.is_file() and ".staging" not in path.parts}
    assert not {name for name in found if name.endswith((".tfrecord", ".tar", ".html")) and "out" in name}
    assert not {"dataset_info.json", "conversion.json", "manifest.jsonl"} & found
    assert Path(uri).exists()


def test_a_failed_run_leaves_no_lease(tmp_path: Path) -> None:
    (tmp_path / "pics").mkdir()
    (tmp_path / "pics/a.jpg").write_bytes(b"no image")
    assert main(["convert", "--input", f"{tmp_path}/pics", "--output", f"{tmp_path}/out", "--quiet"]) == 1
    assert (tmp_path / "out/.staging").exists()
    assert not list(tmp_path.rglob("*lease*"))


def test_two_threads_of_one_program_are_two_runs(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = []
    write: Callable[..., Any] = shards.ShardWriter.write

    def meanwhile(self: shards.ShardWriter, *arguments: Any, **options: Any) -> Any:
        with pytest.raises(StorageError, match=r"another run writes there: beam_tfrecord\.convert") as told:
            convert(str(made / "pics"), tmp_path / "out")
        refused.append(told.value)
        return write(self, *arguments, **options)

    monkeypatch.setattr(shards.ShardWriter, "write", meanwhile)
    assert convert(str(made / "pics"), tmp_path / "out").status == "published"
    assert refused


def test_a_job_that_was_prepared_gives_its_place_back_at_its_end(made: Path, tmp_path: Path) -> None:
    old = prepare(input=str(made / "pics"), output=str(tmp_path / "out"))
    with pytest.raises(StorageError, match=r"beam_tfrecord\.prepare"):
        convert(str(made / "pics"), tmp_path / "out")
    job = prepare(input=str(made / "pics"), output=str(tmp_path / "out"))
    for prepared, is_last in ((old, False), (job, True)):
        pipeline = make_pipeline(make_options([]), prepared.config)
        _ = pipeline | "ConvertDataset" >> ConvertDataset(prepared)
        if is_last:
            run_watched(pipeline)
        else:
            with pytest.raises(StorageError, match="publishes nothing"):
                run_watched(pipeline)
    assert (tmp_path / "out/dataset_info.json").exists()
    assert not list(tmp_path.rglob("*lease*"))


@pytest.mark.parametrize("max_rejects", ["10%", "0"])
def test_a_step_that_died_before_it_gave_the_place_back_does_so_when_it_runs_again(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, max_rejects: str
) -> None:
    """An engine runs a step anew that it takes for lost. What the first run of it has published is not done again."""
    publish: Callable[..., Any] = dataset.publish_dataset
    end_of_job: Callable[..., Any] = LeaseKey.end_of_job
    left: list[list[str]] = []

    def dies(key: LeaseKey, storage: Storage) -> None:
        left.append(sorted(path.name for path in (tmp_path / "out").glob(".*lease*")))

    def twice(*arguments: Any) -> Any:
        with monkeypatch.context() as first:
            first.setattr(LeaseKey, "end_of_job", dies)
            told = publish(*arguments)
        assert publish(*arguments).status == told.status
        return told

    shutil.copytree(made / "pics", tmp_path / "pics")
    if max_rejects == "0":
        next((tmp_path / "pics").rglob("*.jpg")).write_bytes(b"")
    monkeypatch.setattr(dataset, "publish_dataset", twice)
    job = prepare(input=str(tmp_path / "pics"), output=str(tmp_path / "out"), max_rejects=max_rejects)
    pipeline = make_pipeline(make_options([]), job.config)
    _ = pipeline | "ConvertDataset" >> ConvertDataset(job)
    run_watched(pipeline)
    assert LeaseKey.end_of_job is end_of_job
    assert left == [[".lease.json"]]  # it is the last that goes
    assert (tmp_path / "out/dataset_info.json").exists() == (max_rejects == "10%")
    assert not list(tmp_path.rglob("*lease*"))


def test_a_run_that_lost_its_lease_unawares_touches_no_staged_file_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path / "pics", class_folders(4))
    converted(tmp_path / "pics", tmp_path / "alone", num_shards=2)
    write = shards.ShardWriter.write

    def disturbed(self: shards.ShardWriter, split: str, index: int, items: Iterable[BlockItem]) -> ShardInfo:
        kept = list(items)
        info = write(self, split, index, kept)
        assert self.owner
        config = replace(self.config, shards=replace(self.config.shards, compression="gzip"))
        sleeper = replace(self, config=config, owner="sleeper")  # it was stopped before it wrote this shard
        write(sleeper, split, index, kept[1:])
        return info

    monkeypatch.setattr(shards.ShardWriter, "write", disturbed)
    converted(tmp_path / "pics", tmp_path / "out", num_shards=2)
    assert shard_bytes(tmp_path / "out") == shard_bytes(tmp_path / "alone")


def test_index_writes_nothing_once_its_lease_is_gone(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made / "one", "one", ignore=shutil.ignore_patterns("*.idx"))  # which another test may have made
    opened = Storage.open

    def taken_over(self: Storage, uri: str) -> BinaryIO:
        if uri.endswith(".tfrecord"):
            Path(lease_uri("one")).unlink(missing_ok=True)
        return opened(self, uri)

    monkeypatch.setattr(Storage, "open", taken_over)
    assert main(["index", "one"]) == 1
    assert "the lease of this run is gone" in capsys.readouterr().err
    assert not list(Path("one").glob("*.idx"))
