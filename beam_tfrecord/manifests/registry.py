"""All formats by name, and which of them a source is of.

A format of one's own: subclass :class:`~beam_tfrecord.manifests.base.ManifestFormat`, and call :func:`register_format`
with an instance, in a module that the workers import as well.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import suppress

from beam_tfrecord.errors import ConfigError, ManifestError
from beam_tfrecord.manifests.base import Files, ManifestFormat
from beam_tfrecord.manifests.text.compression import BROKEN_STREAM, open_unpacked
from beam_tfrecord.manifests.text.json_text import OBJECT, as_utf8, iterate_members, start_of_json
from beam_tfrecord.manifests.text.uri_text import name_of
from beam_tfrecord.options.values import FORMAT_NAMES

HEAD_BYTES = 65_536
_STEP = 4_096
_PACKED_SUFFIXES = (".gz", ".bz2", ".xz")
_NO_MANIFESTS = {
    ".xlsx": "an Excel workbook: save the sheet as CSV",
    ".xls": "an Excel workbook: save the sheet as CSV",
    ".ods": "a spreadsheet: save the sheet as CSV",
    ".7z": "a 7z archive: unpack it, or make a zip or tar of it",
    ".rar": "a RAR archive: unpack it, or make a zip or tar of it",
    ".zst": "compressed with zstd: unpack it, or use gzip",
}


class Registry(Mapping[str, ManifestFormat]):
    """Formats by name. A format's module is imported when the format is first asked for."""

    def __init__(self, places: Mapping[str, str]) -> None:
        """places: ``module:Class`` by name; modules of ``formats/``, or full names of those that need other rooms."""
        self._places = dict(places)
        self._formats: dict[str, ManifestFormat] = {}

    def __getitem__(self, name: str) -> ManifestFormat:
        if name not in self._formats:
            if name not in self._places:
                raise KeyError(
                    f"there is no manifest format {name!r}; a format of your own must be registered in a module that "
                    f"the workers import"
                )
            module, _, kind = self._places[name].partition(":")
            full = module if "." in module else f"beam_tfrecord.manifests.formats.{module}"
            self._formats[name] = getattr(importlib.import_module(full), kind)()
        return self._formats[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def register(self, manifest: ManifestFormat) -> None:
        """Put a format before all others; it replaces one of the same name."""
        self._formats[manifest.name] = manifest
        self._places = {manifest.name: ""} | {k: v for k, v in self._places.items() if k != manifest.name}

    def unregister(self, name: str) -> None:
        """Take a registered format out again."""
        del self._formats[name], self._places[name]


# Special formats stand before general ones. The first that recognises a source is taken: those are asked first that are
# told by content alone (they have no suffixes), then those whose suffix fits, then all others. When none recognises it,
# the last whose suffix fits is taken.
FORMATS = Registry(
    {
        "coco": "coco:CocoFormat",
        "voc": "voc:VocFormat",
        "yolo": "yolo:YoloFormat",
        "labelme": "labelme:LabelmeFormat",
        "cvat": "cvat:CvatFormat",
        "label_studio": "label_studio:LabelStudioFormat",
        "via": "via:ViaFormat",
        "createml": "createml:CreateMLFormat",
        "datumaro": "datumaro:DatumaroFormat",
        "supervisely": "supervisely:SuperviselyFormat",
        "bdd100k": "bdd100k:BddFormat",
        "bdd100k_files": "bdd100k:BddFilesFormat",
        "cityscapes": "cityscapes:CityscapesFormat",
        "ade20k": "ade20k:Ade20kFormat",
        "labelbox": "labelbox:LabelboxFormat",
        "kitti": "kitti:KittiFormat",
        "dota": "dota:DotaFormat",
        "visdrone": "visdrone:VisdroneFormat",
        "wider_face": "wider_face:WiderFaceFormat",
        "tiny_imagenet": "tiny_imagenet:TinyImagenetFormat",
        "sagemaker": "sagemaker:SagemakerFormat",
        "azureml": "azureml:AzureMLFormat",
        "vertex": "vertex:VertexFormat",
        "openimages": "openimages:OpenImagesFormat",
        "extracted": "extracted:ExtractedFormat",
        "huggingface": "huggingface:HuggingFaceFormat",
        "tfrecord": "beam_tfrecord.tools.extracting.as_input:TfrecordFormat",
        "webdataset": "webdataset:WebDatasetFormat",
        "jsonl": "jsonl:JsonlFormat",
        "parquet": "parquet:ParquetFormat",
        "csv": "table:CsvFormat",
        "tsv": "table:TsvFormat",
        "list": "path_list:ListFormat",
        "archive": "archive:ArchiveFormat",
        "glob": "globs:GlobFormat",
        "rows": "memory:MemoryFormat",
        "manifests": "folder_manifests:SeveralFormat",
        "folder": "folder:FolderFormat",
    }
)


def register_format(manifest: ManifestFormat) -> None:
    """Make a format known: ``--format`` takes its name, and ``auto`` asks it before all others."""
    FORMATS.register(manifest)
    if manifest.name not in FORMAT_NAMES:
        FORMAT_NAMES.append(manifest.name)


def detect_format(files: Files, uri: str) -> str:
    """Name of the format of a file or folder that exists: from its name and its first bytes.

    Raises ConfigError when neither tells.
    """
    if files.is_folder(uri):
        return next((name for name, manifest in FORMATS.items() if manifest.recognises(files, uri, b"")), "folder")
    name = name_of(uri).lower()
    formats = list(FORMATS.values())
    fitting = [manifest for manifest in formats if has_suffix(name, manifest.suffixes)]
    head = read_head(files, uri)
    if head:
        by_content = [manifest for manifest in formats if not manifest.suffixes]
        others = [manifest for manifest in formats if manifest.suffixes and manifest not in fitting]
        for manifest in (*by_content, *fitting, *others):
            # A format that cannot tell by content is believed by its suffix.
            is_told = manifest in fitting and type(manifest).recognises is ManifestFormat.recognises
            if is_told or manifest.recognises(files, uri, head):
                return manifest.name
    if fitting:
        return fitting[-1].name
    known = next((what for suffix, what in _NO_MANIFESTS.items() if name.endswith(suffix)), "")
    if known:
        raise ConfigError(f"{uri} is {known}")
    if start_of_json(head) == OBJECT:
        raise ConfigError(
            f"{uri} is JSON of no format that is known: its members are {', '.join(_members(files, uri)) or 'none'}. "
            "Look at what wrote it for an export in another format, such as COCO"
        )
    raise ConfigError(
        f"{uri}: neither its name nor its first bytes tell its format; name it with --format "
        f"({', '.join(FORMAT_NAMES[1:])})"
    )


def _members(files: Files, uri: str) -> list[str]:
    """The first members of the object that a JSON file holds. Raises ManifestError where it is damaged."""
    with open_unpacked(files, uri) as stream:
        names = dict.fromkeys(repr(item.key) for item in iterate_members(stream, uri))
    return [*names][:8]


def has_suffix(name: str, suffixes: tuple[str, ...]) -> bool:
    """Whether a file name (lower case) ends in one of the suffixes, with or without one of a compression behind it."""
    if not suffixes:
        return False
    bare = next((name.removesuffix(suffix) for suffix in _PACKED_SUFFIXES if name.endswith(suffix)), name)
    return name.endswith(suffixes) or bare.endswith(suffixes)


def head_if_any(files: Files, uri: str) -> bytes:
    """The same of a file that is only looked at to tell of it: empty when it cannot be opened."""
    try:
        return read_head(files, uri)
    except ManifestError:
        return b""


def read_head(files: Files, uri: str) -> bytes:
    """The first bytes of a file, unpacked when it is compressed; fewer when it is damaged further on.

    Raises ManifestError when it cannot be opened.
    """
    parts: list[bytes] = []
    with open_unpacked(files, uri) as stream, suppress(*BROKEN_STREAM):
        while len(parts) < HEAD_BYTES // _STEP and (part := stream.read(_STEP)):
            parts.append(part)
    return as_utf8(b"".join(parts))
