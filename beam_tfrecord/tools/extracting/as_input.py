"""TFRecords of other tools as input of ``convert``: the manifest format ``tfrecord``.

A place is a file, a folder or a glob of tf.train.Example (or SequenceExample) records, compressed with gzip or zlib or
not. What a record means is read as :mod:`.records` reads it for ``extract``; its pictures and mask files stay where
they are and are read by their place in the file (a :class:`~beam_tfrecord.core.elements.Member`). Which key holds what
is decided once for all files of a place, from the first records of some of them: by the names that the Object Detection
API, the ImageNet scripts and TensorFlow Datasets give, else by what the values are, or by ``--image_key`` and
``--label_key``. Names of classes come from the records, or from the files of TensorFlow Datasets beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

from beam_tfrecord.core.account import (
    AS_LABELS,
    FILES,
    JUNK,
    Account,
    AccountBuilder,
    Decision,
)
from beam_tfrecord.core.elements import Member, RejectedRow, Row
from beam_tfrecord.datasets.record_view import RecordView, frames, view_record
from beam_tfrecord.datasets.shard_files import FoundFiles, find_files, starts_with_record
from beam_tfrecord.errors import REJECT_CODES, DatasetError, ManifestError
from beam_tfrecord.manifests.base import Files, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.filenames import is_data_name, is_record_name, junk_part
from beam_tfrecord.manifests.own_outputs import check_input
from beam_tfrecord.manifests.text.compression import readable
from beam_tfrecord.manifests.text.row_fields import rejected
from beam_tfrecord.manifests.text.uri_text import folder_of, has_glob, name_of, with_slash
from beam_tfrecord.manifests.unused import reason_unused
from beam_tfrecord.options.config import ManifestConfig
from beam_tfrecord.storage import Storage
from beam_tfrecord.tfrecord import Record, RecordFault, detect_compression, scan_records
from beam_tfrecord.tfrecord.framing import HEADER_SIZE
from beam_tfrecord.tools.extracting.command import joint_vocabulary
from beam_tfrecord.tools.extracting.layout import Layout
from beam_tfrecord.tools.extracting.paths import ImagePaths
from beam_tfrecord.tools.extracting.recognised_keys import keys_of, look_at, unread
from beam_tfrecord.tools.extracting.records import (
    FEATURES,
    RECORDS,
    WITHOUT_VALUE,
    ExtractedRecord,
    Place,
    RecordExtractor,
)
from beam_tfrecord.tools.extracting.shards import safe_stem
from beam_tfrecord.tools.extracting.values import Features, UnextractableError, cell_of

_HEAD = 1 << 16
_PREFIX = 64
_METADATA = (".labels.txt", "/features.json", "/dataset_info.json")
_MASKS = ("mask", "instance_mask")
_CONTAINERS = {"gzip": ("gzip", 0), "zlib": ("deflate", 2)}  # the header of a zlib stream has two bytes (RFC 1950)
_PARTS = ("id", "split", "group")


class TfrecordFormat(ManifestFormat):
    """Files of records. Each is a piece; the origin of a row is ``file:number``, records being counted from 0."""

    name = "tfrecord"
    counts_files = True
    suffixes = (".tfrecord", ".tfrecords", ".tfrec")

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        """Whether a file starts with a record, or a folder holds files of records and nothing that may be an image."""
        if head:
            return any(starts_with_record(head, compression) for compression in ("none", "zlib"))
        return not files.is_file(uri) and _holds_records_only(files, uri)

    def describe(self, files: Files, uri: str, split: str | None, config: ManifestConfig) -> Source:
        is_folder = files.is_folder(uri)
        if not is_folder and not has_glob(uri):
            check_input(files, folder_of(uri), f"--input {uri}: {folder_of(uri)}")
        try:
            found = find_files((uri,), cast(Storage, files))
        except DatasetError as error:
            raise ManifestError(str(error)) from None
        for fault in found.faults:
            if fault.code != "wrong_metadata":
                place = with_slash(uri) if is_folder else ""
                raise ManifestError(f"{place}{fault.file}: {fault.cause}")
        look = look_at(files, found)
        decided: list[Decision] = []
        keys = keys_of(look, config, uri, decided)
        names = {key: list(own) for key, own in found.label_names.items() if key in look.dtypes}
        labels, changed = joint_vocabulary(
            {
                (name, number): label
                for name in ("label", "object_label")
                for number, label in enumerate(found.label_names.get(keys.get(name, ""), ()))
            }
        )
        if labels is not None:
            decided.append(Decision("names of the labels", f"{len(labels)} names", "files of names beside them"))
        elif "label" in keys or "object_label" in keys:
            why = "only all records together tell which there are: --labels keeps the ids of a list of names"
            decided.append(Decision("ids of the labels", "given anew, in the order of the names", why))
        decided += [Decision("ids of the labels", told, "the two lists of names differ") for told in changed]
        surprises = [
            ("annotation_ignored", f"{fault.file}: {fault.cause}")
            for fault in found.faults
            if fault.code != "missing_file"
        ]
        surprises += unread(look, keys, config)
        return Source(
            uri,
            self.name,
            split,
            uri if is_folder else folder_of(found.files[0].uri),
            labels=labels.names if labels is not None else None,
            details={
                "files": [[file.uri, file.name, file.split, file.records] for file in found.files],
                "keys": keys,
                "names": names,
                "found": f"{len(found.files)} file{'s' * (len(found.files) != 1)} of records",
            },
            account=_files_account(files, uri if is_folder else "", found),
            decisions=tuple(decided),
            surprises=tuple(surprises),
        )

    def pieces(self, files: Files, source: Source) -> Iterator[Piece]:
        """Each file is a piece: ``start`` is its number."""
        for number in range(len(source.details["files"])):
            yield Piece(source, number, number + 1)

    def rows(self, files: Files, piece: Piece, config: ManifestConfig) -> Iterator[Item]:
        told = piece.source.details["files"]
        names = {key: tuple(own) for key, own in piece.source.details["names"].items()}
        layout = Layout(dict(piece.source.details["keys"]), names_by_key=names)
        for number in range(piece.start, len(told) if piece.end < 0 else piece.end):
            uri, _, split, stated = told[number]
            yield from _RowsOfFile(files, uri, split, stated, layout, config).rows()


def _holds_records_only(files: Files, uri: str) -> bool:
    """Whether files of records lie below a folder, beside documents and junk at most."""
    start = len(with_slash(uri))
    found = False
    for info in files.walk(uri):
        path = info.uri[start:]
        if junk_part(path) is not None or is_data_name(path) or path.endswith((".pbtxt", ".idx", ".array_record")):
            continue
        if not is_record_name(name_of(path)):
            return False
        found = True
    return found


def _files_account(files: Files, folder: str, found: FoundFiles) -> Account:
    """What became of the files below the folder; of those that were named themselves without one."""
    told = AccountBuilder()
    own = {file.uri for file in found.files}
    uris = [info.uri for info in files.walk(folder)] if folder else sorted(own)
    told.find(FILES, len(uris))
    for uri in uris:
        path = uri[len(with_slash(folder)) :] if folder else uri
        if uri in own:
            told.use(FILES, RECORDS)
        elif junk_part(path) is not None:
            told.name(FILES, JUNK, path)
        elif found.label_names and f"/{path}".endswith(_METADATA):
            told.use(FILES, AS_LABELS)
        else:
            told.name(FILES, reason_unused(path, ()), path)
    return told.account()


# ---------------------------------------------------------------------------------------------------------------------
# Rows


class _PathsInFile:
    """Gives each picture of a record a path of its own, and keeps what the record calls it."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def path_of(self, filename: str, data: bytes, suffix: str) -> str:
        """As :meth:`.paths.ImagePaths.path_of`."""
        path = f"{len(self.names)}"
        self.names[path] = filename
        return path


@dataclass
class _RowsOfFile:
    """The rows of one file of records. stated: how many records the metadata tell, or None."""

    files: Files
    uri: str
    split: str
    stated: int | None
    layout: Layout
    config: ManifestConfig
    told: AccountBuilder = field(default_factory=AccountBuilder)

    def rows(self) -> Iterator[Item]:
        """All rows, and then the account of them."""
        count = damaged = 0
        with readable(self.uri), self.files.open(self.uri) as stream:
            container = _container(stream, self.uri)
            for item in scan_records(stream, self.uri):
                count += 1
                self.told.find(RECORDS)
                if isinstance(item, RecordFault):
                    if not item.is_of_record:
                        raise ManifestError(str(item))
                    damaged += 1
                    found: Row | RejectedRow = self._reject(item.record, "damaged_record", item.cause)
                else:
                    found = self._row(item, container)
                if isinstance(found, RejectedRow):
                    self.told.name(RECORDS, found.finding.code, found.finding.origin)
                else:
                    self.told.use(RECORDS, "row")
                yield found
        if self.stated is not None and count != self.stated and not damaged:
            raise ManifestError(
                f"{self.uri} has {count:,} records, but the metadata beside it state {self.stated:,}: fetch it again"
            )
        yield self.told.account()

    def _reject(self, number: int, code: str, cause: str) -> RejectedRow:
        origin = f"{self.uri}:{number}"
        return rejected(origin, code, f"record {number} of {self.uri}: {cause}", self.uri)

    def _row(self, record: Record, container: Member | None) -> Row | RejectedRow:
        place = Place(0, 1, record.index, self.split, safe_stem(name_of(self.uri)))
        paths = _PathsInFile()
        try:
            view = view_record(record.data)
            found = RecordExtractor(self.layout, cast(ImagePaths, paths)).extract(view, place)
            parts = self._parts(view)
        except UnextractableError as error:
            code = error.problem.code if error.problem.code in REJECT_CODES else "bad_row"
            return self._reject(record.index, code, error.problem.cause)
        except ValueError as error:
            return self._reject(record.index, "damaged_record", str(error))
        self._account(found)

        def member(path: str) -> Member:
            data = found.files[path]
            offset = record.offset + HEADER_SIZE + _find(record.data, data)
            name = f"{record.index}/{paths.names.get(path, path)}"
            return Member(self.uri, (name,), offset, len(data), container=container)

        line = found.line
        del line["place"]
        line.update(parts)
        views = frames(view)
        if "frames" in line:
            line["frames"] = [
                self._picture(fields, features, paths, member)
                for fields, features in zip(line["frames"], views, strict=True)
            ]
        else:
            line = self._picture(line, view.features, paths, member)
        return Row(f"{self.uri}:{record.index}", line)

    def _picture(
        self, fields: dict[str, Any], features: Features, paths: _PathsInFile, member: Callable[[str], Member]
    ) -> dict[str, Any]:
        """The fields of a picture with the places of its bytes."""
        fields = dict(fields)
        if "image" in fields:
            path = fields["image"]
            fields["member"] = member(path)
            fields["image"] = fields["filename"] = paths.names[path]
            fields["frame"] = "stored"  # TensorFlow, which all these tools decode with, turns no picture
            size = tuple(_number(features, self.layout.keys.get(name)) for name in ("width", "height"))
            if all(size):
                fields["size"] = size
        for name in _MASKS:
            if fields.get(name):
                fields[f"{name}_member"] = member(fields[name])
        if "panoptic" in fields and fields["panoptic"]["mask"]:
            fields["panoptic"] = {**fields["panoptic"], "member": member(fields["panoptic"]["mask"])}
        declared = {column.name: column for column in self.config.columns}
        cells = fields.pop("columns", {})
        if declared:
            fields["columns"] = {
                name: cell[0] if not declared[name].is_list and len(cell) == 1 else cell
                for name, cell in cells.items()
                if name in declared
            }
        return fields

    def _parts(self, view: RecordView) -> dict[str, str]:
        """What options say that certain features are."""
        parts = {}
        for name in ("split", "group"):
            key = getattr(self.config, f"{name}_column")
            feature = view.features.get(key) if key is not None else None
            if feature is not None and len(feature.values) == 1:
                parts[name] = str(cell_of(feature.values[0]))
        return parts

    def _account(self, found: ExtractedRecord) -> None:
        self.told.add(found.account)
        asked = {getattr(self.config, f"{name}_column"): name for name in _PARTS}
        declared = {column.name for column in self.config.columns}
        for key, _, count in found.columns:
            if key in declared:
                self.told.use(FEATURES, "column")
            elif key in asked:
                self.told.use(FEATURES, asked[key])
            elif not count:
                self.told.name(FEATURES, WITHOUT_VALUE, key)
            else:
                self.told.name(FEATURES, "not asked for with --columns", key)


def _container(stream: BinaryIO, uri: str) -> Member | None:
    """What has to be unpacked before the places of records count; the stream stands at its start again."""
    compression = detect_compression(stream.read(_HEAD), uri)
    stream.seek(0)
    if compression == "none":
        return None
    method, start = _CONTAINERS[compression]
    return Member(uri, (), start, -1, method)


def _find(data: bytes, value: bytes) -> int:
    """Where a value lies in a record: anywhere that the same bytes are. A long needle would be prepared for long."""
    start = data.find(value[:_PREFIX])
    while data[start : start + len(value)] != value:
        start = data.find(value[:_PREFIX], start + 1)
    return start


def _number(features: Features, key: str | None) -> int:
    """A positive whole number; 0 when there is none."""
    feature = features.get(key) if key is not None else None
    if feature is None or feature.dtype != "int64" or len(feature.values) != 1:
        return 0
    return max(0, int(feature.values[0]))
