"""Files that give labels their ids: the label map of the Object Detection API, JSON, CSV, and the YAML of YOLO.

A label map is a StringIntLabelMap in protobuf's text form (object_detection/protos/string_int_label_map.proto)::

    item { id: 1 name: "/m/01g317" display_name: "person" }

Where all names are ids of a knowledge graph, as here, the display names are the labels. JSON is ``{"cat": 0}``,
``{"0": "cat"}`` (``id2label`` and ``label2id`` of a Hugging Face config.json too), ``["cat", "dog"]``, a list of
objects with ``id`` and ``name``, or such a list under ``categories``, as COCO has it. CSV and TSV have a name and an
id in each line, in either order (``cat,0``, as in keras-retinanet), or a head that says which column is which.
YAML has ``names``, a list or a mapping of ids to names, as Ultralytics documents it.
"""

from __future__ import annotations

import csv
import functools
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from beam_tfrecord.manifests.text.yaml_text import load_yaml

Item = tuple[int | None, str]

_MAP = re.compile(r"(?:\s|#[^\n]*(?:\n|$))*item\s*:?\s*[{<]")
_MACHINE_ID = re.compile(r"/[mgt]/\w+|n\d{8}")  # of Freebase and Google's Knowledge Graph; of WordNet
_INT32_END = 2**31
_NAMES = ("name", "display_name", "label")
_NAME_HEADS = frozenset({*_NAMES, "class", "class_name", "classname", "category", "label_name", "labels", "names"})
_ID_HEADS = frozenset({"id", "class_id", "classid", "label_id", "category_id", "index", "idx", "number"})


def read_label_map(text: str, name: str) -> list[Item] | None:
    """(id, label) of each item, in the order of the ids; None for a text that is no such file but has a label in each
    line. The id is None where the place in a list is all that tells it.

    name: of the file. Raises ValueError, which says what is wrong with it.
    """
    ending = name.lower().rpartition(".")[2]
    if ending in ("pbtxt", "prototxt", "pbtext") or _MAP.match(text):
        return _checked(_items_of_map(text), "the label map")
    if ending == "json" or (text.lstrip()[:1] == "{" and _is_json(text)):
        return _checked(_items_of_json(text), "the JSON")
    if ending in ("yaml", "yml"):
        return _checked(_items_of_yaml(text), "the YAML")
    if ending in ("csv", "tsv"):
        return _checked(_items_of_table(text, "\t" if ending == "tsv" else ","), "the table")
    return None


def _checked(items: list[Item], what: str) -> list[Item]:
    if not items:
        raise ValueError(f"{what} has no labels")
    known: dict[int, str] = {}
    for number, name in items:
        if not name:
            raise ValueError(f"{what} has a label without a name (id {number})")
        if number is None:
            continue
        if not 0 <= number < _INT32_END:
            raise ValueError(f"{what} gives {name!r} the id {number}: ids are whole numbers from 0")
        if number in known:
            raise ValueError(f"{what} gives the id {number} to {known[number]!r} and to {name!r}")
        known[number] = name
    return sorted(items, key=lambda item: -1 if item[0] is None else item[0])


# ---------------------------------------------------------------------------------------------------------------------
# The label map


def _items_of_map(text: str) -> list[Item]:
    from google.protobuf import text_format

    message = _label_map_class()()
    try:
        text_format.Parse(text, message, allow_unknown_field=True)
    except text_format.ParseError as error:
        raise ValueError(f"is no label map: {error}") from None
    for number, item in enumerate(message.item):
        if not item.HasField("id"):
            raise ValueError(f"the label map gives item {number} ({item.name or item.display_name!r}) no id")
    if all(item.display_name and _MACHINE_ID.fullmatch(item.name or "/m/0") for item in message.item):
        return [(item.id, item.display_name) for item in message.item]
    return [(item.id, item.name or item.display_name) for item in message.item]


@functools.cache
def _label_map_class() -> Any:
    """The message, with the fields that matter, from a descriptor pool of our own."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    package = "beam_tfrecord.label_map"
    file = descriptor_pb2.FileDescriptorProto(name="beam_tfrecord/label_map.proto", package=package, syntax="proto2")
    item = file.message_type.add(name="Item")
    for name, number, kind in (
        ("name", 1, kinds.TYPE_STRING),
        ("id", 2, kinds.TYPE_INT32),
        ("display_name", 3, kinds.TYPE_STRING),
    ):
        item.field.add(name=name, number=number, label=kinds.LABEL_OPTIONAL, type=kind)
    whole = file.message_type.add(name="LabelMap")
    items = whole.field.add(name="item", number=1, label=kinds.LABEL_REPEATED, type=kinds.TYPE_MESSAGE)
    items.type_name = f".{package}.Item"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.LabelMap"))


# ---------------------------------------------------------------------------------------------------------------------
# JSON


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _items_of_json(text: str) -> list[Item]:
    try:
        value = json.loads(text, object_pairs_hook=_no_repeats)
    except json.JSONDecodeError as error:
        raise ValueError(f"is no JSON: {error}") from None
    if isinstance(value, Mapping):
        for key in ("id2label", "label2id", "categories"):
            if isinstance(value.get(key), Mapping | list):
                value = value[key]
                break
    items = _of_object(value) if isinstance(value, Mapping) else _of_list(value) if isinstance(value, list) else None
    if items is None:
        raise ValueError(
            "the JSON tells no labels: it must be an object of names and ids, a list of names, or a list of objects "
            "with id and name"
        )
    return items


def _no_repeats(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the JSON has the key {key!r} twice")
        found[key] = value
    return found


def _of_object(value: Mapping[str, Any]) -> list[Item] | None:
    if value and all(_is_whole(number) for number in value.values()):
        return [(number, name) for name, number in value.items()]
    if value and all(isinstance(name, str) for name in value.values()) and all(map(_is_number, value)):
        return [(int(number), name) for number, name in value.items()]
    return None


def _of_list(value: list[Any]) -> list[Item] | None:
    if all(isinstance(name, str) for name in value):
        return [(None, name) for name in value]
    if not all(isinstance(item, Mapping) and _is_whole(item.get("id")) for item in value):
        return None
    names = [next((item[key] for key in _NAMES if isinstance(item.get(key), str)), None) for item in value]
    if None in names:
        return None
    return [(item["id"], str(name)) for item, name in zip(value, names, strict=True)]


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+", text) is not None


# ---------------------------------------------------------------------------------------------------------------------
# YAML and tables


def _items_of_yaml(text: str) -> list[Item]:
    """The ``names`` of a YAML, or the list that it is."""
    value = load_yaml(text)
    names = value.get("names") if isinstance(value, Mapping) else value
    items = _of_object(names) if isinstance(names, Mapping) else _of_list(names) if isinstance(names, list) else None
    if items is None:
        raise ValueError("the YAML tells no labels: it needs names, a list of them or a mapping of ids to names")
    return items


def _items_of_table(text: str, delimiter: str) -> list[Item]:
    """(id, name) of each line. Without a column of ids the place tells them; a head is known by its usual names."""
    try:
        rows = [row for row in csv.reader(text.splitlines(), delimiter=delimiter, strict=True) if any(row)]
    except csv.Error as error:
        raise ValueError(f"its quotes do not match ({error})") from None
    rows = [[cell.strip() for cell in row] for row in rows]
    head = [cell.casefold() for cell in rows[0]] if rows else []
    uneven = next((row for row in rows if len(row) != len(head)), None)
    if uneven is not None:
        raise ValueError(f"the line {delimiter.join(uneven)!r} has {len(uneven)} cells, and the first has {len(head)}")
    has_head = not _NAME_HEADS.isdisjoint(head)
    if has_head:
        del rows[0]
        name = next(place for place, cell in enumerate(head) if cell in _NAME_HEADS)
        number = next((place for place, cell in enumerate(head) if cell in _ID_HEADS), None)
    elif len(head) > 2:
        raise ValueError(f"the table has {len(head)} columns and no head such as name,id that says what they are")
    else:
        numbers = [place for place in range(len(head)) if all(_is_number(row[place]) for row in rows)]
        if len(head) == 2 and len(numbers) != 1:
            raise ValueError("each line of the table must be a name and an id, or put the head name,id in front")
        number = numbers[0] if len(head) == 2 else None
        name = 0 if number is None else 1 - number
    wrong = next((row for row in rows if number is not None and not _is_number(row[number])), None)
    if wrong is not None and number is not None:
        raise ValueError(f"the table gives {wrong[name]!r} the id {wrong[number]!r}: ids are whole numbers from 0")
    return [(None if number is None else int(row[number]), row[name]) for row in rows]
