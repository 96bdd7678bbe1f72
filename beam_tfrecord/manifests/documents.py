"""Formats in which one document tells of many pictures, and how the pictures that it names are found."""

from __future__ import annotations

import posixpath
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import unquote

from beam_tfrecord.core.account import AccountBuilder, Decision
from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import ManifestError, RowError
from beam_tfrecord.manifests.base import Files, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.filenames import is_image_name
from beam_tfrecord.manifests.picture_labels import Picture, PictureLabels, gather
from beam_tfrecord.manifests.siblings import LABEL_FOLDERS, parent, relative_files
from beam_tfrecord.manifests.text.compression import open_unpacked, readable
from beam_tfrecord.manifests.text.json_text import (
    JsonItem,
    Members,
    decode_json,
    iterate_array,
    iterate_members,
    members_of,
)
from beam_tfrecord.manifests.text.lines import TextForm, TextLines
from beam_tfrecord.manifests.text.row_fields import rejected
from beam_tfrecord.manifests.text.spelling import Spellings, plain_form
from beam_tfrecord.manifests.text.uri_text import WEB_SCHEMES, name_of, scheme_of
from beam_tfrecord.options.config import ManifestConfig


class NamedImages:
    """Finds the pictures that a document means among those that are there."""

    def __init__(self, paths: Sequence[str]) -> None:
        """paths: of images, below one folder."""
        self._paths = Spellings({path: path for path in paths})
        self._by_name: dict[str, list[str]] = {}
        for path in paths:
            self._by_name.setdefault(plain_form(posixpath.basename(path)), []).append(path)

    def find(self, stated: str) -> str | None:
        """Path of a picture, None when none is called so.

        stated: as the document spells it, perhaps with folders of another machine in front, or without some that are
        there. Raises RowError where two pictures could be meant.
        """
        path = posixpath.normpath(stated.replace("\\", "/"))
        for name in (stated, path):
            if found := self._paths.find(name):
                return found
        for spelled in dict.fromkeys((path, unquote(path))):
            parts = plain_form(spelled).split("/")
            named = self._by_name.get(parts[-1], ())
            shared = [(_shared_end(parts, plain_form(other).split("/")), other) for other in named]
            if shared:
                most = max(count for count, _ in shared)
                best = sorted(other for count, other in shared if count == most)
                if len(best) > 1:
                    raise RowError(
                        "bad_row",
                        f"{stated!r} may be {best[0]} or {best[1]}: name the folder of the images with --images, or "
                        f"give the parts one by one",
                    )
                return best[0]
        return None


def _shared_end(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for left, right in zip(reversed(one), reversed(other), strict=False):
        if left != right:
            break
        count += 1
    return count


class DocumentFormat(ManifestFormat):
    """A document with many pictures, read from its start to its end. A subclass reads it."""

    @abstractmethod
    def pictures(self, files: Files, source: Source, names: Sequence[str]) -> Iterator[Picture]:
        """All pictures of the document, in its order. names: of the images that lie below ``source.base``."""

    def look(self, files: Files, uri: str, config: ManifestConfig) -> tuple[dict[str, Any], tuple[Decision, ...]]:
        """What has to be known before the rows: further details of the source, plain values, and decisions.

        Raises ManifestError for a document that cannot be of this format.
        """
        return {}, ()

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        if not files.is_file(uri):
            raise ManifestError(
                f"{uri} {'is a folder: name the file in it' if files.is_folder(uri) else 'does not exist'}"
            )
        details, decisions = self.look(files, uri, config)
        base = config.images or _base_of(files, uri)
        return Source(uri, self.name, split, base, details=details, decisions=decisions)

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        source = piece.source
        with readable(source.uri):
            names = images_below(files, source.base)
        images = NamedImages(names)
        told = AccountBuilder()
        for picture in self.pictures(files, source, names):
            told.add(picture.account)
            if picture.is_left_out:
                continue
            origin = f"{source.uri}:{picture.where}"
            try:
                if picture.problem is not None:
                    raise picture.problem
                if not picture.stated.strip():
                    raise RowError("bad_row", f"{picture.where} names no picture")
                image = images.find(picture.stated) or picture.stated
            except RowError as error:
                yield rejected(origin, error.code, error.message, picture.stated)
                continue
            yield Row(origin, {**picture.fields, "image": image})
        yield told.account()


def _base_of(files: Files, uri: str) -> str:
    """Where the pictures lie: below the folder of the document, or beside one called like those of labels.

    The document may lie in a folder of the latter: ``labels/det_20/det_train.json``.
    """
    folder = parent(uri)
    for labels in (folder, parent(folder)):
        if name_of(labels).lower() in LABEL_FOLDERS and not images_below(files, labels):
            return parent(labels)
    return folder


def images_below(files: Files, base: str) -> list[str]:
    """The paths of all images below a folder, sorted."""
    if scheme_of(base) in WEB_SCHEMES:  # which knows no folders
        return []
    return [path for path in relative_files(files, base)[0] if is_image_name(path)]


def pictures_of_elements(
    files: Files, source: Source, read: Callable[[Members, PictureLabels], None], key: str = ""
) -> Iterator[Picture]:
    """The pictures of a JSON document with an element for each: of the outer array, or of the member ``key``.

    read: gathers the labels of an element.
    """
    with open_unpacked(files, source.uri) as stream:
        for item in iterate_members(stream, source.uri) if key else iterate_array(stream, source.uri):
            if item.key == key and item.place >= 0:
                where = f"{key}[{item.place}]"

                def read_element(labels: PictureLabels, item: JsonItem = item, where: str = where) -> None:
                    read(members_of(item, where), labels)

                yield gather(where, where, read_element)


def pictures_of_lines(
    files: Files, source: Source, read: Callable[[Members, str, PictureLabels], None]
) -> Iterator[Picture]:
    """The pictures of a file with a JSON object on each line. read: gathers the labels of a line; gets its number."""
    lines = TextLines(files, source.uri, TextForm(**source.details["text"]))
    for number, line, damage in lines.numbered():
        where = str(number)

        def read_line(labels: PictureLabels, line: str = line, damage: str = damage, where: str = where) -> None:
            if damage:
                raise RowError("bad_row", damage)
            try:
                members = Members(decode_json(line), "", "bad_row")
            except ValueError as error:
                raise RowError("bad_row", f"the line is no JSON: {error}") from None
            read(members, where, labels)

        yield gather(where, "", read_line)
