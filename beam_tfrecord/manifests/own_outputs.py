"""What this tool wrote, lying among what it is to read: datasets, extracted folders, and the output folder itself.

A dataset is a folder with a conversion.json that tells of one, or with a staging place; an extracted folder has a
``convert.args`` beside its manifest. They are left out of every collection that they lie in, and told: a class called
like an output folder would shift the ids of all labels.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from beam_tfrecord.core.account import FILES, OWN_OUTPUT, AccountBuilder, merge_accounts
from beam_tfrecord.errors import ConfigError, ManifestError
from beam_tfrecord.manifests.base import FileInfo, Files, Source
from beam_tfrecord.manifests.text.uri_text import folder_of, literal_folder, scheme_of, with_slash, without_slash

DATASET, EXTRACTED = "dataset", "extracted folder"
LEFT_OUT = "left_out"  # among the details of a source: the uris of the folders that are passed over
# Names that publishing, staging and extracting give; those that tell, and others that lie beside them.
_CONVERSION, _ARGUMENTS, EXTRACTED_MANIFEST = "conversion.json", "convert.args", "manifest.jsonl"
_STAGING = "/.staging/"
_MARKS = (f"/{_CONVERSION}", f"/{_ARGUMENTS}")
_BESIDE = (
    *("/dataset_info.json", "/features.json", "/statistics.json", "/labels.txt", ".labels.txt", "/label_map.pbtxt"),
    *("/rejects.jsonl", "/warnings.jsonl", "/report.html", f"/{EXTRACTED_MANIFEST}"),
    *(".tfrecord", ".tfrecord.gz", ".tfrecord.zz", ".tfrecord.idx", ".array_record"),
)
_EXTRACTED_FOLDERS = ("/images/", "/masks/")
_DATASET_KEYS = {"rows", "written", "rejected", "splits", "options", "versions"}
_MOST_ASKED = 200  # folders that a glob leads to and that are looked at


def own_output(files: Files, folder: str) -> str:
    """What of this tool's a folder is: DATASET, EXTRACTED, or '' when it is something else."""
    base = with_slash(folder)
    if _tells_of_a_dataset(files, base + _CONVERSION) or files.is_file(f"{base}.staging/publishing.json"):
        return DATASET
    return EXTRACTED if files.is_file(base + _ARGUMENTS) and files.is_file(base + EXTRACTED_MANIFEST) else ""


def _tells_of_a_dataset(files: Files, uri: str) -> bool:
    if not files.is_file(uri):
        return False
    with files.open(uri) as stream:
        try:
            return set(json.load(stream)) >= _DATASET_KEYS
        except (ValueError, TypeError):
            return False


def check_input(files: Files, folder: str, shown: str, *, is_archive: bool = False) -> None:
    """Raise ConfigError when the folder is a dataset of this tool: there are other commands for that."""
    if own_output(files, folder) == DATASET:
        what, first = ("the archive of a dataset", "unpack gives it back; ") if is_archive else ("a dataset", "")
        raise ConfigError(
            f"{shown} is {what} that this tool made: name what it was made from as --input; {first}reshard and merge "
            "write datasets anew, extract gives back their images with a manifest, show and verify look at them"
        )


def datasets_among(paths: Sequence[str]) -> list[str]:
    """The folders among the paths of a listing that hold a dataset of this tool, by the names of its metadata."""
    names = set(paths)
    folders = (folder_of(path) for path in paths if path.endswith(f"/{_CONVERSION}"))
    return [folder for folder in folders if f"{folder}/features.json" in names]


class FilesBeside:
    """Files without those below some folders, which notes where outputs of this tool may lie; else those it is given.

    left_out: uris of the folders, as the walks spell them.
    """

    def __init__(self, files: Files, left_out: Sequence[str] = ()) -> None:
        self._files = files
        self._left_out = tuple(map(with_slash, left_out))
        self._noted: set[str] = set()
        self.met: set[str] = set()  # the folders that a walk or a glob would have led into

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def _is_left_out(self, uri: str) -> bool:
        if not uri.startswith(self._left_out):
            return False
        self.met.add(next(folder for folder in self._left_out if uri.startswith(folder)).rstrip("/"))
        return True

    def walk(self, uri: str) -> Iterator[FileInfo]:
        """The files below a folder that are not left out."""
        for info in self._files.walk(uri):
            if self._left_out and self._is_left_out(info.uri):
                continue
            if info.uri.endswith(_MARKS) or _STAGING in info.uri:
                self._noted.add(_folder_of_mark(info.uri))
            yield info

    def match(self, pattern: str) -> list[FileInfo]:
        """The files that a glob matches and that are not left out."""
        found = []
        for info in self._files.match(pattern):
            if self._left_out and self._is_left_out(info.uri):
                continue
            found.append(info)
            if info.uri.endswith((*_MARKS, *_BESIDE)) or _STAGING in info.uri:
                self._noted.add(_folder_of_mark(info.uri))
            for name in _EXTRACTED_FOLDERS:
                if name in info.uri:
                    self._noted.add(info.uri.partition(name)[0])
        return found

    def list_folder(self, uri: str) -> list[str]:
        """Names of what lies directly in a folder and is not left out."""
        base = with_slash(uri)
        return [name for name in self._files.list_folder(uri) if f"{base}{name}" not in self._left_out]

    def outputs(self, root: str) -> list[str]:
        """The uris of the outputs of this tool that were come across, none within another.

        root: where they were looked for. An extracted folder that it is, or lies in, may be read.
        """
        found: list[str] = []
        for folder in sorted(self._noted)[:_MOST_ASKED]:
            if folder.startswith(tuple(map(with_slash, found)) or ("\0",)):
                continue
            kind = own_output(self._files, folder)
            if kind == DATASET or (kind and not with_slash(root).startswith(with_slash(folder))):
                found.append(folder)
        return found


def _folder_of_mark(uri: str) -> str:
    return uri.partition(_STAGING)[0] if _STAGING in uri else folder_of(uri)


def describe_beside(describe: Callable[[Files], Source], files: Files, root: str, output: str = "") -> Source:
    """The source of a place, without the outputs of this tool that lie in it.

    describe: looks at the place through the files it is given. root: the folder that is walked. output: of this run,
    which is left out whatever lies there, and not counted. Only where there are outputs the place is looked at twice.
    """
    own = spelled_below(root, output)
    beside = FilesBeside(files, own)
    trouble: ManifestError | ConfigError | None = None
    source: Source | None = None
    try:
        source = describe(cast(Files, beside))
    except (ManifestError, ConfigError) as error:
        trouble = error
    outputs = beside.outputs(root)
    left_out = [*outputs, *own]
    if outputs:
        beside = FilesBeside(files, left_out)
        try:
            source, trouble = describe(cast(Files, beside)), None
        except (ManifestError, ConfigError) as error:
            trouble = error
    told = sorted(beside.met - set(own))  # what this run itself writes is nothing that lay there: it comes and goes
    if trouble is not None:
        more = f". {_message(sorted(beside.met))}" if beside.met else ""
        raise type(trouble)(f"{trouble}{more}") if more else trouble
    assert source is not None
    return _without(source, files, left_out, told)


def _without(source: Source, files: Files, left_out: Sequence[str], told: Sequence[str]) -> Source:
    """A source that tells of the folders that are left out. told: those in which something lies."""
    if not left_out:
        return source
    account = AccountBuilder()
    for folder in () if source.census else told:  # a census names them itself
        paths = [info.uri for info in files.walk(folder)]
        account.find(FILES, len(paths))
        account.name(FILES, OWN_OUTPUT, paths[0], len(paths))
    return replace(
        source,
        details={**source.details, LEFT_OUT: list(left_out)},
        account=merge_accounts([source.account, account.account()]),
        surprises=(*source.surprises, *((("own_output", _message(told)),) if told else ())),
    )


def _message(folders: Sequence[str]) -> str:
    names = ", ".join(folders[:3]) + (f" and {len(folders) - 3:,} more" if len(folders) > 3 else "")
    return (
        f"{names} {'is' if len(folders) == 1 else 'are'} what this tool wrote, and no input: left out with all that "
        "lies there; write to a place outside of the input"
    )


def left_out_of(source: Source, files: Files, folders: Sequence[str]) -> Source:
    """A source that tells of outputs of this tool which the glob that led to it leads to as well."""
    return _without(source, files, folders, folders)


def without_outputs(files: Files, pattern: str, output: str) -> tuple[list[str], tuple[str, ...]]:
    """(uris that a glob matches, outputs of this tool that it led into and that are left out)."""
    root = literal_folder(pattern)
    own = spelled_below(root, output)
    beside = FilesBeside(files, own)
    found = [info.uri for info in beside.match(pattern)]
    outputs = beside.outputs(root)
    below = tuple(map(with_slash, outputs)) or ("\0",)
    return [uri for uri in found if not uri.startswith(below)], tuple(outputs)


def files_beside(files: Files, source: Source) -> Files:
    """The files as the rows of a source are to see them."""
    left_out = source.details.get(LEFT_OUT)
    return cast(Files, FilesBeside(files, left_out)) if left_out else files


def spelled_below(root: str, output: str) -> list[str]:
    """The output as a walk of the root may spell it, through links or not; empty when it lies elsewhere, or is the root
    itself."""
    if not output or _is_local(root) != _is_local(output):
        return []
    spelled = set()
    for known in (os.path.realpath, os.path.abspath) if _is_local(root) else (without_slash,):
        base, place = (known(uri.removeprefix("file://") or ".") for uri in (root, output))
        if place.startswith(with_slash(base)) and place != base:
            spelled.add((with_slash(root) if root else "") + place[len(with_slash(base)) :])
    return sorted(spelled)


def _is_local(uri: str) -> bool:
    return scheme_of(uri) in ("", "file")
