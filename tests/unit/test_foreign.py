"""Files that should hold TFRecords and hold something else are called what they are, by every reader alike."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import tarfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from beam_tfrecord.datasets.indexing import write_index_file
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.storage import Storage
from beam_tfrecord.tfrecord import RecordFault, scan_records
from beam_tfrecord.tools.resharding.ranges import SourceFile
from beam_tfrecord.tools.resharding.shards import count_records
from tests.samples import noise
from tests.tiny_reader import frame

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"ab" * 32 + b"\nsize 12345\n"
PAGE = b"<!DOCTYPE html><html><head><title>Quota exceeded</title></head></html>"


def tar(name: str) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    return whole.getvalue()


def zipped() -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("train.tfrecord", frame(b"x"))
    return whole.getvalue()


def numpy_file() -> bytes:
    whole = io.BytesIO()
    np.save(whole, np.zeros(3))
    return whole.getvalue()


def jpeg() -> bytes:
    from PIL import Image

    whole = io.BytesIO()
    Image.fromarray(noise(8, 8)).save(whole, "JPEG")
    return whole.getvalue()


FOREIGN = {
    "pointer": (POINTER, "a Git LFS pointer; git lfs pull"),
    "page": (PAGE, "an HTML page"),
    "packed page": (gzip.compress(PAGE), "an HTML page .*compressed with gzip"),
    "store's answer": (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "XML"),
    "answer of an API": (b'{"error": "not found"}', "JSON"),
    "words": (b"404: Not Found", "plain text"),
    "tar": (tar("train.tfrecord"), "a tar archive; unpack"),
    "tar of a short name": (tar("a"), "a tar archive"),
    "packed tar": (gzip.compress(tar("train.tfrecord")), "a tar archive, compressed with gzip"),
    "zip": (zipped(), "a zip archive"),
    "bzip2": (bz2.compress(frame(b"x" * 200)), "bzip2-compressed"),
    "xz": (lzma.compress(frame(b"x" * 200)), "xz-compressed"),
    "Snappy of Hadoop": (b"\0\0\1\x90\0\0\0\x80" + bytes(range(128)), "Snappy"),
    "Snappy in frames": (b"\xff\x06\0\0sNaPpY" + bytes(range(128)), "Snappy"),
    "Zstandard": (b"\x28\xb5\x2f\xfd\x24\x10" + bytes(range(40)), "Zstandard"),
    "Parquet": (b"PAR1\x15\x04\x15" + bytes(range(40)), "a Parquet file"),
    "NumPy": (numpy_file(), "a NumPy array"),
    "a picture": (jpeg(), "JPEG"),
    "zeros": (bytes(5000), "nothing but zero bytes"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_file_of_another_kind_is_called_so_by_every_reader(tmp_path: Path, what: str) -> None:
    data, told = FOREIGN[what]
    path = tmp_path / "train-00000-of-00001.tfrecord"
    path.write_bytes(data)
    (fault,) = scan_records(io.BytesIO(data), path.name)
    assert isinstance(fault, RecordFault)
    assert fault.code == "no_records"
    with pytest.raises(RecordFault, match=f"^{path.name}: the file holds no TFRecords: it is .*{told}"):
        raise fault
    with pytest.raises(DatasetError, match=told):
        write_index_file(str(path), path.name, Storage())
    with pytest.raises(DatasetError, match=told):
        count_records(SourceFile(0, "train", "train", str(path), path.name), Storage())


@pytest.mark.parametrize("is_stated", [True, False])
def test_a_file_without_bytes_is_a_fault_unless_no_records_are_stated(tmp_path: Path, is_stated: bool) -> None:
    found = list(scan_records(io.BytesIO(b""), "a.tfrecord", may_be_empty=is_stated))
    assert [item.code for item in found if isinstance(item, RecordFault)] == ([] if is_stated else ["empty_file"])
    (tmp_path / "a").write_bytes(b"")
    source = SourceFile(0, "train", "train", str(tmp_path / "a"), "a", stated=0 if is_stated else None)
    if is_stated:
        assert count_records(source, Storage()).records == 0
    else:
        with pytest.raises(DatasetError, match="a: the file has no bytes"):
            count_records(source, Storage())


def test_records_of_any_content_are_records_and_damaged_ones_stay_damaged() -> None:
    """Contents that look like other kinds, and any damage of a length that keeps it one."""
    rng = random.Random(4)
    for data, _ in FOREIGN.values():
        for packed in (frame(data), gzip.compress(frame(data)), zlib.compress(frame(data))):
            (record,) = scan_records(io.BytesIO(packed), "x")
            assert not isinstance(record, RecordFault)
            assert record.data == data
    for size in (1, 218, 0x8B1F, 0xD8FF, 0x5A42):  # lengths that are spelled like signatures
        whole = bytearray(frame(rng.randbytes(size)))
        whole[8 + rng.randrange(4)] ^= 1 + rng.randrange(255)
        found = list(scan_records(io.BytesIO(bytes(whole)), "x", "none"))
        assert [item.code for item in found if isinstance(item, RecordFault)] == ["damaged_record"]
