"""Work shared by this process and helpers of it: who does what, and how the results come together."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, Full, Queue, SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeVar

from beam_tfrecord.conversion.helpers import Helper, Tell, give_back, taken

Task = TypeVar("Task")
Result = TypeVar("Result")

TASKS_OF_HELPER = 2  # of a pool: one that it does, and the next one


def _take_helpers(count: int) -> list[Helper]:
    """So many, or fewer where no more processes or files can be had: they do it as well."""
    helpers: list[Helper] = []
    with contextlib.suppress(OSError):
        while len(helpers) < count:
            helpers.append(taken())
    return helpers


def _start_leaders(lead: Callable[[Helper], None], helpers: Sequence[Helper]) -> list[Thread]:
    """A thread for each helper, which speaks to it."""
    leaders = [Thread(target=lead, args=(one,), name="helper", daemon=True) for one in helpers]
    for leader in leaders:
        leader.start()
    return leaders


def _hand_back(leaders: Sequence[Thread], helpers: Sequence[Helper]) -> None:
    """Leave helpers to whoever needs them next, once the threads that lead them have ended."""
    for leader in leaders:
        leader.join()
    for helper in helpers:
        give_back(helper)


class HelperPool(Generic[Task, Result]):
    """Helpers that all do one kind of work. There may be fewer than asked for, or none.

    Each has its next task already while it does one: this process may be too busy to take a result at once. pack: makes
    what is sent to a helper of a task. unpack: makes the result of a task and what ``work`` returned for it.
    """

    def __init__(
        self,
        work: Callable[..., Any],
        count: int,
        pack: Callable[[Task], Any] = lambda task: task,
        unpack: Callable[[Task, Any], Result] = lambda task, returned: returned,
    ) -> None:
        self._work = work
        self._pack = pack
        self._unpack = unpack
        self._helpers = _take_helpers(count)
        self._tasks: SimpleQueue[tuple[Future[Result], Task] | None] = SimpleQueue()
        self._leaders = _start_leaders(self._lead, self._helpers)

    def __len__(self) -> int:
        return len(self._helpers)

    def submit(self, task: Task) -> Future[Result]:
        """Hand a task over; the future has the result, or what the work raised."""
        future: Future[Result] = Future()
        self._tasks.put((future, task))
        return future

    def finish(self) -> None:
        """Wait for what is under way, and leave the helpers to whoever needs them next."""
        for _ in self._leaders:
            self._tasks.put(None)
        _hand_back(self._leaders, self._helpers)
        self._helpers, self._leaders = [], []

    def close(self) -> None:
        """End the helpers, whatever they are doing."""
        for helper in self._helpers:
            helper.close()
        for _ in self._leaders:
            self._tasks.put(None)
        self._helpers, self._leaders = [], []

    def _lead(self, helper: Helper) -> None:
        """Give one task after another to a helper, and its results to who waits for them."""
        under_way: deque[tuple[Future[Result], Task]] = deque()
        has_begun = is_over = False
        while not is_over or under_way:
            try:
                while not is_over and len(under_way) < TASKS_OF_HELPER:
                    given = self._tasks.get_nowait() if under_way else self._tasks.get()
                    if given is None:
                        is_over = True
                    elif given[0].set_running_or_notify_cancel():
                        under_way.append(given)
                        if not has_begun:
                            helper.begin(self._work)
                            has_begun = True
                        helper.ask((self._pack(given[1]),))
            except Empty:
                pass
            except BaseException as error:  # handed over to those who wait
                _fail(under_way, error)
            if under_way:
                future, task = under_way.popleft()
                try:
                    future.set_result(self._unpack(task, helper.answer(lambda *told: None)))
                except BaseException as error:  # handed over to who waits
                    future.set_exception(error)


def _fail(under_way: deque[tuple[Future[Result], Task]], error: BaseException) -> None:
    while under_way:
        under_way.popleft()[0].set_exception(error)


class Errand(Generic[Result]):
    """One call of some work in a helper, while this process does something else. Raises OSError when there is none."""

    def __init__(self, work: Callable[..., Result], *arguments: Any) -> None:
        self._work = work
        self._arguments = arguments
        self._outcome: SimpleQueue[Result | _Failure] = SimpleQueue()
        self._helper: Helper | None = taken()
        Thread(target=self._lead, args=(self._helper,), name="errand", daemon=True).start()

    def result(self) -> Result:
        """What the work returned; waits for it. Raises what it raised. To be asked for once."""
        outcome = self._outcome.get()
        if isinstance(outcome, _Failure):
            self.close()
            raise outcome.error
        assert self._helper is not None
        give_back(self._helper)
        self._helper = None
        return outcome

    def close(self) -> None:
        """End the helper when nobody has asked for the result."""
        if self._helper is not None:
            self._helper.close()
            self._helper = None

    def _lead(self, helper: Helper) -> None:
        try:
            helper.begin(self._work)
            self._outcome.put(helper.call(self._arguments, lambda *told: None))
        except BaseException as error:  # handed over to the thread that asks
            self._outcome.put(_Failure(error))


class Crew(Generic[Task, Result]):
    """Tasks done by this process and by helpers of it at the same time.

    A task goes to a helper when one is free or soon will be, else it is done here, in the thread that calls; so results
    come in any order. work: is called ``work(task, tell=tell)`` in a helper. here: does a task in this process. tell:
    is told what helpers tell, in threads of its own.
    """

    def __init__(
        self, work: Callable[..., Result], here: Callable[[Task], Result], helpers: int, tell: Tell = lambda *told: None
    ) -> None:
        self._work = work
        self._here = here
        self._tell = tell
        # As many as there are helpers wait, so that none of them is idle while this process is busy itself.
        self._tasks: Queue[Task | None] = Queue(helpers or 1)
        self._results: SimpleQueue[Result | _Failure] = SimpleQueue()
        self._under_way = 0
        self._helpers = _take_helpers(helpers)
        self._leaders = _start_leaders(self._lead, self._helpers)

    def take(self, task: Task) -> Iterator[Result]:
        """Take a task on. Gives the results that there are by now, of this task or others."""
        if not self._offer(task):
            yield self._here(task)
        while not self._results.empty():
            yield self._next_result()

    def finish(self) -> Iterator[Result]:
        """All results that are still to come; then the helpers are there for the next crew."""
        while (task := self._waiting_task()) is not None:
            self._under_way -= 1
            yield self._here(task)
        while self._under_way:
            yield self._next_result()
        for _ in self._leaders:
            self._tasks.put(None)
        _hand_back(self._leaders, self._helpers)
        self._helpers, self._leaders = [], []

    def close(self) -> None:
        """End the helpers, whatever they are doing."""
        for helper in self._helpers:
            helper.close()
        for _ in self._leaders:
            self._waiting_task()
            self._tasks.put(None)

    def _offer(self, task: Task) -> bool:
        if not self._leaders:
            return False
        try:
            self._tasks.put_nowait(task)
        except Full:
            return False
        self._under_way += 1
        return True

    def _waiting_task(self) -> Task | None:
        try:
            return self._tasks.get_nowait()
        except Empty:
            return None

    def _next_result(self) -> Result:
        result = self._results.get()
        if isinstance(result, _Failure):
            raise result.error
        self._under_way -= 1
        return result

    def _lead(self, helper: Helper) -> None:
        """Give one task after another to a helper."""
        try:
            helper.begin(self._work)
            while (task := self._tasks.get()) is not None:
                self._results.put(helper.call((task,), self._tell))
        except BaseException as error:  # handed over to the thread that waits
            self._results.put(_Failure(error))


@dataclass(frozen=True)
class _Failure:
    """What ended the work of a helper."""

    error: BaseException
