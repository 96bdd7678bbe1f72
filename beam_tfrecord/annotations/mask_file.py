"""Masks of the whole image that lie in a file of their own: one base for the kinds that differ in meaning only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from beam_tfrecord.annotations.base import AnnotationKind, Feature, FeatureSpec, Placement, Schema
from beam_tfrecord.annotations.cells import is_blank
from beam_tfrecord.annotations.mask_images import encode_png, place_array, read_mask
from beam_tfrecord.config import ConvertConfig
from beam_tfrecord.elements import Member


@dataclass(frozen=True, slots=True)
class MaskFile:
    """Where a mask is, and once it is placed its PNG. uri is '' for an item that is stated to have none."""

    uri: str
    member: Member | None = None
    png: bytes = b""


class MaskFileKind(AnnotationKind[MaskFile]):
    """A mask file to a PNG whose values are the indices of the file.

    Canonical field: ``field``, the path or uri of the mask, with ``field + '_member'`` when it lies in an archive.
    Every mask is written anew, so that TensorFlow decodes exactly its values: a palette image as grey PNG with the
    index as value, grey images of any depth as grey PNG of 8 or 16 bits, colours as they are, without transparency. An
    item without a mask has an empty value.
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
        return (self.name,) if value.uri else (self.name, f"{self.name}/partial")

    def place(self, value: MaskFile, placement: Placement) -> MaskFile:
        """Raises AnnotationError (``bad_mask``), or what reading the file raises."""
        if not value.uri:
            return value
        data = placement.read(value.uri, value.member)
        return replace(value, png=encode_png(place_array(read_mask(data, value.uri, placement), placement)))

    def features(self, value: MaskFile | None, schema: Schema) -> dict[str, Feature]:
        png = value.png if value is not None else b""
        return {
            schema.keys[self.name]: Feature("bytes", [png]),
            schema.keys[f"{self.name}_format"]: Feature("bytes", [b"png" if png else b""]),
        }

    def spec(self, schema: Schema) -> list[FeatureSpec]:
        """Where some items have no mask the value is plain bytes: nothing that decodes stands for no image."""
        role = "scalar" if f"{self.name}/partial" in schema.kinds else "image"
        encoded = FeatureSpec(schema.keys[self.name], "bytes", (), role, encoding="png", description=self.description)
        form = FeatureSpec(schema.keys[f"{self.name}_format"], "bytes", (), "text", description="png, or empty")
        return [encoded, form]
