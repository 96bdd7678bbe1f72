"""The yaml that describes a YOLO dataset: class names, where the images of each split are, form of keypoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.errors import ConfigError, ManifestError
from beam_tfrecord.manifests.base import Files
from beam_tfrecord.manifests.siblings import parent

MAX_BYTES = 2**20
_SPLITS = ("train", "val", "test")


@dataclass(frozen=True)
class YoloData:
    """What is known of a dataset.

    root: folder that relative paths start from. names: by class id. parts: (split, folder or list of images).
    points, values: number of keypoints of each object, and of values of each (2: x, y; 3: visibility too).
    """

    root: str
    names: Mapping[int, str]
    parts: tuple[tuple[str, str], ...]
    points: int = 0
    values: int = 0
    point_names: tuple[str, ...] = ()


def find_yaml(files: Files, folder: str) -> str:
    """The yaml of a dataset in its folder: data.yaml, else the only one that has names; '' when there is none.

    Raises ConfigError when several could be meant.
    """
    names = [name for name in files.list_folder(folder) if name.lower().endswith((".yaml", ".yml"))]
    if "data.yaml" in names:
        names = ["data.yaml"]
    found = [uri for name in names if _has_names(files, uri := files.join(folder, name))]
    if len(found) > 1:
        raise ConfigError(
            f"{folder} has several yaml files with names: give one of them as --input, such as {found[0]}"
        )
    return found[0] if found else ""


def _has_names(files: Files, uri: str) -> bool:
    try:
        return "names" in _load(files, uri)
    except ManifestError:
        return False


def _load(files: Files, uri: str) -> Mapping[str, Any]:
    try:
        import yaml
    except ImportError:
        raise ConfigError("YOLO datasets are described in YAML: pip install pyyaml") from None
    with files.open(uri) as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ManifestError(f"{uri} has more than {MAX_BYTES} bytes: it describes no dataset")
    try:
        value = yaml.safe_load(data)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestError(f"{uri} is no valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(value, Mapping):
        raise ManifestError(f"{uri} describes no dataset: it is no mapping with names, train and val")
    return value


def read_yaml(files: Files, uri: str, root: str | None = None, *, need_parts: bool = True) -> YoloData:
    """What a yaml says. root: overrides its ``path``. Raises ManifestError for what is missing or wrong."""
    value = _load(files, uri)
    names = parse_names(value.get("names"), uri)
    if root is None:
        root = _root(files, uri, value.get("path"))
    parts = []
    for split in _SPLITS:
        places = value.get(split) or ()
        for place in [places] if isinstance(places, str) else places:
            parts.append((split, _place(files, root, str(place), f"{uri}: {split}")))
    if need_parts and not parts:
        raise ManifestError(f"{uri} names no images: it has neither train nor val nor test")
    points, values = _keypoint_shape(value.get("kpt_shape"), uri)
    return YoloData(root, names, tuple(parts), points, values, _point_names(value.get("kpt_names"), points))


def _root(files: Files, uri: str, path: Any) -> str:
    """The folder of the yaml, or ``path`` below it; a path that is not there is one of another machine."""
    folder = parent(uri)
    if path:
        stated = files.join(folder, str(path))
        if files.is_folder(stated):
            return stated
    return folder


def _place(files: Files, root: str, path: str, told: str) -> str:
    """Where the images of a split are. ``../train/images`` may be meant from the root, as Roboflow writes it."""
    path = path.replace("\\", "/").removeprefix("./")
    tried = [files.join(root, path)]
    if path.startswith("../"):
        tried.append(files.join(root, path.removeprefix("../")))
    for place in tried:
        place = place.rstrip("/") or place
        if files.is_folder(place) or files.is_file(place):
            return place
    raise ManifestError(f"{told} is {tried[-1]}, which does not exist: correct the line, or take it out")


def parse_names(value: Any, uri: str) -> dict[int, str]:
    """Class names by id, from a list or a mapping. Raises ManifestError."""
    pairs: Sequence[tuple[Any, Any]]
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = list(enumerate(value))
    else:
        raise ManifestError(f"{uri} needs names: a list of the classes, or a mapping of ids to names")
    names: dict[int, str] = {}
    id_of: dict[str, int] = {}
    for number, name in pairs:
        text = str(name).strip()
        if isinstance(number, bool) or not str(number).isdecimal() or not text or name is None:
            raise ManifestError(f"{uri}: {number!r}: {name!r} is no class id and name")
        if text in id_of:
            raise ManifestError(f"{uri}: the classes {id_of[text]} and {number} are both called {text!r}: rename one")
        names[int(number)] = text
        id_of[text] = int(number)
    return names


def read_names_file(files: Files, uri: str) -> dict[int, str]:
    """Class names, one per line, the first with id 0; blank lines at the end do not count."""
    with files.open(uri) as stream:
        lines = stream.read().decode("utf-8-sig", "replace").splitlines()
    return parse_names([line.strip() for line in lines if line.strip()], uri)


def _keypoint_shape(value: Any, uri: str) -> tuple[int, int]:
    if value is None:
        return 0, 0
    fits = isinstance(value, list) and len(value) == 2 and all(isinstance(number, int) for number in value)
    if not fits or value[0] < 1 or value[1] not in (2, 3):
        raise ManifestError(f"{uri}: kpt_shape is {value!r}, not [number of keypoints, 2 or 3]")
    return value[0], value[1]


def _point_names(value: Any, points: int) -> tuple[str, ...]:
    """Names of the keypoints, when there is one for each; a mapping of classes to names gives those of the first."""
    if isinstance(value, Mapping):
        value = next(iter(value.values()), None)
    if isinstance(value, list) and len(value) == points:
        return tuple(str(name) for name in value)
    return ()
