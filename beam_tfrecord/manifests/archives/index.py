"""Everything that an archive holds, archives inside of it included, as paths and places.

An archive inside of another counts as a folder of its name without the suffix, one level deep (``n01440764.tar`` of
ImageNet's train archive becomes the class n01440764). Links lead to members of the same archive or nowhere.
"""

from __future__ import annotations

import io
import posixpath
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from beam_tfrecord.core.elements import Member
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.archives.listing import Item, list_tar, list_zip
from beam_tfrecord.manifests.archives.members import unpacked_part
from beam_tfrecord.manifests.archives.streams import (
    BUFFER,
    LARGEST_RATIO,
    LOCAL_HEADER_BYTES,
    BrokenStreamError,
    archive_kind,
    buffered,
    parse_local_header,
)
from beam_tfrecord.manifests.base import Files
from beam_tfrecord.manifests.filenames import archive_stem, is_archive_name, junk_part
from beam_tfrecord.manifests.text.compression import readable

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
