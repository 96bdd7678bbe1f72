"""ADE20K as it is since 2021: ``x.jpg``, and ``x.json`` beside it (source: github.com/CSAILVision/ADE20K, the files of
``dataset/`` and ``utils/utils_ade20k.py``).

``annotation`` has ``imsize`` (height, width, channels), ``scene`` and a list ``object``, each with ``name``,
``polygon`` (``x`` and ``y``), ``occluded`` ("yes" or "no") and ``parts.part_level``, 0 for what is no part of something
else. Parts are left out, and counted with the object that they are of. ``x_seg.png`` has colours and is not read:
SceneParsing, with masks of numbers, is a folder of images and ``annotations/``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from beam_tfrecord.manifests.label_files import JsonFilesFormat
from beam_tfrecord.manifests.outlines import outline
from beam_tfrecord.manifests.picture_labels import PictureLabels, bad
from beam_tfrecord.manifests.split_names import split_above
from beam_tfrecord.manifests.text.json_text import Members

_ANNOTATION = re.compile(rb'^(?:\xef\xbb\xbf)?\s*\{\s*"annotation"\s*:\s*\{')
_OWN = re.compile(rb'"(?:imsize|name_ndx|hypernym)"\s*:')
_OCCLUDED = {"yes": 1, "no": 0}
_NOTHING: tuple[object, ...] = (None, "", [])  # as Matlab writes it


class Ade20kFormat(JsonFilesFormat):
    """A tree of pictures, each with its JSON beside it."""

    name = "ade20k"
    heads = (_ANNOTATION, _OWN)

    def is_labels(self, document: Mapping[str, Any]) -> bool:
        annotation = document.get("annotation")
        return isinstance(annotation, Mapping) and "object" in annotation

    def gather(self, document: Mapping[str, Any], name: str, labels: PictureLabels) -> None:
        annotation = document["annotation"]
        found = annotation["object"]
        objects = found if isinstance(found, list) else [found]  # a single one is no list, as Matlab writes it
        labels.found = len(objects)
        members = Members({**annotation, "object": objects}, "annotation")
        _add(members, name, labels)
        labels.state_shape(members.path("imsize"), annotation.get("imsize"))
        labels.stated = members.text("filename")

    def split_of(self, path: str) -> str:
        """Folders of scenes lie between that of the split and the files."""
        return split_above(path)


def _add(annotation: Members, name: str, labels: PictureLabels) -> None:
    objects = annotation.objects("object") or []
    parts_of = {id(one): one.object("parts") for one in objects}
    owners = Counter(str(parts.raw("ispartof")) for parts in parts_of.values() if parts is not None and _level(parts))
    for one in objects:
        parts = parts_of[id(one)]
        if parts is not None and _level(parts):
            labels.leave_out(one.where, "part of an object", f"{one.name('name')} is a part of something else")
            continue
        polygon = one.object("polygon")
        if polygon is None:
            raise bad(one.where, "has no polygon")
        xs, ys = polygon.raw("x"), polygon.raw("y")
        if not isinstance(xs, list) or not isinstance(ys, list) or len(xs) != len(ys):
            raise bad(polygon.where, "has other than as many x as y")
        box: dict[str, Any] = {"class": one.name("name"), "origin": f"{name}:{one.where}"}
        points = [list(point) for point in zip(xs, ys, strict=True)]
        box["polygons"] = [outline(points, polygon.where)]
        occluded = one.raw("occluded")
        if occluded not in _NOTHING:  # what is neither yes nor no is told when the row is parsed
            box["occluded"] = _OCCLUDED.get(occluded, occluded) if isinstance(occluded, str) else occluded
        if owners[str(one.raw("id"))]:
            box["parts"] = owners[str(one.raw("id"))]
        labels.store(box)


def _level(parts: Members) -> int:
    return 0 if parts.raw("part_level") in _NOTHING else parts.whole("part_level") or 0
