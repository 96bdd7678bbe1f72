"""What archives hold: names, kinds and places of their members, archives inside of them included.

Tar members are read with :mod:`tarfile`, header by header, so that damage is noticed (tarfile itself takes a broken
header for the end of the archive) and no list of members builds up. Zip members come from the central directory. Only
what is packed around an inner archive is unpacked for it.

An archive inside of another counts as a folder of its name without the suffix, one level deep (``n01440764.tar`` of
ImageNet's train archive becomes the class n01440764). Links lead to members of the same archive or nowhere.
"""

from __future__ import annotations

import io
import posixpath
import re
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import BinaryIO, NamedTuple, cast

from beam_tfrecord.core.elements import Member
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.archives.members import unpacked_part
from beam_tfrecord.manifests.archives.streams import (
    BUFFER,
    HARMLESS_BYTES,
    LARGEST_MEMBER,
    LARGEST_RATIO,
    LOCAL_HEADER_BYTES,
    READABLE_METHODS,
    BrokenStreamError,
    Seekable,
    archive_kind,
    buffered,
    parse_local_header,
)
from beam_tfrecord.manifests.base import Files
from beam_tfrecord.manifests.filenames import archive_stem, is_archive_name, junk_part
from beam_tfrecord.manifests.text.compression import readable

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


_IN_MEMORY = 64 * 2**20  # of an inner zip that is copied out of a compressed archive to be listed


@dataclass(frozen=True, slots=True)
class Listed:
    """A member. path: below the archive, archives inside being folders. member: None when it cannot be read.

    size: in bytes, unpacked. code, message: why it cannot be read.
    """

    path: str
    chain: tuple[str, ...]
    size: int = 0
    member: Member | None = None
    code: str = ""
    message: str = ""


@dataclass
class ArchiveIndex:
    """What an archive holds.

    members: readable ones by path; of several with one path the last, as after unpacking, the others in ``replaced``.
    troubles: what cannot be read. others: number of devices and pipes.
    """

    uri: str
    members: dict[str, Listed] = field(default_factory=dict)
    replaced: dict[str, list[Listed]] = field(default_factory=dict)
    troubles: list[Listed] = field(default_factory=list)
    others: int = 0

    def add(self, listed: Listed) -> None:
        """Add a readable member."""
        if listed.path in self.members:
            self.replaced.setdefault(listed.path, []).append(self.members[listed.path])
        self.members[listed.path] = listed


@dataclass(frozen=True)
class _Space:
    """What offsets count in: the archive file, or an unpacked container; ``start`` is added to those of an inner
    archive.

    chain: names of the archives that lead here; empty for the outermost. size: of the archive in bytes, -1 for all
    there is. seekable: whether it can be read backwards.
    """

    uri: str
    container: Member | None = None
    start: int = 0
    chain: tuple[str, ...] = ()
    size: int = -1
    seekable: bool = True

    @property
    def is_inner(self) -> bool:
        return bool(self.chain)

    def member(self, item: Item, is_zip: bool) -> Member:
        """The place of an item of an archive that begins at ``start``."""
        method = "zip" if is_zip else "stored"
        return Member(self.uri, (*self.chain, item.name), self.start + item.offset, item.size, method, self.container)


def list_archive(files: Files, uri: str) -> ArchiveIndex:
    """List an archive: one quick look at the headers, or one pass through it when it is compressed.

    Raises ManifestError when it cannot be read at all.
    """
    index = ArchiveIndex(uri)
    with readable(uri), files.open(uri) as stream:
        size = files.size(uri)
        if not size:
            raise ManifestError(f"{uri} is empty: fetch or make the archive again")
        try:
            _list(buffered(stream, 0, size), _Space(uri), index)
        except BrokenStreamError as error:
            raise ManifestError(f"{uri} {error}") from None
    if not index.members and not index.troubles:
        raise ManifestError(f"{uri} is an archive without any files in it")
    return index


def _list(stream: io.BufferedReader, space: _Space, index: ArchiveIndex) -> None:
    """List the archive that begins a stream. Raises BrokenStreamError when nothing of it can be read."""
    kind = archive_kind(stream.peek(512)[:512])
    if kind == "tar":
        _list_items(list_tar(stream), stream, space, index, is_zip=False)
    elif kind == "zip" and space.seekable:
        _list_items(list_zip(stream), stream, space, index, is_zip=True)
    elif kind == "zip":
        with io.BytesIO() if 0 <= space.size <= _IN_MEMORY else tempfile.TemporaryFile() as copy:
            while block := stream.read(BUFFER):
                copy.write(block)
            _list_items(list_zip(copy), copy, space, index, is_zip=True)
    elif kind:
        container = Member(space.uri, space.chain, space.start, space.size, kind, space.container)
        plain = buffered(unpacked_part(stream, replace(container, offset=0)))
        if archive_kind(plain.peek(512)[:512]) != "tar":
            raise BrokenStreamError(f"is compressed with {kind}, but holds no tar archive")
        inside = replace(space, container=container, start=0, seekable=False)
        _list_items(list_tar(plain), plain, inside, index, is_zip=False)
    else:
        raise BrokenStreamError("is no zip or tar archive, whatever its name says")


def _list_items(items: Iterator[Item], stream: BinaryIO, space: _Space, index: ArchiveIndex, is_zip: bool) -> None:
    """Sort the items of one archive into the index, and list the archives among them."""
    own = ArchiveIndex(index.uri)
    links: list[tuple[str, Item]] = []
    inner: list[ArchiveIndex] = []
    for item in items:
        path, chain = clean_path(item.name), (*space.chain, item.name)
        unsafe = unsafe_reason(item.name) if item.kind != "damage" else ""
        if item.kind == "cut":
            _cut(own, inner, path, chain)
        elif item.kind == "other":
            own.others += 1
        elif unsafe:
            own.troubles.append(Listed(path, chain, code="unsafe_path", message=unsafe))
        elif item.kind == "link":
            links.append((path, item))
        elif item.kind == "file" and not space.is_inner and is_archive_name(path) and junk_part(path) is None:
            inner.append(_list_inner(stream, space, item, path, is_zip))
        elif item.code:
            own.troubles.append(Listed(path, chain, code=item.code, message=item.message))
        else:
            own.add(Listed(path, chain, item.unpacked, space.member(item, is_zip)))
    _follow_links(own, links, space)
    for part in (own, *inner):
        _merge(index, part)


def _merge(index: ArchiveIndex, part: ArchiveIndex) -> None:
    for path, earlier in part.replaced.items():
        index.replaced.setdefault(path, []).extend(earlier)
    for listed in part.members.values():
        index.add(listed)
    index.troubles.extend(part.troubles)
    index.others += part.others


def _cut(own: ArchiveIndex, inner: list[ArchiveIndex], path: str, chain: tuple[str, ...]) -> None:
    """The last member ends behind the end of its archive. One that cannot be read anyhow, or an inner archive that was
    found damaged, has been told already.
    """
    message = "the archive ends in the middle of it, and whatever follows it is lost: fetch or make the archive again"
    last = own.members.get(path)
    if last is not None and last.chain == chain:
        del own.members[path]
        if own.replaced.get(path):
            own.members[path] = own.replaced[path].pop()
    elif is_archive_name(path) and inner and not inner[-1].troubles:
        pass
    else:
        return
    own.troubles.append(Listed(path, chain, code="damaged_archive", message=message))


def _list_inner(stream: BinaryIO, space: _Space, item: Item, path: str, is_zip: bool) -> ArchiveIndex:
    """The index of an archive inside of another, its members below a folder of its name."""
    found = ArchiveIndex(space.uri)
    chain = (*space.chain, item.name)
    is_bomb = item.unpacked > LARGEST_RATIO * max(item.size, 1)
    if item.code and (item.code != "read_failed" or is_bomb):
        found.troubles.append(Listed(path, chain, code=item.code, message=item.message))
        return found
    inside = replace(space, chain=chain, start=space.start + item.offset, size=item.size)
    try:
        if is_zip:
            _list_in_zip(stream, space, inside, item, found)
        else:
            _list(buffered(stream, item.offset, item.size), inside, found)
    except BrokenStreamError as error:
        message = f"the archive inside of the archive {error}"
        return ArchiveIndex(space.uri, troubles=[Listed(path, chain, code="damaged_archive", message=message)])
    stem = archive_stem(path)
    own_folder = f"{posixpath.basename(stem)}/"
    # train.zip with everything in a folder train/ is train/..., not train/train/...
    is_double = bool(found.members) and all(name.startswith(own_folder) for name in found.members)
    prefix = stem[: len(stem) - len(own_folder) + 1] if is_double else f"{stem}/"
    return _below(found, prefix)


def _list_in_zip(stream: BinaryIO, space: _Space, inside: _Space, item: Item, found: ArchiveIndex) -> None:
    """List an archive that is an entry of a zip: in its place when it is only stored, else as it unpacks."""
    stream.seek(item.offset)
    try:
        header = parse_local_header(stream.read(LOCAL_HEADER_BYTES))
    except ValueError as error:
        raise BrokenStreamError(f"cannot be read: {error}") from None
    if header.method == 0:
        place = replace(inside, start=inside.start + header.size)
        _list(buffered(stream, item.offset + header.size, item.size), place, found)
        return
    container = Member(space.uri, inside.chain, space.start + item.offset, item.size, "zip", space.container)
    plain = unpacked_part(stream, replace(container, offset=item.offset))
    inside = replace(inside, container=container, start=0, size=item.unpacked, seekable=False)
    _list(buffered(plain), inside, found)


def _below(found: ArchiveIndex, prefix: str) -> ArchiveIndex:
    """An index with all paths below a folder."""

    def moved(listed: Listed) -> Listed:
        return replace(listed, path=prefix + listed.path)

    return ArchiveIndex(
        found.uri,
        {prefix + path: moved(listed) for path, listed in found.members.items()},
        {prefix + path: [moved(listed) for listed in earlier] for path, earlier in found.replaced.items()},
        [moved(listed) for listed in found.troubles],
        found.others,
    )


def _follow_links(own: ArchiveIndex, links: list[tuple[str, Item]], space: _Space) -> None:
    """A link is its target under another name, when that is a member; else it cannot be read."""
    pending = []
    for path, item in links:
        climbs = item.target if item.is_hard else posixpath.join(posixpath.dirname(path), item.target)
        target = posixpath.normpath(climbs)
        if unsafe_reason(item.target, may_climb=True) or target.split("/")[0] == "..":
            message = f"it is a link to {item.target!r}, which lies outside of the archive"
            own.troubles.append(Listed(path, (*space.chain, item.name), code="unsafe_path", message=message))
        else:
            pending.append((path, target, item))
    while pending:  # a link may lead to another one
        waiting = [link for link in pending if link[1] not in own.members]
        if len(waiting) == len(pending):
            break
        for path, target, item in pending:
            if target in own.members:
                found, chain = own.members[target], (*space.chain, item.name)
                member = replace(found.member, path=chain) if found.member else None
                own.add(Listed(path, chain, found.size, member))
        pending = waiting
    for path, _, item in pending:
        message = f"it is a link to {item.target!r}, which is no file of the archive"
        own.troubles.append(Listed(path, (*space.chain, item.name), code="missing_file", message=message))


def clean_path(name: str) -> str:
    """A member's name as a path: without ``./`` and doubled slashes."""
    return "/".join(part for part in name.split("/") if part not in ("", "."))


def unsafe_reason(name: str, may_climb: bool = False) -> str:
    """Why a name may lead out of its archive; empty when it cannot. may_climb: ``..`` is looked at by the caller."""
    if name.startswith("/") or re.match(r"[A-Za-z]:", name):
        return f"its name {name!r} is absolute"
    if "\\" in name:
        return f"its name {name!r} has backslashes, which some systems take for folders: make the archive anew with /"
    if ".." in name.split("/") and not may_climb:
        return f"its name {name!r} leads out of the archive"
    if "\0" in name or not clean_path(name):
        return f"{name!r} is no name of a file"
    return ""
