"""Masks that lie in a tree of images: in a folder of their own (``images/x.jpg``, ``masks/x.png``), or beside their
images as ``x_mask.png``.

A name alone makes no mask: ``hats/1.jpg`` and ``masks/1.jpg`` are two classes. The files of a folder are masks where it
is called like one of masks, or of labels, and at least half of them have an image of the same name where it would lie
if the folders of either kind were not there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from beam_tfrecord.manifests.filenames import is_image_name
from beam_tfrecord.manifests.layout import IMAGE_FOLDERS
from beam_tfrecord.manifests.siblings import LABEL_FOLDERS, without_suffix
from beam_tfrecord.manifests.split_names import is_split_folder
from beam_tfrecord.manifests.text.uri_text import name_of

SEMANTIC, INSTANCE = "mask", "instance_mask"  # the canonical fields
_MASK_FOLDERS = frozenset({"segmentationclass", "segmentationobject", "ground_truth", "groundtruth"})
_MASK_WORDS = frozenset(
    {
        *("mask", "masks", "seg", "segs", "segmentation", "segmentations", "semantic", "instance", "instances"),
        *("groundtruth", "gt", "gts", "trimap", "trimaps", "annot", "annots", "annotation", "annotations"),
        *("label", "labels"),
    }
)
_SPARE_WORDS = frozenset({"rgb", "color", "colour", "png", "ids", "class", "object"})  # of semantic_rgb, masks_png
_GLUED = re.compile(r"(train(?:ing)?|val(?:id(?:ation)?)?|test)(annots?|annotations?|masks?|gts?|labels?)")  # CamVid
_WORDS = re.compile(r"[_ .-]")
_OF_IMAGES = re.compile(r"(?P<rest>.+)[_ -](?:images?|imgs?)")
_MASK_STEM = re.compile(r"(?P<rest>.+)[_ -](?:masks?|seg|segmentation|gt|labels?|groundtruth)", re.IGNORECASE)
_INSTANCES = re.compile(r"instance|object", re.IGNORECASE)


@dataclass(frozen=True)
class Masks:
    """Masks of a tree, all as paths. of_image: masks by canonical field, by image. alone: those of no image. further:
    those of an image that has one already.
    """

    of_image: Mapping[str, Mapping[str, str]]
    alone: frozenset[str] = frozenset()
    further: frozenset[str] = frozenset()

    @property
    def paths(self) -> frozenset[str]:
        """All of them."""
        return self.alone | self.further | {path for own in self.of_image.values() for path in own.values()}

    @property
    def fields(self) -> tuple[str, ...]:
        """The canonical fields that any image has a mask for."""
        return tuple(sorted({field for own in self.of_image.values() for field in own}))


NO_MASKS = Masks({})


def is_mask_place(folders: Sequence[str]) -> bool:
    """Whether one of the folders above an image is called as those of masks are."""
    return any(map(_is_mask_folder, folders))


def is_mask_stem(path: str) -> bool:
    """Whether an image is called as a mask beside its image is."""
    if "_" not in path and "-" not in path and " " not in path:
        return False
    return _MASK_STEM.fullmatch(without_suffix(name_of(path))) is not None


def can_hold_only_masks(folder: str) -> bool:
    """Whether the name of a folder says that it holds masks, and could hardly be that of a class.

    ``masks`` and ``mask`` can: faces with and without.
    """
    words = _words(folder)
    told = [word for word in words if word in _MASK_WORDS]
    rest = [word for word in words if word not in _MASK_WORDS | _SPARE_WORDS and not is_split_folder(word)]
    return folder.lower() in _MASK_FOLDERS or (bool(told) and not rest and words not in (["mask"], ["masks"]))


def find_masks(paths: Sequence[str]) -> Masks:
    """The masks among the files of a tree. paths: sorted, junk left out."""
    images = [path for path in paths if is_image_name(path)]
    above = _shared_folders(images)  # Kvasir-SEG/images and Kvasir-SEG/masks
    in_folders: dict[str, list[str]] = {}
    by_key: dict[str, list[str]] = {}
    by_stem: dict[str, list[str]] = {}
    by_name: dict[str, list[str]] = {}  # the key without folders of splits
    for path in images:
        folder = path[: max(path.rfind("/"), 0)]
        if is_mask_place(folder.split("/")[above:]):
            in_folders.setdefault(folder, []).append(path)
        else:
            by_key.setdefault(_key(path), []).append(path)
            by_stem.setdefault(without_suffix(path), []).append(path)
            by_name.setdefault(_without_splits(_key(path)), []).append(path)

    def owners_of(mask: str) -> list[str]:
        keys = (_key(mask), _key(mask, is_mask=True))
        found = next((by_key[key] for key in keys if key in by_key), [])
        if not found:  # ground_truth/broken/000_mask.png of test/broken/000.png (MVTec)
            found = next((by_name[key] for key in map(_without_splits, keys) if len(by_name.get(key, ())) == 1), [])
        return found

    owners: dict[str, list[str]] = {}
    for group in in_folders.values():
        found = {path: owners_of(path) for path in group}
        if 2 * sum(map(bool, found.values())) >= len(group):
            owners.update(found)
    for path in images:  # a folder of classes may hold the mask of each image
        told = _MASK_STEM.fullmatch(without_suffix(path))
        if path not in owners and told is not None and told["rest"] in by_stem:
            owners[path] = by_stem[told["rest"]]
    return _sorted_out({path: [own for own in images if own not in owners] for path, images in owners.items()})


def _shared_folders(paths: Sequence[str]) -> int:
    """How many folders all of some paths begin with."""
    if not paths:
        return 0
    first, last = (path.split("/")[:-1] for path in (min(paths), max(paths)))
    return next(
        (place for place, (one, other) in enumerate(zip(first, last, strict=False)) if one != other),
        min(len(first), len(last)),
    )


def _sorted_out(owners: Mapping[str, Sequence[str]]) -> Masks:
    of_image: dict[str, dict[str, str]] = {}
    further = set()
    for path, images in owners.items():
        field = INSTANCE if _INSTANCES.search(path[: max(path.rfind("/"), 0)]) else SEMANTIC
        for image in images:
            if of_image.setdefault(image, {}).setdefault(field, path) != path:
                further.add(path)
    return Masks(of_image, frozenset(path for path, images in owners.items() if not images), frozenset(further))


def _words(folder: str) -> list[str]:
    lower = folder.lower()
    glued = _GLUED.fullmatch(lower)
    return list(glued.groups()) if glued else [word for word in _WORDS.split(lower) if word]


def _is_mask_folder(name: str) -> bool:
    lower = name.lower()
    if lower in _MASK_FOLDERS or lower in LABEL_FOLDERS:
        return True
    words = _words(name)
    return bool(words) and (words[0] in _MASK_WORDS or words[-1] in _MASK_WORDS)


def _without_splits(key: str) -> str:
    *folders, name = key.split("/")
    return "/".join([*(folder for folder in folders if not is_split_folder(folder)), name])


def _key(path: str, is_mask: bool = False) -> str:
    """What an image and its mask have in common."""
    *folders, name = path.split("/")
    stem = without_suffix(name)
    told = _MASK_STEM.fullmatch(stem) if is_mask else None
    return "/".join([*filter(None, map(_bare, folders)), told["rest"] if told else stem])


def _bare(folder: str) -> str:
    """What the name of a folder says beside that images or masks lie in it."""
    lower = folder.lower()
    if lower in IMAGE_FOLDERS or lower in LABEL_FOLDERS or lower in _MASK_FOLDERS:
        return ""
    if _is_mask_folder(folder):
        return "_".join(word for word in _words(folder) if word not in _MASK_WORDS | _SPARE_WORDS)
    told = _OF_IMAGES.fullmatch(lower)
    return told["rest"] if told else folder
