"""What darknet reads: ``obj.data`` and lists of images (https://github.com/AlexeyAB/darknet).

``obj.data`` has lines ``key = value``; ``names`` is a file of class names, ``train``, ``valid`` and ``test`` are lists
of images. CVAT's "YOLO 1.1" writes the paths with ``data/`` in front, where darknet expects the folder to be put:
leading folders that are not there are taken off, for a list as a whole.
"""

from __future__ import annotations

from beam_tfrecord.errors import ConfigError, ManifestError
from beam_tfrecord.manifests.base import Files
from beam_tfrecord.manifests.siblings import parent

_PARTS = ("train", "valid", "val", "test")
_TRIED = 5  # images of a list, to find how its paths are meant
MAX_BYTES = 2**16


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
        text = stream.read(MAX_BYTES).decode("utf-8-sig", "surrogateescape")
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
