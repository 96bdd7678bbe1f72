"""What a record holds for a person: its pictures, labels and boxes, whatever keys the dataset uses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.datasets.record_keys import guess_keys
from beam_tfrecord.datasets.record_view import RecordView, frames

_SIDES = ("bbox_xmin", "bbox_ymin", "bbox_xmax", "bbox_ymax")

Features = Mapping[str, Feature]


@dataclass(frozen=True, slots=True)
class BoxView:
    """A box in fractions of the picture, and the name of its class ('' when it has none)."""

    xmin: float
    ymin: float
    xmax: float
    ymax: float
    name: str = ""


@dataclass(frozen=True, slots=True)
class PictureView:
    """A stored picture. data: an encoded image, or with ``shape`` (height, width, channels) raw pixels of ``dtype``.

    features: all that the record tells of it, by key.
    """

    data: bytes
    boxes: tuple[BoxView, ...] = ()
    shape: tuple[int, int, int] | None = None
    dtype: str = "uint8"
    width: int = 0
    height: int = 0
    features: Features = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Content:
    """What a record holds. labels: of the whole record. pictures: one, none in a table, or those of a sequence."""

    source_id: str
    labels: tuple[str, ...]
    pictures: tuple[PictureView, ...]

    @property
    def all_labels(self) -> tuple[str, ...]:
        """Every use of a label, those of boxes included."""
        return (*self.labels, *(box.name for picture in self.pictures for box in picture.boxes if box.name))


@dataclass(frozen=True)
class ContentReader:
    """Reads the records of one dataset. keys: key by logical name. names: name by label id."""

    keys: Mapping[str, str]
    names: Mapping[int, str] = field(default_factory=dict)

    def read(self, record: RecordView) -> Content:
        """What a record holds."""
        features = record.features
        labels = self.texts(features, "label_text") or self.names_of(self.values(features, "label"))
        pictures = [self._picture({**features, **frame}) for frame in frames(record)]
        return Content(
            source_id=next(iter(self.texts(features, "source_id")), ""),
            labels=tuple(labels),
            pictures=tuple(picture for picture in pictures if picture is not None),
        )

    def values(self, features: Features, name: str) -> Sequence[Any]:
        """The values under a logical name; none when the record does not have it."""
        key = self.keys.get(name)
        return features[key].values if key is not None and key in features else ()

    def texts(self, features: Features, name: str) -> list[str]:
        """The values under a logical name that are texts and not empty."""
        values = self.values(features, name)
        return [value.decode("utf-8", "replace") for value in values if isinstance(value, bytes) and value]

    def number(self, features: Features, name: str) -> int:
        """The first value under a logical name, 0 when there is none or it is no whole number."""
        value = next(iter(self.values(features, name)), 0)
        return value if isinstance(value, int) else 0

    def names_of(self, ids: Iterable[Any]) -> list[str]:
        """Names of labels; the ids themselves where there are no names. Ids below 0 stand for no label."""
        return [self.names.get(number, str(number)) for number in ids if isinstance(number, int) and number >= 0]

    def _picture(self, features: Features) -> PictureView | None:
        width, height = self.number(features, "width"), self.number(features, "height")
        shape = None
        data = next(iter(self.values(features, "encoded")), b"")
        if not data:
            data = next(iter(self.values(features, "raw")), b"")
            shape = (height, width, self.number(features, "channels"))
        if not isinstance(data, bytes) or not data:
            return None
        dtype = next(iter(self.texts(features, "dtype")), "uint8")
        return PictureView(data, self._boxes(features), shape, dtype, width, height, features)

    def _boxes(self, features: Features) -> tuple[BoxView, ...]:
        rows = self.values(features, "bbox")
        if rows:
            sides = [(rows[n + 1], rows[n], rows[n + 3], rows[n + 2]) for n in range(0, len(rows) - 3, 4)]
        else:
            sides = list(zip(*(self.values(features, side) for side in _SIDES), strict=False))
        names = self.texts(features, "object_text") or self.names_of(self.values(features, "object_label"))
        if len(names) != len(sides):
            names = [""] * len(sides)
        return tuple(
            BoxView(float(xmin), float(ymin), float(xmax), float(ymax), name)
            for (xmin, ymin, xmax, ymax), name in zip(sides, names, strict=True)
            if all(isinstance(side, int | float) and isfinite(side) for side in (xmin, ymin, xmax, ymax))
        )


def guessed_reader(present: Collection[str]) -> ContentReader:
    """The reader for records from elsewhere, of which only the keys are known."""
    return ContentReader(guess_keys(present))
