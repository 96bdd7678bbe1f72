"""What the folders of a collection mean: which of them are splits and which are classes.

Understood are, also inside of one more folder that holds everything::

    x.jpg                    images without labels
    class/x.jpg              one folder per class
    class/images/x.jpg       the same, each class with a folder called images (image, imgs, img, JPEGImages)
    split/x.jpg, split/class/x.jpg, split/images/x.jpg, split/class/images/x.jpg
                             one folder per split (train, val, test ...) with one of the above in it

Everything has to be of one layout; a mixture is an error that shows what was found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from beam_tfrecord.errors import ManifestError
from beam_tfrecord.manifests.split_names import is_split_folder

EXPECTED = "class/x.jpg or split/class/x.jpg (or just x.jpg, for images without labels)"
IMAGE_FOLDERS = frozenset({"images", "image", "imgs", "img", "jpegimages", "image_2", "leftimg8bit"})
# Words in the name of an only folder that make it no class.
_NO_CLASSES = frozenset({"image", "images", "img", "imgs", "jpg", "jpgs", "jpeg", "jpegs", "png", "input", "inputs"})
Folder = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The meaning of each folder on the way to an image.

    above: number of folders that mean nothing, before everything else. has_splits: the next one is the split. below:
    number of folders between split and class that mean nothing. has_classes: the next one is the class. depth: how many
    folders there are in all; -1 for any number.
    """

    above: int
    has_splits: bool
    below: int
    has_classes: bool
    depth: int

    def fits(self, folders: Sequence[str]) -> bool:
        """Whether images in these folders are where the layout expects them."""
        if self.depth < 0:
            return len(folders) >= self.above + self.has_splits + self.below
        return len(folders) == self.depth

    def class_count(self, counts: Iterable[Folder]) -> int:
        """Number of classes in these folders."""
        return len({self.place(folder)[1] for folder in counts}) if self.has_classes else 0

    def place(self, folders: Sequence[str]) -> tuple[str, str]:
        """(split, class) of an image in these folders, each empty when the layout has none."""
        split = folders[self.above].lower() if self.has_splits else ""
        at = self.above + self.has_splits + self.below
        return split, folders[at] if self.has_classes else ""

    def __str__(self) -> str:
        parts = ["folder"] * self.above + ["split"] * self.has_splits + ["images"] * self.below
        parts += ["class"] * self.has_classes
        return "/".join(parts + ["images"] * (self.depth - len(parts)) + ["image"])

    def to_details(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def find_layout(counts: Mapping[Folder, int], where: str, labels_needed: bool = True) -> Layout:
    """The layout of a collection.

    counts: number of images by the folders that they lie in, outermost first. labels_needed: False when labels come
    from elsewhere, so that any depth will do. Raises ManifestError for a mixture, or for folders that are too deep.
    """
    folders = list(counts)
    above = _shared(folders)
    folders = [folder[above:] for folder in folders]
    if len(set(folders)) == 1 and folders[0] and _says_nothing(folders[0][0]):
        above, folders = above + 1, [folder[1:] for folder in folders]
    has_splits = all(folder and is_split_folder(folder[0]) for folder in folders)
    if has_splits:
        folders = [folder[1:] for folder in folders]
    below = int(has_splits and all(folder and folder[0].lower() in IMAGE_FOLDERS for folder in folders))
    folders = [folder[below:] for folder in folders]
    depths = {len(folder) for folder in folders}
    before = above + has_splits + below
    if not labels_needed:
        return Layout(above, has_splits, below, False, -1)
    if depths == {0}:
        return Layout(above, has_splits, below, False, before)
    if depths == {1}:
        return Layout(above, has_splits, below, True, before + 1)
    if depths == {2} and all(folder[1].lower() in IMAGE_FOLDERS for folder in folders):
        return Layout(above, has_splits, below, True, before + 2)
    raise ManifestError(_unclear(counts, where))


def _says_nothing(folder: str) -> bool:
    """Whether the only folder is called as those of just any images are: ``images``, ``jpg``, ``img_align_celeba``."""
    lower = folder.lower()
    return lower in IMAGE_FOLDERS or any(word in _NO_CLASSES for word in re.split(r"[\W_\d]+", lower))


def _shared(folders: Sequence[Folder]) -> int:
    """How many outer folders hold everything and mean nothing: all images lie at least one folder deeper."""
    shared = 0
    while all(len(folder) > shared + 1 for folder in folders) and len({folder[shared] for folder in folders}) == 1:
        if is_split_folder(folders[0][shared]):
            break
        shared += 1
    return shared


def _unclear(counts: Mapping[Folder, int], where: str) -> str:
    """Message for folders that make no layout: how many images lie how deep, each with an example."""
    by_depth: dict[int, list[Folder]] = {}
    for folder in sorted(counts):
        by_depth.setdefault(len(folder), []).append(folder)
    found = "; ".join(
        f"{sum(counts[folder] for folder in folders)} images in {_shown(folders)}"
        for _, folders in sorted(by_depth.items())
    )
    cure = "move the images so that all lie equally deep"
    if len(by_depth) > 1:
        cure += ", or convert the parts one by one with several --input (train=DIR --input validation=DIR2)"
    else:
        cure += ", name an inner folder as --input, or take the labels from the paths with --label_pattern"
    return f"{where}: the folders make no layout that is understood. Found: {found}. Expected: {EXPECTED}; {cure}"


def _shown(folders: Sequence[Folder]) -> str:
    names = ["/".join((*folder, "*")) for folder in folders[:3]]
    more = f" and {len(folders) - 3} more folders" if len(folders) > 3 else ""
    return ", ".join(names) + more
