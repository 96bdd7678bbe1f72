"""What kind of file a name promises: an image, known other data, or junk that systems leave behind."""

from __future__ import annotations

import re
from functools import lru_cache

IMAGE_SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".pjpeg", ".png", ".apng", ".gif", ".webp", ".bmp", ".dib", ".tif", ".tiff"),
    *(".avif", ".heic", ".heif", ".jp2", ".j2k", ".jpf", ".jpx", ".jxl", ".ppm", ".pgm", ".pbm", ".pnm", ".tga"),
    *(".ico", ".mpo", ".psd", ".svg", ".dcm", ".exr", ".hdr"),
)
# Endings that the names of images may lack.
USUAL_ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif", ".ppm", ".dcm")
_COMMON_SUFFIXES = (".jpg", ".JPG", ".jpeg", ".JPEG", ".png", ".PNG")  # asked for before the slow question
ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tbz", ".tar.xz", ".txz")
TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
_DATA = re.compile(
    r"\.(?:txt|md|rst|csv|tsv|tab|json|jsonl|ndjson|xml|yaml|yml|toml|ini|cfg|conf|html?|css|js|pdf|docx?|xlsx?|ods|"
    r"log|parquet|py|ipynb|sh|bat|m|mat|npy|npz|pkl|pickle|h5|hdf5|db|sqlite|names|data|lst|list|manifest|meta|license|bib|tex|crc|md5|sha1|"
    r"pbtxt|prototxt|cache|idx|lock|srt|arrow|feather|"
    r"sha256)(?:\.gz|\.bz2|\.xz)?$|(?:^|/)(?:readme|licen[cs]e|copying|changelog|notice|makefile|_success)$",
    re.IGNORECASE,
)
# .tfrecord, .tfrecords.gz, .tfrec, .record; and data.tfrecord-00000-of-00008 or train-00000-of-00128 without an ending.
_RECORD_NAME = re.compile(
    r".*(?:\.(?:tfrecords?|tfrec|tfr|records?)(?:[-.]\d+-of-\d+)?|-\d{5,}-of-\d{5,})(?:\.(?:gz|zz|gzip|zlib|deflate|snappy|zstd?|bz2|xz|lz4))?",
    re.IGNORECASE | re.DOTALL,
)
_JUNK_FOLDERS = frozenset({"__macosx", "@eadir", "$recycle.bin", "system volume information", "lost+found"})
_JUNK_FILES = frozenset({"thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r"})
_JUNK_NAMES = _JUNK_FOLDERS | _JUNK_FILES


def is_image_name(path: str) -> bool:
    """Whether the name ends as those of images do."""
    return path.lower().endswith(IMAGE_SUFFIXES)


def is_data_name(path: str) -> bool:
    """Whether the name is that of a text, table or document, so that nobody takes it for an image."""
    return not path.endswith(_COMMON_SUFFIXES) and _DATA.search(path) is not None


def is_record_name(name: str) -> bool:
    """Whether a file's name says that it holds TFRecords."""
    return _RECORD_NAME.fullmatch(name) is not None


def is_archive_name(path: str) -> bool:
    """Whether the name ends as those of archives do."""
    return path.lower().endswith(ARCHIVE_SUFFIXES)


def archive_stem(name: str) -> str:
    """The name of an archive without its suffix."""
    suffixes = [suffix for suffix in ARCHIVE_SUFFIXES if name.lower().endswith(suffix)]
    return name[: -max(map(len, suffixes))] if suffixes else name


def junk_part(path: str) -> str | None:
    """What makes a relative path junk: the path itself (``a/Thumbs.db``, ``a/._x``), or its first hidden or system
    folder (``a/.git`` of ``a/.git/x``, ``__MACOSX``). None for everything else.
    """
    folder, _, name = path.rpartition("/")
    if folder and (part := _junk_folder(folder)) is not None:
        return part
    return path if _is_junk(name, _JUNK_NAMES) else None


@lru_cache(maxsize=1_024)  # files come folder by folder
def _junk_folder(folder: str) -> str | None:
    """The path of the first folder that is junk."""
    names = folder.split("/")
    return next(("/".join(names[: depth + 1]) for depth, name in enumerate(names) if _is_junk(name)), None)


def _is_junk(name: str, names: frozenset[str] = _JUNK_FOLDERS) -> bool:
    return (name[:1] == "." and name not in (".", "..")) or name.lower() in names


class JunkCounter:
    """Counts files that are no data; everything in one hidden folder counts as one."""

    def __init__(self) -> None:
        self._parts: set[str] = set()

    def add(self, part: str) -> None:
        """Count a file or folder; the same one only once."""
        self._parts.add(part)

    def __len__(self) -> int:
        return len(self._parts)
