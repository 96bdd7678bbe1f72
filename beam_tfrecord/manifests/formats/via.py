"""The VGG Image Annotator: annotations of VIA 2 as JSON, and its projects (docs/face_demo and user guide of VIA 2.0.12,
www.robots.ox.ac.uk/~vgg/software/via).

A member for each picture, by its name and size: ``filename``, ``regions`` with ``shape_attributes`` and
``region_attributes`` (a list; in VIA 1 an object by number), ``file_attributes``. A project has the same below
``_via_img_metadata``. Which region attribute is the class is decided for the whole file: the only one, the one with a
usual name, or what ``--label_column`` says. Ellipses are turned by ``theta`` radians. Points and lines have no box. Its
CSV is read as a table (:func:`beam_tfrecord.manifests.box_cells.region_of`), its COCO export as COCO. What VIA 3 writes
(``file``, ``view``, ``metadata``; a CSV that begins with ``# CSV_HEADER``) is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from beam_tfrecord.annotations.cells import real_number, shown
from beam_tfrecord.core.account import Decision
from beam_tfrecord.errors import ConfigError, ManifestError, RowError, nearest
from beam_tfrecord.manifests.base import Files, Source
from beam_tfrecord.manifests.box_cells import REGION, region_of
from beam_tfrecord.manifests.box_reading import class_attribute
from beam_tfrecord.manifests.documents import DocumentFormat
from beam_tfrecord.manifests.outlines import ellipse, turned
from beam_tfrecord.manifests.picture_labels import Picture, PictureLabels, bad, gather
from beam_tfrecord.manifests.registry import read_head
from beam_tfrecord.manifests.text.compression import open_unpacked
from beam_tfrecord.manifests.text.json_text import OBJECT, Members, holds, iterate_members, start_of_json
from beam_tfrecord.options.config import ManifestConfig

_PICTURES = "_via_img_metadata"
_INSIDE = tuple(re.compile(rb'"%s"\s*:' % name) for name in (b"filename", b"size", b"regions"))
_PROJECT = re.compile(rb'"_via_(?:settings|img_metadata|attributes)"\s*:')


_THIRD = (
    re.compile(rb'"data_format_version"\s*:\s*"3'),
    re.compile(rb'"vid_list"|"__FILE_ID_LIST__"|"fid_list"|"pid"'),
)
_THIRD_CSV = b"# CSV_HEADER = metadata_id"


class ViaFormat(DocumentFormat):
    """Annotations or a project of VIA 2."""

    name = "via"
    asks = ("label",)
    leads = True

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        is_second = start_of_json(head) == OBJECT and (holds(head, _PROJECT) or holds(head, *_INSIDE))
        return is_second or _is_of_third(head)

    def look(self, files: Files, uri: str, config: ManifestConfig) -> tuple[dict[str, Any], tuple[Decision, ...]]:
        """Reads the file once, for the attributes of its regions."""
        if _is_of_third(read_head(files, uri)):
            raise ManifestError(
                f"{uri} is what VIA 3 writes, of which nothing is read: make the annotations with VIA 2, or write them "
                f"as a CSV with columns image, xmin, ymin, xmax, ymax, class (one box to a line)"
            )
        keys: dict[str, None] = {}
        for _, value, _ in _pictures(files, uri):
            for region in _regions(value):
                given = region.get("region_attributes") if isinstance(region, Mapping) else None
                keys.update(dict.fromkeys(map(str, given if isinstance(given, Mapping) else ())))
        stated = config.label_column
        if stated is not None and stated not in keys:
            raise ConfigError(
                f"--label_column {stated}: the regions of {uri} have no such attribute{nearest(stated, keys)}; they "
                f"have {', '.join(keys) or 'none'}"
            )
        chosen = stated or (class_attribute(list(keys), uri) if keys else "")
        told = (Decision("class", chosen, "--label_column" if stated else "the attributes of the regions"),)
        return {"class": chosen}, told if chosen else ()

    def pictures(self, files: Files, source: Source, names: Sequence[str]) -> Iterator[Picture]:
        for key, value, repeated in _pictures(files, source.uri):
            yield gather(f"{key!r}", key, partial(_read, key, value, repeated, source.details["class"]))


def _is_of_third(head: bytes) -> bool:
    return head.startswith(_THIRD_CSV) or (start_of_json(head) == OBJECT and holds(head, *_THIRD))


def _pictures(files: Files, uri: str) -> Iterator[tuple[str, Any, str]]:
    """(key, picture, a key that it has twice) of all pictures. Raises ManifestError."""
    with open_unpacked(files, uri) as stream:
        for item in iterate_members(stream, uri):
            if item.key == _PICTURES:
                if item.place >= 0 or not isinstance(item.value, Mapping):
                    raise ManifestError(f"{uri}: {_PICTURES} is no object with a member for each picture")
                for key, value in item.value.items():
                    yield key, value, item.repeated
            elif not item.key.startswith("_via_"):
                yield item.key, item.value, item.repeated


def _regions(picture: Any) -> list[Any]:
    given = picture.get("regions") if isinstance(picture, Mapping) else None
    if isinstance(given, Mapping):
        return list(given.values())
    return given if isinstance(given, list) else []


def _read(key: str, value: Any, repeated: str, chosen: str, labels: PictureLabels) -> None:
    where = f"{key!r}"
    regions = _regions(value)
    labels.found = len(regions)
    members = Members(value, where, "bad_row")
    labels.stated = members.text("filename")
    if repeated:
        raise bad(where, f"has the key {repeated!r} twice")
    given = members.raw("regions")
    if not isinstance(given, list | Mapping):
        why = "is missing" if given is None else f"is {shown(given)}, not a list of regions"
        raise bad(members.path("regions"), f"{why}; an empty list says that there are none")
    for place, region in enumerate(regions):
        _add(Members(region, f"{where}.regions[{place}]"), chosen, labels)
    for name, text in members.below("file_attributes").items():
        if text not in ("", None):
            labels.attribute(f"{name} of a file", is_stored=False, where=key)


def _add(region: Members, chosen: str, labels: PictureLabels) -> None:
    box, why = region_of(region.raw("shape_attributes"), region.raw("region_attributes"), region.where)
    if box is None:
        labels.leave_out(region.where, "region", why or "it has no shape")
        return
    given = box.pop(REGION)
    shape = region.object("shape_attributes")
    assert shape is not None
    if "bbox_center" in box:
        try:
            x, y, across, down = (real_number(number) for number in box.pop("bbox_center"))
            degrees = math.degrees(real_number(shape.raw("theta") or 0))
            if not all(map(math.isfinite, (x, y, across, down, degrees))):
                raise ValueError("a number is not finite")
        except ValueError as error:
            raise RowError("bad_box", f"{shape.where}: {error}") from None
        box["polygons"] = [turned(ellipse(x, y, across / 2, down / 2), degrees, x, y)]
    if chosen:
        box["class"] = given.pop(chosen, "")
    for name in given:
        labels.attribute(name, is_stored=False, where=region.where)
    labels.store({**box, "origin": region.where})
