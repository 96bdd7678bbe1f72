"""From blocks to the plan, and from the plan to the shard of each entry."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import apache_beam as beam

from beam_tfrecord.conversion.choosing.choice import NO_CHOICE, Choice
from beam_tfrecord.conversion.planning.block_reading import Block
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan, plan_dataset
from beam_tfrecord.conversion.planning.mask_depth import deep_kinds
from beam_tfrecord.conversion.planning.survey import SKETCH_LIMIT, Survey, merge_surveys
from beam_tfrecord.manifests.base import Source
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage
from beam_tfrecord.transforms.counters import RetryCounts

ShardKey = tuple[str, int]
MERGE_EVERY = 64  # surveys that an accumulator holds before it adds them up


class CombineSurveys(beam.CombineFn):
    """Adds surveys up."""

    def create_accumulator(self) -> list[Survey]:
        return []

    def add_input(self, accumulator: list[Survey], element: Survey) -> list[Survey]:
        accumulator.append(element)
        if len(accumulator) >= MERGE_EVERY or sum(part.num_hashes for part in accumulator[1:]) > SKETCH_LIMIT:
            return self.compact(accumulator)
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[list[Survey]]) -> list[Survey]:
        merged: list[Survey] = []
        for survey in itertools.chain.from_iterable(accumulators):  # as they arrive: together they may be gigabytes
            merged = self.add_input(merged, survey)
        return merged

    def compact(self, accumulator: list[Survey]) -> list[Survey]:
        return [merge_surveys(accumulator)]

    def extract_output(self, accumulator: list[Survey]) -> Survey:
        return merge_surveys(accumulator)


class _TakeSurvey(beam.DoFn):
    def process(self, block: Block) -> Iterable[tuple[int, Survey]]:
        yield 0, block.survey


class _Plan(beam.DoFn):
    def __init__(
        self,
        config: ConvertConfig,
        sources: tuple[Source, ...],
        fixed_labels: tuple[str, ...] | None,
        storage: Storage,
        choice: Choice,
    ) -> None:
        self._choice = choice
        self._config = config
        self._sources = sources
        self._fixed_labels = fixed_labels
        self._storage = storage
        self._retries = RetryCounts(storage)

    def process(self, element: tuple[int, Survey]) -> Iterable[DatasetPlan]:
        storage = self._storage
        yield plan_dataset(
            element[1],
            self._sources,
            self._fixed_labels,
            self._config,
            storage.sizes_as_named,
            lambda masks: deep_kinds(masks, storage),
            storage.walk,
            self._choice,
        )
        self._retries.tell()


class PlanDataset(beam.PTransform):
    """The plan of the dataset: PCollection[Block] -> PCollection of one DatasetPlan."""

    def __init__(
        self,
        config: ConvertConfig,
        sources: Sequence[Source],
        fixed_labels: tuple[str, ...] | None,
        storage: Storage,
        choice: Choice = NO_CHOICE,
    ) -> None:
        super().__init__()
        self._choice = choice
        self._config = config
        self._sources = tuple(sources)
        self._fixed_labels = fixed_labels
        self._storage = storage

    def expand(self, blocks: beam.PCollection[Block]) -> beam.PCollection[DatasetPlan]:
        plan = _Plan(self._config, self._sources, self._fixed_labels, self._storage, self._choice)
        return (
            blocks
            | "TakeSurveys" >> beam.ParDo(_TakeSurvey()).with_output_types(tuple[int, Survey])
            | "AddUpSurveys" >> beam.CombinePerKey(CombineSurveys())
            | "Plan" >> beam.ParDo(plan).with_output_types(DatasetPlan)
        )


class _PlaceEntries(beam.DoFn):
    """Regroups the items of blocks by shard.

    Nothing is held from block to block: what a step gives out when its bundle ends is lost on some engines.
    """

    def __init__(self, config: ConvertConfig) -> None:
        self._config = config

    def process(self, block: Block, plan: DatasetPlan) -> Iterable[tuple[ShardKey, bytes]]:
        yield from plan.place_block(block.packed, self._config)


class PlaceEntries(beam.PTransform):
    """Blocks regrouped by shard: PCollection[Block] -> PCollection[((split, shard), block)]."""

    def __init__(self, config: ConvertConfig, plan: beam.PCollection[DatasetPlan]) -> None:
        super().__init__()
        self._config = config
        self._plan = plan

    def expand(self, blocks: beam.PCollection[Block]) -> beam.PCollection[tuple[ShardKey, bytes]]:
        return blocks | "CutByShard" >> beam.ParDo(
            _PlaceEntries(self._config), plan=beam.pvalue.AsSingleton(self._plan)
        ).with_output_types(tuple[tuple[str, int], bytes])
