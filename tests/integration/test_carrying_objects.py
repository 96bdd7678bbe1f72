"""Datasets that are resharded and packed from one object store folder to another."""

from __future__ import annotations

from pathlib import Path

import pytest

from beam_tfrecord.storage import Storage
from pipelines.main import main
from tests.emulators import Emulator
from tests.end_to_end.reading.kinds import convert_kind
from tests.integration.test_storage_objects import lead_to


@pytest.mark.slow
@pytest.mark.parametrize("server", ["gcs_server", "s3_server"])
def test_a_dataset_is_resharded_packed_and_unpacked_in_a_store(
    server: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    emulator: Emulator = request.getfixturevalue(server)
    lead_to(emulator, emulator.endpoint, monkeypatch)
    local = convert_kind("classes", tmp_path, index=True)
    storage, bucket = Storage(), f"{emulator.scheme}://{emulator.new_bucket()}"

    def lines(command: str, *arguments: str) -> None:
        assert main([command, *arguments]) == 0

    lines("pack", str(local), "--output", f"{bucket}/shapes.tar.gz", "--quiet")
    lines("unpack", f"{bucket}/shapes.tar.gz", "--output", f"{bucket}/shapes")
    names = [path.name for path in local.iterdir()]
    assert storage.list_folder(f"{bucket}/shapes") == sorted(names)
    for name in names:
        assert storage.read(f"{bucket}/shapes/{name}") == (local / name).read_bytes()
    flags = ["--num_shards", "3", "--compression", "gzip"]
    lines("reshard", f"{bucket}/shapes", "--output", f"{bucket}/three", *flags)
    lines("reshard", str(local), "--output", str(tmp_path / "three"), *flags)
    shards = [path.name for path in (tmp_path / "three").glob("*.tfrecord.gz")]
    assert len(shards) == 3
    for name in shards:
        assert storage.read(f"{bucket}/three/{name}") == (tmp_path / "three" / name).read_bytes()
    assert ".staging/" not in storage.list_folder(f"{bucket}/three")

    files = {name: storage.read(f"{bucket}/three/{name}") for name in storage.list_folder(f"{bucket}/three")}
    storage.write_bytes(f"{bucket}/three/{shards[0]}", b"x" + files[shards[0]][1:])
    assert main(["pack", f"{bucket}/three", "--output", f"{bucket}/damaged.tar", "--quiet"]) == 1
    assert "damaged.tar" not in storage.list_folder(bucket)
