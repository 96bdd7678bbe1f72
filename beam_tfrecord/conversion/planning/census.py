"""What lies where a manifest's images lie: which of the files its rows name, and what the others are.

A manifest tells of images one by one; only a listing tells of those it does not name. The listing happens once, when
the dataset is planned, and ends where a folder holds much more than the manifest: that is no folder of this collection.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from beam_tfrecord.conversion.planning.survey import Hashes, HashSketch, file_hash
from beam_tfrecord.core.account import (
    AS_IMAGE,
    AS_LABELS,
    FILES,
    NO_ACCOUNT,
    UNNAMED_IMAGE,
    Account,
    AccountBuilder,
    Decision,
)
from beam_tfrecord.manifests.base import FileInfo, Source
from beam_tfrecord.manifests.filenames import is_image_name, junk_part
from beam_tfrecord.manifests.unused import own_outputs, reason_unused, stem_of

Walk = Callable[[str], Iterator[FileInfo]]
FILES_PER_IMAGE = 20  # a folder with more files than this for each image that is named, and SPARE more, is not listed
SPARE = 10_000


def take_census(
    source: Source, used: HashSketch, others: HashSketch, manifests: Collection[str], walk: Walk
) -> tuple[Account, tuple[Decision, ...]]:
    """The account of the files below ``source.census``; none, and a decision that says so, where they are too many.

    used, others: hashes of the files that the rows of this and of the other inputs name (by uri; those of rejected rows
    as the manifest spells them). manifests: uris of all inputs.
    """
    if not source.census:
        return NO_ACCOUNT, ()
    limit = FILES_PER_IMAGE * used.count + SPARE
    if used.hashes is None or others.hashes is None:
        return NO_ACCOUNT, (Decision("files beside the images", "not counted", f"{used.count:,} images are too many"),)
    folder = source.census.rstrip("/") + "/"
    files = list(itertools.islice(walk(source.census), limit + 1))
    if len(files) > limit:
        why = f"{source.census} holds more than {limit:,} files"
        return NO_ACCOUNT, (Decision("files beside the images", "not counted", why),)
    paths = [info.uri.removeprefix(folder) for info in files]
    below = f"{source.base.rstrip('/')}/" if source.base else ""
    hashes = [
        np.array([file_hash(text) for text in texts], np.uint64)
        for texts in ([info.uri for info in files], [info.uri.removeprefix(below) for info in files])
    ]
    own, elsewhere = (_any_of(hashes, sketch) for sketch in (used.hashes, others.hashes))
    stems = {stem_of(path) for path, named in zip(paths, own, strict=True) if named}
    label_suffix = source.details.get("label_suffix")
    told = AccountBuilder()
    told.find(FILES, len(files))
    outputs = own_outputs(paths)
    for path, info, is_own, is_others in zip(paths, files, own, elsewhere, strict=True):
        if is_own:
            told.use(FILES, AS_IMAGE)
        elif info.uri == source.uri:
            told.use(FILES, "manifest")
        elif label_suffix and path.lower().endswith(label_suffix) and junk_part(path) is None:
            told.use(FILES, AS_LABELS)
        elif is_others or info.uri in manifests:
            told.name(FILES, "of another input", path)
        elif path.startswith(outputs):
            told.name(FILES, "output of this tool", path)
        elif is_image_name(path) and junk_part(path) is None:
            told.name(FILES, UNNAMED_IMAGE, path)
        else:
            told.name(FILES, reason_unused(path, stems), path)
    return told.account(), ()


def _any_of(hashes: Sequence[Hashes], known: bytes) -> npt.NDArray[np.bool_]:
    """Whether each file is known, by either of its names."""
    array = np.unique(np.frombuffer(known, np.uint64))
    return np.isin(hashes[0], array) | np.isin(hashes[1], array)
