"""What single tar and zip archives hold: names, kinds and places, without unpacking anything.

Tar members are read with :mod:`tarfile`, header by header, so that damage is noticed (tarfile itself takes a broken
header for the end of the archive) and no list of members builds up. Zip members come from the central directory.
"""

from __future__ import annotations

import stat
import tarfile
import zipfile
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, cast

from beam_tfrecord.manifests.archives.streams import (
    HARMLESS_BYTES,
    LARGEST_MEMBER,
    LARGEST_RATIO,
    LOCAL_HEADER_BYTES,
    READABLE_METHODS,
    BrokenStreamError,
    Seekable,
)

_LONGEST_LINK = 4_096
_BLOCK = tarfile.BLOCKSIZE


class Item(NamedTuple):
    """Something that an archive holds.

    kind: ``file``; ``link`` (target: where it leads, is_hard: seen from the top of the archive); ``other`` (a device, a
    pipe); ``cut`` (the item before it ends behind the end of the archive); ``damage`` (a place where no member is).
    offset, size: place of the packed bytes in the archive; the offset of a zip entry is that of its local header.
    unpacked: size of the data. code, message: why the member cannot be read, empty when it can.
    """

    name: str
    kind: str
    offset: int = -1
    size: int = 0
    unpacked: int = 0
    target: str = ""
    is_hard: bool = False
    code: str = ""
    message: str = ""


# ---------------------------------------------------------------------------------------------------------------------
# tar


def list_tar(stream: Seekable) -> Iterator[Item]:
    """The members of a tar archive, in its order; folders are left out.

    stream: at its start; needs to be read forward only, and may be read by the caller between two items up to the end
    of the item that was yielded. Members behind a broken header are found again. Raises BrokenStreamError when not even
    the first member can be read.
    """
    try:
        archive = tarfile.TarFile(fileobj=cast(BinaryIO, stream), mode="r", encoding="utf-8", errors="surrogateescape")
    except (tarfile.TarError, ValueError) as error:
        raise BrokenStreamError(f"is no tar archive that can be read: {error}") from None
    info = archive.next()
    has_ended = is_damaged = False
    while True:
        if info is not None:
            has_ended = is_damaged = False
            if info.size < 0 or archive.offset <= info.offset:
                yield _damage(info.offset, "a header states a negative size")
                return
            item = _tar_item(info)
            if item is not None:
                yield item
                if item.kind == "file" and not _reaches(stream, item.offset + item.size):
                    yield Item(item.name, "cut")
                    return
        info = None
        try:
            if stream.seek(archive.offset) != archive.offset:
                return
            info = tarfile.TarInfo.fromtarfile(archive)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            # A zero block: the end, and what is behind it an archive that was appended. Among damage it says nothing.
            has_ended = not is_damaged
            archive.offset += _BLOCK
        except tarfile.EmptyHeaderError:  # type: ignore[attr-defined]
            return
        except BrokenStreamError as error:
            yield _damage(archive.offset, str(error))
            return
        except tarfile.TruncatedHeaderError:  # type: ignore[attr-defined]
            if not has_ended:
                yield _damage(archive.offset, "the archive ends inside of a header")
            return
        except (tarfile.HeaderError, ValueError) as error:
            if has_ended:
                return
            if not is_damaged:
                yield _damage(archive.offset, f"there is no valid header ({error})")
            is_damaged = True
            archive.offset += _BLOCK


def _reaches(stream: Seekable, end: int) -> bool:
    """Whether the stream has the byte in front of ``end``."""
    try:
        return stream.seek(end - 1) == end - 1 and len(stream.read(1)) == 1
    except BrokenStreamError:
        return False


def _damage(offset: int, cause: str) -> Item:
    message = f"at byte {offset} {cause}: members from there on may be lost; fetch or make the archive again"
    return Item(f"byte {offset}", "damage", code="damaged_archive", message=message)


def _tar_item(info: tarfile.TarInfo) -> Item | None:
    if info.isdir():
        return None
    if info.issym() or info.islnk():
        return Item(info.name, "link", info.offset_data, 0, target=info.linkname, is_hard=info.islnk())
    if not info.isreg():
        return Item(info.name, "other", info.offset_data, 0)
    code, message = _limits(info.size, info.size)
    if info.issparse():
        code, message = "damaged_archive", "it is stored as a sparse file: make the archive again without --sparse"
    return Item(info.name, "file", info.offset_data, info.size, info.size, code=code, message=message)


# ---------------------------------------------------------------------------------------------------------------------
# zip


def list_zip(stream: BinaryIO) -> Iterator[Item]:
    """The entries of a zip archive, in the order of its directory; folders are left out.

    Raises BrokenStreamError when the directory, which stands at the end, cannot be read.
    """
    try:
        archive = zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise BrokenStreamError(
            f"is a zip archive without a readable directory at its end ({error}): it is cut or damaged"
        ) from None
    end = stream.seek(0, 2)
    for info in archive.infolist():
        if not info.filename.endswith("/"):
            yield _zip_item(archive, info, end)


def _zip_item(archive: zipfile.ZipFile, info: zipfile.ZipInfo, end: int) -> Item:
    name = info.orig_filename  # not cut at a NUL
    code, message = _limits(info.file_size, info.compress_size)
    if info.header_offset < 0 or info.header_offset + LOCAL_HEADER_BYTES + info.compress_size > end:
        code, message = "damaged_archive", "the directory of the archive says that it lies outside of the archive"
    elif info.flag_bits & 1:
        code, message = "encrypted_archive", "it is encrypted: unpack the archive with its password and make it anew"
    elif info.compress_type not in READABLE_METHODS:
        method = zipfile.compressor_names.get(info.compress_type, "an unknown one")  # type: ignore[attr-defined]
        code = "damaged_archive"
        message = f"it is packed with method {info.compress_type} ({method}): make the archive again with deflate"
    # Permissions of the Unix that made it (APPNOTE.TXT 4.4.15) say that an entry is a link; its data are the target.
    elif stat.S_ISLNK(info.external_attr >> 16) and info.file_size <= _LONGEST_LINK:
        try:
            target = archive.read(info).decode("utf-8", "surrogateescape")
        except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, ValueError) as error:
            return Item(name, "file", code="damaged_archive", message=f"the link cannot be read: {error}")
        return Item(name, "link", info.header_offset, 0, target=target)
    return Item(name, "file", info.header_offset, info.compress_size, info.file_size, code=code, message=message)


def _limits(unpacked: int, packed: int) -> tuple[str, str]:
    """(code, message) for a member that states a size which cannot be that of an image."""
    if unpacked > LARGEST_MEMBER:
        return "read_failed", f"it has {unpacked:,} bytes, more than the {LARGEST_MEMBER:,} that a record can hold"
    if unpacked > HARMLESS_BYTES and unpacked > LARGEST_RATIO * packed:
        return "read_failed", f"it says to unpack from {packed:,} bytes to {unpacked:,}, which no image does"
    return "", ""
