"""Files damaged at every place."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest

from beam_tfrecord.annotations.base import FeatureSpec
from beam_tfrecord.tfrecord.example import encode_example
from tests.handmade import Handmade, Record, make_dataset, small_dataset, texts, whole, write_shard
from tests.verifying_tools import codes_of, faults_of, verdict_of

TABLE = (FeatureSpec("image/source_id", "bytes", (), "text"), FeatureSpec("n", "int64"))


def table(folder: Path, count: int = 3, compression: str = "none") -> Handmade:
    """A dataset of one small shard without images: few bytes, so that each can be damaged."""
    rows: list[Record] = [{"image/source_id": texts(f"id{number}"), "n": whole(number)} for number in range(count)]
    return make_dataset(folder, {"train": [rows]}, specs=TABLE, compression=compression)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Handmade:
    return table(tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("compression", ["none", "gzip", "zlib"])
def test_a_good_dataset_has_no_faults(tmp_path: Path, compression: str) -> None:
    dataset = small_dataset(tmp_path, compression=compression)
    verdict = verdict_of(dataset.folder)
    assert verdict.faults == ()
    assert (verdict.records, verdict.shards, verdict.images) == (9, 3, 9)
    assert verdict.notes == ()


def test_a_flipped_byte_is_named_with_its_record_wherever_it_is(plain: Handmade) -> None:
    (name,) = plain.shards
    path = plain.folder / name
    good = path.read_bytes()
    places = plain.places[name]
    try:
        for position in range(len(good)):
            path.write_bytes(good[:position] + bytes([good[position] ^ 0x10]) + good[position + 1 :])
            faults = faults_of(plain.folder)
            record = next(number for number, (start, size) in enumerate(places) if position < start + size)
            assert faults, f"byte {position} was flipped, and nothing was found"
            first = faults[0]
            assert (first.file, first.record, first.offset) == (name, record, places[record][0]), position
            assert first.code == "damaged_record", position
            assert "checksum" in first.cause or "ends" in first.cause, position
            assert {fault.code for fault in faults} <= {"damaged_record", "wrong_count"}, position
    finally:
        path.write_bytes(good)


def test_a_file_cut_at_any_length_is_found(plain: Handmade) -> None:
    (name,) = plain.shards
    path = plain.folder / name
    good = path.read_bytes()
    ends = {0, *(start + size for start, size in plain.places[name])}
    try:
        for length in range(len(good)):
            path.write_bytes(good[:length])
            faults = faults_of(plain.folder)
            whole_records = sum(start + size <= length for start, size in plain.places[name])
            counts = [fault.cause for fault in faults if fault.code == "wrong_count" and fault.file == name]
            assert counts == [f"the file has {whole_records} whole records, but 3 are stated"], length
            damaged = [fault.record for fault in faults if fault.code == "damaged_record"]
            assert damaged == ([] if length in ends else [whole_records]), length
    finally:
        path.write_bytes(good)


def test_bytes_behind_the_last_record_are_found(tmp_path: Path) -> None:
    dataset = table(tmp_path)
    (name,) = dataset.shards
    with (tmp_path / name).open("ab") as file:
        file.write(b"more")
    (fault,) = faults_of(tmp_path)
    assert (fault.record, fault.offset, fault.code) == (
        3,
        sum(size for _, size in dataset.places[name]),
        "damaged_record",
    )


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_every_flipped_byte_of_a_compressed_file_is_found(tmp_path: Path, compression: str) -> None:
    dataset = table(tmp_path, compression=compression)
    path = tmp_path / dataset.shards[0]
    good = path.read_bytes()
    for position in range(len(good)):
        path.write_bytes(good[:position] + bytes([good[position] ^ 0x10]) + good[position + 1 :])
        found = [fault for fault in faults_of(tmp_path) if fault.file == path.name]
        assert found, f"byte {position} was flipped, and nothing was found"
    for length in range(len(good)):
        path.write_bytes(good[:length])
        assert any(fault.file == path.name for fault in faults_of(tmp_path)), f"cut at {length}"


def test_the_faults_of_one_record_do_not_hide_those_behind_it(tmp_path: Path) -> None:
    dataset = small_dataset(tmp_path, per_shard=6)
    name = dataset.shards[0]
    data = bytearray((tmp_path / name).read_bytes())
    for number in (1, 4):
        start, size = dataset.places[name][number]
        data[start + size // 2] ^= 1
    (tmp_path / name).write_bytes(data)
    damaged = [fault.record for fault in faults_of(tmp_path) if fault.code == "damaged_record"]
    assert damaged == [1, 4]


@pytest.mark.parametrize(("pack", "told"), [(gzip.compress, "gzip"), (zlib.compress, "zlib")])
def test_a_shard_packed_behind_the_metadata_is_named_with_its_compression(tmp_path: Path, pack, told: str) -> None:
    dataset = small_dataset(tmp_path)
    path = tmp_path / dataset.shards[0]
    path.write_bytes(pack(path.read_bytes()))
    faults = faults_of(tmp_path)
    assert [fault.code for fault in faults] == ["wrong_compression", "wrong_size"]
    assert f"compressed with {told}" in faults[0].cause
    assert "not compressed" in faults[0].cause
    assert verdict_of(tmp_path).records == 9


def test_an_unpacked_shard_of_a_compressed_dataset_is_named(tmp_path: Path) -> None:
    dataset = small_dataset(tmp_path, compression="gzip")
    path = tmp_path / dataset.shards[0]
    path.write_bytes(gzip.decompress(path.read_bytes()))
    assert codes_of(tmp_path)[0] == "wrong_compression"


def test_the_same_records_in_other_bytes_have_another_checksum(tmp_path: Path) -> None:
    dataset = table(tmp_path, compression="gzip")
    path = tmp_path / dataset.shards[0]
    data = bytearray(path.read_bytes())
    data[4] ^= 0xFF  # the time in the gzip header (RFC 1952), which no reader looks at
    path.write_bytes(data)
    assert codes_of(tmp_path) == ["wrong_checksum"]


def test_a_missing_and_an_unreadable_file_are_named(tmp_path: Path) -> None:
    dataset = small_dataset(tmp_path)
    first, second, _ = dataset.shards
    (tmp_path / first).unlink()
    (tmp_path / second).unlink()
    (tmp_path / second).mkdir()
    faults = faults_of(tmp_path)
    assert [(fault.file, fault.code, fault.record) for fault in faults] == [
        (first, "missing_file", None),
        (second, "missing_file", None),
    ]


def test_faults_beyond_the_limit_are_counted(tmp_path: Path) -> None:
    shards = [[{"n": whole(number)} for number in range(50)]]
    make_dataset(tmp_path, {"train": shards}, specs=TABLE)
    verdict = verdict_of(tmp_path, limit=10)
    assert len(verdict.faults) == 10
    assert verdict.unlisted == {"wrong_features": 40}
    assert verdict.num_faults == 50
    assert verdict.by_code == {"wrong_features": 50}
    assert verdict_of(tmp_path, limit=0).num_faults == len(verdict_of(tmp_path, limit=0).faults) == 50


def test_an_index_file_is_compared_line_by_line(tmp_path: Path) -> None:
    dataset = small_dataset(tmp_path)
    name = dataset.shards[1]
    lines = [f"{start} {size}\n" for start, size in dataset.places[name]]
    index = tmp_path / f"{name}.idx"
    index.write_text("".join(lines))
    verdict = verdict_of(tmp_path)
    assert verdict.faults == ()
    assert "index files" in verdict.checked
    for wrong in (lines[:-1], [*lines, "9999 9\n"], ["1 2\n", *lines[1:]], [lines[0], lines[2], lines[1]]):
        index.write_text("".join(wrong))
        assert [(fault.file, fault.code) for fault in faults_of(tmp_path)] == [(name, "wrong_index")], wrong


# ---------------------------------------------------------------------------------------------------------------------
# Files from elsewhere


def test_files_without_metadata_are_checked_as_far_as_they_can_be(tmp_path: Path) -> None:
    good = small_dataset(tmp_path / "made")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in good.shards:
        (elsewhere / name).write_bytes(gzip.compress((good.folder / name).read_bytes()))
    verdict = verdict_of(elsewhere)
    assert verdict.faults == ()
    assert (verdict.records, verdict.images) == (9, 9)
    assert any("no conversion.json" in note for note in verdict.notes)
    assert any("3 of 3 files are compressed with gzip" in note for note in verdict.notes)
    assert "features" not in verdict.checked


def test_a_file_in_which_no_record_is_a_message_is_one_fault(tmp_path: Path) -> None:
    write_shard(tmp_path / "blobs.tfrecord", [b"\xff\xfe any bytes", b"\x99" * 20])
    verdict = verdict_of(tmp_path / "blobs.tfrecord")
    (fault,) = verdict.faults
    assert (fault.code, fault.record) == ("no_example", None)
    assert "none of its 2 records" in fault.cause
    assert verdict.records == 2


def test_one_bad_record_among_examples_is_a_fault(tmp_path: Path) -> None:
    write_shard(tmp_path / "x.tfrecord", [encode_example({"n": whole(1)}), b"\x99" * 20])
    (fault,) = faults_of(tmp_path / "x.tfrecord")
    assert (fault.record, fault.code) == (1, "no_example")


def test_a_shard_that_the_names_of_the_others_promise_is_a_fault(tmp_path: Path) -> None:
    for number in (0, 2):
        write_shard(tmp_path / f"data-{number:05d}-of-00004.tfrecord", [encode_example({"n": whole(1)})])
    (fault,) = faults_of(tmp_path)
    assert (fault.file, fault.code) == ("data-00001-of-00004.tfrecord", "missing_file")
    assert "by the names of the others this file should be there, and so are 1 more" in fault.cause
    assert not faults_of(tmp_path / "data-*.tfrecord")


def test_one_file_of_a_dataset_is_checked_against_its_metadata(tmp_path: Path) -> None:
    dataset = small_dataset(tmp_path)
    path = tmp_path / dataset.shards[0]
    verdict = verdict_of(path)
    assert verdict.faults == ()
    assert "features" in verdict.checked
    assert any("only the files named" in note for note in verdict.notes)
    path.write_bytes(path.read_bytes()[: dataset.places[path.name][1][0]])
    assert [fault.code for fault in faults_of(path)] == ["wrong_count", "wrong_size"]
