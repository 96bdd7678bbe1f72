"""A publication may be broken off before or after any change of a file, and repeated."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.publishing.final_names import NamedShard, StagedFile, is_published, name_shards, publish_files
from beam_tfrecord.storage import Storage


class BrokenOffError(Exception):
    """Stands for a machine that goes away."""


class BreakingStorage(Storage):
    """Raises at the n-th change of a file: before it is made, or just after."""

    def break_at(self, number: int, *, after: bool) -> BreakingStorage:
        self.left = number
        self.after = after
        return self

    def _change(self, change: Callable[..., Any], *arguments: Any) -> Any:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise BrokenOffError
        result = change(*arguments)
        if self.left == 0:
            raise BrokenOffError
        return result

    def write_bytes(self, uri: str, data: bytes) -> None:
        self._change(super().write_bytes, uri, data)

    def rename(self, old: str, new: str) -> None:
        self._change(super().rename, old, new)

    def delete(self, uris: Any) -> None:
        self._change(super().delete, uris)

    def delete_tree(self, uri: str) -> None:
        self._change(super().delete_tree, uri)


def staged(out: Path, count: int, text: str) -> list[NamedShard]:
    """``count`` staged shards of one split, each with its text."""
    folder = out / ".staging" / "shards"
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for number in range(count):
        path = folder / f"train-{number:05d}.tfrecord"
        path.write_bytes(f"{text} {number}".encode())
        files.append(
            StagedFile(
                split="train",
                path=str(path),
                num_records=1,
                num_bytes=path.stat().st_size,
                payload_bytes=1,
                crc32c=f"{text}{number}",
            )
        )
    return name_shards(files, "none")


def metadata(shards: list[NamedShard], text: str) -> dict[str, bytes]:
    listed = [{"file": shard.file, "crc32c": shard.staged.crc32c} for shard in shards]
    conversion = json.dumps({"text": text, "splits": {"train": {"shards": listed}}, "files": ["features.json"]})
    return {
        "conversion.json": conversion.encode(),
        "features.json": text.encode(),
        "rejects.jsonl": b"",
        "dataset_info.json": text.encode(),
    }


def publish(out: Path, count: int, text: str, storage: Storage) -> list[NamedShard]:
    config = ConvertConfig.from_options({"input": "in", "output": str(out)})
    shards = staged(out, count, text)
    publish_files(shards, metadata(shards, text), config, storage)
    return shards


def state(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("old_count", "new_count"), [(0, 2), (3, 2), (2, 3), (2, 2)])
def test_a_publication_is_repeated_after_a_break_anywhere(
    tmp_path: Path, old_count: int, new_count: int, after: bool
) -> None:
    def with_old_dataset(name: str) -> Path:
        out = tmp_path / name
        out.mkdir()
        (out / "notes.txt").write_text("mine")
        if old_count:
            publish(out, old_count, "old", Storage())
        return out

    expected_folder = with_old_dataset("expected")
    publish(expected_folder, new_count, "new", Storage())
    expected = state(expected_folder)
    expected.pop("report.html", None)  # tells the folder's own place
    for number in range(1, 100):
        out = with_old_dataset(f"{number}")
        shards = staged(out, new_count, "new")
        config = ConvertConfig.from_options({"input": "in", "output": str(out)})
        files = metadata(shards, "new")
        try:
            publish_files(shards, files, config, BreakingStorage().break_at(number, after=after))
        except BrokenOffError:
            found = state(out)
            if found.get("dataset_info.json") == b"new":  # then everything else is there as well
                assert {name: found[name] for name in expected} == expected
            if not is_published(shards, str(out), Storage()):
                publish_files(shards, files, config, Storage())
        else:
            break
        found = state(out)
        found.pop("report.html", None)
        found = {name: data for name, data in found.items() if not name.startswith(".staging")}
        assert found == expected
    assert number > 8  # it was really broken off, many times


def test_another_job_takes_over_a_broken_publication(tmp_path: Path) -> None:
    """What the first one left under final names goes, also where the second has fewer shards."""
    config = ConvertConfig.from_options({"input": "in", "output": str(tmp_path)})
    first = staged(tmp_path, 4, "first")
    with pytest.raises(BrokenOffError):
        publish_files(first, metadata(first, "first"), config, BreakingStorage().break_at(6, after=True))
    assert (tmp_path / "train-00000-of-00004.tfrecord").exists()
    publish(tmp_path, 2, "second", Storage())
    assert sorted(path.name for path in tmp_path.glob("train-*")) == [
        "train-00000-of-00002.tfrecord",
        "train-00001-of-00002.tfrecord",
    ]


def test_the_same_shards_staged_again_are_not_taken_for_published(tmp_path: Path) -> None:
    shards = publish(tmp_path, 2, "same", Storage())
    assert is_published(shards, str(tmp_path), Storage())
    assert not is_published(staged(tmp_path, 2, "same"), str(tmp_path), Storage())
    assert not is_published(staged(tmp_path, 2, "else"), str(tmp_path), Storage())
