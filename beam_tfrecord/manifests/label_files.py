"""Formats with a label file for each image, which lies beside it or where :mod:`.beside` looks for such files.

A row is a label file: it tells of its image, or holds it. What looks like a label file by its name and is something
else is told, and is no row. Images without a label file are none either; the census tells of them.
"""

from __future__ import annotations

import codecs
import posixpath
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from beam_tfrecord.core.account import LABEL_FILES, OF_ANOTHER_KIND, Account, AccountBuilder, Decision
from beam_tfrecord.core.elements import Member, RejectedRow, Row
from beam_tfrecord.errors import ManifestError, RowError
from beam_tfrecord.manifests.base import Files, Ignored, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.beside import find_splits, lies_among_labels, split_in
from beam_tfrecord.manifests.filenames import is_image_name
from beam_tfrecord.manifests.layout import Layout
from beam_tfrecord.manifests.leftovers import Reads
from beam_tfrecord.manifests.picture_labels import Picture, PictureLabels, gather
from beam_tfrecord.manifests.siblings import (
    ImageFinder,
    in_parallel,
    items_of,
    parent,
    pieces_of,
    read_small,
    relative_files,
    without_suffix,
)
from beam_tfrecord.manifests.text.compression import readable
from beam_tfrecord.manifests.text.inline_images import JSON_PICTURE
from beam_tfrecord.manifests.text.json_text import OBJECT, decode_json, holds, start_of_json
from beam_tfrecord.manifests.text.lines import decode_head, decode_text, split_lines
from beam_tfrecord.manifests.text.row_fields import rejected
from beam_tfrecord.manifests.text.uri_text import name_of
from beam_tfrecord.options.config import ManifestConfig

_LOOKED_AT = 20  # files that are read to learn whether the images are there
_DRIVE = re.compile(r"[A-Za-z]:")


class NotOfFormatError(Exception):
    """A file that is called like a label file and is none."""


@dataclass(frozen=True)
class _Layout:
    """Where things lie. only: the name of the one label file. below: the images lie below the folder of the labels."""

    labels: str
    images: str
    only: str = ""
    splits: dict[str, Any] | None = field(default=None)

    @property
    def below(self) -> bool:
        return self.labels == self.images


class LabelFileFormat(ManifestFormat):
    """A tree of images and their label files, label files alone, or one of them. A subclass reads a file.

    claims: a file that is called like an image, and ends as label files do, holds its labels or is damaged. split_by:
    what in a label file may tell the split, where no folder does.
    """

    suffix = ".json"
    claims = False
    split_by = ""

    @abstractmethod
    def read(self, data: bytes, name: str, encoding: str) -> Picture:
        """What a label file says. name: of the file, for messages. encoding: that of ``--encoding``.

        Raises NotOfFormatError, and RowError for a damaged one.
        """

    def beside_label(self, path: str) -> dict[str, str]:
        """Further files of an image that may lie there, by canonical field. path: of its label file."""
        return {}

    def image_of(self, path: str) -> str:
        """The image that the name of a label file tells, where the two are not called alike; else ''."""
        return ""

    def split_of(self, path: str) -> str:
        """The split that the path of a label file tells, where the folders of the images do not; '' for none."""
        return ""

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        return bool(head) and self.annotates(head)

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        with readable(uri):
            is_file = files.is_file(uri)
            if not is_file and not files.is_folder(uri):
                raise ManifestError(f"{uri} does not exist")
            folder = parent(uri) if is_file else uri.rstrip("/") or uri
            layout = _Layout(folder, config.images or folder, name_of(uri) if is_file else "")
            labels = self._labels(files, layout)[0]
            if not labels:
                raise ManifestError(f"{uri} holds no label files of the format {self.name} (*{self.suffix})")
            images = _images(files, layout)
            splits = None if is_file else find_splits(images if images and layout.below else labels, uri)
            layout = _Layout(
                layout.labels, layout.images, layout.only, splits.to_details() if splits is not None else None
            )
            paired = self._paired(files, layout, labels, images, config)
        told = AccountBuilder()
        told.find(LABEL_FILES, len(labels))
        decided = []
        if split is None and (splits is not None or any(map(self.split_of, labels))):
            decided.append(Decision("split", "the name of a folder", "each of these folders is called like a split"))
        return Source(
            uri,
            self.name,
            split,
            layout.images,
            details={
                "layout": asdict(layout),
                "paired": paired,
                **Reads([uri] if is_file else [], layout.labels, "" if is_file else self.suffix).to_details(),
                "found": f"{self.name} label files",
            },
            account=told.account(),
            decisions=tuple(decided),
        )

    def _paired(
        self, files: Files, layout: _Layout, labels: Sequence[str], images: Sequence[str], config: ManifestConfig
    ) -> int:
        """How many label files have their image beside them, by the names; or at least whether any of a few has one.

        Raises ManifestError when none has.
        """
        finder = ImageFinder(images)
        count = sum(finder.own(_stem(path), self.image_of(path)) is not None for path in labels)
        looked_at = 0
        for path in labels[:_LOOKED_AT] if not count else ():
            item, account = self._item(files, layout, finder, config.encoding, path)
            looked_at += account.uses(LABEL_FILES)
            is_there = isinstance(item, Row) and ("member" in item.fields or item.fields["image"] in finder)
            count += is_there or (bool(layout.only) and item is not None)
        if not count and looked_at:
            raise ManifestError(
                f"{layout.labels}: none of the images that its {len(labels):,} label files of the format {self.name} "
                f"name lies in {layout.images}: give the folder of the images with --images"
            )
        return count

    def _labels(self, files: Files, layout: _Layout) -> tuple[list[str], int]:
        """(paths of the label files below their folder, sorted; pieces of junk)."""
        if layout.only:
            return [layout.only], 0
        paths, junk = relative_files(files, layout.labels)
        found = [path for path in paths if path.lower().endswith(self.suffix)]
        folders = {path[: max(path.rfind("/"), 0)] for path in paths if is_image_name(path)}
        if folders and layout.below:
            found = [path for path in found if lies_among_labels(path, folders)]
        return found, junk

    def pieces(self, files: Files, source: Source) -> Iterator[Piece]:
        with readable(source.uri):
            yield from pieces_of(source, len(self._labels(files, _Layout(**source.details["layout"]))[0]))

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        layout = _Layout(**piece.source.details["layout"])
        told = AccountBuilder()
        with readable(piece.source.uri):
            paths, ignored = self._labels(files, layout)
            finder = ImageFinder(_images(files, layout))
        if ignored and piece.start == 0:
            yield Ignored(ignored)
        read = in_parallel(
            lambda path: self._item(files, layout, finder, config.encoding, path), items_of(piece, paths)
        )
        has_splits = False
        for item, account in read:
            told.add(account)
            if item is not None:
                yield item
                has_splits = has_splits or (isinstance(item, Row) and "split" in item.fields)
        if self.split_by and has_splits and layout.splits is None and piece.source.split is None:
            yield Decision("split", self.split_by, "they are called like splits, and no folder is")
        yield told.account()

    def _item(
        self, files: Files, layout: _Layout, finder: ImageFinder, encoding: str, path: str
    ) -> tuple[Row | RejectedRow | None, Account]:
        """The row of a label file, None for one of another kind, and the account of it."""
        uri, stem, named = files.join(layout.labels, path), _stem(path), self.image_of(path)
        told = AccountBuilder()
        try:
            data = read_small(files, uri, "label file")
            labelled = self.read(data, name_of(path), encoding)
            told.add(labelled.account)
            if labelled.problem is not None:
                raise labelled.problem
        except NotOfFormatError:
            image = finder.own(stem, named) if self.claims else None
            if image is None:
                told.name(LABEL_FILES, OF_ANOTHER_KIND, path)
                return None, told.account()
            told.use(LABEL_FILES, "read")
            message = f"{path} has no line of the format {self.name}, unlike the other label files"
            return rejected(uri, "bad_annotation", message, image), told.account()
        except RowError as error:
            told.use(LABEL_FILES, "read")
            return rejected(uri, error.code, error.message, finder.own(stem, named) or stem), told.account()
        told.use(LABEL_FILES, "read")
        fields = dict(labelled.fields)
        try:
            found = finder.find(labelled.stated or named, stem)
        except RowError as error:
            return rejected(uri, error.code, error.message, labelled.stated), told.account()
        finder.tell(told, labelled.stated, found, stem)
        fields["image"] = found or _place_of(labelled.stated or named or f"{stem}.jpg", path, layout)
        if found is None and labelled.holds_itself:
            start = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
            fields["member"] = Member(uri, ("imageData",), start, len(data) - start, JSON_PICTURE)
        splits = Layout(**layout.splits) if layout.splits else None
        split = self.split_of(path) or split_in(splits, found if found is not None and layout.below else path)
        if split:
            if fields.get("split", split) != split:
                told_twice = (
                    f"{name_of(path)} says the split {fields['split']!r}; that of its folder, {split!r}, counts"
                )
                fields["notes"] = [*fields.get("notes", ()), ("annotation_ignored", told_twice)]
            fields["split"] = split
        for further, other in self.beside_label(path).items():
            if files.is_file(files.join(layout.labels, other)):
                fields[further] = files.join(layout.labels, other)
        return Row(uri, fields), told.account()


def _stem(path: str) -> str:
    """The path of a label file without its ending, and without that of its image: ``x.json`` and ``x.jpg.json``."""
    stem = without_suffix(path)
    return without_suffix(stem) if is_image_name(stem) else stem


def _images(files: Files, layout: _Layout) -> list[str]:
    """Paths of the images. Of a single label file only those that lie directly in the folder."""
    if layout.only and layout.below:
        return [name for name in files.list_folder(layout.images) if is_image_name(name)]
    return [path for path in relative_files(files, layout.images)[0] if is_image_name(path)]


def _place_of(stated: str, path: str, layout: _Layout) -> str:
    """Where an image would lie that is not there under any name: as stated, from the folder of its label file on."""
    stated = stated.replace("\\", "/")
    if stated.startswith("/") or _DRIVE.match(stated) or not layout.below:
        return name_of(stated)
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(path), stated))
    return name_of(stated) if joined.startswith("..") and not layout.only else joined


class JsonFilesFormat(LabelFileFormat):
    """Label files that are JSON objects. A subclass tells of what an object is told, and gathers what it says.

    heads: all of them are found in the first bytes of a label file.
    """

    beside = (".json",)
    heads: tuple[re.Pattern[bytes], ...]

    @abstractmethod
    def is_labels(self, document: Mapping[str, Any]) -> bool:
        """Whether an object is a label file of this format."""

    @abstractmethod
    def gather(self, document: Mapping[str, Any], name: str, labels: PictureLabels) -> None:
        """Gather what a label file says. name: of the file. Raises RowError."""

    def annotates(self, head: bytes) -> bool:
        return start_of_json(head) == OBJECT and holds(head, *self.heads)

    def read(self, data: bytes, name: str, encoding: str) -> Picture:
        try:
            document = decode_json(decode_text(data, encoding))
        except ValueError as error:
            raise RowError("bad_annotation", f"{name} is no valid JSON: {error}") from None
        if not isinstance(document, Mapping) or not self.is_labels(document):
            raise NotOfFormatError

        def read(labels: PictureLabels) -> None:
            try:
                self.gather(document, name, labels)
            except RowError as error:
                raise RowError(error.code, f"{name}: {error.message}") from None

        return gather(name, name, read)


_LOOKED_AT = 50


class LabelLinesFormat(LabelFileFormat):
    """Label files in lines. A subclass tells what a line is; an empty file says that there are no objects."""

    suffix = ".txt"
    beside = (".txt",)
    claims = True

    @abstractmethod
    def cells(self, line: str) -> list[str] | None:
        """The cells of a line that is an object; [] for one that says something else; None when it is no such line."""

    @abstractmethod
    def add(self, cells: Sequence[str], where: str, labels: PictureLabels) -> None:
        """Add an object. where: ``file:line``. Raises RowError."""

    def annotates(self, head: bytes) -> bool:
        """Whether every line (the last may be cut) can be one of this format, and one is an object."""
        lines = [line for line in split_lines(decode_head(head) or "")[:_LOOKED_AT] if line.strip()]
        whole = lines[:-1] if len(lines) > 1 and not head.endswith((b"\n", b"\r")) else lines
        found = [self.cells(line) for line in whole]
        return None not in found and any(found)

    def read(self, data: bytes, name: str, encoding: str) -> Picture:
        try:
            lines = split_lines(decode_text(data, encoding))
        except ValueError as error:
            raise RowError("bad_annotation", f"{name} is no text: {error}") from None
        found = [(number, line, self.cells(line)) for number, line in enumerate(lines, start=1) if line.strip()]
        if found and all(cells is None for _, _, cells in found):
            raise NotOfFormatError

        def read(labels: PictureLabels) -> None:
            labels.found = sum(cells != [] for _, _, cells in found)
            for number, line, cells in found:
                if cells is None:
                    raise RowError("bad_annotation", f"{name}:{number} is no line of the format {self.name}: {line!r}")
                if cells:
                    self.add(cells, f"{name}:{number}", labels)

        return gather(name, "", read)
