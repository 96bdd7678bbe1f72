"""Exit statuses, and what becomes of an error on its way out of a command."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable

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
