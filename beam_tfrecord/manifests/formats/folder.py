"""Folders of images, the class (and the split) being the name of a folder. See :mod:`.layout` for what is understood.

Every file is a row, whatever its name: what is no image is told when it is read. Left out are junk (:mod:`.filenames`)
and texts, tables and documents that lie where no images are expected; both are counted as ignored. A folder of images
without class folders and with one manifest that names them is read by that manifest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from beam_tfrecord.core.account import AS_IMAGE, FILES, JUNK, AccountBuilder, Decision
from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import AmbiguousManifestError, ConfigError, ManifestError
from beam_tfrecord.manifests.base import Files, Ignored, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.filenames import TABLE_SUFFIXES, JunkCounter, is_data_name, junk_part
from beam_tfrecord.manifests.layout import Folder, Layout, find_layout
from beam_tfrecord.manifests.registry import FORMATS, detect_format, has_suffix, read_head
from beam_tfrecord.manifests.text.compression import readable
from beam_tfrecord.manifests.text.row_fields import rejected
from beam_tfrecord.manifests.text.uri_text import has_glob, name_of, scheme_of, with_slash, without_slash
from beam_tfrecord.manifests.unused import reason_unused, stem_of
from beam_tfrecord.options.config import ManifestConfig

_MANIFEST_SUFFIXES = (*TABLE_SUFFIXES, ".json")
_MOST_MANIFESTS = 20  # of a folder, that are looked into
_ROWS_TRIED = 5
_LABEL_SUFFIXES = (".xml", ".json", ".txt")


class FolderFormat(ManifestFormat):
    """A folder of images. It is walked once to learn its layout, and once for its rows; neither keeps the names."""

    name = "folder"
    counts_files = True

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        uri = without_slash(uri)
        if not files.is_folder(uri):
            raise ManifestError(f"{uri} " + ("is a file, not a folder" if files.is_file(uri) else "does not exist"))
        seen = _look(files, uri)
        layout: Layout | None = None
        unclear: ManifestError | None = None
        if seen.images:
            try:
                layout = find_layout(seen.images, uri, labels_needed=config.label_pattern is None)
            except ManifestError as error:
                unclear = error
        found, surprises = _labels_beside(files, uri, seen, split, config)
        if found is not None:
            return found
        # The names of several folders are labels; that of a single one may be anything.
        if layout is not None and (layout.class_count(seen.images) > 1 or config.label_pattern is not None):
            return self._source(uri, split, layout, seen, surprises)
        found = _manifest(files, uri, seen.manifests, split, config)
        if found is not None and unclear is not None:
            _check_names_all(files, found, config, seen, unclear)
        if found is not None:
            return found
        if layout is None:
            raise unclear or ManifestError(_no_images(uri, seen.manifests))
        return self._source(uri, split, layout, seen, surprises)

    def _source(
        self, uri: str, split: str | None, layout: Layout, seen: _Seen, surprises: tuple[tuple[str, str], ...]
    ) -> Source:
        only_data = sorted("/".join(folder) for folder in seen.data - seen.images.keys() if layout.fits(folder))
        told = AccountBuilder()
        told.find(FILES, seen.num_files)
        decided = [Decision("layout", str(layout), "the folders of the images and their names")]
        if layout.has_splits and split is None:
            decided.append(Decision("split", "the name of a folder", "each of these folders is called like a split"))
        details = {
            "layout": layout.to_details(),
            "found": str(layout),
            "only_data": only_data,
            "has_data": bool(seen.data),
        }
        return Source(
            uri,
            self.name,
            split,
            uri,
            details=details,
            account=told.account(),
            decisions=tuple(decided),
            surprises=surprises,
        )

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        uri, details = piece.source.uri, piece.source.details
        layout, only_data = Layout(**details["layout"]), frozenset(details["only_data"])
        start = len(with_slash(uri))
        junk, told = JunkCounter(), AccountBuilder()
        rows = 0
        place: _Place | None = None
        with readable(uri):
            data_stems = _data_stems(files, uri) if details["has_data"] else frozenset()
            image_stems: set[str] = set()  # of those names only that a text has as well
            unused: list[str] = []
            for info in files.walk(uri):
                path = info.uri[start:]
                part = junk_part(path)
                if part is not None:
                    junk.add(part)
                    told.name(FILES, JUNK, path)
                    continue
                folder = path[: max(path.rfind("/"), 0)]
                if place is None or place.folder != folder:
                    place = _place_of(folder, layout, only_data)
                if not place.holds_rows and is_data_name(path):
                    junk.add(path)
                    unused.append(path)
                    continue
                rows += 1
                if data_stems and (stem := stem_of(path)) in data_stems:
                    image_stems.add(stem)
                if place.fault:
                    yield rejected(info.uri, "bad_row", place.fault, path)
                else:
                    yield Row(info.uri, {"image": path, **place.fields})
        told.use(FILES, AS_IMAGE, rows)
        for path in unused:
            told.name(FILES, reason_unused(path, image_stems), path)
        yield told.account()
        if len(junk):
            yield Ignored(len(junk))


def _data_stems(files: Files, uri: str) -> frozenset[str]:
    """Names, without ending, of the texts and the like below a folder."""
    start = len(with_slash(uri))
    paths = (info.uri[start:] for info in files.walk(uri))
    return frozenset(stem_of(path) for path in paths if is_data_name(path) and junk_part(path) is None)


class _Seen(NamedTuple):
    """What lies in a folder.

    images: number of images by the folders they lie in. data: folders that texts and the like lie in. manifests: the
    first files that may be some, by relative path. num_files: all files, whatever they are. label_files: the first
    files that may hold the labels of one image, by ending.
    """

    images: dict[Folder, int]
    data: set[Folder]
    manifests: list[str]
    num_files: int
    label_files: dict[str, list[str]]


class _Place(NamedTuple):
    """What is common to the files of one folder.

    fields: split and label of its images. fault: why it can have none. holds_rows: texts in it are rows as well,
    because they lie among the images of a class.
    """

    folder: str
    fields: Mapping[str, str]
    fault: str
    holds_rows: bool


def _place_of(folder: str, layout: Layout, only_data: frozenset[str]) -> _Place:
    folders = tuple(folder.split("/")) if folder else ()
    if not layout.fits(folders):
        return _Place(folder, {}, f"it lies elsewhere than the other images (which are {layout})", False)
    split, label = layout.place(folders)
    fields = {name: value for name, value in (("label", label), ("split", split)) if value}
    fault = ""
    if not _is_text(label):
        fault = f"the name of the class folder {label!r} is not valid UTF-8: rename it"
    return _Place(folder, fields, fault, layout.has_classes and folder not in only_data)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _look(files: Files, uri: str) -> _Seen:
    images: dict[Folder, int] = {}
    data: set[Folder] = set()
    manifests: list[str] = []
    label_files: dict[str, list[str]] = {suffix: [] for suffix in _LABEL_SUFFIXES}
    count = 0
    start = len(with_slash(uri))
    last: str | None = None
    folder: Folder = ()
    with readable(uri):
        for info in files.walk(uri):
            path = info.uri[start:]
            count += 1
            if junk_part(path) is not None:
                continue
            above = path[: path.rfind("/") + 1]
            if above != last:
                last, folder = above, tuple(above.split("/")[:-1])
            if not is_data_name(path):
                images[folder] = images.get(folder, 0) + 1
                continue
            data.add(folder)
            if len(manifests) < _MOST_MANIFESTS and has_suffix(path.lower(), _MANIFEST_SUFFIXES):
                manifests.append(path)
            suffix = path[path.rfind(".") :].lower()
            if suffix in label_files and len(label_files[suffix]) < _MOST_MANIFESTS:
                label_files[suffix].append(path)
    return _Seen(images, data, manifests, count, label_files)


def _labels_beside(
    files: Files, uri: str, seen: _Seen, split: str | None, config: ManifestConfig
) -> tuple[Source | None, tuple[tuple[str, str], ...]]:
    """The source of the format whose label files lie among the images, or what is surprising where none is read."""
    if config.format != "auto":
        return None, ()
    for suffix, paths in seen.label_files.items():
        manifest = _format_of(files, uri, suffix, paths)
        if manifest is None:
            continue
        try:
            source = manifest.describe(files, uri, split, config)
        except ManifestError as error:
            if not seen.images:  # then nothing else is there to be read
                raise
            told = f"{paths[0]} holds labels of the format {manifest.name}, which were not read: {error}"
            return None, (("labels_not_read", told),)
        if source.details.get("paired"):
            decided = Decision("labels", f"{suffix} files beside the images", f"the content of {paths[0]}")
            return dataclasses.replace(source, decisions=(decided, *source.decisions)), ()
    return None, ()


def _format_of(files: Files, uri: str, suffix: str, paths: list[str]) -> ManifestFormat | None:
    """The format whose labels one of these files holds."""
    candidates = [manifest for manifest in FORMATS.values() if suffix in manifest.beside]
    for path in paths if candidates else ():
        head = read_head(files, with_slash(uri) + path)
        for manifest in candidates:
            if manifest.annotates(head):
                return manifest
    return None


def _manifest(files: Files, folder: str, paths: list[str], split: str | None, config: ManifestConfig) -> Source | None:
    """The source of the only file at the top that names images of this folder; None when there is none.

    Raises ManifestError when there are several.
    """
    if config.format != "auto" or not paths or len(paths) == _MOST_MANIFESTS:
        return None
    depth = min(path.count("/") for path in paths)
    sources = {}
    for path in paths:
        if path.count("/") == depth:
            source = _try_manifest(files, with_slash(folder) + path, split, config)
            if source is not None:
                sources[path] = source
    if len(sources) > 1:
        raise ManifestError(
            f"{folder} holds several manifests of its images ({', '.join(sources)}): give each as an --input of its "
            f"own, such as --input train={with_slash(folder)}{next(iter(sources))}, or --format folder to use none"
        )
    for path, source in sources.items():
        return dataclasses.replace(
            source, details={**source.details, "found": f"manifest {path} in the folder {folder}"}
        )
    return None


def _check_names_all(files: Files, source: Source, config: ManifestConfig, seen: _Seen, unclear: ManifestError) -> None:
    """Where the folders make no layout, a manifest stands for the collection only if it names every image of it."""
    total = sum(seen.images.values())
    named: set[str] = set()
    for item in FORMATS[source.format].rows(files, Piece(source), config):
        if not isinstance(item, Row):
            continue
        for place in ("image", "mask", "instance_mask"):
            if item.fields.get(place):
                with suppress(ValueError):  # of join, for a path that leads out of a bucket
                    named.add(files.join(source.base, item.fields[place]))
    if len(named) < total:
        raise ManifestError(
            f"{unclear}. There is a manifest as well, {source.uri}, which names {len(named):,} of the {total:,} "
            f"images: give it as --input to convert just these"
        )


def _try_manifest(files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source | None:
    """The source of a manifest when one of its first rows names an image that is there."""
    try:
        manifest = FORMATS[detect_format(files, uri)]
        source = manifest.describe(files, uri, split, config)
        for item in islice(manifest.rows(files, Piece(source), config), _ROWS_TRIED):
            image = item.fields.get("image") if isinstance(item, Row) else None
            if image and (scheme_of(image) or files.is_file(files.join(source.base, image))):
                return source
    except AmbiguousManifestError:
        raise
    except (ManifestError, ConfigError, ValueError):  # of join, for a path that leads out of a bucket
        return None
    return None


def _no_images(uri: str, manifests: list[str]) -> str:
    if not manifests:
        return f"{uri} holds no images"
    suffix = name_of(manifests[0]).rpartition(".")[2]
    pattern = f"; to read all of them: --input '{uri}/*.{suffix}'" if len(manifests) > 1 and not has_glob(uri) else ""
    return f"{uri} holds no images, but {', '.join(manifests[:3])}: give that as --input{pattern}"
