"""Reading a dataset, and its ArrayRecord twins, where they lie in an object store."""

from __future__ import annotations

from pathlib import Path

import pytest

from beam_tfrecord import read
from beam_tfrecord.storage import Storage
from tests.emulators import Emulator
from tests.end_to_end.reading.kinds import convert_kind
from tests.integration.test_storage_objects import lead_to


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("server", ["gcs_server", "s3_server"])
def test_records_are_read_at_random_and_in_order(
    server: str, index: bool, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    emulator: Emulator = request.getfixturevalue(server)
    lead_to(emulator, emulator.endpoint, monkeypatch)
    out = convert_kind("classes", tmp_path, index=index)
    storage, folder = Storage(), f"{emulator.scheme}://{emulator.new_bucket()}/shapes"
    for path in out.iterdir():
        storage.write_bytes(f"{folder}/{path.name}", path.read_bytes())
    local, reader = list(read(out)), read(folder)
    assert [reader[number] for number in (11, 0, 5)] == [local[number] for number in (11, 0, 5)]
    assert list(reader) == local
    assert list(read(folder, "train[2:8]")) == local[2:8]


@pytest.mark.parametrize("server", ["gcs_server", "s3_server"])
def test_twins_are_written_to_the_store(
    server: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("array_record.python.array_record_module")
    emulator: Emulator = request.getfixturevalue(server)
    lead_to(emulator, emulator.endpoint, monkeypatch)
    out = convert_kind("classes", tmp_path, array_record=True)
    folder = f"{emulator.scheme}://{emulator.new_bucket()}/shapes"
    convert_kind("classes", tmp_path / "again", array_record=True, output=folder)
    storage = Storage()
    names = [path.name for path in out.glob("*.array_record")]
    assert len(names) == 4
    assert sorted(names) == [name for name in storage.list_folder(folder) if name.endswith(".array_record")]
    for name in names:
        assert storage.read(f"{folder}/{name}") == (out / name).read_bytes()
