"""Archives that were not made by pack: made with tarfile, or by hand where tarfile refuses."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_tfrecord.errors import DatasetError
from beam_tfrecord.tools.packing.members import read_members

NAMES = st.text(st.characters(blacklist_characters="/\\\0", blacklist_categories=("Cs",)), min_size=1, max_size=200)


def archive_of(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def named(name: str, kind: bytes = tarfile.REGTYPE, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def read_all(archive: bytes) -> list[tuple[str, bytes]]:
    return [(name, data.read()) for name, _, data in read_members(io.BytesIO(archive))]


@given(st.lists(st.tuples(NAMES.filter(lambda name: not name.startswith(".")), st.binary(max_size=2000)), max_size=5))
def test_plain_files_are_read_as_tarfile_wrote_them(files: list[tuple[str, bytes]]) -> None:
    assert read_all(archive_of(*((named(name), data) for name, data in files))) == files


def test_data_that_are_not_wanted_are_passed_over() -> None:
    archive = archive_of((named("a"), b"x" * 1300), (named("b"), b"y" * 512), (named("c"), b"z"))
    assert [name for name, _, _ in read_members(io.BytesIO(archive))] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "name",
    ["../up", "/etc/passwd", "a/../../b", "sub/file", "..", ".hidden", "a\\b", "./conversion.json", "é/" * 80 + "../x"],
)
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    with pytest.raises(DatasetError, match="no name of a file of a dataset"):
        read_all(archive_of((named(name), b"data")))


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (tarfile.SYMTYPE, "a link"),
        (tarfile.LNKTYPE, "a link"),
        (tarfile.CHRTYPE, "a device"),
        (tarfile.BLKTYPE, "a device"),
        (tarfile.FIFOTYPE, "a pipe"),
        (tarfile.DIRTYPE, "a folder"),
        (tarfile.CONTTYPE, "of the type"),
        (tarfile.GNUTYPE_SPARSE, "of the type"),
    ],
)
def test_only_plain_files_are_let_through(kind: bytes, told: str) -> None:
    with pytest.raises(DatasetError, match=told):
        read_all(archive_of((named("conversion.json", kind, linkname="/etc/passwd"), b"")))


def test_gnu_long_names_are_refused() -> None:
    with pytest.raises(DatasetError, match="of the type"):
        read_all(archive_of((named("x" * 300), b""), form=tarfile.GNU_FORMAT))


@pytest.mark.parametrize(
    "fields",
    [{"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}, {"GNU.sparse.map": "0,5"}, {"linkpath": "/etc"}, {"path": ""}],
)
def test_other_extended_headers_are_refused(fields: dict[str, str]) -> None:
    with pytest.raises(DatasetError):
        read_all(archive_of((named("conversion.json", pax_headers=fields), b"data")))


@pytest.mark.parametrize("size", ["-1", "x", "1" * 30, "", "1.5"])
def test_sizes_that_are_none_are_refused(size: str) -> None:
    archive = archive_of((named("a", pax_headers={"size": "0000"}), b"data"))
    start = archive.index(b" size=0000\n")
    told = f"size={size}\n".encode()
    record = b"%d " % (len(told) + 3) + told
    padded = record.ljust(512, b"\0")
    header = bytearray(archive[:512])
    header[124:136] = b"%011o\0" % len(record)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    assert start < 1024
    with pytest.raises(DatasetError):
        read_all(bytes(header) + padded + archive[1024:])


def test_a_large_extended_header_takes_no_memory() -> None:
    header = bytearray(archive_of((named("a"), b""))[:512])
    header[156:157] = b"x"
    header[124:136] = b"%011o\0" % (8**11 - 1)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    with pytest.raises(DatasetError, match="extended header"):
        read_all(bytes(header) + b"\0" * 1024)


def whole() -> bytes:
    return archive_of((named("a"), b"x" * 700), (named("b"), b"y" * 100))


@pytest.mark.parametrize("place", [0, 100, 130, 150, 300, 2000])
def test_a_header_with_a_wrong_sum_is_no_header(place: int) -> None:
    archive = bytearray(whole())
    archive[512 + 1024 + 130 if place == 2000 else place] ^= 1
    with pytest.raises(DatasetError, match="wrong sum"):
        read_all(bytes(archive))


def test_every_cut_is_noticed() -> None:
    archive, files = whole(), read_all(whole())
    end = 512 + 1024 + 512 + 512
    for length in range(0, end + 512):
        with pytest.raises(DatasetError):
            read_all(archive[:length])
    assert read_all(archive[: end + 512]) == files


@pytest.mark.parametrize("make", [lambda: b"PK\3\4" + b"\0" * 2000, lambda: b"text " * 1000])
def test_something_else_is_told(make: Callable[[], bytes]) -> None:
    with pytest.raises(DatasetError, match="no tar archive"):
        read_all(make())
