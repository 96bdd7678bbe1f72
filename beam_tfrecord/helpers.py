"""Processes beside this one, for Python work that one interpreter does on one core only.

A helper is a fresh interpreter that imports what its work needs and nothing else: neither Beam nor the program that
started it, so that a script needs no ``if __name__ == "__main__"``. It does one thing at a time and tells of it over
its standard streams, which carry pickles from one process of ours to the other. It ends when its standard input does,
whatever it is doing: a program that was killed leaves no helper behind that writes on.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import pickle
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, Full, Queue, SimpleQueue
from threading import Thread
from typing import Any, BinaryIO, Generic, TypeVar

from beam_tfrecord.errors import JobError

Task = TypeVar("Task")
Result = TypeVar("Result")
Tell = Callable[..., None]
Work = Callable[..., Any]  # called as work(*arguments, tell=tell); pickled, so no function of a function

MOST_PROCESSES = 32  # each takes 60 MB and a share of the disk
TASKS_OF_HELPER = 2  # of a pool: one that it does, and the next one
CLOSE_SECONDS = 2.0
GARBAGE_THRESHOLD = 20_000  # objects between two looks for cycles of them

# The folders to import from are those of this process, and are set before anything is imported.
_START = "import sys; sys.path[:] = sys.argv[1:]; from beam_tfrecord.helpers import main; main()"


class _RemoteTracebackError(Exception):
    """The traceback of a helper, as the cause of an error that came from there."""

    def __str__(self) -> str:
        return f"\n\n{self.args[0]}"


class Helper:
    """One helper process, started when this is made; for one thread at a time."""

    def __init__(self) -> None:
        self.setting = _setting()
        # In a session of its own: Ctrl-C reaches all processes of a terminal's, and one of them decides.
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        _RUNNING.append(self)

    def load(self, modules: Sequence[str]) -> None:
        """Have it import modules that its work will need."""
        self._send(("load", tuple(modules)))

    def begin(self, work: Work) -> None:
        """Hand over what the next calls are to do."""
        self._send(("begin", work))

    def call(self, arguments: Sequence[Any], tell: Tell) -> Any:
        """The result of ``work(*arguments, tell=tell)``, computed by the helper.

        Raises as :meth:`answer` does.
        """
        self.ask(arguments)
        return self.answer(tell)

    def ask(self, arguments: Sequence[Any]) -> None:
        """Have it compute ``work(*arguments, tell=tell)`` once it has done what it was asked before."""
        self._send(("call", tuple(arguments)))

    def answer(self, tell: Tell) -> Any:
        """The result of the call that was asked for first, of those that have none yet.

        What the work tells is told here, in this thread. Raises what the work raised, and JobError when the helper
        ended before its work was done.
        """
        while True:
            kind, value = self._receive()
            if kind == "told":
                tell(*value)
            elif kind == "done":
                return value
            else:
                error, text = value
                raise error from _RemoteTracebackError(text)

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process. What it is doing is left as it is."""
        if self in _RUNNING:
            _RUNNING.remove(self)
        with contextlib.suppress(OSError):
            _pipe(self._process.stdin).close()
        try:
            self._process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:  # a process that was forked from this one holds its standard input open
            self._process.kill()
            self._process.wait()
        _pipe(self._process.stdout).close()

    def _send(self, message: tuple[str, object]) -> None:
        try:
            stdin = _pipe(self._process.stdin)
            kind, value = message
            # Pickled twice: what cannot be unpickled there must not leave half a message in the stream.
            pickle.dump((kind, pickle.dumps(value, protocol=5)), stdin, protocol=5)
            stdin.flush()
        except BrokenPipeError:
            raise self._lost() from None

    def _receive(self) -> tuple[str, Any]:
        try:
            message: tuple[str, Any] = pickle.load(_pipe(self._process.stdout))
        except (EOFError, pickle.UnpicklingError):
            raise self._lost() from None
        return message

    def _lost(self) -> JobError:
        status = self._process.wait()
        return JobError(
            f"a helper process ended before its work was done (status {status}: killed, or out of memory); the same "
            "command with --resume goes on from the shards that are finished, and --processes 1 does without helpers"
        )


def _pipe(stream: Any) -> BinaryIO:
    """A standard stream of a process that was made with pipes."""
    found: BinaryIO = stream
    return found


_RUNNING: list[Helper] = []
_WAITING: list[Helper] = []  # started in advance or given back, for whoever asks next


def start_in_advance(count: int, modules: Sequence[str]) -> None:
    """Start helpers that will be asked for later: they import these modules while this process does something else."""
    with contextlib.suppress(OSError, JobError):  # they are missed when they are asked for
        while len(_WAITING) < count:
            helper = Helper()
            helper.load(modules)
            _WAITING.append(helper)


def are_waiting() -> bool:
    """Whether a crew would get helpers that are started already."""
    return bool(_WAITING)


def _setting() -> tuple[object, ...]:
    """What a helper has taken over from this process when it was started; with another one it would do other work."""
    return os.getpid(), os.getcwd(), tuple(sys.path), tuple(sorted(os.environ.items()))


def taken() -> Helper:
    """A helper that waits and is as a new one would be, or a new one. Raises OSError when none can be started."""
    while _WAITING:
        helper = _WAITING.pop()
        if helper.setting == _setting() and helper.is_alive:
            return helper
        helper.close()
    return Helper()


def give_back(helper: Helper) -> None:
    """Leave a helper that has done its work to whoever needs one next."""
    _WAITING.append(helper)


def close_waiting() -> None:
    """End the helpers that nobody uses: when a conversion has ended."""
    while _WAITING:
        _WAITING.pop().close()


def _forget() -> None:
    """In a forked process: the helpers are those of the other one."""
    _WAITING.clear()
    _RUNNING.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def close_all() -> None:
    """End all helpers of this process."""
    _WAITING.clear()
    for helper in list(_RUNNING):
        helper.close()


atexit.register(close_all)


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
        self._helpers: list[Helper] = []
        with contextlib.suppress(OSError):  # no more processes or files can be had
            while len(self._helpers) < count:
                self._helpers.append(taken())
        self._tasks: SimpleQueue[tuple[Future[Result], Task] | None] = SimpleQueue()
        self._leaders = [Thread(target=self._lead, args=(one,), name="helper", daemon=True) for one in self._helpers]
        for leader in self._leaders:
            leader.start()

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
        for leader in self._leaders:
            leader.join()
        for helper in self._helpers:
            give_back(helper)
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
        self._helpers: list[Helper] = []
        with contextlib.suppress(OSError):  # no more processes or files can be had: fewer helpers do it as well
            while len(self._helpers) < helpers:
                self._helpers.append(taken())
        self._leaders = [Thread(target=self._lead, args=(one,), name="helper", daemon=True) for one in self._helpers]
        for leader in self._leaders:
            leader.start()

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
        for leader in self._leaders:
            leader.join()
        _WAITING.extend(self._helpers)
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


def helpers_wanted(processes: int | None) -> int:
    """Helpers of this process when so many processes in all are asked for; None: one for each core."""
    return min(processes or available_cores(), MOST_PROCESSES) - 1


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# ---------------------------------------------------------------------------------------------------------------------
# In the helper


def _requests(stream: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """What is asked for, as it arrives. The process ends as soon as nothing can arrive any more."""
    arrived: SimpleQueue[tuple[str, bytes]] = SimpleQueue()

    def listen() -> None:
        try:
            while True:
                arrived.put(pickle.load(stream))
        except EOFError:
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    Thread(target=listen, name="listen", daemon=True).start()
    while True:
        yield arrived.get()


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Do what is asked for, one thing after another, until the requests end."""

    def reply(kind: str, value: object) -> None:
        # Pickled as a whole first: what cannot be pickled must not leave half a message in the stream.
        replies.write(pickle.dumps((kind, value), protocol=5))
        replies.flush()

    work: Work | None = None
    failure: tuple[BaseException, str] | None = None  # of what came before a call, which is where it is told
    for kind, packed in _requests(requests):
        try:
            value = pickle.loads(packed)
            if kind == "load":
                for name in value:
                    importlib.import_module(name)
            elif kind == "begin":
                work, failure = value, None
            elif failure is not None:
                reply("failed", failure)
            else:
                assert work is not None
                reply("done", work(*value, tell=lambda *told: reply("told", told)))
        except BaseException as error:
            told = error, traceback.format_exc()
            if kind == "call":
                reply("failed", told)
            else:
                failure = told


def main() -> None:
    """Serve over the standard streams. What the work prints goes to standard error."""
    # Records are freed without the collector: it may look for cycles less often.
    gc.set_threshold(GARBAGE_THRESHOLD)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, replies)
