"""Index files for files that are there already."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest

from beam_tfrecord.datasets.indexing import write_index_file
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.storage import Storage
from beam_tfrecord.tfrecord import RecordFault
from tests.tiny_reader import frame

RECORDS = [b"", b"a", b"b" * 300, b"c" * 5]


def index_of(path: Path) -> int:
    return write_index_file(str(path), path.name, Storage())


def test_every_line_leads_to_its_record(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    path.write_bytes(b"".join(map(frame, RECORDS)))
    assert index_of(path) == 4
    data = path.read_bytes()
    lines = (tmp_path / "x.tfrecord.idx").read_text().splitlines()
    pieces = [data[int(start) : int(start) + int(size)] for start, size in map(str.split, lines)]
    assert pieces == list(map(frame, RECORDS))


def test_a_file_without_records_has_an_empty_index(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    path.write_bytes(b"")
    assert index_of(path) == 0
    assert (tmp_path / "x.tfrecord.idx").read_bytes() == b""


@pytest.mark.parametrize(("pack", "told"), [(gzip.compress, "gzip"), (zlib.compress, "zlib")])
def test_a_compressed_file_is_refused_by_its_bytes(tmp_path: Path, pack, told: str) -> None:
    path = tmp_path / "x.tfrecord"
    path.write_bytes(pack(b"".join(map(frame, RECORDS))))
    with pytest.raises(DatasetError, match=f"compressed with {told}.*--compression none"):
        index_of(path)
    assert [item.name for item in tmp_path.iterdir()] == ["x.tfrecord"]


def test_a_damaged_file_gets_no_index_and_its_fault_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    data = b"".join(map(frame, RECORDS))
    start = len(frame(RECORDS[0]) + frame(RECORDS[1]))
    for damaged in (data[: start + 100], data[: start + 4], data[:start] + b"\1" + data[start + 1 :]):
        path.write_bytes(damaged)
        with pytest.raises(RecordFault) as caught:
            index_of(path)
        assert (caught.value.record, caught.value.offset) == (2, start)
    assert [item.name for item in tmp_path.iterdir()] == ["x.tfrecord"]


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="cannot be read"):
        index_of(tmp_path / "x.tfrecord")
