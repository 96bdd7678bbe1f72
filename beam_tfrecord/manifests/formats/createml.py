"""Apple's Create ML: an array of pictures with boxes
(developer.apple.com/documentation/createml/building-an-object-detector-data-source).

``image`` (also ``imagefilename``) and ``annotations`` with ``label`` and ``coordinates``: x and y of the centre, width
and height, in pixels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from beam_tfrecord.annotations.cells import shown
from beam_tfrecord.errors import RowError
from beam_tfrecord.manifests.base import Files, Source
from beam_tfrecord.manifests.documents import DocumentFormat, pictures_of_elements
from beam_tfrecord.manifests.picture_labels import Picture, PictureLabels, bad, length_of
from beam_tfrecord.manifests.text.json_text import OBJECTS, Members, holds, start_of_json

_IMAGE = ("image", "imagefilename", "imageFilename", "filename")
_NAMED = re.compile(rb'"(?:image|image[fF]ilename|filename)"\s*:\s*"')
_BOXES = re.compile(rb'"coordinates"\s*:\s*\{|"annotations?"\s*:\s*\[\s*\]')  # the list of boxes may be empty
_SIDES = ("x", "y", "width", "height")


class CreateMLFormat(DocumentFormat):
    """An array of pictures, each with a list of boxes."""

    name = "createml"
    leads = True

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        return start_of_json(head) == OBJECTS and holds(head, _BOXES, _NAMED) and b'"data"' not in head

    def pictures(self, files: Files, source: Source, names: Sequence[str]) -> Iterator[Picture]:
        return pictures_of_elements(files, source, _read)


def _read(members: Members, labels: PictureLabels) -> None:
    labels.stated = next((text for key in _IMAGE if (text := members.text(key))), "")
    key = "annotation" if members.raw("annotation") is not None else "annotations"
    given = members.raw(key)
    labels.found = length_of(given)
    if not isinstance(given, list):
        why = "is missing" if given is None else f"is {shown(given)}, not a list of boxes"
        raise bad(members.path(key), f"{why}; an empty list says that there are none")
    for place, value in enumerate(given):
        _add(Members(value, f"{members.path(key)}[{place}]"), labels)


def _add(value: Members, labels: PictureLabels) -> None:
    place = value.object("coordinates")
    if place is None:
        raise RowError("bad_box", f"{value.where} has no coordinates")
    labels.store(
        {
            "class": value.name("label"),
            "bbox_center": [place.raw(side) for side in _SIDES],
            "origin": value.where,
        }
    )
