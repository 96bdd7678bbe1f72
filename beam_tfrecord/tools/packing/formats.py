"""The kinds of archives: tar (POSIX.1-2001, pax), as it is or compressed with gzip or xz.

Bytes are reproducible: nothing but content goes into a stream, no time and no name. Reading tells the kind from the
first bytes, whatever the name: gzip (RFC 1952) starts with 1f 8b, xz (The .xz File Format, 2.1.1.1) with fd 37 7a 58 5a
00.
"""

from __future__ import annotations

import contextlib
import gzip
import lzma
import zlib
from collections.abc import Iterator
from typing import BinaryIO, cast

from beam_tfrecord.errors import ConfigError, DatasetError

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
