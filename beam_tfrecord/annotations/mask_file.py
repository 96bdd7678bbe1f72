"""Masks of the whole image that lie in a file of their own: one base for the kinds that differ in meaning only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from beam_tfrecord.annotations.base import AnnotationKind, Feature, FeatureSpec, Placement, Schema
from beam_tfrecord.annotations.cells import is_blank
from beam_tfrecord.annotations.mask_images import encode_png, place_array, read_mask
from beam_tfrecord.core.elements import Member, packed_quickly
from beam_tfrecord.errors import AnnotationError
from beam_tfrecord.options.config import ConvertConfig

MAX_OF_8_BITS = 0xFF


@packed_quickly
@dataclass(frozen=True, slots=True)
class MaskFile:
    """Where a mask is. uri is '' for an item that is stated to have none.

    values: array (height, width) of uint8 or uint16, or (height, width, 3) of uint8, once the mask is placed.
    """

    uri: str
    member: Member | None = None
    values: Any = field(default=None, compare=False, repr=False)


class MaskFileKind(AnnotationKind[MaskFile]):
    """A mask file to a PNG whose values are the indices of the file.

    Canonical field: ``field``, the path or uri of the mask, with ``field + '_member'`` when it lies in an archive.
    Every mask is written anew, so that TensorFlow decodes exactly its values: a palette image as grey PNG with the
    index as value, grey images as grey PNG, colours as they are, without transparency. An item without a mask has an
    empty value.

    Facets: ``semantic_mask/deep`` (or the like): grey masks are stored with 16 bits, all of them. Without it they have
    8, but for those with greater values; a dataset that has such ones after all, or colours among deep masks, is
    ``semantic_mask/mixed``. ``semantic_mask/partial``: some items have none.
    """

    field: str
    description: str

    def parse(
        self, fields: Mapping[str, Any], config: ConvertConfig, warn: Callable[[str, str], None]
    ) -> MaskFile | None:
        if self.field not in fields:
            return None
        cell = fields[self.field]
        return MaskFile("" if is_blank(cell) else str(cell).strip(), fields.get(f"{self.field}_member"))

    def facets(self, value: MaskFile) -> tuple[str, ...]:
        return (self.name,) if value.uri else (self.name, *self.absence())

    def absence(self) -> tuple[str, ...]:
        return (f"{self.name}/partial",)

    def masks(self, value: MaskFile) -> Iterable[tuple[str, Member | None]]:
        return [(value.uri, value.member)] if value.uri else []

    def exceptions(self, value: MaskFile, schema: Schema) -> Iterable[str]:
        if value.values is None or self._stored(value, schema).dtype.name == self._dtype(schema):
            return ()
        return (f"{self.name}/mixed",)

    def place(self, value: MaskFile, placement: Placement) -> MaskFile:
        """Raises AnnotationError (``bad_mask``), or what reading the file raises."""
        if not value.uri:
            return value
        values = read_mask(placement.read(value.uri, value.member), value.uri, placement)
        if placement.config.features.mask_bits == "8" and values.max(initial=0) > MAX_OF_8_BITS:
            raise AnnotationError(
                "bad_mask", f"the mask {value.uri} has the value {values.max()}, which --mask_bits 8 has no room for"
            )
        return replace(value, values=place_array(values, placement))

    def features(self, value: MaskFile | None, schema: Schema) -> dict[str, Feature]:
        has_mask = value is not None and value.values is not None
        png = encode_png(self._stored(value, schema)) if value is not None and has_mask else b""
        return {
            schema.keys[self.name]: Feature("bytes", [png]),
            schema.keys[f"{self.name}_format"]: Feature("bytes", [b"png" if png else b""]),
        }

    def spec(self, schema: Schema) -> list[FeatureSpec]:
        """Where some items have no mask, or masks differ in depth, the value is plain bytes: nothing that decodes
        stands for no image, and no one type for both depths."""
        is_partial, is_mixed = (f"{self.name}/{facet}" in schema.kinds for facet in ("partial", "mixed"))
        told = self.description
        if is_partial:
            told += "; empty where there is none"
        if is_mixed:
            told += "; PNG of 8 or of 16 bits, as each says"
        encoded = FeatureSpec(
            schema.keys[self.name],
            "bytes",
            (),
            "scalar" if is_partial or is_mixed else "image",
            encoding="png",
            description=told,
            pixel_dtype="uint8" if is_mixed else self._dtype(schema),
        )
        form = FeatureSpec(schema.keys[f"{self.name}_format"], "bytes", (), "text", description="png, or empty")
        return [encoded, form]

    def _dtype(self, schema: Schema) -> str:
        """What the values of all grey masks are stored as."""
        return "uint16" if f"{self.name}/deep" in schema.kinds else "uint8"

    def _stored(self, value: MaskFile, schema: Schema) -> Any:
        """The values as they are stored: no value is ever changed, but some need more bits than the others."""
        values = value.values
        if values.ndim == 3 or (values.dtype.itemsize > 1 and values.max(initial=0) > MAX_OF_8_BITS):
            return values
        return values.astype(self._dtype(schema))


class SemanticMaskKind(MaskFileKind):
    """A class for each pixel of the image.

    Canonical field ``mask``. Values are those of the file (in VOC: 0 background, 255 void), no ids of labels.
    """

    name = "semantic_mask"
    field = "mask"
    description = "class of each pixel, as in the mask file"


class InstanceMapKind(MaskFileKind):
    """The number of an object for each pixel of the image, as VOC's SegmentationObject has it.

    Canonical field ``instance_mask``. The map is stored whole. It is not taken apart into one mask per object, because
    its numbers need not be those of the boxes: datasets of this layout that tools write number the objects in their own
    order, or have objects without a box.
    """

    name = "instance_map"
    field = "instance_mask"
    description = "number of the object at each pixel, as in the map's file"
