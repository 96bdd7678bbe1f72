"""Records of a picture and what the picture cannot change, put together from ready-made pieces.

Most datasets hold one picture to a record, with labels, captions or columns beside it. What such a record consists of
is decided by the schema alone: which bytes are the same in all of them, which in all pictures of one size and format,
and which for each use of a label. Those are made once, and a record is one join of them and of its own few bytes. The
bytes are those of :class:`~beam_tfrecord.conversion.writing.records.RecordEncoder`, which makes all other records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from beam_tfrecord.annotations import kinds_of
from beam_tfrecord.annotations.base import AnnotationKind, Feature, Schema
from beam_tfrecord.annotations.captions import CaptionsKind
from beam_tfrecord.annotations.columns import ColumnsKind
from beam_tfrecord.annotations.label import Label, LabelKind
from beam_tfrecord.conversion.writing.image_features import (
    ImageKind,
    image_feature_names,
    image_format,
    shared_features,
)
from beam_tfrecord.conversion.writing.records import check_labels
from beam_tfrecord.images.stored import StoredImage
from beam_tfrecord.tfrecord.example import bytes_head, example_head, feature_entry

_PLAIN_KINDS = (LabelKind, CaptionsKind, ColumnsKind)  # of which the picture changes nothing
_KEPT = 4096  # kinds of pictures, and sets of labels, whose pieces are kept
_SHA256_DIGITS = 64
_OWN = frozenset({"raw", "encoded", "filename", "sha256"})  # of each picture

Pieces = tuple[tuple[int, bytes], ...]  # with their places in a record


def is_plain(schema: Schema) -> bool:
    """Whether the records of a dataset can be made by :class:`PlainRecords`."""
    if not schema.has_images or schema.is_sequence:
        return False
    kinds = kinds_of(schema)
    keys = [schema.keys["source_id"], *(schema.keys[name] for name in image_feature_names(schema))]
    keys += [spec.key for kind in kinds for spec in kind.spec(schema)]
    return all(type(kind) in _PLAIN_KINDS for kind in kinds) and len(set(keys)) == len(keys)


class PlainRecords:
    """Makes the records of one dataset, for which :func:`is_plain` holds."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        names = image_feature_names(schema)
        kinds = kinds_of(schema)
        self._label = next((kind for kind in kinds if type(kind) is LabelKind), None)
        self._others: list[AnnotationKind[Any]] = [kind for kind in kinds if type(kind) is not LabelKind]
        own: dict[str, str] = {
            schema.keys[name]: name for name in ("raw", "encoded", "filename", "sha256") if name in names
        }
        own[schema.keys["source_id"]] = "source_id"
        keys = {schema.keys[name] for name in names} | {spec.key for kind in kinds for spec in kind.spec(schema)}
        # The first piece is the head of the record. What is made for each record has a head of its own and takes two.
        self._places: dict[str, int] = {}
        self._own: dict[str, tuple[str, int]] = {}
        place = 1
        for key in sorted(keys | own.keys()):
            self._places[key] = place
            if key in own:
                self._own[own[key]] = (key, place)
                place += 1
            place += 1
        self._template = [b""] * place
        self._size = 0
        if "sha256" in self._own:
            key, place = self._own["sha256"]
            self._template[place] = bytes_head(key, _SHA256_DIGITS)
            self._size = len(self._template[place]) + _SHA256_DIGITS
        self._of_kind: dict[tuple[Any, ...], tuple[list[bytes], int]] = {}
        self._of_labels: dict[tuple[str, ...], tuple[Pieces, int]] = {}
        self._of_alike: dict[tuple[Any, ...], tuple[list[bytes], int, str]] = {}
        self._data = self._own["raw" if schema.raw else "encoded"]
        self._filename = self._own.get("filename")
        self._source_id = self._own["source_id"]
        self._sha256 = self._own["sha256"][1] + 1 if "sha256" in self._own else 0

    def make(
        self, image: StoredImage, filename: str, source_id: str, sha256: str, annotations: Mapping[str, Any]
    ) -> tuple[bytes, tuple[str, ...], str]:
        """A record, every use of a label in it, and ``format/channels/dtype`` of its image.

        annotations: as entries are packed. Raises ElementError.
        """
        names: tuple[str, ...] = annotations["label"][0] if self._label is not None and "label" in annotations else ()
        alike = (*image[1:6], names)
        shared, size, shown = self._of_alike.get(alike) or self._alike_pieces(image, names, alike)
        pieces = shared.copy()
        key, place = self._data
        data = image[0]
        pieces[place] = head = bytes_head(key, len(data))
        pieces[place + 1] = data
        size += len(head) + len(data)
        text = source_id.encode("utf-8", "surrogateescape")
        key, place = self._source_id
        pieces[place] = head = bytes_head(key, len(text))
        pieces[place + 1] = text
        size += len(head) + len(text)
        if self._filename is not None:
            if filename != source_id:
                text = filename.encode("utf-8", "surrogateescape")
            key, place = self._filename
            pieces[place] = head = bytes_head(key, len(text))
            pieces[place + 1] = text
            size += len(head) + len(text)
        if self._sha256:
            pieces[self._sha256] = sha256.encode()
        for other in self._others:
            packed = annotations.get(other.name)
            value = None if packed is None else other.unpack(packed)
            for place, piece in self._entries(other.features(value, self._schema)):
                pieces[place] = piece
                size += len(piece)
        pieces[0] = example_head(size)
        return b"".join(pieces), names, shown

    def _entries(self, features: Mapping[str, Feature]) -> Iterable[tuple[int, bytes]]:
        return [(self._places[key], feature_entry(key, feature)) for key, feature in features.items()]

    def _alike_pieces(
        self, image: StoredImage, names: tuple[str, ...], alike: tuple[Any, ...]
    ) -> tuple[list[bytes], int, str]:
        """All pieces of a record that pictures of one kind with these labels share, their size, and the kind as it is
        counted. Raises RowError for an unknown label."""
        kind = image[1:6]
        shared, size = self._of_kind.get(kind) or self._kind_pieces(ImageKind._make(kind))
        pieces = shared.copy()
        if self._label is not None:
            labels, more = self._of_labels.get(names) or self._label_pieces(names)
            size += more
            for place, piece in labels:
                pieces[place] = piece
        found = pieces, size, image_format(image)
        if len(self._of_alike) < _KEPT:
            self._of_alike[alike] = found
        return found

    def _kind_pieces(self, kind: ImageKind) -> tuple[list[bytes], int]:
        """All pieces of a record that pictures of one kind share, and their size."""
        pieces, size = self._template.copy(), self._size
        for place, piece in self._entries(shared_features(self._schema, kind)):
            pieces[place] = piece
            size += len(piece)
        if len(self._of_kind) < _KEPT:
            self._of_kind[kind] = pieces, size
        return pieces, size

    def _label_pieces(self, names: tuple[str, ...]) -> tuple[Pieces, int]:
        """The pieces that records with these labels share, and their size. Raises RowError for an unknown label."""
        assert self._label is not None
        check_labels(names, self._schema.vocabulary)
        pieces = tuple(self._entries(self._label.features(Label(names), self._schema)))
        size = sum(len(piece) for _, piece in pieces)
        if len(self._of_labels) < _KEPT:
            self._of_labels[names] = pieces, size
        return pieces, size
