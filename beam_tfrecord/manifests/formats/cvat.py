"""CVAT's own XML, "CVAT for images 1.1" and "CVAT for video 1.1".

Sources: docs.cvat.ai/docs/dataset_management/formats/format-cvat, and what CVAT and Datumaro write and read
(``cvat/apps/dataset_manager/formats/cvat.py``, ``plugins/data_formats/cvat`` of Datumaro 1.13).

An ``<image>`` has boxes (``rotation`` in degrees, clockwise about the centre), ellipses, polygons, masks (run lengths
along the rows of their own box), skeletons and points, and tags, which are labels of the picture; ``subset`` is its
split. A skeleton, and a shape of several points, is an object with keypoints, its box being the one around them, as in
CVAT's export to COCO. A video has ``<track>`` s with one shape for each frame, whose pictures are ``frame_000123.PNG``;
a shape that is ``outside`` is none in this frame. Polylines and cuboids have neither box nor mask.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from beam_tfrecord.annotations.cells import whole_number
from beam_tfrecord.errors import ManifestError, RowError
from beam_tfrecord.manifests.base import Files, Source
from beam_tfrecord.manifests.box_cells import attributes_of
from beam_tfrecord.manifests.documents import DocumentFormat
from beam_tfrecord.manifests.gathering import Groups
from beam_tfrecord.manifests.outlines import ellipse, hull, numbers_of, rle_of_patch, turned, turned_box
from beam_tfrecord.manifests.picture_labels import Picture, PictureLabels, bad, gather
from beam_tfrecord.manifests.text.compression import open_unpacked
from beam_tfrecord.manifests.text.xml_tree import Element, iterate_children

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_ROOT = re.compile(rb"<annotations[\s>]")
_INSIDE = re.compile(rb"<(?:image|track|version|meta)[\s>]")
_FRAME = re.compile(r"(?:^|/)frame_(\d+)\.[^/.]+$")
_WITHOUT_AREA = {"polyline": "a line has neither a box nor a mask", "cuboid": "a cuboid has neither a box nor a mask"}


class CvatFormat(DocumentFormat):
    """An ``annotations.xml`` of CVAT, of pictures or of a video."""

    name = "cvat"
    leads = True

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        if not start.startswith((b"<?xml", b"<annotations", b"<!--")):
            return False
        found = _ROOT.search(head)
        return found is not None and _INSIDE.search(head, found.end() - 1) is not None

    def pictures(self, files: Files, source: Source, names: Sequence[str]) -> Iterator[Picture]:
        video: set[int] = set()
        with Groups() as frames, open_unpacked(files, source.uri) as stream:
            for element in iterate_children(stream, source.uri, "annotations"):
                if element.name == "image":
                    where = f"{element.line}"
                    yield gather(where, where, partial(_read_image, element))
                elif element.name == "track":
                    for shape in element.children:
                        number = _frame_of(shape, source.uri)
                        shape.attributes.setdefault("label", element.attributes.get("label", ""))
                        frames.add(str(number), shape)
                        video.add(number)
                elif element.name not in ("version", "meta"):
                    raise ManifestError(
                        f"{source.uri}, line {element.line}: <{element.name}> is nothing that CVAT writes there"
                    )
            if video:
                yield from _frames(video, frames, names)


def _frames(video: set[int], frames: Groups, names: Sequence[str]) -> Iterator[Picture]:
    """The frames of a video: those that have shapes, and those whose pictures are there."""
    there = {int(found[1]): name for name in names if (found := _FRAME.search(name))}
    for number in sorted(video | there.keys()):
        shapes = frames.take(str(number))
        where = f"frame {number}"
        name = there.get(number, f"frame_{number:06}.PNG")
        yield gather(where, where, partial(_read, shapes, name, None))


def _frame_of(shape: Element, uri: str) -> int:
    try:
        number = whole_number(shape.attributes.get("frame", ""))
        if number < 0:
            raise ValueError("is negative")
    except ValueError:
        raise ManifestError(
            f"{uri}, line {shape.line}: <{shape.name}> of a track has the frame {shape.attributes.get('frame')!r}, "
            f"not a number"
        ) from None
    return number


def _read_image(element: Element, labels: PictureLabels) -> None:
    subset = element.attributes.get("subset", "").strip()
    if subset and subset.lower() != "default":  # CVAT's name for no subset
        labels.further["split"] = subset.lower()
    labels.state_size(f"line {element.line}: <image>", *(element.attributes.get(side) for side in ("width", "height")))
    _read(element.children, element.attributes.get("name", ""), labels.further.get("size"), labels)


def _read(shapes: Sequence[Element], name: str, size: tuple[int, int] | None, labels: PictureLabels) -> None:
    labels.stated, labels.found = name, len(shapes)
    for shape in shapes:
        _add(shape, labels, size)
    labels.with_boxes = not shapes or any(shape.name != "tag" for shape in shapes)


def _add(shape: Element, labels: PictureLabels, size: tuple[int, int] | None) -> None:
    """Add a shape or a tag to the labels of its picture. Raises RowError."""
    told = f"line {shape.line}"
    if shape.attributes.get("outside") == "1":
        labels.use("outside of its frame")
        return
    label = shape.attributes.get("label", "")
    if shape.name == "tag":
        if not label.strip():
            raise RowError("missing_label", f"{told}: <tag> has no label")
        labels.label(label.strip())
        return
    reason = _WITHOUT_AREA.get(shape.name)
    if reason is not None:
        labels.leave_out(told, shape.name, reason)
        return
    box: dict[str, Any] = {"class": label, "origin": told}
    if "occluded" in shape.attributes:
        box["occluded"] = shape.attributes["occluded"]
    box.update(_attributes(shape, labels))
    if shape.name == "box":
        sides = _numbers(shape, "xtl", "ytl", "xbr", "ybr")
        degrees = _number(shape, "rotation", 0.0)
        if degrees % 360:
            box["polygons"] = [turned_box(sides, degrees)]
        else:
            box["bbox"] = list(sides)
    elif shape.name == "ellipse":
        x, y, across, down = _numbers(shape, "cx", "cy", "rx", "ry")
        box["polygons"] = [turned(ellipse(x, y, across, down), _number(shape, "rotation", 0.0), x, y)]
    elif shape.name == "polygon":
        box["polygons"] = [[number for point in _points(shape) for number in point]]
    elif shape.name == "mask":
        box["rle"] = _rle(shape, size)
    elif shape.name in ("points", "skeleton"):
        found, names = _keypoints(shape)
        around = [list(found[place : place + 2]) for place in range(0, len(found), 3) if found[place + 2]]
        extent = hull(around) if around else [0.0] * 4
        if extent[0] == extent[2] or extent[1] == extent[3]:
            labels.leave_out(told, shape.name, "it has no extent, so that there is no box around it")
            return
        box.update({"keypoints": found, "bbox": extent})
        if names:
            box["keypoint_names"] = names
    else:
        labels.leave_out(told, shape.name, f"the shape <{shape.name}> is not known")
        return
    labels.store(box)


def _attributes(shape: Element, labels: PictureLabels) -> dict[str, Any]:
    """Those attributes of an object that records have; the others are counted."""
    given = {child.attributes.get("name", ""): child.text.strip() for child in shape.all("attribute")}
    kept = {}
    for name, value in given.items():
        found = attributes_of({name.casefold(): value}) if value.casefold() in ("true", "false", "0", "1") else {}
        kept.update(found)
        labels.attribute(name, is_stored=bool(found), where=f"line {shape.line}")
    return kept


def _number(shape: Element, name: str, otherwise: float | None = None) -> float:
    text = shape.attributes.get(name)
    if text is None and otherwise is not None:
        return otherwise
    where = f"line {shape.line}: {name} of <{shape.name}>"
    if text is None:
        raise bad(where, "is missing")
    (number,) = numbers_of([text], where)
    return number


def _numbers(shape: Element, *names: str) -> tuple[float, ...]:
    return tuple(_number(shape, name) for name in names)


def _points(shape: Element) -> list[tuple[float, float]]:
    """The points of ``x,y;x,y``. Raises RowError."""
    found = []
    where = f"line {shape.line}: the points of <{shape.name}>"
    for pair in shape.attributes.get("points", "").split(";"):
        numbers = pair.split(",")
        if len(numbers) != 2:
            raise bad(where, f"hold {pair!r}, not x,y")
        x, y = numbers_of(numbers, where)
        found.append((x, y))
    return found


def _keypoints(shape: Element) -> tuple[list[float], list[str]]:
    """(x, y, visibility of each point; their names, of a skeleton)."""
    if shape.name == "points":
        return [number for x, y in _points(shape) for number in (x, y, 2)], []
    numbers: list[float] = []
    names = []
    for point in shape.all("points"):
        ((x, y), *others) = _points(point)
        if others:
            raise RowError("bad_annotation", f"line {point.line}: a point of a skeleton has {1 + len(others)} places")
        outside, hidden = (point.attributes.get(name) == "1" for name in ("outside", "occluded"))
        numbers += [0, 0, 0] if outside else [x, y, 1 if hidden else 2]
        names.append(point.attributes.get("label", ""))
    return numbers, names


def _rle(shape: Element, size: tuple[int, int] | None) -> dict[str, Any]:
    """The code of a mask, which CVAT states for the part that its box cuts out, along the rows."""
    told = f"line {shape.line}: <mask>"
    left, top, width, height = (int(number) for number in _numbers(shape, "left", "top", "width", "height"))
    if size is None:
        raise RowError("bad_mask", f"{told} belongs to an image without width and height")
    try:
        counts = [whole_number(text) for text in shape.attributes.get("rle", "").split(",")]
    except ValueError as error:
        raise RowError("bad_mask", f"{told}: rle {error}") from None
    if min(counts) < 0 or min(width, height) < 1 or sum(counts) != width * height or sum(counts) > size[0] * size[1]:
        raise RowError("bad_mask", f"{told}: its run lengths make {sum(counts)} pixels, not {width}x{height}")
    return rle_of_patch(_patch(counts, width, height), left, top, *size)


def _patch(counts: Sequence[int], width: int, height: int) -> npt.NDArray[np.bool_]:
    import numpy as np

    return np.repeat(np.arange(len(counts)) % 2 == 1, counts).reshape(height, width)
