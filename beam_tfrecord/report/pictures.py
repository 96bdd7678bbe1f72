"""The sample pictures of a report: which records are drawn, and what is shown of each."""

from __future__ import annotations

import base64
import contextlib
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from beam_tfrecord.conversion.writing.statistics import UNLABELLED, samples_of
from beam_tfrecord.datasets.record_view import view_record
from beam_tfrecord.errors import BeamTfrecordError, DatasetError
from beam_tfrecord.reading.pictures import picture_of_pixels
from beam_tfrecord.report.dataset import Dataset
from beam_tfrecord.report.overlays import STYLE_COLOURS, Overlay, make_overlay
from beam_tfrecord.report.text import clean, plural, shorten
from beam_tfrecord.report.views import Content, ContentReader, PictureView
from beam_tfrecord.storage import Storage
from beam_tfrecord.tfrecord import RecordFault, read_record, scan_records

if TYPE_CHECKING:
    from PIL import Image


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

    left_out: pictures that would have made the page too large. failed: places of those that cannot be read or drawn.
    """

    classes: Mapping[str, tuple[Picture, ...]]
    unlabelled: tuple[Picture, ...]
    changed: Mapping[str, tuple[Picture, ...]]
    warnings: Mapping[str, tuple[Picture, ...]]
    left_out: int = 0
    failed: frozenset[SamplePlace] = frozenset()

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
    """Read the sampled records and draw them."""
    wanted = _within_read_budget(_sampled_places(dataset), READ_BUDGET)
    drawn, failed = draw_records(dataset, {place for places in wanted.values() for place in places}, storage)
    groups, left_out = _within_budget(wanted, drawn, budget)

    def named(kind: str) -> dict[str, tuple[Picture, ...]]:
        return {name: pictures for (group, name), pictures in groups.items() if group == kind and pictures}

    return Pictures(
        classes=named("classes"),
        unlabelled=groups.get((UNLABELLED, ""), ()),
        changed=named("changed"),
        warnings=named("warnings"),
        left_out=left_out,
        failed=failed,
    )


def _sampled_places(dataset: Dataset) -> dict[Group, list[SamplePlace]]:
    files = {shard["file"] for split in dataset.conversion["splits"].values() for shard in split["shards"]}
    groups: dict[Group, list[SamplePlace]] = {}
    for kind, name, sample in samples_of(dataset.statistics):
        own = groups.setdefault((kind, name), [])
        if sample["file"] in files:
            own.append(SamplePlace.from_json(sample))
    return groups


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
    """The first picture of a record; None when it has none. Raises NoThumbnailError where it cannot be drawn."""
    try:
        content = reader.read(view_record(data))
    except ValueError as error:
        raise NoThumbnailError(str(error)) from None
    if not content.pictures:
        return None
    thumbnail = make_thumbnail(content.pictures[0])
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


# ---------------------------------------------------------------------------------------------------------------------
# Single records read where they lie, for pictures of them.


THREADS = 8
MAX_RECORD = 32 << 20  # bytes; larger records are not drawn
MAX_STREAM = 128 << 20  # decompressed bytes of a compressed file that are read to reach a record


@dataclass(frozen=True, slots=True, order=True)
class SamplePlace:
    """Where a record lies: in which file of the dataset, its number there, offset and size of its frame and data."""

    file: str
    record: int
    offset: int
    size: int

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> SamplePlace:
        """Raises KeyError, TypeError or ValueError for what is no place."""
        return cls(str(values["file"]), *(int(values[name]) for name in ("record", "offset", "size")))


def draw_records(
    dataset: Dataset, places: Iterable[SamplePlace], storage: Storage
) -> tuple[dict[SamplePlace, Picture], frozenset[SamplePlace]]:
    """(pictures, places of those that cannot be read or drawn), in several threads, a few records in memory at a time.

    Left out is a record without pictures, one that is too large, or lies too far inside of a compressed file.
    """
    style_of = box_styles(dataset.conversion.get("labels", []))
    wanted = sorted({place for place in places if place.size <= MAX_RECORD})
    plain = [place for place in wanted if place.file not in dataset.compressed]
    packed: dict[str, list[SamplePlace]] = {}
    for place in wanted:
        if place.file in dataset.compressed and place.offset + place.size <= MAX_STREAM:
            packed.setdefault(place.file, []).append(place)

    def drawn(records: Iterable[tuple[SamplePlace, bytes]]) -> dict[SamplePlace, Picture | None]:
        done = {}
        with contextlib.suppress(OSError, BeamTfrecordError):  # what is not drawn is told by its place
            for place, data in records:
                with contextlib.suppress(NoThumbnailError):
                    done[place] = draw_record(data, dataset.reader, style_of)
        return done

    def from_plain(place: SamplePlace) -> dict[SamplePlace, Picture | None]:
        return drawn(_record_at(dataset.uri_of(place.file), place, storage))

    def from_packed(file: str) -> dict[SamplePlace, Picture | None]:
        return drawn(_records_of(dataset.uri_of(file), packed[file], storage))

    with ThreadPoolExecutor(THREADS, thread_name_prefix="report") as pool:
        results = [*pool.map(from_plain, plain), *pool.map(from_packed, packed)]
    seen = {place: picture for result in results for place, picture in result.items()}
    failed = {*plain, *(place for places in packed.values() for place in places)} - seen.keys()
    return {place: picture for place, picture in seen.items() if picture is not None}, frozenset(failed)


def _record_at(uri: str, place: SamplePlace, storage: Storage) -> Iterator[tuple[SamplePlace, bytes]]:
    frame = storage.read_range(uri, place.offset, place.size)
    yield place, read_record(io.BytesIO(frame), uri, 0, place.size, place.record)


def _records_of(uri: str, places: list[SamplePlace], storage: Storage) -> Iterator[tuple[SamplePlace, bytes]]:
    """The records at places of one compressed file, which is read from its start; those before damage."""
    by_number = {place.record: place for place in places}
    last = max(by_number)
    with storage.open(uri) as file:
        for item in scan_records(file, uri):
            if isinstance(item, RecordFault):
                return
            if item.index in by_number:
                yield by_number[item.index], item.data
            if item.index >= last:
                return


# ---------------------------------------------------------------------------------------------------------------------
# Pictures of records made small enough to lie inside of a page.


SIZE = (208, 136)  # pixels that a thumbnail has at most: some more than it is shown with, for fine screens
QUALITY = 70
_MAX_PIXELS = 400_000_000  # larger pictures are not worth the memory


class NoThumbnailError(Exception):
    """The picture cannot be drawn; the message says why."""


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """A small JPEG. width, height: of the whole picture. uri: a data URI."""

    uri: str
    width: int
    height: int


def make_thumbnail(picture: PictureView, size: tuple[int, int] = SIZE) -> Thumbnail:
    """The thumbnail of a picture; deterministic for the same versions of Pillow. Raises NoThumbnailError."""
    from PIL import Image

    from beam_tfrecord.images.safety import DECODE_ERRORS

    try:
        if picture.shape is not None:
            image = picture_of_pixels(picture.data, *picture.shape, picture.dtype)
        else:
            image = Image.open(io.BytesIO(picture.data))
        width, height = image.size
        if width * height > _MAX_PIXELS:
            raise NoThumbnailError(f"{width}x{height} pixels are too many to draw")
        if image.mode in ("L", "RGB"):
            image.thumbnail(size)  # decodes a JPEG at a fraction of its size
        else:
            image = _displayable(image)
            image.thumbnail(size)
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=QUALITY, optimize=True)
    except DatasetError as error:
        raise NoThumbnailError(str(error)) from None
    except DECODE_ERRORS as error:
        raise NoThumbnailError(f"it does not decode: {error}") from error
    return Thumbnail("data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii"), width, height)


def _displayable(image: Image.Image) -> Image.Image:
    """8 bits in grey or RGB; transparency laid on white."""
    import numpy as np
    from PIL import Image

    if image.mode.startswith("I"):
        return Image.fromarray((np.asarray(image).clip(0, 65535) >> 8).astype(np.uint8))
    if image.mode == "F":
        return image.convert("L")
    if not image.has_transparency_data:
        return image.convert("RGB")
    laid = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(laid, image.convert("RGBA")).convert("RGB")
