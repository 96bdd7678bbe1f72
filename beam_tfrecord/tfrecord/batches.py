"""Records in groups that are worth a task of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from beam_tfrecord.tfrecord.framing import Record, RecordFault

BATCH_BYTES = 256 * 1024


def batches(items: Iterable[Record | RecordFault], most: int) -> Iterator[list[Record | RecordFault]]:
    """The items in order, in groups of at most ``most`` of them, or fewer as soon as they hold 256 KiB of records."""
    batch: list[Record | RecordFault] = []
    held = 0
    for item in items:
        batch.append(item)
        held += len(item.data) if isinstance(item, Record) else 0
        if held >= BATCH_BYTES or len(batch) >= most:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch
