"""Files that tell which label has which id: labels.txt for people, label_map.pbtxt for the Object Detection API."""

from __future__ import annotations

import json

from beam_tfrecord.annotations.base import Vocabulary
from beam_tfrecord.datasets.metadata.text import utf8


def label_line(name: str) -> str:
    """A name as one line of a file that is read line by line, without white space around each.

    Nearly every name is that line itself. One that would not come back (empty, with white space around it, with a line
    break inside) is written as a JSON string, in quotes.
    """
    is_plain = name == name.strip() and name.splitlines() == [name]
    return name if is_plain else json.dumps(name)


def name_of_line(line: str) -> str:
    """The name that :func:`label_line` wrote as a line."""
    text = line.strip()
    if text.startswith('"') and text.endswith('"'):
        try:
            name = json.loads(text)
        except ValueError:
            return text
        if isinstance(name, str) and label_line(name) == text:
            return name
    return text


def labels_file(vocabulary: Vocabulary) -> bytes:
    """labels.txt: the names in id order, one per line; the first has the id ``label_offset`` of conversion.json."""
    return utf8("".join(f"{label_line(name)}\n" for name in vocabulary.names))


def label_map_file(vocabulary: Vocabulary) -> bytes:
    """label_map.pbtxt: a StringIntLabelMap in protobuf's text form.

    The message is that of object_detection/protos/string_int_label_map.proto; the ids are those in the records. The
    Object Detection API itself keeps 0 for the background: use ``--label_offset 1``, the default of ``--keys od``.
    """
    items = zip(vocabulary.ids, vocabulary.names, strict=True)
    return utf8("\n".join(f'item {{\n  id: {number}\n  name: "{_escaped(name)}"\n}}\n' for number, name in items))


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escaped(name: str) -> str:
    """A string literal of protobuf's text form (https://protobuf.dev/reference/protobuf/textformat-spec)."""
    return "".join(
        _ESCAPES.get(character) or (f"\\{ord(character):03o}" if character < " " else character) for character in name
    )


def dense_names(vocabulary: Vocabulary) -> tuple[str, ...] | None:
    """A name for every id from 0 to the largest: what formats need in which a name's place is its id.

    An id that no label has gets a name of its own: ``background`` for 0, else ``unused_<id>``. None when there is no
    label, an id is negative, most names would be such, or two would be spelled alike.
    """
    ids = vocabulary.ids
    if not ids or min(ids) < 0 or max(ids) >= 2 * len(ids) + 100:
        return None
    lines = [label_line(name) for name in vocabulary.names]
    name_of = dict(zip(ids, lines, strict=True))
    taken = set(lines)
    names = tuple(name_of[number] if number in name_of else _unused(number, taken) for number in range(max(ids) + 1))
    return names if len(set(names)) == len(names) else None


def _unused(number: int, taken: set[str]) -> str:
    name = "background" if number == 0 else f"unused_{number}"
    while name in taken:
        name = f"{name}_"
    return name
