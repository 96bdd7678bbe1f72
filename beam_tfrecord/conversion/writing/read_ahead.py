"""Work done ahead on several threads, with results in order and memory bounded."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def ordered_map(
    executor: Executor,
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    max_tasks: int,
    max_bytes: int,
    size_of: Callable[[Result], int],
) -> Iterator[Result]:
    """Results in the order of the tasks, whichever finishes first.

    At most ``max_tasks`` are under way or waiting, and no new one is begun while finished results of more than
    ``max_bytes`` wait to be taken (one result may be larger than that by itself). An exception of a task is raised
    where its result would have been; tasks not begun by then are cancelled.
    """
    waiting: collections.deque[Future[tuple[Result, int]]] = collections.deque()
    lock = threading.Lock()
    held = 0

    def measured(task: Task) -> tuple[Result, int]:
        nonlocal held
        result = function(task)
        size = size_of(result)
        with lock:
            held += size
        return result, size

    def take() -> Result:
        nonlocal held
        result, size = waiting.popleft().result()
        with lock:
            held -= size
        return result

    try:
        for task in tasks:
            while waiting and (waiting[0].done() or len(waiting) >= max_tasks or held > max_bytes):
                yield take()
            waiting.append(executor.submit(measured, task))
        while waiting:
            yield take()
    finally:
        for future in waiting:
            future.cancel()


def ordered_shared_map(
    submit: Callable[[Task], Future[Result]],
    here: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    max_tasks: int,
    max_waiting: int,
    max_bytes: int,
    size_of: Callable[[Result], int],
) -> Iterator[Result]:
    """Results in the order of the tasks, of which some are handed over and the others done here in the meantime.

    submit: hands a task over; at most ``max_tasks`` are with others at a time. here: does one in this thread. At most
    ``max_waiting`` results and tasks are held, and no further task is begun while finished results of more than
    ``max_bytes`` wait to be taken. An exception of a task that was handed over is raised where its result
    would have been, one of a task that is done here at once.
    """
    waiting: collections.deque[Future[Result]] = collections.deque()
    handed_over: list[Future[Result]] = []
    lock = threading.Lock()
    held = 0

    def hold(result: Result, times: int) -> None:
        nonlocal held
        with lock:
            held += times * size_of(result)

    def hold_finished(future: Future[Result]) -> None:
        if not future.cancelled() and future.exception() is None:
            hold(future.result(), 1)

    def take() -> Result:
        result = waiting.popleft().result()
        hold(result, -1)
        return result

    try:
        for task in tasks:
            while waiting and (waiting[0].done() or len(waiting) >= max_waiting or held > max_bytes):
                yield take()
            handed_over = [future for future in handed_over if not future.done()]
            if len(handed_over) < max_tasks:
                waiting.append(submit(task))
                waiting[-1].add_done_callback(hold_finished)
                handed_over.append(waiting[-1])
            else:
                done: Future[Result] = Future()
                done.add_done_callback(hold_finished)
                waiting.append(done)
                done.set_result(here(task))
        while waiting:
            yield take()
    finally:
        for future in waiting:
            future.cancel()
