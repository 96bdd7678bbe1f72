"""Values of features: short for a person, and as JSON for a program."""

from __future__ import annotations

import hashlib
import io
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.images.safety import DECODE_ERRORS
from beam_tfrecord.images.sniff import describe, sniff
from beam_tfrecord.tools.showing.printable import shortened, shown_bytes, text_or_none

SHOWN_VALUES = 6
MAX_TEXT = 1000  # bytes; longer ones are told by their size and hash
# Formats with a signature that no text begins with by chance.
_IMAGES = frozenset({"jpeg", "png", "gif", "webp", "bmp", "tiff"})
_WHITE_SPACE = frozenset("\t\n\r")


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What the header of an encoded image says. Sizes are None when it cannot be read."""

    format: str
    num_bytes: int
    width: int | None = None
    height: int | None = None
    channels: int | None = None

    def __str__(self) -> str:
        size = "header unreadable" if self.width is None else f"{self.width} × {self.height}, {self.channels} channels"
        if self.channels == 1:
            size = size.removesuffix("s")
        return f"{describe(self.format)} image, {size}, {self.num_bytes:,} bytes"


def image_facts(data: bytes) -> ImageFacts | None:
    """The facts of an encoded image; None for bytes that are none. Only the header is read."""
    from PIL import Image

    kind = sniff(data)
    if kind not in _IMAGES:
        return None
    try:
        with Image.open(io.BytesIO(data)) as image:
            bands = len(image.getbands()) if image.mode != "P" else 3
            return ImageFacts(kind, len(data), image.width, image.height, bands)
    except DECODE_ERRORS:
        return ImageFacts(kind, len(data))


def shortest_float(number: float) -> float:
    """The float that has the fewest digits of those that are this float32: 0.1, not 0.10000000149011612."""
    if not math.isfinite(number):
        return number
    for digits in range(1, 10):
        candidate = float(f"{number:.{digits}g}")
        if _float32(candidate) == _float32(number):
            return candidate
    return number


def _float32(number: float) -> bytes:
    """The bytes of the nearest float32; nothing when it is out of range."""
    try:
        return struct.pack("<f", number)
    except OverflowError:
        return b""


def short_value(value: Any) -> str:
    """One value for a person, in one printable line."""
    if isinstance(value, bytes):
        facts = image_facts(value)
        if facts is not None:
            return str(facts)
        return shown_bytes(value) if _is_text(value) or len(value) <= 32 else f"{len(value):,} bytes"
    return f"{shortest_float(value):.7g}" if isinstance(value, float) else str(value)


def short_values(values: Sequence[Any]) -> str:
    """A few of the values for a person."""
    shown = [short_value(value) for value in values[:SHOWN_VALUES]]
    if len(values) == 1:
        return shown[0]
    if len(values) > SHOWN_VALUES:
        shown.append(f"… {len(values) - SHOWN_VALUES:,} more")
    return shortened(", ".join(shown), 160)


def _is_text(value: bytes) -> bool:
    text = text_or_none(value) if len(value) <= MAX_TEXT else None
    return text is not None and all(character.isprintable() or character in _WHITE_SPACE for character in text)


def json_value(value: Any) -> Any:
    """One value for a program: numbers and short texts as they are, images as facts, other bytes as size and sha256."""
    if isinstance(value, float):
        return shortest_float(value) if math.isfinite(value) else str(value)
    if not isinstance(value, bytes):
        return value
    facts = image_facts(value)
    if facts is None and _is_text(value):
        return value.decode()
    told: dict[str, Any] = {"bytes": len(value), "sha256": hashlib.sha256(value).hexdigest()}
    if facts is None:
        return told
    size = {"width": facts.width, "height": facts.height, "channels": facts.channels}
    return {"image": facts.format, **{name: number for name, number in size.items() if number is not None}, **told}


def json_feature(feature: Feature) -> list[Any]:
    """The values of a feature for a program."""
    return [json_value(value) for value in feature.values]


def json_features(features: Mapping[str, Feature]) -> dict[str, list[Any]]:
    """Features for a program, by key."""
    return {key: json_feature(feature) for key, feature in features.items()}
