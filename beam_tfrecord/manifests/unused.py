"""Why a file of a collection was not used: what its name tells of it."""

from __future__ import annotations

import re
from collections.abc import Collection

from beam_tfrecord.core.account import JUNK, LOOKS_LIKE_LABELS
from beam_tfrecord.manifests.filenames import ARCHIVE_SUFFIXES, is_archive_name, junk_part
from beam_tfrecord.manifests.text.spelling import plain_form
from beam_tfrecord.manifests.text.uri_text import name_of

# Names that tools give to files of labels, whatever the images are called: darknet and LabelImg (classes.txt,
# obj.names), Roboflow (_annotations.coco.json, _classes.csv, data.yaml), the VGG Image Annotator (via_*.json), COCO
# (instances_*.json ...), Hugging Face (metadata.*), CVAT (annotations.xml, obj.data), Apple's Create ML.
_KNOWN = re.compile(
    r"(?:_?annotations?(?:\..*)?|_?classes|predefined_classes|obj|labels?(?:map|_map)?|ground_?truth|metadata|"
    r"via_.*|_?createml|(?:instances|person_keypoints|captions|panoptic|stuff)_.*|data|dataset)"
    r"\.(?:txt|names|data|csv|tsv|json|jsonl|ndjson|xml|yaml|yml|pbtxt|parquet)",
    re.IGNORECASE,
)
_LABEL_SUFFIXES = (
    ".txt",
    ".xml",
    ".json",
    ".csv",
    ".tsv",
    ".jsonl",
    ".ndjson",
    ".yaml",
    ".yml",
    ".mat",
    ".npy",
    ".parquet",
)


def stem_of(path: str) -> str:
    """The name of a file without its folders and its ending, in the one form of all its spellings."""
    name = plain_form(name_of(path))
    return name.rpartition(".")[0] or name


def reason_unused(path: str, image_stems: Collection[str]) -> str:
    """Why nothing was made of a file that is no image.

    path: below the folder of the collection. image_stems: names of images without folders and endings.
    """
    if junk_part(path) is not None:
        return JUNK
    name = name_of(path).lower()
    if name.endswith(_LABEL_SUFFIXES) and stem_of(path) in image_stems:
        return LOOKS_LIKE_LABELS
    if _KNOWN.fullmatch(name):
        return LOOKS_LIKE_LABELS
    return f"other files{_ending(name)}"


def _ending(name: str) -> str:
    if is_archive_name(name):
        return " " + next(suffix for suffix in sorted(ARCHIVE_SUFFIXES, key=len, reverse=True) if name.endswith(suffix))
    stem, dot, ending = name.rpartition(".")
    return f" .{ending}" if dot and stem and len(ending) <= 10 else " without an ending"
