"""Ranges of records: the right ones whatever leads to them, and every fault with its place."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from beam_tfrecord.errors import DatasetError
from beam_tfrecord.storage import Storage
from beam_tfrecord.tools.resharding.ranges import Segment, SourceFile
from beam_tfrecord.tools.resharding.shards import count_records, read_segment
from tests.tiny_reader import frame

RECORDS = [bytes([number]) * (number * 5 % 17) for number in range(12)]
FRAMES = [frame(record) for record in RECORDS]
OFFSETS = [sum(map(len, FRAMES[:number])) for number in range(len(FRAMES) + 1)]
PACKED: dict[str, Callable[[bytes], bytes]] = {"plain": bytes, "gzip": gzip.compress, "zlib": zlib.compress}


def write(folder: Path, data: bytes, *, kind: str = "plain", index: bool = False) -> str:
    path = folder / "file"
    path.write_bytes(PACKED[kind](data))
    if index:
        lines = [f"{start} {len(own)}\n" for start, own in zip(OFFSETS, FRAMES, strict=False)]
        (folder / "file.idx").write_text("".join(lines))
    return str(path)


def read(uri: str, start: int, stop: int, total: int = len(RECORDS)) -> list[tuple[int, int, bytes]]:
    records = read_segment(Segment(0, uri, "its name", start, stop, total), Storage())
    return [(record.index, record.offset, record.data) for record in records]


@pytest.mark.parametrize(("kind", "index"), [("plain", False), ("plain", True), ("gzip", False), ("zlib", False)])
def test_every_range_gives_its_records_with_their_places(tmp_path: Path, kind: str, index: bool) -> None:
    uri = write(tmp_path, b"".join(FRAMES), kind=kind, index=index)
    expected = list(zip(range(len(RECORDS)), OFFSETS[:-1], RECORDS, strict=True))
    for start in range(len(RECORDS)):
        for stop in range(start + 1, len(RECORDS) + 1):
            assert read(uri, start, stop) == expected[start:stop]


@pytest.mark.parametrize(("kind", "index"), [("plain", False), ("plain", True), ("gzip", False)])
def test_every_flipped_byte_of_the_range_is_found(tmp_path: Path, kind: str, index: bool) -> None:
    whole = b"".join(FRAMES)
    for place in range(OFFSETS[4], OFFSETS[6]):
        damaged = bytearray(whole)
        damaged[place] ^= 16
        uri = write(tmp_path, bytes(damaged), kind=kind, index=index)
        number = 4 if place < OFFSETS[5] else 5
        with pytest.raises(DatasetError, match=rf"^its name: record {number} at byte {OFFSETS[number]}: .*verify"):
            read(uri, 4, 6)


def test_damage_of_data_before_the_range_is_not_looked_at_but_damaged_lengths_are(tmp_path: Path) -> None:
    damaged = bytearray(b"".join(FRAMES))
    damaged[OFFSETS[2] + 12] ^= 1
    assert [data for *_, data in read(write(tmp_path, bytes(damaged)), 6, 8)] == RECORDS[6:8]
    damaged[OFFSETS[2]] ^= 1
    with pytest.raises(DatasetError, match=f"its name: record 2 at byte {OFFSETS[2]}: the checksum of its length"):
        read(write(tmp_path, bytes(damaged)), 6, 8)


@pytest.mark.parametrize("kind", PACKED)
def test_another_number_of_records_than_stated_is_an_error(tmp_path: Path, kind: str) -> None:
    uri = write(tmp_path, b"".join(FRAMES), kind=kind)
    for start in (0, 5):
        with pytest.raises(DatasetError, match="holds 12 records, but 13 are stated"):
            read(uri, start, 13, total=13)
        with pytest.raises(DatasetError, match="holds 12 records, but 11 are stated"):
            read(uri, start, 11, total=11)
    with pytest.raises(DatasetError, match="holds 12 records, but 20 are stated"):
        read(uri, 15, 20, total=20)


def test_a_missing_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="its name does not exist"):
        read(str(tmp_path / "nothing"), 0, 1)


@pytest.mark.parametrize("kind", PACKED)
def test_records_are_counted(tmp_path: Path, kind: str) -> None:
    uri = write(tmp_path, b"".join(FRAMES), kind=kind)
    found = count_records(SourceFile(0, "train", "train", uri, "its name"), Storage())
    assert (found.records, found.payload_bytes) == (12, sum(map(len, RECORDS)))
    write(tmp_path, b"".join(FRAMES)[:-1], kind=kind)
    with pytest.raises(DatasetError, match=f"its name: record 11 at byte {OFFSETS[11]}"):
        count_records(SourceFile(0, "train", "train", uri, "its name"), Storage())
