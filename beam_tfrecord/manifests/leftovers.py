"""The files that lie where images lie: which were read, and why others were not, by their names and what they name."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from beam_tfrecord.core.account import (
    AS_IMAGE,
    AS_LABELS,
    AS_MANIFEST,
    FILES,
    JUNK,
    LIST_OF_SPLIT,
    LOOKS_LIKE_LABELS,
    NAMES_IMAGES,
    OWN_OUTPUT,
    UNNAMED_IMAGE,
    AccountBuilder,
)
from beam_tfrecord.manifests.filenames import ARCHIVE_SUFFIXES, is_archive_name, is_data_name, is_image_name, junk_part
from beam_tfrecord.manifests.siblings import label_path
from beam_tfrecord.manifests.split_names import is_split_word
from beam_tfrecord.manifests.text.spelling import plain_form
from beam_tfrecord.manifests.text.uri_text import name_of, with_slash

# Names that tools give to files of labels, whatever the images are called: darknet and LabelImg (classes.txt,
# obj.names), Roboflow (_annotations.coco.json, _classes.csv, data.yaml), the VGG Image Annotator (via_*.json), COCO
# (instances_*.json ...), Hugging Face (metadata.*), CVAT (annotations.xml, obj.data), Apple's Create ML, MOTChallenge
# (gt.txt).
_KNOWN = re.compile(
    r"(?:_?annotations?(?:\..*)?|_?classes|predefined_classes|obj|labels?(?:map|_map)?|ground_?truth|gt|metadata|"
    r"via_.*|_?createml|(?:instances|person_keypoints|captions|panoptic|stuff)_.*|data|dataset)"
    r"\.(?:txt|names|data|csv|tsv|json|jsonl|ndjson|xml|yaml|yml|pbtxt|parquet)",
    re.IGNORECASE,
)
# What is in the names that authors of datasets give to theirs: trainLabels.csv, imagelabels.mat, list_bbox_celeba.txt,
# image_class_labels.txt, bounding_boxes.txt, digitStruct.mat, train_test_split.txt, pairs_annot.npz.
_TELLING = re.compile(
    r"label|annot|bbox|bounding.?box|ground.?truth|categor|classes|caption|attribute|list_attr|landmark|keypoint|"
    r"digitstruct|split",
    re.IGNORECASE,
)
# What tools put around the name of the image in that of its label file: gt_img_1.txt and res_img_1.txt (ICDAR),
# x_annotations.json, x-labels.csv.
_PREFIX = re.compile(r"(?:gt|res|ann|anno|annotations?|labels?|bbox(?:es)?|poly)[_-](.+)", re.IGNORECASE)
_SUFFIX = re.compile(
    r"(.+)[_-](?:gt|ann|anno|annotations?|labels?|bbox(?:es)?|box(?:es)?|objects?|poly(?:gons?)?|keypoints|landmarks)",
    re.IGNORECASE,
)
_CHECKSUMS = re.compile(r"md5|sha\d|checksum|crc32", re.IGNORECASE)
MOST_NAMES = 20_000  # names of images that texts are held against
_MOST_TEXTS = 30  # files of a collection that are looked into
_MOST_OF_A_KIND = 3  # of them, of one ending in one folder
_TEXT_SUFFIXES = (
    *(".txt", ".csv", ".tsv", ".tab", ".json", ".jsonl", ".ndjson", ".xml", ".yaml", ".yml", ".lst", ".list", ".data"),
    *(".names", ".idl", ".manifest", ".meta", ".ini", ".toml"),
)
_FIELDS = re.compile(r"[\r\n\t,;|\"'<>\[\]{}=]+")
_WORDS = re.compile(r"[\s,;|\"'<>()\[\]{}=:]+")
_LABEL_SUFFIXES = (
    *(".txt", ".xml", ".json", ".csv", ".tsv", ".jsonl", ".ndjson", ".yaml", ".yml", ".mat", ".npy", ".parquet"),
)


def stem_of(path: str) -> str:
    """The name of a file without its folders and its ending, in the one form of all its spellings."""
    name = plain_form(name_of(path))
    return name.rpartition(".")[0] or name


def label_stems(path: str) -> set[str]:
    """What an image may be called, without its ending, whose labels a file holds by its own name."""
    stem = stem_of(path)
    stems = {stem}
    if is_image_name(stem):  # x.jpg.json
        stems.add(stem_of(stem))
    for around in (_PREFIX, _SUFFIX):
        stems.update(told[1] for told in map(around.fullmatch, [*stems]) if told is not None)
    return stems


def reason_unused(path: str, image_stems: Collection[str]) -> str:
    """Why nothing was made of a file that is no image.

    path: below the folder of the collection. image_stems: names of images without folders and endings.
    """
    if junk_part(path) is not None:
        return JUNK
    name = name_of(path).lower()
    if (name.endswith(_LABEL_SUFFIXES) or "." not in name) and any(stem in image_stems for stem in label_stems(path)):
        return LOOKS_LIKE_LABELS
    if _KNOWN.fullmatch(name) or (is_data_name(name) and _TELLING.search(name)):
        return LOOKS_LIKE_LABELS
    return f"other files{_ending(name)}"


def tell_unused(
    told: AccountBuilder,
    paths: Iterable[str],
    image_stems: Collection[str],
    images: Iterable[str],
    head_of: Callable[[str], bytes],
) -> None:
    """Name files of which nothing was made. Texts that name images of the collection are told as such.

    paths: sorted. image_stems: as in :func:`reason_unused`. images: paths of some. head_of: gives the first bytes of a
    file; it is asked for a few.
    """
    others: list[str] = []
    for path in paths:
        reason = reason_unused(path, image_stems)
        if reason.startswith("other"):
            others.append(path)
        else:
            told.name(FILES, reason, path)
    names = frozenset(map(name_of, images)) if others else frozenset()
    named = {path for path in _texts_to_try(others) if names and names_images(head_of(path), names)}
    for path in others:
        told.name(FILES, NAMES_IMAGES if path in named else reason_unused(path, ()), path)


def names_images(head: bytes, names: Collection[str]) -> bool:
    """Whether a text names at least two images of these, or the only one.

    names: with their endings, without folders. A name without its ending counts where it can hardly be another word:
    one of letters and digits, or a number with a zero in front or of six digits and more.
    """
    stems = {stem for stem in map(stem_of, names) if _is_telling(stem)}
    text = _text(head)
    found = set()
    for word in {*_FIELDS.split(text), *_WORDS.split(text)}:
        name = re.split(r"[/\\]", word.strip())[-1]
        stem = stem_of(name) if is_image_name(name) else name
        if name in names or stem in stems:
            found.add(stem)
            if len(found) >= min(2, len(names)):
                return True
    return False


def _is_telling(stem: str) -> bool:
    if stem.isdecimal():
        return len(stem) >= 6 or (len(stem) >= 4 and stem.startswith("0"))
    return any(map(str.isdigit, stem)) and len(stem) >= 4


def _text(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return head.decode("utf-16", "replace")
    return head.decode("utf-8-sig", "replace")  # what is no UTF-8 names no image that is asked for here


def _texts_to_try(paths: Iterable[str]) -> Iterator[str]:
    """A few of the texts, of each folder and ending."""
    counts: dict[tuple[str, str], int] = {}
    tried = 0
    for path in paths:
        lower = path.lower()
        if not lower.endswith(_TEXT_SUFFIXES) or _CHECKSUMS.search(name_of(lower)):
            continue
        kind = (lower[: lower.rfind("/") + 1], lower[lower.rfind(".") :])
        counts[kind] = counts.get(kind, 0) + 1
        if counts[kind] <= _MOST_OF_A_KIND:
            tried += 1
            yield path
        if tried == _MOST_TEXTS:
            return


def _ending(name: str) -> str:
    if is_archive_name(name):
        return " " + next(suffix for suffix in sorted(ARCHIVE_SUFFIXES, key=len, reverse=True) if name.endswith(suffix))
    stem, dot, ending = name.rpartition(".")
    return f" .{ending}" if dot and stem and len(ending) <= 10 else " without an ending"


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
            plain_form(path) in by_rule
            or (reads.label_suffix and path.startswith(label_folder) and path.lower().endswith(reads.label_suffix))
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
