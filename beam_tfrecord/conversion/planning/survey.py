"""What is known of all rows before the first image is read: the base of the plan.

Surveys are small, can be added in any order with the same result, and never hold entries.
"""

from __future__ import annotations

import functools
import hashlib
import heapq
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from beam_tfrecord.annotations import KINDS
from beam_tfrecord.annotations.label import Label, LabelKind
from beam_tfrecord.conversion.choosing.chooser import (
    NOTHING_NOTED,
    ChoiceNotes,
    annotations_of,
    count_objects,
    merge_notes,
    uris_of,
)
from beam_tfrecord.conversion.choosing.limiting import Cell, CellSketch, cell_sketch, merge_cells
from beam_tfrecord.conversion.choosing.near_rows import NO_NEAR_ROWS, Unit
from beam_tfrecord.conversion.planning.blocks import REJECTS, BlockItem, Hashes, pack_entry, tally
from beam_tfrecord.core.account import NO_ACCOUNT, Account, AccountBuilder, Decision, merge_accounts
from beam_tfrecord.core.elements import ChosenAway, Entry, Finding, Member, RejectedRow
from beam_tfrecord.core.splits import HASH_RANGE, order_hash, split_by_ratio, split_hash, split_thresholds
from beam_tfrecord.manifests.base import Ignored, Told
from beam_tfrecord.manifests.filenames import is_image_name
from beam_tfrecord.manifests.text.spelling import plain_form
from beam_tfrecord.options.config import DEFAULT_SPLIT, SplitConfig

SKETCH_LIMIT = 4_000_000  # hashes of 8 bytes that are kept exactly; above it hashes are even enough by themselves
STRATA_LIMIT = 16_000_000  # rows of all classes together whose pairs of hashes are kept exactly, for --stratify
SAMPLE_SIZE = 128  # images whose sizes estimate the size of a record
SHOWN_PROBLEMS = 5
_LONGEST_NUMBER = 100  # digits that are sorted as a number; Python refuses some thousand

NaturalKey = tuple[tuple[int, int | str], ...]


def natural_key(text: str) -> tuple[NaturalKey, int]:
    """Sorts ``a.csv:9`` before ``a.csv:10``."""
    file, colon, line = text.rpartition(":")
    if colon and line.isdecimal() and line.isascii() and len(line) <= _LONGEST_NUMBER:
        return _natural_parts(file), int(line)
    return _natural_parts(text), 0


@functools.lru_cache(maxsize=1024)  # the lines of a manifest share its name
def _natural_parts(text: str) -> NaturalKey:
    parts = re.split(r"([0-9]+)", text)  # odd places hold the numbers
    return tuple(
        (0, int(part)) if place % 2 and len(part) <= _LONGEST_NUMBER else (1, part)
        for place, part in enumerate(parts)
        if part
    )


@dataclass(frozen=True)
class HashSketch:
    """The hashes of one split (or class), exact up to a limit and only counted above it.

    Whether they are kept depends on their number alone, so the order of additions cannot show.
    """

    count: int = 0
    hashes: bytes | None = b""

    def __add__(self, other: HashSketch) -> HashSketch:
        return merge_sketches([self, other])

    @property
    def array(self) -> Hashes | None:
        """All hashes, sorted, dtype uint64; None when there are too many to keep."""
        return None if self.hashes is None else np.sort(np.frombuffer(self.hashes, np.uint64))


def merge_sketches(sketches: Iterable[HashSketch]) -> HashSketch:
    """The sketch of all hashes of several sketches."""
    parts = list(sketches)
    count = sum(part.count for part in parts)
    kept = [part.hashes for part in parts if part.hashes is not None]
    exact = count <= SKETCH_LIMIT and len(kept) == len(parts)
    return HashSketch(count, b"".join(kept) if exact else None)


Strata = tuple[HashSketch, HashSketch]  # split hashes and order hashes of one class


class SizeSample(NamedTuple):
    """An image whose size is looked up, or a mask whose depth is.

    Those with the lowest order hashes are the sample, whatever the order of arrival.
    """

    order: int
    uri: str
    member: Member | None


@dataclass(frozen=True)
class Survey:
    """Counts of all rows (or of some, to be added up).

    orders: order hashes by split; the key None holds entries whose split the plan decides. strata: (split hash, order
    hash) of those entries by class, as two sketches. labels: how often each label name is used. problems: the first
    rejects by origin. rows_by_input: rows by the number of the input. own_splits: entries whose split
    the row or the input names. pictures: images, frames and table rows; objects: those of all entries, and those
    chosen away; excluded: rows chosen away, by option; notes: what was seen when they were; cells: the rows that
    --limit takes its sample of, where it is given;
    pictures_with: those that have something of a kind of annotation. masks: a sample of the masks of each kind whose
    depth is looked at. accounts: what was used and named of each input while its rows were read. files:
    hashes of the files that the rows name, by input, where a census is to be taken. decisions: what was found out
    while the rows were read, by input. boxes: how many are in pixels, and how many of these lie within the first pixel,
    by input.
    """

    rows: int = 0
    source_rows: int = 0
    ignored: int = 0
    facets: frozenset[str] = frozenset()
    has_images: bool = False
    has_tables: bool = False
    has_sequences: bool = False
    labels: Mapping[str, int] = field(default_factory=dict)
    orders: Mapping[str | None, HashSketch] = field(default_factory=dict)
    strata: Mapping[str, Strata] = field(default_factory=dict)
    sample: tuple[SizeSample, ...] = ()
    problems: tuple[Finding, ...] = ()
    reject_codes: Mapping[str, int] = field(default_factory=dict)
    rows_by_input: Mapping[int, int] = field(default_factory=dict)
    pictures: int = 0
    own_splits: int = 0
    objects: int = 0
    pictures_with: Mapping[str, int] = field(default_factory=dict)
    masks: Mapping[str, tuple[SizeSample, ...]] = field(default_factory=dict)
    accounts: Mapping[int, Account] = field(default_factory=dict)
    files: Mapping[int, HashSketch] = field(default_factory=dict)
    decisions: Mapping[int, tuple[Decision, ...]] = field(default_factory=dict)
    boxes: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    excluded: Mapping[str, int] = field(default_factory=dict)
    notes: ChoiceNotes = NOTHING_NOTED
    cells: Mapping[Cell, CellSketch] = field(default_factory=dict)

    @property
    def rejected(self) -> int:
        """Rows that could not become entries."""
        return sum(self.reject_codes.values())

    @property
    def num_hashes(self) -> int:
        """How many hashes are held: what decides the size of the survey."""
        sketches = itertools.chain(self.orders.values(), self.files.values(), *self.strata.values())
        cells = sum(len(cell.orders) // 8 for cell in self.cells.values() if cell.orders is not None)
        return cells + sum(sketch.count for sketch in sketches if sketch.hashes is not None)


def merge_surveys(surveys: Iterable[Survey]) -> Survey:
    """One survey of everything that several surveys saw."""
    parts = list(surveys)
    labels: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    inputs: Counter[int] = Counter()
    orders: dict[str | None, list[HashSketch]] = {}
    strata: dict[str, list[Strata]] = {}
    pictures_with: Counter[str] = Counter()
    excluded: Counter[str] = Counter()
    cells: dict[Cell, list[CellSketch]] = {}
    for part in parts:
        pictures_with.update(part.pictures_with)
        excluded.update(part.excluded)
        for cell, own in part.cells.items():
            cells.setdefault(cell, []).append(own)
        labels.update(part.labels)
        codes.update(part.reject_codes)
        inputs.update(part.rows_by_input)
        for split, sketch in part.orders.items():
            orders.setdefault(split, []).append(sketch)
        for stratum, pair in part.strata.items():
            strata.setdefault(stratum, []).append(pair)
    return Survey(
        rows=sum(part.rows for part in parts),
        source_rows=sum(part.source_rows for part in parts),
        ignored=sum(part.ignored for part in parts),
        facets=frozenset().union(*(part.facets for part in parts)),
        has_images=any(part.has_images for part in parts),
        has_tables=any(part.has_tables for part in parts),
        has_sequences=any(part.has_sequences for part in parts),
        labels=dict(labels),
        orders={split: merge_sketches(sketches) for split, sketches in orders.items()},
        strata=_within_limit(
            {
                stratum: (merge_sketches(p[0] for p in pairs), merge_sketches(p[1] for p in pairs))
                for stratum, pairs in strata.items()
            }
        ),
        sample=_sampled(item for part in parts for item in part.sample),
        problems=first_findings(finding for part in parts for finding in part.problems),
        reject_codes=dict(codes),
        rows_by_input=dict(inputs),
        pictures=sum(part.pictures for part in parts),
        own_splits=sum(part.own_splits for part in parts),
        objects=sum(part.objects for part in parts),
        pictures_with=dict(pictures_with),
        masks={
            kind: _sampled(item for part in parts for item in part.masks.get(kind, ()))
            for kind in sorted({kind for part in parts for kind in part.masks})
        },
        accounts={
            number: merge_accounts(part.accounts[number] for part in parts if number in part.accounts)
            for number in sorted({number for part in parts for number in part.accounts})
        },
        files={
            number: merge_sketches(part.files[number] for part in parts if number in part.files)
            for number in sorted({number for part in parts for number in part.files})
        },
        decisions={
            number: tuple(sorted({told for part in parts for told in part.decisions.get(number, ())}))
            for number in sorted({number for part in parts for number in part.decisions})
        },
        boxes={
            number: (
                sum(part.boxes.get(number, (0, 0))[0] for part in parts),
                sum(part.boxes.get(number, (0, 0))[1] for part in parts),
            )
            for number in sorted({number for part in parts for number in part.boxes})
        },
        excluded=dict(excluded),
        notes=merge_notes(part.notes for part in parts),
        cells={cell: merge_cells(sketches) for cell, sketches in cells.items()},
    )


def _within_limit(strata: Mapping[str, Strata]) -> dict[str, Strata]:
    """The hashes of all classes where they are few enough together, else those of the small classes only.

    A class is given up when it has more than its even share of the limit. Numbers of rows and of classes only grow when
    surveys are added up, so what is given up on the way would be given up at the end as well: no order can show.
    """
    if sum(units.count for units, _ in strata.values()) <= STRATA_LIMIT:
        return dict(strata)
    return {
        name: pair if pair[0].count * len(strata) <= STRATA_LIMIT else (_counted(pair[0]), _counted(pair[1]))
        for name, pair in strata.items()
    }


def _counted(sketch: HashSketch) -> HashSketch:
    return HashSketch(sketch.count, None)


def _sampled(items: Iterable[SizeSample]) -> tuple[SizeSample, ...]:
    return tuple(heapq.nsmallest(SAMPLE_SIZE, items, key=_sample_key))


def _sample_key(sample: SizeSample) -> tuple[int, str]:
    return sample.order, sample.uri


def first_findings(findings: Iterable[Finding], count: int = SHOWN_PROBLEMS) -> tuple[Finding, ...]:
    """The findings that come first in the order of their origins."""
    return tuple(heapq.nsmallest(count, findings, key=lambda finding: (natural_key(finding.origin), finding.code)))


class BlockBuilder:
    """Gathers entries into block items, and what a survey needs of them. limit: of the rows, as --limit has it. units:
    other ones for what --splits keeps together (see :class:`~beam_tfrecord.conversion.choosing.near_rows.NearRows`).
    """

    def __init__(
        self,
        config: SplitConfig,
        source: int,
        *,
        has_census: bool = False,
        limit: int | float | None = None,
        units: Mapping[str, Unit] = NO_NEAR_ROWS.units,
    ) -> None:
        self._config = config
        self._units = units
        self._limit = limit
        self._source = source
        self._has_census = has_census
        self._thresholds = split_thresholds(config.splits) if config.splits else ()
        self.reset()

    def reset(self) -> None:
        """Begin a new block."""
        self.items: list[BlockItem] = []
        self._rows = self._source_rows = self._ignored = 0
        self._facets: set[str] = set()
        self._kinds_of_item: set[str] = set()
        self._labels: Counter[str] = Counter()
        self._only_labels: Counter[Label] = Counter()  # of images that have nothing but a label
        self._codes: Counter[str] = Counter()
        self._orders: dict[str | None, list[int]] = {}
        self._strata: dict[str, tuple[list[int], list[int]]] = {}
        self._sample: list[SizeSample] = []
        self._sample_end = HASH_RANGE  # orders from here on cannot be in the sample any more
        self._masks: dict[str, list[SizeSample]] = {}
        self._pictures = self._own_splits = self._objects = 0
        self._boxes = self._small_boxes = 0
        self._pictures_with: Counter[str] = Counter()
        self._problems: list[Finding] = []
        self._account = AccountBuilder()
        self._files: list[int] = []
        self._decisions: list[Decision] = []
        self._excluded: Counter[str] = Counter()
        self._away_lines = self._away_objects = 0
        self._away_told: list[Finding] = []
        self._notes: list[ChoiceNotes] = []
        self._cells: dict[Cell, list[int]] = {}

    def tell(self, told: Told | ChosenAway | ChoiceNotes) -> None:
        """Take note of what is no row, or none any more."""
        if isinstance(told, ChosenAway):
            self._excluded.update(told.reasons)
            self._away_lines += told.source_rows
            self._away_objects += told.objects
            self._away_told += told.told
            if self._has_census:
                for place in told.uris:
                    self._files += name_hashes(place)
        elif isinstance(told, ChoiceNotes):
            self._notes.append(told)
        elif isinstance(told, Ignored):
            self._ignored += told.count
        elif isinstance(told, Account):
            self._account.add(told)
        else:
            self._decisions.append(told)

    def close(self) -> None:
        """End the block: what was chosen away joins its items, as one count."""
        away = ChosenAway(dict(self._excluded), self._away_lines, self._away_objects, told=tuple(self._away_told))
        if away.rows or away.objects:
            self._orders.setdefault(REJECTS, []).append(0)
            self.items.append(tally(away, self._source))

    def add(self, entry: Entry | RejectedRow) -> None:
        """Take one more entry or reject into the block."""
        self._rows += 1
        self._source_rows += entry.source_rows
        if isinstance(entry, RejectedRow):
            self._add_reject(entry)
            return
        seed = self._config.seed
        order = entry.rank if entry.rank is not None else order_hash(seed, entry.id)
        labels = self._see(entry, order)
        first = labels[0] if labels and self._config.stratify else ""
        stratum, unit, split = first if self._limit is not None else "", 0, entry.split
        self._own_splits += split is not None
        name = entry.group if entry.group is not None else entry.id
        if split is None and name in self._units:
            name, split = self._units[name]
        if split is None and self._config.splits:
            unit = split_hash(seed, name)
            if self._config.stratify:
                stratum = first
                units, orders = self._strata.setdefault(stratum, ([], []))
                units.append(unit)
                orders.append(order)
            else:
                split = split_by_ratio(self._config.splits, self._thresholds, unit)
        elif split is None:
            split = DEFAULT_SPLIT
        self._orders.setdefault(split, []).append(order)
        if self._limit is not None:
            self._cells.setdefault((split, stratum), []).append(order)
        self.items.append(BlockItem(order, split, unit, stratum, self._source, pack_entry(entry)))

    def _add_reject(self, reject: RejectedRow) -> None:
        finding = reject.finding
        order = order_hash(self._config.seed, finding.origin)
        self._codes[finding.code] += 1
        self._problems.append(finding)
        if len(self._problems) > 16 * SHOWN_PROBLEMS:
            self._problems = list(first_findings(self._problems))
        self._orders.setdefault(REJECTS, []).append(order)
        if self._limit is not None:
            self._cells.setdefault((REJECTS, ""), []).append(order)
        if self._has_census and finding.uri:
            self._files += name_hashes(finding.uri)
        self.items.append(BlockItem(order, REJECTS, 0, "", self._source, pack_entry(reject)))

    def _see(self, entry: Entry, order: int) -> Sequence[str]:
        """Take note of what an entry has; gives every use of a label in it."""
        if len(entry.annotations) == 1 and entry.uri and not (entry.frames or entry.kinds):
            label = entry.annotations.get(LabelKind.name)
            if type(label) is Label and type(KINDS[LabelKind.name]) is LabelKind:  # what most have, counted at the end
                self._only_labels[label] += 1
                if self._has_census:
                    self._files += name_hashes(entry.uri)
                self._sample_size(order, entry.uri, entry.member)
                return label.names
        if entry.kinds:
            self._facets.update(entry.kinds)
        found: list[str] = []
        for annotations in annotations_of(entry):
            for name, value in annotations.items():
                kind = KINDS[name]
                found += kind.labels(value)
                self._pictures_with[name] += 1
                self._facets.update(kind.facets(value))
                for uri, member in kind.masks(value):
                    self._sample_mask(name, SizeSample(order, uri, member))
                    if self._has_census:
                        self._files += name_hashes(uri)
        for label in found:
            self._labels[label] += 1
        self._pictures += len(entry.frames) or 1
        self._objects += count_objects(entry)
        self._see_boxes(entry)
        if self._has_census:
            for place in uris_of(entry):
                self._files += name_hashes(place)
        if entry.frames:
            self._kinds_of_item.add("sequence")
            self._sample_size(order, entry.frames[0].uri, entry.frames[0].member)
        elif entry.uri is not None:
            self._kinds_of_item.add("image")
            self._sample_size(order, entry.uri, entry.member)
        else:
            self._kinds_of_item.add("table")
        return found

    def _count_only_labels(self) -> None:
        """What :meth:`_see` counts, of the images that have nothing but a label."""
        kind = KINDS[LabelKind.name]
        for label, images in self._only_labels.items():
            for name in kind.labels(label):
                self._labels[name] += images
            self._pictures_with[kind.name] += images
            self._facets.update(kind.facets(label))
            self._pictures += images
            self._kinds_of_item.add("image")
        self._only_labels.clear()

    def _see_boxes(self, entry: Entry) -> None:
        """Count the boxes in pixels, and those among them that may be fractions."""
        for annotations in annotations_of(entry) if "boxes" in entry.annotations or entry.frames else ():
            if "boxes" in annotations:
                boxes = [one.box for one in annotations["boxes"].objects if one.box is not None and not one.normalized]
                self._boxes += len(boxes)
                self._small_boxes += sum(max(box) <= 1 for box in boxes)

    def _sample_size(self, order: int, uri: str, member: Member | None) -> None:
        if order > self._sample_end:
            return
        self._sample.append(SizeSample(order, uri, member))
        if len(self._sample) > 8 * SAMPLE_SIZE:
            self._sample = list(_sampled(self._sample))
            self._sample_end = self._sample[-1].order

    def _sample_mask(self, kind: str, mask: SizeSample) -> None:
        masks = self._masks.setdefault(kind, [])
        masks.append(mask)
        if len(masks) > 8 * SAMPLE_SIZE:
            self._masks[kind] = list(_sampled(masks))

    def survey(self) -> Survey:
        """The survey of what was added since the last reset."""
        self._count_only_labels()
        rows = self._rows + sum(self._excluded.values())
        most = self._limit if isinstance(self._limit, int) else None
        return Survey(
            rows=rows,
            source_rows=self._source_rows + self._away_lines,
            ignored=self._ignored,
            facets=frozenset(self._facets),
            has_images=bool(self._kinds_of_item & {"image", "sequence"}),
            has_tables="table" in self._kinds_of_item,
            has_sequences="sequence" in self._kinds_of_item,
            labels=dict(self._labels),
            orders={split: _sketch(hashes) for split, hashes in self._orders.items()},
            strata={name: (_sketch(units), _sketch(orders)) for name, (units, orders) in self._strata.items()},
            sample=_sampled(self._sample),
            problems=first_findings(self._problems),
            reject_codes=dict(self._codes),
            rows_by_input={self._source: rows} if rows else {},
            pictures=self._pictures,
            own_splits=self._own_splits,
            objects=self._objects + self._away_objects,
            pictures_with=dict(self._pictures_with),
            masks={kind: _sampled(masks) for kind, masks in self._masks.items()},
            accounts={self._source: account} if (account := self._account.account()) != NO_ACCOUNT else {},
            files={self._source: _sketch(self._files)} if self._files else {},
            decisions={self._source: tuple(self._decisions)} if self._decisions else {},
            boxes={self._source: (self._boxes, self._small_boxes)} if self._boxes else {},
            excluded=dict(self._excluded),
            notes=merge_notes(self._notes),
            cells={cell: cell_sketch(orders, most) for cell, orders in self._cells.items()},
        )


def name_hashes(uri: str) -> list[int]:
    """What the file of a name is known by in a survey; a second hash where it may be there under another spelling."""
    is_plain = plain_form(uri) == uri and uri.isascii() and is_image_name(uri) and lower_name(uri) == uri
    return [file_hash(uri)] if is_plain else [file_hash(uri), spelling_hash(uri)]


def spelling_hash(uri: str) -> int:
    """One hash for all spellings of a name, which is that of no file."""
    return file_hash(f"{loose_form(uri)}\0")


def loose_form(uri: str) -> str:
    """One text for all spellings of a name, in any case of letters."""
    return lower_name(plain_form(uri))


def lower_name(uri: str) -> str:
    """A uri with the name of the file in lower case."""
    folder, slash, name = uri.rpartition("/")
    return folder + slash + name.lower()


def file_hash(uri: str) -> int:
    """What a file of exactly this name is known by."""
    return int.from_bytes(hashlib.blake2b(uri.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _sketch(hashes: list[int]) -> HashSketch:
    return HashSketch(len(hashes), np.array(hashes, np.uint64).tobytes())
