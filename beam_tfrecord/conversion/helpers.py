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
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO

from beam_tfrecord.errors import JobError

Tell = Callable[..., None]
Work = Callable[..., Any]  # called as work(*arguments, tell=tell); pickled, so no function of a function

MOST_PROCESSES = 32  # each takes 60 MB and a share of the disk
CLOSE_SECONDS = 2.0
GARBAGE_THRESHOLD = 20_000  # objects between two looks for cycles of them

# The folders to import from are those of this process, and are set before anything is imported.
_START = "import sys; sys.path[:] = sys.argv[1:]; from beam_tfrecord.conversion.helpers import main; main()"


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
