"""What is told of the records of a shard, taken while they are written, and the sum of it over all shards.

Everything here is small whatever the number of records, can be added up in any order with the same result, and is made
of numbers that are at hand anyway: no record is read back and no pixel looked at. It goes into the ShardInfo as plain
JSON values, and into ``statistics.json`` once it is added up:

``images``     digests (:mod:`beam_tfrecord.conversion.writing.digest`) of ``width``, ``height``, ``pixels`` and
               ``bytes`` of the stored images; ``shapes``: images by the nearest usual ratio of width to height;
               ``sizes``: images by ``WIDTHxHEIGHT``, or null when there are more than :data:`MAX_SIZES` of them;
``channels``   by number of channels (``3``; ``3/uint16`` of 16 bits), of the ``images`` that were decoded in full:
               their ``pixels``, and of each channel the ``sum`` of its values and of their ``squares``, its
               ``mean`` and ``std``
``looks``      digests of the mean ``brightness`` of pictures in levels of grey (0 to 255), and of their ``aspect``,
               width to height in thousandths; of the first picture of each record whose pixels were looked at
``objects``    digests of the number of boxes ``per_image``, of their ``share`` of the image in millionths and of their
               ``area`` in pixels of the stored image; only where records have boxes
``frames``     digest of the pictures per record; only in SequenceExamples
``samples``    where records lie that are worth a look: ``classes``: the first of each of the most frequent labels;
               ``unlabelled``: of those without one; ``changed`` and ``warnings``: of each reason and code
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from beam_tfrecord.conversion.writing.digest import Digest, digest_of, digest_of_array, merge_digests
from beam_tfrecord.images.sums import ChannelSums
from beam_tfrecord.insight.looks import Looks

SAMPLED_CLASSES = 40
MIN_SAMPLES, MAX_SAMPLES, FEW_CLASSES = 6, 24, 72  # of each class; of few classes more
SAMPLES_PER_NOTE = 4
MAX_SIZES = 256
_PENDING = 4096  # images that wait to be put into the digests
MILLION = 1_000_000

# Usual ratios of width to height, the narrowest first. An image counts for the nearest one: the border between two
# neighbours is their geometric mean.
SHAPES = ((1, 3), (1, 2), (9, 16), (2, 3), (3, 4), (1, 1), (4, 3), (3, 2), (16, 9), (2, 1), (3, 1))
_BORDERS = [math.sqrt(a * c / (b * d)) for (a, b), (c, d) in itertools.pairwise(SHAPES)]
IMAGE_DIGESTS = ("width", "height", "pixels", "bytes")
LOOK_DIGESTS = ("brightness", "aspect")  # of the pictures that were looked at; older datasets have none
OBJECT_DIGESTS = ("per_image", "share", "area")
SAMPLE_GROUPS = ("classes", "changed", "warnings")
UNLABELLED = "unlabelled"  # a group of samples without names in it
_NO_INSIGHT: Mapping[str, Any] = {"clusters": (), "conflicts": (), "worst": {}, "found": {}}


class ImageFacts(NamedTuple):
    """What a stored image tells of itself.

    width, height: in pixels. num_bytes: of the encoded image. box_areas: of each box, as a fraction of the image.
    """

    width: int
    height: int
    num_bytes: int
    box_areas: tuple[float, ...] = ()


FactFields = tuple[int, int, int, tuple[float, ...]]  # the same without names: a tuple is made in an eighth of the time


class Place(NamedTuple):
    """Where a record lies: its number in the file, the offset of its frame, and the size of frame and data.

    In a compressed file offset and size count decompressed bytes.
    """

    record: int
    offset: int
    size: int


def count_shapes(width: npt.NDArray[np.int64], height: npt.NDArray[np.int64]) -> dict[str, int]:
    """How many images have a ratio nearest to each of the usual ones, those that none is near to left out."""
    places = np.searchsorted(_BORDERS, width / height, side="right")
    numbers = np.bincount(places, minlength=len(SHAPES)).tolist()
    return {f"{x}:{y}": number for (x, y), number in zip(SHAPES, numbers, strict=True) if number}


def samples_per_class(num_classes: int) -> int:
    """How many records of each class are sampled: enough that a dataset of few classes can be seen as well."""
    return min(MAX_SAMPLES, max(MIN_SAMPLES, FEW_CLASSES // max(1, num_classes)))


def sampled_labels(counts: Mapping[str, int]) -> list[str]:
    """The labels of which pictures are shown: the most frequent ones, in code point order where they are equal."""
    return heapq.nsmallest(SAMPLED_CLASSES, counts, key=lambda label: (-counts[label], label))


class ShardStatistics:
    """Gathers what is told of the records of one shard.

    labels: how often each label is used in the whole dataset. has_boxes, is_sequence: what all its records are like.
    """

    def __init__(self, labels: Mapping[str, int], *, has_boxes: bool = False, is_sequence: bool = False) -> None:
        self._pending: list[FactFields] = []
        self._images = _ImageDigests()
        self._objects = _ObjectDigests() if has_boxes else None
        self._frames: Counter[int] | None = Counter() if is_sequence else None
        self._classes: dict[str, list[Place]] = {label: [] for label in sampled_labels(labels)}
        self._wanted = dict(self._classes)
        self._most = samples_per_class(len(self._classes))
        self._unlabelled: list[Place] = []
        self._notes: dict[str, dict[str, list[Place]]] = {"changed": {}, "warnings": {}}
        self._channels: dict[str, dict[str, Any]] = {}
        self._looks: tuple[Digest, ...] = (Digest(), Digest())
        self._next = 0
        self._last = Place(-1, 0, 0)

    def add(self, images: Sequence[FactFields], labels: Sequence[str], offset: int, size: int) -> None:
        """Take in the next record, which lies at that place."""
        self.add_all(images, (labels,), ((offset, size),), (len(images),))

    def add_all(
        self,
        images: Sequence[FactFields],
        labels: Sequence[Sequence[str]],
        places: Sequence[tuple[int, int]],
        pictures: Sequence[int],
    ) -> int:
        """Take in the next records; gives the number of the first of them.

        labels, places (offset and size): of each. images: of all of them, one after the other. pictures: how many of
        these each record has; may be empty where each has one.
        """
        first = self._next
        self._next += len(labels)
        self._last = Place(self._next - 1, *places[-1])
        self._pending += images
        if len(self._pending) >= _PENDING:
            self._fold()
        if self._frames is not None:
            self._frames.update(pictures)
        if self._wanted or not all(labels):
            for number, (names, place) in enumerate(zip(labels, places, strict=True), start=first):
                if not names:
                    if len(self._unlabelled) < MAX_SAMPLES:
                        self._unlabelled.append(Place(number, *place))
                elif self._wanted:
                    self._sample(names, Place(number, *place))
        return first

    def add_sums(self, pictures: Iterable[ChannelSums]) -> None:
        """Take in the sums of pictures that were decoded in full."""
        for own in pictures:
            key = channels_key(len(own.sums), own.dtype)
            none = {"images": 0, "pixels": 0, "sum": [0] * len(own.sums), "squares": [0] * len(own.sums)}
            told = {"images": 1, "pixels": own.pixels, "sum": own.sums, "squares": own.squares}
            self._channels[key] = _added_sums((self._channels.get(key, none), told))

    def add_looks(self, rows: Looks) -> None:
        """Take in what looks at the pictures gave."""
        seen = rows[rows["seen"] == 1]
        if len(seen):
            aspect = seen["width"].astype(np.int64) * 1000 // seen["height"]
            added = digest_of_array(seen["brightness"].astype(np.int64)), digest_of_array(aspect)
            self._looks = tuple(merge_digests(pair) for pair in zip(self._looks, added, strict=True))

    def note(self, group: str, name: str) -> None:
        """Say of the record that was added last what was changed (group ``changed``) or warned about (``warnings``)."""
        self.note_at(self._last, group, name)

    def note_at(self, place: Place, group: str, name: str) -> None:
        """The same of the record at some place; in the order of records."""
        places = self._notes[group].setdefault(name, [])
        if len(places) < SAMPLES_PER_NOTE and place not in places:
            places.append(place)

    def _sample(self, labels: Iterable[str], place: Place) -> None:
        for label in labels:
            places = self._wanted.get(label)
            if places is not None and place not in places:
                places.append(place)
                if len(places) == self._most:
                    del self._wanted[label]

    def _fold(self) -> None:
        """Put the images that wait into the digests: many at a time take a tenth of the time of one after the other."""
        self._images.add(self._pending)
        if self._objects is not None:
            self._objects.add(self._pending)
        self._pending = []

    def to_json(self) -> dict[str, Any]:
        """Everything so far as JSON values."""
        self._fold()
        told: dict[str, Any] = {}
        if self._images.bytes.count:
            told["images"] = self._images.to_json()
        if self._objects is not None:
            told["objects"] = self._objects.to_json()
        if self._channels:
            told["channels"] = dict(sorted(self._channels.items()))
        if self._looks[0].count:
            told["looks"] = {name: own.to_json() for name, own in zip(LOOK_DIGESTS, self._looks, strict=True)}
        if self._frames is not None:
            told["frames"] = digest_of(self._frames).to_json()
        groups = {"classes": self._classes, **self._notes}
        samples: dict[str, Any] = {
            group: {name: [list(place) for place in places] for name, places in sorted(named.items()) if places}
            for group, named in groups.items()
        }
        told["samples"] = {**samples, "unlabelled": [list(place) for place in self._unlabelled]}
        return told


class _ImageDigests:
    """Sizes of images. sizes: how many images there are of each, None when there are too many sizes."""

    def __init__(self) -> None:
        self.width = self.height = self.pixels = self.bytes = Digest()
        self.shapes: Counter[str] = Counter()
        self.sizes: Counter[tuple[int, int]] | None = Counter()

    def add(self, images: Sequence[FactFields]) -> None:
        """Take in some images."""
        if not images:
            return
        width, height, num_bytes = (np.array(column, np.int64) for column in list(zip(*images, strict=True))[:3])
        self.width = merge_digests((self.width, digest_of_array(width)))
        self.height = merge_digests((self.height, digest_of_array(height)))
        self.pixels = merge_digests((self.pixels, digest_of_array(width * height)))
        self.bytes = merge_digests((self.bytes, digest_of_array(num_bytes)))
        self.shapes.update(count_shapes(width, height))
        if self.sizes is not None:
            self.sizes.update(zip(width.tolist(), height.tolist(), strict=True))
            if len(self.sizes) > MAX_SIZES:
                self.sizes = None

    def to_json(self) -> dict[str, Any]:
        return {
            "width": self.width.to_json(),
            "height": self.height.to_json(),
            "pixels": self.pixels.to_json(),
            "bytes": self.bytes.to_json(),
            "shapes": dict(sorted(self.shapes.items())),
            "sizes": None
            if self.sizes is None
            else {f"{w}x{h}": number for (w, h), number in sorted(self.sizes.items())},
        }


class _ObjectDigests:
    """Boxes: how many an image has, and how large they are."""

    def __init__(self) -> None:
        self.per_image = self.share = self.area = Digest()

    def add(self, images: Sequence[FactFields]) -> None:
        """Take in the boxes of some images."""
        per_image = np.array([len(facts[3]) for facts in images], np.int64)
        shares = np.array([area for facts in images for area in facts[3]], np.float64)
        pixels = np.repeat(np.array([facts[0] * facts[1] for facts in images], np.int64), per_image)
        self.per_image = merge_digests((self.per_image, digest_of_array(per_image)))
        self.share = merge_digests((self.share, digest_of_array(np.rint(shares * MILLION).astype(np.int64))))
        self.area = merge_digests((self.area, digest_of_array(np.rint(shares * pixels).astype(np.int64))))

    def to_json(self) -> dict[str, Any]:
        return {
            "per_image": self.per_image.to_json(),
            "share": self.share.to_json(),
            "area": self.area.to_json(),
        }


# ---------------------------------------------------------------------------------------------------------------------
# Adding up


ShardKey = tuple[str, int]  # what a shard is known by before it has its final name


def placed_statistics(key: ShardKey | str, statistics: Mapping[str, Any]) -> dict[str, Any]:
    """The statistics of a shard for :func:`add_statistics`, with ``key`` in its places: (record, key, offset, size)."""
    if not statistics:
        return {}
    samples = statistics["samples"]
    placed: dict[str, Any] = {
        group: {name: _placed(key, places) for name, places in samples[group].items()} for group in SAMPLE_GROUPS
    }
    return {**statistics, "samples": {**placed, "unlabelled": _placed(key, samples["unlabelled"])}}


def add_statistics(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The statistics of some shards together, in the form of each of them.

    May be added up in any order, and some at a time, with the same result: of samples those with the lowest record
    numbers are kept, which lie in as many shards as possible and near the start of each.
    """
    parts = [part for part in parts if part]
    told: dict[str, Any] = {}
    if not parts:
        return told
    images = [part["images"] for part in parts if "images" in part]
    if images:
        told["images"] = {
            **_merged_digests(images, IMAGE_DIGESTS),
            "shapes": _added(part["shapes"] for part in images),
            "sizes": _merged_sizes([part["sizes"] for part in images]),
        }
    objects = [part["objects"] for part in parts if "objects" in part]
    if objects:
        told["objects"] = _merged_digests(objects, OBJECT_DIGESTS)
    channels = [part["channels"] for part in parts if "channels" in part]
    if channels:
        told["channels"] = _merged_channels(channels)
    looks = [part["looks"] for part in parts if "looks" in part]
    if looks:
        told["looks"] = _merged_digests(looks, LOOK_DIGESTS)
    frames = [part for part in parts if "frames" in part]
    if frames:
        told.update(_merged_digests(frames, ("frames",)))
    told["samples"] = _merged_samples([part["samples"] for part in parts])
    return told


def told_statistics(added: Mapping[str, Any], file_of: Callable[[Any], str]) -> dict[str, Any]:
    """What :func:`add_statistics` gave, for ``statistics.json``: samples become ``{"file", "record", "offset",
    "size"}``. file_of: the name of a shard by its key."""

    def told(places: Iterable[tuple[int, Any, int, int]]) -> list[dict[str, Any]]:
        return [
            {"file": file_of(key), "record": record, "offset": offset, "size": size}
            for record, key, offset, size in places
        ]

    samples = added.get("samples") or {**{group: {} for group in SAMPLE_GROUPS}, "unlabelled": ()}
    groups = {
        group: {name: told(places) for name, places in samples[group].items() if places} for group in SAMPLE_GROUPS
    }
    return {**added, "samples": {**groups, "unlabelled": told(samples["unlabelled"])}}


def merge_statistics(shards: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """The statistics of a dataset from (file name, statistics) of its shards.

    A shard with the name '' has no file in which its places mean anything.
    """
    return told_statistics(add_statistics(itertools.starmap(placed_statistics, shards)), lambda file: file)


def check_statistics(statistics: Mapping[str, Any]) -> None:
    """Raise AttributeError, KeyError, TypeError or ValueError for what :func:`merge_statistics` cannot have given."""
    images, objects = statistics.get("images"), statistics.get("objects")
    if images is not None:
        _merged_digests([images], IMAGE_DIGESTS)
        _added([images["shapes"]])
        _merged_sizes([images["sizes"]])
    if objects is not None:
        _merged_digests([objects], OBJECT_DIGESTS)
    if "channels" in statistics:
        _merged_channels([statistics["channels"]])
    if "looks" in statistics:
        _merged_digests([statistics["looks"]], LOOK_DIGESTS)
    if "frames" in statistics:
        _merged_digests([statistics], ("frames",))
    insight = statistics.get("insight") or _NO_INSIGHT
    for own in (place for group in _groups_of(insight) for place in group):
        Place(*(int(own[name]) for name in Place._fields))
        _ = own["file"], own["split"], own["labels"], own["uri"]
    for row in (row for rows in dict(insight.get("listed", {})).values() for row in rows):
        for own in (row, row.get("other", row)):
            _ = own["uri"], own["split"], own["labels"]
        float(row["score"])
    dict(insight["found"])
    dict(insight.get("common", {}))
    for _, _, sample in samples_of(statistics):
        Place(*(int(sample[name]) for name in Place._fields))


def samples_of(statistics: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(group, name in it, place) of each sampled record in a statistics.json, which may be empty: ``unlabelled`` is a
    group without names. Raises AttributeError, KeyError or TypeError for what cannot be one.
    """
    if not statistics:
        return
    samples = statistics["samples"]
    for group in SAMPLE_GROUPS:
        for name, places in samples[group].items():
            for sample in places:
                yield group, name, sample
    for sample in samples[UNLABELLED]:
        yield UNLABELLED, "", sample


def places_of(statistics: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every place of a record that a statistics.json names: samples, and pictures under ``insight``."""
    yield from (sample for _, _, sample in samples_of(statistics))
    yield from (place for group in _groups_of(statistics.get("insight") or _NO_INSIGHT) for place in group)


def _groups_of(insight: Mapping[str, Any]) -> Iterator[Sequence[Mapping[str, Any]]]:
    """The pictures that belong together in what a conversion tells under ``insight``."""
    yield from (*insight["clusters"], *insight["conflicts"], *insight["worst"].values())


def _merged_digests(parts: Sequence[Mapping[str, Any]], names: Iterable[str]) -> dict[str, Any]:
    return {name: merge_digests(Digest.from_json(part[name]) for part in parts).to_json() for name in names}


def channels_key(channels: int, dtype: str) -> str:
    """Under which key of ``channels`` pictures are told: ``3``, or ``3/uint16``."""
    return str(channels) if dtype == "uint8" else f"{channels}/{dtype}"


def _added_sums(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The sums of some pictures together; whole numbers of any size, so the order cannot show."""
    parts = list(parts)
    return {
        **{name: sum(int(part[name]) for part in parts) for name in ("images", "pixels")},
        **{
            name: [sum(map(int, values)) for values in zip(*(part[name] for part in parts), strict=True)]
            for name in ("sum", "squares")
        },
    }


def moments(pixels: int, sums: Sequence[int], squares: Sequence[int]) -> tuple[list[float], list[float]]:
    """Mean and standard deviation of each channel, from the sums of its values and of their squares."""
    deviations = [
        math.sqrt(pixels * square - total * total) / pixels for total, square in zip(sums, squares, strict=True)
    ]
    return [total / pixels for total in sums], deviations


def _merged_channels(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    merged = {}
    for key in sorted({key for part in parts for key in part}):
        own = _added_sums(part[key] for part in parts if key in part)
        mean, std = moments(own["pixels"], own["sum"], own["squares"])
        merged[key] = {**own, "mean": mean, "std": std}
    return merged


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    return dict(sorted(total.items()))


def _merged_sizes(parts: Sequence[Mapping[str, int] | None]) -> dict[str, int] | None:
    """Whether there are too many sizes depends on the set of all of them alone, so no order can show."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    merged = _added(known)
    return merged if len(merged) <= MAX_SIZES else None


def _merged_samples(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for group in SAMPLE_GROUPS:
        names = sorted({name for part in parts for name in part[group]})
        # Of fewer names more are kept: what some shards together leave out, all of them would leave out.
        most = samples_per_class(len(names)) if group == "classes" else SAMPLES_PER_NOTE
        merged[group] = {
            name: heapq.nsmallest(most, itertools.chain.from_iterable(part[group].get(name, ()) for part in parts))
            for name in names
        }
    unlabelled = itertools.chain.from_iterable(part["unlabelled"] for part in parts)
    return {**merged, "unlabelled": heapq.nsmallest(MAX_SAMPLES, unlabelled)}


def _placed(key: ShardKey | str, places: Iterable[Sequence[int]]) -> list[tuple[int, ShardKey | str, int, int]]:
    return [(record, key, offset, size) for record, offset, size in places] if key else []
