"""Trying again: bounded, with growing random waits, and counted."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from beam_tfrecord.storage.faults import TransientError, UnreadableFileError

if TYPE_CHECKING:
    import tenacity

Result = TypeVar("Result")


class StorageCounters:
    """How often something was tried again. Safe to use from many threads.

    Names: ``read_retries``, ``write_retries``.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def add(self, name: str, count: int = 1) -> None:
        """Count something."""
        with self._lock:
            self._counts[name] += count

    def __getitem__(self, name: str) -> int:
        with self._lock:
            return self._counts[name]

    def snapshot(self) -> dict[str, int]:
        """All counts at this moment, by name."""
        with self._lock:
            return dict(sorted(self._counts.items()))


@dataclass(frozen=True)
class RetryPolicy:
    """When to try again, and when to give up.

    attempts: how many tries in all. first_wait, longest_wait, total_time: seconds. Before try n + 1 a random time
    between 0 and ``min(longest_wait, first_wait * 2**(n - 1))`` passes ("full jitter", so that many workers that failed
    together do not come back together), or what the server asked for when that is longer (up to ``longest_wait``). No
    further try begins once ``total_time`` would be over.
    """

    attempts: int = 7
    first_wait: float = 0.5
    longest_wait: float = 30.0
    total_time: float = 120.0

    def call(self, attempt: Callable[[], Result], shown: str, on_retry: Callable[[], None]) -> Result:
        """The result of ``attempt``, tried again whenever it raises TransientError.

        shown: name of the file for messages. on_retry: called before each wait. Raises UnreadableFileError in the end.
        """
        try:
            return attempt()
        except TransientError as error:
            failed = [error]  # which the machinery below, slow to import and slow itself, begins with
        import tenacity

        def attempt_again() -> Result:
            if failed:
                raise failed.pop()
            return attempt()

        backoff = tenacity.wait_random_exponential(multiplier=self.first_wait, max=self.longest_wait)

        def wait(state: tenacity.RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            asked = error.retry_after if isinstance(error, TransientError) else 0.0
            return max(backoff(state), min(asked, self.longest_wait))

        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(self.attempts) | tenacity.stop_before_delay(self.total_time),
            wait=wait,
            retry=tenacity.retry_if_exception_type(TransientError),
            before_sleep=lambda _: on_retry(),
            reraise=True,
        )
        try:
            return retrying(attempt_again)
        except TransientError as error:
            tries = retrying.statistics.get("attempt_number", 1)
            raise UnreadableFileError(
                f"{shown}: failed {tries} {'time' if tries == 1 else 'times'}, the last time with: {error.reason}"
            ) from None
