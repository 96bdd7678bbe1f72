"""Trees of images with a label file for each: which belongs to which, and what is left over.

A label file lies beside its image (``a/x.jpg``, ``a/x.xml``), or where the image would lie if folders called like those
of images and of labels were not there: ``images/train/x.jpg`` and ``labels/train/x.txt``, ``train/images/x.jpg`` and
``train/annotations/x.xml``, ``x.jpg`` and ``labels/x.txt``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from beam_tfrecord.core.account import (
    AS_IMAGE,
    AS_LABELS,
    AS_MANIFEST,
    FILES,
    IMAGES,
    JUNK,
    LABEL_FILES,
    OF_NO_IMAGE,
    UNNAMED_IMAGE,
    WITH_LABEL_FILE,
    WITHOUT_LABEL_FILE,
    AccountBuilder,
)
from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.filenames import is_image_name, junk_part
from beam_tfrecord.manifests.layout import Layout, find_layout
from beam_tfrecord.manifests.leftovers import reason_unused, stem_of
from beam_tfrecord.manifests.mask_files import find_masks
from beam_tfrecord.manifests.siblings import LABEL_FOLDERS, key_of, without_suffix
from beam_tfrecord.manifests.text.spelling import plain_form


def lies_among_labels(path: str, image_folders: Collection[str]) -> bool:
    """Whether a file lies where label files do: beside images, or below a folder that is called like their folders."""
    folder = path[: max(path.rfind("/"), 0)]
    return folder in image_folders or any(part.lower() in LABEL_FOLDERS for part in folder.split("/"))


@dataclass(frozen=True)
class Pairs:
    """Images below a folder, the label file of each that has one, and label files of no image. All sorted paths."""

    images: tuple[str, ...]
    label_of: Mapping[str, str]
    orphans: tuple[str, ...]


def pair_files(paths: Iterable[str], is_label: Callable[[str], bool], where: str) -> Pairs:
    """Images and label files of a tree, paired.

    paths: below the folder, junk left out, sorted. is_label: whether the name is that of a label file. Raises
    ManifestError where two files could be the labels of one image.
    """
    paths = list(paths)
    masks = find_masks(paths).paths
    images = [path for path in paths if is_image_name(path) and path not in masks]
    folders = {path[: max(path.rfind("/"), 0)] for path in images}
    labels = [path for path in paths if is_label(path) and lies_among_labels(path, folders)]
    beside = {without_suffix(path): path for path in labels}
    by_key: dict[str, list[str]] = {}
    for path in labels:
        by_key.setdefault(key_of(path), []).append(path)
    label_of: dict[str, str] = {}
    for image in images:
        own = beside.get(without_suffix(image))
        if own is None:
            found = by_key.get(key_of(image), [])
            if len(found) > 1:
                raise ManifestError(
                    f"{where}: {found[0]} and {found[1]} could both be the labels of {image}: move one of them away"
                )
            own = found[0] if found else None
        if own is not None:
            label_of[image] = own
    _pair_other_spellings(images, by_key, label_of, where)
    taken = set(label_of.values())
    return Pairs(tuple(images), label_of, tuple(path for path in labels if path not in taken))


def _pair_other_spellings(
    images: Sequence[str], by_key: Mapping[str, Sequence[str]], label_of: dict[str, str], where: str
) -> None:
    """Pair images and label files that are left over and whose names are spelled in different forms of Unicode, as
    where they come from different machines. by_key: the label files. label_of: is added to.
    """
    taken = set(label_of.values())
    left = {key: [path for path in paths if path not in taken] for key, paths in by_key.items() if not key.isascii()}
    by_form: dict[str, list[str]] = {}
    for key, paths in left.items():
        by_form.setdefault(plain_form(key), []).extend(paths)
    for image in images if by_form else ():
        found = by_form.get(plain_form(key_of(image)), []) if image not in label_of else []
        if len(found) > 1:
            raise ManifestError(
                f"{where}: {found[0]!a} and {found[1]!a} could both be the labels of {image}: move one of them away"
            )
        if found:
            label_of[image] = found[0]


def find_splits(images: Sequence[str], where: str) -> Layout | None:
    """The layout of the folders of images where it tells splits: each image lies in a folder called like one."""
    counts: dict[tuple[str, ...], int] = {}
    for path in images:
        folders = tuple(path.split("/")[:-1])
        counts[folders] = counts.get(folders, 0) + 1
    layout = find_layout(counts, where, labels_needed=False) if counts else None
    return layout if layout is not None and layout.has_splits else None


def split_in(layout: Layout | None, path: str) -> str:
    """The split that the folders of an image tell; '' for none."""
    folders = path.split("/")[:-1]
    return layout.place(folders)[0] if layout is not None and len(folders) > layout.above else ""


def account_of_tree(
    told: AccountBuilder,
    paths: Iterable[str],
    images: Collection[str],
    label_of: Mapping[str, str],
    is_label: Callable[[str], bool],
    manifests: Collection[str],
) -> None:
    """Tell what became of each file of a tree.

    paths: all files below the folder, junk included. images: those that rows are made of. label_of: the label file of
    each image that has one. manifests: files that were read as a whole (names of classes, lists).
    """
    read = set(label_of.values())
    stems = {stem_of(image) for image in images}
    folders = {path[: max(path.rfind("/"), 0)] for path in images}
    for path in paths:
        if junk_part(path) is not None:
            told.name(FILES, JUNK, path)
        elif path in images:
            told.use(FILES, AS_IMAGE)
        elif path in read:
            told.use(FILES, AS_LABELS)
        elif path in manifests:
            told.use(FILES, AS_MANIFEST)
        elif is_image_name(path):
            told.name(FILES, UNNAMED_IMAGE, path)
        elif is_label(path) and lies_among_labels(path, folders):
            told.name(FILES, f"label file that {OF_NO_IMAGE}", path)
            told.name(LABEL_FILES, OF_NO_IMAGE, path)
        else:
            told.name(FILES, reason_unused(path, stems), path)
    told.use(IMAGES, WITH_LABEL_FILE, sum(image in label_of for image in images))
    told.use(IMAGES, WITHOUT_LABEL_FILE, sum(image not in label_of for image in images))
