"""What the shards tell, on its way to the one step that publishes."""

from __future__ import annotations

from collections.abc import Iterable

import apache_beam as beam

from beam_tfrecord.core.elements import ShardInfo
from beam_tfrecord.publishing.gathering import Gathered, add_up, gathered_of

BRANCHES = 256  # sums on the way: an engine that holds all values of a key holds this part of the shards


class _TakeOwn(beam.DoFn):
    def process(self, info: ShardInfo) -> Iterable[tuple[int, Gathered]]:
        yield info.index % BRANCHES, gathered_of(info)


class _AddUpBranch(beam.DoFn):
    def process(self, branch: tuple[int, Iterable[Gathered]]) -> Iterable[tuple[int, Gathered]]:
        yield 0, add_up(branch[1])


class _AddUpAll(beam.DoFn):
    def process(self, branches: tuple[int, Iterable[Gathered]]) -> Iterable[Gathered]:
        yield add_up(branches[1])


class GatherShards(beam.PTransform):
    """What all shards tell together, added up in a tree: PCollection[ShardInfo] -> PCollection of one Gathered.

    Each job has a shard, be it that of its rejects.
    """

    def expand(self, infos: beam.PCollection[ShardInfo]) -> beam.PCollection[Gathered]:
        return (
            infos
            | "TakeOwn" >> beam.ParDo(_TakeOwn()).with_output_types(tuple[int, Gathered])
            | "GroupByBranch" >> beam.GroupByKey()
            | "AddUpBranch" >> beam.ParDo(_AddUpBranch()).with_output_types(tuple[int, Gathered])
            | "GroupBranches" >> beam.GroupByKey()
            | "AddUpAll" >> beam.ParDo(_AddUpAll()).with_output_types(Gathered)
        )
