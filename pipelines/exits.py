"""Exit statuses, and what becomes of an error on its way out of a command."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO, cast

from beam_tfrecord.errors import BeamTfrecordError, ConfigError
from beam_tfrecord.storage import MissingFileError, UnreadableFileError
from pipelines.terminal import fail, say

DONE = 0
FAILED = 1
USAGE = 2
WITHHELD = 3
INTERRUPTED = 130


def guarded(command: Callable[[], int], when_stopped: str) -> int:
    """Run a command: a mistake of the user becomes a message and a status, a bug keeps its traceback.

    when_stopped: what is told after Ctrl-C, unless the one who was interrupted has something to tell.
    """
    with contextlib.suppress(ValueError):  # not the main thread: the caller deals with signals
        signal.signal(signal.SIGINT, signal.default_int_handler)  # also where we were started with it ignored
    try:
        with echoes_unheard():
            return command()
    except ConfigError as error:
        fail(str(error))
        return USAGE
    except (BeamTfrecordError, MissingFileError, UnreadableFileError) as error:
        fail(str(error))
        return FAILED
    except KeyboardInterrupt as stop:
        say(str(stop) or f"stopped; {when_stopped}")
        return INTERRUPTED
    except BrokenPipeError:
        return FAILED


def main_of(command: Callable[[Sequence[str]], int], when_stopped: str) -> Callable[..., int]:
    """The ``main`` of a command: it takes the arguments (default: those of the process) and returns the exit status."""

    def main(arguments: Sequence[str] | None = None) -> int:
        given = sys.argv[1:] if arguments is None else arguments
        return guarded(lambda: command(given), when_stopped)

    return main


# ---------------------------------------------------------------------------------------------------------------------
# What Beam's threads say of a job that this process ends


@contextlib.contextmanager
def echoes_unheard() -> Iterator[None]:
    """Tracebacks of Beam's own threads are not printed: whatever ends a job is told by the command, once.

    With workers in this process those threads say so too, each with a traceback: of a mistake of the user, of a job
    that was stopped, and now and then of the end of one that went well.
    """
    before = threading.excepthook

    def hook(failure: threading.ExceptHookArgs) -> None:
        frames = traceback.extract_tb(failure.exc_traceback)
        if not any("/apache_beam/runners/" in Path(frame.filename).as_posix() for frame in frames):
            before(failure)

    threading.excepthook = hook
    try:
        with contextlib.redirect_stderr(cast(TextIO, _WithoutEchoes(sys.stderr))):
            yield
    finally:
        threading.excepthook = before


class _WithoutEchoes:
    """A stream that leaves out the tracebacks which Beam's worker prints when it works in a thread of this process."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._thread = threading.local()

    def write(self, text: str) -> int:
        was_echo = getattr(self._thread, "was_echo", False)
        self._thread.was_echo = text.startswith("Traceback (most recent call last)") and "sdk_worker.py" in text
        if self._thread.was_echo or (was_echo and text == "\n"):  # print ends with a line break of its own
            return len(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def end_of_process(status: int) -> int:
    """The status, when the process of a command is about to end with it: all is said, and what its threads say while
    they are torn down is about nothing."""
    sys.stderr.flush()
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    os.close(nothing)
    return status
