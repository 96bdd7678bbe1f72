"""Compressed files as streams: gzip, bzip2 and xz, told by their first bytes and never by their name."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.base import Files

# What reading a cut or damaged stream raises. gzip.BadGzipFile and bz2's "Invalid data stream" are OSErrors.
BROKEN_STREAM = (EOFError, zlib.error, lzma.LZMAError, OSError)
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz"}


def compression_of(head: bytes) -> str:
    """``gzip``, ``bzip2``, ``xz``, or empty when the first bytes are of none of them."""
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")


def unpacking(stream: BinaryIO, compression: str) -> BinaryIO:
    """The unpacked bytes of a stream, read forward. Several compressed parts in a row are one stream."""
    if compression == "gzip":
        return cast(BinaryIO, gzip.GzipFile(fileobj=stream, mode="rb"))
    if compression == "bzip2":
        return cast(BinaryIO, bz2.BZ2File(stream, "rb"))
    if compression == "xz":
        return cast(BinaryIO, lzma.LZMAFile(stream, "rb"))
    return stream


@contextmanager
def open_unpacked(files: Files, uri: str) -> Iterator[BinaryIO]:
    """A file opened for reading, unpacked when it is compressed.

    Raises ManifestError when there is no such file or it cannot be read; also from the body of the with statement.
    """
    with readable(uri), files.open(uri) as stream:
        head = stream.read(6)
        stream.seek(0)
        compression = compression_of(head)
        yield unpacking(stream, compression)


@contextmanager
def readable(uri: str) -> Iterator[None]:
    """Faults of reading a source as ManifestErrors that name it."""
    try:
        yield
    except FileNotFoundError as error:
        if isinstance(error.filename, str) or not str(error):
            raise ManifestError(f"{uri} does not exist") from None
        raise ManifestError(str(error)) from None
    except EOFError:
        raise ManifestError(f"{uri} ends in the middle of its compressed data: fetch or make it again") from None
    except (zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise ManifestError(f"{uri}: its compressed data are damaged ({error}): fetch or make it again") from None
    except OSError as error:
        raise ManifestError(f"{uri} cannot be read: {error.strerror or error}") from None
