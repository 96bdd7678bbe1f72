"""How splits are spelled, and what they are called afterwards.

The rule: a value of a column stays as it is spelled, except that the names which TFRecorder and AutoML tables write in
capitals (``TRAIN``, ``TRAINING``, ``VALIDATION``, ``VALIDATE``, ``TEST``) become ``train``, ``validation``, ``test``,
and ``UNASSIGNED`` means no split. In a column called ``ml_use`` this holds in any case of letters. A folder that is one
of :data:`SPLIT_FOLDERS`, perhaps with a number, gives its name in lower case. Nothing else is translated: ``val`` stays
``val``.
"""

from __future__ import annotations

import re

from beam_tfrecord.core.splits import SPLIT_FOLDERS

_NUMBERED = re.compile(r"[_-]?\d+$")
_ML_USE = {
    "TRAIN": "train",
    "TRAINING": "train",
    "VALIDATION": "validation",
    "VALIDATE": "validation",
    "TEST": "test",
    "UNASSIGNED": "",
}


def split_of_cell(text: str, is_ml_use: bool = False) -> str:
    """The name of the split that a cell means; empty for none."""
    text = text.strip()
    return _ML_USE.get(text.upper() if is_ml_use else text, text)


def is_split_word(text: str) -> bool:
    """Whether a text is one of the usual names of splits, in any case of letters."""
    text = text.strip()
    return text.upper() in _ML_USE or text.lower() in SPLIT_FOLDERS


def is_split_folder(name: str) -> bool:
    """Whether a folder is called as those that hold one split: ``train``, and ``train2017`` or ``test1``."""
    return _NUMBERED.sub("", name.lower()) in SPLIT_FOLDERS


def split_above(path: str) -> str:
    """The first folder of a path that is called like a split, in lower case; '' where none is."""
    return next((folder.lower() for folder in path.split("/")[:-1] if is_split_folder(folder)), "")


SHARD = re.compile(r"(?:(?P<split>[\w.-]+?)-)?(?P<number>\d{5})-of-(?P<count>\d{5})(?:-[0-9a-f]+)?\.parquet")
SPLIT_OF_NAME = "\0split"  # the column of the splits that names of shards tell


def split_of_shard(name: str) -> str:
    """The split that the name of a file tells; '' for none."""
    found = SHARD.fullmatch(name)
    return (found["split"] or "") if found is not None else ""
