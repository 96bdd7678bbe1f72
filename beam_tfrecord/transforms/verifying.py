"""Verifying as a pipeline: one element for each file of records."""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import apache_beam as beam

from beam_tfrecord.conversion.writing.progress import PROGRESS
from beam_tfrecord.core.cores import available_cores
from beam_tfrecord.datasets.facts import DatasetFacts
from beam_tfrecord.datasets.shard_files import FoundFiles, ShardFile
from beam_tfrecord.datasets.tfds_info import LabelNames
from beam_tfrecord.images.memory import keep_large_buffers
from beam_tfrecord.storage import Storage
from beam_tfrecord.tools.verifying import ShardChecker, ShardReport, Verdict, judge_dataset
from beam_tfrecord.tools.verifying.decoders import AUTO, choose_decoder, make_decoder, stated_max_pixels
from beam_tfrecord.tools.verifying.records import RecordRules
from beam_tfrecord.transforms.counters import RetryCounts, count
from beam_tfrecord.transforms.spreading import SpreadList


@dataclass(frozen=True)
class VerifyOptions:
    """How to verify.

    decoder: ``auto``, ``tensorflow`` or ``pillow``. limit: faults of each code that are named for a file; 0 for all.
    threads: that decode the images of one file; None for one per core. results: uri of a file that the verdict is
    written to, as JSON; '' for none.
    """

    decoder: str = AUTO
    limit: int = 1000
    threads: int | None = None
    results: str = ""


class _VerifyShard(beam.DoFn):
    def __init__(
        self,
        facts: DatasetFacts | None,
        label_names: LabelNames,
        max_pixels: int,
        options: VerifyOptions,
        storage: Storage,
    ) -> None:
        self._facts = facts
        self._label_names = label_names
        self._max_pixels = max_pixels
        self._options = options
        self._storage = storage
        self._retries = RetryCounts(storage)
        self._pool: ThreadPoolExecutor | None = None
        self._checker: ShardChecker | None = None

    def setup(self) -> None:
        keep_large_buffers()
        threads = self._options.threads or available_cores()
        decoder = choose_decoder(self._options.decoder)
        rules = RecordRules(self._facts, make_decoder(decoder, self._max_pixels), self._label_names)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="verify")
        self._checker = ShardChecker(rules, self._storage, self._pool, threads, self._options.limit, decoder, PROGRESS)

    def teardown(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def process(self, shard: ShardFile) -> Iterable[ShardReport]:
        if self._checker is None:
            raise RuntimeError("setup() was not called")
        report = self._checker.check(shard)
        counts = {"records_verified": report.records, "images_verified": report.images, "faults": report.num_faults}
        for name, amount in counts.items():
            count(name, amount)
        self._retries.tell()
        yield report


class _Judge(beam.DoFn):
    def __init__(self, found: FoundFiles, options: VerifyOptions, storage: Storage) -> None:
        self._found = found
        self._options = options
        self._storage = storage

    def process(self, start: bytes, reports: list[ShardReport]) -> Iterable[Verdict]:
        verdict = judge_dataset(reports, self._found, self._options.limit, self._storage)
        if self._options.results:
            self._storage.write_bytes(self._options.results, json.dumps(verdict.to_json()).encode())
        yield verdict


class VerifyDataset(beam.PTransform):
    """Checks files of records: PBegin -> PCollection of one :class:`~beam_tfrecord.tools.verifying.Verdict`.

    found: what :func:`beam_tfrecord.datasets.shard_files.find_files` found at a place. A fault is a value, never an
    exception; StorageError is raised when a place cannot be used at all.
    """

    def __init__(self, found: FoundFiles, options: VerifyOptions | None = None, storage: Storage | None = None) -> None:
        super().__init__()
        self._found = found
        self._options = options or VerifyOptions()
        self._storage = storage or Storage()

    def expand(self, root: beam.pvalue.PBegin) -> beam.PCollection[Verdict]:
        found, options, storage = self._found, self._options, self._storage
        # What a record is compared with; the rest of conversion.json may be large, and is needed once only.
        facts = replace(found.facts, conversion={}, splits={}) if found.facts is not None else None
        max_pixels = stated_max_pixels(found.facts.conversion if found.facts is not None else {})
        reports = (
            root
            | "SpreadShards" >> SpreadList(found.files, ShardFile)
            | "VerifyShard"
            >> beam.ParDo(_VerifyShard(facts, found.label_names, max_pixels, options, storage)).with_output_types(
                ShardReport
            )
        )
        return (
            root
            | "Start" >> beam.Impulse()
            | "Judge"
            >> beam.ParDo(_Judge(found, options, storage), beam.pvalue.AsList(reports)).with_output_types(Verdict)
        )
