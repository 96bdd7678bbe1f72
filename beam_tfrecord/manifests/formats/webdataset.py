"""WebDataset: tar shards whose members of one key are one sample (``0001.jpg``, ``0001.cls``, ``0001.json``).

Source: webdataset/tariterators.py (``base_plus_ext``, ``group_by_keys``) and webdataset/autodecode.py, version 1.0: the
key is the path up to the first dot behind the last slash, what follows is the field; members of a sample follow one
another; ``cls`` is a class, as a number in the writer's form, ``txt`` a text, ``json`` anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from beam_tfrecord.annotations.cells import shown, text_of
from beam_tfrecord.core.account import (
    AS_IMAGE,
    AS_LABELS,
    FILES,
    JUNK,
    KEYS,
    NO_ACCOUNT,
    AccountBuilder,
    Decision,
)
from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.errors import ManifestError, RowError, nearest
from beam_tfrecord.manifests.archives.files import ArchiveFiles
from beam_tfrecord.manifests.archives.index import ArchiveIndex, Listed, list_archive
from beam_tfrecord.manifests.archives.members import shared_archives
from beam_tfrecord.manifests.archives.streams import archive_kind
from beam_tfrecord.manifests.base import Files, Ignored, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.columns import why_not_read
from beam_tfrecord.manifests.filenames import IMAGE_SUFFIXES, junk_part
from beam_tfrecord.manifests.text.compression import readable
from beam_tfrecord.manifests.text.json_text import decode_json
from beam_tfrecord.manifests.text.roles import Roles
from beam_tfrecord.manifests.text.row_fields import list_of, rejected
from beam_tfrecord.options.config import ManifestConfig

_PARTS = ("id", "split", "group")  # that options name in the JSON; a label may be missing
_CLASSES = ("cls", "cls2", "label", "class")
_TEXTS = ("txt", "text", "caption")
_JSON_LABELS = ("label", "cls", "class", "class_name", "category")
_JSON_TEXTS = ("caption", "text")
_OTHER_TOOLS = ({"shapes", "imagePath"}, {"images", "annotations"}, {"annotations", "objects"})
_LOOKED = 64  # members that are looked at


class WebDatasetFormat(ManifestFormat):
    """One tar. A sample is a row; its image is read where it lies, its texts while the tar is listed."""

    name = "webdataset"
    asks = ("label", *_PARTS)
    counts_files = True

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        """Whether the first sample of a tar has an image, and a class, a caption or values in JSON beside it."""
        if archive_kind(head) != "tar":
            return False
        index = list_archive(files, uri)
        inside = ArchiveFiles(files, index, shared_archives())
        for key, parts in _samples(index, _LOOKED):
            image = _image_of(parts)
            if image is None:
                continue
            return "/" not in key and any(_is_of_sample(inside, field, listed) for field, listed in parts.items())
        return False

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        index = list_archive(files, uri)
        if not any(_image_of(parts) for _, parts in _samples(index)):
            raise ManifestError(f"{uri} has no sample with an image (members such as 0001.jpg and 0001.cls)")
        decided = Decision("label", "the member .cls, else a value of the .json", "the names of the members")
        return Source(uri, self.name, split, f"{uri}!", decisions=(decided,), account=NO_ACCOUNT)

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        uri = piece.source.uri
        index = list_archive(files, uri)
        inside = ArchiveFiles(files, index, shared_archives())
        told = AccountBuilder()
        if index.others:
            yield Ignored(index.others)
        for listed in index.troubles:
            told.find(FILES)
            told.name(FILES, f"cannot be read: {listed.code}", listed.path)
            yield rejected(f"{uri}!/{listed.path}", listed.code, f"{listed.path} of {uri}: {listed.message}")
        junk = [path for path in index.members if junk_part(path) is not None]
        told.find(FILES, len(junk))
        for path in junk:
            told.name(FILES, JUNK, path)
        if junk:
            yield Ignored(len(junk))
        keys: dict[str, bool] = {}
        has_label = False
        for key, parts in _samples(index):
            row = _row(uri, key, parts, inside, config, told, keys)
            has_label = has_label or (isinstance(row, Row) and "label" in row.fields)
            yield row
        for part in _PARTS:
            column = getattr(config, f"{part}_column")
            if column is not None and column not in keys:
                raise ManifestError(
                    f"--{part}_column {column}: the JSON of no sample of {uri} has it{nearest(column, keys)}; they "
                    f"have {', '.join(sorted(keys)) or 'none'}"
                )
        told.find(KEYS, len(keys))
        for name, is_read in keys.items():
            if is_read:
                told.use(KEYS, "read")
            else:
                told.name(KEYS, why_not_read(name, Roles(label="label" if has_label else None)), name)
        yield told.account()


def _samples(index: ArchiveIndex, most: int = 0) -> Iterator[tuple[str, dict[str, Listed]]]:
    """(key, members by field) of each sample, in the order of the tar. most: members that are looked at; 0: all."""
    samples: dict[str, dict[str, Listed]] = {}
    for number, (path, listed) in enumerate(index.members.items()):
        if most and number >= most:
            break
        if junk_part(path) is None:
            folder, slash, name = path.rpartition("/")
            stem, _, field = name.partition(".")
            samples.setdefault(folder + slash + stem, {})[field.lower()] = listed
    yield from samples.items()


def _image_of(parts: Mapping[str, Listed]) -> Listed | None:
    """The image of a sample: the one whose field is an ending of images and nothing more."""
    found = [listed for field, listed in parts.items() if f".{field}" in IMAGE_SUFFIXES]
    return found[0] if len(found) == 1 else None


def _is_of_sample(inside: ArchiveFiles, field: str, listed: Listed) -> bool:
    """Whether a member beside an image is what WebDataset has there, and not the label file of another tool."""
    if field in _CLASSES:
        return True
    if field not in (*_TEXTS, "json"):
        return False
    with suppress(OSError, ValueError, UnicodeDecodeError):
        text = _text(inside, listed)
        if field == "json":
            value = decode_json(text)
            return isinstance(value, dict) and not any(keys <= value.keys() for keys in _OTHER_TOOLS)
        return not _is_of_numbers(text)
    return False


def _is_of_numbers(text: str) -> bool:
    """Whether a text is nothing but numbers, as label files of YOLO and others are."""
    try:
        for word in text.split():
            float(word)
    except ValueError:
        return False
    return True


def _text(inside: ArchiveFiles, listed: Listed) -> str:
    with inside.open(f"{inside.root}/{listed.path}") as stream:
        return stream.read().decode("utf-8-sig")


def _row(
    uri: str,
    key: str,
    parts: Mapping[str, Listed],
    inside: ArchiveFiles,
    config: ManifestConfig,
    told: AccountBuilder,
    keys: dict[str, bool],
) -> Row | RejectedRow:
    """The row of a sample, or the reject that says why there is none; what became of its members is told.

    keys: of the JSON, and whether any sample has them read; is added to.
    """
    told.find(FILES, len(parts))
    image = _image_of(parts)
    origin = f"{uri}!/{image.path if image is not None else next(iter(parts.values())).path}"
    try:
        if image is None or image.member is None:
            raise RowError("bad_row", f"the sample {key} has no image, or several: it has {', '.join(sorted(parts))}")
        fields, used = _fields(parts, inside, config, keys)
    except RowError as error:
        for listed in parts.values():
            told.name(FILES, f"of a sample that is rejected: {error.code}", listed.path)
        return rejected(origin, error.code, error.message, image.path if image is not None else "")
    for field, listed in parts.items():
        if listed is image:
            told.use(FILES, AS_IMAGE)
        elif field in used:
            told.use(FILES, AS_LABELS)
        else:
            told.name(FILES, f"members .{field}", listed.path)
    return Row(origin, {"image": image.path, "member": image.member, **fields})


def _fields(
    parts: Mapping[str, Listed], inside: ArchiveFiles, config: ManifestConfig, keys: dict[str, bool]
) -> tuple[dict[str, Any], Counter[str]]:
    """(label, captions and columns of a sample, the fields they come from). Raises RowError."""
    fields: dict[str, Any] = {}
    used: Counter[str] = Counter()

    def text_of(field: str) -> str:
        used[field] += 1
        try:
            with readable(inside.root):
                return _text(inside, parts[field])
        except (UnicodeDecodeError, ManifestError) as error:
            raise RowError("bad_row", f"{parts[field].path} is no text in UTF-8: {error}") from None

    classes = next((field for field in _CLASSES if field in parts), "")
    if classes:
        fields["label"] = text_of(classes).strip()
    texts = next((field for field in _TEXTS if field in parts), "")
    if texts:
        fields["captions"] = [text_of(texts).strip()]
    if "json" in parts:
        path = parts["json"].path
        try:
            value = decode_json(text_of("json"))
        except ValueError as error:
            raise RowError("bad_row", f"{path} is no JSON: {error}") from None
        if not isinstance(value, dict):
            value = {"label": value}
        read = {*config.asked_columns, *(column.name for column in config.columns)}
        label = config.label_column or next((name for name in _JSON_LABELS if name in value), "")
        if label and "label" not in fields:
            read.add(label)
            fields["label"] = _label(value.get(label), f"{path}: {label}")
        caption = next((name for name in _JSON_TEXTS if isinstance(value.get(name), str | list)), "")
        if caption and "captions" not in fields:
            read.add(caption)
            fields["captions"] = list_of(value[caption])
        for part in _PARTS:
            column = getattr(config, f"{part}_column")
            if column is not None and value.get(column) is not None:
                read.add(column)
                fields[part] = str(value[column])
        if config.asked_columns:
            fields["asked"] = {name: value[name] for name in config.asked_columns if name in value}
        if config.columns:
            fields["columns"] = {column.name: value.get(column.name, "") for column in config.columns}
        keys.update({name: keys.get(name, False) or name in read for name in value})
    return fields, used


def _label(given: Any, where: str) -> str | list[str]:
    """A label, '' where it is not given, or a list of labels. Raises RowError."""
    names = ["" if one is None else text_of(one) for one in list_of(given)]
    if None in names:
        raise RowError("bad_row", f"{where} is {shown(given)}, neither a label nor a list of labels")
    texts = [name for name in names if name is not None]
    return texts if isinstance(given, list) else texts[0]
