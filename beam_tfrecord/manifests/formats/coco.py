"""COCO JSON: instances, keypoints, captions, panoptic, and plain category ids (https://cocodataset.org/#format-data).

One row per image, in the order of ``images``, with all its annotations, wherever they stand in the file. The file is
read as a stream; what an annotation says is told by its content, so one file may mix kinds. Category ids give the
vocabulary: names in the order of the ids. LVIS (lvisdataset.org/dataset) has ``coco_url`` in place of ``file_name``,
and Objects365 (objects365.org) paths from folders of its own: such images are found by the ends of their paths.
"""

from __future__ import annotations

import json
import posixpath
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from beam_tfrecord.annotations.cells import shown
from beam_tfrecord.annotations.shapes import check_pycocotools
from beam_tfrecord.core.account import ANNOTATIONS, CATEGORIES, IMAGES, KEYS, OF_NO_IMAGE, AccountBuilder, Decision
from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import ElementError, ManifestError, RowError
from beam_tfrecord.manifests.base import Files, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.documents import NamedImages, images_below
from beam_tfrecord.manifests.formats.coco_annotations import (
    COPIED,
    Annotation,
    Category,
    fields_of,
    id_text,
    is_ignored,
    kinds_of_annotation,
    kinds_of_file,
    parse_categories,
)
from beam_tfrecord.manifests.gathering import Groups
from beam_tfrecord.manifests.picture_labels import stated_size
from beam_tfrecord.manifests.siblings import LABEL_FOLDERS, parent, without_suffix
from beam_tfrecord.manifests.text.compression import open_unpacked
from beam_tfrecord.manifests.text.json_text import JsonItem, Members, iterate_members
from beam_tfrecord.manifests.text.row_fields import rejected
from beam_tfrecord.manifests.text.uri_text import WEB_SCHEMES, name_of, scheme_of
from beam_tfrecord.options.config import ManifestConfig


@dataclass(frozen=True, slots=True)
class _Image:
    """An element of ``images``. place: its number there. problem: why it cannot become a row.

    odd_size: what is told of a stated size that can be none.
    """

    place: int
    id: str
    file_name: str = ""
    size: tuple[int, int] | None = None
    problem: str = ""
    odd_size: str = ""

    @property
    def told(self) -> str:
        return f"images[{self.place}]"

    @property
    def same_file(self) -> str:
        """One text for all spellings of one path."""
        return posixpath.normpath(self.file_name.strip().replace("\\", "/"))


_SAMPLE = 50  # images whose places are looked at
_ARRAYS = ("images", "annotations", "categories")
_FURTHER = "attributes"  # of annotations, as CVAT writes them
# What is read of the members; the other keys are told of.
_KEYS = {
    "": frozenset(_ARRAYS),
    "images": frozenset({"id", "file_name", "coco_url", "width", "height"}),
    "annotations": frozenset(
        {
            *("id", "image_id", "category_id", "bbox", "segmentation", "keypoints", "caption", "segments_info"),
            *("file_name", "iscrowd", "area", "attributes", "difficult", "truncated", "occluded", "ignore"),
        }
    ),
    "categories": frozenset({"id", "name", "keypoints"}),
    _FURTHER: frozenset({*COPIED, "rotation"}),
}


class CocoFormat(ManifestFormat):
    """A JSON object with ``images``, ``annotations`` and ``categories``."""

    name = "coco"
    leads = True

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
        categories: list[tuple[Any, str]] = []
        kinds: set[str] = set()
        seen: set[str] = set()
        has_polygons = False
        with_category = -1  # place of the first annotation that names one
        told, keys = AccountBuilder(), _Keys()
        sample: list[str] = []
        for item in _items(files, uri):
            seen.add(item.key)
            keys.see(item)
            if item.place < 0:
                continue
            if item.key in _ARRAYS:
                told.find(item.key)
            if item.key == "images" and len(sample) < _SAMPLE:
                sample.append(_parse_image(item).file_name)
            if item.key == "categories":
                categories.append((item.value, item.repeated))
            elif item.key == "annotations" and isinstance(item.value, Mapping):
                kinds |= kinds_of_annotation(item.value)
                has_polygons = has_polygons or isinstance(item.value.get("segmentation"), list)
                if with_category < 0 and _names_category(item.value) and "caption" not in item.value:
                    with_category = item.place
        if "images" not in seen:
            raise ManifestError(
                f"{uri} has no images, so it is no COCO file; it has {', '.join(sorted(seen)) or 'nothing'}"
            )
        if has_polygons:
            check_pycocotools()
        if "annotations" in seen and not kinds:
            kinds.add("objects")
        by_id = parse_categories(categories, uri)
        if with_category >= 0 and not by_id:
            raise ManifestError(
                f"{uri} has no categories, but annotations[{with_category}] has a category_id: add the categories "
                f'(a list of {{"id": ..., "name": ...}}), or take category_id out where all objects are of one class'
            )
        told.find(KEYS, len(keys.seen))
        base, by_name = _place_of_images(files, config.images or parent(uri), sample, config.images is None)
        decisions = [Decision("kinds of annotations", ", ".join(kinds_of_file(kinds)), "their members")]
        if by_name:
            decisions.append(
                Decision("images", f"below {base}, by the ends of their paths", "none lies as it is stated")
            )
        return Source(
            uri,
            self.name,
            split,
            base,
            labels=tuple(by_id[number].name for number in sorted(by_id)) if by_id else None,
            category_ids=tuple(sorted(by_id)) if by_id else None,
            details={
                "kinds": kinds_of_file(kinds),
                "masks": _mask_folder(files, uri) if "panoptic" in kinds else "",
                "by_name": by_name,
            },
            account=told.account(),
            decisions=tuple(decisions),
        )

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        source = piece.source
        images: list[_Image] = []
        categories: list[tuple[Any, str]] = []
        strays: list[tuple[int, str]] = []  # annotations that name no image, and why
        told, keys = AccountBuilder(), _Keys()
        uses: set[str] = set()  # ids of categories that annotations name
        with Groups() as annotations:
            for item in _items(files, source.uri):
                keys.see(item)
                if item.place < 0:
                    continue
                if item.key == "images":
                    images.append(_parse_image(item))
                elif item.key == "categories":
                    categories.append((item.value, item.repeated))
                elif item.key == "annotations":
                    uses.update(_category_ids(item.value))
                    image_id = id_text(item.value.get("image_id")) if isinstance(item.value, Mapping) else ""
                    if image_id:
                        annotations.add(image_id, Annotation(item.place, item.value, item.repeated))
                    else:
                        strays.append((item.place, _no_image(item)))
            by_id = parse_categories(categories, source.uri)
            if source.details["by_name"]:
                named = NamedImages(images_below(files, source.base))
                images = [_found(image, named) for image in images]
            yield from self._rows(source, images, annotations, by_id, told)
            for image_id in annotations.left():
                places = [annotation.place for annotation in annotations.take(image_id)]
                told.name(ANNOTATIONS, OF_NO_IMAGE, f"annotations[{places[0]}]", len(places))
                yield _reject(source, image_id, "", RowError("bad_annotation", _belong_to_no_image(places)))
        if strays:
            message = f"{_belong_to_no_image([place for place, _ in strays])}: {strays[0][1]}"
            told.name(ANNOTATIONS, OF_NO_IMAGE, f"annotations[{strays[0][0]}]", len(strays))
            yield _reject(source, "(no image_id)", "", RowError("bad_annotation", message))
        for category in by_id.values():
            if str(category.id) in uses:
                told.use(CATEGORIES, "of annotations")
            else:
                told.name(CATEGORIES, "no annotation has it", category.name)
        keys.tell(told)
        yield told.account()

    def _rows(
        self,
        source: Source,
        images: Sequence[_Image],
        annotations: Groups,
        categories: Mapping[int, Category],
        told: AccountBuilder,
    ) -> Iterator[Item]:
        doubts = _doubts(images, annotations)
        known: set[str] = set()
        for image in images:
            name = image.id or f"at place {image.place}"
            own = annotations.take(image.id) if image.id else []
            problem = doubts.get(image.place)
            if problem is None and image.problem:
                lost = f"; its {len(own)} annotations are not stored" if own else ""
                problem = RowError("bad_row", image.problem + lost)
            if problem is None and image.id in known:
                problem = RowError(
                    "bad_annotation", f"{image.told} stands there twice: an earlier image has the same id"
                )
            known.add(image.id)
            try:
                if problem is not None:
                    raise problem
                fields = fields_of(own, source.details["kinds"], categories, source.details["masks"])
            except ElementError as error:
                told.name(IMAGES, "rejected", image.told)
                told.name(ANNOTATIONS, "of a rejected image", image.told, len(own))
                yield _reject(source, name, image.file_name, error)
                continue
            told.use(IMAGES, "rows")
            notes = fields.get("notes", [])
            ignored = sum(map(is_ignored, own))
            told.use(ANNOTATIONS, "of a row", len(own) - ignored)
            told.name(ANNOTATIONS, "marked with ignore", image.told, ignored)
            fields.update({"image": image.file_name, "id": image.id})
            if image.size is not None:
                fields["size"] = image.size
            if image.odd_size:
                fields["notes"] = [*notes, ("size_mismatch", image.odd_size)]
            yield Row(_origin(source, name), fields)


class _Keys:
    """The keys of a file and of the elements of its arrays, each once."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, str]] = set()

    def see(self, item: JsonItem) -> None:
        """Take note of a member."""
        self.seen.add(("", item.key))
        if item.place >= 0 and item.key in _ARRAYS and isinstance(item.value, Mapping):
            self.seen.update((item.key, key) for key in item.value)
            further = item.value.get(_FURTHER) if item.key == "annotations" else None
            self.seen.update((_FURTHER, key) for key in (further if isinstance(further, Mapping) else ()))

    def tell(self, told: AccountBuilder) -> None:
        """Which of them are read."""
        for place, key in sorted(self.seen):
            if key in _KEYS[place]:
                told.use(KEYS, "read")
            else:
                told.name(KEYS, f"not read of {place}" if place else "not read", key)


def _category_ids(annotation: Any) -> Iterator[str]:
    """The ids of the categories that an annotation names, as texts of whole numbers."""
    if not isinstance(annotation, Mapping):
        return
    segments = annotation.get("segments_info")
    for one in (annotation, *(segments if isinstance(segments, list) else ())):
        if isinstance(one, Mapping):
            yield id_text(one.get("category_id"))


def _doubts(images: Sequence[_Image], annotations: Groups) -> dict[int, RowError]:
    """Why it is open which annotations belong to an image, by its place.

    Two pictures with one id have the annotations of both. One picture with two ids has only a part of its annotations
    under each, unless both have the same ones, as when pictures are repeated on purpose.
    """
    doubts: dict[int, RowError] = {}
    for group in _repeated(images, lambda image: image.id):
        if len({image.same_file for image in group}) > 1:
            message = (
                f"{_listed(group)} have the same id, {group[0].id}: it is open whose annotations those with it are"
            )
            for image in group:
                doubts[image.place] = RowError("bad_annotation", f"{message}. Give each image an id of its own")
    for group in _repeated(images, lambda image: image.same_file if image.file_name else ""):
        contents = {image.id: _content(annotations.peek(image.id)) for image in group if image.id}
        if len(set(contents.values())) > 1:
            message = f"{_listed(group)} are one file with different annotations: give them one id, and one image"
            for image in group:
                doubts.setdefault(image.place, RowError("bad_annotation", message))
    return doubts


def _repeated(images: Sequence[_Image], key: Callable[[_Image], str]) -> list[list[_Image]]:
    """The images that share a key with others, by that key."""
    counts = Counter(map(key, images))
    groups: dict[str, list[_Image]] = {}
    for image in images:
        if key(image) and counts[key(image)] > 1:
            groups.setdefault(key(image), []).append(image)
    return list(groups.values())


def _listed(images: Sequence[_Image]) -> str:
    named = [f"{image.told} ({image.file_name})" for image in images[:3]]
    return " and ".join(named) + (f" and {len(images) - 3} more" if len(images) > 3 else "")


def _content(annotations: Sequence[Annotation]) -> str:
    """What annotations say, whatever their ids."""
    said = [
        json.dumps({**annotation.value, "id": None, "image_id": None}, sort_keys=True) for annotation in annotations
    ]
    return "\n".join(sorted(said))


def _belong_to_no_image(places: Sequence[int]) -> str:
    return f"{len(places)} annotations, the first of them annotations[{places[0]}], belong to no image of the file"


def _no_image(item: JsonItem) -> str:
    if not isinstance(item.value, Mapping):
        return f"it is {shown(item.value)}, not an object"
    return f"its image_id is {shown(item.value['image_id'])}" if "image_id" in item.value else "it has no image_id"


def _names_category(annotation: Mapping[str, Any]) -> bool:
    segments = annotation.get("segments_info")
    inner = [segment for segment in segments if isinstance(segment, Mapping)] if isinstance(segments, list) else []
    return any(one.get("category_id") is not None for one in (annotation, *inner))


def _items(files: Files, uri: str) -> Iterator[JsonItem]:
    """The members of the file. Raises ManifestError when one of the three that matter is no array."""
    with open_unpacked(files, uri) as stream:
        for item in iterate_members(stream, uri):
            if item.place < 0 and item.value != [] and item.key in _ARRAYS:
                raise ManifestError(
                    f"{uri}: {item.key} is {shown(item.value)}, not an array: write it as COCO does, or leave it out"
                )
            yield item


def _mask_folder(files: Files, uri: str) -> str:
    """Where the PNGs of a panoptic file are: in the folder of its name beside it, else beside it."""
    beside = parent(uri)
    named = files.join(beside, without_suffix(name_of(uri)))
    return named if files.is_folder(named) else beside


def _parse_image(item: JsonItem) -> _Image:
    told = f"images[{item.place}]"
    image_id = id_text(item.value.get("id")) if isinstance(item.value, Mapping) else ""
    try:
        members = Members(item.value, told, "bad_row")
        if not image_id:
            given = "" if item.value.get("id") is None else f", its id is {shown(item.value['id'])}"
            return _Image(item.place, "", problem=f"{told} has no id that is a whole number or a text{given}")
        if item.repeated:
            return _Image(item.place, image_id, problem=f"{told} has the key {item.repeated!r} twice")
        file_name = members.text("file_name") or members.text("coco_url")
    except RowError as error:
        return _Image(item.place, image_id, problem=error.message)
    if not file_name.strip():
        return _Image(item.place, image_id, problem=f"{told} has no file_name")
    size, odd = stated_size(told, members.raw("width"), members.raw("height"))
    return _Image(item.place, image_id, file_name, size, odd_size=odd)


def _place_of_images(files: Files, base: str, sample: Sequence[str], may_move: bool) -> tuple[str, bool]:
    """(folder of the images, whether they are found there by the ends of their paths).

    That is so where paths with folders, or addresses as those of LVIS, lead to no file, and files with such ends are
    there. may_move: ``base`` is the folder of the document, which may be one of labels beside those of images.
    """
    stated = [name for name in sample if "/" in name.replace("\\", "/")]
    if not stated or len(stated) < len(sample) or scheme_of(base) in WEB_SCHEMES:
        return base, False
    if any(not scheme_of(name) and files.is_file(files.join(base, name.replace("\\", "/"))) for name in stated):
        return base, False
    beside = may_move and name_of(base).lower() in LABEL_FOLDERS
    for folder in [base, *([parent(base)] if beside else [])]:
        named = NamedImages(images_below(files, folder))
        if any(_end_in(named, name) for name in stated):
            return folder, True
    return base, False


def _end_in(named: NamedImages, stated: str) -> bool:
    try:
        return named.find(_path_of(stated)) is not None
    except RowError:  # several: which is asked when it is read
        return True


def _path_of(stated: str) -> str:
    """A path, or that of an address: http://images.cocodataset.org/train2017/000000391895.jpg."""
    return urlsplit(stated).path.lstrip("/") if scheme_of(stated) in WEB_SCHEMES else stated


def _found(image: _Image, named: NamedImages) -> _Image:
    """The image with the path of the file that is meant, as it is where there is none."""
    if image.problem or not image.file_name:
        return image
    try:
        found = named.find(_path_of(image.file_name))
    except RowError as error:
        return replace(image, problem=error.message)
    return replace(image, file_name=found) if found is not None else image


def _origin(source: Source, image_id: str) -> str:
    return f"{source.uri}:image {image_id}"


def _reject(source: Source, image_id: str, file_name: str, problem: ElementError) -> RejectedRow:
    return rejected(_origin(source, image_id), problem.code, problem.message, file_name)
