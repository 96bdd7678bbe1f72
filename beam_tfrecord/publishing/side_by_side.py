"""Requests about many shards, many at a time where each of them waits for an object store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from beam_tfrecord.conversion.writing.read_ahead import ordered_map
from beam_tfrecord.storage import Storage, scheme_of

Task = TypeVar("Task")
Result = TypeVar("Result")


def side_by_side(
    function: Callable[[Task], Result], tasks: Iterable[Task], place: str, storage: Storage
) -> Iterator[Result]:
    """The results in the order of the tasks: one after the other on a disk, else as many at a time as there are
    connections.

    place: the uri that the tasks are about. Results must be small: twice as many as there are connections may wait to
    be taken. An exception of a task is raised where its result would have been.
    """
    if scheme_of(place) in ("", "file"):
        yield from map(function, tasks)
        return
    threads = storage.options.connections
    with ThreadPoolExecutor(threads, thread_name_prefix="publish") as pool:
        yield from ordered_map(pool, function, tasks, max_tasks=2 * threads, max_bytes=1, size_of=lambda result: 0)
