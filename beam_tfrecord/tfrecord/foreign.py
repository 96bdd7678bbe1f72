"""What a file is that should hold TFRecords and holds something else, told from its first bytes.

One function decides it for every command. Signatures: Snappy framing format 4.1; the block format of Hadoop (two
big-endian lengths); Zstandard RFC 8878; LZ4 frame format 1.6; Parquet, Arrow, Avro, ORC, NumPy, HDF5 and SQLite by the
magic bytes of their specifications; all else by :mod:`beam_tfrecord.images.sniff`.
"""

from __future__ import annotations

from beam_tfrecord.images.sniff import describe, sniff
from beam_tfrecord.tfrecord.compression import SUFFIXES, inflated_start
from beam_tfrecord.tfrecord.framing import HEADER_SIZE, parse_header

NO_BYTES = (
    "the file has no bytes: what wrote it may have failed; write it again, or take it away if it is meant to hold no "
    "records"
)
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\xff\x06\0\0sNaPpY", "compressed with Snappy"),
    (b"\x28\xb5\x2f\xfd", "compressed with Zstandard"),
    (b"\x04\x22\x4d\x18", "compressed with LZ4"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"Obj\x01", "an Avro file"),
    (b"ORC", "an ORC file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"SQLite format 3\0", "an SQLite database"),
)
_WRITTEN_ANEW = "TensorFlow reads TFRecords without compression, with gzip and with zlib; decompress it, or write it so"
_CURES = {
    "html": "fetch the file again: a download that was refused often leaves such a page",
    "xml": "fetch the file again: a download that was refused often leaves such a text",
    "json": "fetch the file again: a download that was refused often leaves such a text",
    "zip": "unpack it",
    "tar": "unpack it",
    "7z": "unpack it",
    "rar": "unpack it",
    "bzip2": _WRITTEN_ANEW,
    "xz": _WRITTEN_ANEW,
    "zeros": "fetch the file again",
}
_SHORT = 5  # bytes: a shorter signature may be the length of a record whose checksum is damaged
_SHORT_TEXT = 64
_SNIFFED = 1 << 12


def foreign_kind(head: bytes, name: str = "") -> str:
    """Why a file that starts with ``head`` holds no TFRecords, and the cure; '' where it does or may do.

    A file that starts with a record's length and its right checksum, compressed or not, is one of TFRecords, whatever
    else it looks like. One that starts with what can be a length is a damaged one, unless it is surely something else.
    """
    if any(starts_right(kind, head) for kind in SUFFIXES):
        return ""
    for kind in SUFFIXES:
        inner = inflated_start(kind, head, _SNIFFED) if kind != "none" else b""
        if inner:
            found = _kind_of(inner, "")
            return f"the file holds no TFRecords: it is {found[0]}, compressed with {kind}; {found[1]}" if found else ""
    found = _kind_of(head, name)
    return f"the file holds no TFRecords: it is {found[0]}; {found[1]}" if found else ""


def starts_right(compression: str, head: bytes) -> bool:
    """Whether a file that is compressed in this way starts with a length and its right checksum."""
    start = head[:HEADER_SIZE] if compression == "none" else inflated_start(compression, head, HEADER_SIZE)
    return len(start) == HEADER_SIZE and not parse_header(start)[1]


def _kind_of(head: bytes, name: str) -> tuple[str, str] | None:
    """What it is, and what to do about it."""
    for magic, told in _MAGIC:
        if head.startswith(magic) and (len(magic) >= _SHORT or not _may_be_length(head)):
            return told, _WRITTEN_ANEW if "compressed" in told else "it has to be converted with a tool that reads it"
    if _is_hadoop_snappy(head, name):
        return "compressed with Snappy, as Hadoop and Spark do", _WRITTEN_ANEW
    kind = sniff(head[:_SNIFFED])
    if kind in ("gzip", "unknown") or (kind not in ("tar", "zeros", "git-lfs") and _may_be_length(head)):
        return None  # a gzip stream that is damaged is told by whoever inflates it
    if kind == "text" and len(head) < _SHORT_TEXT and (len(head) < _SHORT or not head.isascii()):
        return None  # a stream that was cut early
    told = describe(kind)
    if kind == "git-lfs":
        return "a Git LFS pointer", "git lfs pull fetches the file itself"
    if kind == "html":
        told = "an HTML page (often an error page)"
    return told.split(": ")[0], _CURES.get(kind, "it has to be converted with a tool that reads it")


def _may_be_length(head: bytes) -> bool:
    """Whether the file may start with the length of a record of less than 4 GiB."""
    return len(head) >= 8 and head[4:8] == bytes(4)


def _is_hadoop_snappy(head: bytes, name: str) -> bool:
    """A block of Hadoop: its length, and that of its compressed bytes, which are hardly more."""
    if name.lower().endswith(".snappy"):
        return True
    whole, packed = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:8], "big")
    return len(head) >= 16 and 0 < whole <= 1 << 24 and 0 < packed <= whole + whole // 6 + 32 and head[:1] == b"\0"
