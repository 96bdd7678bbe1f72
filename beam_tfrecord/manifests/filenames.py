"""What kind of file a name promises: an image, known other data, or junk that systems leave behind."""

from __future__ import annotations

import re

IMAGE_SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".pjpeg", ".png", ".apng", ".gif", ".webp", ".bmp", ".dib", ".tif", ".tiff"),
    *(".avif", ".heic", ".heif", ".jp2", ".j2k", ".jpf", ".jpx", ".jxl", ".ppm", ".pgm", ".pbm", ".pnm", ".tga"),
    *(".ico", ".mpo", ".psd", ".svg", ".dcm", ".exr", ".hdr"),
)
ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tbz", ".tar.xz", ".txz")
TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
_DATA = re.compile(
    r"\.(?:txt|md|rst|csv|tsv|tab|json|jsonl|ndjson|xml|yaml|yml|toml|ini|cfg|conf|html?|css|js|pdf|docx?|xlsx?|ods|"
    r"log|parquet|py|ipynb|sh|bat|m|mat|npy|npz|pkl|pickle|h5|hdf5|db|sqlite|names|data|lst|license|bib|tex|crc|md5|sha1|"
    r"sha256)(?:\.gz|\.bz2|\.xz)?$|(?:^|/)(?:readme|licen[cs]e|copying|changelog|notice|makefile|_success)$",
    re.IGNORECASE,
)
_JUNK = re.compile(
    r"(?:.*?/)??(?:\.(?!\.?(?:/|$))[^/]*|__MACOSX|@eaDir|\$RECYCLE\.BIN|System Volume Information|lost\+found|"
    r"(?:eh)?thumbs\.db|desktop\.ini|Icon\r)(?=/|$)",
    re.IGNORECASE | re.DOTALL,
)


def is_image_name(path: str) -> bool:
    """Whether the name ends as those of images do."""
    return path.lower().endswith(IMAGE_SUFFIXES)


def is_data_name(path: str) -> bool:
    """Whether the name is that of a text, table or document, so that nobody takes it for an image."""
    return _DATA.search(path) is not None


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
    found = _JUNK.match(path)
    return found[0] if found else None


class JunkCounter:
    """Counts files that are no data; everything in one hidden folder counts as one."""

    def __init__(self) -> None:
        self._parts: set[str] = set()

    def add(self, part: str) -> None:
        """Count a file or folder; the same one only once."""
        self._parts.add(part)

    def __len__(self) -> int:
        return len(self._parts)
