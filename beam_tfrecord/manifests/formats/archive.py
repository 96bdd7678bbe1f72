"""Archives (zip, tar, tar.gz, tar.bz2, tar.xz) with class folders, or a manifest and its images, in them.

An archive is read where it lies: its inside is shown to the other formats as a file system (:mod:`.archive_files`), and
each row gets the place of its image's bytes. What cannot be read (encrypted, damaged, named so that it lies outside,
links that lead nowhere) is a reject with the name of the member.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from beam_tfrecord.core.account import AS_IMAGE, AS_MASK, FILES, Account, AccountBuilder, Decision
from beam_tfrecord.core.elements import Member, RejectedRow, Row
from beam_tfrecord.errors import ElementError, ManifestError
from beam_tfrecord.manifests.archives.files import ArchiveFiles
from beam_tfrecord.manifests.archives.index import ArchiveIndex, Listed, list_archive
from beam_tfrecord.manifests.archives.members import shared_archives
from beam_tfrecord.manifests.archives.streams import archive_kind
from beam_tfrecord.manifests.base import Files, Ignored, Item, ManifestFormat, Piece, Source, from_plain, to_plain
from beam_tfrecord.manifests.filenames import ARCHIVE_SUFFIXES, is_data_name, junk_part
from beam_tfrecord.manifests.leftovers import Reads, tell_files
from beam_tfrecord.manifests.own_outputs import LEFT_OUT, check_input, describe_beside, files_beside
from beam_tfrecord.manifests.registry import FORMATS, detect_format
from beam_tfrecord.manifests.text.row_fields import rejected
from beam_tfrecord.manifests.text.spelling import find_other, spelling_decisions
from beam_tfrecord.manifests.text.uri_text import scheme_of, with_slash
from beam_tfrecord.options.config import ManifestConfig

_NO_ARCHIVES = (".xlsx", ".docx", ".npz", ".jar", ".apk", ".whl")
_MASKS = ("mask", "instance_mask")


class ArchiveFormat(ManifestFormat):
    """One archive. Its headers are looked at twice, to learn what it holds and for the rows; a compressed one is read
    through for that.
    """

    name = "archive"
    counts_files = True
    suffixes = ARCHIVE_SUFFIXES

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        """Whether the bytes, unpacked if they were compressed, begin like a zip or tar."""
        return archive_kind(head) in ("zip", "tar") and not uri.lower().endswith(_NO_ARCHIVES)

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        index = list_archive(files, uri)
        inner_files = ArchiveFiles(files, index, shared_archives())
        config = inside_config(config)
        check_input(inner_files, inner_files.root, uri, is_archive=True)

        def look(beside: Files) -> Source:
            return FORMATS[detect_format(beside, inner_files.root)].describe(beside, inner_files.root, split, config)

        try:
            inner = describe_beside(look, inner_files, inner_files.root)
        except ManifestError:
            if not index.troubles or any(junk_part(path) is None and not is_data_name(path) for path in index.members):
                raise
            # No image in it can be read; that is told member by member.
            return Source(uri, self.name, split, inner_files.root)
        return Source(
            uri,
            self.name,
            split,
            inner.base,
            inner.labels,
            inner.category_ids,
            {"inner": to_plain(inner), "found": inner.details.get("found", inner.format)},
            account=inner.account,
            decisions=(Decision("format inside", inner.format, "what lies in the archive"), *inner.decisions),
            surprises=inner.surprises,
        )

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        index = list_archive(files, piece.source.uri)
        details = piece.source.details
        inner = from_plain(details["inner"]) if "inner" in details else None
        if index.others:
            yield Ignored(index.others)
        is_listed = inner is None or inner.details.get("counts_files", FORMATS[inner.format].counts_files)
        if is_listed:  # each file that can be read is told of, so that the others must be as well
            yield from _troubles(index)
        if inner is None:
            return
        inner_files = ArchiveFiles(files, index, shared_archives())
        placer = _Placer(index, inner_files, inner)
        beside = files_beside(inner_files, inner)
        for item in FORMATS[inner.format].rows(beside, Piece(inner), inside_config(config)):
            yield placer.place(item) if isinstance(item, Row) else item
        if not is_listed:
            yield placer.account()
        yield from spelling_decisions(placer.spellings)


def inside_config(config: ManifestConfig) -> ManifestConfig:
    """The options for what lies in an archive: its format is looked for anew."""
    return replace(config, format="auto")


def _troubles(index: ArchiveIndex) -> Iterator[Item]:
    """Rejects for what cannot be read; nobody misses junk and texts, unless their names are meant to do harm."""
    ignored = 0
    for listed in index.troubles:
        if listed.code != "unsafe_path" and (junk_part(listed.path) is not None or is_data_name(listed.path)):
            ignored += 1
        else:
            yield reject_of(index.uri, listed)
    if ignored:
        yield Ignored(ignored)


def reject_of(archive: str, listed: Listed, origin: str = "") -> RejectedRow:
    """The reject for a member that cannot be read. origin: of the row that names it; that of the member by default."""
    place = "!/".join((archive, *listed.chain))
    return rejected(origin or place, listed.code, f"{place} cannot be read: {listed.message}", place)


class _Placer:
    """Gives rows the places of their images (and masks) in the archive."""

    def __init__(self, index: ArchiveIndex, files: ArchiveFiles, inner: Source) -> None:
        self._index = index
        self._files = files
        self._inner = inner
        self._troubles = {listed.path: listed for listed in index.troubles}
        self._seen: Counter[str] = Counter()
        self._used: dict[str, str] = {}  # members that rows name, and as what
        self.spellings: Counter[str] = Counter()  # members that are found under another, by what differs

    def place(self, row: Row) -> Row | RejectedRow:
        """The row with ``member`` (and ``mask_member``), or the reject for an image that cannot be read."""
        fields = dict(row.fields)
        if "member" in fields:  # it stands in a file of the archive
            fields["member"] = self._nested(fields["member"])
        elif "image" in fields:
            try:
                place = self._place(fields["image"])
            except ElementError as error:
                return rejected(row.origin, error.code, error.message, fields["image"], source_rows=row.source_rows)
            found = self._find(fields["image"], place, row.origin)
            self._use(place, AS_IMAGE)
            if isinstance(found, RejectedRow):
                return replace(found, source_rows=row.source_rows)
            if found is not None:
                fields["member"] = found.member
        try:
            for mask in _MASKS:
                if f"{mask}_member" in fields:  # it stands in a file of the archive
                    fields[f"{mask}_member"] = self._nested(fields[f"{mask}_member"])
                elif fields.get(mask):
                    listed = self._mask(fields[mask])
                    if listed is not None:
                        fields[f"{mask}_member"] = listed.member
            if isinstance(fields.get("panoptic"), Mapping):
                listed = self._mask(str(fields["panoptic"].get("mask", "")))
                if listed is not None:
                    fields["panoptic"] = {**fields["panoptic"], "member": listed.member}
        except ElementError as error:
            return rejected(row.origin, error.code, error.message, fields.get("image", ""), source_rows=row.source_rows)
        return row._replace(origin=self._origin(row.origin, fields), fields=fields)

    def _nested(self, member: Member) -> Member:
        listed = self._files.find(member.archive)
        if listed is None or listed.member is None:
            return member
        outer, container = listed.member, listed.member
        if member.container is not None:  # the file is compressed once more
            own = member.container
            container = replace(own, archive=outer.archive, path=(*outer.path, *own.path), container=outer)
        return replace(member, archive=outer.archive, path=(*outer.path, *member.path), container=container)

    def _place(self, name: str) -> str:
        """The uri of what a row names; raises ElementError where several members may be meant."""
        uri = self._files.join(self._inner.base, name)
        path = self._files.path_of(uri)
        if path is None or path in self._index.members or path in self._troubles:
            return uri
        other = find_other(
            uri, lambda other: self._files.path_of(other) is not None and self._files.is_file(other), is_image=True
        )
        if other is None:
            return uri
        self.spellings[other.how] += 1
        return other.uri

    def _mask(self, name: str) -> Listed | None:
        place = self._place(name)
        self._use(place, AS_MASK)
        return self._files.find(place)

    def _use(self, uri: str, use: str) -> None:
        path = self._files.path_of(uri)
        if path in self._index.members:
            self._used.setdefault(path, use)

    def account(self) -> Account:
        """What became of the members, once all rows were placed."""
        told = AccountBuilder()
        left_out = [self._files.path_of(uri) or "" for uri in self._inner.details.get(LEFT_OUT, ())]  # told already
        below = tuple(map(with_slash, left_out)) or ("\0",)
        paths = sorted(path for path in self._index.members if not path.startswith(below))
        tell_files(told, self._files.root, paths, self._used, (), Reads.of(self._inner.details, self._inner.uri))
        for path, listed in self._troubles.items():
            told.find(FILES)
            told.name(FILES, f"cannot be read: {listed.code}", path)
        return told.account()

    def _find(self, image: str, uri: str, origin: str) -> Listed | RejectedRow | None:
        """The member that a row names; None for an image that lies elsewhere on purpose. uri: of the image."""
        path = self._files.path_of(uri)
        if path is None:
            is_local = image.startswith("/") or scheme_of(image) == "file"
            if is_local and self._files.path_of(self._inner.base) is not None:
                message = f"the manifest in the archive names {image!r}, which lies outside of the archive"
                return rejected(origin, "unsafe_path", message, image)
            return None
        if path.split("/")[0] == "..":
            message = f"the manifest in the archive names {image!r}, which leads out of the archive"
            return rejected(origin, "unsafe_path", message, image)
        if path in self._troubles and path not in self._index.members:
            return reject_of(self._index.uri, self._troubles[path], origin)
        found = self._index.members.get(path)
        if found is None:
            return rejected(origin, "missing_file", f"the archive {self._index.uri} has no member {path!r}", uri)
        earlier = self._index.replaced.get(path, [])
        if earlier and self._inner.format == "folder":  # each of several members with one name is a row of its own
            number = self._seen[path]
            self._seen[path] += 1
            return [*earlier, found][number]
        return found

    def _origin(self, origin: str, fields: Mapping[str, Any]) -> str:
        """The member itself as origin, when the row stands for it and not for the line of a manifest."""
        member = fields.get("member")
        if member is None or self._files.find(origin) is None:
            return origin
        return "!/".join((member.archive, *member.path))
