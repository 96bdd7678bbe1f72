"""The members of a tar archive from anywhere, read forward: only plain files with plain names are let through.

Nothing that an archive says decides how much memory is taken. Links, folders, devices, sparse files and the many
extensions of the format are refused: pack writes none of them.

A header (POSIX.1-2001, pax, "ustar Interchange Format") is a block of 512 bytes: name 0-99, size 124-135, sum of its
bytes 148-155 (itself counted as spaces), type 156, prefix of the name 345-499; numbers are octal. The data follow,
padded to whole blocks. A header of type ``x`` has records ``LENGTH KEY=VALUE`` as its data, for the file behind it. Two
blocks of zeros are the end.

The whole is as it is, or compressed with gzip or xz. What pack writes is reproducible: nothing but content goes into a
stream, no time and no name. Reading tells the kind from the first bytes, whatever the name: gzip (RFC 1952) starts with
1f 8b, xz (The .xz File Format, 2.1.1.1) with fd 37 7a 58 5a 00.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Iterator
from typing import BinaryIO, cast

from beam_tfrecord.errors import ConfigError, DatasetError
from beam_tfrecord.tools.packing.contents import check_name

ENDINGS = {".tar": "none", ".tar.gz": "gzip", ".tgz": "gzip", ".tar.xz": "xz", ".txz": "xz"}
XZ_PRESET = 6
GZIP_LEVEL = 6
# What reading a damaged or cut stream raises.
BROKEN = (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error)
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"


def compression_for(name: str) -> str:
    """``none``, ``gzip`` or ``xz``, as the ending of an archive's name says. Raises ConfigError for any other."""
    for ending, compression in ENDINGS.items():
        if name.lower().endswith(ending):
            return compression
    raise ConfigError(f"--output {name}: the name must end in {', '.join(ENDINGS)}")


@contextlib.contextmanager
def compressing(target: BinaryIO, compression: str) -> Iterator[BinaryIO]:
    """A stream whose bytes go into ``target``, compressed; complete when the block is left."""
    if compression == "gzip":
        with gzip.GzipFile("", "wb", GZIP_LEVEL, target, mtime=0) as stream:
            yield cast(BinaryIO, stream)
    elif compression == "xz":
        with lzma.open(target, "wb", preset=XZ_PRESET) as stream:
            yield cast(BinaryIO, stream)
    else:
        yield target


def decompressed(source: BinaryIO) -> BinaryIO:
    """The bytes of the tar archive in a file that is open at its start. Raises DatasetError when it is empty."""
    head = source.read(6)
    source.seek(0)
    if not head:
        raise DatasetError("it is empty: copy it again")
    if head.startswith(_GZIP):
        return cast(BinaryIO, gzip.GzipFile(fileobj=source))
    if head.startswith(_XZ):
        return cast(BinaryIO, lzma.LZMAFile(source))
    return source


BLOCK = 512
_LARGEST_HEADER = 2**16  # bytes of extended headers, which are taken into memory
_PIECE = 1 << 20
_FILES, _EXTENDED = (b"0", b"\0"), b"x"
_KINDS = {b"1": "a link", b"2": "a link", b"3": "a device", b"4": "a device", b"5": "a folder", b"6": "a pipe"}
_OCTAL = re.compile(rb" *([0-7]+)[ \0]*")


class MemberData(io.RawIOBase):
    """The data of a member. Raises DatasetError when the archive ends within."""

    def __init__(self, plain: BinaryIO, name: str, size: int) -> None:
        super().__init__()
        self._plain = plain
        self._name = name
        self._left = size

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Up to ``size`` bytes, none at the end."""
        wanted = self._left if size < 0 else min(size, self._left)
        data = self._plain.read(wanted) if wanted else b""
        if wanted and not data:
            raise DatasetError(f"the archive ends within {self._name}: copy it again")
        self._left -= len(data)
        return data


def read_members(plain: BinaryIO) -> Iterator[tuple[str, int, BinaryIO]]:
    """(name, size, data) of each file of a tar archive; what is not read of the data is passed over.

    Raises DatasetError for anything that is no plain file with a plain name, and where the archive is damaged or ends
    early. Behind the last file the stream stands behind the first block of zeros.
    """
    fields: dict[str, str] = {}
    while header := _block(plain):
        if not any(header):
            return
        size, kind, name = parse_header(header)
        if kind == _EXTENDED:
            if fields or size > _LARGEST_HEADER:
                raise DatasetError(f"{name!r} in the archive is an extended header that pack does not write")
            fields = parse_fields(_whole(MemberData(plain, name, size)))
            _skip(plain, -size % BLOCK)
            continue
        if kind not in _FILES:
            what = _KINDS.get(kind, f"of the type {kind!r}")
            raise DatasetError(f"{name!r} in the archive is {what}: an archive of a dataset holds plain files only")
        name = fields.get("path", name)
        size = _whole_number(fields.get("size", str(size)))
        fields = {}
        check_name(name)
        data = MemberData(plain, name, size)
        yield name, size, cast(BinaryIO, data)
        while data.read(_PIECE):
            pass
        _skip(plain, -size % BLOCK)
    raise DatasetError("the archive ends without its end mark: copy it again")


def parse_header(header: bytes) -> tuple[int, bytes, str]:
    """(size, type, name) that a header block states. Raises DatasetError when it is none."""
    stated, size = (_OCTAL.fullmatch(header[start:end]) for start, end in ((148, 156), (124, 136)))
    if stated is None or int(stated[1], 8) != sum(header[:148]) + sum(header[156:]) + 8 * ord(" "):
        raise DatasetError("it is no tar archive, or damaged: a header has a wrong sum")
    name, prefix = (
        header[start:end].partition(b"\0")[0].decode("utf-8", "replace") for start, end in ((0, 100), (345, 500))
    )
    if size is None:
        raise DatasetError(f"{name!r} in the archive has no size that can be read")
    return int(size[1], 8), header[156:157], f"{prefix}/{name}" if prefix else name


def parse_fields(data: bytes) -> dict[str, str]:
    """The path and the size in an extended header. Raises DatasetError for other fields, and when it is damaged."""
    fields: dict[str, str] = {}
    while data:
        match = re.match(rb"(\d{1,5}) ", data)
        end = int(match[1]) if match else 0
        record = data[match.end() : end] if match else b""
        key, equals, value = record.partition(b"=")
        if not equals or not value.endswith(b"\n") or end > len(data) or key not in (b"path", b"size"):
            raise DatasetError(f"the archive has an extended header that pack does not write ({key[:40]!r})")
        fields[key.decode()] = value[:-1].decode("utf-8", "replace")
        data = data[end:]
    return fields


def _whole_number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,19}", text):
        raise DatasetError(f"the archive has a file of the size {text[:40]!r}")
    return int(text)


def _block(plain: BinaryIO) -> bytes:
    """The next block; nothing at the end. Raises DatasetError for a part of one."""
    data = b""
    while len(data) < BLOCK and (piece := plain.read(BLOCK - len(data))):
        data += piece
    if 0 < len(data) < BLOCK:
        raise DatasetError("the archive ends within a header: copy it again")
    return data


def _whole(data: MemberData) -> bytes:
    pieces = []
    while piece := data.read(_PIECE):
        pieces.append(piece)
    return b"".join(pieces)


def _skip(plain: BinaryIO, size: int) -> None:
    while size > 0 and (piece := plain.read(size)):
        size -= len(piece)
