"""What the shards tell, on its way to the one step that publishes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import apache_beam as beam

from beam_tfrecord.core.elements import ShardInfo
from beam_tfrecord.publishing.gathering import Gathered, add_gathered, gathered_of, waiting_with

BRANCHES = 256  # sums on the way: an engine that holds all values of a key holds this part of the shards


class AddUpGathered(beam.CombineFn):
    """Adds up what shards tell."""

    def create_accumulator(self) -> list[Gathered]:
        return []

    def add_input(self, accumulator: list[Gathered], element: Gathered) -> list[Gathered]:
        return waiting_with(accumulator, element)

    def merge_accumulators(self, accumulators: Iterable[list[Gathered]]) -> list[Gathered]:
        merged: list[Gathered] = []
        for gathered in itertools.chain.from_iterable(accumulators):  # as they arrive
            merged = waiting_with(merged, gathered)
        return merged

    def compact(self, accumulator: list[Gathered]) -> list[Gathered]:
        return [add_gathered(accumulator)]

    def extract_output(self, accumulator: list[Gathered]) -> Gathered:
        return add_gathered(accumulator)


class GatherShards(beam.PTransform):
    """What all shards tell together, added up in a tree: PCollection[ShardInfo] -> PCollection of one Gathered."""

    def expand(self, infos: beam.PCollection[ShardInfo]) -> beam.PCollection[Gathered]:
        return (
            infos
            | "TakeOwn" >> beam.Map(_in_a_branch).with_output_types(tuple[int, Gathered])
            | "AddUpBranches" >> beam.CombinePerKey(AddUpGathered())
            | "TakeBranches" >> beam.Values()
            | "AddUpAll" >> beam.CombineGlobally(AddUpGathered())
        )


def _in_a_branch(info: ShardInfo) -> tuple[int, Gathered]:
    return info.index % BRANCHES, gathered_of(info)
