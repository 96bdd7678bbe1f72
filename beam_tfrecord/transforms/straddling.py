"""Ids in several splits of very many rows, found before the shards are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apache_beam as beam

from beam_tfrecord.conversion.planning.block_reading import Block
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan
from beam_tfrecord.conversion.planning.straddling import (
    HashesOfSplit,
    Straddling,
    hashes_by_heap,
    straddling_in,
)
from beam_tfrecord.options.config import ConvertConfig


class _TakeHashes(beam.DoFn):
    def __init__(self, config: ConvertConfig) -> None:
        self._config = config

    def process(self, block: Block, plan: DatasetPlan) -> Iterator[tuple[int, HashesOfSplit]]:
        yield from hashes_by_heap(block.packed, plan, self._config)


class _FindInSeveral(beam.DoFn):
    def process(self, heap: tuple[int, Iterable[HashesOfSplit]]) -> Iterator[Straddling]:
        found = straddling_in(heap[1])
        if found.first:
            yield found


class FindStraddling(beam.PTransform):
    """Ids in several splits, where the plan holds not all of them: PCollection[Block] -> PCollection[Straddling], to be
    joined where they are used; nothing where the plan has compared all ids.
    """

    def __init__(self, config: ConvertConfig, plan: beam.PCollection[DatasetPlan]) -> None:
        super().__init__()
        self._config = config
        self._plan = plan

    def expand(self, blocks: beam.PCollection[Block]) -> beam.PCollection[Straddling]:
        return (
            blocks
            | "TakeHashes"
            >> beam.ParDo(_TakeHashes(self._config), plan=beam.pvalue.AsSingleton(self._plan)).with_output_types(
                tuple[int, tuple[str, bytes]]
            )
            | "GroupByHash" >> beam.GroupByKey()
            | "FindInSeveral" >> beam.ParDo(_FindInSeveral()).with_output_types(Straddling)
        )
