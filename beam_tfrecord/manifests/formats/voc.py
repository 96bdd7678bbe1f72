"""Pascal VOC folders: one XML per image, split lists, palette masks (host.robots.ox.ac.uk/pascal/VOC/voc2012).

The usual layout is ``Annotations/x.xml``, ``JPEGImages/x.jpg``, ``ImageSets/Main/train.txt``,
``SegmentationClass/x.png`` and ``SegmentationObject/x.png``; ``annotations/`` and ``images/`` beside each other, XML
files in one folder with --images, a list of ImageSets and a single XML file are fine as well. A row is an annotation
file; without any, a class mask. Images that have none are no rows. Coordinates are used as they stand: VOC counts
pixels from 1, but the Object Detection API and most tools take no notice of that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from beam_tfrecord.core.account import LABEL_FILES, NO_ACCOUNT, Account, AccountBuilder, Decision
from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import ConfigError, ManifestError, RowError
from beam_tfrecord.manifests.base import LISTED, Files, Ignored, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.beside import find_splits, split_in
from beam_tfrecord.manifests.filenames import is_image_name
from beam_tfrecord.manifests.formats.voc_xml import fields_of_xml
from beam_tfrecord.manifests.layout import Layout
from beam_tfrecord.manifests.leftovers import Reads
from beam_tfrecord.manifests.registry import read_head
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
from beam_tfrecord.manifests.split_names import is_split_word
from beam_tfrecord.manifests.text.compression import readable
from beam_tfrecord.manifests.text.lines import read_lines
from beam_tfrecord.manifests.text.row_fields import rejected
from beam_tfrecord.manifests.text.spelling import plain_form
from beam_tfrecord.manifests.text.uri_text import name_of
from beam_tfrecord.options.config import ManifestConfig
from beam_tfrecord.options.values import AUTO_ENCODING

_ANNOTATIONS = ("Annotations", "annotations", "Annotation", "xml", "xmls", "labels")
_IMAGES = ("JPEGImages", "images", "Images", "imgs", "img")
_CLASS_MASKS = ("SegmentationClass",)
_OBJECT_MASKS = ("SegmentationObject",)
_LISTS = ("ImageSets/Main", "ImageSets/Segmentation", "ImageSets/Layout", "ImageSets")
_SPLIT_LISTS = ("train", "val", "test")
_OUTER = re.compile(rb"<annotation[\s>]")
_OF_CVAT = re.compile(rb"<annotations[\s>]")
_FLAG = re.compile(r"[ \t]+(?:-1|[01])$")


@dataclass(frozen=True)
class _Layout:
    """Where the parts are; '' for what is not there.

    only: one XML or list file that names the items. encoding: that of --encoding.
    """

    annotations: str
    images: str
    lists: str = ""
    class_masks: str = ""
    object_masks: str = ""
    only: str = ""
    encoding: str = AUTO_ENCODING


class VocFormat(ManifestFormat):
    """A folder with XML annotations, an XML file, or a list of ImageSets."""

    name = "voc"
    beside = (".xml",)

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        if not files.is_folder(uri):
            if uri.lower().endswith(".txt") and "ImageSets" in uri.split("/"):
                return _root_of_list(files, uri) != ""
            start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
            return start.startswith((b"<annotation", b"<?xml")) and _OUTER.search(head) is not None
        names = set(files.list_folder(uri))
        if "SegmentationClass/" in names and "JPEGImages/" in names:
            return True
        folders = [files.join(uri, name) for name in _ANNOTATIONS if f"{name}/" in names]
        return any(_has_xml(files, folder) for folder in (*folders, uri)) or len(_devkit_folders(files, uri)) > 0

    def annotates(self, head: bytes) -> bool:
        return _OUTER.search(head) is not None

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        told = AccountBuilder()
        with readable(uri):
            layout = replace(_find_layout(files, uri, config.images), encoding=config.encoding)
            items = _items(files, layout)[0]
            images = relative_files(files, layout.images)[0]
            splits = _folder_splits(files, layout, images, uri)
            lists = _read_lists(files, layout)
        told.find(_kind_of_items(layout), len(items))
        finder = ImageFinder(images)
        decided = []
        if lists:
            decided.append(Decision("split", "the list that names the image", layout.lists))
        elif splits is not None and split is None:
            decided.append(Decision("split", "the name of a folder", "each of these folders is called like a split"))
        return Source(
            uri,
            self.name,
            split,
            layout.images,
            details={
                LISTED: True,
                "layout": asdict(layout),
                "splits": splits.to_details() if splits is not None else None,
                "paired": sum(finder.own(without_suffix(path)) is not None for path in items),
                **_reads(files, layout, uri).to_details(),
            },
            account=told.account(),
            decisions=tuple(decided),
            surprises=tuple(("doubtful_reading", doubt) for doubt in _doubts_of_lists(files, layout, items, lists)),
        )

    def pieces(self, files: Files, source: Source) -> Iterator[Piece]:
        with readable(source.uri):
            yield from pieces_of(source, len(_items(files, _Layout(**source.details["layout"]))[0]))

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        details = piece.source.details
        layout = _Layout(**details["layout"])
        told = AccountBuilder()
        with readable(piece.source.uri):
            paths, ignored = _items(files, layout)
            reader = _Reader(
                files,
                layout,
                ImageFinder(relative_files(files, layout.images)[0]),
                _split_lists(files, layout),
                Layout(**details["splits"]) if details["splits"] else None,
                {
                    field: (folder, frozenset(relative_files(files, folder)[0]))
                    for field, folder in (("mask", layout.class_masks), ("instance_mask", layout.object_masks))
                    if folder
                },
            )
        if ignored and piece.start == 0:
            yield Ignored(ignored)
        for row, account in in_parallel(reader.row, items_of(piece, paths)):
            told.use(_kind_of_items(layout), "read")
            told.add(account)
            yield row
        yield told.account()


def _reads(files: Files, layout: _Layout, uri: str) -> Reads:
    """The files that are read beside the images: annotations, lists of splits, a list or an XML file that was named."""
    if layout.only:
        return Reads((layout.only,), layout.annotations, "" if layout.only.lower().endswith(".xml") else ".xml")
    lists = [files.join(layout.lists, f"{name}.txt") for name in _list_names(files, layout)] if layout.lists else []
    return Reads(lists, layout.annotations, ".xml" if layout.annotations else "")


def _kind_of_items(layout: _Layout) -> str:
    return LABEL_FILES if layout.annotations else "masks"


def _folder_splits(files: Files, layout: _Layout, images: Sequence[str], uri: str) -> Layout | None:
    """The layout that tells splits by the folders of the images, where no list does."""
    if layout.lists or layout.only:
        return None
    return find_splits([path for path in images if is_image_name(path)], uri)


@dataclass(frozen=True)
class _Reader:
    """Makes rows of the items of a folder. splits: what the folders of the images tell. masks: (folder, names
    that are there) by canonical field.
    """

    files: Files
    layout: _Layout
    finder: ImageFinder
    split_of: Mapping[str, str]
    splits: Layout | None
    masks: Mapping[str, tuple[str, frozenset[str]]]

    def _fields(self, uri: str) -> tuple[dict[str, Any], Account]:
        return fields_of_xml(read_small(self.files, uri, "annotation file"), name_of(uri), self.layout.encoding)

    def row(self, path: str) -> tuple[Row | RejectedRow, Account]:
        """The row of an annotation file, or of a class mask where there are no annotations; and what it was made of."""
        stem = without_suffix(path)
        origin = self.files.join(self.layout.annotations or self.layout.class_masks, path)
        account = NO_ACCOUNT
        fields: dict[str, Any] = {}
        try:
            if self.layout.annotations:
                fields, account = self._fields(origin)
            stated = fields.pop("stated_image", "")
            found = self.finder.find(stated, stem)
        except RowError as error:
            return rejected(origin, error.code, error.message, self.finder.own(stem) or stem), account
        told = AccountBuilder()
        told.add(account)
        self.finder.tell(told, stated, found, stem)
        account = told.account()
        fields["image"] = found or (stated if stated.strip() else f"{stem}.jpg")
        split = self.split_of.get(stem) or split_in(self.splits, plain_form(fields["image"]))
        if split:
            fields["split"] = split
        for field, (folder, names) in self.masks.items():
            fields[field] = self.files.join(folder, f"{stem}.png") if f"{stem}.png" in names else ""
        return Row(origin, fields), account


def _has_xml(files: Files, folder: str) -> bool:
    """Whether XML files lie in a folder, the first of which is no document of CVAT."""
    first = next((name for name in files.list_folder(folder) if name.lower().endswith(".xml")), "")
    return bool(first) and _OF_CVAT.search(read_head(files, files.join(folder, first))) is None


def _has_xml_below(files: Files, folder: str) -> bool:
    return any(path.lower().endswith(".xml") for path in relative_files(files, folder)[0])


def _devkit_folders(files: Files, uri: str) -> list[str]:
    """VOC2007, VOC2012 ... below a VOCdevkit folder."""
    names = [name.rstrip("/") for name in files.list_folder(uri) if name.startswith("VOC") and name.endswith("/")]
    folders = [files.join(uri, name) for name in names]
    return [folder for folder in folders if _subfolder(files, folder, _ANNOTATIONS)]


def _subfolder(files: Files, root: str, names: tuple[str, ...]) -> str:
    """The first of some subfolders that is there, or ''."""
    there = set(files.list_folder(root))
    return next((files.join(root, name) for name in names if f"{name.split('/')[0]}/" in there), "")


def _find_layout(files: Files, uri: str, images: str | None) -> _Layout:
    if not files.is_folder(uri):
        return _layout_of_file(files, uri, images)
    devkits = [] if _subfolder(files, uri, _ANNOTATIONS) else _devkit_folders(files, uri)
    if len(devkits) > 1:
        raise ConfigError(f"{uri} holds several datasets: give each its own --input, such as --input {devkits[0]}")
    root = devkits[0] if devkits else uri.rstrip("/") or uri
    named = (files.join(root, name) for name in _ANNOTATIONS)
    annotations = next((folder for folder in named if _has_xml_below(files, folder)), "")
    if not annotations and not _subfolder(files, root, _CLASS_MASKS) and _has_xml_below(files, root):
        annotations, root = root, parent(root)
    layout = _layout_below(files, root, annotations, images)
    if not layout.annotations and not layout.class_masks:
        raise ManifestError(
            f"{uri} is no Pascal VOC folder: expected are Annotations/*.xml (or XML files in the folder itself), "
            f"or SegmentationClass/*.png; found are {', '.join(files.list_folder(uri)[:8]) or 'no files'}"
        )
    return layout


def _layout_of_file(files: Files, uri: str, images: str | None) -> _Layout:
    """A single XML file, or a list of stems such as ImageSets/Main/train.txt."""
    if not files.is_file(uri):
        raise ManifestError(f"{uri} does not exist")
    folder = parent(uri)
    if uri.lower().endswith(".xml"):
        return _layout_below(files, parent(folder), folder, images, uri)
    root = _root_of_list(files, uri)
    if not root:
        raise ManifestError(f"{uri}: the list belongs to no Pascal VOC folder, none above it has Annotations/")
    return _layout_below(files, root, _subfolder(files, root, _ANNOTATIONS), images, uri)


def _root_of_list(files: Files, uri: str) -> str:
    """The nearest folder above a list that has annotations, or masks of classes; '' for none."""
    folder = parent(uri)
    roots = (folder, parent(folder), parent(parent(folder)))
    return next((root for root in roots if _subfolder(files, root, (*_ANNOTATIONS, *_CLASS_MASKS))), "")


def _layout_below(files: Files, root: str, annotations: str, images: str | None, only: str = "") -> _Layout:
    if images is None:
        images = _find_images(files, root, annotations)
    return _Layout(
        annotations,
        images,
        "" if only else next((folder for name in _LISTS if files.is_folder(folder := files.join(root, name))), ""),
        _subfolder(files, root, _CLASS_MASKS),
        _subfolder(files, root, _OBJECT_MASKS),
        only,
    )


def _find_images(files: Files, root: str, annotations: str) -> str:
    """The folder of the images: a named one below the annotations where it holds all that lie there, else the folder of
    the annotations when they are no named folder of the root, else a named one of the root.
    """
    beside = annotations or root
    own = [path for path in relative_files(files, beside)[0] if is_image_name(path)]
    named = _subfolder(files, beside, _IMAGES)
    if named and all(path.startswith(f"{name_of(named)}/") for path in own):
        return named
    if own and annotations and (beside == root or name_of(beside) not in _ANNOTATIONS):
        return beside
    return _subfolder(files, root, _IMAGES) or (beside if own else root)


def _items(files: Files, layout: _Layout) -> tuple[list[str], int]:
    """(paths of the items below their folder, sorted, then those that are only listed; pieces of junk among them)."""
    if layout.only.lower().endswith(".xml"):
        return [name_of(layout.only)], 0
    folder, suffix = (layout.annotations, ".xml") if layout.annotations else (layout.class_masks, ".png")
    if layout.only:
        return [f"{stem}{suffix}" for stem in _stems_of_list(files, layout.only, layout.encoding)], 0
    found, ignored = relative_files(files, folder)
    paths = [path for path in found if path.lower().endswith(suffix)]
    stems = {without_suffix(path) for path in paths}
    listed = [f"{stem}{suffix}" for stem in _split_lists(files, layout) if stem not in stems]
    return paths + listed, ignored


def _list_names(files: Files, layout: _Layout) -> list[str]:
    """The lists of splits that are read, without their ending: those that are called like splits, train, val and test
    before others; else those of single classes, ``cat_train`` and so on, which name the same images.

    trainval counts where train and val are not told apart.
    """
    there = sorted(name[:-4] for name in files.list_folder(layout.lists) if name.lower().endswith(".txt"))
    names = [name for name in there if is_split_word(name)]
    if "trainval" in there and not {"train", "val"} & set(names):
        names.append("trainval")
    if not names:
        names = [name for name in there if is_split_word(_split_of_list(name))]
    return sorted(names, key=lambda name: ([*_SPLIT_LISTS, _split_of_list(name)].index(_split_of_list(name)), name))


def _split_of_list(name: str) -> str:
    return name.rpartition("_")[2].lower()


def _read_lists(files: Files, layout: _Layout) -> dict[str, list[str]]:
    """The stems of each list of a split."""
    names = _list_names(files, layout) if layout.lists else []
    return {name: _stems_of_list(files, files.join(layout.lists, f"{name}.txt"), layout.encoding) for name in names}


def _doubts_of_lists(
    files: Files, layout: _Layout, items: Sequence[str], lists: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """What is doubtful about the lists of splits: images in two of them, and in none, and lists that tell no split."""
    if not layout.lists:
        return
    others = [name for name in files.list_folder(layout.lists) if name.lower().endswith(".txt")]
    if not lists and others and others != ["default.txt"]:  # which is what CVAT calls no split
        yield (
            f"none of the lists in {layout.lists} is called like a split (such as {others[0]}), so that they are not "
            "read: call them train.txt, val.txt and test.txt where they tell splits"
        )
    splits: dict[str, set[str]] = {}
    for name, stems in lists.items():
        for stem in stems:
            splits.setdefault(stem, set()).add(_split_of_list(name))
    several = sorted(stem for stem, found in splits.items() if len(found) > 1)
    if several:
        yield (
            f"{len(several):,} images are in the lists of several splits (such as {several[0]}: "
            f"{' and '.join(sorted(splits[several[0]]))}); each goes to the first of {', '.join(lists)} that names it"
        )
    unlisted = [path for path in items if without_suffix(path) not in splits] if lists else []
    if unlisted:
        yield (
            f"{len(unlisted):,} of {len(items):,} annotation files (such as {unlisted[0]}) are in none of the lists of "
            f"splits in {layout.lists}: they go where rows without a split go. A list as --input, with --format voc, "
            "takes its images alone"
        )


def _stems_of_list(files: Files, uri: str, encoding: str) -> list[str]:
    """The stems of a list; the flag behind a stem, such as the -1 of ``cat_train.txt``, is no part of it."""
    lines = (line.strip() for line in read_lines(files, uri, encoding))
    stems = [_FLAG.sub("", line) for line in lines if line]
    return [without_suffix(stem) if stem.lower().endswith((".jpg", ".xml", ".png")) else stem for stem in stems]


def _split_lists(files: Files, layout: _Layout) -> dict[str, str]:
    """Split by stem. The first list that names an image counts."""
    found: dict[str, str] = {}
    for name, stems in _read_lists(files, layout).items():
        for stem in stems:
            found.setdefault(stem, _split_of_list(name))
    return found
