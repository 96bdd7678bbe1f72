"""One record to a line of the manifest, and to the files that the line names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.annotations.keys import column_name
from beam_tfrecord.annotations.label import NO_LABEL
from beam_tfrecord.datasets.record_view import SEQUENCE_EXAMPLE, RecordView, frames
from beam_tfrecord.tools.extracting.layout import Layout, guessed_layout
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

    line: the object of the manifest. files: contents by path below the output. labels: names by id, where the records
    themselves are all that tells. columns: (dtype, number of values) of each undeclared column. left_out: keys that no
    manifest can hold. keys: of a record that nothing tells of.
    """

    line: dict[str, Any] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    labels: dict[int, str] = field(default_factory=dict)
    columns: list[tuple[str, str, int]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    keys: frozenset[str] = frozenset()
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

    layout: what is known; None to guess it from each record. paths: of the images.
    """

    def __init__(self, layout: Layout | None, paths: ImagePaths) -> None:
        self._layout = layout
        self._paths = paths

    @property
    def kinds(self) -> tuple[str, ...]:
        """Facets that the first line of a file must tell."""
        return self._layout.kinds if self._layout is not None else ()

    def extract(self, view: RecordView, place: Place) -> ExtractedRecord:
        """The line and the files of a record. Raises UnextractableError, which says what is wrong with it."""
        if self._layout is not None:
            return _Extraction(self._layout, self._paths, view, place).run()
        dtypes = dtypes_of(view)
        found = _Extraction(guessed_layout(dtypes), self._paths, view, place).run()
        found.keys = frozenset(dtypes)
        return found


@dataclass
class _Extraction:
    """One record under way."""

    layout: Layout
    paths: ImagePaths
    view: RecordView
    place: Place
    found: ExtractedRecord = field(default_factory=ExtractedRecord)

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
            line["frames"] = [self._picture(features, number) for number, features in enumerate(pictures)]
            if not self.found.has_image:
                raise UnextractableError("wrong_features", "a sequence without images has no manifest that makes it")
            if not self.layout.is_known:
                self.found.left_out += [f"{key} of the context" for key in self.layout.further_keys(view.features)]
        else:
            line.update(self._picture(view.features, 0))
            self._label(view.features)
        return self.found

    def _source_id(self) -> str | None:
        key = self.layout.keys.get("source_id")
        if self.layout.is_known:
            told: bytes = needed(self.view.features, key or "image/source_id", "bytes", 1)[0]
            return text_of_bytes(told)
        feature = self.view.features.get(key or "")
        if feature is None or len(feature.values) != 1 or feature.values[0] == b"":
            return None
        value = feature.values[0]
        return text_of_bytes(value) if isinstance(value, bytes) else str(value)

    def _picture(self, features: Features, number: int) -> dict[str, Any]:
        """The fields that belong to one picture (or table row)."""
        layout, fields = self.layout, dict[str, Any]()
        if has_picture(layout.keys, features):
            data = picture_of(layout.keys, features)
            filename = _filename(layout, features, self.place, number, self.view, data)
            path = self.paths.path_of(filename, data, suffix_of(data))
            self.found.files[path] = data
            self.found.has_image = True
            fields["image"] = path
            fields["filename"] = filename
        elif layout.is_known and ("encoded" in layout.keys or "raw" in layout.keys):
            raise UnextractableError("wrong_features", "the record has no image")
        objects = objects_of(
            features, layout.keys, lambda ids, texts: self._names(features, ids, texts), is_strict=layout.is_known
        )
        if objects is not None:
            fields["boxes"] = objects
        self._masks(features, fields)
        captions = values_of(features, layout.keys.get("captions"), "bytes")
        if captions is not None:
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
                fields[field_name] = self._mask_file(folder, values[0])
        if keys.get("panoptic_instance_mask") in features:
            mask = needed(features, keys["panoptic_instance_mask"], "bytes", 1)[0]
            segments = segments_of(features, keys, lambda ids, texts: self._names(features, ids, texts))
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
        return self._told_names(features, key, self.layout.keys.get(texts_name))

    @staticmethod
    def _name(number: int, known: Mapping[int, str], is_single: bool) -> str:
        if number in known:
            return known[number]
        if is_single and number == NO_LABEL:
            return ""
        raise UnextractableError("bad_label", f"the label id {number} is not in the vocabulary")

    def _told_names(self, features: Features, ids_key: str | None, texts_key: str | None) -> list[str] | None:
        """Names as a record from elsewhere tells them; ids without names are spelled as numbers."""
        ids = _feature(features, ids_key, "int64")
        texts = _feature(features, texts_key, "bytes") or _feature(features, ids_key, "bytes")
        if ids is None:
            return None if texts is None else [text_of_bytes(text).strip() for text in texts]
        if texts is None or len(texts) != len(ids):
            texts = [b""] * len(ids)
        names = []
        for number, text in zip(ids, texts, strict=True):
            name = text_of_bytes(text).strip()
            if not name and number == NO_LABEL:
                names.append("")
                continue
            names.append(name or str(number))
            self.found.labels.setdefault(number, names[-1])
        return names

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
