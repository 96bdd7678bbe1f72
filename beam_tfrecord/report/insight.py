"""What the pictures tell, as rows of pictures: conflicts side by side, clusters, and the worst of each finding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from beam_tfrecord.errors import WARNING_CODES, Explanation
from beam_tfrecord.report.dataset import Dataset
from beam_tfrecord.report.pictures import Picture, box_styles, draw_record
from beam_tfrecord.report.samples import SamplePlace, make_from_records
from beam_tfrecord.report.text import clean, plural, shorten
from beam_tfrecord.storage import Storage

BUDGET = 600_000  # characters of all pictures with what lies on them
READ_BUDGET = 16 << 20  # bytes of records that are read for them
MAX_NAME, MAX_LABEL = 60, 24
_ROW_MARKUP = 200


@dataclass(frozen=True, slots=True)
class InsightRow:
    """Pictures that belong together. searched: what a search looks through."""

    code: str
    title: str
    pictures: tuple[Picture, ...]
    searched: str


@dataclass(frozen=True)
class InsightSection:
    """counts: how often each code was found, with what it means and its cure. note: what was not looked at."""

    rows: tuple[InsightRow, ...]
    counts: tuple[tuple[str, int, Explanation], ...]
    note: str


def draw_insight(dataset: Dataset, storage: Storage, budget: int = BUDGET) -> InsightSection | None:
    """The section; None when nobody looked at the pictures. What cannot be read or drawn is left out."""
    told = dataset.statistics.get("insight")
    if not told:
        return None
    files = {shard["file"] for split in dataset.conversion["splits"].values() for shard in split["shards"]}
    groups = [(code, [own for own in places if own["file"] in files]) for code, places in _groups(told)]
    wanted = _within_read_budget([places for _, places in groups])
    style_of = box_styles(dataset.conversion.get("labels", []))
    drawn = make_from_records(
        dataset.uri_of,
        wanted,
        storage,
        lambda file: file in dataset.compressed,
        lambda data: draw_record(data, dataset.reader, style_of),
    )
    rows = []
    for code, places in groups:
        pictures = []
        for own in places:
            picture = drawn.get(SamplePlace.from_json(own))
            if picture is not None and len(picture.uri) + len(picture.overlay) + _ROW_MARKUP <= budget:
                budget -= len(picture.uri) + len(picture.overlay) + _ROW_MARKUP
                pictures.append(_captioned(picture, own))
        if pictures:
            rows.append(InsightRow(code, _title(code, places), tuple(pictures), _searched(code, places)))
    unknown = Explanation("", "")
    found = sorted(told["found"].items(), key=lambda item: (-item[1], item[0]))
    counts = tuple((clean(code), int(count), WARNING_CODES.get(code, unknown)) for code, count in found)
    return InsightSection(tuple(rows), counts, _note(told))


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
    return "the worst first"


def _searched(code: str, places: Sequence[Mapping[str, Any]]) -> str:
    words = [code, *(f"{own['split']} {own['labels']} {own['uri']}" for own in places)]
    return clean(" ".join(words))[:2_000]


def _note(told: Mapping[str, Any]) -> str:
    left = int(told["pictures"]) - int(told["looked_at"])
    if not left:
        return ""
    if not told["looked_at"]:
        return "Pixels were not looked at: --validate header decodes none, or there are no pictures."
    return f"The pixels of {plural(left, 'record')} were not looked at: too small, too large, or not to be decoded."
