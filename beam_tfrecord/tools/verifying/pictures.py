"""Whether the pictures of a record are what the record says, and decode."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.errors import ImageError
from beam_tfrecord.images.sniff import describe, sniff
from beam_tfrecord.tools.verifying.faults import Problem

Decode = Callable[[bytes], tuple[int, int, int]]
Frame = Mapping[str, Feature]

ITEM_SIZES = {"uint8": 1, "uint16": 2}
# What TensorFlow decodes; other bytes of a record from elsewhere are not taken for pictures.
DECODABLE = frozenset({"jpeg", "png", "gif", "bmp", "webp"})
# Masks of the whole image, which have its size.
MASKS = ("semantic_mask", "instance_map", "panoptic_category_mask", "panoptic_instance_mask", "object_mask")
_SPELLINGS = {"jpg": "jpeg"}


@dataclass(frozen=True, slots=True)
class Size:
    """Height and width of a picture in pixels."""

    height: int
    width: int

    def __str__(self) -> str:
        return f"{self.height}x{self.width}"


def single(frame: Frame, key: str | None) -> Any:
    """The only value of a feature, or None when there is no such feature or not exactly one value."""
    feature = frame.get(key) if key else None
    return feature.values[0] if feature is not None and len(feature.values) == 1 else None


def check_picture(frame: Frame, keys: Mapping[str, str], decode: Decode) -> Iterator[Problem]:
    """The image of one frame, encoded or raw, and its masks.

    keys: logical name -> key. decode: (height, width, channels) of encoded bytes; raises ImageError.
    """
    size: Size | None = None
    data = single(frame, keys.get("encoded"))
    if isinstance(data, bytes):
        decoded = _decoded(data, decode)
        if isinstance(decoded, Problem):
            yield decoded
        else:
            size = Size(*decoded[:2])
            yield from _check_facts(frame, keys, decoded)
        yield from _check_format(frame, keys, data)
        yield from _check_hash(frame, keys, data)
    pixels = single(frame, keys.get("raw"))
    if isinstance(pixels, bytes):
        yield from check_raw(frame, keys, pixels)
        yield from _check_hash(frame, keys, pixels)
        height, width = single(frame, keys.get("height")), single(frame, keys.get("width"))
        size = Size(height, width) if isinstance(height, int) and isinstance(width, int) else None
    for name in MASKS:
        if name in keys:
            yield from _check_masks(frame, keys[name], size, decode)


def check_further_pictures(frame: Frame, known: set[str], decode: Decode) -> Iterator[Problem]:
    """Encoded images under keys that nothing tells of, known by their first bytes.

    known: keys that were looked at already.
    """
    for key, feature in frame.items():
        if feature.dtype != "bytes" or key in known:
            continue
        for data in feature.values:
            if sniff(data) in DECODABLE:
                decoded = _decoded(data, decode)
                if isinstance(decoded, Problem):
                    yield Problem(decoded.code, f"{key}: {decoded.cause}")


def _decoded(data: bytes, decode: Decode) -> tuple[int, int, int] | Problem:
    if not data:
        return Problem("bad_image", "the image has no bytes")
    try:
        return decode(data)
    except ImageError as error:
        kind = sniff(data)
        return Problem("bad_image", f"the image ({describe(kind)}, {len(data):,} bytes): {error.message}")


def _check_facts(frame: Frame, keys: Mapping[str, str], decoded: tuple[int, int, int]) -> Iterator[Problem]:
    for name, found in zip(("height", "width", "channels"), decoded, strict=True):
        stated = single(frame, keys.get(name))
        if stated is not None and stated != found:
            yield Problem("wrong_image_facts", f"{keys[name]} says {stated}, but the image has {name} {found}")


def _check_format(frame: Frame, keys: Mapping[str, str], data: bytes) -> Iterator[Problem]:
    stated = single(frame, keys.get("format"))
    if isinstance(stated, bytes):
        text = stated.decode("utf-8", "backslashreplace")
        kind = sniff(data)
        if _SPELLINGS.get(text.lower(), text.lower()) != kind:
            yield Problem("wrong_image_facts", f"{keys['format']} says {text!r}, but the image is {describe(kind)}")


def _check_hash(frame: Frame, keys: Mapping[str, str], data: bytes) -> Iterator[Problem]:
    stated = single(frame, keys.get("sha256"))
    if isinstance(stated, bytes):
        digest = hashlib.sha256(data)
        if stated not in (digest.hexdigest().encode(), digest.digest()):
            text = stated.decode("utf-8", "backslashreplace")
            yield Problem("wrong_image_facts", f"{keys['sha256']} says {text}, but the bytes have {digest.hexdigest()}")


def check_raw(frame: Frame, keys: Mapping[str, str], pixels: bytes) -> Iterator[Problem]:
    """Whether raw pixels have as many bytes as height, width, channels and dtype need, and agree with shape."""
    sides = [single(frame, keys.get(name)) for name in ("height", "width", "channels")]
    shape = list(frame[keys["shape"]].values) if keys.get("shape") in frame else None
    if None in sides:
        sides = shape or []
    elif shape is not None and shape != sides:
        yield Problem("bad_raw", f"{keys['shape']} says {shape}, but height, width and channels are {sides}")
    if len(sides) != 3 or not all(isinstance(side, int) and side > 0 for side in sides):
        yield Problem("bad_raw", f"nothing tells height, width and channels of the raw pixels (found {sides})")
        return
    dtype = single(frame, keys.get("dtype"))
    name = dtype.decode("utf-8", "backslashreplace") if isinstance(dtype, bytes) else "uint8"
    if name not in ITEM_SIZES:
        yield Problem("bad_raw", f"{keys['dtype']} says {name!r}; it must be uint8 or uint16")
        return
    needed = math.prod(sides) * ITEM_SIZES[name]
    if len(pixels) != needed:
        told = "x".join(map(str, sides))
        yield Problem("bad_raw", f"{told} pixels of {name} need {needed:,} bytes, but there are {len(pixels):,}")


def _check_masks(frame: Frame, key: str, size: Size | None, decode: Decode) -> Iterator[Problem]:
    feature = frame.get(key)
    if feature is None or feature.dtype != "bytes":
        return
    for number, data in enumerate(feature.values):
        if not data:
            continue  # an item without a mask
        name = key if len(feature.values) == 1 else f"{key}[{number}]"
        decoded = _decoded(data, decode)
        if isinstance(decoded, Problem):
            yield Problem("bad_mask", f"{name}: {decoded.cause}")
        elif size is not None and decoded[:2] != (size.height, size.width):
            found = Size(*decoded[:2])
            yield Problem("bad_mask", f"{name} has {found} pixels, but the image has {size}")
