"""Pictures looked at without being stored: the first pass of ``--near_duplicates``, and what ``inspect`` tells."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import apache_beam as beam

from beam_tfrecord.conversion.choosing.near_rows import NearRows
from beam_tfrecord.conversion.job import Job
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.publishing.gathering import Gathered, in_order
from beam_tfrecord.publishing.near_rows import decide_near_rows, first_pass, pass_folder
from beam_tfrecord.storage import Storage
from beam_tfrecord.storage.lease import owner_of
from beam_tfrecord.tools.inspecting import Inspection, inspect_looks
from beam_tfrecord.transforms.gathering import GatherShards
from beam_tfrecord.transforms.planning import PlaceEntries, PlanDataset
from beam_tfrecord.transforms.reading import ReadBlocks
from beam_tfrecord.transforms.shards import WriteShards
from beam_tfrecord.transforms.straddling import FindStraddling


@dataclass(frozen=True)
class Looked:
    """What was looked at: the plan of a job, and what its shards tell. The looks lie in its staging place."""

    plan: DatasetPlan
    gathered: Gathered


class _Together(beam.DoFn):
    def process(self, gathered: Gathered, plan: DatasetPlan) -> Iterable[Looked]:
        yield Looked(plan, in_order(gathered))


class LookAtPictures(beam.PTransform):
    """The looks at all pictures of a job, staged in its output folder: PBegin -> PCollection of one :class:`Looked`.

    is_counted: whether counters and progress are told of it.
    """

    def __init__(self, job: Job, storage: Storage, *, is_counted: bool) -> None:
        super().__init__()
        self._job = job
        self._storage = storage
        self._is_counted = is_counted

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection[Looked]:
        job, storage = self._job, self._storage
        blocks = root | "ReadManifests" >> ReadBlocks(job.config, job.sources, storage, job.choice)
        plan = blocks | "PlanDataset" >> PlanDataset(job.config, job.sources, job.fixed_labels, storage, job.choice)
        straddling = blocks | "FindStraddling" >> FindStraddling(job.config, plan)
        look = WriteShards(
            job.config, plan, straddling, storage, owner_of(job.lease), only_looks=True, is_counted=self._is_counted
        )
        return (
            blocks
            | "PlaceEntries" >> PlaceEntries(job.config, plan)
            | "LookAtShards" >> look
            | "GatherShards" >> GatherShards()
            | "Together" >> beam.ParDo(_Together(), plan=beam.pvalue.AsSingleton(plan)).with_output_types(Looked)
        )


class _Decide(beam.DoFn):
    def __init__(self, config: ConvertConfig, folder: str, storage: Storage) -> None:
        self._config = config
        self._folder = folder
        self._storage = storage

    def process(self, looked: Looked) -> Iterable[NearRows]:
        yield decide_near_rows(looked.gathered, looked.plan, self._config, self._folder, self._storage)


class FindNearRows(beam.PTransform):
    """What ``--near_duplicates`` makes of the rows of a job: PBegin -> PCollection of one NearRows.

    Every picture is looked at.
    """

    def __init__(self, job: Job, storage: Storage) -> None:
        super().__init__()
        self._job = job
        self._storage = storage

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection[NearRows]:
        folder = pass_folder(self._job.config.output.output)
        look = LookAtPictures(first_pass(self._job, folder), self._storage, is_counted=False)
        decide = _Decide(self._job.config, folder, self._storage)
        return root | "LookAtPictures" >> look | "Decide" >> beam.ParDo(decide).with_output_types(NearRows)


class _Inspect(beam.DoFn):
    def __init__(self, folder: str, results: str, storage: Storage, *, is_dataset: bool) -> None:
        self._folder = folder
        self._results = results
        self._storage = storage
        self._is_dataset = is_dataset

    def process(self, looked: Looked) -> Iterable[Inspection]:
        inspection = inspect_looks(looked.gathered, self._folder, self._storage, is_dataset=self._is_dataset)
        self._storage.write_bytes(self._results, json.dumps(inspection.to_json()).encode())
        yield inspection


class InspectPictures(beam.PTransform):
    """What stands out in the pictures of a job: PBegin -> PCollection of one
    :class:`~beam_tfrecord.tools.inspecting.Inspection`.

    Looks are staged in the output folder of the job. results: uri of a file that the inspection is written to, as JSON.
    is_dataset: whether the source is a finished dataset.
    """

    def __init__(self, job: Job, results: str, storage: Storage, *, is_dataset: bool) -> None:
        super().__init__()
        self._job = job
        self._results = results
        self._storage = storage
        self._is_dataset = is_dataset

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection[Inspection]:
        folder = self._job.config.output.output
        inspect = _Inspect(folder, self._results, self._storage, is_dataset=self._is_dataset)
        look = LookAtPictures(self._job, self._storage, is_counted=True)
        return root | "LookAtPictures" >> look | "Inspect" >> beam.ParDo(inspect).with_output_types(Inspection)
