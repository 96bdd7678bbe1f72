"""TFRecord files: framing and checksums, writing, reading, index files and shard names."""

from beam_tfrecord.tfrecord.batches import batches
from beam_tfrecord.tfrecord.compression import SUFFIXES
from beam_tfrecord.tfrecord.framing import FRAME_SIZE, Record, RecordFault, masked_crc32c
from beam_tfrecord.tfrecord.index import INDEX_SUFFIX, read_index, write_index
from beam_tfrecord.tfrecord.names import ShardName, array_record_name, parse_shard_name, shard_name
from beam_tfrecord.tfrecord.reader import detect_compression, fault_of_start, read_record, read_records, scan_records
from beam_tfrecord.tfrecord.writer import RecordWriter

__all__ = [
    "FRAME_SIZE",
    "INDEX_SUFFIX",
    "SUFFIXES",
    "Record",
    "RecordFault",
    "RecordWriter",
    "ShardName",
    "array_record_name",
    "batches",
    "detect_compression",
    "fault_of_start",
    "masked_crc32c",
    "parse_shard_name",
    "read_index",
    "read_record",
    "read_records",
    "scan_records",
    "shard_name",
    "write_index",
]
