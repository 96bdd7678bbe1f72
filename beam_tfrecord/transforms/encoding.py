"""Entries to serialized records, for pipelines of one's own."""

from __future__ import annotations

from collections.abc import Iterator

import apache_beam as beam

from beam_tfrecord.annotations.base import Schema
from beam_tfrecord.conversion.writing.records import STAGE, RecordEncoder
from beam_tfrecord.core.elements import Entry, Finding, RejectedRow
from beam_tfrecord.errors import ElementError
from beam_tfrecord.images.memory import keep_large_buffers
from beam_tfrecord.options.config import ConvertConfig
from beam_tfrecord.storage import Storage
from beam_tfrecord.transforms.counters import RetryCounts

RECORDS, REJECTS = "records", "rejects"


def encode_entry(entry: Entry | RejectedRow, encoder: RecordEncoder) -> bytes | Finding:
    """The serialized record of an entry, or the reject that says why there is none."""
    if isinstance(entry, RejectedRow):
        return entry.finding
    try:
        return encoder.encode(entry).data
    except ElementError as error:
        return Finding(entry.origin, entry.uri or "", STAGE, error.code, error.message)


class _EncodeEntries(beam.DoFn):
    def __init__(self, schema: Schema, config: ConvertConfig, storage: Storage) -> None:
        self._encoder = RecordEncoder(schema, config, storage.read, storage.find_other)
        self._retries = RetryCounts(storage)

    def setup(self) -> None:
        keep_large_buffers()

    def process(self, entry: Entry | RejectedRow) -> Iterator[bytes | beam.pvalue.TaggedOutput]:
        made = encode_entry(entry, self._encoder)
        yield beam.pvalue.TaggedOutput(REJECTS, made) if isinstance(made, Finding) else made
        self._retries.tell()


class EncodeExamples(beam.PTransform):
    """PCollection[Entry | RejectedRow] -> ``.records``: PCollection[bytes], and ``.rejects``: PCollection[Finding].

    schema: decides the keys and the vocabulary; see :func:`beam_tfrecord.plan_schema`. Each entry becomes a serialized
    tf.train.Example (or SequenceExample) ready for ``beam.io.WriteToTFRecord``, or a reject that says why not.
    """

    def __init__(self, schema: Schema, config: ConvertConfig, storage: Storage | None = None) -> None:
        super().__init__()
        self._schema = schema
        self._config = config
        self._storage = storage or Storage.for_run(config.run)

    def expand(self, entries: beam.PCollection[Entry | RejectedRow]) -> beam.pvalue.DoOutputsTuple:
        return entries | "Encode" >> beam.ParDo(_EncodeEntries(self._schema, self._config, self._storage)).with_outputs(
            REJECTS, main=RECORDS
        )
