"""The sample pictures of a report: which records are drawn, and what is shown of each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from beam_tfrecord.conversion.writing.statistics import SAMPLE_GROUPS
from beam_tfrecord.datasets.record_view import view_record
from beam_tfrecord.report.dataset import Dataset
from beam_tfrecord.report.overlays import STYLE_COLOURS, Overlay, make_overlay
from beam_tfrecord.report.samples import SamplePlace, make_from_records
from beam_tfrecord.report.text import clean, plural, shorten
from beam_tfrecord.report.thumbnails import NoThumbnailError, Thumbnail, make_thumbnail
from beam_tfrecord.report.views import Content, ContentReader
from beam_tfrecord.storage import Storage

BUDGET = 1_200_000  # characters of all pictures with what lies on them
# Bytes of records that are read and decoded for pictures: about a quarter of a second. The first of each group is drawn
# whatever its size.
READ_BUDGET = 16 << 20
_BOX_MARKUP = 120  # characters of a box on the page
MAX_BOXES = 60  # drawn on one picture
SHOWN_WIDTH, SHOWN_HEIGHT = 156, 102  # pixels that a picture has at most on the page
_FINER = 4 / 3  # pixels of an overlay to one on the page, as thumbnails have them


@dataclass(frozen=True, slots=True)
class BoxMark:
    """A box on a picture, in its own units; style: which colour."""

    x: float
    y: float
    width: float
    height: float
    style: int
    name: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A sample picture. width, height: as it is shown. caption: short; title: everything there is to say.

    overlay: data URI of a transparent picture with its masks and keypoints, '' when it has none.
    """

    uri: str
    width: int
    height: int
    boxes: tuple[BoxMark, ...]
    caption: str
    title: str
    overlay: str = ""


@dataclass(frozen=True)
class Pictures:
    """Pictures by label, of records without one, and by reason of a change and code of a warning.

    left_out: pictures that would have made the page too large.
    """

    classes: Mapping[str, tuple[Picture, ...]]
    unlabelled: tuple[Picture, ...]
    changed: Mapping[str, tuple[Picture, ...]]
    warnings: Mapping[str, tuple[Picture, ...]]
    left_out: int = 0

    @property
    def has_any(self) -> bool:
        return any(True for _ in self._shown)

    @property
    def has_boxes(self) -> bool:
        return any(picture.boxes for picture in self._shown)

    @property
    def has_overlays(self) -> bool:
        return any(picture.overlay for picture in self._shown)

    @property
    def _shown(self) -> Iterator[Picture]:
        return itertools.chain(self.unlabelled, *self.classes.values(), *self.changed.values())


Group = tuple[str, str]  # kind and name: ("classes", "cat"), ("changed", "resized")


def draw_pictures(dataset: Dataset, storage: Storage, budget: int = BUDGET) -> Pictures:
    """Read the sampled records and draw them. What cannot be read or drawn is left out."""
    wanted = _within_read_budget(_sampled_places(dataset), READ_BUDGET)
    style_of = box_styles(dataset.conversion.get("labels", []))
    drawn = make_from_records(
        dataset.uri_of,
        {place for places in wanted.values() for place in places},
        storage,
        lambda file: file in dataset.compressed,
        lambda data: draw_record(data, dataset.reader, style_of),
    )
    groups, left_out = _within_budget(wanted, drawn, budget)

    def named(kind: str) -> dict[str, tuple[Picture, ...]]:
        return {name: pictures for (group, name), pictures in groups.items() if group == kind and pictures}

    return Pictures(
        classes=named("classes"),
        unlabelled=groups.get(("unlabelled", ""), ()),
        changed=named("changed"),
        warnings=named("warnings"),
        left_out=left_out,
    )


def _sampled_places(dataset: Dataset) -> dict[Group, list[SamplePlace]]:
    samples: Mapping[str, Any] = dataset.statistics.get("samples", {})
    groups = {
        (kind, name): [SamplePlace.from_json(place) for place in places]
        for kind in SAMPLE_GROUPS
        for name, places in samples.get(kind, {}).items()
    }
    groups["unlabelled", ""] = [SamplePlace.from_json(place) for place in samples.get("unlabelled", ())]
    files = {shard["file"] for split in dataset.conversion["splits"].values() for shard in split["shards"]}
    return {group: [place for place in places if place.file in files] for group, places in groups.items()}


def _within_read_budget(wanted: Mapping[Group, list[SamplePlace]], budget: int) -> dict[Group, list[SamplePlace]]:
    """As many places as may be read: the first of every group, then the second of every group ..."""
    kept: dict[Group, list[SamplePlace]] = {group: [] for group in wanted}
    seen: set[SamplePlace] = set()
    for rank in range(max(map(len, wanted.values()), default=0)):
        for group, places in wanted.items():
            if rank >= len(places):
                continue
            place = places[rank]
            if place not in seen and (rank == 0 or place.size <= budget):
                budget -= place.size
                seen.add(place)
            if place in seen:
                kept[group].append(place)
    return kept


def _within_budget(
    wanted: Mapping[Group, list[SamplePlace]], drawn: Mapping[SamplePlace, Picture], budget: int
) -> tuple[dict[Group, tuple[Picture, ...]], int]:
    """As many pictures as the page has room for: the first of every group, then the second of every group ..."""
    kept: dict[Group, list[Picture]] = {group: [] for group in wanted}
    left_out = used = 0
    ranks = max(map(len, wanted.values()), default=0)
    for rank in range(ranks):
        for group, places in wanted.items():
            picture = drawn.get(places[rank]) if rank < len(places) else None
            if picture is None:
                continue
            used += len(picture.uri) + len(picture.overlay) + _BOX_MARKUP * len(picture.boxes)
            if used > budget:
                left_out += 1
            else:
                kept[group].append(replace(picture, title=f"{picture.title}\n{_where(places[rank])}"))
    return {group: tuple(pictures) for group, pictures in kept.items()}, left_out


def _where(place: SamplePlace) -> str:
    return f"record {place.record} of {place.file}"


def draw_record(data: bytes, reader: ContentReader, style_of: Callable[[str], int]) -> Picture | None:
    """The first picture of a record; None when it has none that can be drawn."""
    try:
        content = reader.read(view_record(data))
        thumbnail = make_thumbnail(content.pictures[0])
    except (ValueError, IndexError, NoThumbnailError):
        return None
    scale = min(SHOWN_WIDTH / thumbnail.width, SHOWN_HEIGHT / thumbnail.height)
    width, height = (max(1, round(side * scale)) for side in (thumbnail.width, thumbnail.height))
    finer = round(width * _FINER), round(height * _FINER)
    overlay = make_overlay(content.pictures[0], reader.keys, reader.names, style_of, finer)
    boxes = tuple(
        BoxMark(
            round(box.xmin * width, 1),
            round(box.ymin * height, 1),
            round(max(box.xmax - box.xmin, 0) * width, 1),
            round(max(box.ymax - box.ymin, 0) * height, 1),
            style_of(box.name),
            shorten(clean(box.name)),
        )
        for box in content.pictures[0].boxes[:MAX_BOXES]
    )
    return Picture(
        thumbnail.uri,
        width,
        height,
        boxes,
        _caption(content, thumbnail),
        _title(content, thumbnail, overlay),
        overlay.uri if overlay is not None else "",
    )


def _caption(content: Content, thumbnail: Thumbnail) -> str:
    parts = [f"{thumbnail.width}×{thumbnail.height}"]
    if len(content.pictures) > 1:
        parts.append(f"{len(content.pictures)} frames")
    boxes = len(content.pictures[0].boxes)
    if boxes:
        parts.append(f"{boxes} box" if boxes == 1 else f"{boxes} boxes")
    return " · ".join(parts)


def _title(content: Content, thumbnail: Thumbnail, overlay: Overlay | None) -> str:
    lines = [shorten(clean(content.source_id), 300), _caption(content, thumbnail)]
    if content.labels:
        lines.append("label " + shorten(", ".join(map(clean, content.labels)), 300))
    if overlay is not None:
        lines.append(_drawn(overlay))
    return "\n".join(line for line in lines if line)


def _drawn(overlay: Overlay) -> str:
    parts = [plural(overlay.masks, "mask")] if overlay.masks else []
    if overlay.points:
        parts.append(f"keypoints of {plural(overlay.points, 'object')}")
    if overlay.has_classes:
        parts.append("a mask of the whole image")
    return ", ".join(parts)


def box_styles(labels: Iterable[str]) -> Callable[[str], int]:
    """The colour of each class: its place in the vocabulary."""
    places = {label: place % len(STYLE_COLOURS) for place, label in enumerate(labels)}
    return lambda name: places.get(name, 0)
