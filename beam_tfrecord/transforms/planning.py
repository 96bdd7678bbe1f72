"""From blocks to the plan, and from the plan to the shard of each entry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from beam_tfrecord.config import ConvertConfig
from beam_tfrecord.manifests.base import Source
from beam_tfrecord.planning.blocks import BlockItem, pack_block, unpack_block
from beam_tfrecord.planning.dataset_plan import DatasetPlan, plan_dataset
from beam_tfrecord.planning.mask_depth import deep_kinds
from beam_tfrecord.planning.survey import Survey, merge_surveys
from beam_tfrecord.storage import Storage
from beam_tfrecord.transforms.reading import Block

ShardKey = tuple[str, int]
MERGE_EVERY = 64  # surveys that an accumulator holds before it adds them up
PENDING_ITEMS = 512  # items of one shard that make a block
PENDING_TOTAL = 50_000  # items of all shards that are held before blocks are given out


class CombineSurveys(beam.CombineFn):
    """Adds surveys up."""

    def create_accumulator(self) -> list[Survey]:
        return []

    def add_input(self, accumulator: list[Survey], element: Survey) -> list[Survey]:
        accumulator.append(element)
        return self.compact(accumulator) if len(accumulator) >= MERGE_EVERY else accumulator

    def merge_accumulators(self, accumulators: Iterable[list[Survey]]) -> list[Survey]:
        return [survey for accumulator in accumulators for survey in accumulator]

    def compact(self, accumulator: list[Survey]) -> list[Survey]:
        return [merge_surveys(accumulator)]

    def extract_output(self, accumulator: list[Survey]) -> Survey:
        return merge_surveys(accumulator)


class PlanDataset(beam.PTransform):
    """The plan of the dataset: PCollection[Block] -> PCollection of one DatasetPlan."""

    def __init__(
        self,
        config: ConvertConfig,
        sources: Sequence[Source],
        fixed_labels: tuple[str, ...] | None,
        storage: Storage,
    ) -> None:
        super().__init__()
        self._config = config
        self._sources = tuple(sources)
        self._fixed_labels = fixed_labels
        self._storage = storage

    def expand(self, blocks: beam.PCollection[Block]) -> beam.PCollection[DatasetPlan]:
        config, sources, fixed_labels, storage = self._config, self._sources, self._fixed_labels, self._storage

        def plan(survey: Survey) -> DatasetPlan:
            return plan_dataset(
                survey, sources, fixed_labels, config, storage.sizes, lambda masks: deep_kinds(masks, storage)
            )

        return (
            blocks
            | "SurveyOfBlock" >> beam.Map(lambda block: block.survey).with_output_types(Survey)
            | "AddUpSurveys" >> beam.CombineGlobally(CombineSurveys())
            | "Plan" >> beam.Map(plan).with_output_types(DatasetPlan)
        )


class _PlaceEntries(beam.DoFn):
    """Regroups the items of blocks by shard. Holds pointers only, and gives them out when there are many."""

    def __init__(self, config: ConvertConfig) -> None:
        self._config = config

    def start_bundle(self) -> None:
        self._pending: dict[ShardKey, list[BlockItem]] = {}
        self._total = 0

    def process(self, block: Block, plan: DatasetPlan) -> Iterable[tuple[ShardKey, bytes]]:
        for item in unpack_block(block.packed):
            key = plan.place(item, self._config)
            items = self._pending.setdefault(key, [])
            items.append(item)
            self._total += 1
            if len(items) >= PENDING_ITEMS:
                yield key, self._take(key)
        if self._total >= PENDING_TOTAL:
            yield from self._take_all()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for pair in self._take_all():
            yield WindowedValue(pair, GlobalWindow().max_timestamp(), [GlobalWindow()])

    def _take_all(self) -> Iterator[tuple[ShardKey, bytes]]:
        for key in list(self._pending):
            yield key, self._take(key)

    def _take(self, key: ShardKey) -> bytes:
        items = self._pending.pop(key)
        self._total -= len(items)
        return pack_block(items)


class PlaceEntries(beam.PTransform):
    """Blocks regrouped by shard: PCollection[Block] -> PCollection[((split, shard), block)]."""

    def __init__(self, config: ConvertConfig, plan: beam.PCollection[DatasetPlan]) -> None:
        super().__init__()
        self._config = config
        self._plan = plan

    def expand(self, blocks: beam.PCollection[Block]) -> beam.PCollection[tuple[ShardKey, bytes]]:
        return blocks | "PlaceEntries" >> beam.ParDo(
            _PlaceEntries(self._config), plan=beam.pvalue.AsSingleton(self._plan)
        ).with_output_types(tuple[tuple[str, int], bytes])
