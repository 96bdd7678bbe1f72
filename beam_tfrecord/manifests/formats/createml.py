"""Apple's Create ML: an array of pictures with boxes
(developer.apple.com/documentation/createml/building-an-object-detector-data-source).

``image`` (also ``imagefilename``) and ``annotations`` with ``label`` and ``coordinates``: x and y of the centre, width
and height, in pixels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from beam_tfrecord.annotations.cells import shown
from beam_tfrecord.errors import RowError
from beam_tfrecord.manifests.base import Files, Source
from beam_tfrecord.manifests.documents import DocumentFormat, Picture
from beam_tfrecord.manifests.picture_labels import PictureLabels, account_of_reject
from beam_tfrecord.manifests.text.compression import open_unpacked
from beam_tfrecord.manifests.text.json_stream import JsonItem, iterate_array
from beam_tfrecord.manifests.text.members import Members

_IMAGE = ("image", "imagefilename", "imageFilename", "filename")
_NAMED = re.compile(rb'"(?:image|image[fF]ilename|filename)"\s*:\s*"')
_BOXES = re.compile(rb'"coordinates"\s*:\s*\{')
_EMPTY = re.compile(rb'"annotations?"\s*:\s*\[\s*\]')
_SIDES = ("x", "y", "width", "height")


class CreateMLFormat(DocumentFormat):
    """An array of pictures, each with a list of boxes."""

    name = "createml"
    leads = True

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        if not (start.startswith(b"[") and start[1:].lstrip().startswith(b"{")):
            return False
        is_told = _BOXES.search(head) is not None or _EMPTY.search(head) is not None
        return is_told and _NAMED.search(head) is not None and b'"data"' not in head

    def pictures(self, files: Files, source: Source, names: Sequence[str]) -> Iterator[Picture]:
        with open_unpacked(files, source.uri) as stream:
            for item in iterate_array(stream, source.uri):
                yield _picture(item)


def _picture(item: JsonItem) -> Picture:
    where = f"[{item.place}]"
    stated, count = "", 0
    try:
        if item.repeated:
            raise RowError("bad_row", f"{where} has the key {item.repeated!r} twice")
        members = Members(item.value, where, "bad_row")
        stated = next((text for key in _IMAGE if (text := members.text(key))), "")
        key = "annotation" if isinstance(members.raw("annotation"), list) else "annotations"
        given = members.raw(key)
        count = len(given) if isinstance(given, list) else 0
        labels = PictureLabels(where)
        for place, value in enumerate(given if isinstance(given, list) else ()):
            _add(Members(value, f"{members.path(key)}[{place}]"), labels)
        if given is not None and not isinstance(given, list):
            raise RowError("bad_annotation", f"{members.path(key)} is {shown(given)}, not a list of boxes")
    except RowError as error:
        return Picture(where, stated, account=account_of_reject(count, where), problem=error)
    return Picture(where, stated, labels.fields(), labels.account(count))


def _add(value: Members, labels: PictureLabels) -> None:
    place = value.object("coordinates")
    if place is None:
        raise RowError("bad_box", f"{value.where} has no coordinates")
    if not isinstance(value.raw("label"), str | int | None) or isinstance(value.raw("label"), Mapping):
        raise RowError("bad_annotation", f"{value.path('label')} is {shown(value.raw('label'))}, not a text")
    labels.store(
        {
            "class": value.name("label"),
            "bbox_center": [place.raw(side) for side in _SIDES],
            "origin": value.where,
        }
    )
