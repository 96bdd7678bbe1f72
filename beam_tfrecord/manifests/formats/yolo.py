"""YOLO datasets: a data.yaml, images beside labels, one text file per image (docs.ultralytics.com/datasets).

Read are the yaml, its folder, a folder of ``images/`` and ``labels/`` with the class names in ``classes.txt``, and a
list of images. The label file of ``images/a/x.jpg`` is ``labels/a/x.txt``, or ``x.txt`` beside an image that lies in no
``images`` folder. An image without a label file has no objects. Class ids are the places of the names.

YOLO tools turn images by their EXIF tag before they show or train them, so annotations belong to the turned picture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import ElementError, ManifestError, RowError
from beam_tfrecord.manifests.base import Files, Ignored, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.filenames import is_image_name
from beam_tfrecord.manifests.formats.yolo_labels import LabelForm, parse_labels
from beam_tfrecord.manifests.formats.yolo_yaml import YoloData, find_yaml, read_names_file, read_yaml
from beam_tfrecord.manifests.siblings import in_parallel, items_of, parent, pieces_of, relative_files, without_suffix
from beam_tfrecord.manifests.split_names import is_split_folder
from beam_tfrecord.manifests.text.compression import readable
from beam_tfrecord.manifests.text.lines import read_lines
from beam_tfrecord.manifests.text.row_fields import rejected
from beam_tfrecord.options.config import ManifestConfig

_NAME_FILES = ("classes.txt", "obj.names", "labels/classes.txt", "labels.txt", "predefined_classes.txt")
_YAML_SUFFIXES = (".yaml", ".yml")


class YoloFormat(ManifestFormat):
    """A data.yaml, or a folder that has one, or images/ and labels/; with --format yolo also a list of images."""

    name = "yolo"
    suffixes = _YAML_SUFFIXES

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        if not files.is_folder(uri):
            return uri.lower().endswith(_YAML_SUFFIXES) and b"names" in head
        if find_yaml(files, uri):
            return True
        if not {"images/", "labels/"} <= set(files.list_folder(uri)):
            return False
        return any(path.endswith(".txt") for path in relative_files(files, files.join(uri, "labels"))[0])

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        with readable(uri):
            data = _find_data(files, uri, config.images, config.encoding)
        ids = sorted(data.names)
        return Source(
            uri,
            self.name,
            split,
            data.root,
            labels=tuple(data.names[number] for number in ids),
            category_ids=tuple(ids),
            details={
                "parts": data.parts,
                "points": data.points,
                "values": data.values,
                "point_names": data.point_names,
                "encoding": config.encoding,
            },
        )

    def pieces(self, files: Files, source: Source) -> Iterator[Piece]:
        with readable(source.uri):
            yield from pieces_of(source, len(_images(files, source)[0]))

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        source = piece.source
        with readable(source.uri):
            images, ignored = _images(files, source)
        if ignored and piece.start == 0:
            yield Ignored(ignored)
        names = dict(zip(source.category_ids or (), source.labels or (), strict=True))
        details = source.details
        form = LabelForm(names, details["points"], details["values"], details["point_names"], details["encoding"])
        yield from in_parallel(lambda item: _row(files, source, *item, form), items_of(piece, images))


def _row(files: Files, source: Source, split: str, image: str, form: LabelForm) -> Row | RejectedRow:
    uri = files.join(source.base, image)
    labels = label_path(uri)
    try:
        boxes = parse_labels(_read(files, labels), labels, form)
    except ElementError as error:
        return rejected(uri, error.code, error.message, uri)
    fields: dict[str, Any] = {"image": image, "boxes": boxes, "frame": "upright"}
    if split:
        fields["split"] = split
    return Row(uri, fields)


def label_path(image: str) -> str:
    """Where the label file of an image is."""
    folders = without_suffix(image).split("/")
    places = [place for place, name in enumerate(folders[:-1]) if name == "images"]
    if places:
        folders[places[-1]] = "labels"
    return "/".join(folders) + ".txt"


def _read(files: Files, uri: str) -> bytes:
    """A label file; nothing when there is none."""
    try:
        with files.open(uri) as stream:
            return stream.read()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise RowError("read_failed", f"the label file {uri} cannot be read: {error}") from None


# ---------------------------------------------------------------------------------------------------------------------
# What is where


def _find_data(files: Files, uri: str, images: str | None, encoding: str) -> YoloData:
    is_folder = files.is_folder(uri)
    if not is_folder and not files.is_file(uri):
        raise ManifestError(f"{uri} does not exist")
    yaml = find_yaml(files, uri, encoding) if is_folder else uri if uri.lower().endswith(_YAML_SUFFIXES) else ""
    if yaml:
        return read_yaml(files, yaml, images, encoding=encoding)
    folder = uri if is_folder else parent(uri)
    beside = find_yaml(files, folder, encoding)
    if beside:
        names = read_yaml(files, beside, images, need_parts=False, encoding=encoding).names
    else:
        named = next((place for name in _NAME_FILES if files.is_file(place := files.join(folder, name))), "")
        if not named:
            raise ManifestError(f"{folder} names no classes: put a data.yaml or a classes.txt there, one name per line")
        names = read_names_file(files, named, encoding)
    parts = _parts_of_folder(files, folder) if is_folder else (("", uri),)
    return YoloData(images or folder, names, parts)


def _parts_of_folder(files: Files, folder: str) -> tuple[tuple[str, str], ...]:
    """The folder images/, or its subfolders when they are all called like splits."""
    images = files.join(folder, "images")
    if not files.is_folder(images):
        return (("", folder),)
    below = [name.rstrip("/") for name in files.list_folder(images)]
    if below and all(is_split_folder(name) for name in below):
        return tuple((name.lower(), files.join(images, name)) for name in below)
    return (("", images),)


def _images(files: Files, source: Source) -> tuple[list[tuple[str, str]], int]:
    """((split, path below the base or uri) of each image, in the order of the parts; pieces of junk among them)."""
    found: list[tuple[str, str]] = []
    ignored = 0
    for split, place in source.details["parts"]:
        if files.is_folder(place):
            paths, junk = relative_files(files, place)
            ignored += junk
            images = [files.join(place, path) for path in paths if is_image_name(path)]
        else:
            images = _list_of_images(files, place, source.base, source.details["encoding"])
        found.extend((split, _below(source.base, image)) for image in images)
    return found, ignored


def _list_of_images(files: Files, uri: str, base: str, encoding: str) -> list[str]:
    """The images of a list file: paths that begin with ./ start from its folder, other relative ones from the base."""
    lines = read_lines(files, uri, encoding)
    images = []
    for line in lines:
        path = line.strip().replace("\\", "/")
        if path:
            start, path = (parent(uri), path[2:]) if path.startswith("./") else (base, path)
            images.append(files.join(start, path))
    return images


def _below(base: str, uri: str) -> str:
    """The path of a uri below a folder, or the uri itself when it lies elsewhere."""
    return uri.removeprefix(base.rstrip("/") + "/")
