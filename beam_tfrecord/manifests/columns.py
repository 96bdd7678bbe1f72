"""What became of each column of a table, and why it was taken for what it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from beam_tfrecord.annotations.objects import UNNAMED_CLASS
from beam_tfrecord.core.account import COLUMNS, Account, AccountBuilder, Decision
from beam_tfrecord.manifests.box_cells import ATTRIBUTE_COLUMNS
from beam_tfrecord.manifests.tables import SIZE_COLUMNS
from beam_tfrecord.manifests.text.box_columns import BOX_NAMES, compact
from beam_tfrecord.manifests.text.roles import PARTS, USUAL_NAMES, Roles, listed, normal
from beam_tfrecord.options.config import ManifestConfig

LOOKS_LIKE = "looks like "
OTHERS = "not asked for"
_UNIT = re.compile(r"_(?:pct|percent(?:age)?|norm(?:ali[sz]ed)?|rel(?:ative)?|px|pix(?:els?)?|frac(?:tion)?)")
_SIDES = frozenset({"x", "y", "w", "h", "left", "top", "right", "bottom", "width", "height"})
_WORDS = {
    "boxes": re.compile(
        r"b(?:nd)?box(?:es)?|bounding|region|polygons?|segmentations?|masks?|keypoints?|rle|encodedpixels|"
        r"(?:prediction|box(?:es)?|bbox(?:es)?)strings?"
    ),
    "labels": re.compile(
        r"labels?|class(?:es|name|id|ification)?|categor(?:y|ies)|targets?|tags?|annotations?|species"
    ),
    "splits": re.compile(r"splits?|folds?|subset|partition|is_?(?:train(?:ing)?|val(?:id(?:ation)?)?|test(?:ing)?)"),
}


def told_of_table(header: Sequence[str], roles: Roles, config: ManifestConfig, *decisions: Decision) -> dict[str, Any]:
    """The fields of a :class:`~beam_tfrecord.manifests.base.Source` that tell of a table.

    decisions: others than those of columns.
    """
    account = account_of_columns(header, roles)
    return {
        "account": account,
        "decisions": (*decisions, *decisions_of_columns(roles, config)),
        "surprises": (
            *_unlabelled(account, roles, config),
            *_further_labels(header, roles, config),
            *_several_marked(roles),
        ),
    }


def _unlabelled(account: Account, roles: Roles, config: ManifestConfig) -> Iterator[tuple[str, str]]:
    """What is surprising about a table of images of which no column says anything that is read."""
    is_read = roles.label or roles.classes or roles.boxes is not None or roles.mask or roles.columns
    unused = account.named.get(COLUMNS, {})
    if roles.image is None or is_read or config.label_pattern is not None or OTHERS not in unused:
        return
    told = unused[OTHERS]
    one_hot = "; classes with a column each are read where these hold nothing but 0 and 1"
    yield (
        "columns_not_read",
        f"no column is read as labels or boxes of the images, and {told.count:,} {'is' if told.count == 1 else 'are'} "
        f"not read at all (such as {told.example!r}): name what they are with --label_column or another option, or "
        f"keep them with --columns{one_hot if told.count > 1 else ''}",
    )


def _further_labels(header: Sequence[str], roles: Roles, config: ManifestConfig) -> Iterator[tuple[str, str]]:
    """What is doubtful about the column of the labels: others that are called as well, and are not read.

    Columns of ids beside it are those of its names.
    """
    if roles.label is None or config.label_column is not None:
        return
    read = {*roles.needed(), *(roles.boxes.names if roles.boxes is not None else ())}
    names = [name for name in USUAL_NAMES["label"] if not name.endswith("id")]
    others = [column for column in header if normal(column) in names and column not in read]
    if others:
        yield (
            "doubtful_reading",
            f"the labels were read from column {roles.label!r}, and {listed(others)} "
            f"{'is' if len(others) == 1 else 'are'} called as if they held them, too: --label_column says which it is",
        )


def _several_marked(roles: Roles) -> Iterator[tuple[str, str]]:
    """What is doubtful about columns of a class each where images are not of exactly one: they may be attributes."""
    if roles.classes and not roles.is_one_hot:
        yield (
            "doubtful_reading",
            f"each of {len(roles.classes):,} columns that hold nothing but 0 and 1 (such as {roles.classes[0]!r} and "
            f"{roles.classes[1]!r}) is read as a label, of which an image may have several or none: keep them as "
            f"numbers with --columns where they are attributes",
        )


class LateColumns:
    """Watches for keys that the first rows of a file do not have, and that are not read for that reason."""

    def __init__(self, header: Sequence[str], roles: Roles) -> None:
        self._roles = roles
        self._known = frozenset(header)
        self._late: dict[str, None] = {}

    def watch(self, rows: Iterable[tuple[str, dict[str, Any] | str]]) -> Iterator[tuple[str, dict[str, Any] | str]]:
        """The same rows, each looked at."""
        for origin, cells in rows:
            if not isinstance(cells, str) and not self._known.issuperset(cells):
                self._late.update(dict.fromkeys(key for key in cells if key not in self._known))
            yield origin, cells

    def account(self) -> Account:
        """The keys that came late."""
        told = AccountBuilder()
        for key in self._late:
            told.find(COLUMNS)
            told.name(COLUMNS, why_not_read(key, self._roles), key)
        return told.account()


def account_of_columns(header: Sequence[str], roles: Roles) -> Account:
    """Each column of a table: used as what, or not used, and then what its name looks like."""
    told = AccountBuilder()
    told.find(COLUMNS, len(header))
    parts = {column: part for part in PARTS if (column := getattr(roles, part)) is not None}
    declared = {column for _, column in roles.columns}
    asked = {column for _, column in roles.asked}
    boxes = roles.boxes.names if roles.boxes is not None else ()
    for column in header:
        if column in parts:
            told.use(COLUMNS, parts[column])
        elif column in declared:
            told.use(COLUMNS, "column")
        elif column in roles.classes:
            told.use(COLUMNS, "class")
        elif column == roles.captions:
            told.use(COLUMNS, "captions")
        elif column in asked:
            told.use(COLUMNS, "condition of --where")
        elif column in boxes:
            told.use(COLUMNS, "boxes")
        elif roles.boxes is not None and normal(column) in SIZE_COLUMNS:
            told.use(COLUMNS, "size of the image")
        elif roles.boxes is not None and (
            normal(column) in ATTRIBUTE_COLUMNS or (_has_regions(roles) and compact(column) == "regionattributes")
        ):
            told.use(COLUMNS, "attribute of boxes")
        else:
            told.name(COLUMNS, why_not_read(column, roles), column)
    return told.account()


def why_not_read(column: str, roles: Roles) -> str:
    """What the name of an unused column looks like, where nothing else has that part."""
    name = normal(column)
    side = _UNIT.sub("", name)
    is_side = side != name and (side in _SIDES or compact(side) in BOX_NAMES)
    if roles.boxes is None and (compact(column) in BOX_NAMES or is_side or _has_word("boxes", name)):
        return f"{LOOKS_LIKE}boxes"
    has_labels = roles.label is not None or roles.classes or _has_regions(roles)
    if not has_labels and (name in USUAL_NAMES["label"] or _has_word("labels", name)):
        return f"{LOOKS_LIKE}labels"
    if roles.split is None and (name in USUAL_NAMES["split"] or _has_word("splits", name)):
        return f"{LOOKS_LIKE}splits"
    return OTHERS


def _has_regions(roles: Roles) -> bool:
    """Whether the classes of boxes are attributes in a cell, not a column."""
    return roles.boxes is not None and roles.boxes.kind == "via"


def _has_word(kind: str, name: str) -> bool:
    return any(_WORDS[kind].fullmatch(word) for word in (compact(name), *name.split("_")))


def decisions_of_columns(roles: Roles, config: ManifestConfig) -> Iterator[Decision]:
    """Which column was taken for which part, and why."""
    for part in PARTS:
        column = getattr(roles, part)
        if column is not None:
            asked = getattr(config, f"{part}_column") is not None
            yield Decision(f"column of the {part}", column, f"--{part}_column" if asked else "its name")
    if roles.classes:
        why = "all their cells are 0 or 1; --label_column names another column, --columns keeps these as they are"
        yield Decision("columns of a label each", ", ".join(roles.classes), why)
    if roles.captions is not None:
        yield Decision("column of the captions", roles.captions, "its name, in metadata of Hugging Face")
    if roles.boxes is not None:
        yield Decision("columns of the boxes", ", ".join(roles.boxes.names), "their names")
        if roles.label is None and roles.boxes.kind not in ("objects", "via"):
            yield Decision("class of all boxes", UNNAMED_CLASS, "no column tells it; --label_column names one")
