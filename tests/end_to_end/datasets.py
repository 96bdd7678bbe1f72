"""Running a conversion in a test and looking at what it left, with readers of the tests' own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord import StorageError, Summary, convert
from beam_tfrecord.storage import Storage
from tests.tiny_reader import crc32c, decode, read_shard

SHARD = re.compile(r"(?P<split>.+)-\d{5}-of-(?P<count>\d{5})\.tfrecord(?:\.gz|\.zz)?")


def converted(source: Any, output: Path, **options: Any) -> Summary:
    """Convert, and check what must hold for every conversion."""
    places = [str(place) for place in source] if isinstance(source, tuple) else source
    summary = convert(str(places) if isinstance(places, Path) else places, output, **options)
    check_conservation(summary, output)
    return summary


def check_conservation(summary: Summary, output: Path) -> None:
    """rows == written + rejects + excluded, in the summary, in conversion.json and in the files themselves."""
    rejected, excluded = sum(summary.rejected.values()), sum(summary.excluded.values())
    assert summary.rows == summary.written + rejected + excluded
    folder = output if summary.status == "published" else output / ".staging"
    told = conversion(folder)
    assert (told["rows"], told["written"], told["rejected"]["total"]) == (summary.rows, summary.written, rejected)
    assert sum(told["rejected"]["by_code"].values()) == rejected
    assert (told["excluded"]["total"], sum(told["excluded"]["by_option"].values())) == (excluded, excluded)
    assert sum(told["rows_by_input"].values()) == summary.rows
    check_accounts(told)
    objects = told.get("objects", {"found": 0})
    if told["message"] == "Example":
        assert objects["found"] == sum(count for what, count in objects.items() if what != "found")
    assert len(findings(folder, "rejects")) == rejected
    assert len(findings(folder, "warnings")) == sum(told["warnings"].values())
    if summary.status != "published":
        assert not shard_files(output)
        return
    found = {path.name: path for path in shard_files(output)}
    listed = [(split, shard) for split, facts in told["splits"].items() for shard in facts["shards"]]
    assert sorted(found) == sorted(shard["file"] for _, shard in listed)
    for split, shard in listed:
        path = found[shard["file"]]
        named = SHARD.fullmatch(path.name)
        assert named is not None
        assert named["split"] == split
        assert int(named["count"]) == len(told["splits"][split]["shards"])
        assert shard["records"] == len(read_shard(path)) > 0
        assert shard["bytes"] == path.stat().st_size
        assert shard["crc32c"] == f"{crc32c(path.read_bytes()):08x}"
    assert sum(shard["records"] for _, shard in listed) == summary.written
    assert not (output / ".staging").exists()


def check_accounts(told: dict[str, Any]) -> None:
    """found == used + named, for every input and every kind of thing; each surprise is a warning."""
    for account in told["inputs"]:
        kinds = {*account["found"], *account["used"], *account["named"]}
        for kind in kinds:
            used = sum(account["used"].get(kind, {}).values())
            named = sum(reason["count"] for reason in account["named"].get(kind, {}).values())
            assert account["found"].get(kind, 0) == used + named, (account["uri"], kind)
        assert account["decisions"][0]["what"] == "format"
        assert {surprise["code"] for surprise in account["surprises"]} <= set(told["warnings"])


def conversion(folder: Path) -> dict[str, Any]:
    """conversion.json."""
    loaded: dict[str, Any] = json.loads((folder / "conversion.json").read_text("utf-8"))
    return loaded


def findings(folder: Path, kind: str = "rejects") -> list[dict[str, str]]:
    """The lines of rejects.jsonl or warnings.jsonl."""
    return [json.loads(line) for line in (folder / f"{kind}.jsonl").read_text("utf-8").splitlines()]


def shard_files(output: Path) -> list[Path]:
    """The shards under their final names, sorted."""
    return sorted(path for path in output.iterdir() if SHARD.fullmatch(path.name)) if output.is_dir() else []


def shard_bytes(output: Path) -> dict[str, bytes]:
    """The bytes of each shard."""
    return {path.name: path.read_bytes() for path in shard_files(output)}


def records(output: Path, split: str | None = None) -> list[dict[str, list[Any]]]:
    """The records of a split (or of all), in shard order."""
    paths = [path for path in shard_files(output) if split is None or path.name.startswith(f"{split}-")]
    return [decode(record) for path in paths for record in read_shard(path)]


def by_name(output: Path) -> dict[str, dict[str, list[Any]]]:
    """Records by image/filename."""
    return {record["image/filename"][0].decode(): record for record in records(output)}


def texts(record: dict[str, list[Any]], key: str = "image/class/text") -> list[str]:
    """The text values of a feature."""
    return [value.decode() for value in record[key]]


def break_renaming(patched: pytest.MonkeyPatch, at: int) -> None:
    """From now on it is as if the machine went away when a file is to be renamed for the ``at``-th time."""
    rename, left = Storage.rename, [at]

    def breaking(self: Storage, old: str, new: str) -> None:
        left[0] -= 1
        if not left[0]:
            raise StorageError("the machine went away")
        rename(self, old, new)

    patched.setattr(Storage, "rename", breaking)
