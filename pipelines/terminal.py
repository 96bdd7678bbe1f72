"""What a person sees while a job runs and when it ends. Everything goes to stderr but the last line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO

from tqdm import tqdm

from beam_tfrecord.conversion.writing.progress import Progress
from beam_tfrecord.core.public_text import public_text

PLAIN_INTERVAL = 10.0  # seconds between lines when there is no terminal


def say(message: str) -> None:
    """A line for a person."""
    print(public_text(message), file=sys.stderr, flush=True)


def say_beside_bar(message: str) -> None:
    """A line for a person while a progress bar may be shown; from any thread."""
    tqdm.write(public_text(message), file=sys.stderr)


def fail(message: str) -> None:
    """An error for a person."""
    say(f"error: {message}")


def last_line(values: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    """The line on stdout that sums a command up."""
    print(public_text(json.dumps(values, ensure_ascii=False) if as_json else text), flush=True)


def plural(count: int, word: str) -> str:
    """``1 row``, ``2 rows``."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def counted(counts: Mapping[str, int]) -> str:
    """``missing_file 3, bad_row 1``, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count:,}" for name, count in ordered)


@dataclass
class ProgressDisplay:
    """A bar with rate and time left on a terminal, a plain line now and then elsewhere, nothing when quiet."""

    progress: Progress
    quiet: bool = False
    unit: str = "rows"
    bad: str = "rejected"
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    _bar: Any = None
    _shown_at: float = field(default_factory=time.monotonic)

    def update(self) -> None:
        """Show the counts as they are now."""
        if self.quiet:
            return
        done = self.progress.records + self.progress.rejects
        if self.stream.isatty():
            self._update_bar(done)
        elif done and time.monotonic() - self._shown_at >= PLAIN_INTERVAL:
            self._shown_at = time.monotonic()
            total = f" of {self.progress.total:,}" if self.progress.total else ""
            megabytes = self.progress.bytes_read / 1e6
            say(f"{done:,}{total} {self.unit}, {self.progress.rejects:,} {self.bad}, {megabytes:,.0f} MB read")

    def _update_bar(self, done: int) -> None:
        if self._bar is None:
            if not done:
                return
            self._bar = tqdm(total=self.progress.total, unit=f" {self.unit}", file=self.stream, dynamic_ncols=True)
        self._bar.total = self.progress.total
        self._bar.set_postfix_str(f"{self.progress.rejects:,} {self.bad}", refresh=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self.update()
            self._bar.close()


@contextmanager
def file_progress(*, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A display for a command that goes through files, one after the other: to be told of the bytes of each."""
    progress = Progress()
    display = ProgressDisplay(progress, quiet=quiet, unit="files", bad="failed")

    def tell(size: int) -> None:
        progress.add(1, 0, size)
        display.update()

    try:
        yield tell
    finally:
        display.close()
