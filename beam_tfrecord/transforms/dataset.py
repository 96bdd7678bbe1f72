"""The whole job: from manifests to a published dataset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apache_beam as beam
from apache_beam.transforms.display import DisplayDataItem

from beam_tfrecord.conversion.job import Job
from beam_tfrecord.conversion.planning.dataset_plan import DatasetPlan
from beam_tfrecord.core.elements import ShardInfo
from beam_tfrecord.publishing.gathering import Gathered
from beam_tfrecord.publishing.publish import publish_dataset
from beam_tfrecord.publishing.summary import Summary
from beam_tfrecord.storage import Storage, public_uri
from beam_tfrecord.storage.lease import owner_of
from beam_tfrecord.transforms.beam_sink import ConvertWithBeamSink
from beam_tfrecord.transforms.counters import RetryCounts
from beam_tfrecord.transforms.gathering import GatherShards
from beam_tfrecord.transforms.looking import FindNearRows
from beam_tfrecord.transforms.planning import PlaceEntries, PlanDataset
from beam_tfrecord.transforms.reading import ReadBlocks
from beam_tfrecord.transforms.shards import WriteShards
from beam_tfrecord.transforms.straddling import FindStraddling


class _Publish(beam.DoFn):
    def __init__(self, job: Job, storage: Storage) -> None:
        self._job = job
        self._storage = storage
        self._retries = RetryCounts(storage)

    def process(self, gathered: Gathered, plan: DatasetPlan) -> Iterable[Summary]:
        yield publish_dataset(gathered, plan, self._job, self._storage)
        self._retries.tell()


class PublishDataset(beam.PTransform):
    """Final names and metadata once all shards are written: PCollection[ShardInfo] -> PCollection of one Summary."""

    def __init__(self, job: Job, plan: beam.PCollection[DatasetPlan], storage: Storage) -> None:
        super().__init__()
        self._job = job
        self._plan = plan
        self._storage = storage

    def expand(self, infos: beam.PCollection[ShardInfo]) -> beam.PCollection[Summary]:
        return (
            infos
            | "GatherShards" >> GatherShards()
            | "Publish" >> beam.ParDo(_Publish(self._job, self._storage), plan=beam.pvalue.AsSingleton(self._plan))
        )


class ConvertDataset(beam.PTransform):
    """A prepared job: PBegin -> PCollection of one :class:`~beam_tfrecord.publishing.summary.Summary`.

    Make the job with :func:`beam_tfrecord.prepare`, which looks at the inputs and the output folder. is_alone: the job
    runs in this process, with nothing beside it: helper processes may write shards too.
    """

    def __init__(self, job: Job, storage: Storage | None = None, *, is_alone: bool = False) -> None:
        super().__init__()
        self._is_alone = is_alone
        self._job = job
        self._storage = storage or Storage.for_run(job.config.run)

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection[Summary]:
        job, storage = self._job, self._storage
        if job.config.output.writer == "beam":
            return root | "ConvertWithBeamSink" >> ConvertWithBeamSink(job, storage)
        near = None
        if job.config.choosing.near_duplicates != "keep":
            near = root | "FindNearRows" >> FindNearRows(job, storage)
        blocks = root | "ReadManifests" >> ReadBlocks(job.config, job.sources, storage, job.choice, near)
        plan = blocks | "PlanDataset" >> PlanDataset(job.config, job.sources, job.fixed_labels, storage, job.choice)
        straddling = blocks | "FindStraddling" >> FindStraddling(job.config, plan)
        return (
            blocks
            | "PlaceEntries" >> PlaceEntries(job.config, plan)
            | "WriteShards"
            >> WriteShards(job.config, plan, straddling, storage, owner_of(job.lease), is_alone=self._is_alone)
            | "PublishDataset" >> PublishDataset(job, plan, storage)
        )

    def display_data(self) -> dict[str, Any]:
        config = self._job.config
        return {
            "inputs": DisplayDataItem(
                ", ".join(public_uri(source.uri) for source in self._job.sources), label="Inputs"
            ),
            "formats": DisplayDataItem(
                ", ".join(sorted({source.format for source in self._job.sources})), label="Formats of the inputs"
            ),
            "output": DisplayDataItem(public_uri(config.output.output), label="Output"),
            "writer": DisplayDataItem(config.output.writer, label="Writer"),
            "keys": DisplayDataItem(config.features.keys or "auto", label="Feature keys"),
            "image_format": DisplayDataItem(config.images.image_format, label="Image format"),
            "compression": DisplayDataItem(config.shards.compression, label="Compression"),
        }
