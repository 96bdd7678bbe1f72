"""Images that occur more than once, found without holding all hashes."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_tfrecord.core.elements import WrittenShard
from beam_tfrecord.publishing.leaks import find_copies, repeated_hashes
from beam_tfrecord.storage import Storage

hashes = st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**56 - 1, 2**56, 2**63, 2**64 - 1])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(hashes, max_size=20), max_size=12), st.sampled_from([1, 7, 50, 1000]))
def test_the_limit_of_memory_does_not_show(parts: list[list[int]], in_memory: int) -> None:
    counts = Counter(value for part in parts for value in part)
    expected = {value for value, count in counts.items() if count > 1}
    assert repeated_hashes((np.array(part, np.uint64) for part in parts), in_memory) == expected


def test_temporary_files_are_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert repeated_hashes([np.array([5, 2**60, 5], np.uint64)] * 3, in_memory=2) == {5, 2**60}
    assert list(tmp_path.iterdir()) == []


def staged(out: Path, split: str, index: int, lines: list[tuple[str, str]]) -> WrittenShard:
    """A shard whose items have these content hashes (sixteen hex digits) and names."""
    path = out / ".staging" / "shards" / f"{split}-{index:05d}.items.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{content}\t{name}.csv:1\t{name}\n" for content, name in lines))
    return WrittenShard(split, index, "", True, False, False, len(lines), 1, 1, "")


@pytest.mark.parametrize("in_memory", [1, 100])
def test_copies_are_told_the_same_with_and_without_temporary_files(tmp_path: Path, in_memory: int) -> None:
    one, two, three = "00000000000000aa", "ff000000000000aa", "8000000000000001"
    infos = [
        staged(tmp_path, "test", 0, [(one, "a"), ("", "table row"), (three, "b")]),
        staged(tmp_path, "train", 0, [("0123456789abcdef", "c")]),
        staged(tmp_path, "train", 1, [(two, "d"), (one, "e"), (two, "f"), (two, "d")]),
    ]
    found = find_copies(infos, str(tmp_path), Storage(), in_memory)
    assert [(finding.code, finding.uri) for finding in found] == [("split_leak", "e"), ("duplicate_content", "f")]
    assert "a (a.csv:1) in split test" in found[0].message
    assert "d (d.csv:1)" in found[1].message
