"""Cityscapes: ``leftImg8bit/SPLIT/CITY/x_leftImg8bit.png`` and ``gtFine/SPLIT/CITY/x_gtFine_polygons.json``.

Source: github.com/mcordts/cityscapesScripts, ``README.md`` and ``cityscapesscripts/preparation/json2labelImg.py``. A
file has ``imgHeight``, ``imgWidth`` and ``objects`` with ``label`` and ``polygon``; ``deleted`` ones do not count, and
``cargroup`` and the like are a crowd of cars. Each polygon is an object with its mask, stuff like the road as well.
``x_gtFine_labelIds.png`` beside it is the semantic mask of the picture.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from beam_tfrecord.manifests.label_files import JsonFilesFormat
from beam_tfrecord.manifests.mask_files import SEMANTIC
from beam_tfrecord.manifests.outlines import outline
from beam_tfrecord.manifests.picture_labels import PictureLabels, length_of
from beam_tfrecord.manifests.split_names import split_above
from beam_tfrecord.manifests.text.json_text import Members
from beam_tfrecord.manifests.text.uri_text import name_of

_NAME = re.compile(r"(?P<frame>.+)_(?P<kind>gtFine|gtCoarse)_polygons\.json")
_SIZE = re.compile(rb'"img(?:Height|Width)"\s*:')
_OBJECTS = re.compile(rb'"objects"\s*:\s*\[')
_GROUP = "group"


class CityscapesFormat(JsonFilesFormat):
    """The folder with ``leftImg8bit`` and ``gtFine`` (or ``gtCoarse``), or one label file."""

    name = "cityscapes"
    suffix = "_polygons.json"
    heads = (_SIZE, _OBJECTS)

    def is_labels(self, document: Mapping[str, Any]) -> bool:
        return "imgHeight" in document and "objects" in document

    def gather(self, document: Mapping[str, Any], name: str, labels: PictureLabels) -> None:
        labels.found = length_of(document["objects"])
        members = Members(document, "")
        for one in members.listed("objects"):
            _add(one, labels, name)
        labels.state_size(name, members.raw("imgWidth"), members.raw("imgHeight"))

    def image_of(self, path: str) -> str:
        told = _NAME.fullmatch(name_of(path))
        return f"{told['frame']}_leftImg8bit.png" if told else ""

    def beside_label(self, path: str) -> dict[str, str]:
        """The semantic mask that lies beside a label file."""
        return {SEMANTIC: path.removesuffix(self.suffix) + "_labelIds.png"}

    def split_of(self, path: str) -> str:
        """Folders of cities lie between that of the split and the files."""
        return split_above(path)


def _add(one: Members, labels: PictureLabels, name: str) -> None:
    label = one.name("label")
    if one.raw("deleted"):
        labels.leave_out(one.where, "deleted object", f"the {label} is marked as deleted")
        return
    box: dict[str, Any] = {"class": label, "origin": f"{name}:{one.where}"}
    if label.endswith(_GROUP) and label != _GROUP:
        box.update({"class": label.removesuffix(_GROUP), "is_crowd": 1})
    box["polygons"] = [outline(one.raw("polygon"), one.path("polygon"))]
    labels.store(box)
