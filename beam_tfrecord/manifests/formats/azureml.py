"""Azure Machine Learning's JSON Lines for AutoML, which its data labelling exports as well.

Source: learn.microsoft.com/azure/machine-learning/reference-automl-images-schema. ``image_url`` is the place of the
image, ``azureml://.../paths/FOLDER/a.jpg`` or ``AmlDatastore://STORE/FOLDER/a.jpg``, ``image_details`` its size;
``label`` is a text (classification), a list of texts (several labels), or a list of objects, each with ``label``,
``isCrowd``, and ``topX``, ``topY``, ``bottomX``, ``bottomY`` or a ``polygon`` (a list of outlines x, y, x, y ...), all
of them fractions of the picture. The image is the one with the longest end of its place that lies there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from beam_tfrecord.annotations.cells import shown
from beam_tfrecord.core.account import Decision
from beam_tfrecord.errors import RowError
from beam_tfrecord.manifests.base import Files, Source
from beam_tfrecord.manifests.documents import DocumentFormat, pictures_of_lines
from beam_tfrecord.manifests.picture_labels import Picture, PictureLabels, bad
from beam_tfrecord.manifests.text.json_text import Members
from beam_tfrecord.manifests.text.lines import decode_head, look_at_text
from beam_tfrecord.options.config import ManifestConfig

_URL = re.compile(r'^\s*\{.*"image_url"\s*:\s*"', re.DOTALL)
_LABEL = re.compile(r'"(?:topX|polygon|image_details)"\s*:|"image_url"\s*:\s*"(?:azureml|AmlDatastore)://')
_SIDES = ("topX", "topY", "bottomX", "bottomY")


class AzureMLFormat(DocumentFormat):
    """A file of lines, each with an image and its label or objects."""

    name = "azureml"

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        first = (decode_head(head) or "").lstrip().partition("\n")[0]
        return _URL.match(first) is not None and _LABEL.search(first) is not None

    def look(self, files: Files, uri: str, config: ManifestConfig) -> tuple[dict[str, Any], tuple[Decision, ...]]:
        return {"text": look_at_text(files, uri, config.encoding).form.to_details()}, ()

    def pictures(self, files: Files, source: Source, names: Sequence[str]) -> Iterator[Picture]:
        return pictures_of_lines(files, source, _read)


def _read(members: Members, where: str, labels: PictureLabels) -> None:
    labels.stated = members.text("image_url")
    given = members.raw("label")
    labels.found = len(given) if isinstance(given, list) else int(given is not None)
    _add(given, where, labels)
    details = members.object("image_details")
    if details is not None:  # numbers, or 499px
        labels.state_size(details.where, *(details.name(key).removesuffix("px") for key in ("width", "height")))


def _add(given: Any, where: str, labels: PictureLabels) -> None:
    """Add the labels of a line, or its objects. Raises RowError."""
    if given is None or given == "":
        raise RowError("missing_label", "the line has no label")
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list):
        raise bad("label", f"is {shown(given)}, neither a text nor a list")
    if names and all(isinstance(one, str) for one in names):
        labels.with_boxes = False
        for name in names:
            labels.label(name)
        return
    for place, value in enumerate(given):
        one = Members(value, f"label[{place}]")
        box: dict[str, Any] = {"class": one.name("label"), "normalized": True, "origin": f"{where}:{one.where}"}
        if one.raw("isCrowd") is not None:
            box["is_crowd"] = one.raw("isCrowd")
        if any(one.raw(side) is not None for side in _SIDES):
            box["bbox"] = [one.raw(side) for side in _SIDES]
        if one.raw("polygon") is not None:
            box["polygons"] = one.raw("polygon")
        if "bbox" not in box and "polygons" not in box:
            raise bad(one.where, f"has neither {', '.join(_SIDES)} nor a polygon")
        labels.store(box)
