"""``beam_tfrecord.load``: a finished dataset as a tf.data.Dataset."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from beam_tfrecord.core.cores import available_cores
from beam_tfrecord.errors import DatasetError
from beam_tfrecord.reading.element_plan import normalised, plan_elements
from beam_tfrecord.reading.elements import element_function
from beam_tfrecord.reading.finished import FinishedDataset, open_dataset
from beam_tfrecord.reading.options import LoadOptions
from beam_tfrecord.reading.selection import ShardPart, select_parts
from beam_tfrecord.reading.tensorflow_import import import_tensorflow
from beam_tfrecord.storage import scheme_of

if TYPE_CHECKING:
    import tensorflow as tf

LOCAL_BUFFER, REMOTE_BUFFER = 1 << 20, 8 << 20  # bytes read at a time
PARALLEL_FILES = 16  # between which shuffled records are taken, some from each in turn
RECORDS_IN_TURN = 16
SHUFFLED_BYTES = 256 << 20
SHUFFLED_RECORDS = 100, 20_000
PREFETCHED = BATCHES_AT_ONCE = 2  # few, as a batch of large pictures takes hundreds of megabytes
_COMPRESSION_TYPES = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}


def load(directory: str | os.PathLike[str], split: str | None = "train", **options: Any) -> tf.data.Dataset:
    """A finished dataset as a ``tf.data.Dataset`` for training, which knows its length.

    directory: a path or uri that TensorFlow can read as well (``gs://`` is one). split: ``train``, ``train[:80%]``,
    ``train[100:200]``, ``train+validation``, or ``all`` (also None); only the files that hold such records are opened.
    options: see :class:`~beam_tfrecord.reading.options.LoadOptions`.

    An element is a dict by feature name: pictures ``[height, width, channels]`` in the dtype in which they are stored,
    single values ``[]``, lists ``[n]``, boxes ``[n, 4]`` (ymin, xmin, ymax, xmax from 0 to 1); int64, float32 or
    string. Of a SequenceExample, what belongs to its steps has one dimension more in front. With ``batch_size`` that
    one comes first, and what differs in shape from record to record becomes a RaggedTensor.

    Raises ConfigError for wrong options, an unknown split (with the nearest), and when TensorFlow is not installed (an
    ImportError as well); DatasetError when the folder holds no finished dataset. A damaged file raises TensorFlow's
    DataLossError when it is read.
    """
    config = LoadOptions.from_keywords(options)
    tensorflow = import_tensorflow()
    dataset = open_dataset(directory)
    parts = select_parts(dataset.facts.splits, split, config.shard)
    _check_readable(tensorflow, dataset, parts)
    plan = plan_elements(dataset.facts, config, dataset.image_size())
    if config.normalize:
        plan = normalised(plan, dataset.channels(), config)
    records = _serialized(tensorflow, dataset, parts, config)
    calls = available_cores()
    if plan.is_plain and config.batch_size is not None:
        # Parsing a batch costs much less than parsing its records one by one.
        batches = records.batch(config.batch_size, drop_remainder=config.drop_remainder)
        elements = batches.map(element_function(plan, is_batch=True), num_parallel_calls=calls)
    else:
        elements = records.map(element_function(plan), num_parallel_calls=calls)
        elements = _batched(tensorflow, elements, config)
    prefetched = PREFETCHED if config.prefetch is None else config.prefetch
    if prefetched:
        elements = elements.prefetch(prefetched)
    return elements.with_options(_settings(tensorflow, config, len(parts)))


def _settings(tf: Any, config: LoadOptions, num_files: int) -> Any:
    """The tf.data.Options of the dataset, which is read from a number of files.

    Nothing is left to autotune: decoding keeps any number of cores busy. Its thread sleeps for twice as long each time,
    up to a minute, and an iterator that is no longer wanted waits for it to wake, after every epoch.
    """
    settings = tf.data.Options()
    settings.deterministic = config.is_deterministic
    settings.autotune.enabled = False
    policy = sharding_policy(config, num_files)
    settings.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy[policy]
    return settings


def sharding_policy(config: LoadOptions, num_files: int) -> str:
    """How a distribution strategy of several workers divides the dataset: a name of tf.data's AutoShardPolicy.

    A share that was asked for is not divided again (``OFF``). A single file cannot be divided by files: its elements
    are counted off (``DATA``), which is right only where all workers see them in one order. ``AUTO`` divides by files,
    and ends with an error where there are fewer than workers.
    """
    if config.shard[1] > 1:
        return "OFF"
    is_one_order = config.is_deterministic and (not config.shuffle or config.seed is not None)
    return "DATA" if num_files == 1 and is_one_order else "AUTO"


def _serialized(tf: Any, dataset: FinishedDataset, parts: Sequence[ShardPart], config: LoadOptions) -> Any:
    """The selected records as strings, shuffled and repeated. Shuffled before they are decoded, they take less room."""
    compression = _COMPRESSION_TYPES[dataset.facts.compression]
    files = tf.data.Dataset.from_tensor_slices(
        (
            tf.constant([dataset.uri(part.shard) for part in parts], tf.string),
            tf.constant([part.start for part in parts], tf.int64),
            tf.constant([len(part) for part in parts], tf.int64),
        )
    )

    buffer = REMOTE_BUFFER if scheme_of(dataset.folder) else LOCAL_BUFFER

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def read(file: Any, start: Any, count: Any) -> Any:
        records = tf.data.TFRecordDataset(file, compression, buffer)
        return records.skip(start).take(count)

    num_records = sum(map(len, parts))
    counted = tf.data.experimental.assert_cardinality(num_records)
    if config.shuffle and num_records > 1:
        at_once = min(len(parts), PARALLEL_FILES)
        records = files.shuffle(len(parts), config.seed, reshuffle_each_iteration=True).interleave(
            read, at_once, RECORDS_IN_TURN, num_parallel_calls=at_once
        )
        buffered = shuffle_buffer(parts, config.shuffle)
        records = records.apply(counted).shuffle(buffered, config.seed, reshuffle_each_iteration=True)
    else:
        records = files.flat_map(read).apply(counted)
    if config.repeat is True:
        return records.repeat()
    return records.repeat(config.repeat) if config.repeat else records


def shuffle_buffer(parts: Sequence[ShardPart], asked: bool | int) -> int:
    """How many records are shuffled at a time: what is asked for, or what 256 MiB hold, from 100 to 20,000.

    The records lie in random order already, so that a buffer need not hold all of them.
    """
    num_records = sum(map(len, parts))
    if asked is not True:
        return min(int(asked), num_records)
    stated = sum(part.shard.records for part in parts)
    record_bytes = max(1, sum(part.shard.payload_bytes for part in parts) // max(1, stated))
    least, most = SHUFFLED_RECORDS
    return min(num_records, max(least, min(most, SHUFFLED_BYTES // record_bytes)))


def _batched(tf: Any, elements: Any, config: LoadOptions) -> Any:
    if config.batch_size is None:
        return elements
    specs = tf.nest.flatten(elements.element_spec)
    if all(isinstance(spec, tf.TensorSpec) and spec.shape.is_fully_defined() for spec in specs):
        at_once = min(BATCHES_AT_ONCE, available_cores())
        return elements.batch(config.batch_size, drop_remainder=config.drop_remainder, num_parallel_calls=at_once)
    return elements.ragged_batch(config.batch_size, drop_remainder=config.drop_remainder, row_splits_dtype=tf.int64)


def _check_readable(tf: Any, dataset: FinishedDataset, parts: Sequence[ShardPart]) -> None:
    """Raise DatasetError when TensorFlow cannot find the first file, which the metadata promised."""
    if not parts:
        return
    uri = dataset.uri(parts[0].shard)
    try:
        is_there = tf.io.gfile.exists(uri)
    except tf.errors.UnimplementedError:
        raise DatasetError(
            f"TensorFlow cannot read {uri}: install tensorflow-io, which adds file systems to it, or use "
            "beam_tfrecord.read"
        ) from None
    except tf.errors.OpError as error:
        raise DatasetError(f"TensorFlow cannot read {uri}: {error.message}") from None
    if not is_there:
        raise DatasetError(f"{uri} is not there, although conversion.json names it")
