"""Items gathered by key when they lie scattered over a source that is larger than memory."""

from __future__ import annotations

import pickle
import tempfile
from array import array
from typing import Any

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
