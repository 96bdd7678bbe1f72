"""Extracting as a pipeline: one element for each file of records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import apache_beam as beam
from apache_beam.metrics import Metrics

from beam_tfrecord.conversion.writing.progress import PROGRESS
from beam_tfrecord.core.cores import available_cores
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.datasets.shard_files import PlaceFault
from beam_tfrecord.datasets.tfds_info import LabelNames
from beam_tfrecord.images.memory import keep_large_buffers
from beam_tfrecord.storage import Storage, scheme_of
from beam_tfrecord.storage.lease import LeaseKey
from beam_tfrecord.tools.extracting.dataset import Extraction, finish
from beam_tfrecord.tools.extracting.layout import Layout
from beam_tfrecord.tools.extracting.paths import ImagePaths
from beam_tfrecord.tools.extracting.records import RecordExtractor
from beam_tfrecord.tools.extracting.shards import (
    FirstLook,
    SeenFirst,
    ShardExtract,
    ShardExtractor,
    ShardToExtract,
    first_look,
    together,
)
from beam_tfrecord.transforms.spreading import SpreadList

NAMESPACE = "beam_tfrecord"
REMOTE_THREADS = 32  # each waits for an answer of the store most of the time


class _ExtractShard(beam.DoFn):
    def __init__(self, layout: Layout | None, label_names: LabelNames, output: str, storage: Storage) -> None:
        self._layout = layout
        self._label_names = label_names
        self._output = output
        self._storage = storage
        self._pool: ThreadPoolExecutor | None = None
        self._threads = 0

    def setup(self) -> None:
        keep_large_buffers()
        self._threads = REMOTE_THREADS if scheme_of(self._output) else available_cores()
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="extract")

    def teardown(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def process(self, shard: ShardToExtract, seen: SeenFirst) -> Iterable[ShardExtract]:
        if self._pool is None:
            raise RuntimeError("setup() was not called")
        extractor = RecordExtractor(self._layout, ImagePaths(seen.clashes), self._label_names, seen.names)
        writer = ShardExtractor(extractor, self._storage, self._output, self._pool, self._threads, PROGRESS)
        found = writer.extract(shard)
        Metrics.counter(NAMESPACE, "records_extracted").inc(found.records)
        Metrics.counter(NAMESPACE, "faults").inc(len(found.faults) + sum(found.unlisted.values()))
        yield found


class ExtractDataset(beam.PTransform):
    """Extracts files of records: PBegin -> PCollection of one
    :class:`~beam_tfrecord.tools.extracting.dataset.Extraction`.

    shards: what :func:`beam_tfrecord.tools.extracting.dataset.shards_to_extract` gave. layout, facts: what is known of
    the records; None when nothing tells. output: an empty folder. label_names, place_faults: what
    :class:`~beam_tfrecord.datasets.shard_files.FoundFiles` tells of records from elsewhere. A fault is a value, never
    an exception; StorageError is raised when a place cannot be used at all, or is another run's by now. lease: of the
    output folder.
    """

    def __init__(
        self,
        shards: Sequence[ShardToExtract],
        layout: Layout | None,
        facts: DatasetFacts | None,
        output: str,
        storage: Storage | None = None,
        label_names: LabelNames | None = None,
        place_faults: Sequence[PlaceFault] = (),
        lease: LeaseKey | None = None,
    ) -> None:
        super().__init__()
        self._label_names = label_names or {}
        self._place_faults = tuple(place_faults)
        self._shards = list(shards)
        self._layout = layout
        self._facts = facts
        self._output = output
        self._storage = storage or Storage()
        self._lease = lease

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection[Extraction]:
        shards, layout, facts, output, storage = self._shards, self._layout, self._facts, self._output, self._storage
        label_names, place_faults = self._label_names, self._place_faults
        lease = self._lease
        spread = root | "SpreadShards" >> SpreadList(shards, ShardToExtract)
        start = root | "Start" >> beam.Impulse()
        looks = spread | "FirstLook" >> beam.Map(
            lambda shard: first_look(shard, layout, label_names, storage)
        ).with_output_types(FirstLook)
        seen = start | "Together" >> beam.Map(
            lambda _, looks: together(looks), beam.pvalue.AsList(looks)
        ).with_output_types(SeenFirst)
        reports = spread | "ExtractShard" >> beam.ParDo(
            _ExtractShard(layout, label_names, output, storage), beam.pvalue.AsSingleton(seen)
        ).with_output_types(ShardExtract)
        return start | "Finish" >> beam.Map(
            lambda _, reports: finish(reports, shards, facts, output, storage, place_faults, lease),
            beam.pvalue.AsList(reports),
        )
