"""One process measured from its start to its end, with all that it starts."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

SAMPLE_SECONDS = 0.1  # a sample takes milliseconds of a core, which a program that uses all of them lacks


@dataclass(frozen=True)
class Measured:
    """wall, cpu: seconds of the whole process tree. peak: bytes, of the tree (shared pages counted once); 0 when it was
    not watched."""

    wall: float
    cpu: float
    peak: int
    output: str


class ProcessFailedError(RuntimeError):
    """A measured program ended with an error: its numbers would mean nothing."""


def measure(
    command: Sequence[str], cwd: Path, *, watched: bool = True, environment: Mapping[str, str] | None = None
) -> Measured:
    """Run a command to its end. Raises ProcessFailedError when it fails.

    watched: for its memory, which takes time from it. environment: variables in addition.
    """
    variables = {
        **os.environ,
        **(environment or {}),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "-1",
        "PYTHONPATH": str(cwd),
    }
    variables.pop("PYTHONDONTWRITEBYTECODE", None)  # compiling anew at each start is nobody's everyday
    started = time.perf_counter()
    with subprocess.Popen(
        command, cwd=cwd, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        watcher = _MemoryWatcher(process.pid)
        if watched:
            watcher.start()
        before = os.times()
        output, errors = process.communicate()
        wall = time.perf_counter() - started
        if watched:
            watcher.stop()
    after = os.times()
    if process.returncode:
        raise ProcessFailedError(f"{' '.join(command)} ended with {process.returncode}:\n{errors[-2000:]}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Measured(wall, cpu, watcher.peak, output.strip())


class _MemoryWatcher(threading.Thread):
    """Adds up the proportional set sizes of a process and its descendants, again and again."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self._process = psutil.Process(pid)
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            total = 0
            with contextlib.suppress(psutil.Error):
                for process in [self._process, *self._process.children(recursive=True)]:
                    with contextlib.suppress(psutil.Error):
                        total += process.memory_full_info().pss
            self.peak = max(self.peak, total)

    def stop(self) -> None:
        """End the watching."""
        self._ended.set()
        self.join()
