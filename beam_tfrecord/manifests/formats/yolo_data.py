"""What describes a YOLO dataset: a yaml with class names, places of images and form of keypoints, or darknet's files.

Darknet (https://github.com/AlexeyAB/darknet) reads ``obj.data`` and lists of images.
``obj.data`` has lines ``key = value``; ``names`` is a file of class names, ``train``, ``valid`` and ``test`` are lists
of images. CVAT's "YOLO 1.1" writes the paths with ``data/`` in front, where darknet expects the folder to be put:
leading folders that are not there are taken off, for a list as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.errors import ConfigError, ManifestError, RowError
from beam_tfrecord.manifests.base import Files
from beam_tfrecord.manifests.siblings import parent
from beam_tfrecord.manifests.split_names import is_split_folder
from beam_tfrecord.manifests.text.json_text import Members, decode_json
from beam_tfrecord.manifests.text.lines import read_lines, read_text
from beam_tfrecord.manifests.text.uri_text import name_of
from beam_tfrecord.manifests.text.yaml_text import load_yaml
from beam_tfrecord.options.values import AUTO_ENCODING

MAX_BYTES = 2**20
NOTES = "notes.json"  # of Label Studio (label_studio_sdk 2.1, converter: the file beside its classes.txt)
_NOTHING = ("", "~", "null")  # how YAML spells that there is none
# Keys of a yaml by what they are called afterwards; Ultralytics reads ``validation`` as ``val``, too (data/utils.py).
_SPLITS = {"train": "train", "val": "val", "validation": "val", "valid": "val", "test": "test"}


@dataclass(frozen=True)
class YoloData:
    """What is known of a dataset.

    root: folder that relative paths start from. names: by class id. parts: (split, folder or list of images).
    points, values: number of keypoints of each object, and of values of each (2: x, y; 3: visibility too). has_rule:
    the label files lie where YOLO tools look for them, nowhere else. manifests: the files that said all this. doubts:
    what a person should know of them. lost_root: the ``path`` of the yaml, where it is not there.
    """

    root: str
    names: Mapping[int, str]
    parts: tuple[tuple[str, str], ...]
    points: int = 0
    values: int = 0
    point_names: tuple[str, ...] = ()
    has_rule: bool = True
    manifests: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    lost_root: str = ""


def find_yaml(files: Files, folder: str, encoding: str = AUTO_ENCODING) -> str:
    """The yaml of a dataset in its folder: data.yaml, else the only one that has names; '' when there is none.

    Raises ConfigError when several could be meant.
    """
    names = [name for name in files.list_folder(folder) if name.lower().endswith((".yaml", ".yml"))]
    if "data.yaml" in names:
        names = ["data.yaml"]
    found = [uri for name in names if _has_names(files, uri := files.join(folder, name), encoding)]
    if len(found) > 1:
        raise ConfigError(
            f"{folder} has several yaml files with names: give one of them as --input, such as {found[0]}"
        )
    return found[0] if found else ""


def _has_names(files: Files, uri: str, encoding: str) -> bool:
    """Whether it has them. A data.yaml that cannot be read has: it must not go unnoticed."""
    try:
        return "names" in _load(files, uri, encoding)
    except ManifestError:
        return name_of(uri) == "data.yaml"


def _load(files: Files, uri: str, encoding: str = AUTO_ENCODING) -> Mapping[str, Any]:
    """The yaml with all its scalars as texts, which is what names are."""
    try:
        value = load_yaml(read_text(files, uri, encoding, MAX_BYTES))
    except ValueError as error:
        raise ManifestError(f"{uri} is no valid YAML: {error}") from None
    if not isinstance(value, Mapping):
        raise ManifestError(f"{uri} describes no dataset: it is no mapping with names, train and val")
    return value


def read_yaml(
    files: Files, uri: str, root: str | None = None, *, need_parts: bool = True, encoding: str = AUTO_ENCODING
) -> YoloData:
    """What a yaml says. root: overrides its ``path``. Raises ManifestError for what is missing or wrong."""
    value = _load(files, uri, encoding)
    names = parse_names(value.get("names"), uri)
    check_count(value.get("nc", ""), names, f"{uri}: nc")
    if root is None:
        root = _root(files, uri, value.get("path"))
    parts = []
    given = {key: _places(value[key], f"{uri}: {key}") for key in _SPLITS if key in value}
    several = [key for key, places in given.items() if places and _SPLITS[key] == "val"]
    if len(several) > 1:
        raise ManifestError(f"{uri} has {' and '.join(several)}, which are one split: keep one of them")
    for key, places in given.items():
        parts += [(_SPLITS[key], _place(files, root, place, f"{uri}: {key}")) for place in places]
    if need_parts and not parts:
        raise ManifestError(f"{uri} names no images: it has neither train nor val nor test")
    points, values = _keypoint_shape(value.get("kpt_shape"), uri)
    stated = value.get("kpt_names")
    point_names = _point_names(stated, points)
    doubts: tuple[str, ...] = ()
    others = [key for key in value if key not in _SPLITS and is_split_folder(key)]
    if others:
        doubts = (f"{uri}: {', '.join(others)} is not read: call it train, val or test where it names images",)
    if points and stated and not point_names:
        doubts = (
            *doubts,
            f"{uri}: kpt_names does not have {points} names, as kpt_shape says, that are the same for all classes: the "
            f"keypoints are without names",
        )
    path = value.get("path", "")
    if not isinstance(path, str):
        raise ManifestError(f"{uri}: path is {path!r}, not a folder")
    is_lost = path.lower() not in _NOTHING and not files.is_folder(files.join(parent(uri), _without_dots(path) or "."))
    return YoloData(
        root, names, tuple(parts), points, values, point_names, doubts=doubts, lost_root=path if is_lost else ""
    )


def check_count(stated: Any, names: Mapping[int, str], told: str) -> None:
    """Raise ManifestError where a file states another number of classes than has names. told: what states it."""
    if stated not in _NOTHING and stated != str(len(names)):
        raise ManifestError(f"{told} is {stated}, but there are {len(names)} names: correct one of them")


def _places(given: Any, told: str) -> list[str]:
    """The folders and lists of images that a yaml names for a split. Raises ManifestError."""
    places = [given] if isinstance(given, str) else [] if given is None else given
    if not isinstance(places, list | tuple) or not all(isinstance(place, str) for place in places):
        raise ManifestError(f"{told} is {given!r}, not a folder, a list of images, or several of them")
    return [place for place in places if place.lower() not in _NOTHING]


def _root(files: Files, uri: str, path: Any) -> str:
    """The folder of the yaml, or ``path`` below it; one that is not there is of another machine, which is told."""
    folder = parent(uri)
    if isinstance(path, str) and path.lower() not in _NOTHING:
        below = _without_dots(path)
        stated = files.join(folder, below) if below else folder
        if files.is_folder(stated):
            return stated
    return folder


def _without_dots(path: str) -> str:
    """A path without parts that lead nowhere: ``.`` and empty ones, but for the first of an absolute path."""
    if "://" in path:
        return path
    first, *parts = path.replace("\\", "/").split("/")
    kept = [part for part in parts if part not in (".", "")]
    return "/".join(([] if first == "." else [first]) + kept)


def _place(files: Files, root: str, path: str, told: str) -> str:
    """Where the images of a split are. ``../train/images`` may be meant from the root, as Roboflow writes it."""
    path = _without_dots(path)
    tried = [files.join(root, path)]
    if path.startswith("../"):
        tried.append(files.join(root, path.removeprefix("../")))
    for place in tried:
        place = place.rstrip("/") or place
        if files.is_folder(place) or files.is_file(place):
            return place
    raise ManifestError(f"{told} is {tried[-1]}, which does not exist: correct the line, or take it out")


def parse_names(value: Any, uri: str) -> dict[int, str]:
    """Class names by id, from a list or a mapping of a yaml. Raises ManifestError."""
    pairs: Sequence[tuple[Any, Any]]
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = list(enumerate(value))
    else:
        raise ManifestError(f"{uri} needs names: a list of the classes, or a mapping of ids to names")
    wrong = next((pair for pair in pairs if not _is_id_and_name(*pair)), None)
    if wrong is not None:
        raise ManifestError(f"{uri}: {wrong[0]!r}: {wrong[1]!r} is no class id and name")
    return _checked_names([(int(number), name) for number, name in pairs], uri)


def _is_id_and_name(number: Any, name: Any) -> bool:
    text = str(number)
    return isinstance(name, str) and bool(name.strip()) and text.isdecimal() and text.isascii() and len(text) < 10


def _checked_names(pairs: Sequence[tuple[int, str]], uri: str) -> dict[int, str]:
    names: dict[int, str] = {}
    id_of: dict[str, int] = {}
    for number, name in pairs:
        text = name.strip()
        if text in id_of:
            raise ManifestError(f"{uri}: the classes {id_of[text]} and {number} are both called {text!r}: rename one")
        if number in names:
            raise ManifestError(f"{uri}: the class {number} is called {names[number]!r} and {text!r}: take one out")
        names[number] = text
        id_of[text] = number
    return names


def read_names_file(files: Files, uri: str, encoding: str = AUTO_ENCODING) -> dict[int, str] | None:
    """Class names, one per line. The first line is id 0; a blank line is an id without a name, and moves no other.

    The notes of Label Studio have them as ``categories`` with ``id`` and ``name``; None for notes of something else.
    Raises ManifestError.
    """
    if name_of(uri) == NOTES:
        return _names_of_notes(files, uri, encoding)
    lines = read_lines(files, uri, encoding)
    return _checked_names([(number, line) for number, line in enumerate(lines) if line.strip()], uri)


def _names_of_notes(files: Files, uri: str, encoding: str) -> dict[int, str] | None:
    try:
        notes = decode_json(read_text(files, uri, encoding, MAX_BYTES)) if files.size(uri) <= MAX_BYTES else None
    except ValueError:  # notes of somebody: they are told as a file that is not read
        return None
    if not isinstance(notes, Mapping) or "categories" not in notes:
        return None
    try:
        categories = Members(notes, "").objects("categories") or []
        pairs = [(category.whole("id"), category.name("name")) for category in categories]
    except RowError as error:
        raise ManifestError(f"{uri}: {error.message}") from None
    wrong = next((place for place, (number, name) in enumerate(pairs) if number is None or not name), None)
    if wrong is not None:
        raise ManifestError(f"{uri}: categories[{wrong}] needs an id and a name")
    return _checked_names([(number, name) for number, name in pairs if number is not None], uri)


def _keypoint_shape(value: Any, uri: str) -> tuple[int, int]:
    if value is None or (isinstance(value, str) and value.lower() in _NOTHING):
        return 0, 0
    numbers = value if isinstance(value, list) else []
    if len(numbers) == 2 and all(isinstance(number, str) and re.fullmatch(r"[0-9]{1,4}", number) for number in numbers):
        points, values = map(int, numbers)
        if points >= 1 and values in (2, 3):
            return points, values
    raise ManifestError(f"{uri}: kpt_shape is {value!r}, not [number of keypoints, 2 or 3]")


def _point_names(value: Any, points: int) -> tuple[str, ...]:
    """Names of the keypoints, when there is one for each, also in a mapping of classes to names that are the same."""
    if isinstance(value, Mapping):
        first, *others = [*value.values()] or [None]
        value = first if all(other == first for other in others) else None
    if isinstance(value, list) and len(value) == points and all(isinstance(name, str) for name in value):
        return tuple(value)
    return ()


_PARTS = ("train", "valid", "val", "test")
_TRIED = 5  # images of a list, to find how its paths are meant
_MOST_OF_DATA = 2**16


def find_data_file(files: Files, folder: str) -> str:
    """The ``.data`` file of a folder that names classes; '' when there is none. Raises ConfigError for several."""
    uris = [files.join(folder, name) for name in files.list_folder(folder) if name.lower().endswith(".data")]
    found = [uri for uri in uris if "names" in _values(files, uri)]
    if len(found) > 1:
        raise ConfigError(f"{folder} has several .data files with names: give one as --input, such as {found[0]}")
    return found[0] if found else ""


def read_data_file(files: Files, uri: str) -> tuple[str, dict[str, str], str]:
    """(uri of the file of names, uri of the list of images by split, the number of classes that is stated or '').

    Raises ManifestError for a file that is missing.
    """
    values = _values(files, uri)
    if "names" not in values:
        raise ManifestError(f"{uri} names no classes: it needs a line such as names = obj.names")
    found = {}
    for key in ("names", *_PARTS):
        if values.get(key):
            place = _resolved(files, parent(uri), values[key])
            if place is None:
                raise ManifestError(
                    f"{uri}: {key} is {values[key]}, which does not exist: correct the line, or take it out"
                )
            found[key] = place
    names = found.pop("names")
    return names, found, values.get("classes", "")


def _values(files: Files, uri: str) -> dict[str, str]:
    with files.open(uri) as stream:
        text = stream.read(_MOST_OF_DATA).decode("utf-8-sig", "surrogateescape")
    pairs = (line.partition("=") for line in text.splitlines() if not line.lstrip().startswith("#"))
    return {key.strip(): value.strip() for key, mark, value in pairs if mark}


def _resolved(files: Files, folder: str, path: str) -> str | None:
    """The file that a path means: as it stands, or without leading folders that are not there."""
    parts = path.replace("\\", "/").split("/")
    for start in range(len(parts)):
        place = files.join(folder, "/".join(parts[start:]))
        if files.is_file(place):
            return place
    return None


def leading_folders(files: Files, base: str, paths: list[str]) -> int:
    """How many leading folders the paths of a list have that are not there: 0 when any is right as it stands."""
    tried = [path for path in paths[:_TRIED] if not path.startswith("/") and "://" not in path]
    depth = max((path.count("/") for path in tried), default=0)
    for count in range(depth + 1):
        if any(_exists(files, base, path, count) for path in tried):
            return count
    return 0


def _exists(files: Files, base: str, path: str, count: int) -> bool:
    parts = path.split("/")[count:]
    return bool(parts) and files.is_file(files.join(base, "/".join(parts)))
