"""Extracting where dataset and output lie in an object store, and in worker processes."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from beam_tfrecord.storage import Storage
from pipelines.main import main
from tests.emulators import Emulator
from tests.end_to_end.datasets import shard_bytes
from tests.end_to_end.reading.kinds import convert_kind
from tests.integration.test_storage_objects import lead_to


@pytest.mark.parametrize("server", ["gcs_server", "s3_server"])
def test_a_dataset_in_a_store_is_extracted_there_and_comes_back(
    server: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    emulator: Emulator = request.getfixturevalue(server)
    lead_to(emulator, emulator.endpoint, monkeypatch)
    out = convert_kind("masks", tmp_path)
    storage, bucket = Storage(), f"{emulator.scheme}://{emulator.new_bucket()}"
    for path in out.iterdir():
        storage.write_bytes(f"{bucket}/dataset/{path.name}", path.read_bytes())
    assert main(["extract", f"{bucket}/dataset", "--output", f"{bucket}/folder/", "--quiet"]) == 0
    names = [info.uri.removeprefix(f"{bucket}/folder/") for info in storage.walk(f"{bucket}/folder")]
    assert sorted(name.partition("/")[0] for name in names) == [
        *("convert.args", "images", "images", "images", "labels.txt", "manifest.jsonl", "masks", "masks", "masks")
    ]
    assert main(["convert", f"@{bucket}/folder/convert.args", "--output", f"{tmp_path}/again", "--quiet"]) == 0
    assert shard_bytes(tmp_path / "again") == shard_bytes(out)
    assert main(["extract", f"{bucket}/dataset", "--output", f"{bucket}/folder", "--quiet"]) == 2


@pytest.mark.slow
def test_worker_processes_write_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = convert_kind("classes", tmp_path)
    assert main(["extract", str(out), "--output", str(tmp_path / "e"), "--quiet"]) == 0
    workers = ["--direct_num_workers=2", "--direct_running_mode=multi_processing"]
    assert main(["extract", str(out), "--output", str(tmp_path / "f"), "--quiet", *workers]) == 0
    commands = capsys.readouterr().out.splitlines()[::2]
    assert [shlex.split(command)[3] for command in commands] == ["--format=extracted"] * 2
    first, second = (contents(tmp_path / name) for name in "ef")
    assert first == second
    assert len(first) == 14


def contents(folder: Path) -> dict[str, bytes]:
    """All files but the flags, which name the folder."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".args"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
