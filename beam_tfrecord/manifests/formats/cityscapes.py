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

from beam_tfrecord.errors import RowError
from beam_tfrecord.manifests.label_files import LabelFileFormat, Labelled, NotOfFormatError, json_of
from beam_tfrecord.manifests.mask_files import SEMANTIC
from beam_tfrecord.manifests.picture_labels import PictureLabels, account_of_reject, size_of
from beam_tfrecord.manifests.rings import outline
from beam_tfrecord.manifests.split_names import is_split_folder
from beam_tfrecord.manifests.text.members import Members
from beam_tfrecord.manifests.text.uri_text import name_of

_NAME = re.compile(r"(?P<frame>.+)_(?P<kind>gtFine|gtCoarse)_polygons\.json")
_SIZE = re.compile(rb'"img(?:Height|Width)"\s*:')
_OBJECTS = re.compile(rb'"objects"\s*:\s*\[')
_GROUP = "group"


class CityscapesFormat(LabelFileFormat):
    """The folder with ``leftImg8bit`` and ``gtFine`` (or ``gtCoarse``), or one label file."""

    name = "cityscapes"
    beside = (".json",)
    suffix = "_polygons.json"

    def annotates(self, head: bytes) -> bool:
        start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        return start.startswith(b"{") and _SIZE.search(head) is not None and _OBJECTS.search(head) is not None

    def read(self, data: bytes, name: str, encoding: str) -> Labelled:
        document = json_of(data, name, encoding)
        if not isinstance(document, Mapping) or "imgHeight" not in document or "objects" not in document:
            raise NotOfFormatError
        count = len(document["objects"]) if isinstance(document["objects"], list) else 0
        try:
            members = Members(document, "")
            labels = PictureLabels(name)
            for one in members.objects("objects") or ():
                _add(one, labels, name)
            size = size_of(members, "imgWidth", "imgHeight")
        except RowError as error:
            problem = RowError(error.code, f"{name}: {error.message}")
            return Labelled({}, account=account_of_reject(count, name), problem=problem)
        fields = labels.fields()
        if size is not None:
            fields["size"] = size
        return Labelled(fields, account=labels.account(count))

    def image_of(self, path: str) -> str:
        told = _NAME.fullmatch(name_of(path))
        return f"{told['frame']}_leftImg8bit.png" if told else ""

    def beside_label(self, path: str) -> dict[str, str]:
        """The semantic mask that lies beside a label file."""
        return {SEMANTIC: path.removesuffix(self.suffix) + "_labelIds.png"}

    def split_of(self, path: str) -> str:
        """Folders of cities lie between that of the split and the files."""
        return next((folder.lower() for folder in path.split("/")[:-1] if is_split_folder(folder)), "")


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
