"""Supervisely: ``img/x.jpg`` and ``ann/x.jpg.json`` in a folder for each dataset.

Sources: docs.supervisely.com ("Annotation JSON format"), ``geometry`` and ``annotation`` of supervisely 6.74.
``objects`` with ``classTitle``, ``geometryType`` and ``points`` (``exterior``, ``interior``), a ``bitmap`` (a PNG
packed with zlib, in base64, and its ``origin``), or the ``nodes`` of a graph, which are keypoints; ``tags`` of the
picture are its labels, but for those without a value that are called like splits (:data:`SPLIT_TAGS`), as Supervisely's
apps for training set them: they are its split. Coordinates are used as they stand. A hole of a polygon is cut out of
its mask. Points and lines have neither box nor mask.
"""

from __future__ import annotations

import base64
import io
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from beam_tfrecord.annotations.cells import shown
from beam_tfrecord.annotations.shapes import draw_polygons
from beam_tfrecord.errors import RowError
from beam_tfrecord.manifests.label_files import JsonFilesFormat
from beam_tfrecord.manifests.outlines import hull, ring, rle_of_patch, runs_of
from beam_tfrecord.manifests.picture_labels import PictureLabels, bad, length_of
from beam_tfrecord.manifests.text.json_text import Members

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_OBJECTS = re.compile(rb'"objects"\s*:\s*\[')
_OTHERS = re.compile(rb'"(?:classTitle|geometryType)"\s*:|"size"\s*:\s*\{')
_MOST_BYTES = 2**28
SPLIT_TAGS = ("train", "training", "val", "valid", "validation", "test")


class SuperviselyFormat(JsonFilesFormat):
    """A project or dataset of Supervisely."""

    name = "supervisely"
    split_by = "the tags of the pictures"
    heads = (_OBJECTS, _OTHERS)

    def is_labels(self, document: Mapping[str, Any]) -> bool:
        return "objects" in document and "size" in document

    def gather(self, document: Mapping[str, Any], name: str, labels: PictureLabels) -> None:
        labels.stated = name.removesuffix(".json")
        labels.found = length_of(document["objects"]) + length_of(document.get("tags"))
        members = Members(document, "")
        sides = members.below("size")
        size = labels.state_size(name, sides.get("width"), sides.get("height"))
        for tag in members.objects("tags") or ():
            _add_tag(tag, labels)
        for one in members.listed("objects"):
            _add(one, size, labels, name)
        labels.with_boxes = not labels.labels


def _add_tag(tag: Members, labels: PictureLabels) -> None:
    name, value = tag.name("name"), tag.raw("value")
    if not name:
        raise RowError("missing_label", f"{tag.where} has no name")
    has_value = isinstance(value, str | int | float) and value != ""
    split = name.casefold()
    if has_value or split not in SPLIT_TAGS:
        labels.label(f"{name}: {value}" if has_value else name)
        return
    if labels.further.setdefault("split", split) != split:
        raise bad(tag.where, f"is {name!r}, and the picture has the tag {labels.further['split']!r}: it has one split")
    labels.use("split")


def _add(one: Members, size: tuple[int, int] | None, labels: PictureLabels, name: str) -> None:
    kind = one.name("geometryType") or ("bitmap" if one.raw("bitmap") is not None else "polygon")
    box: dict[str, Any] = {"class": one.name("classTitle"), "origin": f"{name}:{one.where}"}
    for tag in one.objects("tags") or ():
        labels.attribute(tag.name("name"), is_stored=False, where=one.where)
    if kind in ("point", "line", "polyline", "cuboid", "any"):
        labels.leave_out(one.where, kind, "it has neither a box nor a mask")
        return
    if kind == "bitmap":
        box["rle"] = _bitmap(one, size)
    elif kind == "graph":
        points = _nodes(one)
        extent = hull([[x, y] for x, y in points]) if points else [0.0] * 4
        if extent[0] == extent[2] or extent[1] == extent[3]:
            labels.leave_out(one.where, kind, "it has no extent, so that there is no box around it")
            return
        box.update({"bbox": extent, "keypoints": [number for x, y in points for number in (x, y, 2)]})
    elif kind in ("rectangle", "polygon"):
        exterior, holes = _rings(one)
        if kind == "rectangle":
            box["bbox"] = hull([exterior])
        elif holes:
            box["rle"] = _with_holes(one, exterior, holes, size)
        else:
            box["polygons"] = [exterior]
    else:
        labels.leave_out(one.where, kind, f"the geometry {kind!r} is not known")
        return
    labels.store(box)


def _rings(one: Members) -> tuple[list[float], list[list[float]]]:
    points = one.object("points")
    if points is None:
        raise RowError("bad_annotation", f"{one.where} has no points")
    exterior = ring(points.raw("exterior"), points.path("exterior"))
    if len(exterior) < 4:
        raise RowError("bad_annotation", f"{points.path('exterior')} has {len(exterior) // 2} points: complete it")
    inner = points.raw("interior") or []
    if not isinstance(inner, list):
        raise RowError("bad_annotation", f"{points.path('interior')} is {shown(inner)}, not a list of outlines")
    return exterior, [ring(hole, f"{points.path('interior')}[{place}]") for place, hole in enumerate(inner)]


def _nodes(one: Members) -> list[tuple[float, float]]:
    nodes = one.object("nodes")
    if nodes is None:
        raise RowError("bad_annotation", f"{one.where} has no nodes")
    found = []
    for key in nodes.value:
        node = nodes.object(key)
        if node is not None:
            x, y = ring([node.raw("loc")], node.path("loc"))
            found.append((x, y))
    return found


def _with_holes(
    one: Members, exterior: Sequence[float], holes: Sequence[Sequence[float]], size: tuple[int, int] | None
) -> dict[str, Any]:
    width, height = _size(one, size)
    try:
        mask = draw_polygons([exterior], height, width).astype(bool) & ~draw_polygons(holes, height, width).astype(bool)
    except ValueError as error:
        raise RowError("bad_mask", f"{one.where}: {error}") from None
    return {"size": [height, width], "counts": runs_of(mask)}


def _size(one: Members, size: tuple[int, int] | None) -> tuple[int, int]:
    if size is None:
        raise RowError("bad_mask", f"{one.where} is a mask, and the file does not state the size of the picture")
    return size


def _bitmap(one: Members, size: tuple[int, int] | None) -> dict[str, Any]:
    bitmap = one.object("bitmap")
    if bitmap is None:
        raise RowError("bad_mask", f"{one.where} has no bitmap")
    left, top = (int(number) for number in ring([bitmap.raw("origin")], bitmap.path("origin")))
    return rle_of_patch(_patch(bitmap), left, top, *_size(one, size))


def _patch(bitmap: Members) -> npt.NDArray[np.bool_]:
    import numpy as np
    from PIL import Image

    try:
        data = base64.b64decode(bitmap.text("data"), validate=True)
        if not data.startswith(b"\x89PNG"):
            data = zlib.decompressobj().decompress(data, _MOST_BYTES)
        with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            values = np.asarray(image)
    except (ValueError, OSError, zlib.error, Image.DecompressionBombError) as error:
        raise RowError("bad_mask", f"{bitmap.path('data')} is no PNG packed with zlib in base64: {error}") from None
    return (values[..., 3] if values.ndim == 3 and values.shape[2] == 4 else values.reshape(values.shape[:2])) > 0
