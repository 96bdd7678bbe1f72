"""Folders of images, the class (and the split) being the name of a folder. See :mod:`.layout` for what is understood.

Every file is a row, whatever its name: what is no image is told when it is read. Left out are junk (:mod:`.filenames`)
and texts, tables and documents that lie where no images are expected; both are counted as ignored. A folder of images
without class folders and with one manifest that names them is read by that manifest.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from beam_tfrecord.core.account import AS_IMAGE, AS_MASK, FILES, JUNK, OF_NO_IMAGE, AccountBuilder, Decision
from beam_tfrecord.core.elements import Row
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.base import LISTED, Files, Ignored, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.filenames import TABLE_SUFFIXES, JunkCounter, is_archive_name, is_data_name, junk_part
from beam_tfrecord.manifests.formats.folder_manifests import check_names_all, find_manifest, find_own_tables
from beam_tfrecord.manifests.layout import Folder, Layout, find_layout
from beam_tfrecord.manifests.leftovers import MOST_NAMES, label_stems, stem_of, tell_unused
from beam_tfrecord.manifests.mask_files import (
    NO_MASKS,
    Masks,
    can_hold_only_masks,
    find_masks,
    is_mask_place,
    is_mask_stem,
)
from beam_tfrecord.manifests.registry import FORMATS, has_suffix, head_if_any, read_head
from beam_tfrecord.manifests.siblings import LABEL_FOLDERS
from beam_tfrecord.manifests.split_names import is_split_word
from beam_tfrecord.manifests.text.compression import readable
from beam_tfrecord.manifests.text.row_fields import rejected
from beam_tfrecord.manifests.text.uri_text import has_glob, name_of, with_slash, without_slash
from beam_tfrecord.options.config import ManifestConfig

_DOCUMENT_SUFFIXES = (".json", ".xml", "_bbx_gt.txt", "_annotations.txt", ".manifest")
_MANIFEST_SUFFIXES = (*TABLE_SUFFIXES, *_DOCUMENT_SUFFIXES)
_MOST_MANIFESTS = 20  # of a folder, that are looked into
_MOST_IN_FOLDER = 10  # of the files of one ending that may hold the labels of an image; others lie in other folders
_MOST_LABELS = 60
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
        if seen.archives and len(seen.archives) == sum(seen.images.values()):
            raise ManifestError(_only_archives(uri, seen.archives))
        masks = _masks_in(files, uri) if seen.may_have_masks else NO_MASKS
        if masks.paths:
            seen = seen._replace(images=_counts_without(files, uri, masks))
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
        documents = [path for path in seen.manifests if has_suffix(path.lower(), _DOCUMENT_SUFFIXES)]
        found = _manifest(files, uri, seen, documents, split, config)
        if found is not None and _leads(found):
            return found
        # The names of several folders are labels; that of a single one may be anything.
        has_labels = layout is not None and (layout.class_count(seen.images) > 1 or config.label_pattern is not None)
        if (layout is None or has_labels) and config.label_pattern is None and config.format == "auto":
            own_tables = seen.own_tables()
            found = find_own_tables(files, uri, own_tables, split, config) if own_tables else None
            if found is not None:
                return found
        if layout is not None and has_labels:
            return self._source(uri, split, layout, seen, masks, surprises)
        found = _manifest(files, uri, seen, seen.manifests, split, config)
        if found is not None and unclear is not None:
            spare = {with_slash(uri) + path for path in masks.paths}
            check_names_all(files, found, config, sum(seen.images.values()) + len(spare), spare, unclear)
        if found is not None:
            return found
        if layout is None:
            raise unclear or ManifestError(_no_images(uri, seen.manifests))
        return self._source(uri, split, layout, seen, masks, surprises)

    def _source(
        self,
        uri: str,
        split: str | None,
        layout: Layout,
        seen: _Seen,
        masks: Masks,
        surprises: tuple[tuple[str, str], ...],
    ) -> Source:
        only_data = sorted("/".join(folder) for folder in seen.data - seen.images.keys() if layout.fits(folder))
        told = AccountBuilder()
        told.find(FILES, seen.num_files)
        decided = [Decision("layout", str(layout), "the folders of the images and their names")]
        if layout.has_splits and split is None:
            decided.append(Decision("split", "the name of a folder", "each of these folders is called like a split"))
        if masks.fields:
            value = ", ".join(
                f"{field} {min(own[field] for own in masks.of_image.values() if field in own)} ..."
                for field in masks.fields
            )
            decided.append(
                Decision("masks", value, "they are called like images, in folders called like those of masks")
            )
        if masks.further:
            told_more = f"{len(masks.further):,} masks of images that have one already (such as {min(masks.further)})"
            surprises = (*surprises, ("labels_not_read", f"{told_more}: not read; --mask_column of a table names one"))
        surprises = (*surprises, *_masks_for_classes(seen.images, layout))
        details = {
            LISTED: True,
            "layout": layout.to_details(),
            "found": str(layout),
            "only_data": only_data,
            "has_data": bool(seen.data),
            "mask_fields": list(masks.fields),
            "has_masks": bool(masks.paths),
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
        mask_fields = details["mask_fields"]
        place: _Place | None = None
        with readable(uri):
            masks = _masks_in(files, uri) if details["has_masks"] else NO_MASKS
            mask_paths = masks.paths
            data_stems = _data_stems(files, uri) if details["has_data"] else frozenset()
            image_stems: set[str] = set()  # of those names only that a text has as well
            images: list[str] = []  # some of them
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
                if path in mask_paths:
                    if path in masks.alone:
                        told.name(FILES, f"mask that {OF_NO_IMAGE}", path)
                    elif path in masks.further:
                        told.name(FILES, "further mask of an image", path)
                    else:
                        told.use(FILES, AS_MASK)
                    continue
                if (not place.holds_rows and is_data_name(path)) or _is_label_name(path):
                    junk.add(path)
                    unused.append(path)
                    continue
                rows += 1
                if data_stems:
                    if (stem := stem_of(path)) in data_stems:
                        image_stems.add(stem)
                    if len(images) < MOST_NAMES:
                        images.append(path)
                if place.fault:
                    yield rejected(info.uri, "bad_row", place.fault, path)
                else:
                    fields = {"image": path, **place.fields}
                    if mask_fields:
                        own = masks.of_image.get(path, {})
                        for field in mask_fields:
                            fields[field] = with_slash(uri) + own[field] if field in own else ""
                    yield Row(info.uri, fields)
        told.use(FILES, AS_IMAGE, rows)
        tell_unused(told, unused, image_stems, images, lambda path: head_if_any(files, with_slash(uri) + path))
        yield told.account()
        if len(junk):
            yield Ignored(len(junk))


def _paths_in(files: Files, uri: str) -> list[str]:
    """The files below a folder, without junk."""
    start = len(with_slash(uri))
    paths = (info.uri[start:] for info in files.walk(uri))
    return [path for path in paths if junk_part(path) is None]


def _is_no_image(path: str) -> bool:
    return is_data_name(path) or _is_label_name(path)


def _is_label_name(path: str) -> bool:
    """Whether a file without an ending lies in a folder of labels, as the annotations of Stanford Dogs do."""
    if "." in path[path.rfind("/") + 1 :]:
        return False
    return any(folder.lower() in LABEL_FOLDERS for folder in path.split("/")[:-1])


def _masks_in(files: Files, uri: str) -> Masks:
    return find_masks(_paths_in(files, uri))


def _counts_without(files: Files, uri: str, masks: Masks) -> dict[Folder, int]:
    """The number of images by folder, without masks."""
    counts: dict[Folder, int] = {}
    mask_paths = masks.paths
    for path in _paths_in(files, uri):
        if path not in mask_paths and not _is_no_image(path):
            folder = tuple(path.split("/")[:-1])
            counts[folder] = counts.get(folder, 0) + 1
    return counts


def _data_stems(files: Files, uri: str) -> frozenset[str]:
    """What images may be called, without ending, whose labels the texts and the like below a folder hold."""
    start = len(with_slash(uri))
    paths = (info.uri[start:] for info in files.walk(uri))
    texts = (path for path in paths if _is_no_image(path) and junk_part(path) is None)
    return frozenset(stem for path in texts for stem in label_stems(path))


class _Seen(NamedTuple):
    """What lies in a folder.

    images: number of images by the folders they lie in. data: folders that texts and the like lie in. manifests: the
    first files that may be some, by relative path. num_files: all files, whatever they are. label_files: the first
    files that may hold the labels of one image, by ending. tables: those of a folder, two at the most.
    may_have_masks: images lie there that are called so. archives: those among the images that are called like archives.
    """

    images: dict[Folder, int]
    data: set[Folder]
    manifests: list[str]
    num_files: int
    label_files: dict[str, list[str]]
    tables: dict[Folder, list[str]]
    may_have_masks: bool = False
    archives: Sequence[str] = ()

    def own_tables(self) -> list[str]:
        """The tables of the folders of images where each has exactly one, and there are several; else none."""
        is_each = len(self.images) > 1 and self.images.keys() == self.tables.keys()
        tables = [path for own in self.tables.values() for path in own]
        return tables if is_each and len(tables) == len(self.images) else []


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


def _masks_for_classes(images: Iterable[Folder], layout: Layout) -> Iterator[tuple[str, str]]:
    """What is surprising about classes whose folders are called as those of masks are, but whose images pair with no
    other by name."""
    if layout.has_classes:
        names = sorted({layout.place(folder)[1] for folder in images if layout.fits(folder)})
        for name in filter(can_hold_only_masks, names):
            yield (
                "labels_not_read",
                f"{name} is called like a folder of masks, but its images are called like no others: taken as a class; "
                f"call masks like their images, or name them in a table (--mask_column)",
            )


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _look(files: Files, uri: str) -> _Seen:
    images: dict[Folder, int] = {}
    data: set[Folder] = set()
    manifests: dict[bool, list[str]] = {}  # by whether they are documents, of which each image may have one
    label_files: dict[str, list[str]] = {suffix: [] for suffix in _LABEL_SUFFIXES}
    tables: dict[Folder, list[str]] = {}
    may_have_masks = is_of_masks = False
    archives: list[str] = []
    count = 0
    start = len(with_slash(uri))
    last: str | None = None
    folder: Folder = ()
    here: Counter[str] = Counter()
    with readable(uri):
        for info in files.walk(uri):
            path = info.uri[start:]
            count += 1
            if junk_part(path) is not None:
                continue
            above = path[: path.rfind("/") + 1]
            if above != last:
                last, folder = above, tuple(above.split("/")[:-1])
                here.clear()
                is_of_masks = is_mask_place(folder)
            if not _is_no_image(path):
                may_have_masks = may_have_masks or is_of_masks or is_mask_stem(path)
                images[folder] = images.get(folder, 0) + 1
                if is_archive_name(path):
                    archives.append(path)
                continue
            data.add(folder)
            kind = next((one for one in _MANIFEST_SUFFIXES if has_suffix(path.lower(), (one,))), "")
            is_document = kind in _DOCUMENT_SUFFIXES
            if kind and len(manifests.setdefault(is_document, [])) < _MOST_MANIFESTS:
                manifests[is_document].append(path)
            if kind in TABLE_SUFFIXES and len(tables.setdefault(folder, [])) < 2:
                tables[folder].append(path)
            suffix = path[path.rfind(".") :].lower()
            here[suffix] += 1
            if suffix in label_files and here[suffix] <= _MOST_IN_FOLDER and len(label_files[suffix]) < _MOST_LABELS:
                label_files[suffix].append(path)
    candidates = sorted(path for paths in manifests.values() for path in paths)
    return _Seen(images, data, candidates, count, label_files, tables, may_have_masks, archives)


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
        told = f"{paths[0]} holds labels of the format {manifest.name}, which are those of no image of the folder"
        return None, (("labels_not_read", f"{told}: name the images like their label files"),)
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


def _manifest(
    files: Files, uri: str, seen: _Seen, paths: list[str], split: str | None, config: ManifestConfig
) -> Source | None:
    """The source of the manifests of the folder, when it holds images or none are looked for."""
    if config.format != "auto":
        return None
    return find_manifest(files, uri, paths, {"/".join(folder) for folder in seen.images}, split, config)


def _leads(source: Source) -> bool:
    """Whether the manifest, or any one of several, is of a format that tells more than the names of folders."""
    formats = [part["format"] for part in source.details.get("parts", ())] or [source.format]
    return any(FORMATS[name].leads for name in formats)


def _only_archives(uri: str, paths: Sequence[str]) -> str:
    """What to say of a folder whose only images would be archives."""
    globs = []
    for folder in sorted({path.rpartition("/")[0] for path in paths}):
        endings = {path[path.rfind(".") :] for path in paths if path.rpartition("/")[0] == folder}
        split = f"{name_of(folder)}=" if is_split_word(name_of(folder)) else ""
        place = with_slash(with_slash(uri) + folder if folder else uri)
        globs.append(f"--input '{split}{place}*{min(endings) if len(endings) == 1 else ''}'")
    more = f" and so on for {len(globs) - 3} more folders" if len(globs) > 3 else ""
    return (
        f"{uri} holds no images, but {len(paths):,} archives (such as {paths[0]}): give them as "
        f"{' '.join(globs[:3])}{more}"
    )


def _no_images(uri: str, manifests: list[str]) -> str:
    if not manifests:
        return f"{uri} holds no images"
    suffix = name_of(manifests[0]).rpartition(".")[2]
    pattern = f"; to read all of them: --input '{uri}/*.{suffix}'" if len(manifests) > 1 and not has_glob(uri) else ""
    return f"{uri} holds no images, but {', '.join(manifests[:3])}: give that as --input{pattern}"
