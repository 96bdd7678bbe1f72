"""``--near_duplicates``: from the looks of a first pass to what becomes of the rows.

Pictures that are the same, or nearly so, are clusters: what is like one of a cluster belongs to it. Everything follows
from ids, the seed and the pictures, so the order of the rows, the engine and the workers cannot show.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from beam_tfrecord.conversion.choosing.near_rows import NO_NEAR_ROWS, Kept, NearRows, RowName, Unit
from beam_tfrecord.conversion.job import Job, plan_surveyed
from beam_tfrecord.conversion.planning.block_reading import NumberedPiece, read_blocks
from beam_tfrecord.conversion.planning.blocks import BlockItem, unpack_block
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan
from beam_tfrecord.conversion.planning.survey import merge_surveys
from beam_tfrecord.conversion.writing.names import Name
from beam_tfrecord.conversion.writing.progress import Progress
from beam_tfrecord.conversion.writing.shards import ShardWriter, threads_for
from beam_tfrecord.conversion.writing.staging import staging_folder
from beam_tfrecord.core.splits import order_hash
from beam_tfrecord.errors import ConfigError
from beam_tfrecord.insight.neighbours import MOST_PICTURES, clusters_of
from beam_tfrecord.manifests.base import Piece
from beam_tfrecord.options.config import ConvertConfig, InsightConfig, ShardConfig, SplitConfig
from beam_tfrecord.publishing.gathering import Gathered, add_gathered, gathered_of, in_order
from beam_tfrecord.publishing.insights import find_alike, look_files
from beam_tfrecord.storage import Storage

FIRST_PASS = "near"
PASS_SHARD = 16 << 20  # bytes of pictures that are looked at one after another: more of them than of shards


def first_pass(job: Job, folder: str) -> Job:
    """The job that looks at all pictures that a job would take, as they would be stored. folder: where looks are
    staged."""
    config = job.config
    return replace(
        job,
        config=replace(
            config,
            choosing=replace(config.choosing, limit=None, near_duplicates="keep"),
            splits=SplitConfig(seed=config.splits.seed),
            shards=ShardConfig(shard_size=PASS_SHARD),
            insight=InsightConfig(),
            output=replace(config.output, output=folder, index=False, array_record=False),
        ),
    )


def pass_folder(output: str) -> str:
    """Where the looks of a first pass are staged."""
    return f"{staging_folder(output)}/{FIRST_PASS}"


def decide_near_rows(
    gathered: Gathered, plan: DatasetPlan, config: ConvertConfig, folder: str, storage: Storage
) -> NearRows:
    """What becomes of the rows. gathered, plan, folder: of the first pass.

    Raises ConfigError for what cannot be compared.
    """
    choice = config.choosing.near_duplicates
    if plan.schema.is_sequence or not plan.schema.has_images:
        what = "sequences" if plan.schema.is_sequence else "rows without any"
        raise ConfigError(f"--near_duplicates {choice} compares single pictures, and these are {what}: leave it out")
    files = look_files(gathered.shards, folder, storage)
    if files.total > MOST_PICTURES:
        raise ConfigError(
            f"--near_duplicates {choice}: nobody looks for pairs among more than {MOST_PICTURES:,} pictures, and there "
            f"are {files.total:,}: leave it out, or convert fewer at a time"
        )
    alike = find_alike(files)
    members = [own.tolist() for own in clusters_of(alike.near.joined(alike.copies))]
    name_of = files.names(number for own in members for number in own)
    clusters = [[name_of[number] for number in own] for own in members]
    seed = config.splits.seed
    return drop_copies(clusters, seed) if choice == "drop" else group_copies(clusters, seed)


def drop_copies(clusters: Iterable[Sequence[Name]], seed: int) -> NearRows:
    """Of each cluster the picture that comes first is kept, in all rows that name it."""
    dropped: dict[RowName, Kept] = {}
    for cluster in clusters:
        first = min(cluster, key=lambda name: _place(name, seed))
        dropped.update({(name.id, name.uri): Kept(first.id, first.uri) for name in cluster if name.uri != first.uri})
    return NearRows(dropped=dropped)


def _place(name: Name, seed: int) -> tuple[int, str, str]:
    return (name.rank if name.rank is not None else order_hash(seed, name.id)), name.id, name.uri


@dataclass
class _Together:
    """Units that go to one split. named: rows whose source names a split."""

    units: set[str] = field(default_factory=set)
    named: list[Name] = field(default_factory=list)


def group_copies(clusters: Iterable[Sequence[Name]], seed: int) -> NearRows:
    """The units of each cluster, and those of all clusters that share one with it, are one unit.

    Rows whose source names a split stay there; the others follow the first of them.
    """
    units: dict[str, Unit] = {}
    straddling: dict[RowName, str] = {}
    for together in _joined(clusters):
        # The order is that of records, not that of splits: the first of hashes that decide splits would lie low.
        first = min(together.units, key=lambda unit: (order_hash(seed, unit), unit))
        named = sorted(together.named, key=lambda name: _place(name, seed))
        split = named[0].split if named else None
        if split is not None or len(together.units) > 1:
            units.update(dict.fromkeys(together.units, Unit(first, split)))
        splits = Counter(name.split or "" for name in named)
        if len(splits) > 1:
            straddling[named[0].id, named[0].uri] = _told_of(named, splits)
    return NearRows(units=units, straddling=straddling)


def _told_of(named: Sequence[Name], splits: Mapping[str, int]) -> str:
    examples = {split: next(name for name in named if name.split == split) for split in sorted(splits)}
    where = ", ".join(f"{count} in {split} (such as {examples[split].id})" for split, count in sorted(splits.items()))
    return (
        f"pictures that are the same, or nearly so, lie in several splits that their source names: {where}; they stay "
        f"there, and rows without a split that are like them go to {named[0].split}"
    )


def _joined(clusters: Iterable[Sequence[Name]]) -> list[_Together]:
    """Clusters that share a unit as one."""
    by_unit: dict[str, _Together] = {}
    for cluster in clusters:
        own = _Together({name.unit for name in cluster}, [name for name in cluster if name.split is not None])
        for other in {id(found): found for unit in own.units if (found := by_unit.get(unit)) is not None}.values():
            own.units |= other.units
            own.named += other.named
        by_unit.update(dict.fromkeys(own.units, own))
    return list({id(together): together for together in by_unit.values()}.values())


# ---------------------------------------------------------------------------------------------------------------------
# Without a pipeline, for --plan and for writers that must know the splits in advance


def with_near_rows(job: Job, storage: Storage) -> Job:
    """A job for which it is decided, in this process, what becomes of near-duplicates."""
    if job.config.choosing.near_duplicates == "keep" or job.choice.near != NO_NEAR_ROWS:
        return job
    with tempfile.TemporaryDirectory(prefix="beam-tfrecord-") as folder:
        looking = first_pass(job, folder)
        plan, gathered = look_here(looking, storage)
        near = decide_near_rows(gathered, plan, job.config, folder, storage)
    return replace(job, choice=replace(job.choice, near=near))


def look_here(job: Job, storage: Storage) -> tuple[DatasetPlan, Gathered]:
    """The looks at all pictures of a job, staged in its output folder."""
    config = job.config
    blocks = [
        block
        for number, source in enumerate(job.sources)
        for block in read_blocks(NumberedPiece(number, Piece(source)), config, storage, job.choice)
    ]
    plan = plan_surveyed(job, merge_surveys(block.survey for block in blocks), storage)
    items: dict[tuple[str, int], list[BlockItem]] = {}
    for block in blocks:
        for shard, packed in plan.place_block(block.packed, config):
            items.setdefault(shard, []).extend(unpack_block(packed))
    threads = threads_for(config, plan)
    with ThreadPoolExecutor(threads, thread_name_prefix="read-ahead") as pool:
        writer = ShardWriter(config, plan, storage, pool, threads, Progress(), only_looks=True)
        written = [gathered_of(writer.write(*shard, own)) for shard, own in sorted(items.items())]
    return plan, in_order(add_gathered(written))
