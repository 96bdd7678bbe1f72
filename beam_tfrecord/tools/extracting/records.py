"""One record to a line of the manifest, and to the files that the line names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.annotations.keys import column_name
from beam_tfrecord.annotations.label import NO_LABEL
from beam_tfrecord.core.account import NO_ACCOUNT, Account, AccountBuilder
from beam_tfrecord.datasets.record_view import SEQUENCE_EXAMPLE, RecordView, frames
from beam_tfrecord.datasets.tfds_info import LabelNames
from beam_tfrecord.tools.extracting.layout import DERIVED_FACTS, MADE_ANEW, Layout, guessed_layout
from beam_tfrecord.tools.extracting.objects import objects_of, segments_of
from beam_tfrecord.tools.extracting.paths import ImagePaths, mask_path
from beam_tfrecord.tools.extracting.pictures import has_picture, picture_of, suffix_of
from beam_tfrecord.tools.extracting.values import (
    Features,
    UnextractableError,
    cell_of,
    needed,
    optional_text,
    text_of_bytes,
    values_of,
)
from beam_tfrecord.tools.verifying.agreement import NOTHING_TOLD, LabelId, Told, names_of_ids, told_by
from beam_tfrecord.tools.verifying.records import check_steps

FEATURES, RECORDS = "features", "records"  # kinds of things in an account
WITHOUT_VALUE = "without a value"
_MASK_FILES = (("semantic_mask", "mask", "semantic"), ("instance_map", "instance_mask", "instance"))


class Place(NamedTuple):
    """Where a record is: the shard of its split, how many shards that has, and the number of the record, from 0.

    stem: begins the name of an image that has none. split: '' when nothing tells.
    """

    shard: int
    shards: int
    record: int
    split: str
    stem: str


@dataclass
class ExtractedRecord:
    """What becomes of a record.

    line: the object of the manifest. files: contents by path below the output. told: by a record
    from elsewhere, to be compared with the others. columns: (key,
    dtype, number of values) of each undeclared column. left_out: why, by key of a feature whose values no manifest can
    hold. keys: of a record that nothing tells of. account: of the features, but for undeclared columns, which all
    records together decide.
    """

    line: dict[str, Any] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    told: Told = NOTHING_TOLD
    columns: list[tuple[str, str, int]] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    keys: frozenset[str] = frozenset()
    account: Account = NO_ACCOUNT
    has_image: bool = False


def picture_names(view: RecordView, layout: Layout | None, place: Place) -> list[tuple[str, bytes]]:
    """(path that the record tells, bytes) of each image of a record. Raises UnextractableError."""
    known = layout or guessed_layout(dtypes_of(view))
    found = []
    for number, features in enumerate(frames(view)):
        if has_picture(known.keys, features):
            data = picture_of(known.keys, features)
            found.append((_filename(known, features, place, number, view, data), data))
    return found


def dtypes_of(view: RecordView) -> dict[str, str]:
    """dtype of each feature; of a feature list that of its first step."""
    steps = {key: values[0].dtype for key, values in view.steps.items() if values}
    return {**steps, **{key: feature.dtype for key, feature in view.features.items()}}


def _filename(layout: Layout, features: Features, place: Place, number: int, view: RecordView, data: bytes) -> str:
    told = optional_text(features, layout.keys.get("filename"))
    if told is not None and (told or layout.is_known):
        return told
    step = f"-{number:04d}" if view.message == SEQUENCE_EXAMPLE else ""
    return f"{place.stem}/{place.record:06d}{step}{suffix_of(data)}"


class RecordExtractor:
    """Extracts the records of one dataset.

    layout: what is known; None to guess it from each record. paths: of the images. names_by_key: names of ids that
    files beside records from elsewhere tell; told_names: that all records together tell.
    """

    def __init__(
        self,
        layout: Layout | None,
        paths: ImagePaths,
        names_by_key: LabelNames | None = None,
        told_names: Mapping[LabelId, str] | None = None,
    ) -> None:
        self._layout = layout
        self._paths = paths
        self._names_by_key = names_by_key
        self._told_names = told_names or {}

    @property
    def is_guessing(self) -> bool:
        """Whether nothing tells of the records."""
        return self._layout is None

    @property
    def kinds(self) -> tuple[str, ...]:
        """Facets that the first line of a file must tell."""
        return self._layout.kinds if self._layout is not None else ()

    def extract(self, view: RecordView, place: Place) -> ExtractedRecord:
        """The line and the files of a record. Raises UnextractableError, which says what is wrong with it."""
        if self._layout is not None:
            return _Extraction(self._layout, self._paths, view, place).run()
        dtypes = dtypes_of(view)
        layout = guessed_layout(dtypes, self._names_by_key)
        found = _Extraction(layout, self._paths, view, place, self._told_names).run()
        found.keys = frozenset(dtypes)
        found.told = told_by(view, layout.keys, layout.names_by_key)
        return found


def labels_told_by(view: RecordView, names_by_key: LabelNames) -> Told:
    """What a record that nothing else tells of has to say; see :func:`told_by`."""
    layout = guessed_layout(dtypes_of(view), names_by_key)
    return told_by(view, layout.keys, layout.names_by_key)


@dataclass
class _Extraction:
    """One record under way."""

    layout: Layout
    paths: ImagePaths
    view: RecordView
    place: Place
    told_names: Mapping[LabelId, str] = field(default_factory=dict)
    found: ExtractedRecord = field(default_factory=ExtractedRecord)
    kept: set[str] = field(default_factory=lambda: set(DERIVED_FACTS))  # logical names

    def run(self) -> ExtractedRecord:
        line, view, place = self.found.line, self.view, self.place
        line["place"] = [place.shard, place.shards, place.record]
        if place.split:
            line["split"] = place.split
        source_id = self._source_id()
        if source_id is not None:
            line["id"] = source_id
        if view.message == SEQUENCE_EXAMPLE:
            line.setdefault("id", f"{place.stem}-{place.record:06d}")
            self._label(view.features)
            pictures = frames(view)
            if not pictures:
                raise UnextractableError("wrong_features", "the sequence has no steps")
            for problem in check_steps(view.steps, partial=not self.layout.is_known):
                raise UnextractableError(*problem)
            line["frames"] = [self._picture(features, number) for number, features in enumerate(pictures)]
            if not self.found.has_image:
                raise UnextractableError("wrong_features", "a sequence without images has no manifest that makes it")
            without = [number for number, frame in enumerate(line["frames"]) if "image" not in frame]
            if without:
                raise UnextractableError("wrong_features", f"step {without[0]} has no image, but others have")
            for key in [] if self.layout.is_known else self.layout.further_keys(view.features):
                self._leave_out(key, view.features, "it belongs to a whole sequence, and columns to its steps")
        else:
            line.update(self._picture(view.features, 0))
            self._label(view.features)
        if not self.layout.is_known:
            self._tell_what_is_lost()
        self.found.account = self._account()
        return self.found

    def _account(self) -> Account:
        """What became of each feature (of a sequence: of each of the context and of each step).

        Found is what the message holds; used is what was taken from it.
        """
        builder, view, keys = AccountBuilder(), self.view, self.layout.keys
        builder.find(FEATURES, len(view.features) + sum(map(len, view.steps.values())))
        anew = {key for name, key in keys.items() if name in MADE_ANEW}
        kept = {key for name, key in keys.items() if name in self.kept} - anew
        columns = {name for name, _, _ in self.found.columns}
        steps = [(key, feature) for key, features in view.steps.items() for feature in features]
        for key, feature in [*view.features.items(), *steps]:
            if key in self.found.left_out:
                builder.name(FEATURES, self.found.left_out[key], key)
            elif key in anew:
                builder.use(FEATURES, "made anew")
            elif key in kept:
                builder.use(FEATURES, "kept")
            elif not feature.values and key not in columns:
                builder.name(FEATURES, WITHOUT_VALUE, key)
            elif self.layout.is_known:
                builder.name(FEATURES, "of a kind that is not known here", key)
        return builder.account()

    def _leave_out(self, key: str, features: Features, why: str) -> None:
        if key in features and features[key].values:
            self.found.left_out.setdefault(key, why)

    def _tell_what_is_lost(self) -> None:
        """Features with a known meaning that nothing was made of."""
        every = [self.view.features, *(frames(self.view) if self.view.message == SEQUENCE_EXAMPLE else [])]
        for name, key in self.layout.keys.items():
            if name not in self.kept:
                for features in every:
                    self._leave_out(key, features, "what it means cannot be told from the other features")

    def _source_id(self) -> str | None:
        key = self.layout.keys.get("source_id")
        if self.layout.is_known:
            self.kept.add("source_id")
            told: bytes = needed(self.view.features, key or "image/source_id", "bytes", 1)[0]
            return text_of_bytes(told)
        feature = self.view.features.get(key or "")
        if feature is None or len(feature.values) != 1 or feature.values[0] == b"":
            if feature is not None and list(feature.values) == [b""]:
                self.kept.add("source_id")  # a record without an id
            return None
        self.kept.add("source_id")
        value = feature.values[0]
        return text_of_bytes(value) if isinstance(value, bytes) else str(value)

    def _picture(self, features: Features, number: int) -> dict[str, Any]:
        """The fields that belong to one picture (or table row)."""
        layout, fields = self.layout, dict[str, Any]()
        if has_picture(layout.keys, features):
            data = picture_of(layout.keys, features)
            if not data:
                raise UnextractableError("bad_image", "the image has no bytes")
            self.kept |= {"encoded", "raw"}
            if optional_text(features, layout.keys.get("filename")) is not None:
                self.kept.add("filename")
            filename = _filename(layout, features, self.place, number, self.view, data)
            path = self.paths.path_of(filename, data, suffix_of(data))
            self.found.files[path] = data
            self.found.has_image = True
            fields["image"] = path
            fields["filename"] = filename
        elif layout.is_known and ("encoded" in layout.keys or "raw" in layout.keys):
            raise UnextractableError("wrong_features", "the record has no image")
        objects = objects_of(
            features,
            layout.keys,
            lambda ids, texts: self._names(features, ids, texts),
            None if layout.is_known else lambda key, why: self._leave_out(key, features, why),
        )
        if objects is not None:
            fields["boxes"] = objects
            self.kept |= {name for name in layout.keys if name.startswith(("bbox", "object_", "keypoint_"))}
        self._masks(features, fields)
        captions = values_of(features, layout.keys.get("captions"), "bytes")
        if captions is not None:
            self.kept.add("captions")
            fields["captions"] = [text_of_bytes(caption) for caption in captions]
        columns = self._columns(features)
        if columns:
            fields["columns"] = columns
        return fields

    def _masks(self, features: Features, fields: dict[str, Any]) -> None:
        keys = self.layout.keys
        for name, field_name, folder in _MASK_FILES:
            values = values_of(features, keys.get(name), "bytes", 1)
            if values is not None:
                self.kept |= {name, f"{name}_format"}
                fields[field_name] = self._mask_file(folder, values[0])
        if keys.get("panoptic_instance_mask") in features:
            mask = needed(features, keys["panoptic_instance_mask"], "bytes", 1)[0]
            segments = segments_of(features, keys, lambda ids, texts: self._names(features, ids, texts))
            self.kept |= {name for name in keys if name.startswith("panoptic_")}
            fields["panoptic"] = {"mask": self._mask_file("panoptic", mask), "segments": segments}

    def _mask_file(self, folder: str, data: bytes) -> str:
        """Path of the file of a mask; '' for a picture without one."""
        if not data:
            return ""
        path = mask_path(folder, data)
        self.found.files[path] = data
        return path

    # -----------------------------------------------------------------------------------------------------------------
    # Labels

    def _label(self, features: Features) -> None:
        names = self._names(features, "label", "label_text")
        if names is None:
            return
        self.kept |= {"label", "label_text", "label_one_hot"}
        if self.layout.is_multi_label or (not self.layout.is_known and len(names) != 1):
            self.found.line["label"] = names
        elif len(names) != 1:
            raise UnextractableError("wrong_features", f"{len(names)} labels where there must be one")
        elif names[0]:
            self.found.line["label"] = names[0]

    def _names(self, features: Features, ids_name: str, texts_name: str) -> list[str] | None:
        """Names of classes; '' for the id of no label. None when there are none."""
        key = self.layout.keys.get(ids_name)
        known = self.layout.label_names
        if known is not None:
            ids = values_of(features, key, "int64")
            if ids is None:
                return None
            is_single = ids_name == "label" and not self.layout.is_multi_label
            return [self._name(number, known, is_single) for number in ids]
        return self._told_names(features, ids_name, key, self.layout.keys.get(texts_name))

    @staticmethod
    def _name(number: int, known: Mapping[int, str], is_single: bool) -> str:
        if number in known:
            return known[number]
        if is_single and number == NO_LABEL:
            return ""
        raise UnextractableError("bad_label", f"the label id {number} is not in the vocabulary")

    def _told_names(
        self, features: Features, ids_name: str, ids_key: str | None, texts_key: str | None
    ) -> list[str] | None:
        """Names as a record from elsewhere tells them, a file beside it, or other records; else ids as numbers."""
        ids = _feature(features, ids_key, "int64")
        texts = _feature(features, texts_key, "bytes") or _feature(features, ids_key, "bytes")
        if ids is None:
            return None if texts is None else [text_of_bytes(text).strip() for text in texts]
        if texts and len(texts) != len(ids):
            raise UnextractableError("uneven_lists", f"{ids_key} has {len(ids)} ids, but there are {len(texts)} names")
        own = list(names_of_ids(ids, texts or ()))
        listed = self.layout.names_by_key.get(ids_key or "")
        if listed is not None and not all(name for _, name in own):
            known = dict(enumerate(listed))
            is_single = ids_name == "label" and len(ids) == 1
            return [name or self._name(number, known, is_single) for number, name in own]
        return [name or self._name_elsewhere(ids_name, number) for number, name in own]

    def _name_elsewhere(self, ids_name: str, number: int) -> str:
        """The name of an id that its own record does not name."""
        return "" if number == NO_LABEL else self.told_names.get((ids_name, number), str(number))

    # -----------------------------------------------------------------------------------------------------------------
    # Columns

    def _columns(self, features: Features) -> dict[str, Any]:
        if self.layout.columns is None:
            return self._undeclared_columns(features)
        cells: dict[str, Any] = {}
        for column in self.layout.columns:
            dtype = "bytes" if column.type in ("string", "bytes") else column.type
            key = self.layout.keys[column_name(column)]
            values = needed(features, key, dtype, None if column.is_list else 1)
            self.kept.add(column_name(column))
            cells[column.name] = [cell_of(value) for value in values] if column.is_list else cell_of(values[0])
        return cells

    def _undeclared_columns(self, features: Features) -> dict[str, Any]:
        cells = {}
        for key in self.layout.further_keys(features):
            feature = features[key]
            cells[key] = [cell_of(value) for value in feature.values]
            self.found.columns.append((key, feature.dtype, len(feature.values)))
        return cells


def _feature(features: Features, key: str | None, dtype: str) -> list[Any] | None:
    """The values of a feature of that type; None when there is none."""
    feature: Feature | None = features.get(key) if key is not None else None
    return list(feature.values) if feature is not None and feature.dtype == dtype else None
