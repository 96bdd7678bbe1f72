"""From an entry to the bytes of a record: the per-item work, a function of the entry and the bytes it points to."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from beam_tfrecord.annotations import KINDS, kinds_of
from beam_tfrecord.annotations.base import (
    AnnotationKind,
    Feature,
    FeatureSpec,
    Placement,
    Schema,
    Vocabulary,
    annotation_is_upright,
)
from beam_tfrecord.conversion.writing.image_features import ImageFeatures, digest_of, image_format, image_specs
from beam_tfrecord.conversion.writing.looking import Looking, looking_for
from beam_tfrecord.conversion.writing.statistics import ImageFacts
from beam_tfrecord.conversion.writing.timing import WorkTimes
from beam_tfrecord.core.elements import Entry, Finding, Frame, Member
from beam_tfrecord.errors import ElementError, RowError, nearest
from beam_tfrecord.images import convert_frames, convert_image, place_mask
from beam_tfrecord.images.stored import StoredImage
from beam_tfrecord.images.sums import ChannelSums
from beam_tfrecord.insight.boxes import BoxCounts, count_boxes
from beam_tfrecord.manifests.text.spelling import Find, as_spelled
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.tfrecord.example import encode_example, encode_sequence_example

STAGE = "encode"
Read = Callable[[str, Member | None], bytes]


class EncodedRecord(NamedTuple):
    """A serialized record and what there is to tell about it.

    data: of a tf.train.Example or SequenceExample. content: eight bytes that tell the stored images from others, empty
    for a table row. labels: every use of a label. changed, warnings: as in StoredImage, but with the item named.
    image_format: ``format/channels/dtype`` of each image. bytes_read: of images. facts: of each stored image.
    exceptions: facets of what is stored otherwise than the schema says, each once. stored, dropped: objects in
    the record, and those left out of it. spellings: how the names of files that were read differ from those asked for.
    grid, boxes: of its first picture, where they are looked at; sums: of those that were decoded in full.
    """

    data: bytes
    content: bytes = b""
    labels: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    warnings: tuple[Finding, ...] = ()
    image_formats: tuple[str, ...] = ()
    bytes_read: int = 0
    facts: tuple[ImageFacts, ...] = ()
    exceptions: tuple[str, ...] = ()
    stored: int = 0
    dropped: int = 0
    spellings: tuple[str, ...] = ()
    grid: bytes | None = None
    sums: tuple[ChannelSums, ...] = ()
    boxes: BoxCounts = BoxCounts()


@dataclass(slots=True)
class _Notes:
    """What is gathered while one record is made."""

    labels: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    formats: list[str] = field(default_factory=list)
    facts: list[ImageFacts] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    bytes_read: int = 0
    exceptions: set[str] = field(default_factory=set)
    stored: int = 0
    dropped: int = 0
    spellings: list[str] = field(default_factory=list)
    grid: bytes | None = None
    sums: list[ChannelSums] = field(default_factory=list)
    boxes: BoxCounts | None = None
    times: WorkTimes = field(default_factory=WorkTimes)


@dataclass(frozen=True)
class RecordEncoder:
    """Makes records of one dataset.

    read: the bytes of a file or archive member; raises ElementError. find: a file under another spelling; raises
    ElementError. Calls from several threads are fine.
    """

    schema: Schema
    config: ConvertConfig
    read: Read
    find: Find = as_spelled
    looking: Looking | None = None
    _of_record: Sequence[AnnotationKind[Any]] = field(init=False, repr=False)
    _of_frame: Sequence[AnnotationKind[Any]] = field(init=False, repr=False)
    _make_image_features: ImageFeatures = field(init=False, repr=False)
    _placeless: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        of_record, of_frame = split_kinds(self.schema) if self.schema.is_sequence else (kinds_of(self.schema), [])
        object.__setattr__(self, "_of_record", of_record)
        object.__setattr__(self, "_of_frame", of_frame)
        object.__setattr__(self, "_make_image_features", ImageFeatures(self.schema))
        placeless = frozenset(name for name, kind in KINDS.items() if not kind.has_place())
        object.__setattr__(self, "_placeless", placeless)
        object.__setattr__(self, "looking", self.looking or looking_for(self.config))

    def encode(self, entry: Entry, occurrence: int = 0, times: WorkTimes | None = None) -> EncodedRecord:
        """The record of an entry. Raises ElementError.

        occurrence: 0 for the first entry of an id, 1 for its first copy ...; it makes the source id of a copy distinct.
        times: the time that it took is added there.
        """
        started = time.perf_counter_ns()
        notes = _Notes(warnings=list(entry.warnings), times=WorkTimes() if times is None else times)
        before = notes.times.read + notes.times.decode
        try:
            return self._encoded(entry, occurrence, notes)
        finally:
            spent = notes.times.read + notes.times.decode - before
            notes.times.encode += time.perf_counter_ns() - started - spent

    def _encoded(self, entry: Entry, occurrence: int, notes: _Notes) -> EncodedRecord:
        source_id = entry.id if occurrence == 0 else f"{entry.id}#{occurrence}"
        if self.schema.is_sequence:
            data = self._sequence(entry, source_id, notes)
        else:
            data = encode_example(self._example(entry, source_id, notes))
        return EncodedRecord(
            data=data,
            content=_content(notes.digests),
            labels=tuple(notes.labels),
            changed=tuple(notes.changed),
            warnings=tuple(notes.warnings),
            image_formats=tuple(notes.formats),
            bytes_read=notes.bytes_read,
            facts=tuple(notes.facts),
            exceptions=tuple(sorted(notes.exceptions)),
            stored=notes.stored,
            dropped=notes.dropped,
            spellings=tuple(notes.spellings),
            grid=notes.grid,
            sums=tuple(notes.sums),
            boxes=notes.boxes or BoxCounts(),
        )

    # -----------------------------------------------------------------------------------------------------------------

    def _example(self, entry: Entry, source_id: str, notes: _Notes) -> dict[str, Feature]:
        features = self._identity(source_id)
        annotations = entry.annotations
        if entry.uri is not None:
            data = self._read(entry.uri, entry.member, notes)
            image = self._converted(data, notes)
            features.update(self._image_features(image, entry, notes))
            annotations = self._placed(annotations, image, entry, notes)
        self._check_labels(annotations, notes)
        for kind in self._of_record:
            features.update(kind.features(annotations.get(kind.name), self.schema))
        return features

    def _sequence(self, entry: Entry, source_id: str, notes: _Notes) -> bytes:
        """A SequenceExample: the label in the context, one value per frame in the feature lists."""
        context = self._identity(source_id)
        rows: list[dict[str, Feature]] = []
        for frame in entry.frames or (_frame_of(entry),):
            rows.extend(self._frame_rows(frame, notes))
        self._check_labels(entry.annotations, notes)
        for kind in self._of_record:
            context.update(kind.features(entry.annotations.get(kind.name), self.schema))
        lists = {key: [row[key] for row in rows] for key in rows[0]}
        return encode_sequence_example(context, lists)

    def _frame_rows(self, frame: Frame, notes: _Notes) -> Iterable[dict[str, Feature]]:
        """Features of each stored picture of a frame: several when an animated image is taken apart."""
        data = self._read(frame.uri, frame.member, notes)
        animated = self.config.images.animated == "sequence"
        images = convert_frames(data, self.config.images) if animated else (self._converted(data, notes),)
        for image in images:
            features = self._image_features(image, frame, notes)
            annotations = self._placed(frame.annotations, image, frame, notes)
            self._check_labels({kind.name: annotations.get(kind.name) for kind in self._of_frame}, notes)
            for kind in self._of_frame:
                features.update(kind.features(annotations.get(kind.name), self.schema))
            yield features

    # -----------------------------------------------------------------------------------------------------------------

    def _read(self, uri: str, member: Member | None, notes: _Notes) -> bytes:
        started = time.perf_counter_ns()
        try:
            data, spelling = read_named(self.read, self.find, uri, member)
        finally:
            notes.times.read += time.perf_counter_ns() - started
        notes.bytes_read += len(data)
        if spelling:
            notes.spellings.append(spelling)
        return data

    def _converted(self, data: bytes, notes: _Notes) -> StoredImage:
        started = time.perf_counter_ns()
        try:
            return convert_image(data, self.config.images)
        finally:
            notes.times.decode += time.perf_counter_ns() - started

    def _identity(self, source_id: str) -> dict[str, Feature]:
        return {self.schema.keys["source_id"]: Feature("bytes", (source_id.encode("utf-8", "surrogateescape"),))}

    def _image_features(self, image: StoredImage, item: Entry | Frame, notes: _Notes) -> dict[str, Feature]:
        sha256 = digest_of(image)
        notes.digests.append(sha256)
        assert self.looking is not None
        seen = self.looking.at(image, sha256)
        if not notes.facts:
            notes.grid = seen.grid
        if seen.sums is not None:
            notes.sums.append(seen.sums)
        notes.changed.extend(image.changed)
        notes.formats.append(image_format(image))
        notes.facts.append(ImageFacts(image.width, image.height, len(image.data)))
        for code, message in image.warnings:
            notes.warnings.append(Finding(item.origin, item.uri or "", "image", code, message))
        return self._make_image_features(image, item.filename, sha256)

    def _placed(
        self, annotations: Mapping[str, Any], image: StoredImage, item: Entry | Frame, notes: _Notes
    ) -> dict[str, Any]:
        """The annotations in the frame of the stored image."""
        if self._placeless.issuperset(annotations):
            return dict(annotations)
        uri = item.uri or ""

        def warn(code: str, message: str) -> None:
            notes.warnings.append(Finding(item.origin, uri, "annotate", code, message))

        is_upright, is_ambiguous = annotation_is_upright(
            item.stated_size, image.frame, self.config.features.box_frame, item.stated_frame
        )
        placement = Placement(
            frame=image.frame,
            config=self.config,
            read=lambda place, member: self._read(place, member, notes),
            warn=warn,
            size=item.stated_size,
            is_upright=is_upright,
            is_ambiguous=is_ambiguous,
            place_mask=place_mask,
        )
        placed = {name: KINDS[name].place(value, placement) for name, value in annotations.items()}
        for name, value in placed.items():
            notes.exceptions.update(KINDS[name].exceptions(value, self.schema))
        if "boxes" in placed:
            notes.facts[-1] = notes.facts[-1]._replace(box_areas=placed["boxes"].areas)
            if notes.boxes is None:
                objects = [own for own in placed["boxes"].objects if own.box is not None]
                names = [own.name for own in objects]
                notes.boxes = count_boxes([own.box for own in objects], names, (image.width, image.height))
            stored = len(placed["boxes"].objects)
            notes.stored += stored
            notes.dropped += len(annotations["boxes"].objects) - stored
        return placed

    def _check_labels(self, annotations: Mapping[str, Any], notes: _Notes) -> None:
        for name, value in annotations.items():
            if value is not None:
                labels = tuple(KINDS[name].labels(value))
                check_labels(labels, self.schema.vocabulary)
                notes.labels += labels


def read_named(read: Read, find: Find, uri: str, member: Member | None) -> tuple[bytes, str]:
    """The bytes of a file or archive member, and how its name differs from that of the uri ('': not at all).

    Raises what ``read`` and ``find`` raise.
    """
    try:
        return read(uri, member), ""
    except ElementError as error:
        found = find(uri) if error.code == "missing_file" and member is None else None
        if found is None:
            raise
    return read(found.uri, None), found.how


def check_labels(labels: Iterable[str], vocabulary: Vocabulary) -> None:
    """Raise RowError for a label that the vocabulary has not."""
    for label in labels:
        if label not in vocabulary:
            cure = nearest(label, vocabulary.names) or _numbers_named(label, vocabulary)
            raise RowError("unknown_label", f"the label {label!r} is not in the vocabulary{cure}")


def _numbers_named(label: str, vocabulary: Vocabulary) -> str:
    """How numbers that may be ids of names become these: they are not taken for ids, since what they count from is not
    told."""
    if not label.isdecimal() or any(name.isdecimal() for name in vocabulary.names):
        return ""
    return (
        ", which holds names and no numbers; where the numbers stand for names, say for which: --map_labels "
        f"{label}=NAME,..."
    )


def _content(digests: Sequence[str]) -> bytes:
    """Of the digests of the images of a record, in hex."""
    if len(digests) == 1:
        return bytes.fromhex(digests[0][:16])
    return hashlib.sha256("".join(digests).encode()).digest()[:8] if digests else b""


def _frame_of(entry: Entry) -> Frame:
    """A single image as the only frame of a sequence."""
    annotations = {name: value for name, value in entry.annotations.items() if not KINDS[name].of_whole}
    return Frame(
        entry.origin,
        entry.uri or "",
        entry.filename,
        annotations,
        entry.member,
        entry.stated_size,
        entry.stated_frame,
    )


def split_kinds(schema: Schema) -> tuple[list[AnnotationKind[Any]], list[AnnotationKind[Any]]]:
    """(kinds of the context, kinds of each frame) of a sequence: labels belong to the whole."""
    kinds = kinds_of(schema)
    return [kind for kind in kinds if kind.of_whole], [kind for kind in kinds if not kind.of_whole]


def record_specs(schema: Schema, image_formats: Iterable[str], exceptions: Iterable[str] = ()) -> list[FeatureSpec]:
    """The types of exactly the features that the records of a dataset have, sorted by key.

    image_formats: every ``format/channels/dtype`` that was written. exceptions: facets of whatever was stored otherwise
    than the schema says.
    """
    schema = replace(schema, kinds=tuple(sorted({*schema.kinds, *exceptions})))
    specs = [FeatureSpec(schema.keys["source_id"], "bytes", (), "text", description="id of the item")]
    if schema.has_images:
        specs += [replace(spec, in_sequence=schema.is_sequence) for spec in image_specs(schema, image_formats)]
    of_record, of_frame = split_kinds(schema) if schema.is_sequence else (kinds_of(schema), [])
    specs += [spec for kind in of_record for spec in kind.spec(schema)]
    specs += [replace(spec, in_sequence=True) for kind in of_frame for spec in kind.spec(schema)]
    return sorted(specs, key=lambda spec: spec.key)
