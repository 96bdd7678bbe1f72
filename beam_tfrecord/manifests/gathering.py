"""Several lines about one image as one row: one line per box, wherever in the source they stand."""

from __future__ import annotations

import pickle
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from beam_tfrecord.core.elements import RejectedRow, Row
from beam_tfrecord.manifests.base import Item
from beam_tfrecord.manifests.text.row_fields import rejected

_LISTS = ("boxes", "label")  # lists that the lines of one image add to; everything else must be the same in all of them
_DECIDING = ("split", "group", "asked")


def gather_by_image(items: Iterable[Item]) -> Iterator[Item]:
    """One row per image, in the order in which the images come first; rejects and the like pass through at once.

    ``boxes`` are put together in the order of the lines, and so are labels when they are lists. The origin is that of
    the first line, ``source_rows`` the number of lines. Lines that disagree about the split or the group of their
    image, or about what --where asks for, are rejected together; another disagreement is noted and the first line wins.
    """
    with Groups() as groups:
        for item in items:
            if isinstance(item, Row):
                groups.add(str(item.fields["image"]), item)
            else:
                yield item
        for image in groups.left():
            yield merge_rows(groups.take(image))


def merge_rows(rows: Sequence[Row]) -> Row | RejectedRow:
    """The row that several lines about one image make."""
    first = rows[0]
    count = sum(row.source_rows for row in rows)
    fields = {name: list(value) if isinstance(value, list) else value for name, value in first.fields.items()}
    notes: list[tuple[str, str]] = list(fields.get("notes", ()))
    for row in rows[1:]:
        for name, value in row.fields.items():
            if name in _LISTS and isinstance(value, list):
                fields.setdefault(name, []).extend(value)
            elif name == "notes":
                notes.extend(value)
            elif name not in fields or (name == "mask" and not fields[name]):
                fields[name] = value
            elif name == "mask" and not value:  # the cell need not be repeated
                continue
            elif fields[name] != value:
                if name in _DECIDING:
                    what = "cells (of --where)" if name == "asked" else name
                    message = f"{row.origin} gives the image the {what} {value!r}, {first.origin} gave {fields[name]!r}"
                    return rejected(row.origin, "bad_row", message, str(fields["image"]), count)
                notes.append(_disagreement(name, value, fields[name], row.origin))
    if notes:
        fields["notes"] = list(dict.fromkeys(notes))
    return Row(first.origin, fields, count)


def _disagreement(name: str, value: Any, known: Any, origin: str) -> tuple[str, str]:
    if name == "size":
        told = "{} says that the image has {}x{} pixels, an earlier line said {}x{}".format(origin, *value, *known)
        return "size_mismatch", told
    return (
        "annotation_ignored",
        f"{origin} has another {name} than an earlier line about the same image; that one is kept",
    )


IN_MEMORY = 64 * 2**20  # bytes of items that are kept in memory; what is beyond goes to a temporary file


class Groups:
    """Lists of items by key, keys in the order in which they came first, items in that in which they came.

    About 24 bytes of memory per item and 150 per key; the items themselves spill to a temporary file of this machine,
    which is gone with the ``with`` block.
    """

    def __init__(self) -> None:
        self._starts = array("Q")
        self._sizes = array("Q")
        self._previous = array("q")  # place of the item before it in its group, -1 for the first
        self._last: dict[str, int] = {}
        self._end = 0

    def __enter__(self) -> Groups:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __contains__(self, key: str) -> bool:
        return key in self._last

    def left(self) -> list[str]:
        """All keys that were not taken, in the order in which they came first."""
        return list(self._last)

    def add(self, key: str, item: Any) -> None:
        """Put an item (anything that can be pickled) into the group of a key."""
        data = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
        self._file.seek(self._end)
        self._file.write(data)
        self._starts.append(self._end)
        self._sizes.append(len(data))
        self._previous.append(self._last.get(key, -1))
        self._last[key] = len(self._starts) - 1
        self._end += len(data)

    def take(self, key: str) -> list[Any]:
        """The items of a key, which is forgotten; an empty list for a key that nothing was put to."""
        items = self.peek(key)
        self._last.pop(key, None)
        return items

    def peek(self, key: str) -> list[Any]:
        """The items of a key, which stay."""
        place = self._last.get(key, -1)
        items = []
        while place >= 0:
            self._file.seek(self._starts[place])
            items.append(pickle.loads(self._file.read(self._sizes[place])))
            place = self._previous[place]
        return items[::-1]
