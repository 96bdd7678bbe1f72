"""COCO JSON: instances, keypoints, captions, panoptic, and plain category ids (https://cocodataset.org/#format-data).

One row per image, in the order of ``images``, with all its annotations, wherever they stand in the file. The file is
read as a stream; what an annotation says is told by its content, so one file may mix kinds. Category ids give the
vocabulary: names in the order of the ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.annotations.polygons import check_pycocotools
from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.base import Files, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.formats.coco_annotations import (
    Category,
    CocoError,
    annotation_kind,
    fields_of,
    parse_categories,
    whole,
)
from beam_tfrecord.manifests.grouping import Groups
from beam_tfrecord.manifests.siblings import parent, without_suffix
from beam_tfrecord.manifests.text.compression import open_unpacked
from beam_tfrecord.manifests.text.json_stream import JsonItem, iterate_members
from beam_tfrecord.manifests.text.row_fields import rejected
from beam_tfrecord.manifests.text.uri_text import name_of
from beam_tfrecord.options.config import ManifestConfig


@dataclass(frozen=True, slots=True)
class _Image:
    """An element of ``images``. problem: why it cannot become a row."""

    id: str
    file_name: str
    size: tuple[int, int] | None
    problem: str = ""


class CocoFormat(ManifestFormat):
    """A JSON object with ``images``, ``annotations`` and ``categories``."""

    name = "coco"

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        """A JSON object with at least two of the three members; the file is read until they are found."""
        if not head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
            return False
        keys = set()
        try:
            for item in _items(files, uri):
                keys.add(item.key)
                if len(keys & {"images", "annotations", "categories"}) > 1:
                    return True
        except ManifestError:
            return False
        return False

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        """Reads the file once, for its categories and the kinds of its annotations."""
        categories: list[Any] = []
        kinds: set[str] = set()
        seen: set[str] = set()
        has_polygons = False
        for item in _items(files, uri):
            seen.add(item.key)
            if item.place < 0:
                continue
            if item.key == "categories":
                categories.append(item.value)
            elif item.key == "annotations" and isinstance(item.value, Mapping):
                kinds.add(annotation_kind(item.value))
                has_polygons = has_polygons or isinstance(item.value.get("segmentation"), list)
        if "images" not in seen:
            raise ManifestError(
                f"{uri} has no images, so it is no COCO file; it has {', '.join(sorted(seen)) or 'nothing'}"
            )
        if has_polygons:
            check_pycocotools()
        if "annotations" in seen and not kinds:
            kinds.add("objects")
        by_id = parse_categories(categories, uri)
        return Source(
            uri,
            self.name,
            split,
            config.images or parent(uri),
            labels=tuple(by_id[number].name for number in sorted(by_id)) if by_id else None,
            category_ids=tuple(sorted(by_id)) if by_id else None,
            details={"kinds": tuple(sorted(kinds)), "masks": _mask_folder(files, uri) if "panoptic" in kinds else ""},
        )

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        source = piece.source
        images: list[_Image] = []
        categories: list[Any] = []
        with Groups() as annotations:
            for item in _items(files, source.uri):
                if item.place < 0:
                    continue
                if item.key == "images":
                    images.append(_parse_image(item))
                elif item.key == "categories":
                    categories.append(item.value)
                elif item.key == "annotations":
                    annotations.add(_image_id(item), (item.place, item.value))
            by_id = parse_categories(categories, source.uri)
            yield from self._rows(source, images, annotations, by_id)

    def _rows(
        self, source: Source, images: list[_Image], annotations: Groups, categories: Mapping[int, Category]
    ) -> Iterator[Item]:
        known: set[str] = set()
        for image in images:
            if image.id in known:
                yield _reject(
                    source, image.id, image.file_name, CocoError("bad_annotation", "an earlier image has the same id")
                )
                continue
            known.add(image.id)
            own = annotations.take(image.id)
            if image.problem:
                yield _reject(source, image.id, image.file_name, CocoError("bad_row", image.problem))
                continue
            try:
                fields = fields_of(own, source.details["kinds"], categories, source.details["masks"])
            except CocoError as problem:
                yield _reject(source, image.id, image.file_name, problem)
                continue
            fields.update({"image": image.file_name, "id": image.id})
            if image.size is not None:
                fields["size"] = image.size
            yield Row(_origin(source, image.id), fields)
        for image_id in annotations.left():
            places = [index for index, _ in annotations.take(image_id)]
            message = (
                f"{len(places)} annotations, the first of them annotations[{places[0]}], belong to no image of the file"
            )
            yield _reject(source, image_id, "", CocoError("bad_annotation", message))


def _items(files: Files, uri: str) -> Iterator[JsonItem]:
    with open_unpacked(files, uri) as stream:
        yield from iterate_members(stream, uri)


def _mask_folder(files: Files, uri: str) -> str:
    """Where the PNGs of a panoptic file are: in the folder of its name beside it, else beside it."""
    beside = parent(uri)
    named = files.join(beside, without_suffix(name_of(uri)))
    return named if files.is_folder(named) else beside


def _parse_image(item: JsonItem) -> _Image:
    value = item.value
    if not isinstance(value, Mapping) or value.get("id") is None:
        return _Image(f"at place {item.place}", "", None, f"images[{item.place}] has no id")
    file_name = value.get("file_name") or value.get("coco_url") or ""
    sides = whole(value.get("width")), whole(value.get("height"))
    size = (sides[0], sides[1]) if sides[0] and sides[1] else None
    problem = "" if isinstance(file_name, str) and file_name else f"images[{item.place}] has no file_name"
    return _Image(str(value["id"]), str(file_name), size, problem)


def _image_id(item: JsonItem) -> str:
    value = item.value
    return str(value["image_id"]) if isinstance(value, Mapping) and "image_id" in value else "(no image_id)"


def _origin(source: Source, image_id: str) -> str:
    return f"{source.uri}:image {image_id}"


def _reject(source: Source, image_id: str, file_name: str, problem: CocoError) -> RejectedRow:
    return rejected(_origin(source, image_id), problem.code, str(problem), file_name)
