"""Reading members by their place: bounds, damage, and archives that are unpacked once."""

from __future__ import annotations

import gc
import gzip
import io
import os
import tarfile
import threading
import weakref
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

import pytest

from beam_tfrecord.core.elements import Member
from beam_tfrecord.errors import ImageError, StorageError
from beam_tfrecord.manifests.archives import members as archive_members
from beam_tfrecord.manifests.archives import streams as archive_streams
from beam_tfrecord.manifests.archives.members import UnpackedArchives, read_member, shared_archives
from beam_tfrecord.manifests.archives.streams import BrokenStreamError, Unpacker, archive_kind, buffered


class Reader:
    """Files in memory; counts what is read."""

    def __init__(self, **files: bytes) -> None:
        self.files = files
        self.ranges: list[tuple[int, int]] = []
        self.opened = 0

    def open(self, uri: str) -> BinaryIO:
        self.opened += 1
        return io.BytesIO(self.files[uri])

    def read_range(self, uri: str, start: int, length: int) -> bytes:
        self.ranges.append((start, length))
        return self.files[uri][start : start + length]


DATA = os.urandom(5_000)


def zipped(data: bytes = DATA, method: int = zipfile.ZIP_DEFLATED, extra: bytes = b"") -> tuple[bytes, Member]:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("first", b"x" * 100)
        info = zipfile.ZipInfo("a.jpg")
        info.extra = extra
        archive.writestr(info, data, method)
        found = archive.getinfo("a.jpg")
    return buffer.getvalue(), Member("z", ("a.jpg",), found.header_offset, found.compress_size, "zip")


def tar_gz(count: int = 4) -> tuple[bytes, list[Member]]:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for number in range(count):
            info = tarfile.TarInfo(f"{number}.jpg")
            info.size = 1_000
            archive.addfile(info, io.BytesIO(bytes([number]) * 1_000))
    with tarfile.open(fileobj=io.BytesIO(buffer.getvalue())) as archive:
        container = Member("t", (), 0, -1, "gzip")
        members = [Member("t", (i.name,), i.offset_data, i.size, "stored", container) for i in archive]
    return gzip.compress(buffer.getvalue()), members


def code_of(reader: Reader, member: Member, max_bytes: int | None = None) -> str:
    with pytest.raises(ImageError) as caught:
        read_member(reader, member, max_bytes)
    assert "a.jpg" in caught.value.message
    return caught.value.code


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_a_zip_entry_is_one_read(method: int) -> None:
    data, member = zipped(method=method)
    reader = Reader(z=data)
    assert read_member(reader, member) == DATA
    assert len(reader.ranges) == 1


def test_a_local_header_with_much_behind_its_name_takes_a_second_read() -> None:
    data, member = zipped(extra=b"\xfe\xca" + (3_000).to_bytes(2, "little") + bytes(3_000))
    reader = Reader(z=data)
    assert read_member(reader, member) == DATA
    assert len(reader.ranges) == 2


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_any_changed_byte_of_an_entry_is_noticed(method: int) -> None:
    data, member = zipped(b"some bytes " * 20, method)
    start = member.offset + 30 + len("a.jpg")
    for place in range(start, start + member.length):
        changed = bytearray(data)
        changed[place] ^= 0x10
        assert code_of(Reader(z=bytes(changed)), member) == "damaged_archive"


def test_an_entry_that_is_cut_or_not_there_is_noticed() -> None:
    data, member = zipped()
    assert code_of(Reader(z=data[: member.offset + 100]), member) == "damaged_archive"
    assert code_of(Reader(z=data), Member("z", ("a.jpg",), 3, 10, "zip")) == "damaged_archive"
    assert code_of(Reader(z=b"short"), Member("z", ("a.jpg",), 0, 10, "stored")) == "damaged_archive"


def test_an_entry_unpacks_no_further_than_allowed() -> None:
    data, member = zipped(bytes(5_000_000))
    assert member.length < 6_000
    assert code_of(Reader(z=data), member, max_bytes=100_000) == "read_failed"
    data, member = zipped()
    assert code_of(Reader(z=data), member, max_bytes=4_999) == "read_failed"
    assert len(read_member(Reader(z=data), member, max_bytes=5_000)) == 5_000


def test_a_member_larger_than_allowed_is_not_even_read() -> None:
    reader = Reader(t=bytes(100))
    assert code_of(reader, Member("t", ("a.jpg",), 0, 100), max_bytes=99) == "read_failed"
    assert reader.ranges == []


def test_a_header_that_says_encrypted_is_believed() -> None:
    data, member = zipped()
    changed = bytearray(data)
    changed[member.offset + 6] |= 1
    assert code_of(Reader(z=bytes(changed)), member) == "encrypted_archive"


# ---------------------------------------------------------------------------------------------------------------------
# Unpacked once


def test_a_compressed_archive_is_unpacked_once_for_all_threads() -> None:
    data, members = tar_gz()
    reader, archives = Reader(t=data), UnpackedArchives()
    found: dict[int, bytes] = {}

    def read(number: int) -> None:
        found[number] = read_member(reader, members[number % 4], unpacked=archives)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: bytes([number % 4]) * 1_000 for number in range(32)}
    assert reader.opened == 1
    archives.close()
    assert read_member(reader, members[2], unpacked=archives) == bytes([2]) * 1_000
    assert reader.opened == 2


def test_nothing_is_left_in_the_temporary_folder(tmp_path: Path) -> None:
    data, members = tar_gz()
    archives = UnpackedArchives(str(tmp_path))
    read_member(Reader(t=data), members[0], unpacked=archives)
    assert list(tmp_path.iterdir()) == []  # not even while it is in use, so that a kill leaves nothing


def test_without_a_place_to_unpack_to_it_is_read_from_the_start() -> None:
    data, members = tar_gz()
    assert [read_member(Reader(t=data), member)[:1] for member in reversed(members)] == [b"\3", b"\2", b"\1", b"\0"]


def test_what_can_be_unpacked_of_a_cut_archive_is_read() -> None:
    data, members = tar_gz()
    whole = gzip.decompress(data)
    packer = zlib.compressobj(wbits=31)
    cut = packer.compress(whole[: members[2].offset + 10]) + packer.flush(zlib.Z_SYNC_FLUSH)
    for archives in (UnpackedArchives(), None):
        reader = Reader(t=cut)
        assert read_member(reader, members[1], unpacked=archives) == bytes([1]) * 1_000
        with pytest.raises(ImageError, match=r"t!/2.jpg cannot be read") as caught:
            read_member(reader, members[2], unpacked=archives)
        assert caught.value.code == "damaged_archive"


def test_no_room_says_what_to_do(tmp_path: Path) -> None:
    data, members = tar_gz()
    archives = UnpackedArchives(str(tmp_path / "nowhere"))
    with pytest.raises(StorageError, match="TMPDIR"):
        read_member(Reader(t=data), members[0], unpacked=archives)


def test_a_full_disk_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive_members.os, "pwrite", full)
    data, members = tar_gz()
    with pytest.raises(StorageError, match=r"no room \(No space left on device\): let TMPDIR"):
        read_member(Reader(t=data), members[0], unpacked=UnpackedArchives())


def test_all_readers_of_a_process_share_what_is_unpacked_as_long_as_there_are_any() -> None:
    one, two = shared_archives(), shared_archives()
    assert one is two
    gone = weakref.ref(one)
    del one, two
    gc.collect()
    assert gone() is None


# ---------------------------------------------------------------------------------------------------------------------
# Streams


def test_a_bomb_is_noticed_while_it_unpacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_streams, "HARMLESS_BYTES", 1_000_000)
    bomb = Unpacker(io.BytesIO(gzip.compress(bytes(5_000_000))), "gzip")
    with pytest.raises(BrokenStreamError, match="no collection of images"):
        bomb.seek(5_000_000)
    harmless = Unpacker(io.BytesIO(gzip.compress(os.urandom(3_000_000))), "gzip")
    assert harmless.seek(4_000_000) == 3_000_000


@pytest.mark.parametrize("compression", ["gzip", "deflate", ""])
def test_a_stream_is_read_forward_in_any_steps(compression: str) -> None:
    data = os.urandom(200_000)
    packer = zlib.compressobj(wbits=31 if compression == "gzip" else -15)
    packed = packer.compress(data) + packer.flush() if compression else data
    stream = Unpacker(io.BytesIO(packed), compression)
    assert stream.read(10) == data[:10]
    assert stream.seek(150_000) == stream.tell() == 150_000
    assert stream.read(5) == data[150_000:150_005]
    with pytest.raises(ValueError, match="forward"):
        stream.seek(0)
    assert stream.read() == data[150_005:]
    assert stream.read(1) == b""


def test_a_window_is_a_file_of_its_own() -> None:
    window = buffered(io.BytesIO(b"0123456789"), 2, 5)
    assert window.read() == b"23456"
    assert window.seek(-2, 2) == 3
    assert window.read(10) == b"56"
    assert window.seek(100) == 100
    assert window.read(1) == b""


def test_kinds_are_told_by_their_first_bytes() -> None:
    old = tarfile.TarInfo("a.jpg").tobuf(tarfile.USTAR_FORMAT)
    old = old[:257] + bytes(8) + old[265:]  # from before there was a magic number
    checksum = sum(old[:148]) + 8 * 32 + sum(old[156:])
    old = old[:148] + f"{checksum:06o}\0 ".encode() + old[156:]
    heads = {"zip": b"PK\3\4", "gzip": b"\x1f\x8b", "bzip2": b"BZh9", "xz": b"\xfd7zXZ\0", "tar": old, "": b"\xff\xd8"}
    assert {kind: archive_kind(head) for kind, head in heads.items()} == {kind: kind for kind in heads}
