"""The objects of an image: boxes with class and attributes, instance masks and keypoints, kept in one order.

See :mod:`~beam_tfrecord.annotations.objects` for the canonical field ``boxes``,
:mod:`~beam_tfrecord.annotations.box_rules` for what a box must satisfy, and
:mod:`~beam_tfrecord.annotations.object_features` for what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from beam_tfrecord.annotations.base import AnnotationKind, Feature, FeatureSpec, Placement, Schema
from beam_tfrecord.annotations.object_features import facets_of, object_features, object_specs
from beam_tfrecord.annotations.object_placing import drawn_size, place_object
from beam_tfrecord.annotations.objects import Object, parse_object
from beam_tfrecord.core.elements import packed_quickly
from beam_tfrecord.errors import AnnotationError
from beam_tfrecord.options.config import ConvertConfig


@packed_quickly
@dataclass(frozen=True, slots=True)
class Objects:
    """The objects in the order of the manifest. size: (width, height) of the stored image, once they are placed."""

    objects: tuple[Object, ...]
    size: tuple[int, int] | None = None

    def having(self, kept: Sequence[bool]) -> Objects:
        """Those objects that are kept; messages go on to tell of them by the numbers that they had."""
        if all(kept):
            return self
        numbered = (
            item if item.origin else replace(item, origin=f"number {number} of {len(kept)}")
            for number, item in enumerate(self.objects, start=1)
        )
        return replace(self, objects=tuple(item for item, is_kept in zip(numbered, kept, strict=True) if is_kept))

    def named(self, names: Sequence[str]) -> Objects:
        """The same objects under other names."""
        objects = [
            item if item.name == name else replace(item, name=name)
            for item, name in zip(self.objects, names, strict=True)
        ]
        return replace(self, objects=tuple(objects))

    @property
    def areas(self) -> tuple[float, ...]:
        """Area of each box; of placed objects as a fraction of the image."""
        return tuple(item.box.area for item in self.objects if item.box is not None)


class BoxesKind(AnnotationKind[Objects]):
    """Objects to lists with one value per object.

    Facets: ``boxes``; ``instance_masks`` and ``keypoints`` when any object has them; ``keypoints/17`` for the number of
    points; ``boxes/pose`` and so on for attributes that are stored only where they occur.
    In a SequenceExample each frame has its own objects; nothing else differs.
    """

    name = "boxes"
    fields = frozenset({"boxes"})

    def parse(
        self, fields: Mapping[str, Any], config: ConvertConfig, warn: Callable[[str, str], None]
    ) -> Objects | None:
        """Raises RowError (``missing_label``) or AnnotationError that names the object."""
        boxes = fields.get("boxes")
        if boxes is None:
            return None
        if not isinstance(boxes, list | tuple) or not all(isinstance(box, Mapping) for box in boxes):
            raise AnnotationError("bad_annotation", "the objects of the row are no list of mappings")
        for code, message in fields.get("notes", ()):
            warn(code, message)
        return Objects(tuple(parse_object(box, number, warn) for number, box in enumerate(boxes)))

    def facets(self, value: Objects) -> tuple[str, ...]:
        return (self.name, *facets_of(value.objects))

    def labels(self, value: Objects) -> Iterable[str]:
        return [item.name for item in value.objects]

    def chosen(self, value: Objects, name_of: Callable[[str], str | None]) -> Objects:
        names = [name_of(item.name) for item in value.objects]
        return value.having([name is not None for name in names]).named([name for name in names if name is not None])

    def place(self, value: Objects, placement: Placement) -> Objects:
        """Raises AnnotationError for a box, mask or keypoint that cannot be right, as ``--bad_boxes`` says."""
        self._check_frame(value, placement)
        frame = placement.frame
        placed = [place_object(item, item.told(number), placement) for number, item in enumerate(value.objects)]
        return Objects(tuple(item for item in placed if item is not None), (frame.width, frame.height))

    def _check_frame(self, value: Objects, placement: Placement) -> None:
        frame, stated = placement.frame, placement.size
        if stated is not None and min(stated) > 0 and stated not in (frame.source_size, frame.turned_size):
            found = "{}x{}".format(*frame.source_size)
            placement.warn(
                "size_mismatch",
                "the annotation says that the image has {}x{} pixels; it has {}".format(*stated, found),
            )
        if placement.is_ambiguous and value.objects:
            width, height = drawn_size(placement)
            placement.warn(
                "ambiguous_orientation",
                f"the image is turned by its EXIF tag; its annotation is taken to be drawn in the picture of "
                f"{width}x{height} {'after' if placement.is_upright else 'before'} the turn",
            )

    def features(self, value: Objects | None, schema: Schema) -> dict[str, Feature]:
        if value is None:
            return object_features((), (0, 0), schema)
        if value.size is None and value.objects:
            raise ValueError("objects must be placed before they become features")
        return object_features(value.objects, value.size or (0, 0), schema)

    def spec(self, schema: Schema) -> list[FeatureSpec]:
        return object_specs(schema)
