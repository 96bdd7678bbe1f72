"""Index files, which let a reader jump to any record of an uncompressed TFRecord file.

One line ``offset size`` for each record: where its frame starts, and how many bytes frame and data have together.
NVIDIA DALI's ``tfrecord2idx`` writes the same, and its ``fn.readers.tfrecord(index_path=...)`` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable

from beam_tfrecord.errors import DatasetError
from beam_tfrecord.tfrecord.framing import FRAME_SIZE

INDEX_SUFFIX = ".idx"


def write_index(places: Iterable[tuple[int, int]]) -> bytes:
    """The content of an index file for the (offset, size) that :meth:`RecordWriter.append` returned."""
    return "".join(f"{offset} {size}\n" for offset, size in places).encode("ascii")


def read_index(content: bytes, name: str) -> list[tuple[int, int]]:
    """(offset, size) of each record. Raises DatasetError, with name and line, when the content is no index."""
    places = []
    expected = 0
    for number, line in enumerate(content.splitlines(), start=1):
        numbers = line.split()
        if len(numbers) != 2 or not all(text.isdigit() for text in numbers):
            raise DatasetError(f"{name}:{number}: a line of an index is two numbers, 'offset size'; write it anew")
        offset, size = int(numbers[0]), int(numbers[1])
        if offset != expected or size < FRAME_SIZE:
            raise DatasetError(f"{name}:{number}: records must follow one another without a gap; write the index anew")
        places.append((offset, size))
        expected = offset + size
    return places
