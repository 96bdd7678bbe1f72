"""What ``--near_duplicates`` makes of rows whose pictures are nearly the same, as it was decided from all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from beam_tfrecord.core.elements import Entry, Finding
from beam_tfrecord.storage import public_uri

STAGE = "choose"
RowName = tuple[str, str]  # id of a row, and uri of its picture


class Kept(NamedTuple):
    """The picture that is kept in place of another: id of its row and its uri."""

    id: str
    uri: str


class Unit(NamedTuple):
    """Where rows go that ``--splits`` keeps together: by the hash of a name, or to a split that one of them names."""

    name: str
    split: str | None = None


@dataclass(frozen=True)
class NearRows:
    """What is done with near-duplicates.

    dropped: rows that go, by their names. units: other units for those that ``--splits`` keeps together. straddling:
    what is told of rows that stand for pictures which lie in several splits that their source names.
    """

    dropped: Mapping[RowName, Kept] = field(default_factory=dict)
    units: Mapping[str, Unit] = field(default_factory=dict)
    straddling: Mapping[RowName, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.dropped or self.units or self.straddling)

    def drop(self, entry: Entry) -> Finding | None:
        """What is told of a row that goes; None for one that is kept."""
        kept = self.dropped.get(row_name(entry)) if self.dropped else None
        if kept is None:
            return None
        place = f" ({kept.uri})" if kept.uri != kept.id else ""
        message = f"left out: it shows the same picture as {kept.id!r}{place}, or nearly so, which is kept"
        return Finding(entry.origin, entry.uri or "", STAGE, "near_duplicate_dropped", message, other=kept.uri)

    def warned(self, entry: Entry) -> Entry:
        """The row with what is told of it beside what was told before."""
        message = self.straddling.get(row_name(entry)) if self.straddling else None
        if message is None:
            return entry
        warning = Finding(entry.origin, entry.uri or "", STAGE, "near_duplicates_straddle", message)
        return entry._replace(warnings=(*entry.warnings, warning))


NO_NEAR_ROWS = NearRows()


def row_name(entry: Entry) -> RowName:
    """The name of a row."""
    return entry.id, public_uri(entry.uri or "")
