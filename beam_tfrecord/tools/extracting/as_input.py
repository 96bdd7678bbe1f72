"""TFRecords of other tools as input of ``convert``: the manifest format ``tfrecord``.

A place is a file, a folder or a glob of tf.train.Example (or SequenceExample) records, compressed with gzip or zlib or
not. What a record means is read as :mod:`.records` reads it for ``extract``; its pictures and mask files stay where
they are and are read by their place in the file (a :class:`~beam_tfrecord.core.elements.Member`). Which key holds what
is decided once for all files of a place, from the first records of some of them: by the names that the Object Detection
API, the ImageNet scripts and TensorFlow Datasets give, else by what the values are, or by ``--image_key`` and
``--label_key``. Names of classes come from the records, or from the files of TensorFlow Datasets beside them.

Pixels without an encoding are read by their shape. StyleGAN's tool (github.com/NVlabs/stylegan2, ``dataset_tool.py``)
has them in ``data``, channels first, with ``shape``, in a file for each size, and one-hot labels beside them.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, BinaryIO, NamedTuple, cast

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
from beam_tfrecord.manifests.archives.members import RAW_PIXELS, layout_name
from beam_tfrecord.manifests.base import Files, Item, ManifestFormat, Piece, Source
from beam_tfrecord.manifests.filenames import is_data_name, is_record_name, junk_part
from beam_tfrecord.manifests.leftovers import reason_unused
from beam_tfrecord.manifests.own_outputs import check_input
from beam_tfrecord.manifests.text.compression import readable
from beam_tfrecord.manifests.text.row_fields import rejected
from beam_tfrecord.manifests.text.uri_text import folder_of, has_glob, name_of, with_slash
from beam_tfrecord.options.config import ManifestConfig
from beam_tfrecord.storage import Storage
from beam_tfrecord.tfrecord import Record, RecordFault, detect_compression, scan_records
from beam_tfrecord.tfrecord.framing import HEADER_SIZE
from beam_tfrecord.tools.extracting.command import joint_vocabulary
from beam_tfrecord.tools.extracting.layout import Layout, layout_of
from beam_tfrecord.tools.extracting.paths import ImagePaths
from beam_tfrecord.tools.extracting.pictures import RawPixels, raw_pixels
from beam_tfrecord.tools.extracting.recognised_keys import Look, keys_of, look_at, unread
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
_IN_ORDER = "in_order"  # detail of a source: its records keep the order in which they lie there
_LAYOUT = "layout"  # detail of a source: what a conversion.json tells of its records
_PLACES = 2**64
_BY_SIZE = re.compile(r"(.+)-r(\d\d)\.tfrecords")  # StyleGAN's dataset_tool.py: the logarithm of the size


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
        decided: list[Decision] = []
        found, smaller = _largest(found, decided)
        look = look_at(files, found)
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
        beside = None if {"label", "label_text", "object_label"} & keys.keys() else _labels_beside(files, found)
        if beside is not None:
            decided.append(Decision("labels", name_of(beside.uri), "it has one for each record"))
        has_numbers = labels is None and (beside is not None or _are_numbers(look, keys))
        if labels is None and ({"label", "object_label"} & keys.keys() or beside is not None):
            why = "only all records together tell which there are: --labels keeps the ids of a list of names"
            order = "numbers" if has_numbers else "names"
            decided.append(Decision("ids of the labels", f"given anew, in the order of the {order}", why))
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
                "labels": beside.uri if beside is not None else "",
                "numbers": has_numbers,
                "found": f"{len(found.files)} file{'s' * (len(found.files) != 1)} of records",
            },
            account=_files_account(files, uri if is_folder else "", found, smaller, beside),
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
        layout = piece.source.details.get(_LAYOUT) or Layout(dict(piece.source.details["keys"]), names_by_key=names)
        beside = piece.source.details["labels"]
        labels = read_labels(files, beside) if beside else None
        for number in range(piece.start, len(told) if piece.end < 0 else piece.end):
            uri, _, split, stated = told[number]
            if labels is not None:
                stated = len(labels)
            rank = None
            if piece.source.details.get(_IN_ORDER):
                rank = partial(_rank, number, len(told), stated or _PLACES)
            yield from _RowsOfFile(files, uri, split, stated, layout, config, labels, rank).rows()


def _rank(file: int, files: int, records: int, record: int) -> int:
    """The place of a record among those of all files: even, as hashes are, where it is known how many there are."""
    return (file * _PLACES + record * _PLACES // records) // files


def in_order(source: Source) -> Source:
    """The source with its records in the order in which they lie there."""
    return replace(source, details={**source.details, _IN_ORDER: True})


def dataset_source(uri: str, found: FoundFiles) -> Source:
    """The records of a dataset of this tool as a source, in their order; convert does not take one as input."""
    assert found.facts is not None
    return in_order(
        Source(
            uri,
            TfrecordFormat.name,
            None,
            base=found.folder or folder_of(found.files[0].uri),
            labels=found.facts.vocabulary.names,
            details={
                "files": [[file.uri, file.name, file.split, file.records] for file in found.files],
                "keys": dict(found.facts.keys),
                "names": {},
                "labels": "",
                _LAYOUT: layout_of(found.facts),
            },
        )
    )


class _LabelFile(NamedTuple):
    """A file of labels for the records of another file."""

    uri: str
    records: int


def _largest(found: FoundFiles, decided: list[Decision]) -> tuple[FoundFiles, frozenset[str]]:
    """(the files without those of smaller copies of the same images, uris of those), as StyleGAN has them by size."""
    sizes: dict[str, dict[int, str]] = {}
    for file in found.files:
        told = _BY_SIZE.fullmatch(file.uri)
        if told is not None:
            sizes.setdefault(told[1], {})[int(told[2])] = file.uri
    smaller = frozenset(uri for own in sizes.values() for size, uri in own.items() if size < max(own))
    if not smaller:
        return found, smaller
    kept = tuple(file for file in found.files if file.uri not in smaller)
    names = ", ".join(name_of(file.uri) for file in kept)
    decided.append(Decision("files of the largest images", names, "the others hold smaller copies of them"))
    faults = tuple(fault for fault in found.faults if fault.code != "missing_file")
    return replace(found, files=kept, faults=faults), smaller


def _labels_beside(files: Files, found: FoundFiles) -> _LabelFile | None:
    """The labels that StyleGAN's tool writes beside a file of records: an array of NumPy, one row for each."""
    if len(found.files) != 1 or (told := _BY_SIZE.fullmatch(found.files[0].uri)) is None:
        return None
    uri = f"{told[1]}-rxx.labels"
    return _LabelFile(uri, len(read_labels(files, uri))) if files.is_file(uri) else None


def read_labels(files: Files, uri: str) -> list[str]:
    """The number of the class of each record. Raises ManifestError for what is no array of numbers or one-hot rows."""
    import numpy as np

    with readable(uri), files.open(uri) as stream:
        data = stream.read()
    try:
        array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ManifestError(f"{uri} is no array of NumPy: {error}: move it away to convert without labels") from None
    if array.ndim == 1 and array.dtype.kind in "iu":
        return [str(number) for number in array.tolist()]
    if array.ndim != 2 or not ((array == 0) | (array == 1)).all() or not (array.sum(axis=1) == 1).all():
        raise ManifestError(
            f"{uri} has not one class for each record (an array of {array.dtype} and the shape {array.shape}): move it "
            f"away to convert without labels"
        )
    return [str(number) for number in array.argmax(axis=1).tolist()]


def _are_numbers(look: Look, keys: Mapping[str, str]) -> bool:
    """Whether all labels are whole numbers without names."""
    found = [keys[name] for name in ("label", "object_label") if name in keys]
    texts = [name for name in ("label_text", "object_text") if name in keys]
    return bool(found) and not texts and all(look.dtypes.get(key) == "int64" for key in found)


def _holds_records_only(files: Files, uri: str) -> bool:
    """Whether files of records lie below a folder, beside documents and junk at most."""
    start = len(with_slash(uri))
    found = False
    for info in files.walk(uri):
        path = info.uri[start:]
        if (
            junk_part(path) is not None
            or is_data_name(path)
            or path.endswith((".pbtxt", ".idx", ".array_record", "-rxx.labels"))
        ):
            continue
        if not is_record_name(name_of(path)):
            return False
        found = True
    return found


def _files_account(
    files: Files, folder: str, found: FoundFiles, smaller: Collection[str], beside: _LabelFile | None
) -> Account:
    """What became of the files below the folder; of those that were named themselves without one."""
    told = AccountBuilder()
    own = {file.uri for file in found.files}
    uris = [info.uri for info in files.walk(folder)] if folder else sorted({*own, *smaller})
    told.find(FILES, len(uris))
    for uri in uris:
        path = uri[len(with_slash(folder)) :] if folder else uri
        if uri in own:
            told.use(FILES, RECORDS)
        elif uri in smaller:
            told.name(FILES, "smaller copies of the same images", path)
        elif beside is not None and uri == beside.uri:
            told.use(FILES, AS_LABELS)
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
    """The rows of one file of records.

    stated: how many records the metadata tell, or None. labels: of the records, where a file beside them has them.
    rank: gives the place of a record by its number, where they keep their order.
    """

    files: Files
    uri: str
    split: str
    stated: int | None
    layout: Layout
    config: ManifestConfig
    labels: Sequence[str] | None = None
    rank: Callable[[int], int] | None = None
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
            self._check_raw(view)
        except UnextractableError as error:
            code = error.problem.code if error.problem.code in REJECT_CODES else "bad_row"
            return self._reject(record.index, code, error.problem.cause)
        except ValueError as error:
            return self._reject(record.index, "damaged_record", str(error))
        self._account(found)

        def member(path: str, raw: RawPixels | None = None) -> Member:
            data = found.files[path] if raw is None else raw.data
            offset = record.offset + HEADER_SIZE + _find(record.data, data)
            name = f"{record.index}/{paths.names.get(path, path)}"
            if raw is not None:
                name += f" {layout_name(raw.order, raw.shape)}"
            method = "stored" if raw is None else RAW_PIXELS
            return Member(self.uri, (name,), offset, len(data), method, container)

        line = found.line
        del line["place"]
        line.update(parts)
        if self.rank is not None:
            line["rank"] = self.rank(record.index)
        if self.labels is not None and record.index < len(self.labels):
            line["label"] = self.labels[record.index]
        views = frames(view)
        if "frames" in line:
            line["frames"] = [
                self._picture(fields, features, paths, member)
                for fields, features in zip(line["frames"], views, strict=True)
            ]
        else:
            line = self._picture(line, view.features, paths, member)
        return Row(f"{self.uri}:{record.index}", line)

    def _check_raw(self, view: RecordView) -> None:
        """Raise UnextractableError for pixels of 16 bits, which are not read from where they lie."""
        keys = self.layout.keys
        for features in frames(view):
            is_raw = keys.get("raw") in features and keys.get("encoded") not in features
            if is_raw and raw_pixels(keys, features).dtype.itemsize > 1:
                raise UnextractableError("bad_raw", "pixels of 16 bits are not read: extract the records first")

    def _picture(
        self, fields: dict[str, Any], features: Features, paths: _PathsInFile, member: Callable[..., Member]
    ) -> dict[str, Any]:
        """The fields of a picture with the places of its bytes."""
        fields = dict(fields)
        if "image" in fields:
            path = fields["image"]
            is_raw = self.layout.keys.get("encoded") not in features
            raw = raw_pixels(self.layout.keys, features) if is_raw else None
            fields["member"] = member(path, raw)
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
        if self.config.asked_columns:
            fields["asked"] = dict(self._asked(features))
        cells = fields.pop("columns", {})
        if declared:
            fields["columns"] = {
                name: cell[0] if not declared[name].is_list and len(cell) == 1 else cell
                for name, cell in cells.items()
                if name in declared
            }
        return fields

    def _asked(self, features: Features) -> Iterator[tuple[str, Any]]:
        """(name, value) of the features that --where looks at."""
        for name in self.config.asked_columns:
            feature = features.get(name)
            if feature is not None:
                values = [cell_of(value) for value in feature.values]
                yield name, values[0] if len(values) == 1 else values

    def _parts(self, view: RecordView) -> dict[str, str]:
        """What options say that certain features are. Raises UnextractableError for one with several values."""
        parts = {}
        for name in ("split", "group"):
            key = getattr(self.config, f"{name}_column")
            values = view.features[key].values if key in view.features else ()
            if len(values) > 1:
                cause = f"--{name}_column {key} has {len(values)} values, and must have one"
                raise UnextractableError("wrong_features", cause)
            if values:
                parts[name] = str(cell_of(values[0]))
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
            elif key in self.config.asked_columns:
                self.told.use(FEATURES, "condition of --where")
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
