"""What to say of a place that is not there."""

from __future__ import annotations

from beam_tfrecord.errors import nearest
from beam_tfrecord.manifests.base import Files
from beam_tfrecord.manifests.filenames import junk_part
from beam_tfrecord.manifests.text.uri_text import (
    WEB_SCHEMES,
    folder_of,
    has_glob,
    literal_folder,
    name_of,
    scheme_of,
    without_slash,
)

HERE = "."


def missing(files: Files, uri: str) -> str:
    """What to say of a place that is not there: the nearest thing that is, or the deepest folder that exists."""
    if has_glob(uri) and scheme_of(uri) not in WEB_SCHEMES:
        folder = literal_folder(uri) or HERE
        if files.is_folder(folder):
            hint = " (* does not cross folders; ** does)" if "**" not in uri and _has_folders(files, folder) else ""
            return f"no file matches{hint}; the folder {folder} holds {_contents(files, folder)}"
        uri = folder
    if scheme_of(uri) in WEB_SCHEMES:
        return f"there is no such file: {uri}"
    wanted, above = without_slash(uri), folder_of(uri) or HERE
    while above not in (wanted, HERE) and not files.is_folder(above):
        wanted, above = above, folder_of(above) or HERE
    if scheme_of(uri) and "/" not in above.partition("://")[2].rstrip("/") and not files.is_folder(above):
        return f"there is no such file or folder: {uri}"
    if above == wanted or not files.is_folder(above):
        return f"there is no such file or folder: {uri}"
    names = [name.rstrip("/") for name in files.list_folder(above)]
    close = nearest(name_of(wanted), names)
    what = "there is no such file or folder" if wanted == without_slash(uri) else f"there is no folder {wanted}"
    return f"{what}{close}; the folder {above} holds {_contents(files, above)}"


def _has_folders(files: Files, folder: str) -> bool:
    return any(name.endswith("/") for name in files.list_folder(folder))


def _contents(files: Files, folder: str, limit: int = 8) -> str:
    names = [name for name in files.list_folder(folder) if junk_part(name.rstrip("/")) is None]
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "") or "nothing"
