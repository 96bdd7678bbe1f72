"""From a survey to a plan: the vocabulary, the keys of every record, and which shard each entry goes to."""

from __future__ import annotations

import bisect
import itertools
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from beam_tfrecord.annotations import KINDS, feature_keys
from beam_tfrecord.annotations.base import Schema, Vocabulary
from beam_tfrecord.conversion.choosing.choice import NO_CHOICE, Choice, chosen_labels
from beam_tfrecord.conversion.choosing.chooser import NOTHING_NOTED
from beam_tfrecord.conversion.choosing.telling import check_something_is_left, unmatched
from beam_tfrecord.conversion.planning.accounts import InputAccount, account_inputs, check_strict
from beam_tfrecord.conversion.planning.blocks import (
    REJECTS,
    BlockColumns,
    BlockItem,
    Hashes,
    columns_of,
    count_away,
    items_of_columns,
    pack_columns,
    unpack_columns,
)
from beam_tfrecord.conversion.planning.census import Walk
from beam_tfrecord.conversion.planning.samples import NO_SAMPLE, Sample, take_sample
from beam_tfrecord.conversion.planning.survey import HashSketch, SizeSample, Survey
from beam_tfrecord.core.account import Decision
from beam_tfrecord.core.elements import Finding
from beam_tfrecord.core.splits import split_by_ratio, split_thresholds, stratified_counts
from beam_tfrecord.errors import ConfigError, ManifestError, nearest
from beam_tfrecord.manifests.base import NUMBERS, Source, stated_labels
from beam_tfrecord.options.config import ConvertConfig, ShardConfig
from beam_tfrecord.storage import public_uri

BOX_FACETS = frozenset({"boxes", "instance_masks", "keypoints", "panoptic"})  # what asks for the od preset
RECORD_OVERHEAD = 400  # bytes of keys, names and framing beside the image, for the estimate of a shard's size
TABLE_RECORD = 200  # bytes of a record without an image, for the same estimate
REJECTS_PER_SHARD = 100_000

SizesOf = Callable[[Iterable[str]], Mapping[str, int]]
DeepKinds = Callable[[Mapping[str, Iterable[SizeSample]]], Collection[str]]


@dataclass(frozen=True)
class SplitPlan:
    """One split: how many entries it gets, and the order hash at which each shard but the first begins."""

    name: str
    num_entries: int
    boundaries: tuple[int, ...] = ()

    @property
    def num_shards(self) -> int:
        return len(self.boundaries) + 1

    def shard_of(self, order: int) -> int:
        """The shard that an order hash falls into."""
        return bisect.bisect_right(self.boundaries, order)


@dataclass(frozen=True)
class DatasetPlan:
    """Everything that is decided before the first record is written.

    splits: by name, the pseudo split of rejects included. strata: ends of the hash ranges by class, for --stratify.
    straddling: order hash of an id that occurs in several splits -> the split that counts as its first. inputs: the
    account of each input. excluded: rows that are chosen away, by option; rejected: others that cannot become
    entries. sample: what --limit takes. unmatched: what the options of choosing name and nothing has.
    compares_ids: whether straddling tells of all splits; else :mod:`.straddling` finds what there is.
    """

    survey: Survey
    schema: Schema
    splits: Mapping[str, SplitPlan]
    strata: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    straddling: Mapping[int, str] = field(default_factory=dict)
    record_bytes: float = 0.0
    inputs: tuple[InputAccount, ...] = ()
    excluded: Mapping[str, int] = field(default_factory=dict)
    rejected: int = 0
    sample: Sample = NO_SAMPLE
    unmatched: tuple[Finding, ...] = ()
    compares_ids: bool = True

    @property
    def rows_left(self) -> int:
        """Rows that are not chosen away."""
        return self.survey.rows - sum(self.excluded.values())

    @property
    def num_shards(self) -> int:
        """Shards of all splits, the one of rejects included."""
        return sum(split.num_shards for split in self.splits.values())

    def place(self, item: BlockItem, config: ConvertConfig) -> tuple[str, int]:
        """(split, shard) of a block item."""
        split = item.split
        if split is None:
            ratios = config.splits.splits
            assert ratios is not None
            split = split_by_ratio(ratios, self.strata[item.stratum], item.unit)
        return split, self.splits[split].shard_of(item.order)

    def splits_of(self, columns: BlockColumns, config: ConvertConfig) -> Sequence[str | None]:
        """The split of each item."""
        if None in columns.split:
            return [self.place(item, config)[0] for item in items_of_columns(columns)]
        return columns.split

    def place_block(self, block: bytes, config: ConvertConfig) -> Iterator[tuple[tuple[str, int], bytes]]:
        """((split, shard), its items as a block) for each shard that items of a block belong to."""
        columns = unpack_columns(block)
        if self.sample.ends:
            columns, away = self.sample.divide(columns)
            if away.payload:
                yield (REJECTS, 0), pack_columns(columns_of(list(count_away(away, "limit"))))
        splits = self.splits_of(columns, config)
        for split in sorted({split for split in splits if split is not None}):
            own = np.flatnonzero([name == split for name in splits])
            ends = np.array(self.splits[split].boundaries, np.uint64)
            shards = np.searchsorted(ends, columns.order[own], side="right")
            by_shard = np.argsort(shards, kind="stable")
            numbers, starts = np.unique(shards[by_shard], return_index=True)
            for number, places in zip(numbers.tolist(), np.split(own[by_shard], starts[1:]), strict=True):
                yield (split, number), pack_columns(columns.chosen(places.tolist()))


def plan_dataset(
    survey: Survey,
    sources: Sequence[Source],
    fixed_labels: tuple[str, ...] | None,
    config: ConvertConfig,
    sizes_of: SizesOf,
    deep_kinds: DeepKinds = lambda masks: (),
    walk: Walk | None = None,
    choice: Choice = NO_CHOICE,
) -> DatasetPlan:
    """Decide the vocabulary, the schema and the shards.

    fixed_labels: the names of --labels. sizes_of: sizes in bytes of those files that exist. deep_kinds: the kinds of
    which some of these masks have more than 8 bits. walk: lists all files below a folder; without it no census is
    taken of the files beside the images. choice: what was taken of the rows. Raises ConfigError when an option does not
    fit the rows, or leaves none of them.
    """
    if not survey.rows:
        places = ", ".join(public_uri(source.uri) for source in sources)
        unused = ", ".join(
            f"{kind} {reason}: {told.count:,}, such as {told.example}"
            for account in (*(source.account for source in sources), *survey.accounts.values())
            for kind, reasons in sorted(account.named.items())
            for reason, told in sorted(reasons.items())
        )
        why = f"not used are {unused}" if unused else "it holds a header at most, or no files that are images"
        raise ManifestError(f"no rows were found in {places}: {why}")
    if survey.has_tables and survey.has_images:
        raise ConfigError(
            "some inputs have images and others are tables without an image column: convert them into datasets of "
            "their own"
        )
    inputs = account_inputs(sources, survey, config, walk, choice)
    told_nothing = unmatched(choice, survey.notes)
    check_something_is_left(survey.rows, survey.excluded, choice, survey.notes)
    if config.manifest.strict:
        check_strict(inputs, told_nothing)
    schema = plan_schema(survey, sources, fixed_labels, config, deep_kinds, choice)
    if fixed_labels is None and inputs and all(source.labels is None for source in sources):
        told = tuple(filter(None, [ids_of_numbers(schema.vocabulary)]))
        inputs = (replace(inputs[0], decisions=(*inputs[0].decisions, *told)), *inputs[1:])
    survey, sample = take_sample(survey, config.choosing.limit)
    strata = _stratify(survey, config)
    orders = _orders_by_split(survey, strata, config)
    _check_split_names(orders)
    record_bytes = estimate_record_bytes(known_sizes(survey, sources, config, sizes_of))
    counts = plan_shard_counts(
        {name: sketch.count for name, sketch in orders.items() if name}, record_bytes, config.shards
    )
    cuts = plan_cuts({name: sketch.count for name, sketch in orders.items() if name}, config.shards)
    counts.update({name: len(ends) + 1 for name, ends in cuts.items()})
    rejects = orders.get(REJECTS)
    if rejects:
        counts[REJECTS] = -(-rejects.count // REJECTS_PER_SHARD)
    splits = {
        name: SplitPlan(name, sketch.count, boundaries(sketch, counts[name], cuts.get(name)))
        for name, sketch in sorted(orders.items())
    }
    slim = replace(
        survey,
        orders={},
        strata={},
        masks={},
        accounts={},
        files={},
        decisions={},
        boxes={},
        cells={},
        notes=NOTHING_NOTED,
    )  # the hashes have done their work: the plan goes to every worker
    return DatasetPlan(
        slim,
        schema,
        splits,
        strata,
        _straddling(orders),
        record_bytes,
        inputs,
        excluded={**survey.excluded, **({"limit": sample.rows_away} if sample.rows_away else {})},
        rejected=survey.rejected - sample.rejects_away,
        sample=sample,
        unmatched=told_nothing,
        compares_ids=_compares_ids(orders),
    )


# ---------------------------------------------------------------------------------------------------------------------
# Vocabulary and schema


def plan_schema(
    survey: Survey,
    sources: Sequence[Source],
    fixed_labels: tuple[str, ...] | None,
    config: ConvertConfig,
    deep_kinds: DeepKinds = lambda masks: (),
    choice: Choice = NO_CHOICE,
) -> Schema:
    """The keys and types of every record. deep_kinds: as in :func:`plan_dataset`."""
    preset = config.features.keys or ("od" if survey.facets & BOX_FACETS else "imagenet")
    offset = config.labels.label_offset
    if offset is None:
        offset = 1 if preset == "od" else 0
    facets = survey.facets | ({"columns"} if config.manifest.columns else frozenset())
    facets |= _absences(survey) | _depths(survey, config, deep_kinds)
    raw = config.images.image_format == "raw"
    schema = Schema(
        kinds=tuple(sorted(facets)),
        vocabulary=plan_vocabulary(
            survey, sources, fixed_labels, offset, config.labels.keep_category_ids, config.labels.label_ids, choice
        ),
        preset=preset,
        keys=feature_keys(preset, config.features.rename, raw=raw, columns=config.manifest.columns),
        columns=config.manifest.columns,
        has_images=survey.has_images,
        is_sequence=survey.has_sequences or (survey.has_images and config.images.animated == "sequence"),
        raw=raw,
        one_hot=config.labels.one_hot,
    )
    return schema


def _absences(survey: Survey) -> frozenset[str]:
    """Facets for the kinds that some pictures have nothing of."""
    return frozenset(
        facet
        for name, count in survey.pictures_with.items()
        if count < survey.pictures
        for facet in KINDS[name].absence()
    )


def _depths(survey: Survey, config: ConvertConfig, deep_kinds: DeepKinds) -> frozenset[str]:
    """Facets for the kinds whose masks are stored with 16 bits."""
    asked = config.features.mask_bits
    deep = survey.masks if asked == "16" else deep_kinds(survey.masks) if asked == "auto" and survey.masks else ()
    return frozenset(f"{kind}/deep" for kind in deep)


def plan_vocabulary(
    survey: Survey,
    sources: Sequence[Source],
    fixed: tuple[str, ...] | None,
    offset: int,
    keep_category_ids: bool,
    fixed_ids: tuple[int, ...] | None = None,
    choice: Choice = NO_CHOICE,
) -> Vocabulary:
    """The one vocabulary: the given names, else those that the sources state, else all that occur, by code point, or by
    number where the sources say that they are numbers."""
    if fixed is not None and fixed_ids is not None:
        if len(fixed_ids) != len(fixed):
            raise ConfigError(f"--label_ids gives {len(fixed_ids)} ids for the {len(fixed)} names of --labels")
        return Vocabulary(fixed, fixed_ids[0], fixed_ids)
    if fixed is not None:
        return Vocabulary(fixed, offset)
    stated = [source for source in sources if source.labels is not None]
    if stated:
        names, ids = chosen_labels(*stated_labels(stated), choice)
        further = sorted(set(survey.labels) - set(names))
        if keep_category_ids:
            if ids is None or further:
                raise ConfigError("--keep_category_ids needs inputs that all state the ids of their categories (COCO)")
            return Vocabulary(names, ids[0] if ids else 0, ids)
        return Vocabulary((*names, *further), offset)
    if keep_category_ids:
        raise ConfigError("--keep_category_ids needs an input that states ids of categories (COCO)")
    are_numbers = bool(sources) and all(source.details.get(NUMBERS) for source in sources)
    return Vocabulary(tuple(sorted(survey.labels, key=_by_number if are_numbers else None)), offset)


def ids_of_numbers(vocabulary: Vocabulary) -> Decision | None:
    """What is decided about labels that all are whole numbers where their ids are others: who expects the number itself
    must hear of it."""
    if not vocabulary.names or not all(name.isascii() and name.isdecimal() for name in vocabulary.names):
        return None
    other = next(
        ((name, own) for name, own in zip(vocabulary.names, vocabulary.ids, strict=True) if int(name) != own), None
    )
    if other is None:
        return None
    why = "labels are names, and ids count them in the order of their characters; --labels with ids keeps the numbers"
    return Decision("ids", f"the label {other[0]!r} has the id {other[1]}", why)


def _by_number(label: str) -> tuple[bool, int, str]:
    """The place of a label among numbers; what is none comes behind them."""
    is_number = label.removeprefix("-").isdecimal()
    return not is_number, int(label) if is_number else 0, label


# ---------------------------------------------------------------------------------------------------------------------
# Splits


def _check_split_names(names: Iterable[str]) -> None:
    """Raises ConfigError for two names that differ only in case: a slip, and on many disks one file."""
    alike: dict[str, str] = {}
    for name in sorted(names):
        known = alike.setdefault(name.casefold(), name)
        if known != name:
            raise ConfigError(
                f"the splits {known!r} and {name!r} differ only in case: spell them alike in the column, the folders "
                f"or the --input that name them, or give each input its split, such as --input {known.lower()}=..."
            )


def _stratify(survey: Survey, config: ConvertConfig) -> dict[str, tuple[int, ...]]:
    ratios = config.splits.splits
    if not survey.strata or not ratios:
        return {}
    return {stratum: _stratum_thresholds(units, ratios) for stratum, (units, _) in survey.strata.items()}


def _stratum_thresholds(units: HashSketch, ratios: Sequence[tuple[str, float]]) -> tuple[int, ...]:
    """Ends of the hash ranges that give each split its number of this class."""
    hashes = units.array
    if hashes is None:  # millions of one class: its shares are right by the law of large numbers
        return split_thresholds(ratios)
    ends, position = [], 0
    for count in stratified_counts(ratios, len(hashes))[:-1]:
        position += count
        ends.append(int(hashes[position]) if position < len(hashes) else 2**64)
    return (*ends, 2**64)


def _orders_by_split(
    survey: Survey, strata: Mapping[str, tuple[int, ...]], config: ConvertConfig
) -> dict[str, HashSketch]:
    """Order hashes of each split after --stratify has placed those without one."""
    orders = {split: sketch for split, sketch in survey.orders.items() if split is not None}
    ratios = config.splits.splits or ()
    for stratum, (units, places) in survey.strata.items():
        for split, sketch in _divide(units, places, ratios, strata[stratum]).items():
            orders[split] = orders[split] + sketch if split in orders else sketch
    return orders


def _divide(
    units: HashSketch, places: HashSketch, ratios: Sequence[tuple[str, float]], ends: tuple[int, ...]
) -> dict[str, HashSketch]:
    if units.hashes is None or places.hashes is None:
        shares = stratified_counts(ratios, units.count)
        return {name: HashSketch(count, None) for (name, _), count in zip(ratios, shares, strict=True) if count}
    unit_hashes = np.frombuffer(units.hashes, np.uint64)
    order_hashes = np.frombuffer(places.hashes, np.uint64)
    inner = np.array([min(end, 2**64 - 1) for end in ends[:-1]], np.uint64)
    chosen = np.searchsorted(inner, unit_hashes, side="right")
    found = {}
    for number, (name, _) in enumerate(ratios):
        own = order_hashes[chosen == number]
        if len(own):
            found[name] = HashSketch(len(own), own.tobytes())
    return found


def _straddling(orders: Mapping[str, HashSketch]) -> dict[int, str]:
    """Ids that occur in more than one split, each with the split that comes first by name.

    Looked for where all hashes are known; two ids with one hash of 64 bits are not expected below billions of rows.
    """
    seen: list[tuple[str, Hashes]] = []
    found: dict[int, str] = {}
    for name in sorted(orders):
        hashes = orders[name].array if name != REJECTS else None
        if hashes is None:
            continue
        for other, known in seen:
            for value in np.intersect1d(known, hashes):
                found.setdefault(int(value), other)
        seen.append((name, hashes))
    return found


def _compares_ids(orders: Mapping[str, HashSketch]) -> bool:
    """Whether there is nothing to compare, or all that there is is known."""
    splits = [sketch for name, sketch in orders.items() if name != REJECTS]
    return len(splits) < 2 or all(sketch.hashes is not None for sketch in splits)


# ---------------------------------------------------------------------------------------------------------------------
# Shards


def known_sizes(survey: Survey, sources: Sequence[Source], config: ConvertConfig, sizes_of: SizesOf) -> list[int]:
    """Sizes in bytes of the sampled images, as far as they exist.

    Raises ManifestError when none of them does: a wrong --images is told at once, not row by row at the end.
    """
    sizes = [item.member.length for item in survey.sample if item.member is not None and item.member.length >= 0]
    files = [item.uri for item in survey.sample if item.member is None]
    found = sizes_of(files) if files else {}
    if files and not found and not sizes and config.output.max_rejects != 1.0:
        folders = ", ".join(dict.fromkeys(public_uri(source.base) for source in sources)) or "the places named"
        raise ManifestError(
            f"0 of {len(files):,} images{' that were looked up' * (len(files) < survey.rows)} exist in {folders} "
            f"(such as {public_uri(files[0])}): give the folder that their paths start from with --images"
        )
    return sizes + list(found.values())


def estimate_record_bytes(sizes: Sequence[int]) -> float:
    """Mean size of a record in bytes, from the sizes of some images."""
    return statistics.fmean(sizes) + RECORD_OVERHEAD if sizes else float(TABLE_RECORD)


def plan_shard_counts(records: Mapping[str, int], record_bytes: float, config: ShardConfig) -> dict[str, int]:
    """Number of shards by split: never more than records, never less than one."""
    asked = config.num_shards
    if isinstance(asked, tuple):
        wanted = dict(asked)
        unknown = [name for name in wanted if name not in records]
        if unknown:
            raise ConfigError(
                f"--num_shards names the split {unknown[0]!r}, which has no rows; there are "
                f"{', '.join(sorted(records)) or 'none'}{nearest(unknown[0], records)}"
            )
    elif asked is not None:
        wanted = _apportion(records, asked)
    else:
        wanted = {}
    by_size = {name: -(-int(count * record_bytes) // config.shard_size) for name, count in records.items()}
    return {name: max(1, min(wanted.get(name, by_size[name]), count)) for name, count in records.items()}


def plan_cuts(records: Mapping[str, int], config: ShardConfig) -> dict[str, tuple[int, ...]]:
    """By split that --shard_records names: the number of the first record of each shard but the first."""
    cuts = {}
    for name, lengths in config.shard_records or ():
        if sum(lengths) != records.get(name, 0):
            raise ConfigError(
                f"--shard_records places {sum(lengths):,} records in the split {name!r}, which has "
                f"{records.get(name, 0):,}{nearest(name, set(records) - {name})}"
            )
        cuts[name] = tuple(itertools.accumulate(lengths))[:-1]
    return cuts


def _apportion(records: Mapping[str, int], total: int) -> dict[str, int]:
    """``total`` shards shared out by number of records, each split at least one (largest remainders)."""
    names = sorted(records)
    everything = sum(records.values())
    exact = {name: total * records[name] / everything for name in names}
    shares = {name: max(1, int(exact[name])) for name in names}
    by_remainder = sorted(names, key=lambda name: (int(exact[name]) - exact[name], name))
    for name in by_remainder[: max(0, total - sum(shares.values()))]:
        shares[name] += 1
    return shares


def boundaries(sketch: HashSketch, num_shards: int, cuts: Sequence[int] | None = None) -> tuple[int, ...]:
    """The order hash at which each shard but the first begins: equal numbers of entries in each, or cut at ``cuts``.

    Copies of one id have one hash and stay together, so that they can be numbered where they are written.
    """
    hashes = sketch.array
    if hashes is None:
        return tuple(2**64 * shard // num_shards for shard in range(1, num_shards))
    if cuts is None:
        cuts = [len(hashes) * shard // num_shards for shard in range(1, num_shards)]
    starts = sorted({int(hashes[cut]) for cut in cuts})
    return tuple(start for start in starts if start > int(hashes[0]))
