"""The frozen types that travel between the stages of a conversion.

A manifest yields :class:`Row`\\ s; a row becomes an :class:`Entry` (a few hundred bytes: never pixels); the entries of
one shard become records, and one :class:`ShardInfo` tells what was written. DoFns never mutate any of them.

Rows and entries come by the million: they are tuples with names, which are made and packed in a fifth of the time that
a frozen dataclass takes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, TypeVar

from beam_tfrecord.core.public_text import writable_text

Element = TypeVar("Element", bound=type)

_NOTHING: Mapping[str, Any] = {}  # what a mapping is by default; nobody changes what travels between stages


def packed_quickly(kind: Element) -> Element:
    """A decorator for small frozen dataclasses that are pickled by the million, as a call with all fields in order.

    What dataclasses do by themselves looks at each field anew for each object, both ways, and takes four times as long.
    """
    first, *others = (own.name for own in fields(kind))
    # Of a single name attrgetter gives the bare value.
    values: Callable[[Any], Any] = operator.attrgetter(first, *others) if others else lambda one: (getattr(one, first),)

    def reduce(self: Any) -> tuple[Any, tuple[Any, ...]]:
        return kind, values(self)

    type.__setattr__(kind, "__reduce__", reduce)
    return kind


class Row(NamedTuple):
    """One item as its manifest spells it.

    origin: ``file:line`` or ``archive!/member``, for people.
    fields: values by column or canonical name; text unless the format itself is typed (JSON, Parquet).
    source_rows: how many lines of the manifest made this item (one line per box: several).
    """

    origin: str
    fields: Mapping[str, Any]
    source_rows: int = 1


@packed_quickly
@dataclass(frozen=True, slots=True)
class Member:
    """Where the bytes of an archive member lie.

    archive: uri of the archive file. path: the chain of member names, outermost first (more than one when archives are
    nested). method: how the bytes are packed: ``stored``, ``zip`` for an entry of a zip archive, ``json_picture``
    for what stands as text in JSON, or ``raw_pixels`` for samples without a header. offset, length: place of the packed
    bytes; with ``zip`` the offset is that of the local header, which is parsed when the member is read.

    container: None when the offset counts in the archive file itself. Otherwise what has to be unpacked as a whole
    first, with ``gzip``, ``bzip2`` or ``xz`` as methods too (length -1: to the end of the file), and the offset counts
    in that.

    A picture that stands in a line of JSON is a member too: archive is the file, offset and length those of the line,
    the method ``json_picture``, and the last name of the path that of the key.
    """

    archive: str
    path: tuple[str, ...]
    offset: int = -1
    length: int = -1
    method: str = "stored"
    container: Member | None = None


@packed_quickly
@dataclass(frozen=True, slots=True)
class Finding:
    """Something to tell about one item: a reject, or a warning about an item that is kept.

    score: how bad it is, where there are degrees; the higher the worse. other: uri of the item that it is like.
    All its texts can be written: half of a surrogate pair, such as JSON can spell, is escaped.
    """

    origin: str
    uri: str
    stage: str
    code: str
    message: str
    score: float | None = None
    other: str = ""

    def __post_init__(self) -> None:
        for name in ("origin", "uri", "message", "other"):
            object.__setattr__(self, name, writable_text(getattr(self, name)))


@packed_quickly
@dataclass(frozen=True, slots=True)
class Frame:
    """One picture of a sequence: where its bytes are and what is annotated on it."""

    origin: str
    uri: str
    filename: str
    annotations: Mapping[str, Any] = field(default_factory=dict)
    member: Member | None = None
    stated_size: tuple[int, int] | None = None
    stated_frame: str | None = None


class Entry(NamedTuple):
    """One item to convert: pointers and annotations, never pixels.

    id: identity of the item; text. uri: where the image is, None for a table row or a sequence. filename: path as the
    manifest spells it, with forward slashes. split, group: None when not given. annotations: typed value by annotation
    kind (see :mod:`beam_tfrecord.annotations`). stated_size: (width, height) of the image as the manifest states it.
    stated_frame: ``upright`` or ``stored`` when the manifest's format says in which frame its annotations are, for
    images that EXIF turns. frames: the pictures of a sequence, in order; empty for everything else. warnings: what was
    noticed while the row was parsed. rank: place among the records of its split, 0 to 2**64 - 1, where the manifest
    fixes it; None where id and seed decide. kinds: facets that the dataset has whatever its annotations say.
    """

    id: str
    origin: str
    uri: str | None
    filename: str = ""
    split: str | None = None
    group: str | None = None
    annotations: Mapping[str, Any] = _NOTHING
    member: Member | None = None
    stated_size: tuple[int, int] | None = None
    stated_frame: str | None = None
    frames: tuple[Frame, ...] = ()
    warnings: tuple[Finding, ...] = ()
    source_rows: int = 1
    rank: int | None = None
    kinds: tuple[str, ...] = ()


@packed_quickly
@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that could not become an entry; it travels with the entries so that nothing is lost on the way.

    sequence: the sequence that the row belongs to, when it is known: without one of its rows it is no entry either.
    """

    finding: Finding
    source_rows: int = 1
    sequence: str | None = None


@packed_quickly
@dataclass(frozen=True, slots=True)
class ChosenAway:
    """Rows, and objects of rows that are kept, which an option chose away: counted in place of being carried along.

    reasons: rows by the option. source_rows: lines of the manifests that they were made of. objects: all of them. uris:
    of the images of the rows, where it matters that somebody names them. told: warnings about them.
    """

    reasons: Mapping[str, int] = field(default_factory=dict)
    source_rows: int = 0
    objects: int = 0
    uris: tuple[str, ...] = ()
    told: tuple[Finding, ...] = ()

    @property
    def rows(self) -> int:
        return sum(self.reasons.values())


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """What one written shard holds. Everything that the metadata needs, so that nothing is read back.

    path: uri of the staged shard ('' when no record was written). num_bytes: size of the file. payload_bytes: sum of
    the serialized lengths, without framing. crc32c: of the file's bytes, eight hex digits. fingerprint: of everything
    that decides the bytes, for ``--resume``. num_rows: records, rejects and rows chosen away; source_rows: lines of the
    manifests they were made of. bytes_read: of images. rejected, warnings, changed: counts by code or reason. classes:
    uses of each label. formats: records by ``format/channels/dtype``. rows_by_input: rows by the number of the input.
    statistics: of the records, as :mod:`beam_tfrecord.conversion.writing.statistics` takes them. exceptions: records by
    what is stored otherwise than the schema says (see
    :meth:`beam_tfrecord.annotations.base.AnnotationKind.exceptions`). objects: how many were ``stored``, ``dropped``,
    ``rejected`` with their row and ``excluded``. excluded: rows that were chosen away, by option. spellings: files that
    are there under another name than the one asked for, by the number of the input and how the names differ. owner:
    what the names of its staged files have in them.
    """

    split: str
    index: int
    path: str
    num_records: int
    num_bytes: int
    payload_bytes: int
    crc32c: str
    fingerprint: str
    num_rows: int = 0
    source_rows: int = 0
    bytes_read: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    excluded: Mapping[str, int] = field(default_factory=dict)
    warnings: Mapping[str, int] = field(default_factory=dict)
    changed: Mapping[str, int] = field(default_factory=dict)
    classes: Mapping[str, int] = field(default_factory=dict)
    formats: Mapping[str, int] = field(default_factory=dict)
    rows_by_input: Mapping[int, int] = field(default_factory=dict)
    statistics: Mapping[str, Any] = field(default_factory=dict)
    exceptions: Mapping[str, int] = field(default_factory=dict)
    objects: Mapping[str, int] = field(default_factory=dict)
    spellings: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    owner: str = ""


@packed_quickly
@dataclass(frozen=True, slots=True)
class WrittenShard:
    """What stays of a :class:`ShardInfo` when all of them are added up: of its own, and the same whatever it holds.

    has_file: whether there are records in a staged file of the planned writer. has_rejects, has_warnings: whether a
    sidecar tells of some. The rest is as in the info.
    """

    split: str
    index: int
    owner: str
    has_file: bool
    has_rejects: bool
    has_warnings: bool
    num_records: int
    num_bytes: int
    payload_bytes: int
    crc32c: str

    @property
    def key(self) -> tuple[str, int]:
        return self.split, self.index
