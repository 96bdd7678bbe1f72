"""Sentences about the image. Canonical field ``captions``: a list of texts, or one text; blank ones are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.annotations.base import AnnotationKind, Feature, FeatureSpec, Schema
from beam_tfrecord.annotations.cells import is_blank, plain, shown, utf8_text
from beam_tfrecord.core.elements import packed_quickly
from beam_tfrecord.errors import AnnotationError
from beam_tfrecord.options.config import ConvertConfig


@packed_quickly
@dataclass(frozen=True, slots=True)
class Captions:
    """The texts in the order of the manifest."""

    texts: tuple[str, ...]


class CaptionsKind(AnnotationKind[Captions]):
    """Texts to one list. In a SequenceExample each frame has its own; nothing else differs."""

    name = "captions"
    fields = frozenset({"captions"})

    def parse(
        self, fields: Mapping[str, Any], config: ConvertConfig, warn: Callable[[str, str], None]
    ) -> Captions | None:
        """Raises AnnotationError (``bad_annotation``) for something that is no text."""
        cell = plain(fields.get("captions"))
        if cell is None:
            return None
        items = cell if isinstance(cell, list | tuple) else [cell]
        texts = []
        for item in items:
            if is_blank(item):
                warn("annotation_ignored", "a caption is empty")
                continue
            try:
                texts.append(utf8_text(item).strip())
            except ValueError as error:
                raise AnnotationError("bad_annotation", f"a caption must be text: {shown(item)} {error}") from None
        return Captions(tuple(texts))

    def is_label(self, value: Captions) -> bool:
        return bool(value.texts)

    def features(self, value: Captions | None, schema: Schema) -> dict[str, Feature]:
        texts = value.texts if value is not None else ()
        return {schema.keys["captions"]: Feature("bytes", [text.encode("utf-8", "surrogateescape") for text in texts])}

    def spec(self, schema: Schema) -> list[FeatureSpec]:
        return [FeatureSpec(schema.keys["captions"], "bytes", (None,), "text", description="sentences about the image")]
