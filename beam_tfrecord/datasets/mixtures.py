"""Which split a folder of records tells, and whether files of records are of one dataset, by their paths only.

Sources: TFX writes ``Split-train/data_tfrecord-00000-of-00001.gz`` (tfx/types/artifact_utils.py); TensorFlow Datasets
writes ``name/1.0.0/name-train.tfrecord-00000-of-00008``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from beam_tfrecord.core.splits import SPLIT_FOLDERS

_NUMBERED = re.compile(r"(?P<start>.*)-\d{5,}-of-(?P<count>\d{5,})(?P<end>.*)", re.DOTALL)
_TFX = "Split-"
_TFDS = re.compile(r"(?P<dataset>.+)-(?P<split>[^-.]+)\..*", re.DOTALL)


def split_of_folder(name: str) -> str:
    """The split that the name of a folder tells (``Split-eval``, ``Train``), or ''."""
    if name.startswith(_TFX):
        return name.removeprefix(_TFX)
    return name.lower() if name.lower() in SPLIT_FOLDERS else ""


def mixtures(paths: Iterable[str], described: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """(path, cause) of files that cannot be of the same dataset as others, the first of each kind.

    paths: below the folder that was given. described: folders, '' for that one, that hold metadata of a dataset.
    """
    counts: dict[tuple[str, str], dict[str, str]] = {}
    folders: dict[tuple[str, str, str], dict[str, str]] = {}
    datasets: dict[tuple[str, str], dict[str, str]] = {}
    for path in sorted(paths):
        folder, _, name = path.rpartition("/")
        numbered = _NUMBERED.fullmatch(name)
        if numbered is None:
            continue
        start, count, end = numbered["start"], numbered["count"], numbered["end"]
        counts.setdefault((f"{folder}/{start}", end), {}).setdefault(count, path)
        root, split = without_split_folder(folder)
        folders.setdefault((start, end, split), {}).setdefault(root, path)
        told = _TFDS.fullmatch(start + end)
        if told is not None and told["split"] in SPLIT_FOLDERS:
            datasets.setdefault((folder, told["split"]), {}).setdefault(told["dataset"], path)
    how = "give the files of one, with a glob or by their folder"
    for groups, what in (
        (counts, "are of two sets of shards"),
        (datasets, "are of two datasets, by their names"),
        (folders, "are of two datasets or versions, by their folders"),
    ):
        for own in groups.values():
            if len(own) > 1:
                first, second = list(own.values())[:2]
                yield second, f"this file and {first} {what}: {how}"
                break
    roots = sorted(set(described))
    if len(roots) > 1:
        yield roots[1], f"this folder and {roots[0] or 'the one that was given'} hold a dataset each: {how}"


def without_split_folder(folder: str) -> tuple[str, str]:
    """(folder above, split) of the path of a folder of one split, else (folder, '')."""
    above, _, name = folder.rpartition("/")
    split = split_of_folder(name)
    return (above, split) if split else (folder, "")
