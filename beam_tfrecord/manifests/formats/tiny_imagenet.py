"""Tiny ImageNet as it is downloaded (source: the files of cs231n.stanford.edu/tiny-imagenet-200.zip).

``train/CODE/images/x.JPEG`` with ``train/CODE/CODE_boxes.txt``, a line for each image with its name and xmin, ymin,
xmax, ymax in pixels, used as they stand, between tabs; ``val/images`` with ``val/val_annotations.txt``, which has the
code behind the name; ``test/images``, of which nothing is told. The label of an image, and the class of its box, is its
code of WordNet, one of ``wnids.txt``; ``words.txt`` spells codes out, not always in one word, and is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from beam_tfrecord.core.account import FILES, IMAGES, AccountBuilder, Decision
from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.base import LISTED, Files, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.beside import account_of_tree
from beam_tfrecord.manifests.filenames import is_image_name, junk_part
from beam_tfrecord.manifests.split_names import split_above
from beam_tfrecord.manifests.text.compression import readable
from beam_tfrecord.manifests.text.lines import read_lines
from beam_tfrecord.manifests.text.row_fields import rejected
from beam_tfrecord.manifests.text.uri_text import folder_of, with_slash
from beam_tfrecord.options.config import ManifestConfig

_CODES, _ANNOTATIONS = "wnids.txt", "val/val_annotations.txt"
_BOXES = re.compile(r"train/(?P<code>[^/]+)/(?P=code)_boxes\.txt")
_OF_CODE = re.compile(r"train/(?P<code>[^/]+)/images/[^/]+")


class TinyImagenetFormat(ManifestFormat):
    """The folder ``tiny-imagenet-200``."""

    name = "tiny_imagenet"
    counts_files = True

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        if head or not {"train/", "val/", _CODES} <= set(files.list_folder(uri)):
            return False
        return files.is_file(files.join(uri, _ANNOTATIONS))

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        if not self.recognises(files, uri, b""):
            raise ManifestError(f"{uri} is no folder of Tiny ImageNet: it lacks train/, {_ANNOTATIONS} or {_CODES}")
        with readable(uri):
            paths = _paths(files, uri)
        codes = {line.strip() for line in read_lines(files, files.join(uri, _CODES), config.encoding)} - {""}
        told = AccountBuilder()
        told.find(FILES, len(paths))
        told.find(IMAGES, sum(map(_is_image, paths)))
        decided = (Decision("split", "train, val, test", "the names of the folders"),) if split is None else ()
        details = {LISTED: True, "found": "Tiny ImageNet"}
        labels = tuple(sorted(codes))
        account, surprises = told.account(), tuple(_missing_boxes(paths))
        return Source(uri, self.name, split, uri, labels, None, details, (), account, decided, surprises)

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        uri = piece.source.uri
        with readable(uri):
            paths = _paths(files, uri)
        rows: dict[str, Row | RejectedRow] = {}
        told_by: dict[str, str] = {}
        for path in paths:
            of_code = _BOXES.fullmatch(path)
            if of_code is None and path != _ANNOTATIONS:
                continue
            for number, line in enumerate(read_lines(files, files.join(uri, path), config.encoding), start=1):
                name, *cells = line.rstrip().split("\t")
                if name:
                    image, code = f"{folder_of(path)}/images/{name}", of_code["code"] if of_code is not None else ""
                    origin = f"{with_slash(uri)}{path}:{number}"
                    if image in rows:
                        yield rejected(
                            origin, "bad_row", "an earlier line tells of the same image: take one out", image
                        )
                        continue
                    rows[image] = _row(origin, image, [code] * bool(code) + cells)
                    told_by[image] = path
        images = [path for path in paths if _is_image(path)]
        for image in images:
            if image not in rows:
                fields = {"image": image, "split": split_above(image)}
                of_code = _OF_CODE.fullmatch(image)
                rows[image] = Row(with_slash(uri) + image, fields | ({"label": of_code["code"]} if of_code else {}))
        yield from (rows[image] for image in sorted(rows))
        told = AccountBuilder()
        there = frozenset(images)
        label_of = {image: path for image, path in told_by.items() if image in there}
        account_of_tree(told, paths, there, label_of, lambda path: False, {_CODES, *told_by.values()})
        yield told.account()


def _missing_boxes(paths: list[str]) -> Iterator[tuple[str, str]]:
    """What is told of classes whose images have no text of boxes, though those of other classes have one."""
    of_images = {found["code"] for path in paths if _is_image(path) and (found := _OF_CODE.fullmatch(path))}
    of_boxes = {found["code"] for path in paths if (found := _BOXES.fullmatch(path))}
    missing = sorted(of_images - of_boxes)
    if missing:
        yield (
            "no_label_files",
            f"train/{missing[0]}/{missing[0]}_boxes.txt is not there, and so it is with {len(missing):,} of "
            f"{len(of_images):,} classes: their images are taken as ones without boxes",
        )


def _row(origin: str, image: str, cells: list[str]) -> Row | RejectedRow:
    """The row of a line. cells: the code, and the sides of the box."""
    if len(cells) != 5:
        return rejected(
            origin, "bad_row", f"the line has {len(cells)} cells behind the name, not a code and a box", image
        )
    code, *sides = cells
    box: dict[str, Any] = {"class": code, "bbox": sides, "origin": origin}
    return Row(origin, {"image": image, "split": split_above(image), "label": code, "boxes": [box]})


def _paths(files: Files, uri: str) -> list[str]:
    """All files below the folder, junk included."""
    return [info.uri[len(with_slash(uri)) :] for info in files.walk(uri)]


def _is_image(path: str) -> bool:
    return is_image_name(path) and junk_part(path) is None
