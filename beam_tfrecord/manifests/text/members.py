"""The members of an object in a JSON document of strangers, each read with the type that it must have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from beam_tfrecord.annotations.cells import shown, utf8_text, whole_number
from beam_tfrecord.errors import RowError
from beam_tfrecord.manifests.text.json_stream import JsonItem


def members_of(item: JsonItem, where: str) -> Members:
    """The members of an element of a document. Raises RowError (``bad_row``), also where it has a key twice."""
    if item.repeated:
        raise RowError("bad_row", f"{where} has the key {item.repeated!r} twice")
    return Members(item.value, where, "bad_row")


class Members:
    """One object, and its place in the document, such as ``annotations[3]``.

    A member that is absent or null counts as not given. One of another type than is asked for is never taken for
    something: a RowError tells its place and what stands there.
    """

    def __init__(self, value: Any, where: str, code: str = "bad_annotation") -> None:
        """code: of the errors. Raises RowError when the value is no object."""
        self.where = where
        self._code = code
        if not isinstance(value, Mapping):
            raise self._error(where, value, "an object")
        self.value = value

    def raw(self, key: str) -> Any:
        """A member as it stands."""
        return self.value.get(key)

    def text(self, key: str) -> str:
        """A text; '' when it is not given."""
        value = self.value.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self._error(self.path(key), value, "a text")
        try:
            return utf8_text(value)
        except ValueError as error:
            raise RowError(self._code, f"{self.path(key)} {shown(value)} {error}") from None

    def name(self, key: str) -> str:
        """A text, or a whole number as text; without white space around it, '' when it is not given."""
        value = self.value.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return self.text(key).strip()

    def whole(self, key: str) -> int | None:
        """A whole number of 64 bits, also as 5.0 or "5"."""
        value = self.value.get(key)
        if value is None:
            return None
        try:
            return whole_number(None if isinstance(value, bool) else value)
        except ValueError as error:
            raise RowError(self._code, f"{self.path(key)} is {shown(value)}: it {error}") from None

    def objects(self, key: str) -> list[Members] | None:
        """A list of objects; None when it is not given."""
        value = self.value.get(key)
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise self._error(self.path(key), value, "a list of objects")
        return [Members(item, f"{self.path(key)}[{place}]", self._code) for place, item in enumerate(value)]

    def listed(self, key: str) -> list[Members]:
        """A list of objects that must be there, as only an empty one says that there are none. Raises RowError."""
        found = self.objects(key)
        if found is None:
            raise RowError("bad_annotation", f"{self.path(key)} is missing: an empty list says that there are none")
        return found

    def object(self, key: str) -> Members | None:
        """An object; None when it is not given."""
        value = self.value.get(key)
        return None if value is None else Members(value, self.path(key), self._code)

    def below(self, key: str) -> Mapping[str, Any]:
        """The members of an object; none when it is not given."""
        found = self.object(key)
        return found.value if found is not None else {}

    def path(self, key: str) -> str:
        """The place of a member."""
        return f"{self.where}.{key}" if self.where else key

    def _error(self, path: str, value: Any, wanted: str) -> RowError:
        return RowError(self._code, f"{path} is {shown(value)}, not {wanted}")
