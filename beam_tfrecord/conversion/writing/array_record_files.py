"""ArrayRecord twins of shards: the same records in the format of which ``tfds.data_source`` needs files.

The format is that of https://github.com/google/array_record. TensorFlow Datasets looks for such files beside the
shards, under the same name with another ending; it writes them with one record in a group, for random access.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable

from beam_tfrecord.errors import ConfigError, StorageError
from beam_tfrecord.storage import Storage
from beam_tfrecord.tfrecord import read_records

_OPTIONS = "group_size:1"
_CHUNK = 1 << 20


def check_array_record() -> None:
    """Raise ConfigError when the package that writes ArrayRecord files is not installed."""
    if importlib.util.find_spec("array_record") is None:
        raise ConfigError(
            "--array_record needs the package array_record: pip install 'beam-tfrecord[array_record]', here and on the "
            "workers"
        )


def write_array_record(records: Iterable[bytes], path: str) -> None:
    """Write an ArrayRecord file on the local disk. Same records, same bytes. Raises StorageError."""
    from array_record.python.array_record_module import ArrayRecordWriter

    try:
        writer = ArrayRecordWriter(path, _OPTIONS)
        for record in records:
            writer.write(record)
        writer.close()
    except RuntimeError as error:  # all that the library raises, whatever it is about
        raise StorageError(f"{path} cannot be written: {error}") from None


def write_twin(shard: str, twin: str, storage: Storage, compression: str) -> None:
    """Write the twin of a finished shard. shard, twin: uris. The name ``twin`` shows when the file is complete.

    The library writes local files only: the twin is made on the local disk, where it takes about the room of the shard
    for a moment, and copied from there. Raises StorageError.
    """
    with tempfile.TemporaryDirectory(prefix="beam-tfrecord-") as folder:
        path = os.path.join(folder, "twin")
        with storage.open(shard) as file:
            write_array_record((record.data for record in read_records(file, shard, compression)), path)
        temporary = f"{twin}.{os.getpid()}-{uuid.uuid4().hex[:8]}.tmp"
        with open(path, "rb") as source, storage.open_write(temporary) as target:
            shutil.copyfileobj(source, target, _CHUNK)
        storage.rename(temporary, twin)
