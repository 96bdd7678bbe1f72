"""What a document of an annotation tool says of one picture, gathered: canonical fields, and the account of it all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from beam_tfrecord.core.account import Account, AccountBuilder
from beam_tfrecord.errors import RowError
from beam_tfrecord.manifests.text.members import Members

ANNOTATIONS = "annotations"
ATTRIBUTES = "attributes"
IN_REJECTED = "of a rejected picture"


class PictureLabels:
    """Objects and labels of a picture. Each annotation is stored, or left out with a note; both are counted."""

    def __init__(self, name: str = "") -> None:
        """name: of the document, for the account."""
        self._name = name
        self.boxes: list[dict[str, Any]] = []
        self.labels: list[str] = []
        self.notes: list[tuple[str, str]] = []
        self._told = AccountBuilder()
        self._attributes = 0

    def store(self, box: dict[str, Any], count: int = 1) -> None:
        """An object. count: the annotations that it is made of."""
        self.boxes.append(box)
        self.use("object", count)

    def label(self, name: str) -> None:
        """A label of the picture."""
        self.labels.append(name)
        self.use("label")

    def use(self, use: str, count: int = 1) -> None:
        """Count annotations that were used."""
        self._told.use(ANNOTATIONS, use, count)

    def leave_out(self, where: str, what: str, why: str) -> None:
        """Tell of an annotation that is not stored. where: its place in the document. what: its kind."""
        self.notes.append(("annotation_ignored", f"{where}: {what}: {why}"))
        self._told.name(ANNOTATIONS, what, f"{self._name}:{where}" if self._name else where)

    def attribute(self, name: str, is_stored: bool, where: str) -> None:
        """Count an attribute of an object, which records have or not."""
        self._attributes += 1
        if is_stored:
            self._told.use(ATTRIBUTES, "stored")
        else:
            self._told.name(ATTRIBUTES, f"{name}: no feature of records", where)

    def note(self, where: str, what: str) -> None:
        """Tell of a part of an annotation that is not stored."""
        self.notes.append(("annotation_ignored", f"{where}: {what}"))

    def fields(self, with_boxes: bool = True) -> dict[str, Any]:
        """Canonical fields. with_boxes: an empty list of objects means that there are none."""
        fields: dict[str, Any] = {}
        if self.boxes or with_boxes:
            fields["boxes"] = self.boxes
        if self.labels:
            fields["label"] = self.labels[0] if len(self.labels) == 1 else self.labels
        if self.notes:
            fields["notes"] = self.notes
        return fields

    def account(self, found: int) -> Account:
        """What became of the annotations. found: how many the document has of this picture, counted by the reader."""
        told = AccountBuilder()
        told.add(self._told.account())
        told.find(ANNOTATIONS, found)
        if self._attributes:
            told.find(ATTRIBUTES, self._attributes)
        return told.account()


def account_of_reject(count: int, example: str) -> Account:
    """The account of the annotations of a picture that is rejected."""
    told = AccountBuilder()
    told.find(ANNOTATIONS, count)
    told.name(ANNOTATIONS, IN_REJECTED, example, count)
    return told.account()


def size_of(members: Members, width: str, height: str) -> tuple[int, int] | None:
    """(width, height) that a document states; None where it does not, or states 0. Raises RowError."""
    found = members.whole(width), members.whole(height)
    return (found[0], found[1]) if found[0] and found[1] and min(found[0], found[1]) > 0 else None


def true_flags(flags: Mapping[str, Any]) -> list[str]:
    """The names of flags that are set, in their order."""
    return [str(name) for name, value in flags.items() if value is True]


def bad(where: str, why: str) -> RowError:
    """The error of an annotation that cannot be right."""
    return RowError("bad_annotation", f"{where} {why}")
