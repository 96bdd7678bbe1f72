"""The pictures of a record with all that is annotated on them, ready to be drawn."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from beam_tfrecord.annotations.base import Feature
from beam_tfrecord.datasets.record_view import EXAMPLE, frames
from beam_tfrecord.images.safety import DECODE_ERRORS
from beam_tfrecord.images.sniff import sniff
from beam_tfrecord.tools.showing.printable import printable, text_or_none
from beam_tfrecord.tools.showing.selection import PickedRecord
from beam_tfrecord.tools.verifying.objects import box_rows
from beam_tfrecord.tools.verifying.pictures import DECODABLE, single

MAX_FRAMES = 12  # of one sequence
_DEEP_VOID = 0xFFFF  # of masks of 16 bits: no class
_CHECKER = 8  # pixels of a square of the pattern that stands for transparency
_DTYPES = {"uint8": "u1", "uint16": "<u2"}

Frame = Mapping[str, Feature]


@dataclass(frozen=True)
class DrawnObject:
    """One object. box: (ymin, xmin, ymax, xmax) as fractions. number: of its class, for its colour; name: '' for none.

    mask: values above 0 are the object. points: (x, y, visibility), fractions of the picture.
    """

    number: int
    name: str
    box: tuple[float, ...] | None = None
    mask: Image.Image | None = None
    points: tuple[tuple[float, float, int], ...] = ()


@dataclass(frozen=True)
class DrawnPicture:
    """A picture and what is drawn on and under it.

    image: RGB, shrunk; None when it cannot be decoded, then trouble says why. size: (width, height) of the stored
    image. classes: a mask of the whole image whose values are classes or segments. title, subtitle: the lines under it.
    """

    image: Image.Image | None
    size: tuple[int, int]
    title: str
    subtitle: str
    objects: tuple[DrawnObject, ...] = ()
    classes: Image.Image | None = None
    trouble: str = ""


def drawn_pictures(picked: PickedRecord, names: Mapping[int, str], max_side: int) -> Iterator[DrawnPicture]:
    """The pictures of a record: one, or some of the frames of a sequence. names: label name by id.

    max_side: images and masks are shrunk until no side is longer, so that many fit into memory.
    """
    steps = frames(picked.view)
    chosen = _spread(len(steps), MAX_FRAMES)
    for number in chosen:
        frame, keys = steps[number], _with_image_key(steps[number], picked.keys)
        if "encoded" not in keys and "raw" not in keys:
            continue
        where = "" if picked.view.message == EXAMPLE else f"{number + 1}/{len(steps)}"
        context = frame if picked.view.message == EXAMPLE else {**picked.view.features, **frame}
        yield _drawn(context, keys, names, max_side, where, picked)


def _spread(count: int, most: int) -> list[int]:
    """At most ``most`` of the numbers below ``count``, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(place * (count - 1) / (most - 1)) for place in range(most)})


def _with_image_key(frame: Frame, keys: Mapping[str, str]) -> Mapping[str, str]:
    """The keys, with whatever holds an image under ``encoded`` when nothing tells of one."""
    here = {name: key for name, key in keys.items() if key in frame}
    if "encoded" not in here and "raw" not in here:
        for key, feature in frame.items():
            if feature.dtype == "bytes" and len(feature.values) == 1 and sniff(feature.values[0]) in DECODABLE:
                return {**keys, "encoded": key}
        return {name: key for name, key in keys.items() if name not in ("encoded", "raw")}
    return keys


def _drawn(
    frame: Frame, keys: Mapping[str, str], names: Mapping[int, str], max_side: int, where: str, picked: PickedRecord
) -> DrawnPicture:
    objects, classes = frame_annotations(frame, keys, names, max_side)
    title = " · ".join(filter(None, (_title(frame, keys, names, objects), where)))
    subtitle = _text(frame, keys.get("filename")) or _text(frame, keys.get("source_id")) or f"record {picked.number}"
    if not title:
        title, subtitle = end_of_path(subtitle), ""
    subtitle = end_of_path(subtitle)
    try:
        image = _image(frame, keys)
    except DECODE_ERRORS as error:
        return DrawnPicture(None, (4, 3), title, subtitle, trouble=str(error) or type(error).__name__)
    return DrawnPicture(_shrunk(_as_rgb(image), max_side), image.size, title, subtitle, objects, classes)


def frame_annotations(
    frame: Frame, keys: Mapping[str, str], names: Mapping[int, str], max_side: int
) -> tuple[tuple[DrawnObject, ...], Image.Image | None]:
    """(objects, mask of the whole image or None) of one picture, as :class:`DrawnPicture` has them.

    keys: logical name -> key. names: label name by id. max_side: masks are shrunk until no side is longer.
    """
    objects = (*_objects(frame, keys, names, max_side), *_segments(frame, keys, names, max_side))
    return objects, _classes(frame, keys, max_side)


# ---------------------------------------------------------------------------------------------------------------------
# Pixels


def _image(frame: Frame, keys: Mapping[str, str]) -> Image.Image:
    data = single(frame, keys.get("encoded"))
    if isinstance(data, bytes):
        image = Image.open(io.BytesIO(data))
        image.load()
        return image
    return _raw_image(frame, keys)


def _raw_image(frame: Frame, keys: Mapping[str, str]) -> Image.Image:
    """Raw pixels as an image. Raises ValueError when their shape is not told or does not fit."""
    data = single(frame, keys.get("raw"))
    sides = [single(frame, keys.get(name)) for name in ("height", "width", "channels")]
    if None in sides and keys.get("shape") in frame:
        sides = list(frame[keys["shape"]].values)
    dtype = single(frame, keys.get("dtype")) or b"uint8"
    if not isinstance(data, bytes) or len(sides) != 3 or None in sides:
        raise ValueError("nothing tells the shape of the raw pixels")
    pixels = np.frombuffer(data, _DTYPES[dtype.decode()]).reshape(sides)
    if pixels.dtype.itemsize == 2:
        pixels = (pixels >> 8).astype(np.uint8)
    return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)


def _as_rgb(image: Image.Image) -> Image.Image:
    """The image in RGB; 16 bits become 8, and transparency lies on a checked pattern."""
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        values = np.asarray(image, np.float64)
        return Image.fromarray((values / 257).clip(0, 255).astype(np.uint8)).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layer = image.convert("RGBA")
        pattern = _checker(layer.size)
        pattern.paste(layer, mask=layer.getchannel("A"))
        return pattern
    return image.convert("RGB")


def _checker(size: tuple[int, int]) -> Image.Image:
    across, down = np.meshgrid(np.arange(size[0]) // _CHECKER, np.arange(size[1]) // _CHECKER)
    return Image.fromarray(np.where((across + down) % 2, 214, 245).astype(np.uint8)).convert("RGB")


def _shrunk(image: Image.Image, max_side: int, how: Image.Resampling = Image.Resampling.LANCZOS) -> Image.Image:
    scale = max_side / max(image.size)
    if scale >= 1:
        return image
    return image.resize((max(1, round(image.width * scale)), max(1, round(image.height * scale))), how)


def _mask(data: object, max_side: int) -> Image.Image | None:
    """A mask by its values, 8 bits; None for an empty or damaged one.

    Deeper values are counted round through those of 8 bits that mean neither nothing (0) nor void (255), so that
    neighbours keep different values.
    """
    image = _mask_values(data, max_side)
    if image is None or image.mode == "L":
        return image
    values = np.asarray(image)
    return Image.fromarray(
        np.where((values == 0) | (values == _DEEP_VOID), values, (values - 1) % 254 + 1).astype("u1")
    )


def _mask_values(data: object, max_side: int) -> Image.Image | None:
    """A mask by its values, mode L or I; None for an empty or damaged one."""
    if not isinstance(data, bytes) or not data:
        return None
    try:
        with Image.open(io.BytesIO(data)) as file:
            file.load()
            image: Image.Image = file.copy()
    except DECODE_ERRORS:
        return None
    if image.mode == "P":
        image = Image.fromarray(np.asarray(image))
    elif image.mode != "L":
        image = image.convert("I" if image.mode.startswith("I") else "L")
    return _shrunk(image, max_side, Image.Resampling.NEAREST)


def _classes(frame: Frame, keys: Mapping[str, str], max_side: int) -> Image.Image | None:
    for name in ("instance_map", "semantic_mask"):
        mask = _mask(single(frame, keys.get(name)), max_side)
        if mask is not None:
            return mask
    return None


# ---------------------------------------------------------------------------------------------------------------------
# Objects and words


def _objects(frame: Frame, keys: Mapping[str, str], names: Mapping[int, str], max_side: int) -> Iterator[DrawnObject]:
    boxes = box_rows(frame, keys) or []
    ids = _list(frame, keys.get("object_label"))
    texts = _list(frame, keys.get("object_text"))
    masks = _list(frame, keys.get("object_mask"))
    points = _points(frame, keys, max(len(boxes), len(ids)))
    for number in range(max(len(boxes), len(ids), len(masks))):
        own = ids[number] if number < len(ids) else 0
        name = _decoded(texts[number]) if number < len(texts) else names.get(own, str(own) if ids else "")
        yield DrawnObject(
            own,
            printable(name),
            boxes[number] if number < len(boxes) else None,
            _mask(masks[number], max_side) if number < len(masks) else None,
            points[number] if number < len(points) else (),
        )


def _segments(frame: Frame, keys: Mapping[str, str], names: Mapping[int, str], max_side: int) -> Iterator[DrawnObject]:
    """The segments of a panoptic picture, each as an object with a mask."""
    numbers = _mask_values(single(frame, keys.get("panoptic_instance_mask")), max_side)
    if numbers is None:
        return
    values = np.asarray(numbers)
    for place, own in enumerate(_list(frame, keys.get("panoptic_segment_label")), start=1):
        mask = Image.fromarray((values == place).astype(np.uint8))
        yield DrawnObject(own, printable(names.get(own, str(own))), mask=mask)


def _points(frame: Frame, keys: Mapping[str, str], objects: int) -> list[tuple[tuple[float, float, int], ...]]:
    across, down = _numbers(frame, keys.get("keypoint_x")), _numbers(frame, keys.get("keypoint_y"))
    if not objects or len(across) != len(down) or len(across) % objects:
        return []
    visible = _numbers(frame, keys.get("keypoint_visibility"))
    visible = visible if len(visible) == len(across) else [2] * len(across)
    each = len(across) // objects
    every = list(zip(across, down, visible, strict=True))
    return [tuple(every[start : start + each]) for start in range(0, len(every), each)] if each else []


def _list(frame: Frame, key: str | None) -> list[Any]:
    feature = frame.get(key) if key else None
    return list(feature.values) if feature is not None else []


def _numbers(frame: Frame, key: str | None) -> list[Any]:
    feature = frame.get(key) if key else None
    return list(feature.values) if feature is not None and feature.dtype != "bytes" else []


def _decoded(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _text(frame: Frame, key: str | None) -> str:
    value = single(frame, key)
    if value is None:
        return ""
    text = text_or_none(value) if isinstance(value, bytes) else str(value)
    return printable(text) if text is not None else ""


def _title(frame: Frame, keys: Mapping[str, str], names: Mapping[int, str], objects: Sequence[DrawnObject]) -> str:
    """The labels of the picture; or how many objects of each class there are; or a caption."""
    texts = [_decoded(text) for text in _list(frame, keys.get("label_text")) if text]
    ids = [number for number in _list(frame, keys.get("label")) if isinstance(number, int)]
    labels = texts or [names.get(number, str(number)) for number in ids if number >= 0]
    if labels:
        return printable(", ".join(labels))
    counts = Counter(item.name for item in objects if item.name)
    if counts:
        return ", ".join(name if count == 1 else f"{name} ({count})" for name, count in counts.most_common())
    captions = _list(frame, keys.get("captions"))
    return printable(_decoded(captions[0])) if captions else ""


def end_of_path(path: str) -> str:
    """The name of a file: what tells it from the others in little room."""
    return path.rstrip("/").rpartition("/")[2] or path
