"""What a document of an annotation tool says of one picture, gathered: canonical fields, and the account of it all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from beam_tfrecord.annotations.cells import is_blank, is_number, real_number, shown
from beam_tfrecord.core.account import NO_ACCOUNT, Account, AccountBuilder
from beam_tfrecord.errors import RowError
from beam_tfrecord.manifests.text.json_text import Members

ANNOTATIONS = "annotations"
ATTRIBUTES = "attributes"
PICTURES = "pictures"
IN_REJECTED = "of a rejected picture"
IN_LEFT_OUT = "of a picture that is left out"
SKIPPED = "not annotated, or skipped"  # of a picture
OF_ANOTHER = "of another annotator"


@dataclass(frozen=True)
class Picture:
    """What a document says of one picture.

    where: its place in the document. stated: the picture as the document spells it. fields: canonical ones but for the
    image. problem: why it is no row but a reject. is_left_out: it is neither; the account tells why. holds_itself: the
    document is JSON that holds the picture as its ``imageData``.
    """

    where: str
    stated: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    account: Account = NO_ACCOUNT
    problem: RowError | None = None
    is_left_out: bool = False
    holds_itself: bool = False


class PictureLabels:
    """Objects and labels of a picture. Each annotation is stored, or left out with a note; both are counted.

    stated, is_left_out, holds_itself: as of :class:`Picture`. found: how many annotations the document has of the
    picture, counted by the reader before it looks at them. with_boxes: no object means that there are none in the
    picture. further: canonical fields beside those of objects and labels. told: what became of the annotations.
    """

    def __init__(self, name: str = "") -> None:
        """name: of the document, for the account."""
        self._name = name
        self.stated = ""
        self.found = 0
        self.with_boxes = True
        self.is_left_out = self.holds_itself = False
        self.further: dict[str, Any] = {}
        self.boxes: list[dict[str, Any]] = []
        self.labels: list[str] = []
        self.notes: list[tuple[str, str]] = []
        self.told = AccountBuilder()
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
        self.told.use(ANNOTATIONS, use, count)

    def leave_out(self, where: str, what: str, why: str) -> None:
        """Tell of an annotation that is not stored. where: its place in the document. what: its kind."""
        self.notes.append(("annotation_ignored", f"{where}: {what}: {why}"))
        self.told.name(ANNOTATIONS, what, f"{self._name}:{where}" if self._name else where)

    def attribute(self, name: str, is_stored: bool, where: str) -> None:
        """Count an attribute of an object, which records have or not."""
        self._attributes += 1
        if is_stored:
            self.told.use(ATTRIBUTES, "stored")
        else:
            self.told.name(ATTRIBUTES, f"{name}: no feature of records", where)

    def note(self, where: str, what: str) -> None:
        """Tell of a part of an annotation that is not stored."""
        self.notes.append(("annotation_ignored", f"{where}: {what}"))

    def pass_over(self, where: str, why: str, count: int) -> None:
        """Count annotations of the picture that another one's stand for."""
        if count:
            self.told.name(ANNOTATIONS, why, where, count)

    def leave_out_picture(self, where: str, why: str) -> None:
        """Tell that there is no row of the picture, nor a reject."""
        self.is_left_out = True
        self.told.find(PICTURES)
        self.told.name(PICTURES, why, self.stated or where)
        self.pass_over(where, IN_LEFT_OUT, self.found)

    def state_size(self, where: str, width: Any, height: Any) -> tuple[int, int] | None:
        """The size that a document states, which is kept, or None; what can be no size is told."""
        size, note = stated_size(where, width, height)
        if size is not None:
            self.further["size"] = size
        if note:
            self.notes.append(("size_mismatch", note))
        return size

    def state_shape(self, where: str, shape: Any) -> None:
        """The same of a list of height and width, and perhaps channels."""
        if isinstance(shape, list) and len(shape) >= 2:
            self.state_size(where, shape[1], shape[0])
        elif shape is not None:
            told = f"{where} is {shown(shape)}, no height and width; the image is taken as it is"
            self.notes.append(("size_mismatch", told))

    def fields(self) -> dict[str, Any]:
        """Canonical fields."""
        fields = dict(self.further)
        if self.boxes or self.with_boxes:
            fields["boxes"] = self.boxes
        if self.labels:
            fields["label"] = self.labels[0] if len(self.labels) == 1 else self.labels
        if self.notes:
            fields["notes"] = self.notes
        return fields

    def account(self) -> Account:
        """What became of the annotations."""
        told = AccountBuilder()
        told.add(self.told.account())
        told.find(ANNOTATIONS, self.found)
        if self._attributes:
            told.find(ATTRIBUTES, self._attributes)
        return told.account()


def gather(where: str, name: str, read: Callable[[PictureLabels], None]) -> Picture:
    """The picture whose labels are gathered by ``read``; a RowError that this raises is why there is no row of it.

    where: its place in the document. name: what the account calls that.
    """
    labels = PictureLabels(name)
    try:
        read(labels)
    except RowError as error:
        return Picture(where, labels.stated, account=_account_of_reject(labels.found, name or where), problem=error)
    return Picture(
        where,
        labels.stated,
        labels.fields(),
        labels.account(),
        is_left_out=labels.is_left_out,
        holds_itself=labels.holds_itself,
    )


def _account_of_reject(count: int, example: str) -> Account:
    told = AccountBuilder()
    told.find(ANNOTATIONS, count)
    told.name(ANNOTATIONS, IN_REJECTED, example, count)
    return told.account()


class Annotators(NamedTuple):
    """What a tool tells of each of several annotations of one picture.

    at: when it was made. is_truth: whether it is marked as the ground truth. by: who made it. count: what it holds.
    """

    at: Callable[[Members], str]
    is_truth: Callable[[Members], bool]
    by: Callable[[Members], str]
    count: Callable[[Members], int]

    def choose(self, live: Sequence[Members], rule: str, where: str, labels: PictureLabels) -> list[Members]:
        """Those annotations that count; none where the picture is left out. What is passed over is told.

        live: all that nobody skipped. rule: what ``--annotator`` says.
        """
        latest = sorted(live, key=self.at)
        if rule == "all":
            chosen = list(live)
        elif rule == "first":
            chosen = latest[:1]
        elif rule in ("latest", "auto"):
            truths = [one for one in latest if self.is_truth(one)] if rule == "auto" else []
            chosen = (truths or latest)[-1:]
        else:
            chosen = [one for one in latest if self.by(one) == rule][-1:]
        if not chosen:
            labels.leave_out_picture(where, OF_ANOTHER if live else SKIPPED)
            return []
        labels.pass_over(where, OF_ANOTHER, labels.found - sum(map(self.count, chosen)))
        if len(live) > len(chosen):
            by = ", ".join(map(self.by, live))
            labels.note(where, f"there are annotations by {by}; that of {self.by(chosen[0])} is taken")
        return chosen


def length_of(value: Any) -> int:
    """How many annotations a list of a document has; 0 for what is no list."""
    return len(value) if isinstance(value, list) else 0


def stated_size(where: str, width: Any, height: Any) -> tuple[tuple[int, int] | None, str]:
    """((width, height), what is to be told) of what stands where a size is stated.

    There is none, and nothing to tell, where a side is absent or 0, as tools write that do not know it.
    """
    sides = []
    for cell in (width, height):
        if is_blank(cell):
            return None, ""
        sides.append(real_number(cell) if is_number(cell) and not isinstance(cell, bool) else -1.0)
    if 0 in sides:
        return None, ""
    if all(side > 0 and side.is_integer() for side in sides):
        return (int(sides[0]), int(sides[1])), ""
    return None, f"{where} states the size {shown(width)} x {shown(height)}; the image is taken as it is"


def true_flags(flags: Mapping[str, Any]) -> list[str]:
    """The names of flags that are set, in their order."""
    return [str(name) for name, value in flags.items() if value is True]


def bad(where: str, why: str) -> RowError:
    """The error of an annotation that cannot be right."""
    return RowError("bad_annotation", f"{where} {why}")
