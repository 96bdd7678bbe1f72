"""Output and augmented manifests of SageMaker Ground Truth: JSON Lines with ``source-ref``.

Source: docs.aws.amazon.com/sagemaker/latest/dg/sms-data-output.html and augmented-manifest.html. A label attribute,
such as ``bounding-box``, has its ``bounding-box-metadata`` beside it, whose ``type`` tells what it is:

``groundtruth/object-detection``      ``annotations`` with class_id, left, top, width, height in pixels; names of the
                                      classes in ``class-map``, confidences in ``objects``
``groundtruth/image-classification``  the label is ``class-name``
``...-multilabel``                    a list of class ids, with ``class-map``

Other kinds (masks of colours, verifications) are told. Without metadata, a text or a number is a label and an object
with ``annotations`` has boxes. The image is the one of this name that lies there, else what ``source-ref`` says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from beam_tfrecord.annotations.cells import shown, text_of
from beam_tfrecord.core.account import Decision
from beam_tfrecord.errors import AmbiguousManifestError, ConfigError, ManifestError, RowError, nearest
from beam_tfrecord.manifests.base import Files, Source
from beam_tfrecord.manifests.documents import DocumentFormat, pictures_of_lines
from beam_tfrecord.manifests.picture_labels import Picture, PictureLabels, bad, length_of
from beam_tfrecord.manifests.text.json_text import Members, decode_json
from beam_tfrecord.manifests.text.lines import decode_head, look_at_text, split_lines
from beam_tfrecord.options.config import ManifestConfig

_SOURCE = "source-ref"
_METADATA = "-metadata"
_KEY = re.compile(r'^\s*\{.*"source-ref"\s*:')
_SAMPLE_LINES = 1_000
BOXES, CLASS, CLASSES, OTHER = "boxes", "label", "labels", "other"
_KINDS = {
    "groundtruth/object-detection": BOXES,
    "groundtruth/image-classification": CLASS,
    "groundtruth/image-classification-multilabel": CLASSES,
}


class SagemakerFormat(DocumentFormat):
    """A manifest of Ground Truth, or one to train from."""

    name = "sagemaker"
    asks = ("label",)

    def recognises(self, files: Files, uri: str, head: bytes) -> bool:
        lines = [line for line in split_lines(decode_head(head) or "") if line.strip()]
        return bool(lines) and _KEY.match(lines[0]) is not None

    def look(self, files: Files, uri: str, config: ManifestConfig) -> tuple[dict[str, Any], tuple[Decision, ...]]:
        sample = look_at_text(files, uri, config.encoding)
        lines = split_lines(sample.text)
        found = _attributes_of(lines if sample.is_whole else lines[:-1])
        asked = config.label_column
        if asked is not None and asked not in found:
            raise ConfigError(f"{uri} has no label attribute {asked!r}{nearest(asked, found)} (--label_column)")
        chosen = {name: kind for name, kind in found.items() if asked in (None, name)}
        for told, kinds in (("boxes", {BOXES}), ("labels", {CLASS, CLASSES})):
            names = [name for name, kind in chosen.items() if kind in kinds]
            if len(names) > 1:
                raise AmbiguousManifestError(
                    f"{uri}: the {told} can be those of {' or '.join(names)}: name one of them, such as "
                    f"--label_column {names[-1]}"
                )
        if chosen and set(chosen.values()) == {OTHER}:
            raise ManifestError(
                f"{uri}: its label attributes ({', '.join(chosen)}) hold neither boxes nor labels of images: give the "
                f"manifest of an object detection or image classification job"
            )
        decided = tuple(
            Decision(kind, name, "--label_column" if asked else "its metadata, or what it holds")
            for name, kind in chosen.items()
            if kind != OTHER
        )
        return {"text": sample.form.to_details(), "attributes": chosen, "all_attributes": found}, decided

    def pictures(self, files: Files, source: Source, names: Sequence[str]) -> Iterator[Picture]:
        known = (*source.details["all_attributes"], _SOURCE)
        return pictures_of_lines(files, source, partial(_read, source.details["attributes"], known))


def _attributes_of(lines: Sequence[str]) -> dict[str, str]:
    """The label attributes of a sample of lines, and of which kind each is."""
    kinds: dict[str, Counter[str]] = {}
    for line in [line for line in lines if line.strip()][:_SAMPLE_LINES]:
        try:
            value = decode_json(line)
        except ValueError:  # told when the row is read
            continue
        for name in value if isinstance(value, Mapping) else ():
            if name != _SOURCE and not name.endswith(_METADATA):
                kinds.setdefault(name, Counter())[_kind(value, name)] += 1
    return {name: max(counts, key=lambda kind: (kind != OTHER, counts[kind])) for name, counts in kinds.items()}


def _kind(value: Mapping[str, Any], name: str) -> str:
    metadata = value.get(f"{name}{_METADATA}") or value.get(f"{name.removesuffix('-ref')}{_METADATA}")
    stated = metadata.get("type") if isinstance(metadata, Mapping) else None
    if stated is not None:
        return _KINDS.get(str(stated), OTHER)
    held = value[name]
    if isinstance(held, Mapping):
        return BOXES if isinstance(held.get("annotations"), list) else OTHER
    return CLASS if isinstance(held, str | int) and not name.endswith("-ref") else OTHER


def _read(
    attributes: Mapping[str, str], known: Sequence[str], members: Members, where: str, labels: PictureLabels
) -> None:
    value = members.value
    labels.stated = members.text(_SOURCE)
    labels.found = sum(_count(value, name, kind) for name, kind in attributes.items())
    labels.with_boxes = False
    absent = [name for name, kind in attributes.items() if kind != OTHER and value.get(name) is None]
    if absent and not any(kind != OTHER and name not in absent for name, kind in attributes.items()):
        raise RowError("missing_label", f"the line has no {' and no '.join(absent)}{_failure(members, absent)}")
    for name in absent:
        labels.note(f"line {where}", f"it has no {name}{_failure(members, absent)}")
    for name in value:
        if name not in known and not name.endswith(_METADATA):
            labels.note(f"line {where}", f"{name} is in none of the first lines, which tell what is read: it is not")
    for name, kind in attributes.items():
        if value.get(name) is None:
            continue
        if kind == BOXES:
            labels.with_boxes = True
            _add_boxes(members, name, labels, where)
        elif kind == OTHER:
            labels.leave_out(f"line {where}", name, "its kind of label is not known")
        else:
            _add_labels(members, name, kind, labels)


def _failure(members: Members, names: Sequence[str]) -> str:
    """Why Ground Truth has no labels of a picture, as far as it says so (``failure-reason``)."""
    stated = (members.below(f"{name}{_METADATA}").get("failure-reason") for name in names)
    return next((f": {shown(reason)}" for reason in stated if reason), "")


def _count(value: Mapping[str, Any], name: str, kind: str) -> int:
    """How many annotations an attribute holds."""
    held = value.get(name)
    if kind == BOXES:
        return length_of(held.get("annotations")) if isinstance(held, Mapping) else 0
    return length_of(held) if kind == CLASSES else int(held is not None)


def _add_boxes(members: Members, name: str, labels: PictureLabels, where: str) -> None:
    """Add the boxes of an attribute, and what else they tell of the image. Raises RowError."""
    held, metadata = members.object(name), members.object(f"{name}{_METADATA}")
    assert held is not None
    names = metadata.below("class-map") if metadata is not None else {}
    annotations = held.listed("annotations")
    scores = (metadata.objects("objects") if metadata is not None else None) or []
    if scores and len(scores) != len(annotations):
        labels.note(f"line {where}", f"{len(scores)} confidences of {len(annotations)} boxes are not stored")
    for place, item in enumerate(annotations):
        number = item.whole("class_id")
        if number is None:
            raise bad(item.path("class_id"), "is missing")
        box = {
            "class": _class_name(names, str(number), item.path("class_id")),
            "bbox_xywh": [item.raw(side) for side in ("left", "top", "width", "height")],
            "origin": f"{where}:{item.where}",
        }
        if len(scores) == len(annotations) and scores[place].raw("confidence") is not None:
            box["confidence"] = scores[place].raw("confidence")
        labels.store(box)
    sizes = held.objects("image_size") or []
    if sizes:
        labels.state_size(f"line {where}", sizes[0].raw("width"), sizes[0].raw("height"))


def _add_labels(members: Members, name: str, kind: str, labels: PictureLabels) -> None:
    """Add the labels of an attribute. Raises RowError."""
    metadata = members.object(f"{name}{_METADATA}")
    if kind == CLASSES:
        held = members.raw(name)
        if not isinstance(held, list):
            raise bad(name, f"is {shown(held)}, not a list of class ids")
        names = metadata.below("class-map") if metadata is not None else {}
        for place, number in enumerate(held):
            labels.label(_class_name(names, text_of(number) or "", f"{name}[{place}]"))
        return
    stated = metadata.name("class-name") if metadata is not None else ""
    found = stated or members.name(name)
    if not found:
        raise RowError("missing_label", f"{name} is empty, and {name}{_METADATA} has no class-name")
    labels.label(found)


def _class_name(names: Mapping[str, Any], number: str, where: str) -> str:
    """The name of a class; its id where the manifest has no names. Raises RowError."""
    if not names:
        return number
    found = names.get(number)
    if not isinstance(found, str) or not found.strip():
        raise RowError("unknown_category", f"{where} is {number}, which the class-map does not name")
    return found.strip()
