"""Images named by a glob (``fruit/*.jpg``), or a single image file."""

from __future__ import annotations

from collections.abc import Iterator

from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.base import LISTED, FileInfo, Files, Ignored, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.filenames import IMAGE_SUFFIXES, JunkCounter, junk_part
from beam_tfrecord.manifests.text.uri_text import folder_of, literal_folder, with_slash
from beam_tfrecord.options.config import ManifestConfig

_IMAGE_STARTS = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"II*\0", b"MM\0*")


class GlobFormat(ManifestFormat):
    """The files that a pattern matches, sorted by code point. Paths are those below the pattern's literal folder."""

    name = "glob"
    counts_files = True
    suffixes = IMAGE_SUFFIXES

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        """Whether the bytes are those of an image."""
        return head.startswith(_IMAGE_STARTS) or head[8:12] == b"WEBP" or head[4:12] in (b"ftypavif", b"ftypheic")

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        if not _matched(files, uri):
            raise ManifestError(f"{uri} matches no file")
        base = folder_of(uri) if files.is_file(uri) else literal_folder(uri)
        return Source(uri, self.name, split, base, details={LISTED: True})

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        base = piece.source.base
        skipped = len(with_slash(base)) if base else 0
        junk = JunkCounter()
        for info in _matched(files, piece.source.uri):
            path = info.uri[skipped:]
            part = junk_part(path)
            if part is not None:
                junk.add(part)
            else:
                yield Row(info.uri, {"image": path})
        if len(junk):
            yield Ignored(len(junk))


def _matched(files: Files, uri: str) -> list[FileInfo]:
    if files.is_file(uri):
        return [FileInfo(uri)]
    return files.match(uri)
