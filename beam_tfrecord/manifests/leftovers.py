"""The files that lie where the images of a manifest lie: which were read, and what the others are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from beam_tfrecord.core.account import (
    AS_IMAGE,
    AS_LABELS,
    AS_MANIFEST,
    FILES,
    LIST_OF_SPLIT,
    OWN_OUTPUT,
    UNNAMED_IMAGE,
    AccountBuilder,
)
from beam_tfrecord.manifests.filenames import is_image_name, junk_part
from beam_tfrecord.manifests.siblings import label_path
from beam_tfrecord.manifests.split_names import is_split_word
from beam_tfrecord.manifests.text.spelling import plain_form
from beam_tfrecord.manifests.text.uri_text import name_of, with_slash
from beam_tfrecord.manifests.unused import reason_unused, stem_of

READS = "reads"  # where the details of a source have what a format reads beside its rows


@dataclass(frozen=True)
class Reads:
    """The files that a format reads beside the images.

    manifests: uris of those that are read as a whole. label_folder, label_suffix: all files of this ending below this
    folder are label files. beside_images: label files lie where YOLO tools look for those of the images.
    """

    manifests: Sequence[str] = ()
    label_folder: str = ""
    label_suffix: str = ""
    beside_images: bool = False

    def to_details(self) -> dict[str, Any]:
        """As plain values, for :attr:`~beam_tfrecord.manifests.base.Source.details`."""
        return {READS: asdict(self)}

    @classmethod
    def of(cls, details: Mapping[str, Any], uri: str) -> Reads:
        """What the details of a source say; by default that it is one manifest."""
        return cls(**details[READS]) if READS in details else cls((uri,))


def tell_files(
    told: AccountBuilder,
    folder: str,
    paths: Sequence[str],
    used: Mapping[str, str],
    others: Collection[str],
    reads: Reads,
    left_out: Sequence[str] = (),
    *,
    is_input: bool = False,
) -> None:
    """Tell what became of the files below a folder.

    folder: its uri; '' for the working folder. paths: all of them, junk included. used: those that rows name, and as
    what. others: those that rows of other inputs name, and their manifests. left_out: uris of the folders that this
    tool wrote. is_input: the folder itself was given, and no file in it.
    """
    start = with_slash(folder) if folder else ""
    manifests = {uri.removeprefix(start) for uri in reads.manifests}
    label_folder = with_slash(reads.label_folder).removeprefix(start) if reads.label_suffix else ""
    by_rule = (
        {plain_form(label_path(path)) for path, use in used.items() if use == AS_IMAGE}
        if reads.beside_images
        else frozenset()
    )
    stems = {stem_of(path) for path in used}
    outputs = tuple(with_slash(uri).removeprefix(start) for uri in left_out)
    told.find(FILES, len(paths))
    for path in paths:
        is_junk = junk_part(path) is not None
        if path in used:
            told.use(FILES, used[path])
        elif path in manifests:
            told.use(FILES, AS_MANIFEST)
        elif not is_junk and (
            plain_form(path) in by_rule or (reads.label_suffix and _is_below(path, label_folder, reads.label_suffix))
        ):
            told.use(FILES, AS_LABELS)
        elif path in others:
            told.name(FILES, "of another input", path)
        elif path.startswith(outputs):
            told.name(FILES, OWN_OUTPUT, path)
        elif is_image_name(path) and not is_junk:
            told.name(FILES, UNNAMED_IMAGE, path)
        else:
            reason = reason_unused(path, stems)
            is_list = is_input and reason.startswith("other") and _is_list(path)
            told.name(FILES, LIST_OF_SPLIT if is_list else reason, path)


def _is_list(path: str) -> bool:
    """Whether a file is called like a list of the images of a split, and is none of another task of a VOC folder."""
    stem, _, ending = name_of(path).lower().rpartition(".")
    return is_split_word(stem) and ending in ("txt", "lst") and "ImageSets/" not in path


def _is_below(path: str, folder: str, suffix: str) -> bool:
    return path.startswith(folder) and path.lower().endswith(suffix)
