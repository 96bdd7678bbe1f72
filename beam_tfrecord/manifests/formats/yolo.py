"""YOLO text labels: a line per object (https://docs.ultralytics.com/datasets/detect/).

The classes and the places of the images are described by a ``data.yaml``, by darknet's ``obj.data``, or by their folder
with the names in ``classes.txt``. Where a yaml or a list speaks, the label file of ``images/a/x.jpg`` is
``labels/a/x.txt``, or ``x.txt`` beside an image that lies in no ``images`` folder; in a folder without one it is
found as :mod:`beam_tfrecord.manifests.beside` tells. An image without a label file has no objects. Class ids are the
places of the names.

YOLO tools turn images by their EXIF tag before they show or train them, so annotations belong to the turned picture.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from beam_tfrecord.core.account import (
    FILES,
    IMAGES,
    LABEL_FILES,
    WITH_LABEL_FILE,
    WITHOUT_LABEL_FILE,
    Account,
    AccountBuilder,
    Decision,
)
from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import ConfigError, ElementError, ManifestError, RowError
from beam_tfrecord.manifests.base import LISTED, Files, Ignored, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.beside import account_of_tree, find_splits, lies_among_labels, pair_files, split_in
from beam_tfrecord.manifests.filenames import is_image_name, junk_part
from beam_tfrecord.manifests.formats.yolo_data import (
    NOTES,
    YoloData,
    check_count,
    find_data_file,
    find_yaml,
    leading_folders,
    read_data_file,
    read_names_file,
    read_yaml,
)
from beam_tfrecord.manifests.formats.yolo_labels import LabelForm, decide_lines, parse_labels
from beam_tfrecord.manifests.layout import IMAGE_FOLDERS
from beam_tfrecord.manifests.leftovers import Reads
from beam_tfrecord.manifests.registry import FORMATS, read_head
from beam_tfrecord.manifests.siblings import in_parallel, items_of, label_path, parent, pieces_of, relative_files
from beam_tfrecord.manifests.text.compression import readable
from beam_tfrecord.manifests.text.lines import read_lines
from beam_tfrecord.manifests.text.row_fields import rejected
from beam_tfrecord.manifests.text.spelling import Spellings, find_other
from beam_tfrecord.manifests.text.uri_text import name_of, with_slash
from beam_tfrecord.options.config import ManifestConfig

# LabelImg and darknet; CVAT; Roboflow's "YOLO Darknet"; Label Studio, beside its classes.txt.
_NAME_FILES = (
    *("classes.txt", "obj.names", "labels.txt", "_darknet.labels", "darknet.labels", "predefined_classes.txt"),
    NOTES,
)
_SAMPLE_FILES = 100
_YAML_SUFFIXES = (".yaml", ".yml")
_LOOKED_AT = 20
_NO_LABELS = re.compile(r"(?:train|val|valid|test|readme.*|licen[cs]e|requirements)\.txt", re.IGNORECASE)
_LINE = re.compile(rb"\s*\d+(?:\.0+)?(?:\s+-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?){4,}\s*")


class _Picture(NamedTuple):
    """An image: its split, its path below the base (or uri), and the uri of its label file, '' when none is there."""

    split: str
    image: str
    labels: str


class YoloFormat(ManifestFormat):
    """A data.yaml or obj.data, or a folder that has one, or images with label files; with --format yolo also a list."""

    name = "yolo"
    asks = ("yolo_lines", "box_units")
    counts_files = True
    suffixes = _YAML_SUFFIXES
    beside = (".txt",)

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        if not files.is_folder(uri):
            if uri.lower().endswith(".data"):
                return b"names" in head and b"=" in head
            return uri.lower().endswith(_YAML_SUFFIXES) and b"names" in head
        if find_yaml(files, uri) or find_data_file(files, uri):
            return not _has_turned_boxes(files, uri)
        if not {"images/", "labels/"} <= set(files.list_folder(uri)):
            return False
        labels = files.join(uri, "labels")
        texts = [path for path in relative_files(files, labels)[0] if path.endswith(".txt")]
        return bool(texts) and not _are_of_another(files, [files.join(labels, path) for path in texts[:_LOOKED_AT]])

    def annotates(self, head: bytes) -> bool:
        """Whether every line (the last may be cut) is a class id and four numbers or more."""
        lines = [line for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n")[:50] if line.strip()]
        whole = lines[:-1] if len(lines) > 1 else lines
        return bool(whole) and all(_LINE.fullmatch(line) for line in whole)

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        with readable(uri):
            data, decided = _find_data(files, uri, config.images, config.encoding)
            tree = _tree_of(files, data)
            details = {
                LISTED: tree != "",
                "parts": data.parts,
                "points": data.points,
                "values": data.values,
                "point_names": data.point_names,
                "tree": tree,
                "has_rule": data.has_rule,
                "manifests": data.manifests,
                "encoding": config.encoding,
                "lines": config.yolo_lines,
                "in_pixels": config.box_units == "pixels",
                "counts_files": tree != "",
                **Reads(data.manifests, beside_images=True).to_details(),
            }
            ids = sorted(data.names)
            source = Source(
                uri,
                self.name,
                split,
                data.root,
                labels=tuple(data.names[number] for number in ids),
                category_ids=tuple(ids),
                details=details,
            )
            pictures, _ = _pictures(files, source)
            details["paired"] = sum(picture.labels != "" for picture in pictures)
            if not data.points:
                sample = _sample(files, source, pictures)
                details["lines"] = decide_lines(sample, config.yolo_lines, uri, config.box_units)
                if details["lines"] == "outline":
                    why = (
                        "--yolo_lines"
                        if config.yolo_lines == "outline"
                        else "the values of a sample of the label files"
                    )
                    decided.append(Decision("lines of 7 values or more", "outlines", why))
            if not any(part for part, _ in data.parts) and split is None:
                found = sorted({picture.split for picture in pictures} - {""})
                if found:
                    decided.append(Decision("split", ", ".join(found), "the names of the folders of the images"))
            folder = uri if files.is_folder(uri) else parent(uri)
            doubts = [*data.doubts, *_other_names(files, folder, data, config.encoding)]
            return replace(
                source,
                account=_found(files, source, pictures),
                decisions=tuple(decided),
                surprises=tuple(("doubtful_reading", told) for told in doubts),
            )

    def pieces(self, files: Files, source: Source) -> Iterator[Piece]:
        with readable(source.uri):
            yield from pieces_of(source, len(_pictures(files, source)[0]))

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        source = piece.source
        told = AccountBuilder()
        with readable(source.uri):
            pictures, junk = _pictures(files, source)
            if piece.start == 0 and source.details["tree"]:
                _tell_tree(files, source, pictures, told)
        if junk and piece.start == 0:
            yield Ignored(junk)
        names = dict(zip(source.category_ids or (), source.labels or (), strict=True))
        details = source.details
        form = LabelForm(names, details["points"], details["values"], details["point_names"], details["encoding"])
        form = replace(form, lines=details["lines"], in_pixels=details["in_pixels"])
        # A label file counts once, though images of several parts, or x.jpg and x.png, have it.
        first = {picture.labels: place for place, picture in reversed([*enumerate(pictures)]) if picture.labels}
        own = items_of(piece, [*enumerate(pictures)])
        count = read = 0
        for place, (row, has_labels) in in_parallel(lambda item: (item[0], _row(files, source, item[1], form)), own):
            count, read = count + 1, read + (has_labels and first.get(pictures[place].labels, place) == place)
            yield row
        told.use(LABEL_FILES, "read", read)
        if not details["tree"]:  # a list may name images anywhere: nothing tells what else lies there
            told.find(LABEL_FILES, read)
            told.use(IMAGES, WITH_LABEL_FILE, read)
            told.use(IMAGES, WITHOUT_LABEL_FILE, count - read)
        yield told.account()


def _are_of_another(files: Files, places: Sequence[str]) -> bool:
    """Whether the first of some label files that says anything holds labels of another format, such as KITTI's."""
    others = [manifest for manifest in FORMATS.values() if ".txt" in manifest.beside and manifest.name != "yolo"]
    head = next((head for place in places if (head := read_head(files, place)).strip()), b"")
    return any(manifest.annotates(head) for manifest in others)


def _has_turned_boxes(files: Files, folder: str) -> bool:
    """Whether the label files beside a yaml are DOTA's, as Roboflow exports them: ``train/labelTxt``, and no labels."""
    places = [folder, *(files.join(folder, name[:-1]) for name in files.list_folder(folder) if name.endswith("/"))]
    found = {name: files.join(place, name[:-1]) for place in places for name in files.list_folder(place)}
    turned = next((uri for name, uri in found.items() if name.lower() == "labeltxt/"), "")
    texts = [files.join(turned, name) for name in files.list_folder(turned)[:_LOOKED_AT] if name.endswith(".txt")]
    return "labels/" not in found and bool(texts) and _are_of_another(files, texts)


def _row(files: Files, source: Source, picture: _Picture, form: LabelForm) -> tuple[Row | RejectedRow, bool]:
    """The row of an image, and whether it has a label file."""
    uri = files.join(source.base, picture.image)
    labels = picture.labels or label_path(uri)
    try:
        data = _read(files, labels) if picture.labels or not source.details["tree"] else None
        boxes = parse_labels(data or b"", labels, form)
    except ElementError as error:
        return rejected(uri, error.code, error.message, uri), True
    fields: dict[str, Any] = {"image": picture.image, "boxes": boxes, "frame": "upright"}
    if picture.split:
        fields["split"] = picture.split
    return Row(uri, fields), data is not None


def _sample(files: Files, source: Source, pictures: Sequence[_Picture]) -> Iterator[tuple[str, bytes]]:
    """(uri, content) of some label files, evenly spread over the images."""
    chosen = pictures[:: max(1, len(pictures) // _SAMPLE_FILES)]
    places = [picture.labels or label_path(files.join(source.base, picture.image)) for picture in chosen]
    yield from zip(places, in_parallel(lambda place: _try_read(files, place), places), strict=True)


def _try_read(files: Files, uri: str) -> bytes:
    try:
        return _read(files, uri) or b""
    except ElementError:  # told when the row is read
        return b""


def _read(files: Files, uri: str) -> bytes | None:
    """A label file, under another spelling of its name if need be; None when there is none. Raises ElementError."""
    try:
        with files.open(uri) as stream:
            return stream.read()
    except FileNotFoundError:
        found = find_other(uri, files.is_file)
        return _read(files, found.uri) if found is not None else None
    except OSError as error:
        raise RowError("read_failed", f"the label file {uri} cannot be read: {error}") from None


# ---------------------------------------------------------------------------------------------------------------------
# What is where


def _find_data(files: Files, uri: str, images: str | None, encoding: str) -> tuple[YoloData, list[Decision]]:
    is_folder = files.is_folder(uri)
    if not is_folder and not files.is_file(uri):
        raise ManifestError(f"{uri} does not exist")
    yaml = find_yaml(files, uri, encoding) if is_folder else uri if uri.lower().endswith(_YAML_SUFFIXES) else ""
    if yaml:
        found = replace(read_yaml(files, yaml, images, encoding=encoding), manifests=(yaml,))
        decided = [Decision("classes", yaml, "its names")]
        if found.lost_root and images is None:
            why = f"its path, {found.lost_root}, is not there"
            decided.append(Decision("where the paths of the yaml start", found.root, why))
        return found, decided
    folder = uri if is_folder else parent(uri)
    data = find_data_file(files, uri) if is_folder else uri if uri.lower().endswith(".data") else ""
    if data:
        named, lists, count = read_data_file(files, data)
        names = read_names_file(files, named, encoding) or {}
        check_count(count, names, f"{data}: classes")
        parts = tuple(("train" if split == "train" else split, place) for split, place in lists.items())
        parts = parts or _parts_of_folder(files, folder)
        told = Decision("classes", named, f"names in {data}")
        return YoloData(images or folder, names, parts, manifests=(data, named, *lists.values())), [told]
    beside = find_yaml(files, folder, encoding)
    if beside:
        sources, own = [beside], read_yaml(files, beside, images, need_parts=False, encoding=encoding).names
    else:
        sources, own = _names_files(files, folder, encoding)
    parts = _parts_of_folder(files, folder) if is_folder else (("", uri),)
    manifests = (*sources, *([] if is_folder else [uri]))
    told = Decision("classes", sources[0], "its lines" if not beside else "its names")
    return YoloData(images or folder, own, parts, has_rule=not is_folder, manifests=manifests), [told]


def _names_files(files: Files, folder: str, encoding: str) -> tuple[list[str], Mapping[int, str]]:
    """The files of class names of a folder, at its top, else below it, and what they say.

    Raises ManifestError, also where two disagree.
    """
    found = [place for name in _NAME_FILES if files.is_file(place := files.join(folder, name))]
    if not found:
        below = relative_files(files, folder)[0]
        found = [files.join(folder, path) for path in below if name_of(path).lower() in _NAME_FILES]
    named = {place: names for place in found if (names := read_names_file(files, place, encoding)) is not None}
    if not named:
        raise ManifestError(f"{folder} names no classes: put a data.yaml or a classes.txt there, one name per line")
    (first, names), *others = named.items()
    for other, theirs in others:
        if theirs != names:
            number = next(number for number in sorted({*names, *theirs}) if names.get(number) != theirs.get(number))
            raise ManifestError(
                f"{first} and {other} name different classes: class {number} is {_called(names, number)} in one and "
                f"{_called(theirs, number)} in the other. Put the right one into {folder} and take the other out"
            )
    return [*named], names


def _other_names(files: Files, folder: str, data: YoloData, encoding: str) -> Iterator[str]:
    """What is doubtful about the names of the classes: further files of the folder that name others."""
    for name in files.list_folder(folder) if files.is_folder(folder) else ():
        uri = files.join(folder, name)
        is_yaml = name.lower().endswith(_YAML_SUFFIXES)
        if uri in data.manifests or not (is_yaml or name.lower() in _NAME_FILES):
            continue
        try:
            theirs = (
                read_yaml(files, uri, None, need_parts=False, encoding=encoding).names
                if is_yaml
                else read_names_file(files, uri, encoding)
            )
        except (ManifestError, ConfigError):
            continue  # no names
        if theirs and theirs != data.names:
            number = next(n for n in sorted({*data.names, *theirs}) if data.names.get(n) != theirs.get(n))
            yield (
                f"{uri} names other classes than {data.manifests[0]}, which counts: class {number} is "
                f"{_called(theirs, number)} there, and {_called(data.names, number)} here; take the wrong one out"
            )


def _called(names: Mapping[int, str], number: int) -> str:
    return repr(names[number]) if number in names else "not there"


def _parts_of_folder(files: Files, folder: str) -> tuple[tuple[str, str], ...]:
    """The folder images/ where all lie in it, else the folder itself."""
    images = files.join(folder, "images")
    return (("", images if files.is_folder(images) else folder),)


def _tree_of(files: Files, data: YoloData) -> str:
    """The folder that holds all images and label files; '' where a list names images, which may lie anywhere."""
    tops = []
    for _, place in data.parts:
        if not files.is_folder(place):
            return ""
        folders = place.rstrip("/").split("/")
        named = [at for at, name in enumerate(folders) if name.lower() in IMAGE_FOLDERS]
        tops.append("/".join(folders[: named[-1]]) if named else "/".join(folders))
    return posixpath.commonpath(tops) if "://" not in tops[0] else _common(tops)


def _common(uris: Sequence[str]) -> str:
    """The folder that uris with a scheme have in common."""
    scheme, _, _ = uris[0].partition("://")
    return f"{scheme}://" + posixpath.commonpath([uri.partition("://")[2] for uri in uris])


def _paths(files: Files, tree: str) -> list[str]:
    """All files below the tree, junk included."""
    start = len(with_slash(tree))
    return [info.uri[start:] for info in files.walk(tree)]


def _is_label(path: str) -> bool:
    name = name_of(path).lower()
    return name.endswith(".txt") and name not in _NAME_FILES and _NO_LABELS.fullmatch(name) is None


def _pictures(files: Files, source: Source) -> tuple[list[_Picture], int]:
    """The images in the order of the parts, each with its label file; and the pieces of junk among them."""
    tree, base = source.details["tree"], source.base
    if not tree:
        return [
            _Picture(split, _below(base, image), "")
            for split, place in source.details["parts"]
            for image in _images_of(files, place, base, source.details["encoding"])
        ], 0
    found: list[tuple[str, str]] = []
    junk = 0
    for split, place in source.details["parts"]:
        paths, ignored = relative_files(files, place)
        junk += ignored
        found.extend((split, files.join(place, path)) for path in paths if is_image_name(path))
    start = len(with_slash(tree))
    there = [path for path in _paths(files, tree) if junk_part(path) is None]
    if source.details["has_rule"]:
        spellings = Spellings({path: path for path in there})
        try:
            labels = {uri: spellings.find(label_path(uri)[start:]) for _, uri in found}
        except RowError as error:
            raise ManifestError(f"{source.uri}: the label file {error}") from None
        return [_Picture(split, _below(base, uri), _under(tree, labels.get(uri))) for split, uri in found], junk
    pairs = pair_files(there, _is_label, source.uri)
    known = frozenset(pairs.images)
    found = [(split, uri) for split, uri in found if uri[start:] in known]  # masks left out
    splits = find_splits([uri[start:] for _, uri in found], source.uri)
    return [
        _Picture(
            split or split_in(splits, uri[start:]), _below(base, uri), _under(tree, pairs.label_of.get(uri[start:]))
        )
        for split, uri in found
    ], junk


def _under(tree: str, path: str | None) -> str:
    return with_slash(tree) + path if path else ""


def _found(files: Files, source: Source, pictures: Sequence[_Picture]) -> Account:
    """What lies in the tree, by its listing alone. An image of two parts lies there once."""
    told = AccountBuilder()
    tree = source.details["tree"]
    told.find(IMAGES, len({picture.image for picture in pictures}) if tree else len(pictures))
    if tree:
        paths = _paths(files, tree)
        told.find(FILES, len(paths))
        images = {path[: max(path.rfind("/"), 0)] for path in paths if is_image_name(path) and junk_part(path) is None}
        labels = [path for path in paths if junk_part(path) is None and _is_label(path)]
        told.find(LABEL_FILES, sum(lies_among_labels(path, images) for path in labels))
    return told.account()


def _tell_tree(files: Files, source: Source, pictures: Sequence[_Picture], told: AccountBuilder) -> None:
    tree = source.details["tree"]
    start = len(with_slash(tree))
    label_of = {
        files.join(source.base, picture.image)[start:]: picture.labels[start:] for picture in pictures if picture.labels
    }
    images = {files.join(source.base, picture.image)[start:] for picture in pictures}
    manifests = {uri[start:] for uri in source.details["manifests"]}
    account_of_tree(told, _paths(files, tree), images, label_of, _is_label, manifests)


def _images_of(files: Files, place: str, base: str, encoding: str) -> list[str]:
    """The images of a folder or of a list."""
    if files.is_folder(place):
        return [files.join(place, path) for path in relative_files(files, place)[0] if is_image_name(path)]
    return _list_of_images(files, place, base, encoding)


def _list_of_images(files: Files, uri: str, base: str, encoding: str) -> list[str]:
    """The images of a list file: paths that begin with ./ start from its folder, other relative ones from the base."""
    lines = read_lines(files, uri, encoding)
    paths = list(_as_there(files, base, [path for line in lines if (path := line.strip())]))
    skipped = leading_folders(files, base, [path for path in paths if not path.startswith("./")])
    images = []
    for path in paths:
        if path.startswith("./"):
            images.append(files.join(parent(uri), path[2:]))
        else:
            images.append(files.join(base, "/".join(path.split("/")[skipped:]) if skipped else path))
    return images


def _as_there(files: Files, base: str, paths: Sequence[str]) -> Iterator[str]:
    """Paths with forward slashes, but for those of files whose names have backslashes in them."""
    listed: dict[str, frozenset[str]] = {}
    for path in paths:
        if "\\" in path:
            folder, _, name = files.join(base, path).rpartition("/")
            if folder not in listed:
                listed[folder] = frozenset(files.list_folder(folder) if files.is_folder(folder) else ())
            path = path if name in listed[folder] else path.replace("\\", "/")
        yield path


def _below(base: str, uri: str) -> str:
    """The path of a uri below a folder, or the uri itself when it lies elsewhere."""
    return uri.removeprefix(base.rstrip("/") + "/")
