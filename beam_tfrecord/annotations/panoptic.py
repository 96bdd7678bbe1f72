"""Panoptic segmentation: every pixel belongs to one segment, and every segment has a class.

Canonical field ``panoptic``: ``{"mask": uri of a PNG, "segments": [{"id", "class", "is_crowd"}, ...]}``, optionally
with ``member``. A pixel's colour is the id of its segment, R + 256 G + 65536 B; 0 is void. (Source: the COCO panoptic
format.)

Stored are two PNGs of the size of the image: the id of the class of each pixel, void as 0 where no class has the id 0
and else as the largest value (255, or 65535), and the number of its segment, from 1 in the order of the list, void as
0. Both have 8 bits where the values fit in the whole dataset and else 16. Beside them lie class, is_crowd and area (in
pixels of the stored image) of each segment. An item without a mask (``mask`` is empty) has empty values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from beam_tfrecord.annotations.base import AnnotationKind, Feature, FeatureSpec, Placement, Schema
from beam_tfrecord.annotations.cells import name_text, whole_number
from beam_tfrecord.annotations.mask_images import encode_png, place_array, read_mask
from beam_tfrecord.core.elements import Member, packed_quickly
from beam_tfrecord.errors import AnnotationError
from beam_tfrecord.options.config import ConvertConfig

MAX_OF_8_BITS = 0xFF


@packed_quickly
@dataclass(frozen=True, slots=True)
class Segment:
    """One segment: its id in the PNG and what it is."""

    id: int
    name: str
    is_crowd: int = 0


@packed_quickly
@dataclass(frozen=True, slots=True)
class Panoptic:
    """Where the PNG is and its segments. numbers: array (height, width) of segment numbers, once placed.

    void: ids of segments that were chosen away: their pixels are void.
    """

    uri: str
    segments: tuple[Segment, ...]
    member: Member | None = None
    numbers: Any = None
    void: tuple[int, ...] = ()


class PanopticKind(AnnotationKind[Panoptic]):
    """A PNG of segment ids and a list of segments to two masks and lists.

    In a SequenceExample each frame has its own.
    """

    name = "panoptic"
    fields = frozenset({"panoptic"})

    def parse(
        self, fields: Mapping[str, Any], config: ConvertConfig, warn: Callable[[str, str], None]
    ) -> Panoptic | None:
        """Raises AnnotationError (``bad_annotation``) when it is incomplete."""
        given = fields.get("panoptic")
        if given is None:
            return None
        try:
            segments = tuple(
                Segment(whole_number(s["id"]), name_text(s["class"]), whole_number(s.get("is_crowd", 0)))
                for s in given["segments"]
            )
            uri = str(given["mask"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise AnnotationError(
                "bad_annotation", "the panoptic annotation needs a mask, and segments with id and class"
            ) from None
        if len({segment.id for segment in segments} | {0}) <= len(segments):
            raise AnnotationError(
                "bad_annotation", "segments of the panoptic annotation have one id, or that of void, 0"
            )
        if len(segments) > 0xFFFF:
            raise AnnotationError("bad_annotation", f"the panoptic annotation has {len(segments)} segments")
        return Panoptic(uri, segments, given.get("member"))

    def facets(self, value: Panoptic) -> tuple[str, ...]:
        facets = [self.name]
        if len(value.segments) > MAX_OF_8_BITS:
            facets.append(f"{self.name}/many_segments")
        if not value.uri:
            facets += self.absence()
        return tuple(facets)

    def absence(self) -> tuple[str, ...]:
        return (f"{self.name}/partial",)

    def labels(self, value: Panoptic) -> Iterable[str]:
        return [segment.name for segment in value.segments]

    def chosen(self, value: Panoptic, name_of: Callable[[str], str | None]) -> Panoptic:
        """Pixels of a segment that is dropped become void."""
        names = [name_of(segment.name) for segment in value.segments]
        named = list(zip(value.segments, names, strict=True))
        return replace(
            value,
            segments=tuple(replace(segment, name=name) for segment, name in named if name is not None),
            void=(*value.void, *(segment.id for segment, name in named if name is None)),
        )

    def is_label(self, value: Panoptic) -> bool:
        return bool(value.segments)

    def place(self, value: Panoptic, placement: Placement) -> Panoptic:
        """Raises AnnotationError (``bad_mask``), or what reading the file raises."""
        if not value.uri:
            return value
        colours = read_mask(placement.read(value.uri, value.member), value.uri, placement)
        return replace(value, numbers=place_array(_segment_numbers(colours, value), placement))

    def features(self, value: Panoptic | None, schema: Schema) -> dict[str, Feature]:
        category, numbers, areas = b"", b"", list[int]()
        segments: Sequence[Segment] = ()
        if value is not None and value.numbers is not None:
            category, numbers, areas = (
                _category_png(value, schema),
                encode_png(value.numbers.astype(_number_dtype(schema))),
                _areas(value),
            )
            segments = value.segments
        keys = schema.keys
        found = {
            keys["panoptic_category_mask"]: Feature("bytes", [category]),
            keys["panoptic_instance_mask"]: Feature("bytes", [numbers]),
            keys["panoptic_segment_label"]: Feature("int64", _ids(segments, schema)),
            keys["panoptic_segment_is_crowd"]: Feature("int64", [segment.is_crowd for segment in segments]),
            keys["panoptic_segment_area"]: Feature("int64", areas),
        }
        if "panoptic_segment_text" in keys:
            texts = [segment.name.encode("utf-8", "surrogateescape") for segment in segments]
            found[keys["panoptic_segment_text"]] = Feature("bytes", texts)
        return found

    def spec(self, schema: Schema) -> list[FeatureSpec]:
        """Where some items have no mask the values are plain bytes: nothing that decodes stands for no image."""
        keys = schema.keys
        role = "scalar" if f"{self.name}/partial" in schema.kinds else "image"
        specs = [
            FeatureSpec(
                keys[name], "bytes", (), role, channels=1, encoding="png", description=told, pixel_dtype=dtype(schema)
            )
            for name, told, dtype in (
                ("panoptic_category_mask", "id of the class of each pixel", _category_dtype),
                ("panoptic_instance_mask", "number of the segment of each pixel, from 1", _number_dtype),
            )
        ]
        lists = (
            ("panoptic_segment_label", "int64", "label", "class of each segment"),
            ("panoptic_segment_text", "bytes", "text", "names of the classes"),
            ("panoptic_segment_is_crowd", "int64", "scalar", "1 for a region of many objects"),
            ("panoptic_segment_area", "int64", "scalar", "in pixels of the stored image"),
        )
        specs += [
            FeatureSpec(keys[name], dtype, (None,), role, description=told)
            for name, dtype, role, told in lists
            if name in keys
        ]
        return specs


def _ids(segments: Sequence[Segment], schema: Schema) -> list[int]:
    return [schema.vocabulary.id_of(segment.name) for segment in segments]


def _number_dtype(schema: Schema) -> str:
    return "uint16" if "panoptic/many_segments" in schema.kinds else "uint8"


def _category_dtype(schema: Schema) -> str:
    ids = schema.vocabulary.ids
    return "uint16" if max(ids, default=0) + (0 in ids) > MAX_OF_8_BITS else "uint8"


def _segment_numbers(colours: Any, value: Panoptic) -> Any:
    """Array (height, width) of segment numbers, uint16, from an array of colours."""
    import numpy as np

    if colours.ndim == 3:
        parts = colours.astype(np.uint32)
        ids = parts[..., 0] + 256 * parts[..., 1] + 65536 * parts[..., 2]
    else:
        ids = colours.astype(np.uint32)
    present, places = np.unique(ids, return_inverse=True)
    number_of = {
        0: 0,
        **dict.fromkeys(value.void, 0),
        **{segment.id: number for number, segment in enumerate(value.segments, start=1)},
    }
    unknown = [int(number) for number in present if int(number) not in number_of]
    if unknown:
        raise AnnotationError(
            "bad_mask", f"the mask {value.uri} has pixels of segment {unknown[0]}, which the annotation does not list"
        )
    return np.array([number_of[int(number)] for number in present], np.uint16)[places.reshape(ids.shape)]


def _category_png(value: Panoptic, schema: Schema) -> bytes:
    import numpy as np

    dtype = np.dtype(_category_dtype(schema))
    void = np.iinfo(dtype).max if 0 in schema.vocabulary.ids else 0
    return encode_png(np.array([void, *_ids(value.segments, schema)], dtype)[value.numbers])


def _areas(value: Panoptic) -> list[int]:
    import numpy as np

    return [int(count) for count in np.bincount(value.numbers.ravel(), minlength=len(value.segments) + 1)[1:]]
