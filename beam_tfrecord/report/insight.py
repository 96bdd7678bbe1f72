"""What the pictures tell, as rows of pictures (conflicts side by side, clusters, the worst of each finding) and as a
table of names."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

from beam_tfrecord.errors import WARNING_CODES, Explanation
from beam_tfrecord.report.dataset import Dataset
from beam_tfrecord.report.pictures import Picture, SamplePlace, draw_records
from beam_tfrecord.report.text import clean, plural, shorten
from beam_tfrecord.storage import Storage

BUDGET = 600_000  # characters of all pictures with what lies on them
READ_BUDGET = 16 << 20  # bytes of records that are read for them
MAX_NAME, MAX_LABEL = 40, 24
LISTED_BUDGET = 400_000  # characters of the table
MOST_CHOICES = 300  # labels that rows can be chosen by
_ROW_MARKUP = 200
# What tells most comes first; all else follows by code.
_FIRST = ("label_conflict", "near_leak", "near_duplicate")


@dataclass(frozen=True, slots=True)
class Marks:
    """What a row is chosen by: each may have several, one a line. words: what a search looks through."""

    code: str
    splits: str
    labels: str
    words: str


@dataclass(frozen=True, slots=True)
class InsightRow:
    """Pictures that belong together."""

    title: str
    pictures: tuple[Picture, ...]
    marks: Marks


@dataclass(frozen=True, slots=True)
class ListedRow:
    """A finding as a line of the table, with the name that --exclude takes. like: another picture, in words."""

    score: str
    split: str
    labels: str
    name: str
    like: str
    marks: Marks


@dataclass(frozen=True)
class InsightSection:
    """rows: of pictures. listed: the worst findings about single pictures, of each code. counts: how often each code
    was found, with what it means and its cure. splits, labels: that rows can be chosen by. note: what was not looked
    at. most_lines: of each code that warnings.jsonl has. failed: places of pictures that cannot be read or
    drawn."""

    rows: tuple[InsightRow, ...]
    listed: tuple[ListedRow, ...]
    counts: tuple[tuple[str, int, Explanation], ...]
    splits: tuple[str, ...]
    labels: tuple[str, ...]
    note: str
    most_lines: int
    failed: frozenset[SamplePlace] = frozenset()

    @property
    def codes(self) -> tuple[str, ...]:
        """Those that rows have, in the order in which they come."""
        return tuple(dict.fromkeys([*(row.marks.code for row in self.listed), *(row.marks.code for row in self.rows)]))

    @property
    def _of_listed(self) -> list[int]:
        codes = {row.marks.code for row in self.listed}
        return [count for code, count, _ in self.counts if code in codes]

    @property
    def listable(self) -> int:
        """Findings of the codes that the table has, shown or not."""
        return sum(self._of_listed)

    @property
    def has_all_lines(self) -> bool:
        """Whether warnings.jsonl has a line for each of these."""
        return max(self._of_listed, default=0) <= self.most_lines


def draw_insight(dataset: Dataset, storage: Storage, budget: int = BUDGET) -> InsightSection | None:
    """The section; None when nobody looked at the pictures."""
    told = dataset.statistics.get("insight")
    if not told:
        return None
    files = {shard["file"] for split in dataset.conversion["splits"].values() for shard in split["shards"]}
    groups = [(code, [own for own in places if own["file"] in files]) for code, places in _groups(told)]
    wanted = _within_read_budget([places for _, places in groups])
    drawn, failed = draw_records(dataset, wanted, storage)
    known = frozenset(clean(str(label)) for label in dataset.conversion.get("labels", []))
    rows = []
    for code, places in groups:
        pictures = []
        for own in places:
            picture = drawn.get(SamplePlace.from_json(own))
            if picture is not None and len(picture.uri) + len(picture.overlay) + _ROW_MARKUP <= budget:
                budget -= len(picture.uri) + len(picture.overlay) + _ROW_MARKUP
                pictures.append(_captioned(picture, own))
        if pictures:
            rows.append(InsightRow(_title(code, places), tuple(pictures), _marks(code, places, known)))
    unknown = Explanation("", "")
    found = sorted(told["found"].items(), key=lambda item: (-item[1], item[0]))
    counts = tuple((clean(code), int(count), WARNING_CODES.get(code, unknown)) for code, count in found)
    listed = tuple(_listed(told.get("listed", {}), known))
    marks = [*(row.marks for row in listed), *(row.marks for row in rows)]
    splits, labels = (
        tuple(sorted({value for texts in own for value in texts.split("\n") if value}))
        for own in ([mark.splits for mark in marks], [mark.labels for mark in marks])
    )
    most_lines = int(told["most_lines"])
    return InsightSection(tuple(rows), listed, counts, splits, labels[:MOST_CHOICES], _note(told), most_lines, failed)


def _listed(told: Mapping[str, Any], known: frozenset[str]) -> Iterator[ListedRow]:
    """The lines of the table: of each code the worst first, and as many of each as there is room for."""
    rows = {
        code: [_listed_row(code, row, known) for row in told[code]]
        for code in sorted(told, key=lambda code: (_FIRST.index(code) if code in _FIRST else len(_FIRST), code))
    }
    sizes = {
        code: list(itertools.accumulate(sum(map(len, (*astuple(row)[:-1], *astuple(row.marks)))) for row in own))
        for code, own in rows.items()
    }
    budget = LISTED_BUDGET // max(1, len(rows))
    for code, own in rows.items():
        yield from own[: bisect.bisect_right(sizes[code], budget)]


def _listed_row(code: str, row: Mapping[str, Any], known: frozenset[str]) -> ListedRow:
    other = row.get("other")
    places = [row] if other is None else [row, other]
    like = "" if other is None else f"{other['uri']} ({', '.join(filter(None, (other['split'], other['labels'])))})"
    return ListedRow(
        f"{float(row['score']):g}",
        clean(str(row["split"])),
        shorten(clean(str(row["labels"])), 2 * MAX_LABEL),
        clean(str(row["uri"])),
        clean(like),
        _marks(code, places, known),
    )


def _groups(told: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[Mapping[str, Any]]]]:
    """Code and places of each row: what contradicts itself first."""
    for places in told["conflicts"]:
        yield "label_conflict", places
    is_leak = {id(places): len({own["split"] for own in places}) > 1 for places in told["clusters"]}
    for places in sorted(told["clusters"], key=lambda own: not is_leak[id(own)]):
        yield "near_leak" if is_leak[id(places)] else "near_duplicate", places
    yield from told["worst"].items()


def _within_read_budget(groups: Sequence[Sequence[Mapping[str, Any]]], budget: int = READ_BUDGET) -> set[SamplePlace]:
    """As many places as may be read: the first of every row, then the second of every row ..."""
    kept: set[SamplePlace] = set()
    for rank in range(max(map(len, groups), default=0)):
        for places in groups:
            if rank < len(places):
                place = SamplePlace.from_json(places[rank])
                if place not in kept and place.size <= budget:
                    budget -= place.size
                    kept.add(place)
    return kept


def _captioned(picture: Picture, own: Mapping[str, Any]) -> Picture:
    """The picture with its split, its labels and the end of its name under it."""
    name = clean(str(own["uri"]))
    labels = shorten(clean(str(own["labels"])), MAX_LABEL)
    shown = name if len(name) <= MAX_NAME else "…" + name[1 - MAX_NAME :]
    parts = [clean(str(own["split"])), labels, shown, f"score {own['score']:g}" if "score" in own else ""]
    return replace(picture, caption=" · ".join(part for part in parts if part), title=f"{picture.title}\n{name}")


def _title(code: str, places: Sequence[Mapping[str, Any]]) -> str:
    if code in ("near_duplicate", "near_leak", "label_conflict"):
        splits = ", ".join(sorted({clean(str(own["split"])) for own in places}))
        return f"{plural(len(places), 'picture')} in {splits}"
    return "the worst first" if len(places) > 1 else ""


def _marks(code: str, places: Sequence[Mapping[str, Any]], known: frozenset[str]) -> Marks:
    splits = {clean(str(own["split"])) for own in places}
    texts = {clean(str(own["labels"])) for own in places}
    labels = {label for text in texts for label in ([text] if text in known else text.split(", "))}
    words = clean(" ".join([code, *(f"{own['split']} {own['labels']} {own['uri']}" for own in places)]))[:2_000]
    return Marks(clean(code), "\n".join(sorted(splits)), "\n".join(sorted(labels)), words)


def _note(told: Mapping[str, Any]) -> str:
    looked_at = int(told["looked_at"])
    notes = [
        f"{clean(code)} holds for {int(count):,} of {plural(looked_at, 'picture')}: that is how this collection is."
        for code, count in told.get("common", {}).items()
    ]
    left = int(told["pictures"]) - looked_at
    if left and looked_at:
        notes.append(
            f"The pixels of {plural(left, 'record')} were not looked at: too small, too large, or not to be decoded."
        )
    elif left:
        notes.append("Pixels were not looked at: --validate header decodes none, or there are no pictures.")
    return " ".join(notes)
