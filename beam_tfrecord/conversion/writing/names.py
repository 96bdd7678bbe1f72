"""As what a record is known beside its place: what tells the rows of two readings of one source to be the same."""

from __future__ import annotations

import json
from typing import NamedTuple

from beam_tfrecord.core.elements import Entry
from beam_tfrecord.storage import public_uri


class Name(NamedTuple):
    """id, uri: of the entry, without what a signed uri asks; '' for no uri. unit: what ``--splits`` keeps together.
    split: None where the source names none. rank: as in :class:`~beam_tfrecord.core.elements.Entry`.
    """

    id: str
    uri: str
    unit: str
    split: str | None
    rank: int | None


def name_of_entry(entry: Entry) -> Name:
    """As what an entry is known."""
    unit = entry.group if entry.group is not None else entry.id
    return Name(entry.id, public_uri(entry.uri or ""), unit, entry.split, entry.rank)


def name_line(entry: Entry) -> str:
    """The same as a line of JSON, which has no characters beyond ASCII in it."""
    return json.dumps(name_of_entry(entry)) + "\n"


def read_name(line: bytes) -> Name:
    """The name in a line made by :func:`name_line`."""
    return Name(*json.loads(line))
