from __future__ import annotations

import gzip
import io
import pickle
import random
import struct
import tracemalloc
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import google_crc32c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_tfrecord.errors import DatasetError
from beam_tfrecord.tfrecord import (
    Record,
    RecordFault,
    RecordWriter,
    detect_compression,
    masked_crc32c,
    parse_shard_name,
    read_index,
    read_record,
    read_records,
    scan_records,
    shard_name,
    write_index,
)
from tests import tiny_reader

COMPRESSIONS = ("none", "gzip", "zlib")
RECORDS = [b"first", b"", b"\x00" * 300, bytes(range(256)) * 2, b"last"]


def written(records: Iterable[bytes], compression: str = "none") -> bytes:
    file = io.BytesIO()
    with RecordWriter(file, compression) as writer:
        for record in records:
            writer.append(record)
    return file.getvalue()


def read(data: bytes, name: str = "x", compression: str = "auto") -> list[bytes]:
    return [record.data for record in read_records(io.BytesIO(data), name, compression)]


def scan(data: bytes, name: str = "x", compression: str = "auto") -> list[Record | RecordFault]:
    return list(scan_records(io.BytesIO(data), name, compression))


def fault_of(data: bytes, **options: Any) -> RecordFault:
    with pytest.raises(RecordFault) as caught:
        read(data, **options)
    return caught.value


def shard_file(folder: Path, records: Iterable[bytes], compression: str) -> Path:
    path = folder / shard_name("train", 0, 1, compression)
    path.write_bytes(written(records, compression))
    return path


class TestFraming:
    def test_a_record_is_framed_as_known_bytes(self) -> None:
        expected = "0300000000000000b099490e666f6f618abefe"
        assert written([b"foo"]).hex() == expected

    @pytest.mark.parametrize("data", [b"", b"a", b"123456789", bytes(32), b"\xff" * 32])
    def test_the_checksum_is_that_of_a_table_driven_one(self, data: bytes) -> None:
        assert masked_crc32c(data) == tiny_reader.masked(tiny_reader.crc32c(data))

    def test_crc32c_has_the_check_value_of_its_definition(self) -> None:
        assert tiny_reader.crc32c(b"123456789") == 0xE3069283  # RFC 3720, B.4, and every catalogue of CRCs
        assert masked_crc32c(b"123456789") == (((0xE3069283 >> 15) | (0xE3069283 << 17)) + 0xA282EAD8) & 0xFFFFFFFF

    @settings(max_examples=60, deadline=None)
    @given(records=st.lists(st.binary(max_size=200), max_size=8))
    def test_uncompressed_bytes_are_exactly_the_frames(self, records: list[bytes]) -> None:
        assert written(records) == b"".join(tiny_reader.frame(record) for record in records)


class TestRoundTrip:
    @settings(max_examples=60, deadline=None)
    @given(records=st.lists(st.binary(max_size=2000), max_size=8), compression=st.sampled_from(COMPRESSIONS))
    def test_what_is_written_is_read(self, records: list[bytes], compression: str) -> None:
        data = written(records, compression)
        assert read(data, compression=compression) == records
        assert read(data) == records

    @pytest.mark.parametrize("compression", COMPRESSIONS)
    def test_a_second_reader_agrees(self, tmp_path: Path, compression: str) -> None:
        assert tiny_reader.read_shard(shard_file(tmp_path, RECORDS, compression)) == RECORDS

    @pytest.mark.parametrize(("compression", "name"), [("none", ""), ("gzip", "GZIP"), ("zlib", "ZLIB")])
    def test_tensorflow_agrees(self, tmp_path: Path, compression: str, name: str) -> None:
        import tensorflow as tf

        large = random.Random(1).randbytes(300_000)
        path = shard_file(tmp_path, [*RECORDS, large], compression)
        found = list(tf.data.TFRecordDataset(str(path), compression_type=name).as_numpy_iterator())
        assert found == [*RECORDS, large]

    @pytest.mark.parametrize(("compression", "name"), [("none", ""), ("gzip", "GZIP"), ("zlib", "ZLIB")])
    def test_what_tensorflow_writes_is_read(self, tmp_path: Path, compression: str, name: str) -> None:
        import tensorflow as tf

        path = tmp_path / "x.tfrecord"
        with tf.io.TFRecordWriter(str(path), options=name) as writer:
            for record in RECORDS:
                writer.write(record)
        assert read(path.read_bytes()) == RECORDS

    @pytest.mark.parametrize("compression", COMPRESSIONS)
    @pytest.mark.parametrize("size", [2**16 - 1, 2**16, 2**20 + 3, 2**24 + 5])
    def test_large_records_between_small_ones_keep_their_place(self, compression: str, size: int) -> None:
        large = random.Random(size).randbytes(min(size, 2**17)) * (size // 2**17 + 1)
        records = [b"a", large[:size], b"b", b"", large[: 2**16], large[: 2**16], b"c"]
        assert read(written(records, compression)) == records

    @pytest.mark.parametrize("compression", COMPRESSIONS)
    def test_many_small_records_pass_the_buffer(self, compression: str) -> None:
        records = [b"%d" % number * 30 for number in range(20_000)]
        data = written(records, compression)
        assert read(data) == records

    def test_a_file_without_bytes_has_no_records(self) -> None:
        for compression in ("auto", *COMPRESSIONS):
            assert read(b"", compression=compression) == []

    def test_a_stream_of_nothing_has_no_records(self) -> None:
        assert written([]) == b""
        assert gzip.decompress(written([], "gzip")) == b""
        assert zlib.decompress(written([], "zlib")) == b""
        assert read(written([], "gzip")) == read(written([], "zlib")) == []

    def test_compressed_streams_behind_one_another_are_read_as_one(self) -> None:
        assert read(written([b"a"], "gzip") + written([b"b" * 100], "gzip")) == [b"a", b"b" * 100]

    def test_a_record_may_straddle_compressed_streams(self) -> None:
        data = written([b"abcdef" * 10])
        assert read(gzip.compress(data[:30]) + gzip.compress(data[30:])) == [b"abcdef" * 10]

    def test_files_that_give_less_than_asked_are_read_to_the_end(self) -> None:
        class Slow(io.BytesIO):
            def read(self, size: int | None = -1) -> bytes:
                return super().read(min(size or 0, 7))

        for compression in COMPRESSIONS:
            found = read_records(Slow(written(RECORDS, compression)), "x")
            assert [record.data for record in found] == RECORDS


class TestWriter:
    @pytest.mark.parametrize("compression", COMPRESSIONS)
    def test_its_measures_are_those_of_the_file(self, compression: str) -> None:
        file = io.BytesIO()
        records = [*RECORDS, bytes(70_000)]
        with RecordWriter(file, compression) as writer:
            places = [writer.append(record) for record in records]
        data = file.getvalue()
        plain = b"".join(tiny_reader.frame(record) for record in records)
        assert writer.num_records == len(records)
        assert writer.payload_bytes == sum(len(record) for record in records)
        assert writer.num_bytes == len(data)
        assert writer.crc32c == f"{google_crc32c.value(data):08x}"
        assert [plain[offset : offset + size] for offset, size in places] == [tiny_reader.frame(r) for r in records]

    def test_the_checksum_keeps_its_leading_zeros(self) -> None:
        assert RecordWriter(io.BytesIO()).crc32c == "00000000"

    @pytest.mark.parametrize("compression", COMPRESSIONS)
    def test_same_records_same_bytes(self, compression: str) -> None:
        assert written(RECORDS, compression) == written(RECORDS, compression)

    def test_a_gzip_file_holds_no_time_and_no_name(self) -> None:
        data = written(RECORDS, "gzip")
        assert data[:8] == b"\x1f\x8b\x08" + b"\x00" * 5  # no flags, no time

    def test_finishing_twice_changes_nothing_and_nothing_can_follow(self) -> None:
        file = io.BytesIO()
        writer = RecordWriter(file, "gzip")
        writer.append(b"a")
        writer.finish()
        writer.finish()
        assert read(file.getvalue()) == [b"a"]
        with pytest.raises(ValueError, match="finished"):
            writer.append(b"b")

    def test_it_leaves_the_file_open_and_unfinished_after_an_error(self) -> None:
        file = io.BytesIO()

        def fail_in_between() -> None:
            with RecordWriter(file) as writer:
                writer.append(b"a")
                raise KeyError

        with pytest.raises(KeyError):
            fail_in_between()
        assert not file.closed
        assert file.getvalue() == b""

    def test_an_unknown_compression_is_refused(self) -> None:
        with pytest.raises(KeyError):
            RecordWriter(io.BytesIO(), "bz2")

    def test_large_records_are_not_copied(self) -> None:
        class Nowhere(io.RawIOBase):
            def writable(self) -> bool:
                return True

            def write(self, data: Any) -> int:
                return len(data)

        record = bytes(2**25)
        tracemalloc.start()
        try:
            writer = RecordWriter(Nowhere())  # type: ignore[arg-type]
            for _ in range(3):
                writer.append(record)
            writer.finish()
            assert tracemalloc.get_traced_memory()[1] < 2**20
        finally:
            tracemalloc.stop()


class TestFaults:
    def test_each_flipped_byte_is_found_and_named(self) -> None:
        records = [b"first", b"", bytes(300), b"last"]
        frames = [tiny_reader.frame(record) for record in records]
        data = b"".join(frames)
        starts = [sum(len(frame) for frame in frames[:index]) for index in range(len(frames) + 1)]
        for position in range(len(data)):
            for change in (0x01, 0x80, 0xFF):
                damaged = bytearray(data)
                damaged[position] ^= change
                hit = next(index for index in range(len(frames)) if starts[index] <= position < starts[index + 1])
                found = scan(bytes(damaged))
                faults = [item for item in found if isinstance(item, RecordFault)]
                assert (faults[0].record, faults[0].offset) == (hit, starts[hit]), position
                assert faults[0].file == "x"
                in_length = position - starts[hit] < 8
                expected = "length" if position - starts[hit] < 12 else "data"
                assert f"checksum of its {expected}" in faults[0].cause
                whole = [item.data for item in found if isinstance(item, Record)]
                # A wrong length hides what follows; wherever else the damage is, only its record is lost.
                assert whole == records[:hit] if in_length else records[:hit] + records[hit + 1 :]
                assert len(faults) == 1
                fault = fault_of(bytes(damaged))
                assert (fault.record, fault.offset, fault.cause) == (hit, starts[hit], faults[0].cause)

    def test_each_cut_is_found_and_named(self) -> None:
        records = [b"first", b"", bytes(40), b"last"]
        frames = [tiny_reader.frame(record) for record in records]
        data = b"".join(frames)
        starts = [sum(len(frame) for frame in frames[:index]) for index in range(len(frames) + 1)]
        for end in range(len(data)):
            whole = sum(1 for start in starts[1:] if start <= end)
            found = scan(data[:end])
            assert [item.data for item in found if isinstance(item, Record)] == records[:whole]
            faults = [item for item in found if isinstance(item, RecordFault)]
            if end in starts:
                assert faults == []
            else:
                (fault,) = faults
                left = end - starts[whole]
                assert (fault.record, fault.offset) == (whole, starts[whole])
                if left < 12:
                    assert fault.cause == f"the file ends after {left} of the 12 bytes of its header"
                elif left < 12 + len(records[whole]):
                    assert fault.cause == f"the file ends after {left - 12} of its {len(records[whole])} bytes of data"
                else:
                    left -= 12 + len(records[whole])
                    assert fault.cause == f"the file ends after {left} of the 4 bytes of its data's checksum"

    def test_every_fault_of_a_file_is_reported(self) -> None:
        records = [b"a" * 10, b"b" * 20, b"c" * 30, b"d" * 40]
        frames = [bytearray(tiny_reader.frame(record)) for record in records]
        frames[0][15] ^= 1
        frames[2][-1] ^= 1
        frames[3][9] ^= 1
        found = scan(b"".join(frames))
        assert [type(item) for item in found] == [RecordFault, Record, RecordFault, RecordFault]
        assert [item.offset for item in found] == [0, 26, 62, 108]
        assert [item.index if isinstance(item, Record) else item.record for item in found] == [0, 1, 2, 3]

    def test_the_message_says_file_record_byte_and_cause(self) -> None:
        data = bytearray(written([b"a", b"b"]))
        data[-1] ^= 1
        fault = fault_of(bytes(data), name="out/train-00000-of-00001.tfrecord")
        place = "out/train-00000-of-00001.tfrecord: record 1 at byte 17"
        assert str(fault).startswith(f"{place}: the checksum of its data is ")

    def test_a_fault_is_a_dataset_error_that_survives_pickling(self) -> None:
        assert issubclass(RecordFault, DatasetError)
        fault = pickle.loads(pickle.dumps(RecordFault("f", 3, 40, "why")))
        assert isinstance(fault, RecordFault)
        assert (fault.file, fault.record, fault.offset, fault.cause) == ("f", 3, 40, "why")

    def test_a_length_that_cannot_be_true_takes_no_memory(self) -> None:
        length = struct.pack("<Q", 2**60)
        good_checksum = length + struct.pack("<I", tiny_reader.masked(tiny_reader.crc32c(length)))
        for header, cause in ((good_checksum, "ends after 100 of its"), (length + bytes(4), "checksum of its length")):
            tracemalloc.start()
            try:
                fault = fault_of(header + bytes(100), compression="none")
                assert cause in fault.cause
                assert tracemalloc.get_traced_memory()[1] < 2**26
            finally:
                tracemalloc.stop()

    @pytest.mark.parametrize("compression", ["gzip", "zlib"])
    def test_each_cut_of_a_compressed_file_is_found(self, compression: str) -> None:
        data = written(RECORDS, compression)
        for end in range(1, len(data)):
            found = scan(data[:end], compression=compression)
            assert isinstance(found[-1], RecordFault)
            assert found[-1].cause == f"the file ends before its {compression} stream does"
            whole = [item.data for item in found[:-1] if isinstance(item, Record)]
            assert whole == RECORDS[: len(found) - 1]
            assert found[-1].record == len(whole)

    @pytest.mark.parametrize("compression", ["gzip", "zlib"])
    def test_each_flipped_byte_of_a_compressed_file_is_found_or_does_no_harm(self, compression: str) -> None:
        data = written(RECORDS, compression)
        harmless = 0
        for position in range(len(data)):
            damaged = bytearray(data)
            damaged[position] ^= 0xFF
            found = scan(bytes(damaged), compression=compression)
            faults = [item for item in found if isinstance(item, RecordFault)]
            for item in found:
                assert not isinstance(item, Record) or item.data == RECORDS[item.index]
            harmless += not faults
            if not faults:
                assert [item.data for item in found if isinstance(item, Record)] == RECORDS
        # Nothing protects time, extra flags and system of a gzip header; a zlib header is protected whole.
        assert harmless == (6 if compression == "gzip" else 0)

    def test_records_before_a_damage_in_the_middle_of_a_stream_are_all_read(self) -> None:
        random_records = [random.Random(number).randbytes(1000) for number in range(200)]
        data = bytearray(written(random_records, "gzip"))
        middle = len(data) // 2
        data[middle : middle + 8] = bytes(8)
        found = scan(bytes(data), compression="gzip")
        whole = [item for item in found if isinstance(item, Record)]
        first_fault = next(item for item in found if isinstance(item, RecordFault))
        assert 95 < first_fault.record < 101
        assert [item.data for item in whole[:90]] == random_records[:90]

    @pytest.mark.parametrize("compression", ["gzip", "zlib"])
    def test_a_wrong_checksum_at_the_end_of_a_stream_hides_no_record(self, compression: str) -> None:
        data = bytearray(written(RECORDS, compression))
        data[-6 if compression == "gzip" else -1] ^= 1
        *whole, fault = scan(bytes(data))
        assert [item.data for item in whole if isinstance(item, Record)] == RECORDS
        assert isinstance(fault, RecordFault)
        assert (fault.record, fault.offset) == (len(RECORDS), len(written(RECORDS)))
        assert "incorrect data check" in fault.cause

    @pytest.mark.parametrize("size", [2**16 - 28, 2**16 - 12, 2**16, 2**24 + 5, 2**25])
    def test_records_that_compress_to_next_to_nothing_are_read_whole(self, size: int) -> None:
        records = [bytes(size), b"next"]
        assert read(written(records, "gzip")) == records
        assert read(written(records, "zlib")) == records

    def test_bytes_behind_a_compressed_stream_are_a_fault(self) -> None:
        found = scan(written([b"a"], "zlib") + b"garbage")
        assert isinstance(found[0], Record)
        assert isinstance(found[1], RecordFault)
        assert found[1].record == 1
        assert "zlib stream is damaged" in found[1].cause


class TestDetection:
    @pytest.mark.parametrize("compression", COMPRESSIONS)
    @pytest.mark.parametrize("records", [[b""], [b"x"], RECORDS, [random.Random(5).randbytes(200_000)]])
    def test_it_is_told_from_the_first_bytes(self, compression: str, records: list[bytes]) -> None:
        head = written(records, compression)[: 2**16]
        assert detect_compression(head) == compression
        assert detect_compression(head, "misnamed.tfrecord.gz") == compression

    @pytest.mark.parametrize("level", range(10))
    def test_zlib_streams_of_every_level_and_window_are_told(self, level: int) -> None:
        for bits in range(9, 16):
            maker = zlib.compressobj(level, zlib.DEFLATED, bits)
            data = maker.compress(written(RECORDS)) + maker.flush()
            assert detect_compression(data) == "zlib"
            assert read(data) == RECORDS

    def test_gzip_headers_with_a_name_are_told(self) -> None:
        file = io.BytesIO()
        with gzip.GzipFile("n" * 3000, "wb", fileobj=file) as stream:
            stream.write(written(RECORDS))
        assert detect_compression(file.getvalue()) == "gzip"
        assert read(file.getvalue()) == RECORDS

    @pytest.mark.parametrize("magic", [b"\x78\x9c", b"\x78\x01", b"\x78\xda", b"\x78\x5e", b"\x1f\x8b\x08"])
    def test_a_length_that_looks_like_a_compressed_stream_is_a_length(self, magic: bytes) -> None:
        record = bytes(int.from_bytes(magic, "little"))
        data = written([record])
        assert data.startswith(magic)
        assert detect_compression(data[: 2**16]) == "none"
        assert read(data) == [record]

    @pytest.mark.parametrize("position", range(8, 12))
    def test_such_a_length_with_a_wrong_checksum_is_still_named_as_such(self, position: int) -> None:
        data = bytearray(written([bytes(0x9C78), b"next"]))
        data[position] ^= 0x55
        found = scan(bytes(data))
        assert isinstance(found[0], RecordFault)
        assert "checksum of its length" in found[0].cause
        assert isinstance(found[1], Record)
        assert found[1].data == b"next"

    def test_a_damaged_start_is_read_as_the_name_says(self) -> None:
        data = b"\x00\x00" + written(RECORDS, "gzip")[2:]
        assert "gzip stream is damaged" in fault_of(data, name="a.tfrecord.gz").cause
        assert "checksum of its length" in fault_of(data, name="a.tfrecord").cause

    def test_text_is_no_tfrecord(self) -> None:
        fault = fault_of(b"<html><body>Not found</body></html>")
        assert (fault.record, fault.offset) == (0, 0)


class TestShardNames:
    @pytest.mark.parametrize(
        ("parts", "name"),
        [
            (("train", 0, 8, "none"), "train-00000-of-00008.tfrecord"),
            (("validation", 7, 8, "gzip"), "validation-00007-of-00008.tfrecord.gz"),
            (("a-00000-of-00001", 1, 2, "zlib"), "a-00000-of-00001-00001-of-00002.tfrecord.zz"),
            (("big", 123_456, 1_000_000, "none"), "big-123456-of-1000000.tfrecord"),
        ],
    )
    def test_names_are_made_and_read_back(self, parts: tuple[str, int, int, str], name: str) -> None:
        assert shard_name(*parts) == name
        parsed = parse_shard_name(name)
        assert parsed is not None
        assert (parsed.split, parsed.index, parsed.count, parsed.compression) == parts

    @pytest.mark.parametrize(
        "name",
        [
            "",
            "train.tfrecord",
            "train-00000-of-00008.tfrecord.bz2",
            "train-00008-of-00008.tfrecord",
            "train-0-of-8.tfrecord",
            "train-000000-of-000008.tfrecord",
            "-00000-of-00001.tfrecord",
            "train-00000-of-00001.tfrecord.idx",
            "train-00000-of-00001.tfrecord\n",
        ],
    )
    def test_other_names_are_not_taken_for_shards(self, name: str) -> None:
        assert parse_shard_name(name) is None


class TestIndex:
    def test_its_lines_are_the_places_of_the_frames(self) -> None:
        file = io.BytesIO()
        with RecordWriter(file) as writer:
            places = [writer.append(record) for record in [b"abc", b"", b"defgh"]]
        assert write_index(places) == b"0 19\n19 16\n35 21\n"
        assert read_index(write_index(places), "x.idx") == places

    def test_each_record_is_read_at_its_place(self) -> None:
        file = io.BytesIO()
        with RecordWriter(file) as writer:
            places = [writer.append(record) for record in RECORDS]
        for number in (4, 0, 2, 1, 3):
            assert read_record(file, "x", *places[number]) == RECORDS[number]

    def test_an_index_of_another_file_is_noticed(self) -> None:
        file = io.BytesIO(written(RECORDS))
        with pytest.raises(RecordFault, match="record 7 at byte 0: there is no record of 22 bytes"):
            read_record(file, "x", 0, 22, 7)
        with pytest.raises(RecordFault, match="checksum of its length"):
            read_record(file, "x", 5, 21)
        with pytest.raises(RecordFault, match="there is no record"):
            read_record(file, "x", 10_000, 21)

    @pytest.mark.parametrize(
        ("content", "line"),
        [(b"0\n", 1), (b"0 19\n20 16\n", 2), (b"0 x\n", 1), (b"0 15\n", 1), (b"0 19\n\n", 2), (b"-1 20\n", 1)],
    )
    def test_a_damaged_index_is_named_by_its_line(self, content: bytes, line: int) -> None:
        with pytest.raises(DatasetError, match=rf"x\.idx:{line}: "):
            read_index(content, "x.idx")

    def test_no_records_no_lines(self) -> None:
        assert write_index([]) == b""
        assert read_index(b"", "x.idx") == []
